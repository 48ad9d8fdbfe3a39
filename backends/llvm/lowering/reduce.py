"""Lowerings of the reductions over axes that are known, or that only the run brings.

A reduction is a fold over rows (see `rows.py`) and a last step. Axes of the run make a kernel of all axes twice, as a
kept and as a reduced one; the plan gives each of a pair its extent or 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.backends.llvm.lowering.rows import Accumulator, Row, RowAxis, Rows, max_of, min_of, rows_of, sum_of
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, float64, int64, uint64
from sardonyx.dialects.sx import reduce


@dataclass(frozen=True)
class Fold:
    """One row's reduction, inside the loops over the rows.

    `load` gives an element in `dtype`, the compute dtype of the operand, at an offset; `count` is a row's length.
    """

    row: Row
    dtype: DType
    load: Callable[[Body, IndexLike], SSAValue]
    count: SSAValue

    def over(
        self,
        b: Body,
        accumulator: Accumulator,
        term: Callable[[Body, SSAValue], SSAValue] = lambda b, x: x,
    ) -> SSAValue:
        """The accumulation of `term(b, element)` over the row."""
        return self.row.fold(b, [accumulator], lambda inner, at, _: [term(inner, self.load(inner, at))])[0]


Reduction = Callable[[Body, Fold], tuple[SSAValue, DType]]
"""The reduction of one row: a value, and the dtype in which it is; the caller rounds it to the result's dtype."""

REDUCTIONS: dict[type[reduce.ReduceOp], Reduction] = {}


def _reduces(op: type[reduce.ReduceOp]) -> Callable[[Reduction], Reduction]:
    def register(reduction: Reduction) -> Reduction:
        REDUCTIONS[op] = reduction
        lowers(op)(_reduce)
        return reduction

    return register


def _reduce(plan: Plan, op: Any) -> None:
    axes = op.known_axes()
    dims, dtype = dims_of(op.data), dtype_of(op.data)
    if axes is None:
        sizes = _bind_run_axes(plan, op, dims)
        kernel = plan.kernel(op.name.removeprefix("sx."))
        rows, count = _all_axes_twice(plan, kernel, dims, sizes)
    else:
        kernel = plan.kernel(op.name.removeprefix("sx."))
        (rows, _), count = rows_of(plan, kernel, dims, axes), plan.count([dims[a] for a in axes])
    source, target = kernel.read(op.data), kernel.write(op.output)
    length, wide = kernel.outer(count), compute_dtype(dtype)
    reduction = REDUCTIONS[type(op)]

    def load(b: Body, offset: IndexLike) -> SSAValue:
        return b.convert(b.load(source, offset), dtype, wide)

    def point(b: Body, row: Row) -> None:
        value, found = reduction(b, Fold(row, wide, load, length))
        b.store(b.convert(value, found, dtype), target, row.flat)

    rows.each(kernel, point)
    kernel.launch()


# ---- axes that the run brings


def _bind_run_axes(plan: Plan, op: Any, dims: Sequence[Dim]) -> list[tuple[SSAValue, SSAValue]]:
    """Read and check the axes; bind the result's extents.

    Returns per axis of the operand its extent as a kept and as a reduced one, of which at least one is 1.
    """
    body, rank = plan.body, len(dims)
    length = plan.dim(dims_of(op.axes)[0])
    axes = plan.buffer(op.axes)

    def count(b: Body, place: SSAValue, seen: Sequence[SSAValue]) -> list[SSAValue]:
        given = b.to_index(b.load(axes, place), int64)
        axis = b.select(b.compare("slt", given, 0), b.plus(given, rank), given)
        inside = b.both(b.compare("sge", axis, 0), b.compare("slt", axis, rank))
        b.require(inside, plan.failure(f"axis {{0}} is out of range for rank {rank}"), given)
        found = [b.select(b.compare("eq", axis, k), b.index(1), b.index(0)) for k in range(rank)]
        return [b.plus(total, hit) for total, hit in zip(seen, found, strict=True)]

    times = body.loop(length, count, [("add", body.index(0)) for _ in range(rank)])
    stated = [body.compare("ne", t, 0) for t in times]
    for axis, often in enumerate(times):
        body.require(body.compare("sle", often, 1), plan.failure(f"the axes repeat {axis}"))
    if not op.attr("noop_with_empty_axes"):
        nothing = body.compare("eq", length, 0)
        stated = [body.either(nothing, s) for s in stated]
    extents = [plan.dim(d) for d in dims]
    one = body.index(1)
    kept = [body.select(s, one, e) for s, e in zip(stated, extents, strict=True)]
    inside = [body.select(s, e, one) for s, e in zip(stated, extents, strict=True)]
    result = dims_of(op.output)
    if op.attr("keepdims"):
        for d, extent in zip(result, kept, strict=True):
            plan.bind(d, extent, "an extent of the result")
        return list(zip(kept, inside, strict=True))
    # The j-th extent of the result is that of the axis before which exactly j axes were kept.
    order: list[IndexLike] = []
    total: IndexLike = 0
    for s in stated:
        order.append(total)
        total = body.plus(total, body.select(s, body.index(0), one))
    wanted = body.compare("eq", total, len(result))
    body.require(wanted, plan.failure(f"{{0}} axes are left, expected {len(result)}"), total)
    for j, d in enumerate(result):
        extent: SSAValue = one
        for s, place, e in zip(stated, order, kept, strict=True):
            here = body.both(body.negate(s), body.compare("eq", place, j))
            extent = body.select(here, e, extent)
        plan.bind(d, extent, "an extent of the result")
    return list(zip(kept, inside, strict=True))


