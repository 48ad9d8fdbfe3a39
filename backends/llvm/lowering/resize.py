"""Lowering of resize: tables of places and weights by axis, and one pass over the data for each axis.

Interpolation goes axis by axis, as in the reference: floats in float32 (float64 in their own), integers in float64.
`nearest` takes all axes at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, number_of
from sardonyx.backends.llvm.lowering.elementwise import nest
from sardonyx.backends.llvm.lowering.number import Number
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.backends.llvm.lowering.resize_table import (
    Stretch,
    Table,
    constant_table,
    is_identity,
    repeats_by,
    run_table,
    together,
)
from sardonyx.dialects.attributes import Shape, dims_of, dtype_of
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import DType, bool_, float32, float64, int64
from sardonyx.dialects.kernel.spread import SpreadOp
from sardonyx.dialects.sx.resample import Sampling
from sardonyx.dialects.sx.resize import ResizeOp, known_floats
from sardonyx.dialects.sx.support import float_attr, normalize_axes
from sardonyx.dialects.values import known_ints

MOST_STATIC_TAPS = 8
"""A table of no more taps is read by code without a loop."""
FEW_BEHIND = 8
"""So few elements behind the places of the last axis are taken together with them."""


@lowers(ResizeOp)
def _resize(plan: Plan, op: ResizeOp) -> None:
    dtype, mode = dtype_of(op.x), op.attr("mode")
    wide = dtype if mode == "nearest" else float32 if dtype.is_float and dtype.bits <= 32 else float64
    tables = _tables(plan, op, wide)
    if not tables:
        plan.copy(op.output, op.x)
        return
    shape = [plan.dim(d) for d in dims_of(op.x)]
    crop = op.attr("coordinate_transformation_mode") == "tf_crop_and_resize"
    last = tables[-1]
    few = Dim.product(dims_of(op.x)[last.axis + 1 :]).static_value
    if last.known is not None and few is not None and 1 < few <= FEW_BEHIND and not crop:
        tables[-1] = together(plan, last, few, wide)
        shape[last.axis :] = [tables[-1].size]
    if mode == "nearest" and not crop:
        _nearest(plan, tables, shape, (dtype, plan.buffer(op.x)), plan.new_buffer(op.output))
        return
    buffer, held = plan.buffer(op.x), dtype
    for number, table in enumerate(tables):
        is_last = number == len(tables) - 1 and not crop
        outer: IndexLike = 1
        inner: IndexLike = 1
        for extent in shape[: table.axis]:
            outer = plan.product(outer, extent)
        for extent in shape[table.axis + 1 :]:
            inner = plan.product(inner, extent)
        shape[table.axis] = table.count
        target = plan.new_buffer(op.output) if is_last else plan.workspace(wide, shape)
        becomes = dtype if is_last else wide
        _pass(plan, table, (outer, inner), (held, buffer), (becomes, target), wide)
        buffer, held = target, becomes
    if crop:
        _extrapolate(plan, op, tables, (held, buffer))


# ---- how each axis is sampled


def _tables(plan: Plan, op: ResizeOp, wide: DType) -> list[Table]:
    """The axes that change, ascending."""
    known = _known_samplings(op)
    if known is not None:
        for a, one in known.items():
            if not plan.is_bound(dims_of(op.output)[a]):  # constants that its type was not inferred from
                plan.bind(dims_of(op.output)[a], one.count, f"the extent of axis {a}")
        return [constant_table(plan, op, a, one, wide) for a, one in known.items() if not is_identity(op, one)]
    return [run_table(plan, op, one, wide) for one in sorted(_stretches(plan, op), key=lambda s: s.axis)]


def _axes(op: ResizeOp) -> list[int]:
    rank, axes = len(dims_of(op.x)), op.attr("axes")
    return list(range(rank)) if axes is None else list(normalize_axes(op, axes, rank, "(C4)"))


def _known_samplings(op: ResizeOp) -> dict[int, Sampling] | None:
    """The reference's samplings, where extents, scales or sizes, and the region are numbers."""
    import numpy as np

    axes, dims = _axes(op), dims_of(op.x)
    scales = None if op.scales is None else known_floats(op.scales)
    sizes = None if op.sizes is None else known_ints(op.sizes)
    crop = op.attr("coordinate_transformation_mode") == "tf_crop_and_resize"
    roi = known_floats(op.roi) if crop else None
    if (scales is None and sizes is None) or (crop and roi is None) or any(not dims[a].is_static for a in axes):
        return None
    shape = [d.static_value if a in axes else 1 for a, d in enumerate(dims)]
    return op.samplings(
        [size or 0 for size in shape],
        None if roi is None else np.array(roi),
        None if scales is None else np.array(scales, np.float32),
        None if sizes is None else np.array(sizes, np.int64),
    )


