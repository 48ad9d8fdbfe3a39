"""Integer arithmetic whose every result is defined, lane by lane.

The bare instructions of division kill the process (SIGFPE) on a zero divisor and on MIN / -1, and in LLVM they are
undefined, as are shifts by the width and conversions out of range. Here: x / 0 = x % 0 = 0, MIN / -1 = MIN with
remainder 0, a count that is negative or reaches the width shifts all bits out, arithmetic wraps around, and a
conversion from float saturates with NaN giving 0. Entries of `INTEGER` are called as
`INTEGER[name](builder, type, *operands)`.
"""

from __future__ import annotations

import math

from sardonyx.backends.llvm.codegen.lanes import Operation, Value, at_least, at_most, fma, lanewise, where
from sardonyx.backends.llvm.codegen.text import FunctionBuilder, LType

TWO_52 = 2.0**52

# A float type that holds every integer of a width, so that its rounded quotient truncates to the exact one: that of
# n*b - c, c >= 1, lies below n by at least the 2^-width-th part, which is far more than half a unit.
EXACT_FLOAT = {8: "float", 16: "float", 32: "double"}


def _safe_divisor(a: Value, b: Value, signed: bool) -> Value:
    """b, or 1 where the division would trap."""
    trapping = b.eq(0)
    if signed:
        trapping = trapping | (b.eq(-1) & a.eq(-(1 << (a.ty.bits - 1))))
    return where(trapping, 1, b)


def _quotient(a: Value, divisor: Value, signed: bool) -> Value:
    """a / divisor towards zero, where that does not trap."""
    builder, ty = a.builder, a.ty
    wide = EXACT_FLOAT.get(ty.bits)
    if not ty.lanes or wide is None:
        return Value(builder, ty, builder.binary("sdiv" if signed else "udiv", ty, a.name, divisor.name))
    # There is no vector division of integers, so up to 32 bits it goes through floats.
    real = ty.with_scalar(wide)
    top, bottom = (
        Value(builder, real, builder.cast("sitofp" if signed else "uitofp", ty, x.name, real)) for x in (a, divisor)
    )
    return Value(builder, ty, builder.cast("fptosi" if signed else "fptoui", real, (top / bottom).name, ty))


def _divide(a: Value, b: Value, signed: bool) -> tuple[Value, Value]:
    """(quotient, remainder) towards zero."""
    divisor = _safe_divisor(a, b, signed)
    quotient = _quotient(a, divisor, signed)
    remainder = a - quotient * divisor
    # The remainder by 1, which stands for a trapping divisor, is 0 already.
    return where(b.eq(0), 0, quotient), remainder


def sdiv(a: Value, b: Value) -> Value:
    """Signed quotient towards zero."""
    return _divide(a, b, True)[0]


def srem(a: Value, b: Value) -> Value:
    """Signed remainder with the dividend's sign, as C's % and fmod."""
    return _divide(a, b, True)[1]


def udiv(a: Value, b: Value) -> Value:
    return _divide(a, b, False)[0]


def urem(a: Value, b: Value) -> Value:
    return _divide(a, b, False)[1]


def _uneven(remainder: Value, b: Value) -> Value:
    """Where the truncated quotient is above the floored one."""
    return remainder.ne(0) & ((remainder ^ b) < 0)


def floordiv(a: Value, b: Value) -> Value:
    """Signed quotient towards minus infinity, as Python's //."""
    quotient, remainder = _divide(a, b, True)
    return where(_uneven(remainder, b), quotient - 1, quotient)


def floormod(a: Value, b: Value) -> Value:
    """Signed remainder with the divisor's sign, as Python's %."""
    remainder = _divide(a, b, True)[1]
    return where(_uneven(remainder, b), remainder + b, remainder)


def _inside(count: Value) -> Value:
    return count.ult(count.ty.bits)


def shl(a: Value, count: Value) -> Value:
    inside = _inside(count)
    return where(inside, a << where(inside, count, 0), 0)


def lshr(a: Value, count: Value) -> Value:
    inside = _inside(count)
    return where(inside, a.lshr(where(inside, count, 0)), 0)


def ashr(a: Value, count: Value) -> Value:
    """With copies of the sign, which are all that is left from the width on."""
    return a.ashr(where(_inside(count), count, count.ty.bits - 1))


