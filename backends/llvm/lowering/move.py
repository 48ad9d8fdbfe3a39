"""Lowerings that move elements without changing them: transpose, reshape and its kin, concat, split, slice, expand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue, Use

from sardonyx.backends.llvm.lowering.builder import IndexLike
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.backends.llvm.lowering.region import axis, broadcast_axes, copy_region, row_major
from sardonyx.backends.llvm.lowering.strided import Strided, give
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.sx.concat import ConcatOp, SplitOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.matmul import MatMulOp
from sardonyx.dialects.sx.reshape import ExpandOp, FlattenOp, ReshapeOp, SqueezeOp, UnsqueezeOp
from sardonyx.dialects.sx.slice import SliceOp
from sardonyx.dialects.sx.transpose import TransposeOp
from sardonyx.dialects.values import contents, known_ints

MANY = (1 << 62) - 1
"""Stands for an unbounded end of a slice."""


@lowers(TransposeOp)
def _transpose(plan: Plan, op: TransposeOp) -> None:
    dims = dims_of(op.data)
    perm = op.attr("perm")
    perm = tuple(reversed(range(len(dims)))) if perm is None else perm
    there = plan.strided.get(op.data)
    if there is not None:
        give(plan, op.output, there.permuted(perm))
        return
    moving = [p for p in perm if dims[p].static_value != 1]
    if moving == sorted(moving):  # only extents of 1 move: the elements stay where they are
        plan.alias(op.output, op.data)
        return
    source, out = row_major(dims), [dims[p] for p in perm]
    if _feeds_products(op, perm):
        give(plan, op.output, Strided(plan.buffer(op.data), tuple(source[p] for p in perm)))
        return
    axes = [axis(d, source[p], t) for d, p, t in zip(out, perm, row_major(out), strict=True)]
    copy_region(plan, "transpose", axes, plan.buffer(op.data), plan.new_buffer(op.output))


def _feeds_products(op: TransposeOp, perm: Sequence[int]) -> bool:
    """Whether only products of matrices of which none is constant read the result, along whose rows or, on the right,
    columns the elements lie next to each other: they read it where it is (`matmul_strided.py`)."""

    def reads(use: Use) -> bool:
        product = use.operation
        if not isinstance(product, MatMulOp) or dtype_of(op.data).bits < 32:
            return False
        other = product.operands[1 - use.index]
        if isinstance(other.owner, ConstantOp) or len(dims_of(other)) != len(perm):
            return False
        return len(perm) - 1 in (perm[-1:] if use.index == 0 else perm[-2:])

    return len(perm) > 2 and all(reads(use) for use in op.output.uses)


# ---- the same elements under another shape


@lowers(FlattenOp)
def _flatten(plan: Plan, op: Any) -> None:
    plan.alias(op.output, op.data)


@lowers(ReshapeOp)
def _reshape(plan: Plan, op: ReshapeOp) -> None:
    source, target = dims_of(op.data), dims_of(op.output)
    if not all(plan.is_bound(d) for d in target):
        for d, extent in zip(target, _reshape_extents(plan, op, source, len(target)), strict=True):
            plan.bind(d, extent, "an extent of the reshaped tensor")
    have, want = Dim.product(source), Dim.product(target)
    if equal(have, want) is not Proof.PROVED:
        body, count, total = plan.body, plan.count(source), plan.count(target)
        failure = plan.failure("{0} elements cannot be reshaped to {1}")
        body.require(body.compare("eq", count, total), failure, count, total)
    plan.alias(op.output, op.data)


def _reshape_extents(plan: Plan, op: ReshapeOp, source: Sequence[Dim], length: int) -> list[SSAValue]:
    """The result's extents from the entries that the run brings: 0 copies, -1 takes what is left."""
    body = plan.body
    entries = plan.read_ints(op.shape, length)
    known = contents(op.shape) or (None,) * length
    out: list[SSAValue] = []
    rest: IndexLike = 1
    open_at: SSAValue | None = None
    for position, (entry, fact) in enumerate(zip(entries, known, strict=True)):
        copies = not op.attr("allowzero") and (fact is None or fact.static_value == 0) and position < len(source)
        value = entry
        if copies:
            value = body.select(body.compare("eq", entry, 0), plan.dim(source[position]), entry)
        is_open = body.compare("eq", value, -1)
        rest = plan.product(rest, body.select(is_open, body.index(1), value))
        open_at = is_open if open_at is None else body.either(open_at, is_open)
        out.append(value)
    left = body.index_math("floordiv", plan.count(source), rest)
    return [body.select(body.compare("eq", v, -1), left, v) for v in out]


@lowers(SqueezeOp, UnsqueezeOp)
def _squeeze(plan: Plan, op: Any) -> None:
    dims, target = dims_of(op.data), dims_of(op.output)
    if known_ints(op.axes) is None and op.axes is not None:
        _bind_moved_axes(plan, op, dims, target)
    elif isinstance(op, SqueezeOp) and op.axes is not None:
        for a in known_ints(op.axes) or ():
            plan.require_equal(dims[a % len(dims)], Dim.of(1), "a squeezed axis has {0} elements, not {1}")
    plan.alias(op.output, op.data)


