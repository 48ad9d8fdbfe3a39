"""Lowerings of the normalisations: moments over rows in two passes, then the map; 16-bit floats compute in float32."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype
from sardonyx.backends.llvm.lowering.elementwise import nest
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.backends.llvm.lowering.region import broadcast_axes
from sardonyx.backends.llvm.lowering.rows import Row, max_of, rows_of, sum_of
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, float64
from sardonyx.dialects.sx.layer_norm import LayerNormOp, LpNormalizationOp, RMSNormOp
from sardonyx.dialects.sx.norm import BatchNormOp, GroupNormOp, InstanceNormOp, LRNOp
from sardonyx.dialects.sx.support import float_attr


class Reader:
    """Elements of a buffer in the dtype that the kernel computes in."""

    def __init__(self, buffer: SSAValue, dtype: DType, wide: DType) -> None:
        self.buffer, self.dtype, self.wide = buffer, dtype, wide

    def at(self, b: Body, offset: IndexLike) -> SSAValue:
        return b.convert(b.load(self.buffer, offset), self.dtype, self.wide)


def _reader(kernel: Kernel, value: SSAValue, wide: DType) -> Reader:
    return Reader(kernel.read(value), dtype_of(value), wide)


def _moments(
    b: Body, row: Row, count: SSAValue, wide: DType, load: Callable[[Body, IndexLike], SSAValue]
) -> tuple[SSAValue, SSAValue]:
    """Mean and population variance of a row; the variance from the centred elements."""
    number = b.from_index(count, wide)
    (total,) = row.fold(b, [sum_of(b, wide)], lambda inner, at, _: [load(inner, at)])
    center = b.arithmetic("div", wide, total, number)

    def square(inner: Body, at: SSAValue, _: Sequence[SSAValue]) -> list[SSAValue]:
        distance = inner.arithmetic("sub", wide, load(inner, at), center)
        return [inner.arithmetic("mul", wide, distance, distance)]

    (squares,) = row.fold(b, [sum_of(b, wide)], square)
    return center, b.arithmetic("div", wide, squares, number)


def _inverse_root(b: Body, wide: DType, value: SSAValue, epsilon: float) -> SSAValue:
    """1 / sqrt(value + epsilon)."""
    shifted = b.arithmetic("add", wide, value, b.const(wide, epsilon))
    return b.arithmetic("div", wide, b.const(wide, 1), b.math("sqrt", shifted.type, shifted))


def _affine(b: Body, wide: DType, x: SSAValue, center: SSAValue, factor: SSAValue, bias: SSAValue | None) -> SSAValue:
    """(x - center) * factor + bias."""
    value = b.arithmetic("mul", wide, b.arithmetic("sub", wide, x, center), factor)
    return value if bias is None else b.arithmetic("add", wide, value, bias)


# ---- over trailing axes


def _spread(plan: Plan, kernel: Kernel, value: SSAValue, dims: Sequence[Dim]) -> list[SSAValue]:
    """The strides of an operand that broadcasts to `dims`, one per axis."""
    axes = broadcast_axes(plan, dims_of(value), dims)
    return [kernel.outer(plan.dim(a.source) if isinstance(a.source, Dim) else a.source) for a in axes]


def _offset(b: Body, indices: Sequence[SSAValue], strides: Sequence[SSAValue]) -> IndexLike:
    total: IndexLike = 0
    for index, stride in zip(indices, strides, strict=True):
        total = b.plus(total, b.times(index, stride))
    return total


@lowers(LayerNormOp)
def _layer_norm(plan: Plan, op: LayerNormOp) -> None:
    dims, dtype = dims_of(op.x), dtype_of(op.x)
    wide, stash = compute_dtype(dtype), dtype_of(op.mean)
    axis = op.attr("axis") % len(dims)
    epsilon = float_attr(op, "epsilon")
    kernel = plan.kernel("layer_norm")
    x, scale = _reader(kernel, op.x, wide), _reader(kernel, op.scale, wide)
    bias = None if op.bias is None else _reader(kernel, op.bias, wide)
    scale_strides = _spread(plan, kernel, op.scale, dims)
    bias_strides = None if op.bias is None else _spread(plan, kernel, op.bias, dims)
    target = kernel.write(op.output)
    statistics = [kernel.write(r) if any(True for _ in r.uses) else None for r in (op.mean, op.inv_std_dev)]
    count = kernel.outer(plan.count(dims[axis:]))

    def work(b: Body, row: Row) -> None:
        center, variance = _moments(b, row, count, wide, x.at)
        inverse = _inverse_root(b, wide, variance, epsilon)
        for buffer, value in zip(statistics, (center, inverse), strict=True):
            if buffer is not None:
                b.store(b.convert(value, wide, stash), buffer, row.flat)

        def point(inner: Body, at: SSAValue, indices: Sequence[SSAValue]) -> None:
            place = [*row.indices, *indices]
            factor = inner.arithmetic("mul", wide, inverse, scale.at(inner, _offset(inner, place, scale_strides)))
            added = None
            if bias is not None and bias_strides is not None:
                added = bias.at(inner, _offset(inner, place, bias_strides))
            value = _affine(inner, wide, x.at(inner, at), center, factor, added)
            inner.store(inner.convert(value, wide, dtype), target, at)

        row.map(b, point)

    rows_of(plan, kernel, dims, range(axis, len(dims)), merge=False).each(kernel, work)
    kernel.launch()


@lowers(RMSNormOp)
def _rms_norm(plan: Plan, op: RMSNormOp) -> None:
    dims, result = dims_of(op.x), dtype_of(op.output)
    wide = float64 if float64 in (dtype_of(op.x), result) else compute_dtype(result)
    axis = op.attr("axis") % len(dims)
    epsilon = float_attr(op, "epsilon")
    kernel = plan.kernel("rms_norm")
    x, scale = _reader(kernel, op.x, wide), _reader(kernel, op.scale, wide)
    strides = _spread(plan, kernel, op.scale, dims)
    target = kernel.write(op.output)
    count = kernel.outer(plan.count(dims[axis:]))

    def work(b: Body, row: Row) -> None:
        def square(inner: Body, at: SSAValue, _: Sequence[SSAValue]) -> list[SSAValue]:
            value = x.at(inner, at)
            return [inner.arithmetic("mul", wide, value, value)]

        (total,) = row.fold(b, [sum_of(b, wide)], square)
        power = b.arithmetic("div", wide, total, b.from_index(count, wide))
        inverse = _inverse_root(b, wide, power, epsilon)

        def point(inner: Body, at: SSAValue, indices: Sequence[SSAValue]) -> None:
            factor = scale.at(inner, _offset(inner, [*row.indices, *indices], strides))
            value = inner.arithmetic("mul", wide, inner.arithmetic("mul", wide, x.at(inner, at), inverse), factor)
            inner.store(inner.convert(value, wide, result), target, at)

        row.map(b, point)

    rows_of(plan, kernel, dims, range(axis, len(dims)), merge=False).each(kernel, work)
    kernel.launch()


@lowers(LpNormalizationOp)
def _lp_normalization(plan: Plan, op: LpNormalizationOp) -> None:
    dims, dtype = dims_of(op.x), dtype_of(op.x)
    wide = compute_dtype(dtype)
    kernel = plan.kernel("lp_normalization")
    x, target = _reader(kernel, op.x, wide), kernel.write(op.output)

    def magnitude(b: Body, at: SSAValue, _: Sequence[SSAValue]) -> list[SSAValue]:
        value = x.at(b, at)
        return [b.math("abs", value.type, value)]

    def euclidean(b: Body, row: Row) -> SSAValue:
        """Scaled by the largest element, so that no square overflows or vanishes."""
        (largest,) = row.fold(b, [max_of(b, wide)], magnitude)
        infinite = b.const(wide, float("inf"))
        usable = b.both(
            b.compare_scalars("gt", wide, largest, b.const(wide, 0)), b.compare_scalars("lt", wide, largest, infinite)
        )
        safe = b.select(usable, largest, b.const(wide, 1))

        def square(inner: Body, at: SSAValue, _: Sequence[SSAValue]) -> list[SSAValue]:
            scaled = inner.arithmetic("div", wide, x.at(inner, at), safe)
            return [inner.arithmetic("mul", wide, scaled, scaled)]

        (total,) = row.fold(b, [sum_of(b, wide)], square)
        return b.arithmetic("mul", wide, safe, b.math("sqrt", total.type, total))

    def work(b: Body, row: Row) -> None:
        norm = euclidean(b, row) if op.attr("p") == 2 else row.fold(b, [sum_of(b, wide)], magnitude)[0]
        empty = b.compare_scalars("eq", wide, norm, b.const(wide, 0))
        zero = b.const(wide, 0)

        def point(inner: Body, at: SSAValue, _: Sequence[SSAValue]) -> None:
            value = inner.select(empty, zero, inner.arithmetic("div", wide, x.at(inner, at), norm))
            inner.store(inner.convert(value, wide, dtype), target, at)

        row.map(b, point)

    rows_of(plan, kernel, dims, [op.attr("axis") % len(dims)]).each(kernel, work)
    kernel.launch()


# ---- per channel


def _channel_view(dims: Sequence[Dim]) -> tuple[Dim, Dim, Dim]:
    """[N, C, S]: items, channels, and all spatial elements; rank 1 is one channel."""
    one = Dim.of(1)
    return (dims[0], dims[1], Dim.product(dims[2:])) if len(dims) > 1 else (one, one, dims[0])


def _check_channels(plan: Plan, dims: Sequence[Dim], vectors: Sequence[SSAValue]) -> None:
    channels = _channel_view(dims)[1]
    for vector in vectors:
        plan.require_equal(channels, dims_of(vector)[0], "x has {0} channels, a vector per channel has {1} elements")


@lowers(BatchNormOp)
def _batch_norm(plan: Plan, op: BatchNormOp) -> None:
    _check_channels(plan, dims_of(op.x), [op.scale, op.bias, op.mean, op.var])
    if op.attr("training_mode"):
        wide = _widest(op.x, op.scale, op.mean)
        center, spread = _batch_moments(plan, op, wide)
        _apply_per_channel(plan, op, (center, wide), (spread, wide), wide)
        return
    wide = _widest(op.x, op.scale, op.mean)
    statistics = [(plan.buffer(v), dtype_of(v)) for v in (op.mean, op.var)]
    _apply_per_channel(plan, op, statistics[0], statistics[1], wide)
    plan.alias(op.running_mean, op.mean)
    plan.alias(op.running_var, op.var)


def _widest(*values: SSAValue) -> DType:
    found = [compute_dtype(dtype_of(v)) for v in values]
    return float64 if float64 in found else found[0]


def _batch_moments(plan: Plan, op: BatchNormOp, wide: DType) -> tuple[SSAValue, SSAValue]:
    """The batch's mean and variance per channel, and the running statistics."""
    view = _channel_view(dims_of(op.x))
    buffers = [plan.workspace(wide, [plan.dim(view[1])]) for _ in range(2)]
    kernel = plan.kernel("batch_moments")
    x = _reader(kernel, op.x, wide)
    made = [kernel.write_buffer(b) for b in buffers]
    old = [_reader(kernel, v, wide) for v in (op.mean, op.var)]
    running = [kernel.write(r) if any(True for _ in r.uses) else None for r in (op.running_mean, op.running_var)]
    keep = float_attr(op, "momentum")
    count = kernel.outer(plan.count([view[0], view[2]]))

    def work(b: Body, row: Row) -> None:
        found = _moments(b, row, count, wide, x.at)
        for value, buffer, before, out in zip(found, made, old, running, strict=True):
            b.store(value, buffer, row.flat)
            if out is not None:
                kept = b.arithmetic("mul", wide, before.at(b, row.flat), b.const(wide, keep))
                new = b.arithmetic("mul", wide, value, b.const(wide, 1 - keep))
                b.store(b.convert(b.arithmetic("add", wide, kept, new), wide, before.dtype), out, row.flat)

    rows_of(plan, kernel, view, [0, 2], merge=False).each(kernel, work)
    kernel.launch()
    return buffers[0], buffers[1]


