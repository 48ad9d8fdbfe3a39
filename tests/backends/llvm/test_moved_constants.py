"""Moves of constants are done when the graph is compiled: no kernel moves a weight at each run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.backends.llvm.lowering.graph import lower_graph
from sardonyx.backends.llvm.prepare import prepare
from sardonyx.backends.llvm.runtime import jit
from sardonyx.dialects.kernel.ops import KernelFuncOp
from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx.constant import ConstantOp

W = np.random.default_rng(0).standard_normal((50, 8), np.float32)


def graph_of(function: Any) -> Any:
    """The graph of a function whose second input becomes the constant `W`."""
    graph = sx.trace(function).graph
    argument = main_function(graph.module).body.block.args[1]
    constant = ConstantOp.dense(W)
    main_function(graph.module).body.block.insert_op_before(constant, next(iter(argument.owner.ops)))
    argument.replace_all_uses_with(constant.output)
    return graph


def kernels(function: Any) -> list[str]:
    """The names of the kernels of a function's graph, without their numbers."""
    lowered = lower_graph(prepare(graph_of(function).module), jit.native_target())
    names = [op.sym_name.data for op in lowered.module.walk() if isinstance(op, KernelFuncOp)]
    return [name.rstrip("0123456789").rstrip("_") for name in names]


@sx.signature("x: f32[3,8], w: f32[50,8]")
def head(x: Any, w: Any) -> Any:
    return sx.matmul(x, sx.transpose(w, (1, 0)))


@sx.signature("x: f32[3,8], w: f32[50,8]")
def chain(x: Any, w: Any) -> Any:
    return x + sx.reshape(sx.concat([w[:1], w[1:2]], axis=0), (1, 16))[:, 8:]


@sx.signature("x: f32[3,8], w: f32[50,8]")
def returned(x: Any, w: Any) -> Any:
    return x, sx.transpose(w, (1, 0))


@sx.signature("x: f32[n,8], w: f32[50,8]")
def tied(x: Any, w: Any) -> Any:
    return sx.matmul(x + w[2], sx.transpose(w, (1, 0)))


@pytest.mark.parametrize(("function", "left"), [(head, "matmul"), (chain, "add"), (tied, "matmul")])
def test_nothing_is_left_to_move(function: Any, left: str) -> None:
    names = kernels(function)
    assert left in names and not {"transpose", "concat", "slice", "pack"} & set(names)


def test_what_the_graph_returns_is_computed_by_it() -> None:
    assert "transpose" in kernels(returned)


@pytest.mark.parametrize("function", [head, chain, returned, tied], ids=lambda f: f.__name__)
def test_values(function: Any) -> None:
    graph = graph_of(function)
    graph.finalize()
    x = np.random.default_rng(1).standard_normal((3, 8), np.float32)
    for got, expected in zip(graph.run([x, W]), graph.evaluate([x, W]), strict=True):
        np.testing.assert_allclose(np.asarray(got), np.asarray(expected), rtol=1e-5, atol=1e-5)
