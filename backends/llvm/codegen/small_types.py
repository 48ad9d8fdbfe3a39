"""The dtypes that data are only stored in, a byte an element: floats of 4 to 8 bits and integers of fewer than 8.

`from_<dtype>` reads the bits of a byte: as float32, exactly, or as an integer of 8 bits (bits of the byte that are not
the element's do not count). `to_<dtype>` gives the byte: of a float32 that is rounded once, to nearest even, or of an
integer or float modulo the width. Values of float64 and wide integers come as a float32 that is rounded to odd, so that
the second rounding decides (`to_odd`, `int_to_odd`). The semantics are those of `sx.cast`; `numeric.py` has them in
NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sardonyx.backends.llvm.codegen import halves
from sardonyx.backends.llvm.codegen.lanes import Value, where
from sardonyx.backends.llvm.codegen.text import FunctionBuilder, LType

ScalarFunction = Callable[..., str]

UNBOUNDED = "_unbounded"
"""The suffix of the `to_` functions that do not saturate."""
ROUND_MODES = ("up", "down", "nearest")
"""How float8e8m0 rounds; part of the name of its `to_` functions."""


@dataclass(frozen=True)
class Format:
    """A float of few bits: those of the exponent and of the significand, the exponent's bias, and the codes of the
    largest number, of infinity and NaN (None where there is none). In `unsigned_zero` formats the code of -0 is NaN."""

    exponent: int
    mantissa: int
    bias: int
    largest: int
    infinity: int | None
    nan: int | None
    unsigned_zero: bool = False

    @property
    def sign(self) -> int:
        """The bit of the sign."""
        return 1 << (self.exponent + self.mantissa)


FORMATS = {
    "float4e2m1": Format(2, 1, 1, 0x07, None, None),
    "float6e2m3": Format(2, 3, 1, 0x1F, None, None),
    "float6e3m2": Format(3, 2, 3, 0x1F, None, None),
    "float8e4m3fn": Format(4, 3, 7, 0x7E, None, 0x7F),
    "float8e4m3fnuz": Format(4, 3, 8, 0x7F, None, 0x80, True),
    "float8e5m2": Format(5, 2, 15, 0x7B, 0x7C, 0x7E),
    "float8e5m2fnuz": Format(5, 2, 16, 0x7F, None, 0x80, True),
}
INTEGERS = {"int2": (2, True), "int4": (4, True), "uint2": (2, False), "uint4": (4, False)}
"""Bits, and whether there is a sign."""
QUIET = 0x7FC00000
"""NaN as a float32."""
INFINITY = 0x7F800000


def lookup(fn: str, operand: LType) -> ScalarFunction | None:
    """The function of that name on operands of that type; None where there is none."""
    if fn == "to_odd":
        return lambda b, ty, x: halves.round_to_odd(b, ty, x) if ty.scalar == "double" else x
    if fn in ("int_to_odd", "int_to_odd_unsigned"):
        return _int_to_odd(fn.endswith("unsigned"))
    way, _, name = fn.partition("_")
    name, _, rest = name.partition("_")
    if name in INTEGERS and way in ("from", "to"):
        bits, signed = INTEGERS[name]
        if way == "from":
            return _lanewise(lambda x: _integer(x, bits, signed))
        return _lanewise(lambda x: (_low_bits(x, bits) if operand.is_float else x) & ((1 << bits) - 1))
    if name == "float8e8m0":
        if way == "from":
            return _lanewise(_power_of_two)
        mode, _, unbounded = rest.partition("_")
        return _lanewise(lambda x: _to_power_of_two(x, mode, not unbounded))
    if name in FORMATS:
        form = FORMATS[name]
        if way == "from":
            return _lanewise(lambda x: _widened(x, form))
        return _lanewise(lambda x: _narrowed(x, form, not rest))
    return None


def _lanewise(function: Callable[[Value], Value]) -> ScalarFunction:
    return lambda b, ty, x: function(Value(b, ty, x)).name


# ---- floats


def _widened(code: Value, form: Format) -> Value:
    """The float32 that a code stands for."""
    bits = code.zext("i32")
    magnitude = bits & (form.sign - 1)
    # The exponent's bias is corrected by a product, which also normalises subnormals.
    real = (magnitude << (23 - form.mantissa)).as_float() * 2.0 ** (127 - form.bias)
    out = real.bits()
    if form.infinity is not None:
        out = where(magnitude.eq(form.infinity), INFINITY, out)
    if form.nan is not None and not form.unsigned_zero:
        out = where(magnitude > (form.infinity or form.largest), QUIET, out)
    shift = 31 - (form.exponent + form.mantissa)
    signed = out | ((bits & form.sign) << shift)
    if form.unsigned_zero:
        signed = where((bits & (2 * form.sign - 1)).eq(form.sign), QUIET, signed)
    return signed.as_float()


def _narrowed(value: Value, form: Format, saturating: bool) -> Value:
    """The code of a float32, rounded once.

    What is too large becomes, where `saturating`, the largest number; else infinity, or NaN where there is none. Where
    there is no NaN either, it is always the largest number, and NaN becomes -0.
    """
    bits = value.bits()
    magnitude = bits & 0x7FFFFFFF
    drop = 23 - form.mantissa
    # Subnormal results: a sum with a number whose last place is theirs rounds there.
    steps = 2.0 ** (24 - form.bias - form.mantissa)
    subnormal = (magnitude.as_float() + steps).bits() - (127 + 24 - form.bias - form.mantissa << 23)
    normal = (magnitude - (127 - form.bias << 23) + ((magnitude.lshr(drop) & 1) + ((1 << drop - 1) - 1))).lshr(drop)
    code = where(magnitude < (128 - form.bias << 23), subnormal, normal)
    beyond = form.largest
    if not saturating and form.nan is not None:
        beyond = form.infinity if form.infinity is not None else form.nan
    # A NaN is large as well: its lanes are settled below.
    code = where((magnitude >= INFINITY) | (code > form.largest), beyond, code)
    sign = bits.lshr(31 - (form.exponent + form.mantissa)) & form.sign
    is_nan = magnitude > INFINITY
    if form.unsigned_zero:
        code = where(code.eq(0) | code.eq(form.nan or 0), code, code | sign)
        return where(is_nan, form.nan or 0, code).truncate("i8")
    if form.nan is None:
        return where(is_nan, form.sign, code | sign).truncate("i8")
    return (where(is_nan, form.nan, code) | sign).truncate("i8")


def _power_of_two(code: Value) -> Value:
    """The float32 that a code of float8e8m0 stands for: 2^-127, the least, is subnormal."""
    bits = code.zext("i32")
    out = where(bits.eq(0), 1 << 22, bits << 23)
    return where(bits.eq(255), QUIET, out).as_float()


def _to_power_of_two(value: Value, mode: str, saturating: bool) -> Value:
    """The code of a float32 in float8e8m0: what is negative is NaN, too small or large the limit, or NaN."""
    bits = value.bits()
    added = {"up": (1 << 23) - 1, "nearest": 1 << 22, "down": 0}[mode]
    code = (bits + added).lshr(23)
    if mode == "down":
        least = bits.like(0)
    else:  # between 2^-127 and 2^-126 the significand has a bit less
        threshold = (1 << 22) + 1 if mode == "up" else 3 << 21
        least = where(bits >= threshold, bits.like(1), 0)
    code = where(bits < (1 << 23), least, code)
    low, high = bits < (1 << 22), bits > 0x7F000000
    code = where(low, 0 if saturating else 255, code)
    code = where(high, 254 if saturating else 255, code)
    zero = (bits & 0x7FFFFFFF).eq(0)
    code = where((bits < 0) | (bits > INFINITY), 255, code)
    return where(zero, 0 if saturating else 255, code).truncate("i8")


# ---- integers


def _integer(code: Value, bits: int, signed: bool) -> Value:
    if not signed:
        return code & ((1 << bits) - 1)
    return (code << (8 - bits)).ashr(8 - bits)


def _low_bits(value: Value, bits: int) -> Value:
    """The truncated float modulo 2^bits; 0 of infinities and NaN. Every step is exact."""
    whole = value.trunc_fraction()
    rest = whole - (whole * 2.0**-bits).floor() * float(1 << bits)
    rest = where(rest < float(1 << bits), rest, 0.0)
    word = value.ty.with_scalar("i32")
    return Value(value.builder, word, value.builder.cast("fptosi", rest.ty, rest.name, word)).truncate("i8")


def _int_to_odd(unsigned: bool) -> ScalarFunction:
    """An integer as a float32 that is rounded to odd. A 64-bit one that float64 might round keeps a sticky bit in place
    of its last 11, which no float of few bits holds."""

    def emit(b: FunctionBuilder, ty: LType, x: str) -> str:
        value = Value(b, ty, x)
        if ty.bits == 64:
            value = sticky(value, unsigned)
        wide = ty.with_scalar("double")
        exact = b.cast("uitofp" if unsigned else "sitofp", ty, value.name, wide)
        return halves.round_to_odd(b, wide, exact)

    return emit


def sticky(value: Value, unsigned: bool) -> Value:
    """A 64-bit integer that float64 holds, and which floats of 16 bits and fewer do not tell from `value`."""
    low = value & 0x7FF
    kept = (value - low) | where(low.ne(0), value.like(0x800), 0)
    large = value.lshr(52).ne(0) if unsigned else ((value + (1 << 52)).lshr(53)).ne(0)
    return where(large, kept, value)
