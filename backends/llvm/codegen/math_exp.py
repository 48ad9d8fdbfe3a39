"""The exponential family as lane-wise formulas: exp, exp2, expm1, sigmoid, tanh, sinh, cosh, erf.

Each function takes and returns float or double `Value`s, scalar or vector. The coefficients are minimax polynomials
(Remez with the weight that makes the result's relative error even), rounded to the type. Nothing here depends on a
fused multiply-add: the constants of the argument reduction end in zeros, so that its first product is exact.
"""

from __future__ import annotations

import math

from sardonyx.backends.llvm.codegen.lanes import (
    BIAS,
    MANTISSA,
    Value,
    at_least,
    at_most,
    bit_pattern,
    fast_two_sum,
    fma,
    horner,
    paired,
    pow2,
    two_sum,
    where,
)

# 1.5 * 2^MANTISSA: adding it rounds to an integer, which then sits in the sum's low bits.
MAGIC = {"float": 12582912.0, "double": 6755399441055744.0}
MAGIC_BITS = {scalar: bit_pattern(scalar, magic) for scalar, magic in MAGIC.items()}

# ln 2 in two parts; the first has so few bits that its product with any exponent is exact.
LN2_HIGH = {"float": 0.693359375, "double": 6.93147180369123816490e-01}
LN2_LOW = {"float": -2.12194440054690583e-4, "double": 1.90821492927058770002e-10}

# Beyond these exp is infinite or zero; the bounds keep the integer exponents in range.
EXP_HIGHEST = {"float": 89.0, "double": 710.0}
EXP_LOWEST = {"float": -104.0, "double": -746.0}

# (e^r - 1 - r) / r^2 on ln2/2 * [-1, 1], error even relative to e^r - 1 (2^-28, 2^-59) …
EXPM1 = {
    "float": (
        0.5,
        0.1666666716337204,
        0.041666340082883835,
        0.008333264850080013,
        0.0013942101504653692,
        0.00019919527403544635,
    ),
    "double": (
        0.5,
        0.16666666666666663,
        0.04166666666666667,
        0.008333333333336329,
        0.0013888888888881118,
        0.00019841269833658043,
        2.4801587334880128e-05,
        2.7557322441669474e-06,
        2.7557261799755593e-07,
        2.5057939738611356e-08,
        2.0919594877419585e-09,
        1.207583132066387e-10,
    ),
}
# … and, two terms shorter for double, relative to e^r (2^-57).
EXP = {
    "float": EXPM1["float"],
    "double": (
        0.5000000000000014,
        0.16666666666666713,
        0.04166666666650263,
        0.0083333333332978,
        0.0013888888950694229,
        0.00019841269939178773,
        2.4801485854792103e-05,
        2.755719562087636e-06,
        2.7632823256479837e-07,
        2.5124768060420763e-08,
    ),
}
# e^r on ln2/2 * [-1, 1], error even relative to it (2^-28): for float, where a last bit of e^r - 1 does not matter.
EXP_FLOAT = (
    1.0,
    1.0,
    0.4999999403953552,
    0.1666652113199234,
    0.04166838899254799,
    0.00836874544620514,
    0.0013814540579915047,
)
# (2^f - 1) / f on [-0.5, 0.5] (2^-26, 2^-57).
EXP2 = {
    "float": (
        0.6931471824645996,
        0.24022650718688965,
        0.055503278970718384,
        0.009617999196052551,
        0.00134003022685647,
        0.0001547795400256291,
    ),
    "double": (
        0.6931471805599453,
        0.2402265069591015,
        0.05550410866482406,
        0.009618129107586217,
        0.0013333558145774353,
        0.00015403530467374287,
        1.525273448131016e-05,
        1.3215430054035799e-06,
        1.0177782161385383e-07,
        7.074691331526834e-09,
        4.497975197749777e-10,
    ),
}
# (tanh(x)/x - 1) / z with z = x^2, for |x| < 0.6 (2^-33).
TANH_SMALL = (
    -0.3333333134651184,
    0.1333322823047638,
    -0.053949691355228424,
    0.021717431023716927,
    -0.008220518007874489,
    0.0021840976551175117,
)


