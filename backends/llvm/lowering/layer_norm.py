"""Lowerings of the normalisations over trailing axes: layer_norm, rms_norm, lp_normalization."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.backends.llvm.lowering.rows import Placed, Row, max_of, rows_of, sum_of
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dtypes import DType, float32, float64
from sardonyx.dialects.sx.layer_norm import LayerNormOp, LpNormalizationOp, RMSNormOp
from sardonyx.dialects.sx.support import float_attr


@dataclass(frozen=True)
class Buffer:
    """A tensor inside a kernel, read and written in a compute dtype."""

    buffer: SSAValue
    dtype: DType
    wide: DType

    def load(self, b: Body, offset: IndexLike) -> SSAValue:
        return b.convert(b.load(self.buffer, offset), self.dtype, self.wide)

    def store(self, b: Body, value: SSAValue, offset: IndexLike) -> None:
        b.store(b.convert(value, self.wide, self.dtype), self.buffer, offset)


def reads(kernel: Kernel, value: SSAValue, wide: DType) -> Buffer:
    return Buffer(kernel.read(value), dtype_of(value), wide)


def writes(kernel: Kernel, value: SSAValue, wide: DType) -> Buffer:
    return Buffer(kernel.write(value), dtype_of(value), wide)


def widest(values: Sequence[SSAValue]) -> DType:
    """float64 where an operand has it, else float32."""
    return float64 if any(dtype_of(v) == float64 for v in values) else float32


def is_read(value: SSAValue) -> bool:
    """Whether anything uses a value."""
    return next(iter(value.uses), None) is not None


@dataclass(frozen=True)
class Weight:
    """An operand that broadcasts over the normalised tensor."""

    tensor: Buffer
    place: Placed

    def at(self, b: Body, row: Row) -> Callable[[Body, Sequence[SSAValue]], SSAValue]:
        """The operand's element along a row; it is loaded here, once, where the row has only one."""
        if self.place.is_constant_in_row:
            value = self.tensor.load(b, self.place.offset(b, row, []))
            return lambda inner, indices: value
        return lambda inner, indices: self.tensor.load(inner, self.place.offset(inner, row, indices))


def mean_of(b: Body, row: Row, wide: DType, count: SSAValue, term: Callable[[Body, SSAValue], SSAValue]) -> SSAValue:
    """The mean of `term(b, offset)` over a row of `count` elements, a float."""
    total = row.fold(b, [sum_of(b, wide)], lambda inner, at, _: [term(inner, at)])[0]
    return b.arithmetic("div", wide, total, count)


