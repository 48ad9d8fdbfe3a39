"""The table behind `kernel.math`: a name and operand type → what emits it.

Vector math comes from `math.MATH`, integer arithmetic with defined results from `integer`, conversions from here.
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.backends.llvm.codegen.text import FunctionBuilder, LType

ScalarFunction = Callable[..., str]


def lookup(fn: str, operand: LType, result: LType) -> ScalarFunction | None:
    """The emitter of `fn` on operands of that type: `emit(builder, type with lanes, *texts)`, or None."""
    if operand.is_float:
        if fn in ("fptosi_sat", "fptoui_sat"):
            return _float_to_int(fn, result)
        if fn in _FLOAT:
            return _FLOAT[fn]
        from sardonyx.backends.llvm.codegen.math import MATH

        return MATH.get(fn)
    if fn in ("int_to_half", "int_to_half_unsigned"):
        return _int_to_half(fn.endswith("unsigned"), result)
    if fn in _INTEGER:
        return _INTEGER[fn]
    from sardonyx.backends.llvm.codegen import integer

    return integer.INTEGER.get(fn)


def _float_to_int(fn: str, result: LType) -> ScalarFunction:
    def emit(b: FunctionBuilder, ty: LType, x: str) -> str:
        target = result.with_lanes(ty.lanes)
        intrinsic = "llvm.fptosi.sat" if fn == "fptosi_sat" else "llvm.fptoui.sat"
        return b.intrinsic(intrinsic, target, [(ty, x)], suffix=f"{target.mangled}.{ty.mangled}")

    return emit


def _int_to_half(unsigned: bool, result: LType) -> ScalarFunction:
    """Through float64, where every integer that matters to 16 bits is exact, and one rounding from there."""

    def emit(b: FunctionBuilder, ty: LType, x: str) -> str:
        from sardonyx.backends.llvm.codegen.emit_scalar import truncate_float

        wide = ty.with_scalar("double")
        return truncate_float(b, wide, result.with_lanes(ty.lanes), b.cast("uitofp" if unsigned else "sitofp", ty, x, wide))

    return emit


def _plain(intrinsic: str) -> ScalarFunction:
    def emit(b: FunctionBuilder, ty: LType, *xs: str) -> str:
        return b.intrinsic(intrinsic, ty, [(ty, x) for x in xs])

    return emit


def _int_abs(b: FunctionBuilder, ty: LType, x: str) -> str:
    negative = b.icmp("slt", ty, x, b.const(ty, 0))
    return b.select(ty, negative, b.binary("sub", ty, b.const(ty, 0), x), x)


def _sign(b: FunctionBuilder, ty: LType, x: str) -> str:
    """-1, 0 or 1; NaN stays NaN."""
    zero = b.const(ty, 0)
    positive = b.select(ty, b.fcmp("ogt", ty, x, zero), b.const(ty, 1), x)
    return b.select(ty, b.fcmp("olt", ty, x, zero), b.const(ty, -1), positive)


_FLOAT: dict[str, ScalarFunction] = {
    "sqrt": _plain("llvm.sqrt"), "abs": _plain("llvm.fabs"), "floor": _plain("llvm.floor"), "ceil": _plain("llvm.ceil"),
    "trunc": _plain("llvm.trunc"), "round_half_even": _plain("llvm.roundeven"), "copysign": _plain("llvm.copysign"),
    "fma": lambda b, ty, x, y, z: b.fma(ty, x, y, z), "sign": _sign,
}  # fmt: skip

_INTEGER: dict[str, ScalarFunction] = {
    "abs": _int_abs, "smin": _plain("llvm.smin"), "smax": _plain("llvm.smax"),
    "umin": _plain("llvm.umin"), "umax": _plain("llvm.umax"),
}  # fmt: skip
