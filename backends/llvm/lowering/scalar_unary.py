"""Scalar bodies of the elementwise ops of one operand: rounding, roots, exponentials, trigonometry, tests, casts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, compute_dtype, is_narrow
from sardonyx.backends.llvm.lowering.elementwise import scalar
from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.sx import cast, unary


def computed_in(value: SSAValue) -> DType:
    """The dtype in which a tensor value's elements are computed."""
    return compute_dtype(dtype_of(value))


_FUNCTIONS: dict[type[SxOp], str] = {
    unary.CeilOp: "ceil",
    unary.FloorOp: "floor",
    unary.RoundOp: "round_half_even",
    unary.SqrtOp: "sqrt",
    unary.ExpOp: "exp",
    unary.LogOp: "log",
    unary.SinOp: "sin",
    unary.CosOp: "cos",
    unary.TanOp: "tan",
    unary.AsinOp: "asin",
    unary.AcosOp: "acos",
    unary.AtanOp: "atan",
    unary.SinhOp: "sinh",
    unary.CoshOp: "cosh",
    unary.AsinhOp: "asinh",
    unary.AcoshOp: "acosh",
    unary.AtanhOp: "atanh",
    unary.ErfOp: "erf",
}
"""Ops that are one function of the emitter's table."""


def function_body(name: str) -> Callable[[Body, Any, SSAValue], SSAValue]:
    """The body of an op that is one function of the emitter's table."""
    return lambda b, op, x: b.math(name, x.type, x)


for _op, _name in _FUNCTIONS.items():
    scalar(_op)(function_body(_name))


@scalar(unary.IdentityOp)
def _identity(b: Body, op: Any, x: SSAValue) -> SSAValue:
    return x


@scalar(unary.ReciprocalOp)
def _reciprocal(b: Body, op: Any, x: SSAValue) -> SSAValue:
    dtype = computed_in(op.input)
    return b.arithmetic("div", dtype, b.const(dtype, 1), x)


@scalar(unary.AbsOp)
def _abs(b: Body, op: Any, x: SSAValue) -> SSAValue:
    return x if dtype_of(op.input).kind == "u" else b.math("abs", x.type, x)


@scalar(unary.NegOp)
def _neg(b: Body, op: Any, x: SSAValue) -> SSAValue:
    dtype = computed_in(op.input)
    return b.add(arith.NegfOp(x)) if dtype.is_float else b.arithmetic("sub", dtype, b.const(dtype, 0), x)


@scalar(unary.SignOp)
def _sign(b: Body, op: Any, x: SSAValue) -> SSAValue:
    dtype = computed_in(op.input)
    if dtype.is_float:
        return b.math("sign", x.type, x)
    zero, one = b.const(dtype, 0), b.const(dtype, 1)
    positive = b.select(b.compare_scalars("gt", dtype, x, zero), one, zero)
    if dtype.kind == "u":
        return positive
    return b.select(b.compare_scalars("lt", dtype, x, zero), b.const(dtype, -1), positive)


@scalar(unary.IsNaNOp)
def _is_nan(b: Body, op: Any, x: SSAValue) -> SSAValue:
    return b.compare_scalars("ne", computed_in(op.input), x, x)


@scalar(unary.IsInfOp)
def _is_inf(b: Body, op: Any, x: SSAValue) -> SSAValue:
    dtype = computed_in(op.input)
    found: SSAValue | None = None
    for wanted, limit in (("detect_negative", float("-inf")), ("detect_positive", float("inf"))):
        if op.attr(wanted):
            hit = b.compare_scalars("eq", dtype, x, b.const(dtype, limit))
            found = hit if found is None else b.either(found, hit)
    return found if found is not None else b.negate(b.true())


@scalar(unary.NotOp)
def _not(b: Body, op: Any, x: SSAValue) -> SSAValue:
    return b.negate(x)


@scalar(unary.BitwiseNotOp)
def _bitwise_not(b: Body, op: Any, x: SSAValue) -> SSAValue:
    dtype = dtype_of(op.input)
    return b.add(arith.XOrIOp(x, b.const(dtype, (1 << dtype.bits) - 1 if dtype.kind == "u" else -1)))


def cast_scalar(
    b: Body, x: SSAValue, source: DType, target: DType, saturating: bool = True, round_mode: str = "up"
) -> SSAValue:
    """An element in the compute dtype of `source` as one in the compute dtype of `target`, rounded to `target` once."""
    wide = compute_dtype(target)
    if is_narrow(target):
        return b.convert(x, compute_dtype(source), target, saturating, round_mode)
    if wide == target or compute_dtype(source) == wide:
        return b.convert(x, compute_dtype(source), wide)  # the caller rounds to the result's dtype
    return b.convert(b.convert(x, compute_dtype(source), target), target, wide)


@scalar(cast.CastOp)
def _cast(b: Body, op: Any, x: SSAValue) -> SSAValue:
    return cast_scalar(b, x, dtype_of(op.input), dtype_of(op.output), bool(op.attr("saturate")), op.attr("round_mode"))


@scalar(cast.CastLikeOp, reads=1)
def _cast_like(b: Body, op: Any, x: SSAValue) -> SSAValue:
    return cast_scalar(b, x, dtype_of(op.input), dtype_of(op.output), bool(op.attr("saturate")), op.attr("round_mode"))
