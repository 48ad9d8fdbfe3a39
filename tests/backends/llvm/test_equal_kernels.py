"""Kernels that are the same are emitted once, told from their ops."""

from __future__ import annotations

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.backends.llvm.build import emit_module
from sardonyx.backends.llvm.codegen import entry
from sardonyx.backends.llvm.codegen.equal import form_of
from sardonyx.backends.llvm.lowering.graph import lower_graph
from sardonyx.backends.llvm.lowering.plan import LoweredGraph
from sardonyx.dialects.kernel.ops import KernelFuncOp


def lowered(fn, *specs: sx.TensorSpec) -> LoweredGraph:
    return lower_graph(sx.trace(fn, specs).graph.module)


def kernels(graph: LoweredGraph) -> list[KernelFuncOp]:
    return [op for op in graph.module.body.block.ops if isinstance(op, KernelFuncOp)]


def vector(name: str, dtype: sx.DType = sx.float32) -> sx.TensorSpec:
    return sx.TensorSpec(name, dtype, (f"len_{name}",))


def test_equal_kernels_are_emitted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = lowered(
        lambda a, b, c, d: (sx.exp(a) + 1, sx.exp(b) + 1, sx.exp(c) + 1, sx.exp(d) + 2),
        vector("a"), vector("b"), vector("c", sx.float64), vector("d"),
    )  # fmt: skip
    assert len(kernels(graph)) == 4 and len({form_of(kernel) for kernel in kernels(graph)}) == 3
    text, sizes = emit_module(graph)
    assert len(sizes.functions) == 3
    monkeypatch.setattr(entry, "form_of", lambda kernel: kernel)  # no two are told to be equal by their ops
    by_text, same = emit_module(graph)
    assert str(text) == str(by_text) and sizes == same


def test_zeros_of_different_sign_make_different_kernels() -> None:
    def fn(a: sx.Tensor, b: sx.Tensor) -> tuple[sx.Tensor, sx.Tensor]:
        return a * 0.0, b * -0.0

    traced = sx.trace(fn, (vector("a"), vector("b"))).graph
    found = kernels(lower_graph(traced.module))
    assert len(found) == 2 and form_of(found[0]) != form_of(found[1])
    traced.finalize()
    x = np.array([1.5, -2.5], np.float32)
    positive, negative = (np.asarray(y) for y in traced.run([x, x]))
    assert np.signbit(positive).tolist() == [False, True] and np.signbit(negative).tolist() == [True, False]
