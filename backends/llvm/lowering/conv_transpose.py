"""Transposed convolutions as contractions, one for each phase of the strides.

Output elements whose indices leave the same rest when divided by the strides see the same taps of the weights, and
their windows move on by single elements of the data: each such phase is a plain convolution over the padded data, with
a part of the weights turned around, whose results are stored with the strides between them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.codegen.contract_shape import panel_width
from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.conv_shape import Sliding, channels_put_second, framed
from sardonyx.backends.llvm.lowering.conv_tile import Weights, grid_of, pack_matrices, part_of, places_of_unit
from sardonyx.backends.llvm.lowering.epilogue import Stage, region
from sardonyx.backends.llvm.lowering.plan import Plan
from sardonyx.backends.llvm.lowering.region import axis, copy_region, row_major
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, float32
from sardonyx.dialects.kernel.contract import ContractOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.windows import Windows

MOST_PHASES = 16


@dataclass(frozen=True)
class _Taps:
    """The taps of a phase along one axis: from `first` down in steps of `step`, `count` of them. The window of output
    `stride * q + rest` begins at element `q + start` of the data, and goes on in steps of `dilation`."""

    rest: int
    first: int
    step: int
    count: int
    start: int
    dilation: int

    @property
    def end(self) -> int:
        """Behind the last element of the first window."""
        return self.start + max(0, (self.count - 1) * self.dilation + 1)


def _taps(kernel: int, stride: int, dilation: int, before: int) -> list[_Taps]:
    """The phases along one axis."""
    out: list[_Taps] = []
    common = gcd(stride, dilation)
    for rest in range(stride):
        valid = [k for k in range(kernel) if (rest + before - k * dilation) % stride == 0]
        start = (rest + before - valid[-1] * dilation) // stride if valid else 0
        out.append(_Taps(rest, valid[-1] if valid else 0, stride // common, len(valid), start, dilation // common))
    return out


def fits_phases(windows: Windows, before: Sequence[Dim]) -> bool:
    """Whether the kernel, and what is cropped in front, are numbers, and the phases few."""
    known = [*windows.kernel, *before]
    return all(d.static_value is not None for d in known) and prod(windows.strides) <= MOST_PHASES


def convolve_phases(
    plan: Plan,
    windows: Windows,
    operands: tuple[SSAValue, SSAValue],
    group: int,
    out: Sequence[Dim],
    before: Sequence[Dim],
    target: SSAValue,
    bias: Stage | None,
) -> None:
    """Launch the transposed convolution of data [N, C, D1, …] with weights [C, M / group, k1, …] into `target`, whose
    dims are `out`; `before` is what is cropped in front. `bias` is a stage whose columns are the channels."""
    x, w = operands
    dtype, dims = dtype_of(x), dims_of(x)
    axes = [
        _taps(k.static_value or 0, s, d, b.static_value or 0)
        for k, s, d, b in zip(windows.kernel, windows.strides, windows.dilations, before, strict=True)
    ]
    pads: list[tuple[Dim, Dim]] = []
    for taps, stride, extent, size in zip(axes, windows.strides, out[2:], dims[2:], strict=True):
        front = max(0, *(-t.start for t in taps))
        behind = [(extent - t.rest).ceildiv(stride) - 1 + t.end - size for t in taps if t.count]
        pads.append((Dim.of(front), Dim.max(0, *behind)))
    shape = Sliding(windows, dims[0], dims[1], tuple(dims[2:]), tuple(out[2:]), tuple(pads))
    frame = framed(plan, dtype, plan.buffer(x), shape, last=False)
    sums = plan.workspace(dtype, [plan.count(out)])
    for phase in itertools.product(*axes):
        _phase(plan, shape, phase, frame, w, group, sums, bias)
    channels_put_second(plan, (dtype, dtype), sums, target, out)


def _weights(plan: Plan, value: SSAValue, group: int, dtype: DType, phase: Sequence[_Taps]) -> Weights:
    """The matrices [taps of the phase and channel, channels of a group], as `conv_tile.weights_of`."""
    dims = dims_of(value)
    channels, per_group = dims[0] // group, dims[1]
    owner = value.owner
    if isinstance(owner, ConstantOp):
        array: Any = owner.array()
        parts = array.reshape(group, array.shape[0] // group, *array.shape[1:])
        for at, taps in enumerate(phase):
            chosen = [taps.first - taps.step * k for k in range(taps.count)]
            parts = np.take(parts, chosen, axis=3 + at)
        matrices = np.moveaxis(parts, (1, 2), (-2, -1)).reshape(group, -1, array.shape[1])
        width = panel_width(plan.target, max(dtype.bits, 32))
        wide = float32 if dtype.bits == 16 else dtype
        packed = pack_matrices(matrices, width)
        return Weights(plan.constant_array(packed.astype(wide.numpy), wide), Dim.of(prod(packed.shape[1:])), width)
    counts = [Dim.of(taps.count) for taps in phase]
    extents = [Dim.of(group), *counts, channels, per_group]
    buffer = plan.workspace(dtype, [plan.count(extents)])
    taps_below, kernel = row_major(dims[2:]), Dim.product(dims[2:])
    source = [channels * per_group * kernel]
    source += [below * -taps.step for below, taps in zip(taps_below, phase, strict=True)]
    source += [per_group * kernel, kernel]
    first = Dim.sum(below * taps.first for below, taps in zip(taps_below, phase, strict=True))
    regions = [axis(e, s, t) for e, s, t in zip(extents, source, row_major(extents), strict=True)]
    copy_region(plan, "weights", regions, plan.buffer(value), buffer, first)
    return Weights(buffer, Dim.product(extents[1:]), None)


def _phase(
    plan: Plan,
    shape: Sliding,
    phase: Sequence[_Taps],
    frame: SSAValue,
    w: SSAValue,
    group: int,
    sums: SSAValue,
    bias: Stage | None,
) -> None:
    dtype, strides = dtype_of(w), shape.windows.strides
    counts = [(c - t.rest).ceildiv(s) for c, t, s in zip(shape.counts, phase, strides, strict=True)]
    if any(c.static_value == 0 for c in counts):
        return
    per_group = dims_of(w)[1]
    out_channels = per_group * group
    steps = [stride * shape.channels for stride in row_major(shape.padded)]
    places = [stride * out_channels for stride in row_major(shape.counts)]
    weights = _weights(plan, w, group, dtype, phase)
    planes, pixels = Dim.product([shape.batch, *counts[:-2]]), Dim.product(counts[-2:])
    grid = grid_of(plan, planes, pixels, group, per_group, weights.packed, dtype)

    kernel = plan.kernel("conv_transpose")
    image, matrix, result = kernel.read_buffer(frame), kernel.read_buffer(weights.buffer), kernel.write_buffer(sums)
    point = None if bias is None else bias(kernel)
    segments: list[SSAValue] = []
    joined = group == 1 and phase[-1].dilation == 1
    for taps, step in zip(phase[:-1] if joined else phase, steps, strict=False):
        segments += [kernel.extent(taps.count), kernel.extent(step * taps.dilation)]
    run = shape.channels * phase[-1].count if joined else shape.channels // group
    inner = kernel.extent(Dim.product([t.count for t in phase]) * (shape.channels // group))
    a_base = kernel.extent(
        Dim.sum((before + taps.start) * step for (before, _), taps, step in zip(shape.pads, phase, steps, strict=True))
    )
    c_base = kernel.extent(Dim.sum(place * taps.rest for place, taps in zip(places, phase, strict=True)))
    a_m, c_m = kernel.extent(steps[-1]), kernel.extent(places[-1] * strides[-1])
    pairs: list[SSAValue] = []
    if len(counts) > 1:
        pairs = [kernel.extent(counts[-1]), kernel.extent(steps[-2]), kernel.extent(places[-2] * strides[-2])]
    upper = kernel.extents(counts[:-2])
    a_upper = [kernel.extent(s) for s in steps[:-2]]
    c_upper = [kernel.extent(p * s) for p, s in zip(places[:-2], strides[:-2], strict=True)]
    a_image = kernel.extent(Dim.product([*shape.padded, shape.channels]))
    c_image = kernel.extent(Dim.product([*shape.counts, out_channels]))
    plane_pixels, of_group = kernel.extent(pixels), kernel.extent(per_group)
    in_group, group_size = kernel.extent(shape.channels // group), kernel.extent(weights.size)
    blocks, splits, columns = kernel.extent(grid.blocks), kernel.outer(grid.splits), kernel.outer(grid.columns)
    length = kernel.extent(run)

    def unit(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        rest, (part, block, split) = places_of_unit(b, number, (group, blocks, splits))
        index, above = places_of_unit(b, rest, upper)
        first, start = b.times(block, grid.rows), b.times(split, columns)
        channel = b.plus(b.times(part, of_group), start)
        a_at = b.plus(b.plus(b.times(index, a_image), a_base), b.times(part, in_group))
        c_at = b.plus(b.plus(b.times(index, c_image), c_base), channel)
        for place, a_step, c_step in zip(above, a_upper, c_upper, strict=True):
            a_at, c_at = b.plus(a_at, b.times(place, a_step)), b.plus(c_at, b.times(place, c_step))
        rows: list[SSAValue] = []
        if pairs:
            rows = [b.index(first), *pairs]
        else:
            a_at, c_at = b.plus(a_at, b.times(first, a_m)), b.plus(c_at, b.times(first, c_m))
        b_at: IndexLike = b.times(part, group_size)
        b_at = b.plus(b_at, b.times(start, inner) if weights.packed else start)
        extents = [part_of(b, plane_pixels, first, grid.rows), part_of(b, of_group, start, columns), length]
        b.add(
            ContractOp(
                (image, matrix, result),
                [b.index(e) for e in extents],
                [b.index(a_at), b.index(b_at), b.index(c_at)],
                [a_m, b.index(1), of_group, b.index(1), c_m],
                packed=weights.packed,
                rows=rows,
                segments=segments,
                epilogue=region(b, dtype, point, 0, channel),
            )
        )

    total = plan.product(plan.product(plan.count([planes, group]), plan.dim(grid.blocks)), grid.splits)
    kernel.loop(kernel.outer(total), unit, parallel=True)
    kernel.launch()
