"""Lowerings of conv and conv_transpose: which kernel does it (see the modules named `conv_…`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering import elementwise
from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype
from sardonyx.backends.llvm.lowering.conv_depthwise import depthwise
from sardonyx.backends.llvm.lowering.conv_planes import depthwise_planes, fits_planes
from sardonyx.backends.llvm.lowering.conv_shape import Finish, Sliding, require_fit
from sardonyx.backends.llvm.lowering.conv_tile import convolve, pointwise_planes, suits_planes
from sardonyx.backends.llvm.lowering.conv_transpose import convolve_phases, fits_phases
from sardonyx.backends.llvm.lowering.epilogue import Fused, Point, Stage, chain, result_of, takes_epilogue
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.backends.llvm.lowering.region import Axis, axis, copy_nest, row_major, steps
from sardonyx.backends.llvm.lowering.winograd import outputs_of_tile, winograd
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.kernel.contract import ContractOp
from sardonyx.dialects.sx.conv import ConvOp, ConvTransposeOp
from sardonyx.dialects.sx.windows import Windows, channels_second


def _columns(op: ConvOp) -> int:
    """The result's trailing dims that are columns for an epilogue: the channels, or the pixels."""
    return 1 if op.channels_are_last[1] else len(dims_of(op.output)) - 2


@takes_epilogue(ConvOp, columns=_columns)
def _conv(plan: Plan, op: ConvOp, fused: Fused | None) -> None:
    last = op.channels_are_last
    x, w = channels_second(dims_of(op.x), last[0]), dims_of(op.w)
    out = channels_second(dims_of(op.output), last[1])
    group, dtype = op.attr("group"), dtype_of(op.x)
    plan.require_equal(x[1], w[1] * group, "conv: x has {0} channels, w asks for {1}")
    plan.require_equal(w[0], (w[0] // group) * group, "conv: {0} output channels are no multiple of the group")
    if op.b is not None:
        plan.require_equal(dims_of(op.b)[0], w[0], "conv: b has {0} elements for {1} output channels")
    shape = Sliding.of(plan, op.windows(w[2:]), x, out)
    target = plan.new_buffer(result_of(op, fused))
    operands = (op.x, op.w)
    static = (x[1].static_value, w[0].static_value, w[1].static_value)
    if last == (False, False):
        stage = chain(dtype, _bias(op, False, w[0]), fused)
        if static == (group, group, 1) and fits_planes(plan, shape):
            depthwise_planes(plan, shape, operands, target, stage)
            return
        if shape.is_pointwise and dtype.bits >= 32 and suits_planes(op.w, group):
            pointwise_planes(plan, shape, operands, group, target, stage)
            return
    early = last[1] or fused is None or reads_single_elements(fused)
    stage = Finish(chain(dtype, _bias(op, early, w[0]), fused), early, dtype_of(result_of(op, fused)))
    if static == (group, group, 1):
        depthwise(plan, shape, operands, target, last, stage)
    elif (outputs := outputs_of_tile(op, shape)) is not None:
        winograd(plan, shape, operands, target, last, stage, outputs)
    else:
        convolve(plan, shape, operands, group, target, last, stage)


def reads_single_elements(fused: Fused) -> bool:
    """Whether the group does the same at every place: what it reads has one element."""
    made = {fused.contraction.results[0], *(op.results[0] for op in fused.ops)}
    leaves = {s for op in fused.ops for s in elementwise.read_slots(op) if s is not None and s not in made}
    return all(Dim.product(dims_of(leaf)).static_value == 1 for leaf in leaves)


def _bias(op: ConvOp | ConvTransposeOp, last: bool, channels: Dim) -> Stage | None:
    """Adds the bias in the compute dtype."""
    vector = op.b
    if vector is None:
        return None
    dtype = dtype_of(vector)
    wide = compute_dtype(dtype)

    def stage(kernel: Kernel) -> Point:
        buffer, number = kernel.read(vector), kernel.extent(channels)

        def point(b: Body, total: SSAValue, row: IndexLike, column: IndexLike) -> SSAValue:
            channel = column if last else b.index_math("floormod", row, number)
            return b.arithmetic("add", wide, total, b.convert(b.load(buffer, channel), dtype, wide))

        return point

    return stage


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
    if fits_phases(windows, before):
        bias = chain(dtype, _bias(op, True, w[1] * group), None)
        target = plan.new_buffer(op.output)
        convolve_phases(plan, windows, (op.x, op.w), group, out, before, target, bias)
        return
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
