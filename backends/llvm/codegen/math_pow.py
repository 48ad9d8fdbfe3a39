"""pow(x, y) as a lane-wise formula with C99's special cases.

|x|^y = 2^(y log2 |x|). For float the logarithm is one double; for double a pair (about 2^-65), since the product with
y may be up to 1074 and its error becomes the result's relative error.
"""

from __future__ import annotations

import math

from sardonyx.backends.llvm.codegen.lanes import (
    Value,
    at_least,
    at_most,
    fast_two_sum,
    fma,
    horner,
    pow2,
    two_product,
    two_sum,
    where,
)
from sardonyx.backends.llvm.codegen.math_exp import EXP2, nearest_integer, scale
from sardonyx.backends.llvm.codegen.math_log import split_exponent

# 2/ln2 atanh(s)/s in z = s^2 (2^-50) and (2^f - 1)/f (2^-34), in double for float results.
LOG2_SERIES = (
    2.885390081777927,
    0.961796693924406,
    0.5770780172302169,
    0.41219840357866233,
    0.32061631936800694,
    0.2614456681484015,
    0.242905672238942,
)
EXP2_SHORT = (
    0.6931471805404346,
    0.2402265107648049,
    0.055504109697739744,
    0.009618036541805184,
    0.0013333420131455675,
    0.00015467253957717985,
    1.5318207743788655e-05,
)
# 3 (atanh(s)/s - 1 - z/3)/z^2 (2^-73), and 2/(3 ln 2) in two parts.
ATANH_TAIL = (
    0.5999999999999996,
    0.428571428571688,
    0.3333333332602973,
    0.2727272833913221,
    0.23076833015299075,
    0.20004564089785112,
    0.1751044574819659,
    0.17998333196605976,
)
SERIES_SCALE_HIGH = 0.9617966939259756
SERIES_SCALE_LOW = 5.0577616648125907e-17


def magnitude_float(a: Value, y: Value) -> Value:
    """a^y for float a > 0 (finite) by double arithmetic."""
    k, m = split_exponent(a.to_double(), subnormals=False)
    s = (m - 1.0) / (m + 1.0)
    logarithm = fma(s, horner(s * s, LOG2_SERIES), k)
    exponent = at_most(at_least(y.to_double() * logarithm, -200.0), 200.0)
    n, integer = nearest_integer(exponent)
    f = exponent - n
    return (fma(f, horner(f, EXP2_SHORT), 1.0) * pow2(integer + 1023, "double")).to_float()


def log2_pair(a: Value) -> tuple[Value, Value]:
    """log2(a) as an unevaluated sum, for double a > 0 (finite)."""
    k, m = split_exponent(a)
    f = m - 1.0
    bottom, bottom_low = fast_two_sum(m.like(1.0), m)
    s = f / bottom
    product, error = two_product(s, bottom)
    s_low = (((f - product) - error) - s * bottom_low) / bottom
    z, z_low = two_product(s, s)
    z_low = fma(s * 2.0, s_low, z_low)
    # 3 atanh(s) = s (3 + z + tail)
    tail = z * z * horner(z, ATANH_TAIL)
    t, t_low = fast_two_sum(z.like(3.0), z)
    t, t_low = fast_two_sum(t, t_low + (z_low + tail))
    u, u_low = two_product(s, t)
    u_low = u_low + fma(s, t_low, s_low * t)
    v, v_low = two_product(u, u.like(SERIES_SCALE_HIGH))
    v_low = v_low + fma(u, SERIES_SCALE_LOW, u_low * SERIES_SCALE_HIGH)
    total, error = fast_two_sum(k, v)
    return fast_two_sum(total, error + v_low)


def magnitude_double(a: Value, y: Value) -> Value:
    """a^y for double a > 0 (finite)."""
    logarithm, logarithm_low = log2_pair(a)
    # Beyond 2^64 every power but those of 1 is 0 or infinite, and Dekker's product must not overflow.
    y = at_most(at_least(y, -(2.0**64)), 2.0**64)
    exponent, low = two_product(y, logarithm)
    low = fma(y, logarithm_low, low)
    within = abs(exponent) < 1200.0
    low = where(within, low, 0.0)
    exponent = at_most(at_least(exponent, -1200.0), 1200.0)
    n, integer = nearest_integer(exponent)
    f, f_low = two_sum(exponent - n, low)
    p = fma(f, horner(f, EXP2["double"]), f_low * math.log(2)) + 1.0
    return scale(p, integer)


def pow(x: Value, y: Value) -> Value:
    a = abs(x)
    result = magnitude_float(a, y) if x.ty.scalar == "float" else magnitude_double(a, y)
    # Zero and infinity; 1^y and x^0 come last since they hold even for NaN.
    falls = y < 0.0
    result = where(a.eq(0.0), where(falls, x.like(math.inf), 0.0), result)
    result = where(a.eq(math.inf), where(falls, x.like(0.0), math.inf), result)
    # A negative base: the sign of an odd power, and no value for one that is no integer.
    half = y * 0.5
    integer = y.floor().eq(y)
    odd = integer & half.floor().ne(half)
    sign_mask = x.bits().like(1 << (x.ty.bits - 1))
    sign = where(odd, x.bits() & sign_mask, 0)
    result = (result.bits() | sign).as_float()
    result = where((x < 0.0) & (a < math.inf) & ~integer, math.nan, result)
    result = where(x.is_nan() | y.is_nan(), x + y, result)
    one = x.eq(1.0) | y.eq(0.0) | (a.eq(1.0) & abs(y).eq(math.inf))
    return where(one, 1.0, result)
