"""Lowering of pad: one map kernel that finds, axis by axis, which source element stands at a position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, number_of
from sardonyx.backends.llvm.lowering.elementwise import nest
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.backends.llvm.lowering.region import axis, copy_region, fill_buffer, row_major
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.sx.pad import PadOp
from sardonyx.dialects.values import known_ints


@lowers(PadOp)
def _pad(plan: Plan, op: PadOp) -> None:
    dims, out = dims_of(op.data), dims_of(op.output)
    before, after = _amounts(plan, op, len(dims))
    body = plan.body
    for position, d in enumerate(out):
        total = body.plus(body.plus(plan.dim(dims[position]), before[position]), after[position])
        if not plan.is_bound(d):
            plan.bind(d, total, f"the padded extent of axis {position}")
        elif not d.is_static and (d.bounds[0] is None or d.bounds[0] < 0):
            failure = plan.failure(f"the pads leave {{0}} elements along axis {position}")
            body.require(body.compare("sge", total, 0), failure, total)
    if op.attr("mode") == "constant":
        _constant(plan, op, before, after)
    else:
        _from_data(plan, op, before, after)


def _amounts(plan: Plan, op: PadOp, rank: int) -> tuple[list[IndexLike], list[IndexLike]]:
    """The pads before and after every axis, as indices of the plan (numbers where they are known)."""
    body = plan.body
    length = dims_of(op.pads)[0].static_value
    if length is None:
        raise op.fail("the number of pads is not known before the run")
    count = length // 2
    given = plan.read_ints(op.pads, length)
    axes = list(range(rank)) if op.axes is None else known_ints(op.axes)
    before: list[IndexLike] = [0] * rank
    after: list[IndexLike] = [0] * rank
    if axes is not None:
        for k, a in enumerate(axes):
            before[a % rank], after[a % rank] = given[k], given[count + k]
        return before, after
    for k, raw in enumerate(plan.read_ints(op.axes, count)):  # pyright: ignore[reportArgumentType]
        where = body.select(body.compare("slt", raw, 0), body.plus(raw, rank), raw)
        ok = body.both(body.compare("sge", where, 0), body.compare("slt", where, rank))
        body.require(ok, plan.failure(f"axis {{0}} is out of range for rank {rank}"), raw)
        for a in range(rank):
            here = body.compare("eq", where, a)
            before[a] = body.select(here, given[k], body.index(before[a]))
            after[a] = body.select(here, given[count + k], body.index(after[a]))
    return before, after


def _constant(plan: Plan, op: PadOp, before: Sequence[IndexLike], after: Sequence[IndexLike]) -> None:
    """Fill, then copy what the operand keeps into the interior."""
    body, dtype = plan.body, dtype_of(op.data)
    dims, out = dims_of(op.data), dims_of(op.output)
    target = plan.new_buffer(op.output)
    value = 0 if op.constant_value is None else plan.buffer(op.constant_value)
    fill_buffer(plan, dtype, target, plan.count(out), value)
    read: IndexLike = 0
    write: IndexLike = 0
    region = []
    for a, (source, stride) in enumerate(zip(row_major(dims), row_major(out), strict=True)):
        cut, end = body.index_math("min", before[a], 0), body.index_math("min", after[a], 0)
        read = body.minus(read, body.times(cut, plan.dim(source)))
        write = body.plus(write, body.times(body.index_math("max", before[a], 0), plan.dim(stride)))
        low, high = number_of(cut), number_of(end)
        kept = dims[a] if (low, high) == (0, 0) else _kept(plan, dims[a], cut, end)
        region.append(axis(kept, source, stride))
    copy_region(plan, "pad", region, plan.buffer(op.data), target, body.index(read), body.index(write))


def _kept(plan: Plan, extent: Any, cut: IndexLike, end: IndexLike) -> SSAValue:
    """How many elements of an axis remain after cropping."""
    body = plan.body
    return body.index_math("max", 0, body.plus(body.plus(plan.dim(extent), cut), end))


def _from_data(plan: Plan, op: PadOp, before: Sequence[IndexLike], after: Sequence[IndexLike]) -> None:
    """Edge, reflect and wrap: every position computes where its element comes from."""
    body, mode = plan.body, op.attr("mode")
    dims, out = dims_of(op.data), dims_of(op.output)
    kernel = plan.kernel(f"pad_{mode}")
    source, target = kernel.read(op.data), kernel.write(op.output)
    strides = [kernel.extent(s) for s in row_major(dims)]
    bounds, first, kept, shift = [], [], [], []
    for a, d in enumerate(out):
        cut, end = body.index_math("min", before[a], 0), body.index_math("min", after[a], 0)
        size, total = _kept(plan, dims[a], cut, end), plan.dim(d)
        some = body.either(body.compare("sgt", size, 0), body.compare("eq", total, 0))
        body.require(some, plan.failure(f"mode '{mode}' has nothing to take from axis {a}, which is empty"))
        bounds.append(kernel.outer(total))
        first.append(kernel.outer(body.minus(0, cut)))
        kept.append(kernel.outer(size))
        shift.append(kernel.outer(body.index_math("max", before[a], 0)))

    def point(b: Body, indices: Sequence[SSAValue], flat: IndexLike) -> None:
        offset: IndexLike = 0
        for a, index in enumerate(indices):
            at = _position(b, mode, b.minus(index, shift[a]), kept[a])
            offset = b.plus(offset, b.times(b.plus(at, first[a]), strides[a]))
        b.store(b.load(source, offset), target, flat)

    nest(kernel, bounds, point)
    kernel.launch()


def _position(b: Body | Kernel, mode: str, at: SSAValue, size: SSAValue) -> SSAValue:
    """Which of `size` kept elements stands at a position that may lie outside."""
    if mode == "edge":
        return b.index_math("max", b.index_math("min", at, b.minus(size, 1)), 0)
    if mode == "wrap":
        return b.index_math("floormod", at, size)
    last = b.minus(size, 1)
    period = b.index_math("max", b.times(last, 2), 1)
    folded = b.index_math("floormod", at, period)
    return b.index_math("min", folded, b.index_math("max", b.minus(b.times(last, 2), folded), 0))
