"""Lowerings of one_hot, eye_like and reverse_sequence."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.elementwise import nest
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import bool_, int64
from sardonyx.dialects.sx.one_hot import EyeLikeOp, OneHotOp
from sardonyx.dialects.sx.reverse_sequence import ReverseSequenceOp


@lowers(OneHotOp)
def _one_hot(plan: Plan, op: OneHotOp) -> None:
    body, out = plan.body, dims_of(op.output)
    axis, source = op.attr("axis") % len(out), dtype_of(op.indices)
    for d in dims_of(op.depth):
        plan.require_equal(d, Dim.of(1), "depth has {0} elements, not {1}")
    plan.require_equal(dims_of(op.values)[0], Dim.of(2), "values has {0} elements, not {1}")
    if not plan.is_bound(out[axis]):
        dtype = dtype_of(op.depth)
        given = body.load(plan.buffer(op.depth), 0)
        depth = (
            body.to_index(given, dtype) if dtype.is_integer else body.to_index(body.convert(given, dtype, int64), int64)
        )
        plan.bind(out[axis], depth, "depth")
    kernel = plan.kernel("one_hot")
    indices, values, target = kernel.read(op.indices), kernel.read(op.values), kernel.write(op.output)
    off, on = kernel.load(values, 0), kernel.load(values, 1)
    depth = kernel.extent(out[axis])
    bounds = [kernel.outer(plan.count(out[:axis])), depth, kernel.outer(plan.count(out[axis + 1 :]))]

    def point(b: Body, where: Sequence[SSAValue], flat: IndexLike) -> None:
        index = b.load(indices, b.plus(b.times(where[0], bounds[2]), where[2]))
        index = (
            b.to_index(index, source) if source.kind in "iub" else b.to_index(b.convert(index, source, int64), int64)
        )
        hit = b.compare("eq", index, where[1])
        if source.kind != "u":  # an index that has a sign may count from the end
            hit = b.either(hit, b.compare("eq", index, b.minus(where[1], depth)))
        b.store(b.select(hit, on, off), target, flat)

    nest(kernel, bounds, point)
    kernel.launch()


@lowers(EyeLikeOp)
def _eye_like(plan: Plan, op: EyeLikeOp) -> None:
    dtype = dtype_of(op.output)
    kernel = plan.kernel("eye_like")
    target = kernel.write(op.output)
    bounds = kernel.extents(dims_of(op.output))
    # Beyond the matrix every diagonal is alike; clamping keeps the sum inside of an index.
    above = kernel.index_math("min", op.attr("k"), kernel.plus(bounds[1], 1))
    above = kernel.index_math("max", above, kernel.minus(-1, bounds[0]))

    def point(b: Body, where: Sequence[SSAValue], flat: IndexLike) -> None:
        hit = b.compare("eq", b.plus(where[0], above), where[1])
        b.store(b.convert(hit, bool_, dtype), target, flat)

    nest(kernel, bounds, point)
    kernel.launch()


@lowers(ReverseSequenceOp)
def _reverse_sequence(plan: Plan, op: ReverseSequenceOp) -> None:
    dims, batch, time = dims_of(op.input), op.attr("batch_axis"), op.attr("time_axis")
    plan.require_equal(dims_of(op.sequence_lens)[0], dims[batch], "there are {0} lengths for {1} sequences")
    check = plan.kernel("check_lengths")
    lengths, longest = check.read(op.sequence_lens), check.extent(dims[time])
    failure = plan.failure("a sequence has length {0}, the time axis {1}")

    def one(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        length = b.to_index(b.load(lengths, i), int64)
        b.require(b.both(b.compare("sge", length, 0), b.compare("sle", length, longest)), failure, length, longest)

    check.loop(check.extent(dims[batch]), one)
    check.launch()
    kernel = plan.kernel("reverse_sequence")
    data, lengths, target = kernel.read(op.input), kernel.read(op.sequence_lens), kernel.write(op.output)
    bounds: list[IndexLike] = [*kernel.extents(dims[:2]), kernel.outer(plan.count(dims[2:]))]

    def point(b: Body, where: Sequence[SSAValue], flat: IndexLike) -> None:
        length, t = b.to_index(b.load(lengths, where[batch]), int64), where[time]
        place = list(where)
        place[time] = b.select(b.compare("slt", t, length), b.minus(b.minus(length, 1), t), t)
        row = b.plus(b.times(place[0], bounds[1]), place[1])
        b.store(b.load(data, b.plus(b.times(row, bounds[2]), place[2])), target, flat)

    nest(kernel, bounds, point)
    kernel.launch()
