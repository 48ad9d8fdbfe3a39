"""Conversions between 16-bit floats and float32 or float64, by the signature that the emitters use.

Float64 goes through a float32 that is rounded to odd, so that the second rounding decides: the result is rounded once.
"""

from __future__ import annotations

from sardonyx.backends.llvm.codegen import conversions
from sardonyx.backends.llvm.codegen.text import FunctionBuilder, LType

bf16_to_f32 = conversions.bf16_to_f32
bf16_from_f32 = conversions.bf16_from_f32
f16_to_f32 = conversions.f16_to_f32
f16_from_f32 = conversions.f16_from_f32


def bf16_from_f64(b: FunctionBuilder, source: LType, x: str) -> str:
    return bf16_from_f32(b, source.with_scalar("float"), round_to_odd(b, source, x))


def f16_from_f64(b: FunctionBuilder, source: LType, x: str) -> str:
    return f16_from_f32(b, source.with_scalar("float"), round_to_odd(b, source, x))


def round_to_odd(b: FunctionBuilder, source: LType, x: str) -> str:
    """float64 → float32: truncated, with the last bit set where anything was lost."""
    single, bits = source.with_scalar("float"), source.with_scalar("i32")
    near = b.cast("fptrunc", source, x, single)
    back = b.cast("fpext", single, near, source)
    beyond = b.fcmp("ogt", source, b.intrinsic("llvm.fabs", source, [(source, back)]),
                    b.intrinsic("llvm.fabs", source, [(source, x)]))  # fmt: skip
    raw = b.cast("bitcast", single, near, bits)
    toward_zero = b.select(bits, beyond, b.binary("sub", bits, raw, b.const(bits, 1)), raw)
    inexact = b.fcmp("une", source, back, x)
    odd = b.binary("or", bits, toward_zero, b.const(bits, 1))
    return b.cast("bitcast", bits, b.select(bits, inexact, odd, toward_zero), single)
