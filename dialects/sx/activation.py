"""Activations: elementwise functions of one operand, most with float attributes, and prelu.

ONNX keeps float attributes in float32; so do the semantics here (`float_attr`), whatever the tensor's dtype.
Where the formula meets infinity times zero the result is NaN, as IEEE arithmetic has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import FloatAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, tensor_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Proof, equal
from sardonyx.dialects.dtypes import (
    FLOATS,
    INTEGERS,
    SIGNED_INTEGERS,
    DType,
    float16,
    float32,
    float64,
    int32,
    int64,
    uint32,
    uint64,
)
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.numeric import broadcast, double, given, is_float, narrow, saturate, sigmoid, softplus, wide
from sardonyx.dialects.sx.special import erfc
from sardonyx.dialects.sx.support import check_dtype, float_attr, format_dims, is_unranked, same_dtype
from sardonyx.dialects.sx.unary import UnaryOp
from sardonyx.errors import ExecutionError


@irdl_op_definition
class ReluOp(UnaryOp):
    """0 where the operand is below zero, else the operand: NaN and -0 stay."""

    name = "sx.relu"
    ONNX: ClassVar = OnnxForm("Relu", since=6)
    DTYPES: ClassVar = (*SIGNED_INTEGERS, *FLOATS)

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = given(arrays)
        return [np.where(wide(x) < 0, x.dtype.type(0), x)]


@irdl_op_definition
class LeakyReluOp(UnaryOp):
    """`alpha * input` below zero, else the operand."""

    name = "sx.leaky_relu"
    ONNX: ClassVar = OnnxForm("LeakyRelu", since=6)
    alpha = opt_prop_def(FloatAttr)
    DEFAULTS: ClassVar = {"alpha": 0.009999999776482582}

    def compute(self, x: Array) -> Array:
        return np.where(x < 0, float_attr(self, "alpha") * x, x)


@irdl_op_definition
class EluOp(UnaryOp):
    """`alpha * (exp(input) - 1)` below zero, else the operand."""

    name = "sx.elu"
    ONNX: ClassVar = OnnxForm("Elu", since=6)
    alpha = opt_prop_def(FloatAttr)
    DEFAULTS: ClassVar = {"alpha": 1.0}

    def compute(self, x: Array) -> Array:
        return np.where(x < 0, float_attr(self, "alpha") * np.expm1(x), x)


@irdl_op_definition
class SeluOp(UnaryOp):
    """`gamma * alpha * (exp(input) - 1)` up to zero, else `gamma * input`."""

    name = "sx.selu"
    ONNX: ClassVar = OnnxForm("Selu", since=6)
    alpha = opt_prop_def(FloatAttr)
    gamma = opt_prop_def(FloatAttr)
    DEFAULTS: ClassVar = {"alpha": 1.6732631921768188, "gamma": 1.0507010221481323}

    def compute(self, x: Array) -> Array:
        return float_attr(self, "gamma") * np.where(x <= 0, float_attr(self, "alpha") * np.expm1(x), x)


@irdl_op_definition
class CeluOp(UnaryOp):
    """`max(0, input) + min(0, alpha * (exp(input / alpha) - 1))`."""

    name = "sx.celu"
    ONNX: ClassVar = OnnxForm("Celu", since=12)
    alpha = opt_prop_def(FloatAttr)
    DEFAULTS: ClassVar = {"alpha": 1.0}

    def compute(self, x: Array) -> Array:
        alpha = float_attr(self, "alpha")
        return np.maximum(x, 0.0) + np.minimum(alpha * np.expm1(x / alpha), 0.0)


@irdl_op_definition
class SigmoidOp(UnaryOp):
    """`1 / (1 + exp(-input))`."""

    name = "sx.sigmoid"
    ONNX: ClassVar = OnnxForm("Sigmoid", since=6)

    def compute(self, x: Array) -> Array:
        return sigmoid(x)


@irdl_op_definition
class HardSigmoidOp(UnaryOp):
    """`max(0, min(1, alpha * input + beta))`."""

    name = "sx.hard_sigmoid"
    ONNX: ClassVar = OnnxForm("HardSigmoid", since=6)
    alpha = opt_prop_def(FloatAttr)
    beta = opt_prop_def(FloatAttr)
    DEFAULTS: ClassVar = {"alpha": 0.20000000298023224, "beta": 0.5}

    def compute(self, x: Array) -> Array:
        return np.maximum(np.minimum(float_attr(self, "alpha") * x + float_attr(self, "beta"), 1.0), 0.0)


@irdl_op_definition
class HardSwishOp(UnaryOp):
    """`input * max(0, min(1, input / 6 + 1 / 2))`."""

    name = "sx.hard_swish"
    ONNX: ClassVar = OnnxForm("HardSwish", since=14)

    def compute(self, x: Array) -> Array:
        return x * np.maximum(np.minimum(x / 6.0 + 0.5, 1.0), 0.0)


@irdl_op_definition
class TanhOp(UnaryOp):
    """The hyperbolic tangent."""

    name = "sx.tanh"
    ONNX: ClassVar = OnnxForm("Tanh", since=6)

    def compute(self, x: Array) -> Array:
        return np.tanh(x)


@irdl_op_definition
class SoftplusOp(UnaryOp):
    """`log(1 + exp(input))`, without overflow."""

    name = "sx.softplus"
    ONNX: ClassVar = OnnxForm("Softplus", since=1)

    def compute(self, x: Array) -> Array:
        return softplus(x)


@irdl_op_definition
class SoftsignOp(UnaryOp):
    """`input / (1 + |input|)`; NaN at infinities."""

    name = "sx.softsign"
    ONNX: ClassVar = OnnxForm("Softsign", since=1)

    def compute(self, x: Array) -> Array:
        return x / (1.0 + np.abs(x))


@irdl_op_definition
class GeluOp(UnaryOp):
    """`input * P(X <= input)` for a standard normal X; with `approximate = "tanh"` its approximation
    `input / 2 * (1 + tanh(sqrt(2 / pi) * (input + 0.044715 * input ** 3)))`.

    (C2) `approximate` is "none" or "tanh".
    """

    name = "sx.gelu"
    ONNX: ClassVar = OnnxForm("Gelu", since=20)
    approximate = opt_prop_def(StringAttr)
    DEFAULTS: ClassVar = {"approximate": "none"}

    def infer(self) -> Sequence[Attribute]:
        if self.attr("approximate") not in ("none", "tanh"):
            raise self.fail(f"(C2) approximate is '{self.attr('approximate')}'; allowed: none, tanh")
        return super().infer()

    def compute(self, x: Array) -> Array:
        if self.attr("approximate") == "tanh":
            # (1 + tanh u) / 2 is sigmoid(2u), which loses no digits where tanh is near -1.
            return x * sigmoid(2.0 * np.sqrt(2.0 / np.pi) * (x + 0.044715 * x * x * x))
        return x * (0.5 * erfc(x * -np.sqrt(0.5)))


@irdl_op_definition
class MishOp(UnaryOp):
    """`input * tanh(log(1 + exp(input)))`."""

    name = "sx.mish"
    ONNX: ClassVar = OnnxForm("Mish", since=18)

    def compute(self, x: Array) -> Array:
        return x * np.tanh(softplus(x))


@irdl_op_definition
class SwishOp(UnaryOp):
    """`input / (1 + exp(-alpha * input))`."""

    name = "sx.swish"
    ONNX: ClassVar = OnnxForm("Swish", since=24)
    alpha = opt_prop_def(FloatAttr)
    DEFAULTS: ClassVar = {"alpha": 1.0}

    def compute(self, x: Array) -> Array:
        return x * sigmoid(float_attr(self, "alpha") * x)


@irdl_op_definition
class ThresholdedReluOp(UnaryOp):
    """The operand where it is above `alpha`, else (for NaN too) 0."""

    name = "sx.thresholded_relu"
    ONNX: ClassVar = OnnxForm("ThresholdedRelu", since=10)
    alpha = opt_prop_def(FloatAttr)
    DEFAULTS: ClassVar = {"alpha": 1.0}

    def compute(self, x: Array) -> Array:
        return np.where(x > float_attr(self, "alpha"), x, 0.0)


@irdl_op_definition
class ShrinkOp(UnaryOp):
    """`input + bias` below `-lambd`, `input - bias` above `lambd`, else (for NaN too) 0.

    Integers are computed in float64 and truncated, saturated where they are out of range.
    """

    name = "sx.shrink"
    ONNX: ClassVar = OnnxForm("Shrink", since=9)
    DTYPES: ClassVar = (*INTEGERS, float16, float32, float64)
    lambd = opt_prop_def(FloatAttr)
    bias = opt_prop_def(FloatAttr)
    DEFAULTS: ClassVar = {"lambd": 0.5, "bias": 0.0}

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (array,) = given(arrays)
        x, lambd, bias = double(array), float_attr(self, "lambd"), float_attr(self, "bias")
        y = np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0.0))
        return [narrow(y, array.dtype) if is_float(array) else saturate(y, array.dtype)]


@irdl_op_definition
class PReluOp(SxOp):
    """`slope * input` below zero, else `input`; integers wrap around.

    (C1) Both operands have the same dtype, one of `DTYPES`. (C2) `slope` broadcasts to the shape of `input`: it has no
    more dims, and each is 1 or that of `input`.
    """

    name = "sx.prelu"
    ONNX: ClassVar = OnnxForm("PRelu", since=9)
    input = operand_def()
    slope = operand_def()
    output = result_def()
    ELEMENTWISE: ClassVar = True
    DTYPES: ClassVar[Sequence[DType]] = (int32, int64, uint32, uint64, *FLOATS)

    def infer(self) -> Sequence[Attribute]:
        dtype = same_dtype(self, [self.input, self.slope], "(C1)")
        check_dtype(self, self.input, self.DTYPES, "(C1)")
        if is_unranked(self.input) or is_unranked(self.slope):
            return [self.input.type]
        dims, slope = dims_of(self.input), dims_of(self.slope)
        aligned = zip(reversed(dims), reversed(slope), strict=False)
        if len(slope) > len(dims) or any(s != 1 and equal(d, s) is Proof.REFUTED for d, s in aligned if s.is_static):
            raise self.fail(f"(C2) slope {format_dims(slope)} does not broadcast to {format_dims(dims)}")
        return [tensor_type(dtype, dims)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, slope = broadcast(self, arrays, "(C2)")
        if np.broadcast_shapes(x.shape, slope.shape) != x.shape:
            shown = f"{list(slope.shape)} does not broadcast to {list(x.shape)}"
            raise ExecutionError(f"(C2) slope {shown}", op=self.name)
        value = wide(x)
        return [np.where(value < 0, value * wide(slope), value).astype(x.dtype)]