def _stretches(plan: Plan, op: ResizeOp) -> list[Stretch]:
    body, axes, dims, out = plan.body, _axes(op), dims_of(op.x), dims_of(op.output)
    sizes = [plan.dim(dims[a]) for a in axes]
    operand = op.scales if op.scales is not None else op.sizes
    crop = op.attr("coordinate_transformation_mode") == "tf_crop_and_resize"
    for given, entries in ((operand, len(axes)), (op.roi if crop else None, 2 * len(axes))):
        if given is not None:
            plan.require_equal(dims_of(given)[0], Dim.of(entries), "scales, sizes or roi has {0} entries, not {1}")
    if op.scales is not None:
        counts, scales = _by_scales(plan, op.scales, axes, sizes, out)
    else:
        counts, scales = _by_sizes(plan, op, sizes)
    found: list[Stretch] = []
    for i, (a, size, count) in enumerate(zip(axes, sizes, counts, strict=True)):
        some = body.either(body.compare("sgt", size, 0), body.compare("eq", count, 0))
        body.require(some, plan.failure(f"axis {a} has no element to take"))
        plan.bind(out[a], count, f"the extent of axis {a}")
        roi = None
        if crop and op.roi is not None:
            roi = (plan.buffer(op.roi), dtype_of(op.roi), i, len(axes) + i)
        known = None if op.scales is None else known_floats(op.scales)
        if _stays(op, dims[a], out[a], None if known is None else known[i]):
            continue
        repeats = None if known is None else repeats_by(op, known[i])
        found.append(Stretch(a, size, plan.dim(out[a]), scales[i], roi, repeats))
    return found


def _stays(op: ResizeOp, size: Dim, count: Dim, scale: float | None) -> bool:
    """Whether an axis certainly keeps its elements: it has one scale, and every coordinate is that of its element."""
    if op.attr("coordinate_transformation_mode") == "tf_crop_and_resize" or equal(size, count) is not Proof.PROVED:
        return False
    return scale == 1.0 if op.scales is not None else op.attr("keep_aspect_ratio_policy") == "stretch"


def _by_scales(
    plan: Plan, operand: SSAValue, axes: Sequence[int], sizes: Sequence[SSAValue], out: Shape
) -> tuple[list[SSAValue], list[Number]]:
    body, known = plan.body, known_floats(operand)
    counts: list[SSAValue] = []
    scales: list[Number] = []
    for i, (a, size) in enumerate(zip(axes, sizes, strict=True)):
        if known is not None:
            scale = Number.const(body, known[i])
        else:
            scale = Number.load(body, plan.buffer(operand), i, float32, float64)
            positive = scale.gt(0.0) & scale.lt(float("inf"))
            body.require(positive.value, plan.failure(f"the scale of axis {a} is not positive"))
        scales.append(scale)
        counts.append(plan.dim(out[a]) if plan.is_bound(out[a]) and known is not None else _scaled(body, size, scale))
    return counts, scales


def _scaled(body: Body, size: SSAValue, scale: Number) -> SSAValue:
    """`resample.scaled`: exact for small fractions of powers of two, else a product of float32."""
    exact: Number | None = None
    for shift in range(11):
        part = scale * float(1 << shift)
        fits = part.eq(part.floor()) & part.lt(float(1 << 13))
        exact = fits if exact is None else exact | fits
    extent = Number.index(body, size)
    rounded = extent.to(float32) * scale.to(float32)
    product = rounded.to(float64) if exact is None else exact.where(extent.to(float64) * scale, rounded.to(float64))
    return product.floor().to_index().value


