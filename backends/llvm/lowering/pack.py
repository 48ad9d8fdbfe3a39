"""Panels of columns: how the contraction's tiles read B in one sweep (see `packed` of `kernel.contract`)."""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, number_of
from sardonyx.backends.llvm.lowering.plan import Plan
from sardonyx.backends.llvm.lowering.region import SHORTEST_TILED
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.kernel.ops import TurnOp

Array = np.ndarray[Any, Any]

CACHE_LINE = 64
HUGE = 2 << 20


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> Array:
    """Memory that begins at a cache line, so that no vector load of a panel touches two; large blocks ask for huge
    pages."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if size >= HUGE:
        block = mmap.mmap(-1, size + HUGE)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            block.madvise(mmap.MADV_HUGEPAGE)
        raw, step = np.frombuffer(block, np.uint8), HUGE
    else:
        raw, step = np.empty(size + CACHE_LINE, np.uint8), CACHE_LINE
    start = -raw.ctypes.data % step
    return raw[start : start + size].view(dtype).reshape(shape)


def pack_columns(array: Array, width: int) -> Array:
    """Matrices [count, k, n] as panels [count, ceil(n / width), k, width], the last of each filled up with zeros."""
    count, k, n = array.shape
    panels, whole = -(-n // width), n // width
    packed = aligned_empty((count, panels, k, width), array.dtype)
    packed[:, :whole] = array[:, :, : whole * width].reshape(count, k, whole, width).swapaxes(1, 2)
    if whole < panels:
        packed[:, whole, :, n - whole * width :] = 0
        packed[:, whole, :, : n - whole * width] = array[:, :, whole * width :]
    return packed


@dataclass(frozen=True)
class Source:
    """Matrices in a plan-level buffer: the strides from matrix to matrix, row to row and column to column, and the
    dtype that the panels have. Matrices along several axes: `matrix` is the stride along the innermost, and `outer` has
    for each axis around it, outermost first, how many matrices one step stands for, and the stride."""

    buffer: SSAValue
    matrix: IndexLike
    row: IndexLike
    column: IndexLike
    to: DType
    outer: tuple[tuple[IndexLike, IndexLike], ...] = ()


def pack_matrices(
    plan: Plan,
    source: Source,
    dtype: DType,
    shape: tuple[Dim, Dim, Dim],
    width: int,
    only_if: SSAValue | None = None,
) -> SSAValue:
    """Launch the kernel that lays `shape` = (count, k, n) matrices out in panels; returns their buffer.

    The panels of a matrix take `panel_block(plan, k, n, width)` elements. Where the condition `only_if` is false,
    nothing is done.
    """
    count, k, n = shape
    panels = plan.body.index_math("ceildiv", plan.dim(n), width)
    target = plan.workspace(source.to, [plan.dim(count), plan.product(panels, width), plan.dim(k)])
    kernel = plan.kernel("pack")
    read, write = kernel.read_buffer(source.buffer), kernel.write_buffer(target)
    across, depth, columns = kernel.outer(panels), kernel.extent(k), kernel.extent(n)
    steps = [kernel.outer(plan.body.index(s)) for s in (source.matrix, source.row, source.column)]
    beyond = [tuple(kernel.outer(plan.body.index(v)) for v in pair) for pair in source.outer]
    number = plan.product(plan.dim(count), panels)
    total = kernel.outer(number if only_if is None else plan.body.select(only_if, number, plan.body.index(0)))
    zero = kernel.const(source.to, 0)
    turned = number_of(steps[1]) == 1 and number_of(steps[2]) != 1 and dtype == source.to and width >= SHORTEST_TILED

    def panel(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        matrix = b.index(0) if count.static_value == 1 else b.index_math("floordiv", number, across)
        column = b.times(b.minus(number, b.times(matrix, across)), width)
        start = b.times(column, steps[2])
        inner_matrix: IndexLike = matrix
        for count_inside, stride in beyond:
            at = b.index_math("floordiv", inner_matrix, count_inside)
            start = b.plus(start, b.times(at, stride))
            inner_matrix = b.minus(inner_matrix, b.times(at, count_inside))
        start = b.plus(start, b.times(inner_matrix, steps[0]))
        to = b.times(b.times(number, depth), width)
        left = b.minus(columns, column)

        def nothing(inner: Body, to: IndexLike, have: IndexLike) -> None:
            inner.loop(width, lambda one, j, _: one.store(zero, write, one.plus(to, j)), lower=have)

        def turn(inner: Body, have: IndexLike) -> None:
            """B's columns are runs of the source."""
            strides = steps[2], inner.index(width)
            inner.block.add_op(TurnOp(read, write, [inner.index(have), depth], [start, inner.index(to)], strides))
            if not isinstance(have, int):
                inner.loop(depth, lambda at, kk, _: nothing(at, at.plus(to, at.times(kk, width)), have))

        def rows(inner: Body, have: IndexLike) -> None:
            if turned:
                turn(inner, have)
                return

            def row(at: Body, kk: SSAValue, _: Sequence[SSAValue]) -> None:
                here, there = at.plus(start, at.times(kk, steps[1])), at.plus(to, at.times(kk, width))

                def element(one: Body, j: SSAValue, _: Sequence[SSAValue]) -> None:
                    value = one.load(read, one.plus(here, one.times(j, steps[2])))
                    one.store(one.convert(value, dtype, source.to), write, one.plus(there, j))

                at.loop(have, element, vector=True)
                if not isinstance(have, int):
                    nothing(at, there, have)

            inner.loop(depth, row)

        if n.static_value is not None and n.static_value % width == 0:
            rows(b, width)
        else:
            b.when(b.compare("sge", left, width), lambda t: rows(t, width), lambda t: rows(t, left))

    kernel.loop(total, panel, parallel=True)
    kernel.launch()
    return target


def panel_block(plan: Plan, k: Dim, n: Dim, width: int) -> SSAValue:
    """The elements of one matrix in panels."""
    return plan.product(plan.product(plan.body.index_math("ceildiv", plan.dim(n), width), width), plan.dim(k))
