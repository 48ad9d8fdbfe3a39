"""Lowerings of roi_align and max_roi_pool: a region's images are found and checked first, then every cell is computed.

Regions are what chunks are made of. What is computed of a region alone stands outside of the loop over its channels.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body
from sardonyx.backends.llvm.lowering.number import Number, all_of
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, float32, float64, int64
from sardonyx.dialects.sx.roi import MAX_SAMPLES, MaxRoiPoolOp, RoiAlignOp
from sardonyx.dialects.sx.support import float_attr

MOST_CELLS = float(MAX_SAMPLES)
MOST_WRITTEN_OUT = 3
"""So many samples a side are written out one by one."""


def _corners(b: Body, rois: SSAValue, dtype: DType, start: Number, scale: float) -> list[Number]:
    return [Number.load(b, rois, start + k, dtype, float64) * scale for k in range(4)]


def _finite(values: Sequence[Number]) -> Number:
    return all_of(*[v.abs().lt(float("inf")) for v in values])


@lowers(RoiAlignOp)
def _roi_align(plan: Plan, op: RoiAlignOp) -> None:
    dims, rois, dtype = dims_of(op.x), dims_of(op.rois), dtype_of(op.x)
    plan.require_equal(rois[0], dims_of(op.batch_indices)[0], "there are {0} regions and {1} indices")
    plan.require_equal(rois[1], Dim.of(4), "a region has {0} numbers, not {1}")
    out = dims_of(op.output)
    body, none = plan.body, plan.body.compare("eq", plan.count(out), 0)
    for d in dims:
        some = body.either(none, body.compare("sgt", plan.dim(d), 0))
        body.require(some, plan.failure("there are regions, but no images with elements"))
    kernel = plan.kernel("roi_align")
    read, regions, write = kernel.read(op.x), kernel.read(op.rois), kernel.write(op.output)
    indices = kernel.read(op.batch_indices)
    images, channels, height, width = (Number.index(kernel, kernel.extent(d)) for d in dims)
    cells = (op.attr("output_height"), op.attr("output_width"))
    failures = [
        plan.failure("batch index {0} is out of range for {1} images"),
        plan.failure("region {0} is not finite"),
        plan.failure("region {0} would be sampled at too many places"),
    ]
    some_channels = channels.gt(0)
    half = op.attr("coordinate_transformation_mode") == "half_pixel"
    is_mean, ratio = op.attr("mode") == "avg", op.attr("sampling_ratio")
    wide = float64 if dtype == float64 else float32

    def region(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        r = Number.index(b, number)
        image = Number.load(b, indices, r, int64).to_index()
        inside = (image.ge(0) & image.lt(images)) | ~some_channels
        b.require(inside.value, failures[0], image.value, images.value)
        corners = _corners(b, regions, dtype, r * 4, float_attr(op, "spatial_scale"))
        b.require((_finite(corners) | ~some_channels).value, failures[1], number)
        x1, y1, x2, y2 = (c - (0.5 if half else 0.0) for c in corners)
        sides = [y2 - y1, x2 - x1]
        if not half:
            sides = [side.max(1.0) for side in sides]
        if ratio:
            counts = [Number.const(b, float(ratio))] * 2
        else:
            counts = [(side / float(n)).ceil().max(0.0) for side, n in zip(sides, cells, strict=True)]
        total = counts[0] * counts[1] * float(cells[0] * cells[1])
        b.require((total.le(MOST_CELLS) | ~some_channels).value, failures[2], number)
        samples = [c.to_index() for c in counts]
        steps = [side / float(n) / c for side, n, c in zip(sides, cells, counts, strict=True)]
        first = image * channels
        sizes = [height.to(float64), width.to(float64)]

        def neighbours(at: Body, axis: int, cell: Number, sample: Number) -> tuple[Number, Number, Number, Number]:
            """`roi._bilinear`: both neighbours (indices), the second one's weight, whether it is near the image."""
            start = (y1, x1)[axis]
            place = start + ((cell * samples[axis] + sample).to(float64) + 0.5) * steps[axis]
            size = sizes[axis]
            valid = place.ge(-1.0) & place.le(size)
            clipped = valid.where(place.max(0.0), 0.0)
            low = clipped.floor().min(size - 1.0)
            high = (low + 1.0).min(size - 1.0)
            part = low.ge(size - 1.0).where(Number.const(at, 0.0), clipped - low)
            return low.to_index(), high.to_index(), part, valid

        def written_out(h: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
            """A row of cells, of few samples each: their places are found once for all channels."""
            down = Number.index(h, i)
            ys = [neighbours(h, 0, down, Number.index(h, k)) for k in range(ratio)]

            def cell(w: Body, j: SSAValue, _: Sequence[SSAValue]) -> None:
                across = Number.index(w, j)
                terms: list[list[tuple[Number, Number, Number]]] = []
                for top, bottom, part_y, valid_y in ys:
                    for left, right, part_x, valid_x in (
                        neighbours(w, 1, across, Number.index(w, k)) for k in range(ratio)
                    ):
                        terms.append([])
                        for yy, wy in ((top, 1.0 - part_y), (bottom, part_y)):
                            for xx, wx in ((left, 1.0 - part_x), (right, part_x)):
                                terms[-1].append((yy * width + xx, valid_y & valid_x, (wy * wx).to(wide)))

                def channel(c: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
                    own = Number.index(c, k)
                    plane, total = (first + own) * height * width, Number.const(c, 0.0, wide)
                    best: Number | None = None
                    for sample in terms:
                        for offset, valid, weight in sample:
                            value = Number.load(c, read, plane + offset, dtype, wide) * weight
                            value = valid.where(value, 0.0)
                            total, best = total + value, value if best is None else best.max(value)
                    result = total / float(ratio * ratio) if is_mean or best is None else best
                    target = ((r * channels + own) * cells[0] + down) * cells[1] + across
                    result.store(write, target, dtype, c)

                w.loop(channels.value, channel)

            h.loop(cells[1], cell, vector=True)

        def channel(c: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
            plane = (first + Number.index(c, k)) * height * width
            target = (r * channels + Number.index(c, k)) * cells[0]

            def row(h: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
                line = (target + Number.index(h, i)) * cells[1]

                def cell(w: Body, j: SSAValue, _: Sequence[SSAValue]) -> None:
                    down, across = Number.index(h, i), Number.index(w, j)

                    def sample_row(y: Body, iy: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
                        top, bottom, part_y, valid_y = neighbours(y, 0, down, Number.index(y, iy))

                        def sample(x: Body, ix: SSAValue, so_far: Sequence[SSAValue]) -> list[SSAValue]:
                            left, right, part_x, valid_x = neighbours(x, 1, across, Number.index(x, ix))
                            valid, found = valid_y & valid_x, Number(x, so_far[0], float64)
                            terms: list[Number] = []
                            for yy, wy in ((top, 1.0 - part_y), (bottom, part_y)):
                                for xx, wx in ((left, 1.0 - part_x), (right, part_x)):
                                    value = Number.load(x, read, plane + yy * width + xx, dtype, float64)
                                    terms.append(valid.where(value * (wy * wx), 0.0))
                            if is_mean:
                                return [(found + (terms[0] + terms[1] + terms[2] + terms[3])).value]
                            return [found.max(terms[0].max(terms[1]).max(terms[2]).max(terms[3])).value]

                        return list(y.loop(samples[1].value, sample, [("serial", carried[0])]))

                    start = kernel.const(float64, 0.0 if is_mean else float("-inf"))
                    result = Number(w, w.loop(samples[0].value, sample_row, [("serial", start)])[0], float64)
                    nothing = samples[0].eq(0) | samples[1].eq(0)
                    if is_mean:
                        result = result / (counts[0] * counts[1])
                    nothing.where(Number.const(w, 0.0), result).store(write, line + Number.index(w, j), dtype, w)

                h.loop(cells[1], cell, vector=True)

            c.loop(cells[0], row)

        if 0 < ratio <= MOST_WRITTEN_OUT:
            b.loop(cells[0], written_out)
        else:
            b.loop(channels.value, channel)

    kernel.loop(kernel.extent(rois[0]), region, parallel=True)
    kernel.launch()


@lowers(MaxRoiPoolOp)
def _max_roi_pool(plan: Plan, op: MaxRoiPoolOp) -> None:
    dims, rois, dtype = dims_of(op.x), dims_of(op.rois), dtype_of(op.x)
    plan.require_equal(rois[1], Dim.of(5), "a region has {0} numbers, not {1}")
    kernel = plan.kernel("max_roi_pool")
    read, regions, write = kernel.read(op.x), kernel.read(op.rois), kernel.write(op.output)
    images, channels, height, width = (Number.index(kernel, kernel.extent(d)) for d in dims)
    rows, columns = op.attr("pooled_shape")
    failure = plan.failure("region {0} is not finite or of none of {1} images")
    scale = float_attr(op, "spatial_scale")

    def region(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        r = Number.index(b, number)
        place = Number.load(b, regions, r * 5, dtype, float64)
        corners = [Number.load(b, regions, r * 5 + (1 + k), dtype, float64) for k in range(4)]
        image = place.to_index()
        ok = _finite([place, *corners]) & image.ge(0) & image.lt(images)
        b.require(ok.value, failure, number, images.value)
        x1, y1, x2, y2 = (_rounded(c * scale) for c in corners)
        spans = [(y1, (y2 - y1 + 1).max(1), rows, height), (x1, (x2 - x1 + 1).max(1), columns, width)]

        def bounds(axis: int, cell: Number) -> tuple[Number, Number]:
            start, span, cells, size = spans[axis]
            low = start + cell * span // cells
            high = start - (0 - (cell + 1) * span) // cells
            return low.max(0).min(size), high.max(0).min(size)

        def channel(c: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
            plane = (image * channels + Number.index(c, k)) * height * width
            target = (r * channels + Number.index(c, k)) * (rows * columns)

            def cell(w: Body, flat: SSAValue, _: Sequence[SSAValue]) -> None:
                at = Number.index(w, flat)
                (top, bottom), (left, right) = bounds(0, at // columns), bounds(1, at % columns)

                def line(y: Body, i: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
                    first = plane + Number.index(y, i) * width

                    def one(x: Body, j: SSAValue, so_far: Sequence[SSAValue]) -> list[SSAValue]:
                        value = Number.load(x, read, first + Number.index(x, j), dtype, float64)
                        return [Number(x, so_far[0], float64).max(value).value]

                    return list(y.loop(right.value, one, [("max", carried[0])], lower=left.value, vector=True))

                lowest = kernel.const(float64, float("-inf"))
                (found,) = w.loop(bottom.value, line, [("serial", lowest)], lower=top.value)
                empty = top.ge(bottom) | left.ge(right)
                best = empty.where(Number.const(w, 0.0), Number(w, found, float64))
                best.store(write, target + at, dtype, w)

            c.loop(rows * columns, cell)

        b.loop(channels.value, channel)

    kernel.loop(kernel.extent(rois[0]), region, parallel=True)
    kernel.launch()


def _rounded(x: Number) -> Number:
    """Halves away from 0; an index. What is far away stays within the numbers whose sums are indices."""
    size = (x.abs() + 0.5).floor().min(float(1 << 40))
    return x.ge(0.0).where(size, -size).to_index()
