"""Sine, cosine and tangent as lane-wise formulas, right for every finite argument.

All arguments from pi/4 on are reduced by Payne and Hanek's method: the significand, an integer, times those bits of
2/pi that matter at its exponent, modulo 4, in integer arithmetic. So there is no slow path to branch to. A float's
reduced argument is one double (the error is below 2^-62 and no float comes nearer than 2^-29 to a multiple of pi/2);
a double's is a pair.
"""

from __future__ import annotations

import math

from sardonyx.backends.llvm.codegen.lanes import (
    Value,
    bit_pattern,
    fast_two_sum,
    fma,
    horner,
    two_product,
    where,
)
from sardonyx.backends.llvm.codegen.text import I8, I64, LType

# The first bits of the fraction 2/pi.
# fmt: off
TWO_OVER_PI = (
    0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561, 0xB7246E3A,
    0x424DD2E0, 0x06492EEA, 0x09D1921C, 0xFE1DEB1C, 0xB129A73E, 0xE88235F5, 0x2EBB4484, 0xE99C7026, 0xB45F7E41,
    0x3991D639, 0x835339F4, 0x9C845F8B, 0xBDF9283B, 0x1FF897FF, 0xDE05980F, 0xEF2F118B, 0x5A0A6D1F, 0x6D367ECF,
    0x27CB09B7, 0x4F463F66, 0x9E5FEA2D, 0x7527BAC7, 0xEBE5F17B, 0x3D0739F7, 0x8A5292EA, 0x6BFB5FB1, 0x1F8D5D08,
    0x56033046, 0xFC7B6BAB,
)
# fmt: on

PI_2_HIGH = 1.57079632679489655800e00
PI_2_LOW = 6.12323399573676603587e-17

# Double arithmetic: (sin(r)/r - 1)/z and (cos(r) - 1 + z/2)/z^2 with z = r^2, |r| <= pi/4. For float results
# (2^-37, 2^-43) and for double ones (2^-58, 2^-64).
SIN_FLOAT = (-0.16666666641427846, 0.008333329361872694, -0.00019839326898357513, 2.718234443681065e-06)
COS_FLOAT = (0.04166666662249755, -0.001388888372442813, 2.47995122474103e-05, -2.720958818925499e-07)
SIN_DOUBLE = (
    -0.16666666666666632,
    0.008333333333322455,
    -0.00019841269829813535,
    2.7557313687641427e-06,
    -2.505075672770874e-08,
    1.589668272055255e-10,
)
COS_DOUBLE = (
    0.0416666666666666,
    -0.0013888888888874446,
    2.48015872896402e-05,
    -2.75573143886881e-07,
    2.0875727219692984e-09,
    -1.1359810052354489e-11,
)

LOW_WORD = 0xFFFFFFFF
TWO_52 = 2.0**52


def unsigned_to_double(word: Value) -> Value:
    """An i64 below 2^52 as a double, without the conversion that AVX2 lacks."""
    return (word | bit_pattern("double", TWO_52)).as_float() - TWO_52


def reduce_float(x: Value) -> tuple[Value, Value]:
    """|x| = q pi/2 + r, |r| <= pi/4 and a little, for a float: (r as a double, q as an i64 modulo 4)."""
    magnitude = x.bits() & 0x7FFFFFFF
    significand = ((magnitude & 0x7FFFFF) | 0x800000).zext("i64")
    # The string of bits is a word of zeros and then 2/pi. At this offset a bit times the significand's unit weighs 2:
    # earlier bits give multiples of 4.
    offset = magnitude.lshr(23) - 120
    offset = where(offset < 0, 0, offset)
    shift = offset & 31
    string = (0, *TWO_OVER_PI)
    index = offset.lshr(5)
    reached = [index > i for i in range(4)]
    words = []
    for position in range(4):
        word = x.bits().like(string[position])
        for i, mask in enumerate(reached):
            word = where(mask, string[position + i + 1], word)
        words.append(word)
    # A shift by 32 would be undefined, so the lower word goes in two steps.
    back = shift.like(31) - shift
    window = [((a << shift) | b.lshr(1).lshr(back)).zext("i64") for a, b in zip(words[:-1], words[1:], strict=True)]
    product = ((significand * window[0]) << 32) + significand * window[1] + (significand * window[2]).lshr(32)
    # Units of 2^-62 quarter turns.
    quadrant = (product + (1 << 61)).lshr(62)
    rest = product - (quadrant << 62)
    high = rest.lshr(32).truncate("i32").signed_to("double")
    turns = fma(high, 2.0**32, unsigned_to_double(rest & LOW_WORD))
    small = abs(x) < 0.785
    r = where(small, abs(x).to_double(), turns * (math.pi / 2 * 2.0**-62))
    return r, where(small, 0, quadrant)


