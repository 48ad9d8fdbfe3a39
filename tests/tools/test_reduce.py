"""`sardonyx-reduce`: the smallest module, pipeline and rewrites for each oracle, in a file that reproduces."""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

import numpy as np
import onnx
import onnx.helper as oh
import pytest

from sardonyx.dialects.sx.activation import ReluOp
from sardonyx.passes.reducer import ddmin
from sardonyx.tools import opt, reduce

WRONG = '''
from dataclasses import dataclass
from xdsl.dialects.builtin import ModuleOp
from sardonyx.dialects.attributes import tensor_type
from sardonyx.dialects.dtypes import float64
from sardonyx.dialects.sx.activation import ReluOp
from sardonyx.dialects.sx.unary import AbsOp, ExpOp
from sardonyx.passes.base import PassRun, SxPass
from sardonyx.passes.driver import RewriteDriver, SxPattern
from sardonyx.passes.matching import forward


@dataclass(frozen=True)
class WrongPass(SxPass):
    """Drops relus; raises at abs(abs(x)); leaves exp(exp(x)) with a type that isn't its own."""

    name = "wrong"

    def run(self, module: ModuleOp, run: PassRun) -> None:
        class Wrong(SxPattern):
            OPS = (ReluOp, AbsOp, ExpOp)

            def rewrite(self, op, rewriter):
                if isinstance(op, ReluOp):
                    return forward(op, op.operands[0], rewriter)
                if isinstance(op.operands[0].owner, type(op)):
                    if isinstance(op, AbsOp):
                        raise ValueError(f"cannot do {op.results[0].type}")
                    if not op.results[0].type.element_type == float64.ir:
                        op.results[0]._type = tensor_type(float64, [1])
                        rewriter.notify_op_modified(op)
                        rewriter.has_done_action = True

        RewriteDriver([Wrong()], run).rewrite(module)
'''
TEXT = """func.func @other(%x: tensor<2xf32>) -> tensor<2xf32> {
  func.return %x : tensor<2xf32>
}
func.func @main(%x: !D, %y: tensor<16xf32>) -> (!D, !D) {
  %c = sx.constant {value = dense<3.5> : tensor<16xf32>} : () -> tensor<16xf32>
  %0 = sx.tanh %x : (!D) -> !D
  %1 = sx.sub %0, %c : (!D, tensor<16xf32>) -> !D
  %2 = sx.OP %1 : (!D) -> !D
  %3 = sx.OP %2 : (!D) -> !D
  %4 = sx.add %3, %y : (!D, tensor<16xf32>) -> !D
  %5 = sx.neg %4 : (!D) -> !D
  func.return %5, %0 : !D, !D
}
""".replace("!D", "tensor<?x16xf32, #sx.dims<n, _>>")


PEERS = """func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = sx.tanh %x : (tensor<2x3xf32>) -> tensor<2x3xf32>
  %1 = sx.relu %0 : (tensor<2x3xf32>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}
"""


@pytest.fixture(scope="module")
def wrong(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("passes") / "wrong.py"
    path.write_text(WRONG)
    return path


def run(*arguments: object) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    status = reduce.command([str(a) for a in arguments], io.StringIO(), out, err)
    return status, out.getvalue(), err.getvalue()


def again(text: str, path: Path) -> tuple[int, str]:
    """Run the test's RUN line; its status and standard error."""
    path.write_text(text)
    line = re.search(r"// RUN: not sardonyx-opt %s (.*)", text)
    assert line is not None
    import shlex

    err = io.StringIO()
    return opt.run([str(path), *shlex.split(line[1])], io.StringIO(), io.StringIO(), err), err.getvalue()


def ops_of(text: str) -> list[str]:
    return re.findall(r"= sx\.(\w+)", text)


@pytest.mark.parametrize(
    ("oracle", "op", "ops", "status", "says"),
    [("numeric", "relu", ["relu"], 6, "changes values"), ("crash", "abs", ["abs", "abs"], 70, "cannot do"),
     ("verify", "exp", ["exp", "exp"], 70, "invalid")],
)  # fmt: skip
def test_the_smallest_case(oracle, op, ops, status, says, wrong, tmp_path):
    source = tmp_path / "in.mlir"
    source.write_text(TEXT.replace("OP", op))
    code, text, progress = run(source, "--load", wrong, "--oracle", oracle, "-p", "cse,wrong,remove-dead-nodes")
    assert code == 0, progress
    assert ops_of(text) == ops and "@other" not in text
    assert "-p 'wrong'" in text and re.search("tensor<[12]x[12]xf32>", text) and "cases tried" in progress
    assert "0 rewrites" not in text + progress
    if oracle == "numeric":
        assert "It takes 1 rewrite: --fuel=1" in text
    found, message = again(text, tmp_path / "case.mlir")
    assert found == status and says in message


def test_a_model_and_a_pipeline_by_name(wrong, tmp_path):
    rng = np.random.default_rng(0)
    nodes = [
        oh.make_node("Conv", ["x", "w"], ["a"], name="conv"),
        oh.make_node("Sigmoid", ["a"], ["b"]),
        oh.make_node("Sub", ["b", "k"], ["c"]),
        oh.make_node("Relu", ["c"], ["d"], name="act"),
        oh.make_node("GlobalAveragePool", ["d"], ["e"]),
        oh.make_node("Flatten", ["e"], ["y"]),
    ]
    weights = [("w", rng.normal(size=(8, 3, 3, 3))), ("k", np.full((1,), 0.5))]
    graph = oh.make_graph(
        nodes, "net", [oh.make_tensor_value_info("x", 1, ["n", 3, 12, 12])],
        [oh.make_tensor_value_info("y", 1, ["n", 8])],
        [onnx.numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights],
    )  # fmt: skip
    onnx.save(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=9), tmp_path / "net.onnx")
    target = tmp_path / "case.mlir"
    code, _, err = run(
        tmp_path / "net.onnx", "--load", wrong, "--oracle", "numeric", "-p", "optimize,wrong", "-o", target
    )
    assert code == 0, err
    text = target.read_text()
    assert ops_of(text) == ["relu"] and "-p 'wrong'" in text
    assert again(text, tmp_path / "again.mlir")[0] == 6