def _apply_per_channel(
    plan: Plan, op: BatchNormOp, mean: tuple[SSAValue, DType], variance: tuple[SSAValue, DType], wide: DType
) -> None:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias; without spatial axes the lanes are channels."""
    dtype, view = dtype_of(op.x), _channel_view(dims_of(op.x))
    epsilon = float_attr(op, "epsilon")
    kernel = plan.kernel("batch_norm")
    x = _reader(kernel, op.x, wide)
    center = Reader(kernel.read_buffer(mean[0]), mean[1], wide)
    spread = Reader(kernel.read_buffer(variance[0]), variance[1], wide)
    scale, bias = _reader(kernel, op.scale, wide), _reader(kernel, op.bias, wide)
    target = kernel.write(op.output)
    items, channels, area = (kernel.outer(plan.count([d])) for d in view)

    def constants(b: Body, channel: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
        inverse = _inverse_root(b, wide, spread.at(b, channel), epsilon)
        return center.at(b, channel), b.arithmetic("mul", wide, inverse, scale.at(b, channel)), bias.at(b, channel)

    def put(b: Body, at: IndexLike, known: tuple[SSAValue, SSAValue, SSAValue]) -> None:
        b.store(b.convert(_affine(b, wide, x.at(b, at), *known), wide, dtype), target, at)

    def per_item(b: Body, item: SSAValue, _: Sequence[SSAValue]) -> None:
        def flat_channel(inner: Body, channel: SSAValue, _: Sequence[SSAValue]) -> None:
            put(inner, inner.plus(inner.times(item, channels), channel), constants(inner, channel))

        def per_channel(inner: Body, channel: SSAValue, _: Sequence[SSAValue]) -> None:
            known = constants(inner, channel)
            first = inner.times(inner.plus(inner.times(item, channels), channel), area)

            def element(at: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
                put(at, at.plus(first, i), known)

            inner.loop(area, element, vector=True)

        flat = view[2].static_value == 1
        b.loop(channels, flat_channel if flat else per_channel, vector=flat)

    kernel.loop(items, per_item, parallel=True)
    kernel.launch()


@lowers(InstanceNormOp, GroupNormOp)
def _group_norm(plan: Plan, op: Any) -> None:
    """Rows are the elements of a group of channels of an item; a channel alone is a group of one."""
    dims, dtype = dims_of(op.x), dtype_of(op.x)
    wide = compute_dtype(dtype)
    _check_channels(plan, dims, [op.scale, op.bias])
    items, channels, area = _channel_view(dims)
    groups, size = channels, Dim.of(1)
    if isinstance(op, GroupNormOp):
        groups = Dim.of(op.attr("num_groups"))
        size = channels // op.attr("num_groups")
        if channels.static_value is None:
            index = plan.dim(channels)
            fits = plan.body.compare("eq", plan.body.index_math("floormod", index, groups.static_value or 1), 0)
            plan.body.require(fits, plan.failure(f"{{0}} channels are no multiple of {groups} groups"), index)
    epsilon = float_attr(op, "epsilon")
    kernel = plan.kernel(op.name.removeprefix("sx."))
    x, scale, bias = (_reader(kernel, v, wide) for v in (op.x, op.scale, op.bias))
    target = kernel.write(op.output)
    per_group = kernel.outer(plan.count([size]))
    count = kernel.outer(plan.count([size, area]))

    def work(b: Body, row: Row) -> None:
        center, variance = _moments(b, row, count, wide, x.at)
        inverse = _inverse_root(b, wide, variance, epsilon)
        first = b.times(row.indices[1], per_group)

        def point(inner: Body, at: SSAValue, indices: Sequence[SSAValue]) -> None:
            channel = inner.plus(first, indices[0])
            factor = inner.arithmetic("mul", wide, inverse, scale.at(inner, channel))
            value = _affine(inner, wide, x.at(inner, at), center, factor, bias.at(inner, channel))
            inner.store(inner.convert(value, wide, dtype), target, at)

        row.map(b, point)

    rows_of(plan, kernel, [items, groups, size, area], [2, 3], merge=False).each(kernel, work)
    kernel.launch()


@lowers(LRNOp)
def _lrn(plan: Plan, op: LRNOp) -> None:
    dtype, view = dtype_of(op.x), _channel_view(dims_of(op.x))
    wide, size = compute_dtype(dtype), op.attr("size")
    before = (size - 1) // 2
    kernel = plan.kernel("lrn")
    x, target = _reader(kernel, op.x, wide), kernel.write(op.output)
    bounds = [kernel.outer(plan.count([d])) for d in view]
    _, channels, area = bounds
    factor = kernel.const(wide, float_attr(op, "alpha") / size)
    bias, beta = kernel.const(wide, float_attr(op, "bias")), kernel.const(wide, float_attr(op, "beta"))

    def point(b: Body, where: Sequence[SSAValue], flat: IndexLike) -> None:
        item, channel, place = where
        first = b.index_math("max", 0, b.minus(channel, before))
        last = b.index_math("min", channels, b.plus(channel, size - before))

        def square(inner: Body, other: SSAValue, total: Sequence[SSAValue]) -> list[SSAValue]:
            at = inner.plus(inner.times(inner.plus(inner.times(item, channels), other), area), place)
            value = x.at(inner, at)
            return [inner.arithmetic("add", wide, total[0], inner.arithmetic("mul", wide, value, value))]

        (total,) = b.loop(last, square, [("serial", b.const(wide, 0))], lower=first)
        base = b.arithmetic("add", wide, bias, b.arithmetic("mul", wide, factor, total))
        power = b.math("pow", base.type, base, beta)
        b.store(b.convert(b.arithmetic("div", wide, x.at(b, flat), power), wide, dtype), target, flat)

    nest(kernel, bounds, point)
    kernel.launch()
