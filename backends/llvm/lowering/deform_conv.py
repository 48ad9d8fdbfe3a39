"""Lowering of deform_conv: the moved elements are gathered into columns, which the weights multiply."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.conv_shape import paddings, require_fit
from sardonyx.backends.llvm.lowering.epilogue import Point
from sardonyx.backends.llvm.lowering.matmul import Matrix, contract
from sardonyx.backends.llvm.lowering.number import Number
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.backends.llvm.lowering.region import fill_buffer
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, float32, float64
from sardonyx.dialects.sx.deform_conv import DeformConvOp


@lowers(DeformConvOp)
def _deform_conv(plan: Plan, op: DeformConvOp) -> None:
    x, w, out, dtype = dims_of(op.x), dims_of(op.w), dims_of(op.output), dtype_of(op.x)
    group, groups = op.attr("group"), op.attr("offset_group")
    _check(plan, op, group, groups)
    require_fit(plan, out[2:])
    wide = float64 if dtype == float64 else float32
    cells = w[2] * w[3]
    # columns [N, C * kH * kW, oH * oW]
    extents = [plan.dim(d) for d in (x[0], x[1], cells, out[2], out[3])]
    columns = plan.workspace(wide, extents)
    body, total = plan.body, plan.body.index(1)
    for extent in extents:
        total = plan.product(total, extent)
    empty = body.compare("eq", plan.count(x[2:]), 0)
    fill_buffer(plan, wide, columns, body.select(empty, total, body.index(0)), 0)  # windows of padding alone
    _columns(plan, op, columns, wide, groups)
    if dtype == wide:
        _contraction(plan, op, columns, group)
    else:
        _products(plan, op, columns, wide, group)


def _check(plan: Plan, op: DeformConvOp, group: int, groups: int) -> None:
    x, w, out, body = dims_of(op.x), dims_of(op.w), dims_of(op.output), plan.body
    plan.require_equal(w[1] * group, x[1], "w has {0} channels in all groups, the operand {1}")
    for size, parts in ((x[1], group), (x[1], groups), (w[0], group)):
        if size.static_value is None:
            rest = body.index_math("floormod", plan.dim(size), parts)
            body.require(
                body.compare("eq", rest, 0), plan.failure(f"{{0}} channels don't make {parts} groups"), plan.dim(size)
            )
    for extent in w[2:]:
        some = body.compare("sge", plan.dim(extent), 1)
        body.require(some, plan.failure("the weights have no cells"))
    kernel_shape = op.attr("kernel_shape")
    if kernel_shape is not None:
        for have, said in zip(w[2:], kernel_shape, strict=True):
            plan.require_equal(have, Dim.of(said), "w has {0} cells along an axis, kernel_shape says {1}")
    cells = w[2] * w[3] * groups
    for value, count, what in ((op.offset, cells * 2, "offset"), (op.mask, cells, "mask")):
        if value is not None:
            for a, (have, want) in enumerate(zip(dims_of(value), (x[0], count, out[2], out[3]), strict=True)):
                plan.require_equal(have, want, f"{what} has {{0}} elements along axis {a}, not {{1}}")
    if op.b is not None:
        plan.require_equal(dims_of(op.b)[0], w[0], "b has {0} elements for {1} channels")


def _columns(plan: Plan, op: DeformConvOp, columns: SSAValue, wide: DType, groups: int) -> None:
    """One kernel row and channel group at a time; places in float64, as the reference has them."""
    x, w, out, dtype = dims_of(op.x), dims_of(op.w), dims_of(op.output), dtype_of(op.x)
    windows = op.windows(w[2:])
    pads = paddings(windows, x[2:], out[2:])
    kernel = plan.kernel("deform_columns")
    read, offsets, write = kernel.read(op.x), kernel.read(op.offset), kernel.write_buffer(columns)
    mask = None if op.mask is None else kernel.read(op.mask)
    channels, height, width = (Number.index(kernel, kernel.extent(d)) for d in x[1:])
    tall, broad = (Number.index(kernel, kernel.extent(d)) for d in w[2:])
    rows, across = (Number.index(kernel, kernel.extent(d)) for d in out[2:])
    before = [Number.index(kernel, kernel.extent(b)) for b, _ in pads]
    cells, pixels, plane = tall * broad, rows * across, height * width
    per_group = channels // groups
    sizes = [height.to(float64), width.to(float64)]

    def unit(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        """One image, offset group, cell and row of the result."""
        flat = Number.index(b, number)
        i, rest = flat % rows, flat // rows
        cell, rest = rest % cells, rest // cells
        g, n = rest % groups, rest // groups
        ky, kx = cell // broad, cell % broad
        base_y = (i * windows.strides[0] - before[0] + ky * windows.dilations[0]).to(float64)
        at = ((n * groups + g) * cells + cell) * 2 * pixels + i * across
        at_mask = ((n * groups + g) * cells + cell) * pixels + i * across

        def place(v: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            j = Number.index(v, index)
            base_x = (j * windows.strides[1] - before[1] + kx * windows.dilations[1]).to(float64)
            y = Number.load(v, offsets, at + j, dtype, float64) + base_y
            z = Number.load(v, offsets, at + pixels + j, dtype, float64) + base_x
            spots: list[tuple[Number, Number, Number]] = []
            (top, part_y), (left, part_x) = (_cornered(p, s) for p, s in zip((y, z), sizes, strict=True))
            for row, wy in ((top, 1.0 - part_y), (top + 1.0, part_y)):
                for column, wx in ((left, 1.0 - part_x), (left + 1.0, part_x)):
                    inside = row.ge(0.0) & row.lt(sizes[0]) & column.ge(0.0) & column.lt(sizes[1])
                    weight = inside.where(wy * wx, 0.0)
                    yy = row.clip(0.0, sizes[0] - 1.0).max(0.0).to_index()
                    xx = column.clip(0.0, sizes[1] - 1.0).max(0.0).to_index()
                    spots.append((yy * width + xx, weight.ne(0.0), weight.to(wide)))
            scale = None if mask is None else Number.load(v, mask, at_mask + j, dtype, wide)

            def channel(c: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
                own = g * per_group + Number.index(c, k)
                image = (n * channels + own) * plane
                total = Number.const(kernel, 0.0, wide)
                for offset, counts, weight in spots:
                    value = Number.load(c, read, image + offset, dtype, wide)
                    total = counts.where(total + value * weight, total)
                result = total if scale is None else total * scale
                result.store(write, ((n * channels + own) * cells + cell) * pixels + i * across + j, wide, c)

            v.loop(per_group.value, channel)

        b.loop(across.value, place, vector=True)

    total = Number.index(kernel, kernel.extent(x[0])) * groups * cells * rows
    some = (plane * channels).gt(0)
    nothing = Number.index(kernel, 0)
    kernel.loop(some.where(total, nothing).value, unit, parallel=True)
    kernel.launch()


def _cornered(x: Number, size: Number) -> tuple[Number, Number]:
    """The neighbour before a coordinate, and how far it is behind that. Beyond the image all places are alike."""
    nan = x.ne(x)
    near = nan.where(Number.const(x.body, -2.0), x.clip(-2.0, size + 1.0))
    low = near.floor()
    return low, near - low


def _contraction(plan: Plan, op: DeformConvOp, columns: SSAValue, group: int) -> None:
    """Each group's weights [M / group, depth] times its columns [depth, pixels]."""
    x, w, out, dtype = dims_of(op.x), dims_of(op.w), dims_of(op.output), dtype_of(op.x)
    rows, depth, pixels = w[0] // group, w[1] * w[2] * w[3], out[2] * out[3]
    batch: list[tuple[SSAValue, SSAValue, SSAValue]] = []
    if x[0].static_value != 1:
        batch.append((plan.dim(x[0]), plan.dim(0), plan.dim(depth * group * pixels)))
    if group > 1:
        batch.append((plan.dim(group), plan.dim(rows * depth), plan.dim(depth * pixels)))

    def stage(kernel: Kernel) -> Point:
        bias = None if op.b is None else kernel.read(op.b)
        maps = kernel.extent(w[0])

        def point(b: Body, total: SSAValue, row: IndexLike, column: IndexLike) -> SSAValue:
            if bias is None:
                return total
            return b.arithmetic("add", dtype, total, b.load(bias, b.index_math("floormod", row, maps)))

        return point

    contract(
        plan, "deform_product", dtype, Matrix(plan.buffer(op.w), depth, Dim.of(1)), Matrix(columns, pixels, Dim.of(1)),
        plan.new_buffer(op.output), (rows, pixels, depth), batch, stage,
    )  # fmt: skip


