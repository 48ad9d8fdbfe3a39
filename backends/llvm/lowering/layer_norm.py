"""Lowerings of the normalisations over trailing axes: layer_norm, rms_norm, lp_normalization."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.backends.llvm.lowering.row_fusion import RowSpace, joins_rows, lower_alone
from sardonyx.backends.llvm.lowering.row_program import Node, Program
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


def _trailing(op: Any) -> RowSpace:
    dims = dims_of(op.x)
    return RowSpace(dims, tuple(range(op.attr("axis") % len(dims), len(dims))))


def _inverse_root(p: Program, value: Node, epsilon: float) -> Node:
    return p.map(value.dtype, lambda b, v: inverse_root(b, value.dtype, v, epsilon), value)


def _mean(p: Program, value: Node) -> Node:
    total = p.fold(value.dtype, sum_of, value)
    return p.map(value.dtype, lambda b, s, n: b.arithmetic("div", value.dtype, s, n), total, p.count(value.dtype))


def _two(p: Program, fn: str, x: Node, y: Node) -> Node:
    return p.map(x.dtype, lambda b, v, w: b.arithmetic(fn, x.dtype, v, w), x, y)


@joins_rows(LayerNormOp, space=_trailing)
def _join_layer_norm(p: Program, op: LayerNormOp) -> None:
    x = p.value(op.x)
    mean = _mean(p, x)
    centered = _two(p, "sub", x, mean)
    inverse = _inverse_root(p, _mean(p, _two(p, "mul", centered, centered)), float_attr(op, "epsilon"))
    value = _two(p, "mul", _two(p, "mul", centered, inverse), p.convert(p.value(op.scale), x.dtype))
    if op.bias is not None:
        value = _two(p, "add", value, p.convert(p.value(op.bias), x.dtype))
    for tensor, node in ((op.output, value), (op.mean, mean), (op.inv_std_dev, inverse)):
        p.nodes[tensor] = p.rounded(node, dtype_of(tensor))


@joins_rows(RMSNormOp, space=_trailing)
def _join_rms_norm(p: Program, op: RMSNormOp) -> None:
    wide = widest([op.x, op.scale])
    x = p.convert(p.value(op.x), wide)
    inverse = _inverse_root(p, _mean(p, _two(p, "mul", x, x)), float_attr(op, "epsilon"))
    value = _two(p, "mul", _two(p, "mul", x, inverse), p.convert(p.value(op.scale), wide))
    p.nodes[op.output] = p.rounded(value, dtype_of(op.output))


@lowers(LayerNormOp, RMSNormOp)
def _alone(plan: Plan, op: Any) -> None:
    lower_alone(plan, op)


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
