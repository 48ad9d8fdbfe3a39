"""The kit for other people's tests: each of its checks finds what it is for."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnknownLoc
from xdsl.ir import Operation

from sardonyx.dialects.sx.unary import AbsOp, NegOp
from sardonyx.errors import SardonyxError, UnsupportedError
from sardonyx.passes.base import EXACT, CheckError, PassRun, Promise, SxPass, reassociates
from sardonyx.passes.driver import RewriteDriver, SxPattern, SxRewriter
from sardonyx.testing import (
    LitFailure,
    check_confluence,
    check_lines,
    check_pass,
    inputs_of,
    random_module,
    run_file,
    three_executions,
    update,
)

T = "tensor<?x3xf32, #sx.dims<n, _>>"
NEGS = f"""\
func.func @main(%x: {T}) -> {T} {{
  %0 = sx.neg %x : ({T}) -> {T}
  %1 = sx.neg %0 : ({T}) -> {T}
  %2 = sx.exp %1 : ({T}) -> {T}
  func.return %2 : {T}
}}
"""


@dataclass
class Each(SxPattern[NegOp]):
    """Does something to each negation."""

    what: Callable[[Any, SxRewriter], None]
    OPS: ClassVar = (NegOp,)
    NAME: ClassVar = "each"

    def rewrite(self, op: NegOp, rewriter: SxRewriter) -> None:
        self.what(op, rewriter)


def pass_of(what: Callable[[ModuleOp, PassRun], None], promise: Promise = EXACT) -> SxPass:
    @dataclass(frozen=True)
    class TestPass(SxPass):
        name = "test-pass"
        PROMISE: ClassVar[Promise] = promise

        def run(self, module: ModuleOp, run: PassRun) -> None:
            what(module, run)

    return TestPass()


def pattern_pass(what: Callable[[Any, SxRewriter], None], **options: Any) -> SxPass:
    return pass_of(lambda module, run: void(RewriteDriver([Each(what)], run).rewrite(module)), **options)


def void(_: object) -> None:
    return None


def negations(module: ModuleOp) -> list[Operation]:
    return [op for op in module.walk() if op.name == "sx.neg"]


def test_what_is_right_passes():
    found = check_pass("simplify", NEGS, changes=True)
    assert "sx.neg" not in found.text and found.compared == 6
    assert check_pass("cse,remove-dead-nodes", NEGS, changes=False).report.promise == Promise()


def drop(op: Any, rewriter: SxRewriter) -> None:
    rewriter.replace(op, [], [op.operands[0]])


def absolute(op: Any, rewriter: SxRewriter) -> None:
    rewriter.replace(op, AbsOp.make(op.operands[0]))


def once_more(module: ModuleOp, run: PassRun) -> None:
    op = negations(module)[0]
    new = NegOp.make(NegOp.make(op.operands[0]).results[0])
    new.location = op.location
    first: Any = new.operands[0].owner
    first.location = op.location
    block: Any = op.parent
    block.insert_ops_before([first, new], op)
    op.operands[0] = new.results[0]
    run.changed = True


def silent(module: ModuleOp, run: PassRun) -> None:
    for op in negations(module):
        op.attributes["seen"] = op.properties.get("none", UnknownLoc())


def lost(module: ModuleOp, run: PassRun) -> None:
    for op in negations(module):
        op.location = UnknownLoc()
        run.changed = True
        op.attributes["seen"] = UnknownLoc()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (pattern_pass(absolute), "changes values"),
        (pass_of(once_more), "a second run of 'test-pass' changes something"),
        (pass_of(silent), "says that it changed nothing, which is not so"),
        (pass_of(lambda module, run: setattr(run, "changed", True)), "says that it changed something, which is not so"),
        (pass_of(lost), "without a location"),
    ],
)
def test_what_is_wrong_is_found(wrong: SxPass, message: str):
    with pytest.raises(SardonyxError, match=message):
        check_pass(wrong, NEGS)


def test_expected_changes():
    with pytest.raises(CheckError, match="changed nothing"):
        check_pass("cse", NEGS, changes=True)
    with pytest.raises(CheckError, match=r"changed it:\n(.|\n)*-    %0 = sx.neg"):
        check_pass("simplify", NEGS, changes=False)
    # Both negations go, so the values stay; one alone changes them, and no promise covers that.
    check_pass(pattern_pass(drop), NEGS, changes=True)
    odd = NEGS.replace("%2 = sx.exp %1", "%2 = sx.exp %0")
    with pytest.raises(SardonyxError, match="pattern 'each' on sx.neg"):
        check_pass(pattern_pass(drop, promise=reassociates(4)), odd)


def test_confluence():
    for seed in range(3):
        ends = check_confluence(
            ["cse", "simplify", "compose-transposes"], random_module(seed), orders=3, same_text=False
        )
        assert len(ends) == 3
    check_confluence(["cse", "simplify,remove-dead-nodes"], NEGS)
    with pytest.raises(CheckError, match="do not come to rest"):
        check_confluence([pass_of(once_more)], NEGS, inputs=0)
    first = pass_of(lambda module, run: rename(module, run, "a"))
    second = pass_of(lambda module, run: rename(module, run, "b"))
    with pytest.raises(CheckError, match="two orders end differently"):
        check_confluence([first, second], NEGS, inputs=0)


def rename(module: ModuleOp, run: PassRun, name: str) -> None:
    """Whoever comes first decides."""
    for op in negations(module):
        if "first" not in op.attributes:
            op.attributes["first"] = StringAttr(name)
            run.changed = True


def test_three_executions():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    found = three_executions(NEGS, [x])
    assert set(found.outputs) | set(found.skipped) == {"reference", "native", "onnx"}
    np.testing.assert_allclose(found.outputs["native"][0], np.exp(x), rtol=1e-6)


def test_an_execution_that_is_required(monkeypatch: pytest.MonkeyPatch):
    def refuse(graph: object, arrays: object) -> None:
        raise UnsupportedError("no native form")

    x = np.ones((1, 3), np.float32)
    monkeypatch.setattr("sardonyx.testing.executions._onnx", lambda graph, arrays: [np.ones((1, 3), np.float32)])
    with pytest.raises(AssertionError, match="output 0 of onnx"):
        three_executions(NEGS, [x])
    monkeypatch.setattr("sardonyx.testing.executions._native", refuse)
    with pytest.raises(AssertionError, match="native: no native form"):
        three_executions(NEGS, [x])
    monkeypatch.setattr("sardonyx.testing.executions._onnx", refuse)
    assert three_executions(NEGS, [x], require=()).skipped["native"] == "no native form"


def test_inputs_and_random_modules():
    module = random_module(5)
    function: Any = next(op for op in module.walk() if op.name == "func.func")
    made = list(inputs_of(function, 5))
    assert len({one.kind for one in made}) == 5
    assert any(0 in np.shape(value) for one in made for value in one.values)
    assert any(np.isnan(np.asarray(value)).any() for one in made for value in one.values)
    assert str(random_module(5)) == str(module) != str(random_module(6))


# --- lit files


def test_check_lines_are_written_anew(tmp_path: Path):
    path = tmp_path / "x.mlir"
    path.write_text(
        f"// RUN: sardonyx-opt %s -p simplify | filecheck %s\n\n// Negations.\n// CHECK: gone\n\n{NEGS}", "utf-8"
    )
    with pytest.raises(LitFailure):
        run_file(path)
    assert update(path)
    run_file(path)
    text = path.read_text("utf-8")
    assert "// Negations.\n\n// CHECK-LABEL: func.func @main(%x: " in text
    assert "// CHECK-NEXT: %[[V0:[0-9]+]] = sx.exp %x" in text and "return %[[V0]]" in text
    assert not update(path)
    path.write_text(text.replace("-p simplify", "-p cse"), "utf-8")
    with pytest.raises(LitFailure):
        run_file(path)
    path.write_text("// RUN: not sardonyx-opt %s\nfunc", "utf-8")
    with pytest.raises(LitFailure, match="can be regenerated"):
        update(path)


def test_check_lines_of_text():
    lines = check_lines("builtin.module {\n  func.func @a() {\n    %0 = a\n    %10 = b %0, %x\n  }\n}\n", "X")
    assert lines == ["// X-LABEL: func.func @a() {", "// X-NEXT: %[[V0:[0-9]+]] = a",
                     "// X-NEXT: %[[V10:[0-9]+]] = b %[[V0]], %x"]  # fmt: skip


@pytest.mark.slow
def test_the_plug_in(tmp_path: Path):
    (tmp_path / "conftest.py").write_text('pytest_plugins = ["sardonyx.testing.plugin"]\n', "utf-8")
    (tmp_path / "good.mlir").write_text(f"// RUN: sardonyx-opt %s | filecheck %s\n// CHECK: sx.neg\n{NEGS}", "utf-8")
    (tmp_path / "bad.mlir").write_text(f"// RUN: sardonyx-opt %s | filecheck %s\n// CHECK: sx.log\n{NEGS}", "utf-8")
    (tmp_path / "data.mlir").write_text(NEGS, "utf-8")
    (tmp_path / "test_it.py").write_text(
        "import numpy as np\n\n\ndef test_it(three_executions):\n"
        f"    three_executions('''{NEGS}''', [np.ones((2, 3), np.float32)])\n", "utf-8"
    )  # fmt: skip
    ran = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path),
                          str(tmp_path)], capture_output=True, text=True, check=False)  # fmt: skip
    assert "1 failed, 2 passed" in ran.stdout, ran.stdout + ran.stderr
    assert re.search(r"^FAILED \S*bad.mlir", ran.stdout, re.MULTILINE)
