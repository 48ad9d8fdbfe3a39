"""Modules from text, and what the passes' tests share: running pipelines, evaluating before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.module import main_function
from sardonyx.passes.context import make_context
from sardonyx.passes.pipeline import PassManager, PipelineReport

Array = np.ndarray[Any, Any]


def parse_module(text: str) -> ModuleOp:
    """The verified module of a text."""
    module = Parser(make_context(), text).parse_module()
    module.verify()
    return module


def run_passes(module: ModuleOp | str, pipeline: str, **options: Any) -> tuple[ModuleOp, PipelineReport]:
    """Run a pipeline on a module or a text; the module is verified after each rewrite."""
    if isinstance(module, str):
        module = parse_module(module)
    report = PassManager(pipeline, verify_each=True, verify_rewrites=True, keep_declines=True, **options).run(module)
    module.verify()
    return module, report


def evaluate(module: ModuleOp, inputs: Sequence[Array]) -> list[Array]:
    return evaluate_function(main_function(module), inputs)


TYPICAL = 3
"""What a symbol of a dim is in `random_arguments`, where it isn't bound."""


def random_arguments(function: FuncOp, bindings: Mapping[str, int] | None = None, seed: int = 0) -> list[Array]:
    """Arrays for a function's arguments: integers are 0 or 1, floats hold a NaN, infinities and zeros of both signs."""
    rng = np.random.default_rng(seed)
    out: list[Array] = []
    for argument in function.body.block.args:
        shape = []
        for dim in dims_of(argument):
            named = {symbol: (bindings or {}).get(symbol, TYPICAL) for symbol in dim.symbols()}
            shape.append(dim.evaluate(named))
        dtype = dtype_of(argument)
        if dtype.kind == "b":
            out.append(rng.random(shape) < 0.5)
        elif dtype.is_integer:
            out.append(rng.integers(0, 2, shape).astype(dtype.numpy))
        else:
            array = rng.normal(size=shape).astype(dtype.numpy)
            special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], dtype.numpy)
            if array.size > 2 * special.size:
                array.reshape(-1)[: special.size] = special
            out.append(array)
    return out
