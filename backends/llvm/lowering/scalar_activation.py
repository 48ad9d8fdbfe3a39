"""Scalar bodies of the activations. Their float attributes are float32, as ONNX has them, whatever the dtype."""

from __future__ import annotations

import math
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body
from sardonyx.backends.llvm.lowering.elementwise import scalar
from sardonyx.backends.llvm.lowering.scalar_unary import computed_in, function_body
from sardonyx.dialects.dtypes import DType, float64
from sardonyx.dialects.sx import activation
from sardonyx.dialects.sx.support import float_attr

AS_A_SUM = "as_a_sum"
"""Of a gelu in float32 that is to be as exact as `x/2 (1 + erf(x / sqrt(2)))`, and no more."""

for _op, _name in {
    activation.SigmoidOp: "sigmoid",
    activation.TanhOp: "tanh",
    activation.SoftplusOp: "softplus",
}.items():
    scalar(_op)(function_body(_name))


def _where_negative(b: Body, dtype: DType, x: SSAValue, below: SSAValue, otherwise: SSAValue) -> SSAValue:
    """`below` where x < 0, else (for NaN too) `otherwise`."""
    return b.select(b.compare_scalars("lt", dtype, x, b.const(dtype, 0)), below, otherwise)


def _clamp(b: Body, dtype: DType, x: SSAValue, low: float, high: float) -> SSAValue:
    """x between the bounds; NaN stays."""
    return b.arithmetic("max", dtype, b.arithmetic("min", dtype, x, b.const(dtype, high)), b.const(dtype, low))


@scalar(activation.ReluOp)
def _relu(b: Body, op: Any, x: SSAValue) -> SSAValue:
    dtype = computed_in(op.input)
    return _where_negative(b, dtype, x, b.const(dtype, 0), x)


@scalar(activation.LeakyReluOp)
def _leaky_relu(b: Body, op: Any, x: SSAValue) -> SSAValue:
    dtype = computed_in(op.input)
    return _where_negative(b, dtype, x, b.arithmetic("mul", dtype, b.const(dtype, float_attr(op, "alpha")), x), x)


@scalar(activation.PReluOp)
def _prelu(b: Body, op: Any, x: SSAValue, slope: SSAValue) -> SSAValue:
    dtype = computed_in(op.input)
    return _where_negative(b, dtype, x, b.arithmetic("mul", dtype, x, slope), x)


@scalar(activation.EluOp)
def _elu(b: Body, op: Any, x: SSAValue) -> SSAValue:
    dtype = computed_in(op.input)
    below = b.arithmetic("mul", dtype, b.const(dtype, float_attr(op, "alpha")), b.math("expm1", x.type, x))
    return _where_negative(b, dtype, x, below, x)


@scalar(activation.SeluOp)
def _selu(b: Body, op: Any, x: SSAValue) -> SSAValue:
    dtype = computed_in(op.input)
    alpha, gamma = (b.const(dtype, float_attr(op, name)) for name in ("alpha", "gamma"))
    below = b.arithmetic("mul", dtype, alpha, b.math("expm1", x.type, x))
    chosen = b.select(b.compare_scalars("le", dtype, x, b.const(dtype, 0)), below, x)
    return b.arithmetic("mul", dtype, gamma, chosen)


@scalar(activation.CeluOp)
def _celu(b: Body, op: Any, x: SSAValue) -> SSAValue:
    dtype = computed_in(op.input)
    alpha, zero = b.const(dtype, float_attr(op, "alpha")), b.const(dtype, 0)
    power = b.math("expm1", x.type, b.arithmetic("div", dtype, x, alpha))
    below = b.arithmetic("min", dtype, b.arithmetic("mul", dtype, alpha, power), zero)
    return b.arithmetic("add", dtype, b.arithmetic("max", dtype, x, zero), below)


@scalar(activation.HardSigmoidOp)
def _hard_sigmoid(b: Body, op: Any, x: SSAValue) -> SSAValue:
    dtype = computed_in(op.input)
    alpha, beta = (b.const(dtype, float_attr(op, name)) for name in ("alpha", "beta"))
    return _clamp(b, dtype, b.math("fma", x.type, alpha, x, beta), 0.0, 1.0)


