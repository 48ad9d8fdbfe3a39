"""Lowerings of the normalisations over channels and windows: batch_norm, instance_norm, group_norm, lrn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype
from sardonyx.backends.llvm.lowering.elementwise import nest
from sardonyx.backends.llvm.lowering.layer_norm import (
    Buffer,
    Weight,
    inverse_root,
    is_read,
    moments,
    reads,
    widest,
    writes,
)
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.backends.llvm.lowering.rows import Row, Rows, rows_of
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.sx.norm import BatchNormOp, GroupNormOp, InstanceNormOp, LRNOp
from sardonyx.dialects.sx.support import float_attr


def _require_channels(plan: Plan, dims: Sequence[Dim], vectors: Iterable[SSAValue]) -> Dim:
    """The number of channels (axis 1; one for rank 1), once it is certain that the vectors have as many elements."""
    channels = dims[1] if len(dims) > 1 else Dim.of(1)
    for vector in vectors:
        plan.require_equal(channels, dims_of(vector)[0], "there are {0} channels, but a vector has {1} elements")
    return channels


class _Channels:
    """A kernel over rows with operands per channel: what the four lowerings share."""

    def __init__(
        self,
        plan: Plan,
        name: str,
        dims: Sequence[Dim],
        reduced: Iterable[int],
        x: SSAValue,
        vectors: Sequence[SSAValue],
        shape: Sequence[Dim],
        wide: DType,
    ) -> None:
        axes = list(reduced)
        self.kernel: Kernel = plan.kernel(name)
        self.rows: Rows
        self.rows, places = rows_of(plan, self.kernel, dims, axes, [shape] * len(vectors))
        self.wide = wide
        self.x: Buffer = reads(self.kernel, x, wide)
        self.vectors = [Weight(reads(self.kernel, v, wide), p) for v, p in zip(vectors, places, strict=True)]
        self.length = self.kernel.outer(plan.count([dims[a] for a in axes]))

    def affine(
        self, b: Body, row: Row, target: Buffer, center: SSAValue, inverse: SSAValue, scale: Weight, bias: Weight
    ) -> None:
        """The row as (x - center) * inverse * scale + bias."""
        wide = self.wide
        factor, shift = scale.at(b, row), bias.at(b, row)
        folded = b.arithmetic("mul", wide, inverse, factor(b, [])) if scale.place.is_constant_in_row else None

        def point(inner: Body, at: SSAValue, indices: Sequence[SSAValue]) -> None:
            value = inner.arithmetic("sub", wide, self.x.load(inner, at), center)
            if folded is not None:
                value = inner.arithmetic("mul", wide, value, folded)
            else:
                value = inner.arithmetic("mul", wide, value, inverse)
                value = inner.arithmetic("mul", wide, value, factor(inner, indices))
            target.store(inner, inner.arithmetic("add", wide, value, shift(inner, indices)), at)

        row.map(b, point)


def _by_own_moments(plan: Plan, op: Any, name: str, dims: Sequence[Dim], shape: Sequence[Dim], first: int) -> None:
    """Normalise each row, the axes from `first` on, by its own moments."""
    wide = compute_dtype(dtype_of(op.x))
    made = _Channels(plan, name, dims, range(first, len(dims)), op.x, [op.scale, op.bias], shape, wide)
    target, epsilon = writes(made.kernel, op.output, wide), float_attr(op, "epsilon")

    def point(b: Body, row: Row) -> None:
        mean, variance = moments(b, row, made.x, b.from_index(made.length, wide))
        made.affine(b, row, target, mean, inverse_root(b, wide, variance, epsilon), *made.vectors)

    made.rows.each(made.kernel, point)
    made.kernel.launch()


@lowers(InstanceNormOp)
def _instance_norm(plan: Plan, op: InstanceNormOp) -> None:
    dims = dims_of(op.x)
    channels = _require_channels(plan, dims, [op.scale, op.bias])
    _by_own_moments(plan, op, "instance_norm", dims, [channels, *[Dim.of(1)] * (len(dims) - 2)], 2)


@lowers(GroupNormOp)
def _group_norm(plan: Plan, op: GroupNormOp) -> None:
    """As [N, groups, channels of a group, …]."""
    dims, groups = dims_of(op.x), op.attr("num_groups")
    channels = _require_channels(plan, dims, [op.scale, op.bias])
    if channels.static_value is None:
        count = plan.dim(channels)
        rest = plan.body.index_math("floormod", count, groups)
        failure = plan.failure(f"{{0}} channels are no multiple of {groups} groups")
        plan.body.require(plan.body.compare("eq", rest, 0), failure, count)
    inside = channels.floordiv(groups)
    ones = [Dim.of(1)] * (len(dims) - 2)
    split = [dims[0], Dim.of(groups), inside, *dims[2:]]
    _by_own_moments(plan, op, "group_norm", split, [Dim.of(groups), inside, *ones], 2)


@lowers(BatchNormOp)
def _batch_norm(plan: Plan, op: BatchNormOp) -> None:
    dims, rank = dims_of(op.x), len(dims_of(op.x))
    vectors = [op.scale, op.bias, op.mean, op.var]
    channels = _require_channels(plan, dims, vectors)
    wide, epsilon = widest(op.operands), float_attr(op, "epsilon")
    shape = [channels, *[Dim.of(1)] * max(0, rank - 2)]
    training = op.attr("training_mode")
    axes = [a for a in range(rank) if a != 1] if training else range(2, rank)
    made = _Channels(plan, "batch_norm", dims, axes, op.x, vectors, shape, wide)
    target = writes(made.kernel, op.output, wide)
    scale, bias, mean, variance = made.vectors
    running: list[Buffer | None] = [None, None]
    if training:
        running = [writes(made.kernel, v, wide) if is_read(v) else None for v in (op.running_mean, op.running_var)]
    keep = float_attr(op, "momentum")

    def point(b: Body, row: Row) -> None:
        center, spread = mean.at(b, row)(b, []), variance.at(b, row)(b, [])
        if training:
            old = center, spread
            center, spread = moments(b, row, made.x, b.from_index(made.length, wide))
            for result, before, new in zip(running, old, (center, spread), strict=True):
                if result is not None:
                    kept = b.arithmetic("mul", wide, before, b.const(wide, keep))
                    added = b.arithmetic("mul", wide, new, b.const(wide, 1.0 - keep))
                    result.store(b, b.arithmetic("add", wide, kept, added), row.flat)
        made.affine(b, row, target, center, inverse_root(b, wide, spread, epsilon), scale, bias)

    made.rows.each(made.kernel, point)
    made.kernel.launch()
    if not training:
        for result, given in ((op.running_mean, op.mean), (op.running_var, op.var)):
            if is_read(result):
                plan.alias(result, given)


@lowers(LRNOp)
def _lrn(plan: Plan, op: LRNOp) -> None:
    """x / (bias + alpha / size * s) ** beta, s the sum of squares over a window of channels."""
    dims, wide = dims_of(op.x), compute_dtype(dtype_of(op.x))
    size = op.attr("size")
    before = (size - 1) // 2
    alpha, beta, bias = (float_attr(op, name) for name in ("alpha", "beta", "bias"))
    kernel = plan.kernel("lrn")
    x, target = reads(kernel, op.x, wide), writes(kernel, op.output, wide)
    channels, plane = kernel.extent(dims[1]), kernel.outer(plan.count(dims[2:]))
    window: list[IndexLike] = []

    def enter(b: Body, depth: int, indices: Sequence[SSAValue]) -> None:
        if depth == 2:
            channel = indices[1]
            window[:] = [
                b.index_math("max", b.minus(channel, before), 0),
                b.index_math("min", b.plus(channel, size - before), channels),
                b.times(indices[0], channels),
            ]

    def point(b: Body, indices: Sequence[SSAValue], flat: IndexLike) -> None:
        first, last, image = window

        def square(inner: Body, channel: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            value = x.load(inner, inner.plus(inner.times(inner.plus(image, channel), plane), indices[2]))
            return [inner.arithmetic("add", wide, carried[0], inner.arithmetic("mul", wide, value, value))]

        total = b.loop(last, square, [("add", b.const(wide, 0))], lower=first)[0]
        base = b.math("fma", total.type, total, b.const(wide, alpha / size), b.const(wide, bias))
        target.store(b, b.arithmetic("div", wide, x.load(b, flat), _power(b, wide, base, beta)), flat)

    nest(kernel, [kernel.extent(dims[0]), channels, plane], point, enter)
    kernel.launch()


def _power(b: Body, wide: DType, base: SSAValue, exponent: float) -> SSAValue:
    """base ** exponent; by roots for ONNX's default of 3/4 and for 1/2 (the base's zeros are +0)."""
    root: Callable[[SSAValue], SSAValue] = lambda v: b.math("sqrt", v.type, v)  # noqa: E731
    if exponent == 1.0:
        return base
    if exponent in (0.5, 0.75):
        half = root(base)
        return half if exponent == 0.5 else b.arithmetic("mul", wide, half, root(half))
    return b.math("pow", base.type, base, b.const(wide, exponent))
