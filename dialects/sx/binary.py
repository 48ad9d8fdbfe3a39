"""Elementwise arithmetic of two operands: add, sub, mul, div, mod, pow, and the bitwise ops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import FLOATS, INTEGERS, NUMERIC, DType, int32, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx import facts
from sardonyx.dialects.sx.numeric import broadcast, double, is_float, narrow, saturate, truncated_quotient, wide
from sardonyx.dialects.sx.support import broadcast_type, check_dtype, same_dtype
from sardonyx.dialects.values import Contents


class BinaryOp(SxOp):
    """Two operands of one dtype, broadcast together.

    (C1) The operands have the same dtype, one of `DTYPES`. (C2) Their shapes broadcast.
    """

    lhs = operand_def()
    rhs = operand_def()
    output = result_def()
    ELEMENTWISE: ClassVar = True
    DTYPES: ClassVar[Sequence[DType]] = NUMERIC
    RESULT: ClassVar[DType | None] = None

    def infer(self) -> Sequence[Attribute]:
        dtype = same_dtype(self, [self.lhs, self.rhs], "(C1)")
        check_dtype(self, self.lhs, self.DTYPES, "(C1)")
        return [broadcast_type(self, self.RESULT or dtype, [self.lhs, self.rhs], "(C2)")]

    def compute(self, a: Array, b: Array) -> Array:
        """The result on operands whose 16-bit floats were widened to float32; it is rounded to the operands' dtype."""
        raise NotImplementedError(f"{self.name} does not define compute()")

    def combine(self, a: Dim, b: Dim) -> Dim | None:
        """What is known of a result element whose operands' elements are these extents, not both numbers."""
        return None

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        a, b = broadcast(self, arrays, "(C2)")
        out = np.asarray(self.compute(wide(a), wide(b)))
        return [out.astype(a.dtype if self.RESULT is None else self.RESULT.numpy)]

    def infer_values(self) -> Sequence[Contents | None]:
        return [facts.elementwise(self, self.combine)]


@irdl_op_definition
class AddOp(BinaryOp):
    """`lhs + rhs`; integers wrap around."""

    name = "sx.add"
    COMMUTATIVE: ClassVar = True
    ONNX: ClassVar = OnnxForm("Add", since=7)

    def compute(self, a: Array, b: Array) -> Array:
        return np.add(a, b)

    def combine(self, a: Dim, b: Dim) -> Dim | None:
        return a + b


@irdl_op_definition
class SubOp(BinaryOp):
    """`lhs - rhs`; integers wrap around."""

    name = "sx.sub"
    ONNX: ClassVar = OnnxForm("Sub", since=7)

    def compute(self, a: Array, b: Array) -> Array:
        return np.subtract(a, b)

    def combine(self, a: Dim, b: Dim) -> Dim | None:
        return a - b


@irdl_op_definition
class MulOp(BinaryOp):
    """`lhs * rhs`; integers wrap around."""

    name = "sx.mul"
    COMMUTATIVE: ClassVar = True
    ONNX: ClassVar = OnnxForm("Mul", since=7)

    def compute(self, a: Array, b: Array) -> Array:
        return np.multiply(a, b)

    def combine(self, a: Dim, b: Dim) -> Dim | None:
        return a * b


@irdl_op_definition
class DivOp(BinaryOp):
    """`lhs / rhs`. Integers divide towards zero; by 0 they give 0, and the least integer by -1 gives itself."""

    name = "sx.div"
    ONNX: ClassVar = OnnxForm("Div", since=7)

    def compute(self, a: Array, b: Array) -> Array:
        return np.divide(a, b) if is_float(a) else truncated_quotient(a, b)

    def combine(self, a: Dim, b: Dim) -> Dim | None:
        if not facts.at_least(b, 1):
            return None
        return a.floordiv(b) if facts.at_least(a, 0) else a.exact_quotient(b)


@irdl_op_definition
class ModOp(BinaryOp):
    """The remainder of `lhs / rhs`: with `fmod` false of the floored quotient (it has the sign of `rhs`, as Python's
    `%`), with `fmod` true of the truncated one (the sign of `lhs`, as C's `fmod`).

    Integers modulo 0 give 0; floats NaN.
    """

    name = "sx.mod"
    ONNX: ClassVar = OnnxForm("Mod", since=10)
    fmod = opt_prop_def(IntegerAttr)
    DEFAULTS: ClassVar = {"fmod": False}

    def compute(self, a: Array, b: Array) -> Array:
        function = np.fmod if self.attr("fmod") else np.mod
        if is_float(a):
            return function(a, b)
        return np.where(b == 0, a.dtype.type(0), function(a, np.where(b == 0, a.dtype.type(1), b)))

    def combine(self, a: Dim, b: Dim) -> Dim | None:
        if not facts.at_least(b, 1) or (self.attr("fmod") and not facts.at_least(a, 0)):
            return None
        return a % b


