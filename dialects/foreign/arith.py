"""`arith`: integers wrap around, floats round to nearest; elementwise on scalars, vectors and tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr, TensorType, VectorType
from xdsl.ir import Operation

from sardonyx.dialects.evaluate import EvalContext, Value, register_evaluator
from sardonyx.dialects.foreign.scalars import Array, numpy_dtype, require, unsigned, width_of
from sardonyx.errors import UnsupportedError


@register_evaluator(arith.ConstantOp)
def _constant(ctx: EvalContext, op: arith.ConstantOp) -> Sequence[Value]:
    value, ty = op.value, op.result.type
    dtype = numpy_dtype(ty)
    if isinstance(value, IntegerAttr | FloatAttr):
        return [np.array(value.value.data).astype(dtype)]
    if isinstance(value, DenseIntOrFPElementsAttr) and isinstance(ty, TensorType | VectorType):
        elements = np.array(list(value.get_values()))
        shape = ty.get_shape()
        full = np.broadcast_to(elements, shape) if elements.size == 1 else elements.reshape(shape)
        return [full.astype(dtype)]
    raise UnsupportedError(f"a constant of {type(value).__name__} has no reference semantics")


def _same(function: Callable[[Array, Array], Any], *ops: type[Operation]) -> None:
    """Register a function of two arrays for elementwise ops; the result has the dtype of its type."""

    @register_evaluator(*ops)
    def evaluate(ctx: EvalContext, op: Operation, a: Array, b: Array) -> Sequence[Value]:
        return [np.asarray(function(a, b)).astype(numpy_dtype(op.results[0].type))]


_same(lambda a, b: unsigned(a) + unsigned(b), arith.AddiOp)
_same(lambda a, b: unsigned(a) - unsigned(b), arith.SubiOp)
_same(lambda a, b: unsigned(a) * unsigned(b), arith.MuliOp)
_same(np.add, arith.AddfOp)
_same(np.subtract, arith.SubfOp)
_same(np.multiply, arith.MulfOp)
_same(np.divide, arith.DivfOp)
_same(np.bitwise_and, arith.AndIOp)
_same(np.bitwise_or, arith.OrIOp)
_same(np.bitwise_xor, arith.XOrIOp)
_same(np.minimum, arith.MinSIOp)
_same(np.maximum, arith.MaxSIOp)
_same(lambda a, b: np.minimum(unsigned(a), unsigned(b)), arith.MinUIOp)
_same(lambda a, b: np.maximum(unsigned(a), unsigned(b)), arith.MaxUIOp)


def _zero(a: Array) -> Array:
    return (np.asarray(a) == 0) & np.signbit(a)


def _minimum(a: Array, b: Array) -> Array:
    """NaN wins, and -0.0 is less than 0.0."""
    return np.where((a == 0) & (b == 0), np.where(_zero(a), a, b), np.minimum(a, b))


def _maximum(a: Array, b: Array) -> Array:
    return np.where((a == 0) & (b == 0), np.where(_zero(a), b, a), np.maximum(a, b))


_same(_minimum, arith.MinimumfOp)
_same(_maximum, arith.MaximumfOp)
_same(lambda a, b: np.where(np.isnan(a), b, np.where(np.isnan(b), a, _minimum(a, b))), arith.MinnumfOp)
_same(lambda a, b: np.where(np.isnan(a), b, np.where(np.isnan(b), a, _maximum(a, b))), arith.MaxnumfOp)


def _quotients(a: Array, b: Array) -> tuple[Array, Array]:
    """Quotient towards zero, and the remainder that belongs to it."""
    a, b = np.asarray(a), np.asarray(b)
    require(b != 0, "a division by zero")
    if a.dtype != np.bool_:
        require((b != -1) | (a != np.iinfo(a.dtype).min), "the least integer divided by -1")
    floor, rest = np.floor_divide(a, b), np.remainder(a, b)
    towards = floor + ((rest != 0) & ((a < 0) != (b < 0)))
    return towards, a - towards * b


@register_evaluator(arith.DivSIOp, arith.FloorDivSIOp, arith.CeilDivSIOp, arith.RemSIOp)
def _signed(ctx: EvalContext, op: Operation, a: Array, b: Array) -> Sequence[Value]:
    quotient, rest = _quotients(a, b)
    differ = (np.asarray(a) < 0) != (np.asarray(b) < 0)
    if isinstance(op, arith.RemSIOp):
        quotient = rest
    elif isinstance(op, arith.FloorDivSIOp):
        quotient = quotient - ((rest != 0) & differ)
    elif isinstance(op, arith.CeilDivSIOp):
        quotient = quotient + ((rest != 0) & ~differ)
    return [np.asarray(quotient).astype(numpy_dtype(op.results[0].type))]


@register_evaluator(arith.DivUIOp, arith.CeilDivUIOp, arith.RemUIOp)
def _unsigned(ctx: EvalContext, op: Operation, a: Array, b: Array) -> Sequence[Value]:
    x, y = unsigned(a), unsigned(b)
    require(y != 0, "a division by zero")
    out = x % y if isinstance(op, arith.RemUIOp) else x // y
    if isinstance(op, arith.CeilDivUIOp):
        out = out + (x % y != 0)
    return [np.asarray(out).astype(numpy_dtype(op.results[0].type))]


@register_evaluator(arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp)
def _shift(ctx: EvalContext, op: Operation, a: Array, b: Array) -> Sequence[Value]:
    amount = unsigned(b)
    require(amount < width_of(op.operands[0].type), "a shift by the width or more")
    if isinstance(op, arith.ShLIOp):
        out = np.left_shift(unsigned(a), amount)
    elif isinstance(op, arith.ShRUIOp):
        out = np.right_shift(unsigned(a), amount)
    else:
        out = np.right_shift(a, np.asarray(b))
    return [np.asarray(out).astype(numpy_dtype(op.results[0].type))]


@register_evaluator(arith.NegfOp)
def _negf(ctx: EvalContext, op: Operation, a: Array) -> Sequence[Value]:
    return [np.negative(a)]


_INTEGER: tuple[Callable[[Array, Array], Any], ...] = (
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
    lambda a, b: unsigned(a) < unsigned(b), lambda a, b: unsigned(a) <= unsigned(b),
    lambda a, b: unsigned(a) > unsigned(b), lambda a, b: unsigned(a) >= unsigned(b),
)  # fmt: skip
"""eq ne slt sle sgt sge ult ule ugt uge"""


@register_evaluator(arith.CmpiOp)
def _cmpi(ctx: EvalContext, op: arith.CmpiOp, a: Array, b: Array) -> Sequence[Value]:
    signed = [(-x.astype(np.int8) if x.dtype == np.bool_ else x) for x in (np.asarray(a), np.asarray(b))]
    return [np.asarray(_INTEGER[op.predicate.value.data](*signed))]


@register_evaluator(arith.CmpfOp)
def _cmpf(ctx: EvalContext, op: arith.CmpfOp, a: Array, b: Array) -> Sequence[Value]:
    number = op.predicate.value.data  # false oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno true
    unordered = np.isnan(a) | np.isnan(b)
    plain = {1: a == b, 2: a > b, 3: a >= b, 4: a < b, 5: a <= b, 6: a != b}
    if number in (0, 15):
        out = np.full(np.shape(a), number == 15)
    elif number in (7, 14):
        out = unordered if number == 14 else ~unordered
    elif number < 7:
        out = plain[number] & ~unordered
    else:
        out = plain[number - 7] | unordered
    return [np.asarray(out)]


@register_evaluator(arith.SelectOp)
def _select(ctx: EvalContext, op: Operation, condition: Array, a: Value, b: Value) -> Sequence[Value]:
    if np.ndim(condition) == 0:
        return [a if condition else b]
    return [np.where(condition, a, b)]


@register_evaluator(arith.ExtFOp, arith.TruncFOp, arith.SIToFPOp, arith.TruncIOp)
def _convert(ctx: EvalContext, op: Operation, a: Array) -> Sequence[Value]:
    a = -a.astype(np.int8) if a.dtype == np.bool_ else a
    target = numpy_dtype(op.results[0].type)
    return [(np.asarray(a) & 1).astype(target) if target == np.bool_ else np.asarray(a).astype(target)]


@register_evaluator(arith.ExtSIOp, arith.IndexCastOp)
def _extend_signed(ctx: EvalContext, op: Operation, a: Array) -> Sequence[Value]:
    target = numpy_dtype(op.results[0].type)
    a = -a.astype(np.int8) if a.dtype == np.bool_ and target != np.bool_ else np.asarray(a)
    return [(a & 1).astype(target) if target == np.bool_ and a.dtype != np.bool_ else a.astype(target)]


@register_evaluator(arith.ExtUIOp, arith.UIToFPOp)
def _extend_unsigned(ctx: EvalContext, op: Operation, a: Array) -> Sequence[Value]:
    return [unsigned(a).astype(numpy_dtype(op.results[0].type))]


@register_evaluator(arith.FPToSIOp, arith.FPToUIOp)
def _to_integer(ctx: EvalContext, op: Operation, a: Array) -> Sequence[Value]:
    target = numpy_dtype(op.results[0].type)
    width = width_of(op.results[0].type)
    whole = np.trunc(np.asarray(a, np.float64))
    low, high = (-(2.0 ** (width - 1)), 2.0 ** (width - 1)) if isinstance(op, arith.FPToSIOp) else (0.0, 2.0**width)
    require(np.isfinite(whole) & (whole >= low) & (whole < high), f"a float beyond {op.results[0].type}")
    kind = np.int64 if isinstance(op, arith.FPToSIOp) else np.uint64
    integer = whole.astype(kind)
    return [(integer & 1).astype(target) if target == np.bool_ else integer.astype(target)]


@register_evaluator(arith.BitcastOp)
def _bitcast(ctx: EvalContext, op: Operation, a: Array) -> Sequence[Value]:
    return [np.ascontiguousarray(a).view(numpy_dtype(op.results[0].type)).reshape(np.shape(a))]


@register_evaluator(arith.MulSIExtendedOp, arith.MulUIExtendedOp, arith.AddUIExtendedOp)
def _extended(ctx: EvalContext, op: Operation, a: Array, b: Array) -> Sequence[Value]:
    if isinstance(op, arith.AddUIExtendedOp):
        total = unsigned(a) + unsigned(b)
        return [total.astype(np.asarray(a).dtype), np.asarray(total < unsigned(a))]
    signed = isinstance(op, arith.MulSIExtendedOp)
    x, y = (np.asarray(v if signed else unsigned(v)).astype(object) for v in (a, b))
    width = width_of(op.operands[0].type)
    product = np.asarray(x * y, dtype=object)
    halves = [np.vectorize(lambda v, s=shift: (int(v) >> s) & ((1 << width) - 1), otypes=[np.uint64])(product)
              for shift in (0, width)]  # fmt: skip
    return [half.astype(f"uint{width}").astype(np.asarray(a).dtype) for half in halves]
