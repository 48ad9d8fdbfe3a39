"""float32 to and from the 16-bit floats, lane by lane and without calls: rounded once, to nearest even.

Half uses the CPU's conversion where there is one (F16C, AVX-512, AArch64), else integer arithmetic with the same bits.
Bfloat is always integer arithmetic. A NaN stays one, made quiet, with the upper bits of its payload.
"""

from __future__ import annotations

from sardonyx.backends.llvm.codegen.lanes import Value, where
from sardonyx.backends.llvm.codegen.text import FunctionBuilder, LType, Target


def has_half_conversion(target: Target) -> bool:
    """Whether float and half convert in one instruction; else LLVM would call `__truncsfhf2`."""
    features = {feature[1:] for feature in target.features.split(",") if feature.startswith("+")}
    return target.triple.startswith(("aarch64", "arm64")) or bool(features & {"f16c", "avx512f"})


def bf16_to_f32(b: FunctionBuilder, source: LType, x: str) -> str:
    """A bfloat of type `source` as a float of the same lanes: exact."""
    bits = Value(b, source, x).bits().zext("i32")
    return (bits << 16).as_float().name


def bf16_from_f32(b: FunctionBuilder, source: LType, x: str) -> str:
    """A float of type `source` as a bfloat of the same lanes."""
    value = Value(b, source, x)
    bits = value.bits()
    upper = bits.lshr(16)
    rounded = (bits + ((upper & 1) + 0x7FFF)).lshr(16)
    chosen = where(value.is_nan(), upper | 0x40, rounded).truncate("i16")
    return b.bitcast(chosen.ty, chosen.name, source.with_scalar("bfloat"))


def f16_to_f32(b: FunctionBuilder, source: LType, x: str) -> str:
    """A half of type `source` as a float of the same lanes: exact."""
    if has_half_conversion(b.target):
        return b.cast("fpext", source, x, source.with_scalar("float"))
    bits = Value(b, source, x).bits().zext("i32")
    magnitude = (bits & 0x7FFF) << 13
    # The exponent's bias is corrected by a product, which also normalises subnormals.
    scaled = (magnitude.as_float() * 2.0**112).bits()
    infinity = 0x7C00 << 13
    special = magnitude | 0x7F800000
    special = where(magnitude > infinity, special | 0x400000, special)
    chosen = where(magnitude < infinity, scaled, special)
    return (chosen | ((bits & 0x8000) << 16)).as_float().name


def f16_from_f32(b: FunctionBuilder, source: LType, x: str) -> str:
    """A float of type `source` as a half of the same lanes."""
    if has_half_conversion(b.target):
        return b.cast("fptrunc", source, x, source.with_scalar("half"))
    bits = Value(b, source, x).bits()
    magnitude = bits & 0x7FFFFFFF
    # Subnormal halves: the sum with 1/2 rounds at their last place.
    subnormal = (magnitude.as_float() + 0.5).bits() - 0x3F000000
    # From 65520 on the rounding carries into the exponent of infinity by itself.
    normal = (magnitude - (112 << 23) + ((magnitude.lshr(13) & 1) + 0xFFF)).lshr(13)
    nan = (magnitude.lshr(13) & 0x3FF) | 0x7E00
    chosen = where(magnitude < (113 << 23), subnormal, normal)
    chosen = where(magnitude >= (143 << 23), 0x7C00, chosen)
    chosen = where(magnitude > 0x7F800000, nan, chosen)
    half = (chosen | (bits.lshr(16) & 0x8000)).truncate("i16")
    return b.bitcast(half.ty, half.name, source.with_scalar("half"))