def nearest_integer(x: Value) -> tuple[Value, Value]:
    """x rounded to an integer, as a float and as an integer of the same width; |x| must stay below 2^(MANTISSA-1)."""
    scalar = x.ty.scalar
    shifted = x + MAGIC[scalar]
    return shifted - MAGIC[scalar], shifted.bits() - MAGIC_BITS[scalar]


def reduce_exp(x: Value) -> tuple[Value, Value, Value]:
    """x = k ln 2 + r - low with |r - low| <= ln2/2 and a little, both exact: (k as an integer, r, low)."""
    scalar = x.ty.scalar
    n, k = nearest_integer(x * (1 / math.log(2)))
    return k, fma(n, -LN2_HIGH[scalar], x), n * LN2_LOW[scalar]


def exp_of_reduced(r: Value, low: Value) -> Value:
    """e^(r - low)."""
    scalar = r.ty.scalar
    rounded = r - low
    if scalar == "float":
        return fma(rounded * rounded, horner(rounded, EXP[scalar]), rounded) + 1.0
    # One more operation keeps the error of `rounded`, a quarter of a unit, out of the result.
    return (r + fma(rounded * rounded, horner(rounded, EXP[scalar]), -low)) + 1.0


def scale(p: Value, k: Value) -> Value:
    """p * 2^k in two exact steps and one rounding, so that it overflows and underflows gradually; |k| <= 2 BIAS."""
    scalar = p.ty.scalar
    total = k + 2 * BIAS[scalar]
    half = total.lshr(1)
    return p * pow2(half, scalar) * pow2(total - half, scalar)


def reduce_float(x: Value, factor: float = 1.0, offset: int = 0, rough: bool = False) -> tuple[Value, Value]:
    """For floats: factor x = k ln 2 + factor r, as (2^(k + offset), r); factor is 1, -1 or 2.

    k + offset must be a normal exponent. With `rough` r may be off by 2^-29 k, for callers that add e^x to something
    larger or divide by it. For a NaN the first is some float and the second a NaN.
    """
    magic = MAGIC["float"] + BIAS["float"] + offset  # the sum's low bits are the biased exponent
    shifted = fma(x, factor / math.log(2), magic)
    n = shifted - magic
    if rough and x.builder.target.has_fma:
        r = fma(n, -math.log(2) / factor, x)
    else:
        r = fma(n, -LN2_LOW["float"] / factor, fma(n, -LN2_HIGH["float"] / factor, x))
    return (shifted.bits() << MANTISSA["float"]).as_float(), r


def exp_of_float(r: Value, factor: float = 1.0, last: int = len(EXP_FLOAT)) -> Value:
    """e^(factor r) for |factor r| <= ln2/2 and a little; all but the `last` lowest terms in pairs."""
    if r.builder.target.has_fma:
        return paired(r, [c * factor**k for k, c in enumerate(EXP_FLOAT)], last)
    scaled = r if factor == 1.0 else r * factor  # a last sum that rounds once keeps the error below a unit
    return (scaled * scaled * horner(scaled, EXP_FLOAT[2:]) + scaled) + 1.0


def exp_times_power(x: Value, power: int = 0) -> Value:
    """e^x * 2^power without overflow in between, for a small power."""
    scalar = x.ty.scalar
    x = at_most(at_least(x, EXP_LOWEST[scalar]), EXP_HIGHEST[scalar] + (1 if power < 0 else 0))
    if scalar == "float":
        magic = MAGIC["float"] + 2 * BIAS["float"] + power
        shifted = fma(x, 1 / math.log(2), magic)
        n = shifted - magic
        r = fma(n, -LN2_LOW["float"], fma(n, -LN2_HIGH["float"], x))
        # As `scale`: the exponent, biased twice, in two halves.
        total = shifted.bits() - MAGIC_BITS["float"]
        half = total.lshr(1)
        return exp_of_float(r) * pow2(half, scalar) * pow2(total - half, scalar)
    k, r, low = reduce_exp(x)
    return scale(exp_of_reduced(r, low), k + power if power else k)


