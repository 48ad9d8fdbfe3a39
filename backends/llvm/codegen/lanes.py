"""Writes lane-wise formulas as Python expressions over a `FunctionBuilder`.

A `Value` is an SSA value with its type and builder, so that a polynomial reads as one. It serves the vector math;
a number that meets a `Value` becomes a literal (a splat) of its type. Comparisons give a mask, never a Python bool.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from sardonyx.backends.llvm.codegen.text import FunctionBuilder, LType, float_literal, literal

# Bits of the significand that are stored, and the exponent's bias.
MANTISSA = {"float": 23, "double": 52}
BIAS = {"float": 127, "double": 1023}

Number = float | int


class Value:
    """One SSA value, scalar or vector; operators work lane by lane."""

    __slots__ = ("builder", "name", "ty")

    def __init__(self, builder: FunctionBuilder, ty: LType, name: str) -> None:
        self.builder = builder
        self.ty = ty
        self.name = name

    def __bool__(self) -> bool:
        raise TypeError("a mask has no truth value while code is built; use where()")

    # ---- making values
    def _operand(self, other: Value | Number) -> str:
        if isinstance(other, Value):
            if other.ty != self.ty:
                raise TypeError(f"operands of {self.ty} and {other.ty}")
            return other.name
        if not self.ty.is_float and self.ty.scalar != "i1":
            half = 1 << (self.ty.bits - 1)
            other = (int(other) + half) % (2 * half) - half
        return literal(self.ty, other)

    def like(self, number: Number) -> Value:
        """The literal of a number in this value's type."""
        return Value(self.builder, self.ty, self._operand(number))

    def _binary(self, opcode: str, other: Value | Number) -> Value:
        return Value(self.builder, self.ty, self.builder.binary(opcode, self.ty, self.name, self._operand(other)))

    def _reversed(self, opcode: str, other: Number) -> Value:
        return Value(self.builder, self.ty, self.builder.binary(opcode, self.ty, self._operand(other), self.name))

    def _compare(self, for_float: str, for_int: str, other: Value | Number) -> Value:
        if self.ty.is_float:
            name = self.builder.fcmp(for_float, self.ty, self.name, self._operand(other))
        else:
            name = self.builder.icmp(for_int, self.ty, self.name, self._operand(other))
        return Value(self.builder, self.ty.mask, name)

    def _cast(self, opcode: str, ty: LType) -> Value:
        return self if ty == self.ty else Value(self.builder, ty, self.builder.cast(opcode, self.ty, self.name, ty))

    # ---- arithmetic, for floats or integers as the type says
    def __add__(self, other: Value | Number) -> Value:
        return self._binary("fadd" if self.ty.is_float else "add", other)

    __radd__ = __add__

    def __sub__(self, other: Value | Number) -> Value:
        return self._binary("fsub" if self.ty.is_float else "sub", other)

    def __rsub__(self, other: Number) -> Value:
        return self._reversed("fsub" if self.ty.is_float else "sub", other)

    def __mul__(self, other: Value | Number) -> Value:
        return self._binary("fmul" if self.ty.is_float else "mul", other)

    __rmul__ = __mul__

    def __truediv__(self, other: Value | Number) -> Value:
        return self._binary("fdiv", other)

    def __rtruediv__(self, other: Number) -> Value:
        return self._reversed("fdiv", other)

    def __neg__(self) -> Value:
        if self.ty.is_float:
            return Value(self.builder, self.ty, self.builder.op(f"fneg {self.ty} {self.name}"))
        return self._reversed("sub", 0)

    def __abs__(self) -> Value:
        return self._unary("llvm.fabs")

    # ---- bits of integers and masks
    def __and__(self, other: Value | Number) -> Value:
        return self._binary("and", other)

    def __or__(self, other: Value | Number) -> Value:
        return self._binary("or", other)

    def __xor__(self, other: Value | Number) -> Value:
        return self._binary("xor", other)

    def __invert__(self) -> Value:
        return self._binary("xor", 1 if self.ty.scalar == "i1" else -1)

    def __lshift__(self, other: Value | Number) -> Value:
        return self._binary("shl", other)

    def lshr(self, other: Value | Number) -> Value:
        """Shift right, filling with zeros; poison when the count is the width or more."""
        return self._binary("lshr", other)

    def ashr(self, other: Value | Number) -> Value:
        """Shift right, filling with the sign; slow for i64 without AVX-512."""
        return self._binary("ashr", other)

    # ---- comparisons: floats ordered (false for NaN) except `ne`, integers signed
    def __lt__(self, other: Value | Number) -> Value:
        return self._compare("olt", "slt", other)

    def __le__(self, other: Value | Number) -> Value:
        return self._compare("ole", "sle", other)

    def __gt__(self, other: Value | Number) -> Value:
        return self._compare("ogt", "sgt", other)

    def __ge__(self, other: Value | Number) -> Value:
        return self._compare("oge", "sge", other)

    def eq(self, other: Value | Number) -> Value:
        return self._compare("oeq", "eq", other)

    def ne(self, other: Value | Number) -> Value:
        """Not equal; true where either is NaN."""
        return self._compare("une", "ne", other)

    def ult(self, other: Value | Number) -> Value:
        """Unsigned less than, for integers."""
        return self._compare("ult", "ult", other)

    def is_nan(self) -> Value:
        return self._compare("uno", "", self)

    # ---- one-operand functions that are instructions
    def _unary(self, intrinsic: str) -> Value:
        return Value(self.builder, self.ty, self.builder.intrinsic(intrinsic, self.ty, [(self.ty, self.name)]))

    def sqrt(self) -> Value:
        return self._unary("llvm.sqrt")

    def floor(self) -> Value:
        return self._unary("llvm.floor")

    def ceil(self) -> Value:
        return self._unary("llvm.ceil")

    def trunc_fraction(self) -> Value:
        return self._unary("llvm.trunc")

    def round_even(self) -> Value:
        return self._unary("llvm.roundeven")

    def copysign(self, sign: Value | Number) -> Value:
        operands = [(self.ty, self.name), (self.ty, self._operand(sign))]
        return Value(self.builder, self.ty, self.builder.intrinsic("llvm.copysign", self.ty, operands))

    # ---- types
    def bits(self) -> Value:
        """A float's representation as an integer of its width."""
        return self._cast("bitcast", self.ty.int_of_width)

    def as_float(self) -> Value:
        """The float (i32) or double (i64) that an integer represents."""
        return self._cast("bitcast", self.ty.with_scalar({"i32": "float", "i64": "double"}[self.ty.scalar]))

    def to_double(self) -> Value:
        return self._cast("fpext", self.ty.with_scalar("double"))

    def to_float(self) -> Value:
        return self._cast("fptrunc", self.ty.with_scalar("float"))

    def zext(self, scalar: str) -> Value:
        return self._cast("zext", self.ty.with_scalar(scalar))

    def sext(self, scalar: str) -> Value:
        return self._cast("sext", self.ty.with_scalar(scalar))

    def truncate(self, scalar: str) -> Value:
        return self._cast("trunc", self.ty.with_scalar(scalar))

    def signed_to(self, scalar: str) -> Value:
        """A signed integer's nearest float."""
        return self._cast("sitofp", self.ty.with_scalar(scalar))