def _bind_moved_axes(plan: Plan, op: Any, dims: Sequence[Dim], target: Sequence[Dim]) -> None:
    """Squeeze and Unsqueeze by axes that the run brings: bind the result's extents."""
    body = plan.body
    squeeze = isinstance(op, SqueezeOp)
    more, less = (dims, target) if squeeze else (target, dims)
    rank = len(more)
    raw = plan.read_ints(op.axes, rank - len(less))
    axes = [body.select(body.compare("slt", a, 0), body.plus(a, rank), a) for a in raw]
    for a, given in zip(axes, raw, strict=True):
        ok = body.both(body.compare("sge", a, 0), body.compare("slt", a, rank))
        body.require(ok, plan.failure(f"axis {{0}} is out of range for rank {rank}"), given)
    for i, a in enumerate(axes):
        for other in axes[:i]:
            body.require(body.compare("ne", a, other), plan.failure("the axes repeat {0}"), a)
    chosen = []
    for position in range(rank):
        hit = body.compare("eq", axes[0], position) if axes else body.compare("eq", 0, 1)
        for a in axes[1:]:
            hit = body.either(hit, body.compare("eq", a, position))
        chosen.append(hit)
    # The j-th axis of the smaller shape is the one before which exactly j axes were kept.
    kept: IndexLike = 0
    order: list[IndexLike] = []
    for hit in chosen:
        order.append(kept)
        kept = body.plus(kept, body.select(hit, body.index(0), body.index(1)))
    if squeeze:
        extents = [plan.dim(d) for d in dims]
        for hit, extent in zip(chosen, extents, strict=True):
            ok = body.either(body.negate(hit), body.compare("eq", extent, 1))
            body.require(ok, plan.failure("a squeezed axis has {0} elements, not 1"), extent)
        for j, d in enumerate(target):
            value: IndexLike = 1
            for hit, extent, place in zip(chosen, extents, order, strict=True):
                here = body.both(body.negate(hit), body.compare("eq", place, j))
                value = body.select(here, extent, body.index(value))
            plan.bind(d, value, "an extent of the squeezed tensor")
        return
    for position, d in enumerate(target):
        value = 1
        for j, extent in enumerate(plan.dim(e) for e in dims):
            here = body.both(body.negate(chosen[position]), body.compare("eq", order[position], j))
            value = body.select(here, extent, body.index(value))
        plan.bind(d, value, "an extent of the unsqueezed tensor")


@lowers(ExpandOp)
def _expand(plan: Plan, op: ExpandOp) -> None:
    body = plan.body
    dims, target = dims_of(op.data), dims_of(op.output)
    pad = len(target) - len(dims)
    length = dims_of(op.shape)[0].static_value or 0
    if not all(plan.is_bound(d) for d in target):
        wanted = plan.read_ints(op.shape, length)
        shift = len(target) - length
        for position, d in enumerate(target):
            own = plan.dim(dims[position - pad]) if position >= pad else body.index(1)
            want = wanted[position - shift] if position >= shift else body.index(1)
            one = body.compare("eq", own, 1)
            ok = body.either(one, body.either(body.compare("eq", want, 1), body.compare("eq", want, own)))
            body.require(ok, plan.failure("an extent of {0} cannot be expanded to {1}"), own, want)
            plan.bind(d, body.select(one, want, own), "an extent of the expanded tensor")
    axes = broadcast_axes(plan, dims, target)
    copy_region(plan, "expand", axes, plan.buffer(op.data), plan.new_buffer(op.output))


# ---- parts


@lowers(ConcatOp)
def _concat(plan: Plan, op: ConcatOp) -> None:
    out = dims_of(op.output)
    at = op.attr("axis") % len(out)
    for position, d in enumerate(out):
        if position != at:
            for part in op.inputs:
                plan.require_equal(
                    dims_of(part)[position], d, f"concat: extents {{0}} and {{1}} differ on axis {position}"
                )
    target, strides = plan.new_buffer(op.output), row_major(out)
    offset = Dim.of(0)
    for part in op.inputs:
        dims = dims_of(part)
        if dims[at].static_value != 0:
            shape = [d if position != at else dims[at] for position, d in enumerate(out)]
            axes = [axis(d, s, t) for d, s, t in zip(shape, row_major(shape), strides, strict=True)]
            copy_region(plan, "concat", axes, plan.buffer(part), target, 0, offset * strides[at])
        offset = offset + dims[at]