def _by_sizes(plan: Plan, op: ResizeOp, sizes: Sequence[SSAValue]) -> tuple[list[SSAValue], list[Number]]:
    body, policy = plan.body, op.attr("keep_aspect_ratio_policy")
    if op.sizes is None:
        raise op.fail("(C2) one of scales and sizes is needed")
    counts = plan.read_ints(op.sizes, len(sizes))
    for count in counts:
        body.require(body.compare("sge", count, 0), plan.failure("a size is {0}"), count)
    pairs = [(Number.index(body, s), Number.index(body, c)) for s, c in zip(sizes, counts, strict=True)]
    one = Number.const(body, 1.0)
    ratios = [c.to(float64) / s.to(float64) for s, c in pairs]
    if policy == "stretch":
        return counts, [s.eq(0).where(one, r) for (s, _), r in zip(pairs, ratios, strict=True)]
    for size in sizes:
        body.require(body.compare("sgt", size, 0), plan.failure("an empty axis keeps no proportions"))
    scale = ratios[0]
    for ratio in ratios[1:]:
        scale = scale.min(ratio) if policy == "not_larger" else scale.max(ratio)
    fitted = [(scale * s.to(float64) + 0.5).floor().to_index().value for s, _ in pairs]
    return fitted, [scale.eq(0.0).where(one, scale)] * len(pairs)


# ---- passes


