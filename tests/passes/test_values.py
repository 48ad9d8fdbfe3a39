"""Every lit file of the passes by value: each function gives the same before and after; passes are idempotent, honest
about change, and keep locations. The files themselves hold the cases."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ir_text import Array, parse_module, random_arguments
from xdsl.dialects import func
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Operation

from sardonyx.dialects import locations
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.errors import ExecutionError
from sardonyx.passes import pipeline, registry
from sardonyx.passes.base import PassRun, RewriteEvent
from sardonyx.passes.pipeline import DEFAULT_PIPELINE, PassManager, snapshot

LIT = Path(__file__).parents[1] / "lit" / "passes"
FILES = sorted(p for p in LIT.glob("*.mlir") if p.name != "regions.mlir")
PIPELINES = ["infer-types", "simplify", "fold-constants", "cse", "compose-transposes", "remove-dead-nodes",
             "fold-affine", "decompose-batch-norm", "channels-last", "join-reshapes", "join-slices",
             "dequantized-products", DEFAULT_PIPELINE]  # fmt: skip
MADE_TO_HELP = {"sx.constant", "sx.transpose", "sx.squeeze", "sx.unsqueeze", "sx.gather", "sx.shape", "sx.reshape",
                "sx.split", "sx.conv_integer", "sx.matmul_integer", "native.factor",
                "native.matmul_weights"}  # fmt: skip
"""Ops that passes make and that the user did not write."""
INSTEAD = {
    "sx.sequence_at",
    "sx.split_to_sequence",
    "sx.sequence_construct",
    "sx.concat_from_sequence",
    "sx.sequence_length",
    "sx.optional",
    "sx.optional_has_element",
    "sx.cast_like",
    "sx.batch_norm",
    "sx.global_average_pool",
    "sx.matmul",
    "sx.add",
    "sx.gemm",
}
"""Ops that a pass states by others."""


def functions_of(path: Path) -> dict[str, str]:
    """The text of each function of a file."""
    text = "\n".join(line for line in path.read_text().splitlines() if not line.startswith("//"))
    found = re.findall(r"^func\.func @(\w+)(.*?)^}", text, re.MULTILINE | re.DOTALL)
    return {name: f"func.func @{name}{rest}}}" for name, rest in found}


CASES = [pytest.param(text, id=f"{path.stem}:{name}") for path in FILES for name, text in functions_of(path).items()]


def function_of(module: ModuleOp) -> func.FuncOp:
    return next(op for op in module.body.block.ops if isinstance(op, func.FuncOp))


def number_lines(module: ModuleOp) -> dict[int, str]:
    """Give each op a line of its own; returns the op's name of each line."""
    names: dict[int, str] = {}
    for line, op in enumerate(module.walk(), 1):
        op.location = locations.file_location("case.py", line)
        names[line] = op.name
    return names


def lines_of(op: Operation) -> list[int]:
    return [leaf.line.data for leaf in locations.leaves(op.location) if isinstance(leaf, FileLineColLoc)]


def run_values(module: ModuleOp, arguments: list[Array]) -> list[Array]:
    return evaluate_function(function_of(module), arguments)


@pytest.mark.parametrize("text", CASES)
def test_passes_keep_values_locations_and_promises(text):
    original = parse_module(text)
    inputs: list[list[Array]] = []
    wanted: list[list[Array]] = []
    for seed, bindings in enumerate(({}, {"n": 1, "t": 2})):
        arguments = random_arguments(function_of(original), bindings, seed)
        with contextlib.suppress(ExecutionError):  # no shape for these arguments
            wanted.append(run_values(original, arguments))
            inputs.append(arguments)
    for pipe in PIPELINES:
        module = original.clone()
        names = number_lines(module)
        before = snapshot(module)
        report = PassManager(pipe, verify_each=True, verify_rewrites=True).run(module)
        assert report.changed == (snapshot(module) != before), f"{pipe} says changed={report.changed}"
        for arguments, want in zip(inputs, wanted, strict=True):
            check_values(want, run_values(module, arguments), report)
        check_locations(module, names, pipe)
        if "," not in pipe:
            again = PassManager(pipe, verify_each=True).run(module)
            assert not again.changed, f"{pipe} is not idempotent: {again.statistics()}"


def check_values(want: list[Array], got: list[Array], report: pipeline.PipelineReport) -> None:
    assert len(want) == len(got)
    for a, b in zip(want, got, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        assert report.promise is not None
        if a.dtype.kind in "iub":
            np.testing.assert_array_equal(a, b)
            continue
        x, y = a.astype(np.float64), b.astype(np.float64)
        if report.promise.is_exact:
            np.testing.assert_array_equal(x, y)
            np.testing.assert_array_equal(np.signbit(x[~np.isnan(x)]), np.signbit(y[~np.isnan(y)]))
        else:
            # The terms of the lit files' sums are about 1; what cancels leaves a few eps of them.
            np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-6)


def check_locations(module: ModuleOp, names: dict[int, str], pipe: str) -> None:
    """An op comes from lines that are the user's, and one of a kind that the user wrote from a line with that op."""
    for op in module.walk():
        if not isinstance(op, SxOp):
            continue
        lines = lines_of(op)
        assert lines, f"{pipe}: {op.name} has lost its location"
        assert len(lines) <= locations.MAX_FUSED
        origins = {names[line] for line in lines}
        assert op.name in origins or op.name in MADE_TO_HELP or origins <= INSTEAD, (pipe, op.name, origins)


@pytest.mark.parametrize("name", [p.stem for p in FILES])
def test_fuel_stops_a_pass_half_way_with_valid_ir(name):
    """With a listener that allows a few rewrites, each pass leaves a module of the same values."""

    class Fuel:
        def __init__(self, amount: int) -> None:
            self.amount = amount
            self.used = 0

        def on_match(self, pass_name: str, pattern: str, op: Operation) -> bool:
            return self.used < self.amount

        def on_rewrite(self, event: RewriteEvent) -> None:
            self.used += 1

    for text in list(functions_of(LIT / f"{name}.mlir").values())[::3]:
        original = parse_module(text)
        arguments = random_arguments(function_of(original), {}, 3)
        try:
            want = run_values(original, arguments)
        except ExecutionError:
            continue
        for amount in (0, 1, 2):
            module = original.clone()
            before = snapshot(module)
            pass_: Any = registry.create("simplify" if name == "control-flow" else name)
            run = pass_.execute(module, PassRun(listener=Fuel(amount), verify=True))
            module.verify()
            if amount == 0:
                assert snapshot(module) == before and not run.changed
            for a, b in zip(want, run_values(module, arguments), strict=True):
                np.testing.assert_allclose(a.astype(np.float64), b.astype(np.float64), rtol=1e-6, atol=1e-7)
