"""Lowerings of the reductions over axes that are known, or that only the run brings.

A reduction is a row program (see `row_program.py`): folds and a last step. Axes of the run make a kernel of all axes
twice, as a
kept and as a reduced one; the plan gives each of a pair its extent or 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.backends.llvm.lowering.row_fusion import RowSpace, joins_rows
from sardonyx.backends.llvm.lowering.row_program import Node, Program
from sardonyx.backends.llvm.lowering.rows import Accumulator, RowAxis, Rows, max_of, min_of, sum_of
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import float64, int64, uint64
from sardonyx.dialects.sx import reduce

Reduction = Callable[[Program, Node], Node]
"""The reduction of a row's elements, given in their compute dtype; the result may be in a wider one."""

REDUCTIONS: dict[type[reduce.ReduceOp], Reduction] = {}


def _reduces(op: type[reduce.ReduceOp]) -> Callable[[Reduction], Reduction]:
    def register(reduction: Reduction) -> Reduction:
        REDUCTIONS[op] = reduction
        lowers(op)(_reduce)
        joins_rows(op, space=_space)(_join)
        return reduction

    return register


def _space(op: Any) -> RowSpace | None:
    axes = op.known_axes()
    return None if axes is None else RowSpace(dims_of(op.data), tuple(axes))


def _join(program: Program, op: Any) -> None:
    result = REDUCTIONS[type(op)](program, program.value(op.data))
    program.nodes[op.output] = program.rounded(result, dtype_of(op.output))


def _reduce(plan: Plan, op: Any) -> None:
    axes = op.known_axes()
    dims, name = dims_of(op.data), op.name.removeprefix("sx.")
    over = None
    if axes is None:
        sizes = _bind_run_axes(plan, op, dims)
        over = lambda kernel: _all_axes_twice(plan, kernel, dims, sizes)  # noqa: E731
    program = Program(plan, dims, range(len(dims)) if axes is None else axes)
    _join(program, op)
    program.emit(name, [op.output], over)


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


def _square(p: Program, x: Node) -> Node:
    return p.map(x.dtype, lambda b, v: b.arithmetic("mul", x.dtype, v, v), x)


def _magnitude(p: Program, x: Node) -> Node:
    return x if x.dtype.kind == "u" else p.map(x.dtype, lambda b, v: b.math("abs", v.type, v), x)


@_reduces(reduce.ReduceSumOp)
def _sum(p: Program, x: Node) -> Node:
    return p.fold(x.dtype, sum_of, x)


@_reduces(reduce.ReduceMeanOp)
def _mean(p: Program, x: Node) -> Node:
    """Integers: their 64-bit sum divided towards zero."""
    dtype = x.dtype if x.dtype.is_float else uint64 if x.dtype.kind == "u" else int64
    total = p.fold(dtype, sum_of, p.convert(x, dtype))
    return p.map(dtype, lambda b, s, n: b.arithmetic("div", dtype, s, n), total, p.count(dtype))


@_reduces(reduce.ReduceMaxOp)
def _max(p: Program, x: Node) -> Node:
    return p.fold(x.dtype, max_of, x)


@_reduces(reduce.ReduceMinOp)
def _min(p: Program, x: Node) -> Node:
    return p.fold(x.dtype, min_of, x)


@_reduces(reduce.ReduceProdOp)
def _prod(p: Program, x: Node) -> Node:
    """Floats in float64, where no product of float32 before the last one overflows."""
    dtype = float64 if x.dtype.is_float else x.dtype
    return p.fold(dtype, lambda b, d: Accumulator("mul", d, b.const(d, 1)), p.convert(x, dtype))


@_reduces(reduce.ReduceL1Op)
def _l1(p: Program, x: Node) -> Node:
    return p.fold(x.dtype, sum_of, _magnitude(p, x))


@_reduces(reduce.ReduceL2Op)
def _l2(p: Program, x: Node) -> Node:
    """In float64: squares of float32 and of integers neither overflow there nor vanish."""
    total = p.fold(float64, sum_of, _square(p, p.convert(x, float64)))
    return p.map(float64, lambda b, s: b.math("sqrt", s.type, s), total)


@_reduces(reduce.ReduceSumSquareOp)
def _sum_square(p: Program, x: Node) -> Node:
    return p.fold(x.dtype, sum_of, _square(p, x))


@_reduces(reduce.ReduceLogSumOp)
def _log_sum(p: Program, x: Node) -> Node:
    """In float64: the logarithm of a sum near 1 shows every error of the sum."""
    total = p.fold(float64, sum_of, p.convert(x, float64))
    return p.map(float64, lambda b, s: b.math("log", s.type, s), total)


@_reduces(reduce.ReduceLogSumExpOp)
def _log_sum_exp(p: Program, x: Node) -> Node:
    """log(sum(exp(x - shift))) + shift; the shift is the maximum where that is finite."""
    dtype = x.dtype

    def finite(b: Body, greatest: SSAValue) -> SSAValue:
        size = b.math("abs", greatest.type, greatest)
        return b.select(b.compare_scalars("lt", dtype, size, b.const(dtype, float("inf"))), greatest, b.const(dtype, 0))

    shift = p.map(dtype, finite, p.fold(dtype, max_of, x))
    powers = p.map(dtype, lambda b, v, m: b.math("exp", v.type, b.arithmetic("sub", dtype, v, m)), x, shift)
    total = p.fold(dtype, sum_of, powers)
    return p.map(dtype, lambda b, s, m: b.arithmetic("add", dtype, b.math("log", s.type, s), m), total, shift)