def exp_in_range(x: Value) -> Value:
    """e^x where neither argument nor result comes near the type's limits (|x| < 80, or 700 for double)."""
    scalar = x.ty.scalar
    if scalar == "float":
        power, r = reduce_float(x)
        return exp_of_float(r) * power
    k, r, low = reduce_exp(x)
    return exp_of_reduced(r, low) * pow2(k + BIAS[scalar], scalar)


def exp(x: Value) -> Value:
    return exp_times_power(x)


def exp_nonpositive(x: Value) -> Value:
    """e^x for x <= 0 (or NaN): one exact scaling, and one that rounds where the result is subnormal."""
    scalar = x.ty.scalar
    up = {"float": 64, "double": 128}[scalar]
    x = at_least(x, EXP_LOWEST[scalar])
    if scalar == "float":
        power, r = reduce_float(x, offset=up)
        return exp_of_float(r) * power * 2.0**-up
    k, r, low = reduce_exp(x)
    return exp_of_reduced(r, low) * pow2(k + (BIAS[scalar] + up), scalar) * 2.0**-up


def exp2(x: Value) -> Value:
    scalar = x.ty.scalar
    low, high = {"float": (-151.0, 129.0), "double": (-1076.0, 1025.0)}[scalar]
    x = at_most(at_least(x, low), high)
    n, k = nearest_integer(x)
    f = x - n
    return scale(fma(f, horner(f, EXP2[scalar]), 1.0), k)


def quarter_expm1_parts(x: Value) -> tuple[Value, Value]:
    """(e^x - 1) / 4 as a sum of two, the first by far the larger; finite a little beyond where e^x is."""
    scalar = x.ty.scalar
    # Below the lower bound the result rounds to -1/4; at the upper one k is BIAS + 2.
    low, high = {"float": (-18.0, 89.5), "double": (-40.0, 710.6)}[scalar]
    k, r, r_low = reduce_exp(at_most(at_least(x, low), high))
    # With h = 2^(k-2): (h - 1/4) + h r + h c, where c = e^(r - r_low) - 1 - r is small; the first sum keeps its error.
    rounded = r - r_low
    c = fma(rounded * rounded, horner(rounded, EXPM1[scalar]), -r_low)
    h = pow2(k + (BIAS[scalar] - 2), scalar)
    total, error = two_sum(h - 0.25, h * r)
    return total, fma(h, c, error)


def quarter_expm1(x: Value) -> Value:
    total, rest = quarter_expm1_parts(x)
    return total + rest


def expm1(x: Value) -> Value:
    tiny = {"float": 2.0**-26, "double": 2.0**-55}[x.ty.scalar]
    return where(abs(x) < tiny, x, quarter_expm1(x) * 4.0)


def sigmoid(x: Value) -> Value:
    """1 / (1 + e^-x), without losing the small results of negative x."""
    if x.ty.scalar == "float":
        # Numerator and denominator are 2^-64 of what they should be, so that e^-x does not overflow.
        power, r = reduce_float(at_most(at_least(x, -110.0), 40.0), -1.0, -64)
        return 2.0**-64 / fma(exp_of_float(r, -1.0), power, 2.0**-64)
    e = exp(-abs(x))
    return where(x < 0.0, e, 1.0) / (e + 1.0)


def tanh(x: Value) -> Value:
    a = abs(x)
    if x.ty.scalar == "double":
        return _tanh_double(a).copysign(x)
    z = x * x
    small = fma(x * z, horner(z, TANH_SMALL), x)
    power, r = reduce_float(at_most(a, 10.0), 2.0, rough=True)
    large = 1.0 - 2.0 / fma(exp_of_float(r, 2.0, last=1), power, 1.0)
    return where(a < 0.6, small, large).copysign(x)


def _tanh_double(a: Value) -> Value:
    """With t = e^-2a - 1: -t/(t+2), or 1 - 2(t+1)/(t+2) where that is the more exact."""
    total, rest = quarter_expm1_parts(at_most(a, 20.0) * -2.0)
    t, t_low = fast_two_sum(total * 4.0, rest * 4.0)
    bottom, bottom_low = fast_two_sum(t.like(2.0), t)
    near = a < 0.55
    quotient = where(near, -t, (t + 1.0) * 2.0) / bottom
    # The first-order effect of the two low parts; 1/bottom to 2 % for a < 0.55 (bottom in 1.33 … 2) is enough.
    inverse = fma(bottom, -0.375, 1.25)
    refined = quotient - (t_low + quotient * (bottom_low + t_low)) * inverse
    return where(a < 2.0**-28, a, where(near, refined, 1.0 - quotient))


