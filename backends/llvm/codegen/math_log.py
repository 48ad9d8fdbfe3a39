"""The logarithms as lane-wise formulas: log, log2, log1p, softplus, and the inverse hyperbolic functions.

Float uses a polynomial in f = m - 1, double the series of atanh in s = f / (2 + f) (as fdlibm does). All of it holds
without a fused multiply-add.
"""

from __future__ import annotations

import math

from sardonyx.backends.llvm.codegen.lanes import (
    BIAS,
    MANTISSA,
    Value,
    bit_pattern,
    fast_two_sum,
    fma,
    horner,
    two_sum,
    where,
)
from sardonyx.backends.llvm.codegen.math_exp import LN2_HIGH, LN2_LOW, exp

SMALLEST_NORMAL = {"float": 2.0**-126, "double": 2.0**-1022}

# (log(1+f) - f + f^2/2) / f^3 for 1+f in sqrt(1/2) * [1, 2], error relative to log(1+f) (2^-29.8).
LOG_FLOAT = (
    0.3333331346511841,
    -0.25000011920928955,
    0.20002055168151855,
    -0.16667801141738892,
    0.14220772683620453,
    -0.12410146743059158,
    0.118831105530262,
    -0.11644395440816879,
    0.06720052659511566,
)
# (2 atanh(s)/s - 2) / s^2 with s = f/(2+f) (2^-58.5).
LOG_DOUBLE = (
    0.6666666666666735,
    0.3999999999940938,
    0.28571428743677163,
    0.22222198430089699,
    0.18183572293548447,
    0.153138337838979,
    0.14798242136687276,
)


def split_exponent(x: Value, subnormals: bool = True) -> tuple[Value, Value]:
    """x = m 2^k with m in sqrt(1/2) * [1, 2]: (k as a float, m), for finite x > 0."""
    scalar = x.ty.scalar
    bias, width = BIAS[scalar], MANTISSA[scalar]
    offset: Value | float = float(bias)
    if subnormals:
        tiny = x < SMALLEST_NORMAL[scalar]
        x = where(tiny, x * 2.0 ** (width + 1), x)
        offset = where(tiny, x.like(float(bias + width + 1)), float(bias))
    root = bit_pattern(scalar, math.sqrt(0.5))
    shifted = x.bits() + (bit_pattern(scalar, 1.0) - root)
    # The exponent becomes a float through the low bits of 2^MANTISSA: i64 has no conversion of its own on AVX2.
    carrier = 2.0**width
    k = (shifted.lshr(width) | bit_pattern(scalar, carrier)).as_float() - carrier
    m = ((shifted & ((1 << width) - 1)) + root).as_float()
    return k - offset, m


def log_of_one_plus(f: Value) -> Value:
    """log(1+f) - f for 1+f in sqrt(1/2) * [1, 2]."""
    square = f * f
    half = square * 0.5
    if f.ty.scalar == "float":
        return fma(square * f, horner(f, LOG_FLOAT), -half)
    s = f / (f + 2.0)
    z = s * s
    return fma(s, fma(z, horner(z, LOG_DOUBLE), half), -half)


def log_parts(k: Value, f: Value, correction: Value | None = None) -> Value:
    """k ln 2 + log(1+f), plus a correction that is small beside f's last place or f is 0."""
    scalar = f.ty.scalar
    tail = log_of_one_plus(f)
    if correction is not None:
        tail = tail + correction
    total, error = fast_two_sum(k * LN2_HIGH[scalar], f)
    return total + (fma(k, LN2_LOW[scalar], error) + tail)


def with_log_limits(x: Value, result: Value, zero: float = 0.0) -> Value:
    """The result where `zero` < x < inf; -inf at `zero`; x at inf and NaN; NaN below."""
    limits = where(x.eq(zero), -math.inf, where(x > zero, x, where(x.is_nan(), x, math.nan)))
    return where((x > zero) & (x < math.inf), result, limits)


def log(x: Value) -> Value:
    k, m = split_exponent(x)
    return with_log_limits(x, log_parts(k, m - 1.0))


# 1/ln 2 in two parts.
INVERSE_LN2_HIGH = {"float": 1.44287109375, "double": 1.44269504072144627571e00}
INVERSE_LN2_LOW = {"float": -1.7605285393e-4, "double": 1.67517131648865118353e-10}


def log2(x: Value) -> Value:
    scalar = x.ty.scalar
    k, m = split_exponent(x)
    f = m - 1.0
    # log(1+f) as high + low, the high part with so few bits that its product with the constant is exact.
    tail = log_of_one_plus(f)
    high = ((f + tail).bits() & -(1 << {"float": 12, "double": 32}[scalar])).as_float()
    low = (f - high) + tail
    inverse_high, inverse_low = INVERSE_LN2_HIGH[scalar], INVERSE_LN2_LOW[scalar]
    rest = fma(low, inverse_high, (low + high) * inverse_low)
    total, error = fast_two_sum(k, high * inverse_high)
    return with_log_limits(x, total + (error + rest))


def log1p_of_finite(x: Value) -> Value:
    """log(1+x) for finite x > -1."""
    u, error = two_sum(x.like(1.0), x)
    k, m = split_exponent(u, subnormals=False)
    tiny = {"float": 2.0**-25, "double": 2.0**-54}[x.ty.scalar]
    return where(abs(x) < tiny, x, log_parts(k, m - 1.0, error / u))


def log1p(x: Value) -> Value:
    return with_log_limits(x, log1p_of_finite(x), -1.0)


def softplus(x: Value) -> Value:
    """log(1 + e^x), stable: max(x, 0) + log1p(e^-|x|)."""
    return where(x < 0.0, 0.0, x) + log1p_of_finite(exp(-abs(x)))


def asinh(x: Value) -> Value:
    a = abs(x)
    # Beyond `big` asinh(a) = log(2a), and a^2 might overflow.
    big = a > {"float": 2.0**26, "double": 2.0**55}[x.ty.scalar]
    square = a * a
    argument = where(big, a, a + square / ((square + 1.0).sqrt() + 1.0))
    result = log1p_of_finite(argument) + where(big, x.like(math.log(2)), 0.0)
    return where(a < math.inf, result, a).copysign(x)


def acosh(x: Value) -> Value:
    t = x - 1.0
    big = x > {"float": 2.0**26, "double": 2.0**55}[x.ty.scalar]
    argument = where(big, x, t + fma(t, t, t + t).sqrt())
    result = log1p_of_finite(argument) + where(big, x.like(math.log(2)), 0.0)
    return where(x < 1.0, math.nan, where(x < math.inf, result, x))


def atanh(x: Value) -> Value:
    a = abs(x)
    result = log1p_of_finite((a + a) / (1.0 - a)) * 0.5
    limits = where(a.eq(1.0), math.inf, where(a.is_nan(), a, math.nan))
    tiny = {"float": 2.0**-13, "double": 2.0**-28}[x.ty.scalar]
    return where(a < tiny, a, where(a < 1.0, result, limits)).copysign(x)