@pytest.mark.parametrize("oracle", ["ort", "native"])
def test_peers(oracle, tmp_path, monkeypatch):
    real = ReluOp.evaluate
    monkeypatch.setattr(ReluOp, "evaluate", lambda self, ctx, *arrays: [np.abs(a) for a in real(self, ctx, *arrays)] and
                        [np.abs(arrays[0])])  # fmt: skip
    source = tmp_path / "in.mlir"
    source.write_text(PEERS)
    code, text, err = run(source, "--oracle", oracle, "-p", "cse")
    assert code == 0, err
    assert ops_of(text) == ["relu"] and f"--oracle {oracle} shows it" in text and "-p" not in text.splitlines()[0]
    monkeypatch.undo()
    code, _, err = run(source, "--oracle", oracle)
    assert code == 1 and "there is nothing to reduce" in err


def test_a_script(tmp_path):
    script = tmp_path / "interesting.sh"
    script.write_text('#!/bin/sh\ntest "$SARDONYX_PIPELINE" = cse && grep -q "sx.sub" "$1"\n')
    os.chmod(script, 0o755)
    source = tmp_path / "in.mlir"
    source.write_text(TEXT.replace("OP", "relu"))
    code, text, err = run(source, "--oracle", script, "-p", "cse", "--quiet")
    assert code == 0 and err == ""
    assert ops_of(text) == ["constant", "sub"]


def test_wrong_command_lines(tmp_path):
    source = tmp_path / "in.mlir"
    source.write_text(TEXT.replace("OP", "relu"))
    assert run(source)[0] == 2
    code, _, err = run(source, "--oracle", "crsh")
    assert code == 2 and "did you mean 'crash'?" in err
    code, _, err = run(source, "--oracle", "crash", "-p", "cze")
    assert code == 2 and err.startswith("sardonyx-reduce: error: there is no pass 'cze'")
    code, _, err = run(source, "--oracle", "crash", "-p", "cse", "-o", source / "no" / "where.mlir")
    assert code == 2 and "cannot be written" in err
    code, _, err = run(source, "--oracle", "numeric", "-p", "cse", "--inputs", "0")
    assert code == 2 and "'0' is no number from 1" in err
    code, _, err = run(source, "--oracle", "crash", "-p", "cse")
    assert code == 1 and "there is nothing to reduce" in err
    assert run("--help")[0] == 0


def test_ddmin_finds_what_cannot_be_left_out():
    tried: list[list[int]] = []

    def holds(kept: list[int]) -> bool:
        tried.append(kept)
        return {3, 17, 40} <= set(kept)

    assert ddmin(range(64), holds) == [3, 17, 40]
    assert len(tried) < 100
    assert ddmin([1, 2, 3], lambda kept: True) == []
    assert ddmin([1], lambda kept: bool(kept)) == [1]


def test_the_console_script_is_declared():
    import tomllib

    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["scripts"]["sardonyx-reduce"] == "sardonyx.tools.reduce:main"