def load_window(x: Value, offset: Value) -> list[Value]:
    """Three words of 64 bits of the string `8 zero bytes, 2/pi` from a byte offset on, lane by lane."""
    builder, wide = x.builder, LType("i64", x.ty.lanes)
    string = bytes(8) + b"".join(word.to_bytes(4, "big") for word in TWO_OVER_PI)
    # Backwards, so that a little-endian load gives a word of the string.
    table = builder.module.constant(I8, [byte - 256 if byte > 127 else byte for byte in reversed(string)])
    place = offset.like(len(string) - 24) - offset
    vectors = ["poison"] * 3
    for lane in range(max(1, x.ty.lanes)):
        at = builder.extract(place.ty, place.name, lane) if x.ty.lanes else place.name
        pointer = builder.gep(I8, table, at)
        for word in range(3):
            loaded = builder.load(I64, builder.gep(I8, pointer, str(16 - 8 * word)), align=1)
            vectors[word] = builder.insert(wide, vectors[word], loaded, lane) if x.ty.lanes else loaded
    return [Value(builder, wide, vector) for vector in vectors]


def reduce_double(x: Value) -> tuple[Value, Value, Value]:
    """|x| = q pi/2 + r + r_low for a double: (r, r_low, q as an i64 modulo 4)."""
    magnitude = x.bits() & 0x7FFFFFFFFFFFFFFF
    offset = magnitude.lshr(52) - 1013
    offset = where(offset < 0, 0, offset)
    significand = ((magnitude & ((1 << 52) - 1)) | (1 << 52)) << (offset & 7)
    low, high = significand & LOW_WORD, significand.lshr(32)
    words = [half for word in load_window(x, offset.lshr(3)) for half in (word.lshr(32), word & LOW_WORD)]
    w5, w4, w3, w2, w1, w0 = words
    # Words 5 to 2 of the product modulo 2^192; word 5 holds two integer bits, and a lost carry into word 2 is 2^-124.
    columns = [
        [(low * w5) & LOW_WORD, (high * w4) & LOW_WORD],
        [],
        [],
        [],
    ]
    for column, (a, b) in enumerate(((w4, w3), (w3, w2), (w2, w1), (w1, w0))):
        for product in (low * a, high * b):
            columns[column].append(product.lshr(32))
            if column < 3:
                columns[column + 1].append(product & LOW_WORD)
    carry: Value | None = None
    limbs: list[Value] = []
    for terms in reversed(columns):
        total = terms[0] if carry is None else terms[0] + carry
        for term in terms[1:]:
            total = total + term
        limbs.insert(0, total & LOW_WORD)
        carry = total.lshr(32)
    top, *fraction = limbs
    quadrant = (top + (1 << 29)).lshr(30)
    signed = top - (quadrant << 30)
    # A small signed integer becomes a double through the low bits of 1.5 * 2^52.
    carrier = 1.5 * TWO_52
    leading = (signed + bit_pattern("double", carrier)).as_float() - carrier
    a, b, c = (unsigned_to_double(word) for word in fraction)
    turns, error = fast_two_sum(leading * 2.0**32, a)
    turns, turns_low = fast_two_sum(turns, error + (b * 2.0**-32 + c * 2.0**-64))
    r, r_low = two_product(turns, turns.like(PI_2_HIGH * 2.0**-62))
    r_low = r_low + (turns * (PI_2_LOW * 2.0**-62) + turns_low * (PI_2_HIGH * 2.0**-62))
    r, r_low = fast_two_sum(r, r_low)
    small = abs(x) < 0.785
    return where(small, abs(x), r), where(small, 0.0, r_low), where(small, 0, quadrant)


def sine_and_cosine(x: Value) -> tuple[Value, Value, Value]:
    """(sin r, cos r, q) of the reduced |x|, in double."""
    if x.ty.scalar == "float":
        r, quadrant = reduce_float(x)
        z = r * r
        sine = fma(r * z, horner(z, SIN_FLOAT), r)
        cosine = fma(z * z, horner(z, COS_FLOAT), fma(z, -0.5, 1.0))
        return sine, cosine, quadrant
    r, r_low, quadrant = reduce_double(x)
    z = r * r
    cube = z * r
    sine = r - ((z * (r_low * 0.5 - cube * horner(z, SIN_DOUBLE[1:])) - r_low) - cube * SIN_DOUBLE[0])
    half = z * 0.5
    rounded = 1.0 - half
    cosine = rounded + (((1.0 - rounded) - half) + (z * (z * horner(z, COS_DOUBLE)) - r * r_low))
    return sine, cosine, quadrant


def finish(x: Value, result: Value) -> Value:
    """Back to x's type; an infinite argument has no sine."""
    if x.ty.scalar == "float":
        result = result.to_float()
    return where(abs(x) < math.inf, result, where(x.is_nan(), x, math.nan))


