"""The table behind `kernel.math`: a name and operand type → what emits it.

Vector math comes from `math.MATH` and `math_gauss`, integer arithmetic with defined results from `integer`,
conversions from here.
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.backends.llvm.codegen import integer, small_types
from sardonyx.backends.llvm.codegen.lanes import Value, where
from sardonyx.backends.llvm.codegen.text import FunctionBuilder, LType

ScalarFunction = Callable[..., str]


def lookup(fn: str, operand: LType, result: LType) -> ScalarFunction | None:
    """The emitter of `fn` on operands of that type: `emit(builder, type with lanes, *texts)`, or None."""
    stored = small_types.lookup(fn, operand)
    if stored is not None:
        return stored
    if operand.is_float:
        if fn in ("fptosi_sat", "fptoui_sat"):
            return _float_to_int(fn == "fptosi_sat", result)
        if fn in _FLOAT:
            return _FLOAT[fn]
        from sardonyx.backends.llvm.codegen import math, math_gauss

        return math_gauss.GAUSS.get(fn) or math.INTERNAL.get(fn) or math.MATH.get(fn)
    if fn in ("int_to_half", "int_to_half_unsigned"):
        return _int_to_half(fn.endswith("unsigned"), result)
    return _INTEGER.get(fn) or integer.INTEGER.get(fn)


def _float_to_int(signed: bool, result: LType) -> ScalarFunction:
    def emit(b: FunctionBuilder, ty: LType, x: str) -> str:
        return integer.float_to_int(b, ty, x, result.with_lanes(ty.lanes), signed)

    return emit


def _int_to_half(unsigned: bool, result: LType) -> ScalarFunction:
    """Through float64, and one rounding from there.

    A 64-bit integer that float64 might round keeps a sticky bit in place of its last 11, which no 16-bit float holds.
    """

    def emit(b: FunctionBuilder, ty: LType, x: str) -> str:
        from sardonyx.backends.llvm.codegen.emit_scalar import truncate_float

        value = Value(b, ty, x)
        if ty.bits == 64:
            value = small_types.sticky(value, unsigned)
        wide = ty.with_scalar("double")
        exact = b.cast("uitofp" if unsigned else "sitofp", ty, value.name, wide)
        return truncate_float(b, wide, result.with_lanes(ty.lanes), exact)

    return emit


def _plain(intrinsic: str) -> ScalarFunction:
    def emit(b: FunctionBuilder, ty: LType, *xs: str) -> str:
        return b.intrinsic(intrinsic, ty, [(ty, x) for x in xs])

    return emit


def _int_abs(b: FunctionBuilder, ty: LType, x: str) -> str:
    negative = b.icmp("slt", ty, x, b.const(ty, 0))
    return b.select(ty, negative, b.binary("sub", ty, b.const(ty, 0), x), x)


def _sign(b: FunctionBuilder, ty: LType, x: str) -> str:
    """-1, +0 or 1; NaN stays NaN."""
    value = Value(b, ty, x)
    nothing = where(value.is_nan(), value, 0.0)
    return where(value > 0.0, value.like(1.0), where(value < 0.0, value.like(-1.0), nothing)).name


_FLOAT: dict[str, ScalarFunction] = {
    "abs": _plain("llvm.fabs"),
    "copysign": _plain("llvm.copysign"),
    "fma": lambda b, ty, x, y, z: b.fma(ty, x, y, z),
    "sign": _sign,
}

_INTEGER: dict[str, ScalarFunction] = {
    "abs": _int_abs,
    "smin": _plain("llvm.smin"),
    "smax": _plain("llvm.smax"),
    "umin": _plain("llvm.umin"),
    "umax": _plain("llvm.umax"),
}
