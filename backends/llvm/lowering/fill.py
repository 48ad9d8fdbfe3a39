"""Lowerings that make tensors out of extents and scalars: shape, constant_of_shape, range, tile, blocks, trilu."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body
from sardonyx.backends.llvm.lowering.elementwise import nest
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.backends.llvm.lowering.region import axis, copy_region, fill_buffer, row_major
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, float64, int64
from sardonyx.dialects.sx.fill import ConstantOfShapeOp, RangeOp
from sardonyx.dialects.sx.shape import ShapeOp, SizeOp
from sardonyx.dialects.sx.space import DepthToSpaceOp, SpaceToDepthOp
from sardonyx.dialects.sx.tile import TileOp
from sardonyx.dialects.sx.trilu import TriluOp
from sardonyx.dialects.values import known_ints


@lowers(ShapeOp)
def _shape(plan: Plan, op: ShapeOp) -> None:
    dims = dims_of(op.data)
    first, last, _ = slice(op.attr("start"), op.attr("end")).indices(len(dims))
    target = plan.new_buffer(op.output)
    for position, d in enumerate(dims[first:last]):
        plan.body.store(plan.body.from_index(plan.dim(d), int64), target, position)


@lowers(SizeOp)
def _size(plan: Plan, op: SizeOp) -> None:
    count = plan.count(dims_of(op.data))
    plan.body.store(plan.body.from_index(count, int64), plan.new_buffer(op.output), 0)


@lowers(ConstantOfShapeOp)
def _constant_of_shape(plan: Plan, op: ConstantOfShapeOp) -> None:
    out = dims_of(op.output)
    if not all(plan.is_bound(d) for d in out):
        for d, extent in zip(out, plan.read_ints(op.shape, len(out)), strict=True):
            plan.bind(d, extent, "an extent of the tensor")
    fill_buffer(plan, dtype_of(op.output), plan.new_buffer(op.output), plan.count(out), op.element().item())


@lowers(RangeOp)
def _range(plan: Plan, op: RangeOp) -> None:
    dtype = dtype_of(op.output)
    (length,) = dims_of(op.output)
    if not plan.is_bound(length):
        plan.bind(length, _range_length(plan, op, dtype), "the length of the range")
    kernel = plan.kernel("range")
    start, delta = kernel.read(op.start), kernel.read(op.delta)
    target = kernel.write(op.output)
    wide = float64 if dtype.is_float else int64
    first = kernel.convert(kernel.load(start, 0), dtype, wide)
    step = kernel.convert(kernel.load(delta, 0), dtype, wide)

    def point(b: Body, indices: Sequence[SSAValue], flat: Any) -> None:
        at = b.from_index(b.index(flat), wide)
        value = b.arithmetic("add", wide, first, b.arithmetic("mul", wide, at, step))
        b.store(b.convert(value, wide, dtype), target, flat)

    nest(kernel, [kernel.extent(length)], point)
    kernel.launch()


def _range_length(plan: Plan, op: RangeOp, dtype: DType) -> SSAValue:
    """`max(ceil((limit - start) / delta), 0)`; refuses a delta of 0."""
    body = plan.body
    if dtype.is_integer:
        start, limit, delta = (plan.read_ints(v, 1)[0] for v in (op.start, op.limit, op.delta))
        body.require(body.compare("ne", delta, 0), plan.failure("delta of the range is 0"))
        return body.index_math("max", 0, body.index_math("ceildiv", body.minus(limit, start), delta))
    numbers = [body.convert(body.load(plan.buffer(v), 0), dtype, float64) for v in (op.start, op.limit, op.delta)]
    zero = body.const(float64, 0.0)
    usable = body.compare_scalars("ne", float64, numbers[2], zero)
    body.require(usable, plan.failure("delta of the range is 0"))
    steps = body.arithmetic("div", float64, body.arithmetic("sub", float64, numbers[1], numbers[0]), numbers[2])
    whole = body.math("ceil", float64.ir, steps)
    finite = body.compare_scalars("eq", float64, whole, whole)
    body.require(finite, plan.failure("the range has no length"))
    return body.index_math("max", 0, body.to_index(body.math("fptosi_sat", IntegerType(64), whole), int64))


@lowers(TileOp)
def _tile(plan: Plan, op: TileOp) -> None:
    body = plan.body
    dims, out = dims_of(op.data), dims_of(op.output)
    repeats = plan.read_ints(op.repeats, len(dims))
    if known_ints(op.repeats) is None:
        for d, extent, count in zip(out, dims, repeats, strict=True):
            body.require(body.compare("sge", count, 0), plan.failure("an entry of repeats is {0}"), count)
            plan.bind(d, plan.product(plan.dim(extent), count), "an extent of the tiled tensor")
    region = []
    for d, count, source, target in zip(dims, repeats, row_major(dims), row_major(out), strict=True):
        region.append(axis(count, 0, d * target))
        region.append(axis(d, source, target))
    copy_region(plan, "tile", region, plan.buffer(op.data), plan.new_buffer(op.output))


@lowers(DepthToSpaceOp, SpaceToDepthOp)
def _blocks(plan: Plan, op: Any) -> None:
    n, c, h, w = dims_of(op.data)
    block = op.attr("blocksize")
    to_space = isinstance(op, DepthToSpaceOp)
    for extent, parts in [(c, block * block)] if to_space else [(h, block), (w, block)]:
        if extent.static_value is None:
            index = plan.dim(extent)
            fits = plan.body.compare("eq", plan.body.index_math("floormod", index, parts), 0)
            plan.body.require(fits, plan.failure(f"an extent of {{0}} is no multiple of {parts}"), index)
    if to_space:
        channels = c // (block * block)
        leading = op.attr("mode") == "DCR"
        shape = [n, block, block, channels, h, w] if leading else [n, channels, block, block, h, w]
        order = (0, 3, 4, 1, 5, 2) if leading else (0, 1, 4, 2, 5, 3)
    else:
        shape = [n, c, h // block, block, w // block, block]
        order = (0, 3, 5, 1, 2, 4) if op.attr("mode") == "DCR" else (0, 1, 3, 5, 2, 4)
    view = [Dim.of(s) for s in shape]
    source, moved = row_major(view), [view[p] for p in order]
    region = [axis(d, source[p], t) for d, p, t in zip(moved, order, row_major(moved), strict=True)]
    copy_region(plan, "blocks", region, plan.buffer(op.data), plan.new_buffer(op.output))


@lowers(TriluOp)
def _trilu(plan: Plan, op: TriluOp) -> None:
    dims = dims_of(op.data)
    dtype = dtype_of(op.data)
    kernel = plan.kernel("trilu")
    source, target = kernel.read(op.data), kernel.write(op.output)
    rows, columns = plan.dim(dims[-2]), plan.dim(dims[-1])
    body = plan.body
    given = body.index(0) if op.k is None else plan.read_ints(op.k, 1)[0]
    # Beyond the matrix every diagonal is alike; clamping keeps the sums small.
    low = body.minus(-1, rows)
    offset = body.index_math("min", body.index_math("max", given, low), body.plus(columns, 1))
    diagonal = kernel.outer(offset)
    zero = kernel.const(dtype, 0)
    relation = "sge" if op.attr("upper") else "sle"
    bounds = [kernel.outer(plan.count(dims[:-2])), kernel.outer(rows), kernel.outer(columns)]

    def point(b: Body, indices: Sequence[SSAValue], flat: Any) -> None:
        _, row, column = indices
        kept = b.compare(relation, b.minus(column, row), diagonal)
        b.store(b.select(kept, b.load(source, flat), zero), target, flat)

    nest(kernel, bounds, point)
    kernel.launch()