def _pass(
    plan: Plan,
    table: Table,
    around: tuple[IndexLike, IndexLike],
    source: tuple[DType, SSAValue],
    target: tuple[DType, SSAValue],
    wide: DType,
) -> None:
    """One axis of data [outer, size, inner] becomes [outer, count, inner]."""
    kernel = plan.kernel("resize_axis" if table.weights is not None else "resize_axis_nearest")
    read, write, places = (
        kernel.read_buffer(source[1]),
        kernel.write_buffer(target[1]),
        kernel.read_buffer(table.places),
    )
    weights = None if table.weights is None else kernel.read_buffer(table.weights)
    outer, inner, size, count, taps = (
        Number.index(kernel, kernel.outer(n)) for n in (*around, table.size, table.count, table.taps)
    )
    known = number_of(table.taps)

    def tap(b: Body, t: Number, c: Number, base: Number) -> tuple[Number, Number | None]:
        """Where a neighbour's first element lies, and its weight."""
        entry = t * count + c
        place = Number.load(b, places, entry, int64).to_index()
        return base + place * inner, None if weights is None else Number.load(b, weights, entry, wide)

    def term(b: Body, at: Number, weight: Number | None, so_far: Number | None) -> Number:
        value = Number.load(b, read, at, source[0], wide)
        if weight is None:
            return value
        nothing = weight.eq(0.0)  # what has no weight doesn't count, not even an infinity
        if so_far is None:
            return nothing.where(Number.const(kernel, 0.0, wide), value * weight)
        added = value.fn("fma", weight, so_far) if wide == float32 else so_far + value * weight
        return nothing.where(so_far, added)

    def summed(b: Body, c: Number, base: Number, i: Number | None, found: list[tuple[Number, Number | None]]) -> Number:
        """An element; `found` are its taps where these are few, `i` is its place within `inner`."""
        total: Number | None = None
        for offset, weight in found:
            total = term(b, offset if i is None else offset + i, weight, total)
        if total is not None:
            return total

        def step(at: Body, t: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            offset, weight = tap(at, Number.index(at, t), c, base)
            return [term(at, offset if i is None else offset + i, weight, Number(at, carried[0], wide)).value]

        return Number(b, b.loop(taps.value, step, [("serial", kernel.const(wide, 0))])[0], wide)

    def few(b: Body, c: Number, base: Number) -> list[tuple[Number, Number | None]]:
        if known is None or known > MOST_STATIC_TAPS:
            return []
        return [tap(b, Number.index(kernel, t), c, base) for t in range(known)]

    if number_of(inner.value) == 1:

        def row(b: Body, line: SSAValue, _: Sequence[SSAValue]) -> None:
            base, start = Number.index(b, line) * size, Number.index(b, line) * count

            def cell(v: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
                c = Number.index(v, index)
                summed(v, c, base, None, few(v, c, base)).store(write, start + c, target[0], v)

            b.loop(count.value, cell, vector=True)

        kernel.loop(outer.value, row, parallel=True)
    else:

        def block(b: Body, flat: SSAValue, _: Sequence[SSAValue]) -> None:
            line = Number.index(b, flat)
            base, c, start = line // count * size * inner, line % count, line * inner
            found = few(b, c, base)

            def cell(v: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
                i = Number.index(v, index)
                summed(v, c, base, i, found).store(write, start + i, target[0], v)

            b.loop(inner.value, cell, vector=True)

        kernel.loop((outer * count).value, block, parallel=True)
    kernel.launch()


@dataclass
class _Segment:
    """Neighbouring axes that are walked together: a resized axis, or all between two of them."""

    extent: SSAValue
    step: IndexLike
    places: SSAValue | None
    size: SSAValue | None = None
    repeats: int | None = None


def _nearest(
    plan: Plan, tables: Sequence[Table], shape: Sequence[SSAValue], source: tuple[DType, SSAValue], target: SSAValue
) -> None:
    """Every axis at once: the offset of an element is the sum of what its tables say."""
    kernel = plan.kernel("resize_nearest")
    read, write = kernel.read_buffer(source[1]), kernel.write_buffer(target)
    by_axis = {table.axis: table for table in tables}
    segments: list[_Segment] = []
    step: IndexLike = 1
    for a in reversed(range(len(shape))):
        table = by_axis.get(a)
        if table is not None:
            count, size = kernel.outer(table.count), kernel.outer(table.size)
            read_places = kernel.read_buffer(table.places)
            segments.append(_Segment(count, kernel.outer(step), read_places, size, table.repeats))
        elif segments and segments[-1].places is None:
            segments[-1].extent = kernel.times(segments[-1].extent, kernel.outer(shape[a]))
        else:
            segments.append(_Segment(kernel.outer(shape[a]), kernel.outer(step), None))
        step = plan.product(step, shape[a])
    segments.reverse()

    def offset(b: Body, segment: _Segment, index: SSAValue, base: IndexLike) -> SSAValue:
        place = index if segment.places is None else b.to_index(b.load(segment.places, index), int64)
        return b.plus(base, b.times(place, segment.step))

    def level(b: Body, depth: int, base: IndexLike, flat: IndexLike) -> None:
        segment, last = segments[depth], depth == len(segments) - 1
        if last and segment.size is not None and segment.repeats is not None:
            to = b.times(flat, segment.extent)
            b.add(SpreadOp(read, write, segment.size, b.index(base), to, segment.repeats))
            return

        def body(inner: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            at, place = offset(inner, segment, index, base), inner.plus(inner.times(flat, segment.extent), index)
            if last:
                inner.store(inner.load(read, at), write, place)
            else:
                level(inner, depth + 1, at, place)

        b.loop(segment.extent, body, vector=last)

    if len(segments) < 2:
        nest(kernel, [segments[0].extent], lambda b, at, flat: b.store(
            b.load(read, offset(b, segments[0], at[0], 0)), write, flat))  # fmt: skip
        kernel.launch()
        return
    # The two outermost together are what chunks are cut from (a batch of 1 would make one chunk).
    merged = 2 if len(segments) > 2 else 1
    extents = [s.extent for s in segments[:merged]]

    def row(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        if merged == 1:
            level(b, 1, offset(b, segments[0], number, 0), number)
            return
        first, second = b.index_math("floordiv", number, extents[1]), b.index_math("floormod", number, extents[1])
        level(b, 2, offset(b, segments[1], second, offset(b, segments[0], first, 0)), number)

    total = extents[0] if merged == 1 else kernel.times(extents[0], extents[1])
    kernel.loop(total, row, parallel=True)
    kernel.launch()


def _extrapolate(plan: Plan, op: ResizeOp, tables: Sequence[Table], source: tuple[DType, SSAValue]) -> None:
    """Write the result, with `extrapolation_value` where a place lay outside."""
    dtype, dims = dtype_of(op.output), dims_of(op.output)
    kernel = plan.kernel("resize_outside")
    read, write = kernel.read_buffer(source[1]), kernel.write(op.output)
    flags = {t.axis: kernel.read_buffer(t.outside) for t in tables if t.outside is not None}
    value = Number.const(kernel, float_attr(op, "extrapolation_value"), float64).to(dtype)

    def point(b: Body, indices: Sequence[SSAValue], flat: IndexLike) -> None:
        outside: Number | None = None
        for axis, buffer in flags.items():
            one = Number(b, b.load(buffer, indices[axis]), bool_)
            outside = one if outside is None else outside | one
        inside = Number.load(b, read, flat, source[0], dtype)
        (inside if outside is None else outside.where(value.within(b), inside)).store(write, flat, dtype, b)

    nest(kernel, kernel.extents(dims) if dims else [kernel.index(1)], point)
    kernel.launch()