def _all_axes_twice(
    plan: Plan, kernel: Kernel, dims: Sequence[Dim], sizes: Sequence[tuple[SSAValue, SSAValue]]
) -> tuple[Rows, SSAValue]:
    """Rows by axes of the run, and a row's length."""
    strides = [kernel.outer(plan.count(dims[axis + 1 :])) for axis in range(len(dims))]
    kept = [RowAxis(kernel.outer(k), stride) for (k, _), stride in zip(sizes, strides, strict=True)]
    inside = [RowAxis(kernel.outer(r), stride) for (_, r), stride in zip(sizes, strides, strict=True)]
    count: IndexLike = 1
    for _, extent in sizes:
        count = plan.product(count, extent)
    return Rows(kept, inside, across=False), plan.body.index(count)


# ---- the reductions


def _square(dtype: DType) -> Callable[[Body, SSAValue], SSAValue]:
    return lambda b, x: b.arithmetic("mul", dtype, x, x)


def _magnitude(dtype: DType) -> Callable[[Body, SSAValue], SSAValue]:
    return lambda b, x: x if dtype.kind == "u" else b.math("abs", x.type, x)


@_reduces(reduce.ReduceSumOp)
def _sum(b: Body, fold: Fold) -> tuple[SSAValue, DType]:
    return fold.over(b, sum_of(b, fold.dtype)), fold.dtype


@_reduces(reduce.ReduceMeanOp)
def _mean(b: Body, fold: Fold) -> tuple[SSAValue, DType]:
    """Integers: their 64-bit sum divided towards zero."""
    own = fold.dtype
    dtype = own if own.is_float else uint64 if own.kind == "u" else int64
    total = fold.over(b, sum_of(b, dtype), lambda c, x: c.convert(x, own, dtype))
    return b.arithmetic("div", dtype, total, b.from_index(fold.count, dtype)), dtype


@_reduces(reduce.ReduceMaxOp)
def _max(b: Body, fold: Fold) -> tuple[SSAValue, DType]:
    return fold.over(b, max_of(b, fold.dtype)), fold.dtype


@_reduces(reduce.ReduceMinOp)
def _min(b: Body, fold: Fold) -> tuple[SSAValue, DType]:
    return fold.over(b, min_of(b, fold.dtype)), fold.dtype


@_reduces(reduce.ReduceProdOp)
def _prod(b: Body, fold: Fold) -> tuple[SSAValue, DType]:
    """Floats in float64, where no product of float32 before the last one overflows."""
    own = fold.dtype
    dtype = float64 if own.is_float else own
    start = Accumulator("mul", dtype, b.const(dtype, 1))
    return fold.over(b, start, lambda c, x: c.convert(x, own, dtype)), dtype


@_reduces(reduce.ReduceL1Op)
def _l1(b: Body, fold: Fold) -> tuple[SSAValue, DType]:
    return fold.over(b, sum_of(b, fold.dtype), _magnitude(fold.dtype)), fold.dtype


@_reduces(reduce.ReduceL2Op)
def _l2(b: Body, fold: Fold) -> tuple[SSAValue, DType]:
    """In float64: squares of float32 and of integers neither overflow there nor vanish."""
    square = _square(float64)
    total = fold.over(b, sum_of(b, float64), lambda c, x: square(c, c.convert(x, fold.dtype, float64)))
    return b.math("sqrt", total.type, total), float64


@_reduces(reduce.ReduceSumSquareOp)
def _sum_square(b: Body, fold: Fold) -> tuple[SSAValue, DType]:
    return fold.over(b, sum_of(b, fold.dtype), _square(fold.dtype)), fold.dtype


@_reduces(reduce.ReduceLogSumOp)
def _log_sum(b: Body, fold: Fold) -> tuple[SSAValue, DType]:
    """In float64: the logarithm of a sum near 1 shows every error of the sum."""
    total = fold.over(b, sum_of(b, float64), lambda c, x: c.convert(x, fold.dtype, float64))
    return b.math("log", total.type, total), float64


@_reduces(reduce.ReduceLogSumExpOp)
def _log_sum_exp(b: Body, fold: Fold) -> tuple[SSAValue, DType]:
    """log(sum(exp(x - shift))) + shift; the shift is the maximum where that is finite."""
    dtype = fold.dtype
    greatest = fold.over(b, max_of(b, dtype))
    size = b.math("abs", greatest.type, greatest)
    finite = b.compare_scalars("lt", dtype, size, b.const(dtype, float("inf")))
    shift = b.select(finite, greatest, b.const(dtype, 0))
    total = fold.over(b, sum_of(b, dtype), lambda c, x: c.math("exp", x.type, c.arithmetic("sub", dtype, x, shift)))
    return b.arithmetic("add", dtype, b.math("log", total.type, total), shift), dtype