def sinh(x: Value) -> Value:
    """From q = (e^|x| - 1)/4: 2 (q + q/(4q + 1))."""
    scalar = x.ty.scalar
    a = abs(x)
    total, low = quarter_expm1_parts(a)
    q = total + low
    quotient = where(a < {"float": 40.0, "double": 100.0}[scalar], q / fma(q, 4.0, 1.0), 0.25)
    tiny = {"float": 2.0**-13, "double": 2.0**-28}[scalar]
    return where(a < tiny, a, (total + (low + quotient)) * 2.0).copysign(x)


def cosh(x: Value) -> Value:
    half = exp_times_power(abs(x), -1)
    return half + 0.25 / half


# erf(x)/x - 1 with z = x^2, for |x| < 1 and a little (2^-28, 2^-56).
ERF_SMALL = {
    "float": (
        0.12837916612625122,
        -0.3761262595653534,
        0.1128358542919159,
        -0.026853812858462334,
        0.005188327748328447,
        -0.0008010193705558777,
        7.853860734030604e-05,
    ),
    "double": (
        0.1283791670955126,
        -0.376126389031841,
        0.11283791670971184,
        -0.026866170648063136,
        0.005223977653148263,
        -0.000854832856992515,
        0.00012055387701769104,
        -1.4926923210536574e-05,
        1.6481802229269585e-06,
        -1.6565642538132067e-07,
        1.6073831452715292e-08,
        -1.6708839453870304e-09,
        1.476865992339129e-10,
    ),
}
# sqrt(erfc(t)) in t - 2.5, for t in 1 … 4, the error weighted by what it does to erf (2^-28.9).
ERFC_ROOT = (
    0.02017303742468357,
    -0.053989920765161514,
    0.06272801011800766,
    -0.03908125311136246,
    0.01158439926803112,
    0.0009109191014431417,
    -0.0020658415742218494,
    0.00062243064166978,
    5.5094671552069485e-05,
    -9.027203486766666e-05,
    9.32830516831018e-06,
    6.572610800503753e-06,
)
# For double -log(erfc(t))/t - 1 for t in 1 … 5.95, weighted likewise (2^-57.8).
ERFC_LOG = (
    0.12837911157289383,
    0.636620246164917,
    0.1027708546394649,
    -0.01912503655091439,
    -0.0002119070590925321,
    0.0016924374010468697,
    -0.0005744882516235488,
    -1.106847164073082e-06,
    9.556675209061995e-05,
    -5.607697062802611e-05,
    2.036589867530171e-05,
    -5.389551472830946e-06,
    1.0791162828194001e-06,
    -1.6319542575640117e-07,
    1.8152490613564584e-08,
    -1.4043206757456899e-09,
    6.754951387736565e-11,
    -1.5213832676148927e-12,
)


def erf(x: Value) -> Value:
    """Near 0 an odd polynomial; beyond 1 from erfc: for float as a square, which takes no exponential, and is exact
    enough with fused products only."""
    scalar = x.ty.scalar
    if scalar == "float" and not x.builder.target.has_fma:
        return erf(x.to_double()).to_float()
    a = abs(x)
    small = fma(x, horner(x * x, ERF_SMALL[scalar]), x)
    if scalar == "float":
        root = paired(at_most(a, 4.0) - 2.5, ERFC_ROOT, last=2)
        large = fma(-root, root, 1.0)
    else:
        t = at_most(a, 5.95)
        large = 1.0 - exp_in_range(-fma(t, horner(t, ERFC_LOG), t))
    # `large` is not negative, so the sign is one more bit.
    sign = x.bits() & -(1 << (x.ty.bits - 1))
    return where(a < {"float": 1.0078125, "double": 1.0}[scalar], small, (large.bits() | sign).as_float())