def flip(value: Value, sign: Value) -> Value:
    """The double with its sign flipped where the lowest bit of an i64 is set."""
    return (value.bits() ^ (sign << 63)).as_float()


def sign_bit(x: Value) -> Value:
    """1 where x is negative or -0, as an i64."""
    return x.bits().lshr(x.ty.bits - 1).zext("i64")


def sin(x: Value) -> Value:
    sine, cosine, quadrant = sine_and_cosine(x)
    chosen = where((quadrant & 1).ne(0), cosine, sine)
    return finish(x, flip(chosen, quadrant.lshr(1) ^ sign_bit(x)))


def cos(x: Value) -> Value:
    sine, cosine, quadrant = sine_and_cosine(x)
    chosen = where((quadrant & 1).ne(0), sine, cosine)
    return finish(x, flip(chosen, (quadrant + 1).lshr(1)))


def tan(x: Value) -> Value:
    sine, cosine, quadrant = sine_and_cosine(x)
    odd = (quadrant & 1).ne(0)
    quotient = where(odd, cosine, sine) / where(odd, sine, cosine)
    return finish(x, flip(quotient, quadrant ^ sign_bit(x)))


# ---- inverse functions

# (atan(t)/t - 1)/z with z = t^2, |t| <= 7/16 (2^-57).
ATAN = (
    -0.3333333333333293,
    0.1999999999987649,
    -0.14285714272503947,
    0.11111110405483879,
    -0.09090887134055704,
    0.07691876216532165,
    -0.06661073273241248,
    0.05833571143476908,
    -0.049768825439475,
    0.03653168609003839,
    -0.01628593981941916,
)
# (asin(t)/t - 1)/z with z = t^2 <= 1/4 (2^-59).
ASIN = (
    0.16666666666666763,
    0.0749999999997013,
    0.0446428571752565,
    0.030381942676602117,
    0.022372215867221334,
    0.017351596295003883,
    0.013981007383729942,
    0.011397396773646228,
    0.010788692204554624,
    0.0036746160120836595,
    0.02178494279879041,
    -0.02110943832702774,
    0.03269839630263125,
)


def atan(x: Value) -> Value:
    """For double. atan(a) = atan(c) + atan((a - c)/(1 + a c)) with c = 0, 1/2, 1, 3/2, infinity (as fdlibm does)."""
    a = abs(x)
    numerator, denominator = a, a.like(1.0)
    high, low = a.like(0.0), a.like(0.0)
    steps = (
        (7 / 16, fma(a, 2.0, -1.0), a + 2.0, 4.63647609000806093515e-01, 2.26987774529616870924e-17),
        (11 / 16, a - 1.0, a + 1.0, 7.85398163397448278999e-01, 3.06161699786838301793e-17),
        (19 / 16, a - 1.5, fma(a, 1.5, 1.0), 9.82793723247329054082e-01, 1.39033110312309984516e-17),
        (39 / 16, a.like(-1.0), a, PI_2_HIGH, PI_2_LOW),
    )
    for edge, top, bottom, sum_high, sum_low in steps:
        beyond = a >= edge
        numerator, denominator = where(beyond, top, numerator), where(beyond, bottom, denominator)
        high, low = where(beyond, sum_high, high), where(beyond, sum_low, low)
    t = numerator / denominator
    z = t * t
    return (high + (fma(t * z, horner(z, ATAN), low) + t)).copysign(x)


def half_angle(a: Value) -> tuple[Value, Value, Value]:
    """For |x| = a >= 1/2: s + c = sqrt((1-a)/2) to twice the precision, and s^2's value of the asin correction."""
    z = (1.0 - a) * 0.5
    s = z.sqrt()
    square, error = two_product(s, s)
    # The tiny summand keeps 0/0 away at a = 1.
    c = ((z - square) - error) / fma(s, 2.0, 2.0**-1000)
    return s, c, z


def asin(x: Value) -> Value:
    """For double. Beyond 1/2: pi/2 - 2 asin(sqrt((1-|x|)/2))."""
    a = abs(x)
    s, c, z = half_angle(a)
    small = a < 0.5
    z = where(small, a * a, z)
    correction = z * horner(z, ASIN)
    total, error = fast_two_sum(a.like(PI_2_HIGH), s * -2.0)
    large = total + (error - (fma(s, correction, c) * 2.0 - PI_2_LOW))
    return where(small, fma(a, correction, a), large).copysign(x)


def acos(x: Value) -> Value:
    """For double."""
    a = abs(x)
    s, c, z = half_angle(a)
    small = a < 0.5
    z = where(small, a * a, z)
    correction = z * horner(z, ASIN)
    middle = PI_2_HIGH - (x - (PI_2_LOW - x * correction))
    rest = fma(s, correction, c)
    negative = PI_2_HIGH - (s + (rest - PI_2_LOW))
    return where(small, middle, where(x < 0.0, negative, s + rest) * 2.0)