def largest_lane(x: Value) -> str:
    """The greatest lane of non-negative integers, as a scalar i64."""
    builder = x.builder
    wide = LType("i64")
    lanes = [builder.extract(x.ty, x.name, lane) for lane in range(x.ty.lanes)] if x.ty.lanes else [x.name]
    best = lanes[0]
    scalar = x.ty.with_lanes(0)
    for lane in lanes[1:]:
        best = builder.select(scalar, builder.icmp("ugt", scalar, best, lane), best, lane)
    return best if scalar == wide else builder.cast("zext", scalar, best, wide)


def _squarings(base: Value, exponent: Value) -> Value:
    """base ^ exponent modulo 2^bits for an exponent taken as unsigned: a loop over the bits that the largest has."""
    builder, ty = base.builder, base.ty
    zeros = builder.intrinsic("llvm.ctlz", ty, [(ty, exponent.name), (LType("i1"), "false")], suffix=ty.mangled)
    length = largest_lane(exponent.like(ty.bits) - Value(builder, ty, zeros))

    def step(_: str, carried: list[str]) -> list[str]:
        result, square, left = (Value(builder, ty, name) for name in carried)
        result = where((left & 1).ne(0), result * square, result)
        return [result.name, (square * square).name, left.lshr(1).name]

    start = [(ty, base.like(1).name), (ty, base.name), (ty, exponent.name)]
    return Value(builder, ty, builder.loop("0", length, "1", step, start)[0])


def pow(base: Value, exponent: Value) -> Value:
    """By squaring, wrapping around. A negative exponent gives 0, except that 1 and -1 keep their powers."""
    negative = exponent < 0
    power = _squarings(base, where(negative, 0, exponent))
    parity = where((exponent & 1).ne(0), base, 1)
    unit = base.eq(1) | base.eq(-1)
    return where(negative, where(unit, parity, 0), power)


def upow(base: Value, exponent: Value) -> Value:
    """By squaring, wrapping around, for an unsigned exponent."""
    return _squarings(base, exponent)


INTEGER: dict[str, Operation] = {
    function.__name__: lanewise(function)
    for function in (sdiv, srem, udiv, urem, floordiv, floormod, shl, lshr, ashr, pow, upow)
}


def float_to_int(b: FunctionBuilder, source: LType, x: str, target: LType, signed: bool = True) -> str:
    """float or double to an integer of the same lanes, towards zero: saturated, NaN gives 0.

    `llvm.fptosi.sat` does the same, but takes vectors apart.
    """
    bits = target.bits
    if not target.lanes and bits == 64:
        name = "llvm.fptosi.sat" if signed else "llvm.fptoui.sat"
        return b.intrinsic(name, target, [(source, x)], suffix=f"{target.mangled}.{source.mangled}")
    value = Value(b, source, x)
    least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    value = where(value.is_nan(), 0.0, value)
    if bits < 32 or (bits == 32 and signed):
        return _clamped_to_word(value, least, most, target).name
    value = value.to_double()
    if bits == 32:
        whole = at_most(at_least(value, least), most).trunc_fraction()
        return ((whole + TWO_52).bits().truncate("i32")).name
    # The bounds are the outermost doubles inside; what lies beyond saturates at the end.
    limit = 2.0 ** (63 if signed else 64)
    whole = at_most(at_least(value, least), math.nextafter(limit, 0.0)).trunc_fraction()
    # Two words of 32 bits, each exact, and turned into integers through the low bits of a large double.
    high = (whole * 2.0**-32).floor()
    low = fma(high, -(2.0**32), whole)
    carrier = 1.5 * TWO_52
    high_word = (high + carrier).bits() << 32
    low_word = (low + TWO_52).bits() & 0xFFFFFFFF
    return where(value >= limit, Value(b, target, x).like(most), high_word | low_word).name


def _clamped_to_word(value: Value, least: int, most: int, target: LType) -> Value:
    """Into at most 32 signed bits, by the CPU's conversion of values that are in range."""
    top = float(most)
    if target.bits == 32 and value.ty.scalar == "float":
        top = 2147483520.0
    inside = at_most(at_least(value, least), top)
    builder, word = value.builder, target.with_scalar("i32")
    converted = Value(builder, word, builder.cast("fptosi", inside.ty, inside.name, word))
    if top < most:
        converted = where(value > top, most, converted)
    return converted.truncate(target.scalar)


def to_bool(b: FunctionBuilder, source: LType, x: str) -> str:
    """x != 0 as an i1 of the same lanes; NaN is true."""
    return Value(b, source, x).ne(0).name
