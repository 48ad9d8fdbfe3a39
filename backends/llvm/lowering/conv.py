"""Lowerings of conv and conv_transpose: per image, the windows are laid out as columns and contracted with the weights.

A 1x1 convolution with stride 1 and no padding contracts the image itself. The work buffers hold one image.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.backends.llvm.lowering.region import Axis, axis, copy_nest, fill_buffer, row_major, steps
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.kernel.contract import ContractOp
from sardonyx.dialects.sx.conv import ConvOp, ConvTransposeOp
from sardonyx.dialects.sx.windows import Windows
from sardonyx.errors import UnsupportedError


def paddings(windows: Windows, sizes: Sequence[Dim], counts: Sequence[Dim]) -> list[tuple[Dim, Dim]]:
    """(before, after) per spatial axis as expressions; SAME pads depend on the size."""
    out: list[tuple[Dim, Dim]] = []
    for at, (size, count) in enumerate(zip(sizes, counts, strict=True)):
        if not windows.same:
            before, after = windows.pads[at]
            out.append((Dim.of(before), Dim.of(after)))
            continue
        total = Dim.max(0, (count - 1) * windows.strides[at] + windows.reach(at) - size)
        small = total // 2
        out.append((small, total - small) if windows.auto_pad == "SAME_UPPER" else (total - small, small))
    return out


def require_fit(plan: Plan, counts: Sequence[Dim]) -> None:
    """Refuse a run in which no window fits."""
    for at, count in enumerate(counts):
        low = count.bounds[0]
        if low is None or low < 0:
            index = plan.dim(count)
            failure = plan.failure(f"no window fits into spatial axis {at}")
            plan.body.require(plan.body.compare("sge", index, 0), failure, index)


@lowers(ConvOp)
def _conv(plan: Plan, op: ConvOp) -> None:
    if op.channels_are_last != (False, False):
        raise UnsupportedError(f"the layout {op.attr('layout')} has no native form yet")
    x, w, out = dims_of(op.x), dims_of(op.w), dims_of(op.output)
    group, dtype = op.attr("group"), dtype_of(op.x)
    plan.require_equal(x[1], w[1] * group, "conv: x has {0} channels, w asks for {1}")
    if op.b is not None:
        plan.require_equal(dims_of(op.b)[0], w[0], "conv: b has {0} elements for {1} output channels")
    windows, counts = op.windows(w[2:]), out[2:]
    require_fit(plan, counts)
    pads = paddings(windows, x[2:], counts)
    padded = [size + before + after for size, (before, after) in zip(x[2:], pads, strict=True)]
    needs_pads = any(p.static_value != 0 for pair in pads for p in pair)
    direct = not needs_pads and all(k.static_value == 1 for k in windows.kernel) and set(windows.strides) == {1}
    channels, rows = w[1], w[0] // group
    pixels, taps = Dim.product(counts), Dim.product([channels, *windows.kernel])
    target = plan.new_buffer(op.output)
    border = None
    if needs_pads:
        extents = [plan.dim(d) for d in (x[1], *padded)]
        border = plan.workspace(dtype, extents)
        fill_buffer(plan, dtype, border, plan.count([x[1], *padded]), 0)
    columns = None if direct else plan.workspace(dtype, [plan.dim(taps), plan.dim(pixels)])

    kernel = plan.kernel("conv")
    image, weights = kernel.read(op.x), kernel.read(op.w)
    bias = None if op.b is None else kernel.read(op.b)
    result = kernel.write_buffer(target)
    frame = None if border is None else kernel.write_buffer(border)
    patch = None if columns is None else kernel.write_buffer(columns)
    interior, unfold = None, None
    if border is not None:
        interior = steps(
            plan,
            kernel,
            [axis(d, s, t) for d, s, t in zip(x[1:], row_major(x[1:]), row_major([x[1], *padded]), strict=True)],
        )
        first = Dim.sum(before * stride for (before, _), stride in zip(pads, row_major(padded), strict=True))
        start = kernel.extent(first)
    else:
        start = kernel.index(0)
    if columns is not None:
        unfold = steps(plan, kernel, _unfold_axes(windows, channels, padded, counts))
    size_in, size_out = kernel.extent(Dim.product(x[1:])), kernel.extent(Dim.product(out[1:]))
    group_in = kernel.extent(Dim.product([channels, *(padded if border is not None else x[2:])]))
    m, n, k = (kernel.extent(d) for d in (rows, pixels, taps))

    def per_image(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        at_in, at_out = b.times(number, size_in), b.times(number, size_out)
        source, base = image, at_in
        if frame is not None and interior is not None:
            copy_nest(b, interior, (image, at_in), (frame, start))
            source, base = frame, b.index(0)

        def per_group(g: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            there = g.plus(base, g.times(index, group_in))
            data, offset = source, there
            if patch is not None and unfold is not None:
                copy_nest(g, unfold, (source, there), (patch, 0))
                data, offset = patch, g.index(0)
            here = g.plus(at_out, g.times(g.times(index, m), n))
            if bias is not None:
                _fill_rows(g, bias, g.times(index, m), result, here, m, n)
            g.add(
                ContractOp(
                    (weights, data, result),
                    [m, n, k],
                    [g.times(g.times(index, m), k), offset, here],
                    [k, g.index(1), n, g.index(1), n],
                    bias is not None,
                )
            )

        b.loop(group, per_group)

    kernel.loop(kernel.extent(x[0]), per_image)
    kernel.launch()


def _unfold_axes(windows: Windows, channels: Dim, sizes: Sequence[Dim], counts: Sequence[Dim]) -> list[Axis]:
    """Columns [channels, taps…, positions…] out of an image [channels, sizes…]."""
    image = row_major([channels, *sizes])
    shape = [channels, *windows.kernel, *counts]
    source = [image[0]]
    source += [s * d for s, d in zip(image[1:], windows.dilations, strict=True)]
    source += [s * d for s, d in zip(image[1:], windows.strides, strict=True)]
    return [axis(d, s, t) for d, s, t in zip(shape, source, row_major(shape), strict=True)]


def _fill_rows(
    b: Body, bias: SSAValue, first: IndexLike, target: SSAValue, at: IndexLike, m: SSAValue, n: SSAValue
) -> None:
    """Give every element of row i the bias of channel i."""

    def row(r: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        value = r.load(bias, r.plus(first, i))
        start = r.plus(at, r.times(i, n))

        def cell(c: Body, j: SSAValue, _: Sequence[SSAValue]) -> None:
            c.store(value, target, c.plus(start, j))

        r.loop(n, cell, vector=True)

    b.loop(m, row)


@lowers(ConvTransposeOp)
def _conv_transpose(plan: Plan, op: ConvTransposeOp) -> None:
    """Weights' transpose times the image gives every tap's contribution; these are added into the full result, which
    is cropped into the output."""
    x, w, out = dims_of(op.x), dims_of(op.w), dims_of(op.output)
    group, dtype = op.attr("group"), dtype_of(op.x)
    wide = compute_dtype(dtype)
    plan.require_equal(x[1], w[0], "conv_transpose: x has {0} channels, w asks for {1}")
    if op.b is not None:
        plan.require_equal(dims_of(op.b)[0], w[1] * group, "conv_transpose: b has {0} elements for {1} channels")
    windows = op.windows(w[2:])
    require_fit(plan, out[2:])
    full, before = _transposed_extents(op, windows, x[2:], out[2:])
    inner, rows = x[1] // group, w[1]
    pixels, taps = Dim.product(x[2:]), Dim.product([rows, *windows.kernel])
    target = plan.new_buffer(op.output)
    columns = plan.workspace(wide, [plan.dim(taps), plan.dim(pixels)])
    sums = plan.workspace(wide, [plan.dim(d) for d in (rows, *full)])

    kernel = plan.kernel("conv_transpose")
    image, weights = kernel.read(op.x), kernel.read(op.w)
    bias = None if op.b is None else kernel.read(op.b)
    result = kernel.write_buffer(target)
    patch, total = kernel.write_buffer(columns), kernel.write_buffer(sums)
    spread = steps(plan, kernel, _spread_axes(windows, rows, full, x[2:]))
    crop = steps(
        plan, kernel, [axis(d, s, t) for d, s, t in zip(out[2:], row_major(full), row_major(out[2:]), strict=True)]
    )
    first = kernel.extent(Dim.sum(b * s for b, s in zip(before, row_major(full), strict=True)))
    size_in, size_out = kernel.extent(Dim.product(x[1:])), kernel.extent(Dim.product(out[1:]))
    plane_in, plane_out, plane = (kernel.extent(Dim.product(d)) for d in (x[2:], out[2:], full))
    m, n, k, row_count = (kernel.extent(d) for d in (taps, pixels, inner, rows))

    def per_image(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        at_in, at_out = b.times(number, size_in), b.times(number, size_out)

        def per_group(g: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            _zero(g, wide, total, g.times(row_count, plane))
            g.add(
                ContractOp(
                    (weights, image, patch),
                    [m, n, k],
                    [g.times(g.times(index, k), m), g.plus(at_in, g.times(g.times(index, k), plane_in)), g.index(0)],
                    [g.index(1), m, n, g.index(1), n],
                )
            )
            copy_nest(
                g,
                spread,
                (patch, 0),
                (total, 0),
                change=lambda at, part, to: at.arithmetic("add", wide, at.load(total, to), part),
            )

            def per_row(r: Body, row: SSAValue, _: Sequence[SSAValue]) -> None:
                channel = r.plus(r.times(index, row_count), row)
                start = r.const(wide, 0) if bias is None else r.convert(r.load(bias, channel), dtype, wide)
                source = r.plus(r.times(row, plane), first)
                copy_nest(
                    r,
                    crop,
                    (total, source),
                    (result, r.plus(at_out, r.times(channel, plane_out))),
                    change=lambda at, sum_, _: at.convert(at.arithmetic("add", wide, sum_, start), wide, dtype),
                )

            g.loop(row_count, per_row)

        b.loop(group, per_group)

    kernel.loop(kernel.extent(x[0]), per_image)
    kernel.launch()


def _transposed_extents(
    op: ConvTransposeOp, windows: Windows, sizes: Sequence[Dim], out: Sequence[Dim]
) -> tuple[list[Dim], list[Dim]]:
    """The extents of the full result (at least what the crop shows) and the padding in front."""
    full: list[Dim] = []
    before: list[Dim] = []
    for at, (size, shown) in enumerate(zip(sizes, out, strict=True)):
        extent = op._full(windows, at, size)
        if op.attr("output_shape") is None and not windows.same:
            first = Dim.of(windows.pads[at][0])
        else:
            total = Dim.max(0, extent - shown)
            small = total // 2
            first = small if windows.auto_pad == "SAME_UPPER" else total - small
        before.append(first)
        full.append(Dim.max(0, extent, first + shown))
    return full, before


def _spread_axes(windows: Windows, rows: Dim, full: Sequence[Dim], sizes: Sequence[Dim]) -> list[Axis]:
    """Where the columns [rows, taps…, positions…] are added in the full result [rows, full…]."""
    place = row_major([rows, *full])
    shape = [rows, *windows.kernel, *sizes]
    target = [place[0]]
    target += [s * d for s, d in zip(place[1:], windows.dilations, strict=True)]
    target += [s * d for s, d in zip(place[1:], windows.strides, strict=True)]
    return [axis(d, s, t) for d, s, t in zip(shape, row_major(shape), target, strict=True)]


def _zero(b: Body, dtype: Any, buffer: SSAValue, count: IndexLike) -> None:
    zero = b.const(dtype, 0)

    def cell(c: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        c.store(zero, buffer, i)

    b.loop(count, cell, vector=True)