@scalar(activation.HardSwishOp)
def _hard_swish(b: Body, op: Any, x: SSAValue) -> SSAValue:
    """x * (clamp(x + 3) / 6): near -3, where the result is small, the sum is exact."""
    dtype = computed_in(op.input)
    shifted = _clamp(b, dtype, b.arithmetic("add", dtype, x, b.const(dtype, 3)), 0.0, 6.0)
    return b.arithmetic("mul", dtype, x, b.arithmetic("div", dtype, shifted, b.const(dtype, 6)))


@scalar(activation.SoftsignOp)
def _softsign(b: Body, op: Any, x: SSAValue) -> SSAValue:
    dtype = computed_in(op.input)
    below = b.arithmetic("add", dtype, b.const(dtype, 1), b.math("abs", x.type, x))
    return b.arithmetic("div", dtype, x, below)


@scalar(activation.GeluOp)
def _gelu(b: Body, op: Any, x: SSAValue) -> SSAValue:
    if op.attr("approximate") != "tanh":
        return b.math("gelu_sum" if AS_A_SUM in op.attributes else "gelu", x.type, x)
    dtype = computed_in(op.input)
    square = b.arithmetic("mul", dtype, x, x)
    # (1 + tanh u) / 2 is sigmoid(2u), which loses no digits where tanh is near -1.
    factor = 2.0 * math.sqrt(2.0 / math.pi)
    inner = b.math("fma", x.type, square, b.const(dtype, factor * 0.044715), b.const(dtype, factor))
    return b.arithmetic("mul", dtype, x, b.math("sigmoid", x.type, b.arithmetic("mul", dtype, x, inner)))


@scalar(activation.MishOp)
def _mish(b: Body, op: Any, x: SSAValue) -> SSAValue:
    """x * n / (n + 2) with n = e^x (e^x + 2), which is tanh(log(1 + e^x)); from the bound on it is 1."""
    dtype = computed_in(op.input)
    bound = b.const(dtype, 40.0 if dtype == float64 else 20.0)
    power = b.math("exp", x.type, b.arithmetic("min", dtype, x, bound))
    two = b.const(dtype, 2)
    n = b.arithmetic("mul", dtype, power, b.arithmetic("add", dtype, power, two))
    return b.arithmetic("mul", dtype, x, b.arithmetic("div", dtype, n, b.arithmetic("add", dtype, n, two)))


@scalar(activation.SwishOp)
def _swish(b: Body, op: Any, x: SSAValue) -> SSAValue:
    dtype = computed_in(op.input)
    alpha = float_attr(op, "alpha")
    scaled = x if alpha == 1.0 else b.arithmetic("mul", dtype, b.const(dtype, alpha), x)
    return b.arithmetic("mul", dtype, x, b.math("sigmoid", x.type, scaled))


@scalar(activation.ThresholdedReluOp)
def _thresholded_relu(b: Body, op: Any, x: SSAValue) -> SSAValue:
    dtype = computed_in(op.input)
    above = b.compare_scalars("gt", dtype, x, b.const(dtype, float_attr(op, "alpha")))
    return b.select(above, x, b.const(dtype, 0))


@scalar(activation.ShrinkOp)
def _shrink(b: Body, op: Any, x: SSAValue) -> SSAValue:
    """Integers are computed in float64 and saturate."""
    own = computed_in(op.input)
    dtype = own if own.is_float else float64
    value = b.convert(x, own, dtype)
    lambd, bias = float_attr(op, "lambd"), float_attr(op, "bias")
    above = b.compare_scalars("gt", dtype, value, b.const(dtype, lambd))
    below = b.compare_scalars("lt", dtype, value, b.const(dtype, -lambd))
    lowered = b.arithmetic("sub", dtype, value, b.const(dtype, bias))
    raised = b.arithmetic("add", dtype, value, b.const(dtype, bias))
    result = b.select(below, raised, b.select(above, lowered, b.const(dtype, 0)))
    return b.convert(result, dtype, own)
