"""Rounding to integers and the exact remainders of floats, as lane-wise formulas."""

from __future__ import annotations

import math

from sardonyx.backends.llvm.codegen.integer import largest_lane
from sardonyx.backends.llvm.codegen.lanes import BIAS, MANTISSA, Value, fma, where
from sardonyx.backends.llvm.codegen.math_exp import scale
from sardonyx.backends.llvm.codegen.math_log import SMALLEST_NORMAL
from sardonyx.backends.llvm.codegen.text import LType


def floor(x: Value) -> Value:
    return x.floor()


def ceil(x: Value) -> Value:
    return x.ceil()


def trunc(x: Value) -> Value:
    return x.trunc_fraction()


def round_half_even(x: Value) -> Value:
    return x.round_even()


def _significand(x: Value) -> tuple[Value, Value]:
    """x = m 2^e for finite x > 0: (m, an integer of MANTISSA+1 bits as a float, e as an integer)."""
    scalar = x.ty.scalar
    width = MANTISSA[scalar]
    tiny = x < SMALLEST_NORMAL[scalar]
    bits = where(tiny, x * 2.0 ** (width + 1), x).bits()
    exponent = bits.lshr(width) - where(tiny, bits.like(BIAS[scalar] + 2 * width + 1), BIAS[scalar] + width)
    one = (BIAS[scalar] + width) << width
    return ((bits & ((1 << width) - 1)) | one).as_float(), exponent


def fmod(x: Value, y: Value) -> Value:
    """C's fmod, exact: x - trunc(x/y) y with the sign of x. NaN for an infinite x or a zero y.

    A long division in a loop: each turn brings down up to MANTISSA bits of x (half as many without FMA), so there is
    none where |x| < 2|y| in all lanes, and one for quotients up to 2^23 or 2^52.
    """
    builder, scalar, integers = x.builder, x.ty.scalar, x.ty.int_of_width
    a, b = abs(x), abs(y)
    valid = (a < math.inf) & (b > 0.0) & ~b.is_nan()
    regular = valid & (b < math.inf) & (a >= b)
    # Other lanes divide 1 by 1.
    m, e = _significand(where(regular, a, 1.0))
    divisor, divisor_e = _significand(where(regular, b, 1.0))
    fused = builder.target.has_fma
    width = MANTISSA[scalar]
    chunk = width if fused else (width + 1) // 2
    # Without FMA the product with a quotient of `chunk` bits is exact for each half of the divisor.
    upper = (divisor.bits() & -(1 << chunk)).as_float()
    lower = divisor - upper
    rest = where(m >= divisor, m - divisor, m)
    # a >= b, so this is not negative.
    distance = e - divisor_e

    def turn(_: str, carried: list[str]) -> list[str]:
        rest, distance = Value(builder, x.ty, carried[0]), Value(builder, integers, carried[1])
        step = where(distance < chunk, distance, chunk)
        shifted = rest * ((step + BIAS[scalar]) << width).as_float()
        # The quotient may have been rounded up to the next integer, never below the one that it should be.
        quotient = (shifted / divisor).trunc_fraction()
        if fused:
            rest = fma(-quotient, divisor, shifted)
        else:
            rest = (shifted - quotient * upper) - quotient * lower
        rest = where(rest < 0.0, rest + divisor, rest)
        return [rest.name, (distance - step).name]

    wide = LType("i64")
    most = builder.binary("add", wide, largest_lane(distance), str(chunk - 1))
    turns = builder.binary("udiv", wide, most, str(chunk))
    left, _ = builder.loop("0", turns, "1", turn, [(x.ty, rest.name), (integers, distance.name)])
    remainder = scale(Value(builder, x.ty, left), divisor_e)
    result = where(regular, remainder, where(valid, a, math.nan)).copysign(x)
    return where(x.is_nan() | y.is_nan(), x + y, result)


def floormod(x: Value, y: Value) -> Value:
    """Python's %: the remainder with the sign of y, also where it is zero."""
    remainder = fmod(x, y)
    differ = (remainder < 0.0) ^ (y < 0.0)
    return where(remainder.eq(0.0), remainder.copysign(y), where(differ, remainder + y, remainder))
