"""Convolutions as contractions over padded images with channels last: no columns are laid out.

A window's row is one run of the frame, so k is (kernel rows) segments of (kernel width * channels) elements; m counts
the output pixels of an image, n the output channels. Weights that are constant are packed into panels now. An image is
cut into blocks of pixels and, where there are few of these, of channels; the grid follows from the shape alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.codegen.contract_shape import panel_width, tallest_rows
from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype, number_of
from sardonyx.backends.llvm.lowering.conv_shape import Finish, Sliding, framed, strides_last, turned_back
from sardonyx.backends.llvm.lowering.epilogue import Stage, region
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan
from sardonyx.backends.llvm.lowering.region import axis, copy_region, row_major
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, float32
from sardonyx.dialects.kernel.contract import ContractOp
from sardonyx.dialects.sx.constant import ConstantOp

ROWS = 96
"""Pixels of a block: what they read stays in the second-level cache while the panels of weights pass by."""
COLUMNS = 224
"""Pixels of a block where they are the columns."""
CHANNELS = 144
"""Channels of a block where they are the rows."""
FEW_CHANNELS = 4
"""Up to so many channels of a group, data whose channels are second are read as they are: of a matrix of so few
columns, to turn it takes longer than what it spares."""
UNITS = 16
"""Into at least so many parts the work is cut, if it has that many."""


@dataclass(frozen=True)
class Weights:
    """A matrix [k, channels of a group] per group in a plan-level buffer; `packed` is the width of its panels."""

    buffer: SSAValue
    size: Dim
    """Elements from group to group."""
    packed: int | None


def weights_of(
    plan: Plan, value: SSAValue, group: int, dtype: DType, rows: int | None, halves: bool = False, planes: bool = False
) -> Weights:
    """The weights [M, C / group, k1, …] as matrices whose rows are (k1, …, channel).

    Constant ones are packed here, 16-bit ones as float32; others are put in order by a kernel.
    """
    dims = dims_of(value)
    per_group, inner = dims[0] // group, Dim.product(dims[1:])
    owner = value.owner
    if isinstance(owner, ConstantOp) and (dtype.is_float or halves):
        width = panel_width(plan.target, max(dtype.bits, 32), rows)
        packed = pack_weights(owner.array(), group, width, planes)
        wide = float32 if dtype.bits == 16 else dtype
        buffer = plan.constant_array(packed.astype(wide.numpy), wide)
        return Weights(buffer, Dim.of(prod(packed.shape[1:])), width)
    kernel = dims[2:]
    buffer = plan.workspace(dtype, [plan.dim(Dim.of(group) * inner * per_group)])
    taps = Dim.product(kernel)
    source = [per_group * inner, *row_major(kernel), taps, inner]
    extents = [Dim.of(group), *kernel, dims[1], per_group]
    if planes:
        source = [per_group * inner, taps, *row_major(kernel), inner]
        extents = [Dim.of(group), dims[1], *kernel, per_group]
    axes = [axis(e, s, t) for e, s, t in zip(extents, source, row_major(extents), strict=True)]
    copy_region(plan, "weights", axes, plan.buffer(value), buffer)
    return Weights(buffer, inner * per_group, None)


def pack_weights(w: np.ndarray, group: int, width: int, planes: bool = False) -> np.ndarray:
    """[M, C / group, k1, …] as [group, panels, k, width], filled up with zeros; k is (k1, …, channel), or with `planes`
    (channel, k1, …)."""
    m, channels = w.shape[:2]
    parts = w.reshape(group, m // group, channels, *w.shape[2:])
    rows = np.moveaxis(parts, 1, -1) if planes else np.moveaxis(parts, (1, 2), (-1, -2))
    return pack_matrices(rows.reshape(group, prod(w.shape[1:]), m // group), width)


def pack_matrices(matrices: np.ndarray, width: int) -> np.ndarray:
    """[group, k, columns] as [group, panels, k, width], filled up with zeros; at least one panel and one row."""
    group, inner, columns = matrices.shape
    panels = max(1, -(-columns // width))
    padded = np.zeros((group, max(inner, 1), panels * width), matrices.dtype)
    padded[:, :inner, :columns] = matrices
    return np.ascontiguousarray(padded.reshape(group, max(inner, 1), panels, width).swapaxes(1, 2))


@dataclass(frozen=True)
class Grid:
    """Pixels of an image plane in blocks of `rows`, channels of a group in blocks of `columns`; `planes` counts the
    planes (of all images)."""

    planes: Dim
    pixels: Dim
    rows: int
    columns: IndexLike
    splits: IndexLike

    @property
    def blocks(self) -> Dim:
        return self.pixels.ceildiv(self.rows)


def grid_of(plan: Plan, planes: Dim, pixels: Dim, group: int, per_group: Dim, packed: int | None, dtype: DType) -> Grid:
    """`packed` is the width of the weights' panels, if any."""
    tall = tallest_rows(plan.target, compute_dtype(dtype).bits, packed)
    width, rows = packed or 16, ROWS // tall * tall
    known = pixels.static_value
    if known:
        # Blocks of whole tiles, as many for each of two threads.
        tiles = -(-known // tall)
        usual = -(-tiles // max(1, round(known / ROWS)))
        rows = next((n for n in range(usual, usual * 3 // 4, -1) if -(-tiles // n) % 2 == 0), usual) * tall
    body = plan.body
    units = plan.product(plan.count([planes, group]), plan.dim(pixels.ceildiv(rows)))
    panels = plan.dim(per_group.ceildiv(width))
    wanted = body.index_math("min", panels, body.index_math("ceildiv", UNITS, body.index_math("max", units, 1)))
    each = body.index_math("max", body.index_math("ceildiv", panels, body.index_math("max", wanted, 1)), 1)
    return Grid(planes, pixels, rows, body.times(each, width), body.index_math("ceildiv", panels, each))


def convolve(
    plan: Plan,
    shape: Sliding,
    operands: tuple[SSAValue, SSAValue],
    group: int,
    target: SSAValue,
    last: tuple[bool, bool],
    finish: Finish,
    halves: bool = False,
) -> None:
    """Launch the convolution of `operands` (data and weights) into the buffer `target`.

    `last` says whether the channels are last in the data and in the result, `finish` what sums go through. With
    `halves` an int32 of the operands is two int16 (see `kernel.contract`).
    """
    x, w = operands
    dtype = dtype_of(x)
    held = finish.held(dtype)
    out_channels = dims_of(w)[0]
    per_group = out_channels // group
    planes_of_data = not last[0] and not halves and few_channels(shape, group)
    if planes_of_data:  # each channel's plane in a frame of its own
        one = replace(shape, batch=shape.batch * shape.channels, channels=Dim.of(1))
        frame, strides = framed(plan, dtype, plan.buffer(x), one, last=True), row_major(shape.padded)
    else:
        frame, strides = framed(plan, dtype, plan.buffer(x), shape, last[0]), strides_last(shape)
    windows, in_group = shape.windows, shape.channels // group
    # Where each window is one element, the pixels of all images are one long row.
    flat = shape.is_pointwise and (last[1] and not planes_of_data or shape.batch.static_value == 1)
    above: tuple[Dim, ...] = () if flat else shape.counts[:-2]
    planes = Dim.of(1) if flat else Dim.product([shape.batch, *above])
    pixels = Dim.product([shape.batch, *shape.counts]) if flat else Dim.product(shape.counts[-2:])
    weights = weights_of(plan, w, group, dtype, None, halves, planes_of_data)
    grid = grid_of(plan, planes, pixels, group, per_group, weights.packed, dtype)
    turned_at_once = not last[1] and finish.later is None and held == finish.result
    sums = target
    if not last[1] and not turned_at_once:
        sums = plan.workspace(held, [plan.count([shape.batch, *shape.counts, out_channels])])

    kernel = plan.kernel("conv")
    image, matrix, result = kernel.read_buffer(frame), kernel.read_buffer(weights.buffer), kernel.write_buffer(sums)
    second = None if sums is target else kernel.write_buffer(target)
    point = None if finish.at_once is None else finish.at_once(kernel)
    after = None if finish.later is None else finish.later(kernel)
    segments, run, a_k = _segments(kernel, shape, strides, group, planes_of_data)
    a_m = kernel.extent(strides[-1] * windows.strides[-1])
    plane_pixels, channels = kernel.extent(pixels), kernel.extent(out_channels)
    pairs: list[SSAValue] = []
    clip: list[SSAValue] = []
    level: int | None = None
    if not flat and len(shape.counts) > 1:
        across = kernel.extent(shape.counts[-1])
        pairs = [across, kernel.extent(strides[-2] * windows.strides[-2]), kernel.times(across, channels)]
        above_rows = [*([in_group] if planes_of_data else []), *windows.kernel[:-2]]
        level, clip = _clip(kernel, shape, sum(e.static_value != 1 for e in above_rows))
    of_group = kernel.extent(per_group)
    of_data_group = kernel.extent(in_group * Dim.product(shape.padded) if planes_of_data else in_group)
    inner = kernel.extent(Dim.product(dims_of(w)[1:]))
    group_size = kernel.extent(weights.size)
    image_size = kernel.extent(Dim.product([*shape.padded, shape.channels]))
    upper = kernel.extents(above)
    upper_steps = [kernel.extent(s * t) for s, t in zip(strides, windows.strides)][: len(upper)]
    blocks, splits, columns = kernel.extent(grid.blocks), kernel.outer(grid.splits), kernel.outer(grid.columns)
    image_pixels = kernel.extent(Dim.product(shape.counts))

    def unit(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        rest, (plane_group, block, split) = places_of_unit(b, number, (group, blocks, splits))
        image_number, places = places_of_unit(b, rest, upper)
        a_at = b.plus(b.times(image_number, image_size), b.times(plane_group, of_data_group))
        for place, step in zip(places, upper_steps, strict=True):
            a_at = b.plus(a_at, b.times(place, step))
        first = b.times(block, grid.rows)
        rows = part_of(b, plane_pixels, first, grid.rows)
        start = b.times(split, columns)
        width = part_of(b, of_group, start, columns)
        channel = b.plus(b.times(plane_group, of_group), start)
        before = b.times(rest, plane_pixels)
        b_at = b.times(plane_group, group_size)
        b_at = b.plus(b_at, b.times(start, inner) if weights.packed else start)
        row_pairs: list[SSAValue] = []
        if turned_at_once:
            inside = b.plus(b.times(_flat(b, places, upper), plane_pixels), first)
            c_at = b.plus(b.times(b.plus(b.times(image_number, channels), channel), image_pixels), inside)
        else:
            c_at = b.plus(b.times(before, channels), channel)
        if pairs:
            row_pairs = [b.index(first), *pairs]
        else:
            a_at = b.plus(a_at, b.times(first, a_m))
            if not turned_at_once:
                c_at = b.plus(c_at, b.times(first, channels))
        b.add(
            ContractOp(
                (image, matrix, result),
                [b.index(rows), b.index(width), run],
                [b.index(a_at), b.index(b_at), b.index(c_at)],
                [a_m, a_k, of_group, b.index(1), image_pixels if turned_at_once else channels],
                packed=weights.packed,
                rows=row_pairs,
                segments=segments,
                epilogue=region(b, dtype, point, b.plus(before, first), channel),
                pairs=halves,
                clip=clip,
                clipped=level,
                turned=grid.rows if turned_at_once else None,
            )
        )
        if second is None:
            return

        inside = b.plus(b.times(_flat(b, places, upper), plane_pixels), first)
        origin = b.times(b.times(image_number, image_pixels), channels)

        def change(at: Body, value: SSAValue, c: IndexLike, p: IndexLike) -> SSAValue:
            if after is None:
                return at.convert(value, held, finish.result)
            return after(at, value, at.plus(at.times(image_number, channels), c), p)

        turned_back(
            b, (channel, width), (inside, rows), (result, origin, channels), (second, origin, image_pixels), change
        )

    kernel.loop(
        kernel.outer(plan.product(plan.product(plan.count([planes, group]), plan.dim(grid.blocks)), grid.splits)),
        unit,
        parallel=True,
    )
    kernel.launch()


def few_channels(shape: Sliding, group: int) -> bool:
    """Whether data whose channels are second are read as they are: a channel's plane by a channel's."""
    channels = shape.channels.static_value
    return channels is not None and channels // group <= FEW_CHANNELS


def _segments(
    kernel: Kernel, shape: Sliding, strides: Sequence[Dim], group: int, planes: bool
) -> tuple[list[SSAValue], SSAValue, SSAValue]:
    """The runs of a window in the frame as (count, stride) pairs, the length of one, and the step in it."""
    windows = shape.windows
    out: list[SSAValue] = []
    one = kernel.index(1)
    if planes:
        extents = [shape.channels // group, *windows.kernel[:-1]]
        moves = [Dim.product(shape.padded), *(s * d for s, d in zip(strides[:-1], windows.dilations[:-1], strict=True))]
        for extent, stride in zip(extents, moves, strict=True):
            if extent.static_value != 1:
                out += [kernel.extent(extent), kernel.extent(stride)]
        return out, kernel.extent(windows.kernel[-1]), kernel.extent(windows.dilations[-1])
    for extent, stride, dilation in zip(windows.kernel[:-1], strides[:-1], windows.dilations[:-1], strict=True):
        if extent.static_value != 1:
            out += [kernel.extent(extent), kernel.extent(stride * dilation)]
    width = windows.kernel[-1]
    if width.static_value == 1:
        return out, kernel.extent(shape.channels // group), one
    if group == 1 and windows.dilations[-1] == 1:
        return out, kernel.extent(width * shape.channels), one
    out += [kernel.extent(width), kernel.extent(strides[-1] * windows.dilations[-1])]
    return out, kernel.extent(shape.channels // group), one


def _clip(kernel: Kernel, shape: Sliding, level: int) -> tuple[int | None, list[SSAValue]]:
    """Rows of a window, which are segments of that level, add nothing where they lie in the padding above or below."""
    windows, pads = shape.windows, shape.pads[-2]
    if windows.kernel[-2].static_value == 1 or all(p.static_value == 0 for p in pads):
        return None, []
    return level, kernel.extents([Dim.of(windows.strides[-2]), pads[0], Dim.of(windows.dilations[-2]), shape.sizes[-2]])


def places_of_unit(b: Body, number: IndexLike, extents: Sequence[IndexLike]) -> tuple[IndexLike, list[IndexLike]]:
    """A flat number as (what is left in front, the place along each of these extents); extents of 1 cost nothing."""
    places: list[IndexLike] = []
    rest = number
    for extent in reversed(extents):
        if number_of(extent) == 1:
            places.append(0)
            continue
        places.append(b.index_math("floormod", rest, extent))
        rest = b.index_math("floordiv", rest, extent)
    return rest, places[::-1]


def _flat(b: Body, places: Sequence[IndexLike], extents: Sequence[IndexLike]) -> IndexLike:
    flat: IndexLike = 0
    for place, extent in zip(places, extents, strict=True):
        flat = b.plus(b.times(flat, extent), place)
    return flat


def part_of(b: Body, whole: IndexLike, start: IndexLike, size: IndexLike) -> IndexLike:
    """The length of the block that starts there."""
    total, each = number_of(whole), number_of(size)
    if total is not None and each is not None:
        if total <= each:
            return total
        if total % each == 0:
            return each
    return b.index_math("min", size, b.minus(whole, start))


def suits_planes(w: SSAValue, group: int) -> bool:
    """Whether `pointwise_planes` does it best: with more channels, what it costs to put them last is less than what
    it costs to read each panel of pixels several times."""
    channels = (dims_of(w)[0] // group).static_value
    return channels is None or channels <= CHANNELS


def pointwise_planes(
    plan: Plan, shape: Sliding, operands: tuple[SSAValue, SSAValue], group: int, target: SSAValue, stage: Stage | None
) -> None:
    """Launch a convolution by single elements of data [N, C, …]: weights times the pixels of each image."""
    x, w = operands
    out_channels, inner = dims_of(w)[0], dims_of(w)[1]
    per_group, pixels = out_channels // group, Dim.product(shape.counts)
    kernel = plan.kernel("conv")
    data, weights, result = kernel.read(x), kernel.read(w), kernel.write_buffer(target)
    point = None if stage is None else stage(kernel)
    m, n, k, one = kernel.extent(per_group), kernel.extent(pixels), kernel.extent(inner), kernel.index(1)
    planes = shape.batch * group
    height, width = _block_of_planes(plan, dtype_of(x), planes, per_group, pixels)
    down, across = per_group.ceildiv(height), pixels.ceildiv(width)
    blocks = (group, kernel.extent(down), kernel.extent(across))

    def unit(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        image, (part, upper, block) = places_of_unit(b, number, blocks)
        plane = b.plus(b.times(image, group), part)
        top, start = b.times(upper, height), b.times(block, width)
        row = b.plus(b.times(plane, m), top)
        matrix = b.plus(b.times(part, b.times(m, k)), b.times(top, k))
        b.add(
            ContractOp(
                (weights, data, result),
                [b.index(part_of(b, m, top, height)), b.index(part_of(b, n, start, width)), k],
                [
                    b.index(matrix),
                    b.plus(b.times(b.times(plane, k), n), start),
                    b.plus(b.times(row, n), start),
                ],
                [k, one, n, one, n],
                epilogue=region(b, dtype_of(x), point, row, start),
            )
        )

    kernel.loop(kernel.outer(plan.count([planes, down, across])), unit, parallel=True)
    kernel.launch()


def _block_of_planes(plan: Plan, dtype: DType, planes: Dim, channels: Dim, pixels: Dim) -> tuple[int, int]:
    """The channels and pixels of a block, whole tiles and panels of them: about COLUMNS pixels, or less so that there
    are enough blocks."""
    bits = compute_dtype(dtype).bits
    tall, panel = tallest_rows(plan.target, bits, None), panel_width(plan.target, bits)
    height = CHANNELS // tall * tall
    down, known = 1, channels.static_value
    if known:
        down = -(-known // height)
        tiles = -(-known // tall)
        height = -(-tiles // down) * tall
    if not pixels.static_value:
        return height, COLUMNS
    panels = -(-pixels.static_value // panel)
    others = down * (planes.static_value or 1)
    parts = max(1, round(panels * panel / COLUMNS), -(-UNITS // others))
    return height, -(-panels // min(panels, parts + others * parts % 2)) * panel