@lowers(SplitOp)
def _split(plan: Plan, op: SplitOp) -> None:
    body = plan.body
    dims = dims_of(op.data)
    at = op.attr("axis") % len(dims)
    sizes = [dims_of(o)[at] for o in op.outputs]
    if op.split is not None and known_ints(op.split) is None:
        read = plan.read_ints(op.split, len(sizes))
        for d, size in zip(sizes, read, strict=True):
            plan.bind(d, size, "the size of a part")
    for size in sizes:
        if not size.is_static and (size.bounds[0] is None or size.bounds[0] < 0):
            index = plan.dim(size)
            body.require(
                body.compare("sge", index, 0), plan.failure("a part of the split would have {0} elements"), index
            )
    plan.require_equal(Dim.sum(sizes), dims[at], "the parts add up to {0} elements, the axis has {1}")
    strides, source = row_major(dims), plan.buffer(op.data)
    offset = Dim.of(0)
    for out, size in zip(op.outputs, sizes, strict=True):
        shape = [d if position != at else size for position, d in enumerate(dims)]
        axes = [axis(d, s, t) for d, s, t in zip(shape, strides, row_major(shape), strict=True)]
        copy_region(plan, "split", axes, source, plan.new_buffer(out), offset * strides[at])
        offset = offset + size


@lowers(SliceOp)
def _slice(plan: Plan, op: SliceOp) -> None:
    body = plan.body
    dims, out = dims_of(op.data), dims_of(op.output)
    length = dims_of(op.starts)[0].static_value
    if length is None:
        raise op.fail("the number of slices is not known before the run")
    rank = len(dims)
    axes = list(range(length)) if op.axes is None else known_ints(op.axes)
    starts, ends = plan.read_ints(op.starts, length), plan.read_ints(op.ends, length)
    steps: list[SSAValue] = [body.index(1)] * length if op.steps is None else plan.read_ints(op.steps, length)
    first: list[IndexLike] = [0] * rank
    step: list[IndexLike] = [1] * rank
    size: list[IndexLike] = [plan.dim(d) for d in dims]
    full: list[SSAValue] = [plan.dim(d) for d in dims]
    if axes is not None:
        for k, a in enumerate(axes):
            a %= rank
            first[a], size[a] = _positions(plan, full[a], starts[k], ends[k], steps[k])
            step[a] = steps[k]
    else:
        given = plan.read_ints(op.axes, length)  # pyright: ignore[reportArgumentType]
        for k, raw in enumerate(given):
            where = body.select(body.compare("slt", raw, 0), body.plus(raw, rank), raw)
            ok = body.both(body.compare("sge", where, 0), body.compare("slt", where, rank))
            body.require(ok, plan.failure(f"axis {{0}} is out of range for rank {rank}"), raw)
            for a in range(rank):
                here = body.compare("eq", where, a)
                begin, count = _positions(plan, full[a], starts[k], ends[k], steps[k])
                first[a] = body.select(here, begin, body.index(first[a]))
                size[a] = body.select(here, count, body.index(size[a]))
                step[a] = body.select(here, steps[k], body.index(step[a]))
    for d, count in zip(out, size, strict=True):
        if not plan.is_bound(d):
            plan.bind(d, count, "an extent of the slice")
    source, offset = row_major(dims), body.index(0)
    region = []
    for a, (d, t) in enumerate(zip(out, row_major(out), strict=True)):
        offset = body.plus(offset, body.times(first[a], plan.dim(source[a])))
        region.append(axis(d, _stride(plan, step[a], source[a]), t))
    copy_region(plan, "slice", region, plan.buffer(op.data), plan.new_buffer(op.output), offset)


def _stride(plan: Plan, step: IndexLike, stride: Dim) -> Dim | SSAValue:
    from sardonyx.backends.llvm.lowering.builder import number_of

    number = number_of(step)
    return stride * number if number is not None else plan.body.times(step, plan.dim(stride))


def _positions(plan: Plan, size: SSAValue, start: SSAValue, end: SSAValue, step: SSAValue) -> tuple[SSAValue, SSAValue]:
    """`slice_positions` of the dialect, at run time: the first position and how many there are."""
    from sardonyx.backends.llvm.lowering.builder import number_of

    body = plan.body
    number = number_of(step)
    if number is None:
        body.require(body.compare("ne", step, 0), plan.failure("a step of the slice is 0"))

    def counted(bound: SSAValue) -> SSAValue:
        bound = body.index_math("min", body.index_math("max", bound, -MANY), MANY)
        if number_of(bound) is not None and (number_of(bound) or 0) >= 0:
            return bound
        return body.select(body.compare("slt", bound, 0), body.plus(bound, size), bound)

    begin, stop = counted(start), counted(end)
    top = body.minus(size, 1)

    def forward() -> tuple[SSAValue, SSAValue]:
        low = body.index_math("min", body.index_math("max", begin, 0), size)
        high = body.index_math("min", body.index_math("max", stop, 0), size)
        return low, body.index_math("max", 0, body.index_math("ceildiv", body.minus(high, low), step))

    def backward() -> tuple[SSAValue, SSAValue]:
        high = body.index_math("max", 0, body.index_math("min", body.index_math("max", begin, 0), top))
        low = body.index_math("min", body.index_math("max", stop, -1), top)
        span = body.index_math("ceildiv", body.minus(high, low), body.minus(0, step))
        empty = body.compare("eq", size, 0)
        return high, body.select(empty, body.index(0), body.index_math("max", 0, span))

    if number is not None:
        return forward() if number > 0 else backward()
    positive = body.compare("sgt", step, 0)
    ahead, back = forward(), backward()
    return body.select(positive, ahead[0], back[0]), body.select(positive, ahead[1], back[1])