def moments(b: Body, row: Row, x: Buffer, count: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Mean and population variance of a row, the variance about the mean in a second pass."""
    wide = x.wide
    mean = mean_of(b, row, wide, count, x.load)

    def square(inner: Body, at: SSAValue) -> SSAValue:
        centered = inner.arithmetic("sub", wide, x.load(inner, at), mean)
        return inner.arithmetic("mul", wide, centered, centered)

    return mean, mean_of(b, row, wide, count, square)


def inverse_root(b: Body, wide: DType, value: SSAValue, epsilon: float) -> SSAValue:
    """1 / sqrt(value + epsilon)."""
    root = b.math("sqrt", value.type, b.arithmetic("add", wide, value, b.const(wide, epsilon)))
    return b.arithmetic("div", wide, b.const(wide, 1), root)


@lowers(LayerNormOp)
def _layer_norm(plan: Plan, op: LayerNormOp) -> None:
    dims, wide = dims_of(op.x), compute_dtype(dtype_of(op.x))
    axis = op.attr("axis") % len(dims)
    operands = [v for v in (op.scale, op.bias) if v is not None]
    kernel = plan.kernel("layer_norm")
    rows, places = rows_of(plan, kernel, dims, range(axis, len(dims)), [dims_of(v) for v in operands])
    x, weights = reads(kernel, op.x, wide), [Weight(reads(kernel, v, wide), p) for v, p in zip(operands, places)]
    target = writes(kernel, op.output, wide)
    statistics = [writes(kernel, v, wide) if is_read(v) else None for v in (op.mean, op.inv_std_dev)]
    length, epsilon = kernel.outer(plan.count(dims[axis:])), float_attr(op, "epsilon")

    def point(b: Body, row: Row) -> None:
        mean, variance = moments(b, row, x, b.from_index(length, wide))
        inverse = inverse_root(b, wide, variance, epsilon)
        for result, value in zip(statistics, (mean, inverse), strict=True):
            if result is not None:
                result.store(b, value, row.flat)
        elements = [w.at(b, row) for w in weights]

        def normalise(inner: Body, at: SSAValue, indices: Sequence[SSAValue]) -> None:
            value = inner.arithmetic("sub", wide, x.load(inner, at), mean)
            value = inner.arithmetic("mul", wide, value, inverse)
            value = inner.arithmetic("mul", wide, value, elements[0](inner, indices))
            if len(elements) > 1:
                value = inner.arithmetic("add", wide, value, elements[1](inner, indices))
            target.store(inner, value, at)

        row.map(b, normalise)

    rows.each(kernel, point)
    kernel.launch()


@lowers(RMSNormOp)
def _rms_norm(plan: Plan, op: RMSNormOp) -> None:
    dims, wide = dims_of(op.x), widest([op.x, op.scale])
    axis = op.attr("axis") % len(dims)
    kernel = plan.kernel("rms_norm")
    rows, places = rows_of(plan, kernel, dims, range(axis, len(dims)), [dims_of(op.scale)])
    x, scale = reads(kernel, op.x, wide), Weight(reads(kernel, op.scale, wide), places[0])
    target = writes(kernel, op.output, wide)
    length, epsilon = kernel.outer(plan.count(dims[axis:])), float_attr(op, "epsilon")

    def point(b: Body, row: Row) -> None:
        def square(inner: Body, at: SSAValue) -> SSAValue:
            value = x.load(inner, at)
            return inner.arithmetic("mul", wide, value, value)

        power = mean_of(b, row, wide, b.from_index(length, wide), square)
        inverse = inverse_root(b, wide, power, epsilon)
        factor = scale.at(b, row)

        def normalise(inner: Body, at: SSAValue, indices: Sequence[SSAValue]) -> None:
            value = inner.arithmetic("mul", wide, x.load(inner, at), inverse)
            target.store(inner, inner.arithmetic("mul", wide, value, factor(inner, indices)), at)

        row.map(b, normalise)

    rows.each(kernel, point)
    kernel.launch()


@lowers(LpNormalizationOp)
def _lp_normalization(plan: Plan, op: Any) -> None:
    dims, wide = dims_of(op.x), compute_dtype(dtype_of(op.x))
    axis = op.attr("axis") % len(dims)
    kernel = plan.kernel("lp_normalization")
    rows, _ = rows_of(plan, kernel, dims, [axis])
    x, target = reads(kernel, op.x, wide), writes(kernel, op.output, wide)

    def magnitude(inner: Body, at: SSAValue, _: Sequence[SSAValue]) -> list[SSAValue]:
        value = x.load(inner, at)
        return [inner.math("abs", value.type, value)]

    def euclidean(b: Body, row: Row) -> SSAValue:
        """Scaled by the largest element, so that no square overflows or vanishes."""
        largest = row.fold(b, [max_of(b, wide)], magnitude)[0]
        zero, infinite = b.const(wide, 0), b.const(wide, float("inf"))
        usable = b.both(b.compare_scalars("gt", wide, largest, zero), b.compare_scalars("lt", wide, largest, infinite))
        safe = b.select(usable, largest, b.const(wide, 1))

        def square(inner: Body, at: SSAValue, _: Sequence[SSAValue]) -> list[SSAValue]:
            part = inner.arithmetic("div", wide, x.load(inner, at), safe)
            return [inner.arithmetic("mul", wide, part, part)]

        total = row.fold(b, [sum_of(b, wide)], square)[0]
        return b.arithmetic("mul", wide, safe, b.math("sqrt", total.type, total))

    def point(b: Body, row: Row) -> None:
        norm = euclidean(b, row) if op.attr("p") == 2 else row.fold(b, [sum_of(b, wide)], magnitude)[0]
        vanishes = b.compare_scalars("eq", wide, norm, b.const(wide, 0))

        def divide(inner: Body, at: SSAValue, _: Sequence[SSAValue]) -> None:
            quotient = inner.arithmetic("div", wide, x.load(inner, at), norm)
            target.store(inner, inner.select(vanishes, inner.const(wide, 0), quotient), at)

        row.map(b, divide)

    rows.each(kernel, point)
    kernel.launch()
