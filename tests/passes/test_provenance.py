"""Locations are kept through every registered pass: no op of the result is without the user's line, and what a pass
made bears its name. A pass that no lit file makes fire fails here, too."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from ir_text import parse_module
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Operation

from sardonyx.dialects import locations
from sardonyx.dialects.base import SxOp
from sardonyx.errors import SardonyxError
from sardonyx.passes import provenance, registry
from sardonyx.passes.pipeline import PassManager

LIT = Path(__file__).parents[1] / "lit"
FUNCTION = re.compile(r"^func\.func @(\w+)(.*?)^}", re.MULTILINE | re.DOTALL)
OPTIONS = {
    "legalize-for-opset": "{version=13}",
    "decompose-operators": "{names=Gelu}",
    "specialize-dims": '{dims="n=4"}',
    "extract": '{outputs="%0"}',
}
PASSES = sorted(name for name, entry in registry.own_entries().items() if entry.origin == "sardonyx")
WITHIN = {"channels-last": {"compose-transposes"}, "decompose-operators": {"legalize-for-opset"}}
"""Passes that other passes run."""
MORE = {
    "explicit-state": """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = sx.state_read {state = "s"} : () -> tensor<4xf32>
  %1 = sx.sub %0, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  sx.state_write %1 {state = "s"} : (tensor<4xf32>) -> ()
  func.return %1 : tensor<4xf32>
}""",
    "decompose-operators": """func.func @main(%x: tensor<2x4xf32>, %s: tensor<4xf32>) -> tensor<2x4xf32> {
  %0 = sx.rms_norm %x, %s : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %1 = sx.gelu %0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %1 : tensor<2x4xf32>
}""",
}
"""For passes that have no lit file of their own."""
NEEDS_NO_NAME = {"sx.constant"}
"""Ops of which several passes may make the same one."""


@cache
def corpus() -> list[tuple[str, ModuleOp]]:
    """The functions of the lit files of passes, with a line of its own for each op."""
    found: list[tuple[str, ModuleOp]] = []
    for path in sorted([*LIT.glob("passes/*.mlir"), *LIT.glob("onnx/*.mlir")]):
        text = "\n".join(line for line in path.read_text().splitlines() if not line.lstrip().startswith("//"))
        for name, rest in FUNCTION.findall(text):
            try:
                module = parse_module(f"func.func @{name}{rest}}}")
            except Exception:  # noqa: BLE001, S112 -- functions that only parse among their neighbours
                continue
            found.append((f"{path.stem}:{name}", number_lines(module)))
    return found


def number_lines(module: ModuleOp) -> ModuleOp:
    for line, op in enumerate(module.walk(), 1):
        op.location = locations.file_location("case.py", line)
    return module


def lines_of(op: Operation) -> set[int]:
    return {leaf.line.data for leaf in locations.leaves(op.location) if isinstance(leaf, FileLineColLoc)}


@pytest.mark.parametrize("name", PASSES)
def test_locations_are_kept_and_what_is_made_bears_the_name_of_the_pass(name):
    fired = 0
    cases = corpus() if name not in MORE else [*corpus(), ("more", number_lines(parse_module(MORE[name])))]
    for where, original in cases:
        module = original.clone()
        known = {line for op in module.walk() for line in lines_of(op)}
        before = {op for op in module.walk() if isinstance(op, SxOp)}
        try:
            changed = PassManager(name + OPTIONS.get(name, "")).run(module).changed
        except SardonyxError:
            continue  # what the pass refuses
        fired += changed
        for op in module.walk():
            if not isinstance(op, SxOp):
                continue
            assert lines_of(op), f"{where}: {op.name} has no line"
            assert lines_of(op) <= known
            if op not in before and op.name not in NEEDS_NO_NAME:
                made_by, _ = provenance.peel(op.location)
                assert any(m.partition(":")[0] in {name, *WITHIN.get(name, ())} for m in made_by), (
                    f"{where}: {op.name} of {made_by}"
                )
    if not fired and not (LIT / "passes" / f"{name}.mlir").exists() and name not in OPTIONS and name not in MORE:
        pytest.skip("it has no lit file yet")
    assert fired, "no function makes the pass fire"