def _products(plan: Plan, op: DeformConvOp, columns: SSAValue, wide: DType, group: int) -> None:
    """The same for weights of 16 bits, whose columns are of float32: a row of the result at a time."""
    x, w, out, dtype = dims_of(op.x), dims_of(op.w), dims_of(op.output), dtype_of(op.x)
    kernel = plan.kernel("deform_product")
    read, weights, write = kernel.read_buffer(columns), kernel.read(op.w), kernel.write(op.output)
    bias = None if op.b is None else kernel.read(op.b)
    maps = Number.index(kernel, kernel.extent(w[0]))
    depth = Number.index(kernel, kernel.extent(w[1] * w[2] * w[3]))
    pixels = Number.index(kernel, kernel.extent(out[2] * out[3]))
    per_group = maps // group

    def row(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        flat = Number.index(b, number)
        n, m = flat // maps, flat % maps
        start = (n * group + m // per_group) * depth * pixels
        first = m * depth
        added = Number.const(kernel, 0.0, wide) if bias is None else Number.load(b, bias, m, dtype, wide)

        def pixel(v: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            p = Number.index(v, index)

            def step(c: Body, k: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
                own = Number.index(c, k)
                weight = Number.load(c, weights, first + own, dtype, wide)
                value = Number.load(c, read, start + own * pixels + p, wide)
                return [value.fn("fma", weight, Number(c, carried[0], wide)).value]

            (total,) = v.loop(depth.value, step, [("serial", kernel.const(wide, 0))])
            (Number(v, total, wide) + added).store(write, flat * pixels + p, dtype, v)

        b.loop(pixels.value, pixel, vector=True)

    kernel.loop(kernel.outer(plan.product(plan.dim(x[0]), plan.dim(w[0]))), row, parallel=True)
    kernel.launch()