def where(condition: Value, a: Value | Number, b: Value | Number) -> Value:
    """a where the mask is true, else b; at least one of them is a Value."""
    model = a if isinstance(a, Value) else b
    if not isinstance(model, Value):
        raise TypeError("where() needs one value to know the type")
    name = model.builder.select(model.ty, condition.name, model._operand(a), model._operand(b))
    return Value(model.builder, model.ty, name)


def fma(a: Value, b: Value | Number, c: Value | Number) -> Value:
    """a*b + c, fused where the target fuses: callers must not depend on it."""
    return Value(a.builder, a.ty, a.builder.fma(a.ty, a.name, a._operand(b), a._operand(c)))


def horner(x: Value, coefficients: Sequence[float]) -> Value:
    """The polynomial with these coefficients, the constant term first."""
    if len(coefficients) == 1:
        return x.like(coefficients[0])
    result = fma(x, coefficients[-1], coefficients[-2])
    for c in reversed(coefficients[:-2]):
        result = fma(x, result, c)
    return result


def paired(x: Value, coefficients: Sequence[float], last: int = 0) -> Value:
    """As `horner`, with about half its latency for one more product: pairs of terms, then Horner in x^2. The `last`
    lowest terms, whose rounding errors are what is seen, are added one by one."""
    high = coefficients[last:]
    if len(high) <= 1:
        return horner(x, coefficients)
    square = x * x
    terms = [fma(x, high[k + 1], high[k]) if k + 1 < len(high) else x.like(high[k]) for k in range(0, len(high), 2)]
    result = terms[-1]
    for term in reversed(terms[:-1]):
        result = fma(result, square, term)
    for c in reversed(coefficients[:last]):
        result = fma(x, result, c)
    return result


def at_most(x: Value, bound: float) -> Value:
    """min(x, bound); a NaN stays one."""
    return where(x > bound, bound, x)


def at_least(x: Value, bound: float) -> Value:
    """max(x, bound); a NaN stays one."""
    return where(x < bound, bound, x)


def pow2(biased: Value, scalar: str) -> Value:
    """2^(biased - BIAS) of an integer exponent inside the normal range."""
    return (biased << MANTISSA[scalar]).as_float()


def fast_two_sum(a: Value, b: Value | Number) -> tuple[Value, Value]:
    """a + b as a rounded sum and its exact error, for |a| >= |b| or a = 0."""
    total = a + b
    return total, (a.like(b) if not isinstance(b, Value) else b) - (total - a)


def two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """a + b as a rounded sum and its exact error (Knuth)."""
    total = a + b
    back = total - a
    return total, (a - (total - back)) + (b - back)


def two_product(a: Value, b: Value) -> tuple[Value, Value]:
    """a * b as a rounded product and its exact error (by FMA, else Dekker's split: no operand above 2^970)."""
    product = a * b
    if a.builder.target.has_fma:
        return product, fma(a, b, -product)
    (a_hi, a_lo), (b_hi, b_lo) = split(a), split(b)
    return product, ((a_hi * b_hi - product) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo


def split(a: Value) -> tuple[Value, Value]:
    """Two halves of the significand (Veltkamp)."""
    spread = a * {"float": 4097.0, "double": 134217729.0}[a.ty.scalar]
    high = spread - (spread - a)
    return high, a - high


def bit_pattern(scalar: str, number: float) -> int:
    """The representation of a float or double number as an integer."""
    if scalar == "double":
        return int(float_literal(scalar, number), 16)
    return struct.unpack("<I", struct.pack("<f", number))[0]


Operation = Callable[..., str]


def lanewise(function: Callable[..., Value]) -> Operation:
    """Turn a function of Values into one of (builder, type, *operand names) that returns a name."""

    def emit(builder: FunctionBuilder, ty: LType, *operands: str) -> str:
        return function(*(Value(builder, ty, operand) for operand in operands)).name

    emit.__name__ = function.__name__
    emit.__doc__ = function.__doc__
    return emit