@irdl_op_definition
class PowOp(BinaryOp):
    """`lhs ** rhs` in the dtype of `lhs`.

    Integers to an integer wrap around; a negative exponent gives 0, except that 1 and -1 keep their powers. An integer
    to a float is computed in float64 and truncated, saturated where it is out of range, NaN 0.

    (C1) The dtype of `lhs` is one of `DTYPES`, that of `rhs` is numeric. (C2) Their shapes broadcast.
    """

    name = "sx.pow"
    ONNX: ClassVar = OnnxForm("Pow", since=12)
    DTYPES: ClassVar = (int32, int64, *FLOATS)

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.lhs, self.DTYPES, "(C1)", "the base")
        check_dtype(self, self.rhs, NUMERIC, "(C1)", "the exponent")
        return [broadcast_type(self, dtype, [self.lhs, self.rhs], "(C2)")]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        a, b = broadcast(self, arrays, "(C2)")
        if not is_float(a):
            return [saturate(_power(double(a), double(b)), a.dtype) if is_float(b) else _integer_power(a, b)]
        if is_float(b):
            return [narrow(_power(double(a), double(b)), a.dtype)]
        # Large integers are no longer odd as float64, so the sign comes from the integer.
        size = _power(np.abs(double(a)), double(b))
        negative = np.signbit(double(a)) & ((b & b.dtype.type(1)) != 0)
        return [narrow(np.where(negative, -size, size), a.dtype)]

    def combine(self, a: Dim, b: Dim) -> Dim | None:
        exponent = b.static_value
        if exponent is None or not 0 <= exponent <= 4:
            return None
        return Dim.product([a] * exponent)


def _power(base: Array, exponent: Array) -> Array:
    """float64 powers with C99's special cases; NumPy takes the root (of -0 too) where the exponent is a scalar 0.5."""
    base, exponent = np.broadcast_arrays(base, exponent)
    return np.power(np.array(base).reshape(-1), np.array(exponent).reshape(-1)).reshape(base.shape)


def _integer_power(base: Array, exponent: Array) -> Array:
    """Powers by squaring, modulo 2 ** bits."""
    base, exponent = np.broadcast_arrays(base, exponent)
    one, zero = base.dtype.type(1), base.dtype.type(0)
    result, square, left = np.full(base.shape, one), base, np.where(exponent < 0, exponent.dtype.type(0), exponent)
    while left.any():
        result = np.where((left & left.dtype.type(1)) != 0, result * square, result)
        square, left = square * square, left >> left.dtype.type(1)
    odd = (exponent & exponent.dtype.type(1)) != 0
    inverse = np.where(base == 1, one, np.where(base == -1, np.where(odd, -one, one), zero))
    return np.where(exponent < 0, inverse, result)


class BitwiseOp(BinaryOp):
    """Two integers of one dtype, bit by bit.

    (C1) The operands have the same integer dtype. (C2) Their shapes broadcast.
    """

    DTYPES: ClassVar = INTEGERS


@irdl_op_definition
class BitShiftOp(BitwiseOp):
    """`lhs` shifted by `rhs` bits. Signed integers shift right with copies of the sign bit; a count that is negative or
    not below the width shifts all bits out.

    (C3) `direction` is "LEFT" or "RIGHT".
    """

    name = "sx.bit_shift"
    ONNX: ClassVar = OnnxForm("BitShift", since=11)
    direction = prop_def(StringAttr)

    def infer(self) -> Sequence[Attribute]:
        if self.attr("direction") not in ("LEFT", "RIGHT"):
            raise self.fail(f"(C3) direction is '{self.attr('direction')}'; allowed: LEFT, RIGHT")
        return super().infer()

    def compute(self, a: Array, b: Array) -> Array:
        zero, bits = a.dtype.type(0), 8 * a.dtype.itemsize
        outside = (b < 0) | (b >= bits)
        count = np.where(outside, zero, b)
        if self.attr("direction") == "LEFT":
            return np.where(outside, zero, np.left_shift(a, count))
        return np.where(outside, np.where(a < 0, ~zero, zero), np.right_shift(a, count))

    def combine(self, a: Dim, b: Dim) -> Dim | None:
        count = b.static_value
        if count is None or not 0 <= count < 31:
            return None
        return a * (1 << count) if self.attr("direction") == "LEFT" else a.floordiv(1 << count)


@irdl_op_definition
class BitwiseAndOp(BitwiseOp):
    """The bits that both operands have."""

    name = "sx.bitwise_and"
    COMMUTATIVE: ClassVar = True
    ONNX: ClassVar = OnnxForm("BitwiseAnd", since=18)

    def compute(self, a: Array, b: Array) -> Array:
        return np.bitwise_and(a, b)


@irdl_op_definition
class BitwiseOrOp(BitwiseOp):
    """The bits that either operand has."""

    name = "sx.bitwise_or"
    COMMUTATIVE: ClassVar = True
    ONNX: ClassVar = OnnxForm("BitwiseOr", since=18)

    def compute(self, a: Array, b: Array) -> Array:
        return np.bitwise_or(a, b)


@irdl_op_definition
class BitwiseXorOp(BitwiseOp):
    """The bits that one operand has and the other has not."""

    name = "sx.bitwise_xor"
    COMMUTATIVE: ClassVar = True
    ONNX: ClassVar = OnnxForm("BitwiseXor", since=18)

    def compute(self, a: Array, b: Array) -> Array:
        return np.bitwise_xor(a, b)
