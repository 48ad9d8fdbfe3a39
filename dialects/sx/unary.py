"""Elementwise ops of one operand: rounding, roots, exponentials, trigonometry, tests of floats, not, identity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import ANY, FLOATS, INTEGERS, NUMERIC, SIGNED_INTEGERS, SMALL_FLOATS, DType, bool_
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx import facts
from sardonyx.dialects.sx.numeric import double, given, is_float, narrow, wide
from sardonyx.dialects.sx.special import erf
from sardonyx.dialects.sx.support import broadcast_type, check_dtype
from sardonyx.dialects.types import is_container
from sardonyx.dialects.values import Contents


class UnaryOp(SxOp):
    """One operand; the result has its shape and, unless RESULT says otherwise, its dtype.

    (C1) The operand's dtype is one of `DTYPES`.
    """

    input = operand_def()
    output = result_def()
    ELEMENTWISE: ClassVar = True
    DTYPES: ClassVar[Sequence[DType]] = FLOATS
    RESULT: ClassVar[DType | None] = None

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.input, self.DTYPES, "(C1)")
        return [broadcast_type(self, self.RESULT or dtype, [self.input], "(C1)")]

    def compute(self, x: Array) -> Array:
        """The result on float64 elements; it is rounded once to the operand's dtype."""
        raise NotImplementedError(f"{self.name} does not define compute()")

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = given(arrays)
        return [narrow(self.compute(double(x)), x.dtype)]


@irdl_op_definition
class IdentityOp(UnaryOp):
    """The operand itself, which may be a sequence or an optional, too."""

    name = "sx.identity"
    ONNX: ClassVar = OnnxForm("Identity", since=1)
    DTYPES: ClassVar = ANY

    def infer(self) -> Sequence[Attribute]:
        return [self.input.type] if is_container(self.input.type) else super().infer()

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Any]:
        return arrays

    def infer_values(self) -> Sequence[Contents | None]:
        return [facts.elementwise(self, lambda x: x)]


@irdl_op_definition
class AbsOp(UnaryOp):
    """`|input|`; the sign bit of a float is cleared; the least integer stays as it is."""

    name = "sx.abs"
    ONNX: ClassVar = OnnxForm("Abs", since=6)
    DTYPES: ClassVar = NUMERIC

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = given(arrays)
        return [np.abs(wide(x)).astype(x.dtype)]

    def infer_values(self) -> Sequence[Contents | None]:
        return [facts.elementwise(self, lambda x: x if facts.at_least(x, 0) else None)]


@irdl_op_definition
class NegOp(UnaryOp):
    """`-input`; the sign bit of a float is flipped, so 0 becomes -0; the least integer stays as it is."""

    name = "sx.neg"
    ONNX: ClassVar = OnnxForm("Neg", since=6)
    DTYPES: ClassVar = (*SIGNED_INTEGERS, *FLOATS)

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = given(arrays)
        return [np.negative(wide(x)).astype(x.dtype)]

    def infer_values(self) -> Sequence[Contents | None]:
        return [facts.elementwise(self, lambda x: -x)]


@irdl_op_definition
class SignOp(UnaryOp):
    """1, 0 or -1 by the operand's sign; +0 for zeros of either sign; NaN stays NaN."""

    name = "sx.sign"
    ONNX: ClassVar = OnnxForm("Sign", since=9)
    DTYPES: ClassVar = NUMERIC

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = given(arrays)
        value = wide(x)
        sign = np.where(value > 0, 1, np.where(value < 0, -1, 0)).astype(value.dtype)
        return [(np.where(np.isnan(value), value, sign) if is_float(x) else sign).astype(x.dtype)]

    def infer_values(self) -> Sequence[Contents | None]:
        return [facts.elementwise(self, lambda x: Dim.of(1) if facts.at_least(x, 1) else None)]


@irdl_op_definition
class CeilOp(UnaryOp):
    """The least integer that is not below the operand; keeps -0."""

    name = "sx.ceil"
    ONNX: ClassVar = OnnxForm("Ceil", since=6)

    def compute(self, x: Array) -> Array:
        return np.ceil(x)


@irdl_op_definition
class FloorOp(UnaryOp):
    """The greatest integer that is not above the operand."""

    name = "sx.floor"
    ONNX: ClassVar = OnnxForm("Floor", since=6)

    def compute(self, x: Array) -> Array:
        return np.floor(x)


@irdl_op_definition
class RoundOp(UnaryOp):
    """The nearest integer, halves to the even one; keeps -0."""

    name = "sx.round"
    ONNX: ClassVar = OnnxForm("Round", since=11)

    def compute(self, x: Array) -> Array:
        return np.rint(x)


@irdl_op_definition
class SqrtOp(UnaryOp):
    """The square root; NaN below zero; keeps -0."""

    name = "sx.sqrt"
    ONNX: ClassVar = OnnxForm("Sqrt", since=6)

    def compute(self, x: Array) -> Array:
        return np.sqrt(x)


@irdl_op_definition
class ExpOp(UnaryOp):
    """`e ** input`."""

    name = "sx.exp"
    ONNX: ClassVar = OnnxForm("Exp", since=6)

    def compute(self, x: Array) -> Array:
        return np.exp(x)


@irdl_op_definition
class LogOp(UnaryOp):
    """The natural logarithm; -inf at zeros, NaN below."""

    name = "sx.log"
    ONNX: ClassVar = OnnxForm("Log", since=6)

    def compute(self, x: Array) -> Array:
        return np.log(x)


@irdl_op_definition
class ReciprocalOp(UnaryOp):
    """`1 / input`; infinite at zeros, with their sign."""

    name = "sx.reciprocal"
    ONNX: ClassVar = OnnxForm("Reciprocal", since=6)

    def compute(self, x: Array) -> Array:
        return np.reciprocal(x)


@irdl_op_definition
class SinOp(UnaryOp):
    """The sine; NaN at infinities."""

    name = "sx.sin"
    ONNX: ClassVar = OnnxForm("Sin", since=7)

    def compute(self, x: Array) -> Array:
        return np.sin(x)


@irdl_op_definition
class CosOp(UnaryOp):
    """The cosine; NaN at infinities."""

    name = "sx.cos"
    ONNX: ClassVar = OnnxForm("Cos", since=7)

    def compute(self, x: Array) -> Array:
        return np.cos(x)


@irdl_op_definition
class TanOp(UnaryOp):
    """The tangent; NaN at infinities."""

    name = "sx.tan"
    ONNX: ClassVar = OnnxForm("Tan", since=7)

    def compute(self, x: Array) -> Array:
        return np.tan(x)


@irdl_op_definition
class AsinOp(UnaryOp):
    """The inverse sine; NaN beyond [-1, 1]."""

    name = "sx.asin"
    ONNX: ClassVar = OnnxForm("Asin", since=7)

    def compute(self, x: Array) -> Array:
        return np.arcsin(x)


@irdl_op_definition
class AcosOp(UnaryOp):
    """The inverse cosine; NaN beyond [-1, 1]."""

    name = "sx.acos"
    ONNX: ClassVar = OnnxForm("Acos", since=7)

    def compute(self, x: Array) -> Array:
        return np.arccos(x)


@irdl_op_definition
class AtanOp(UnaryOp):
    """The inverse tangent."""

    name = "sx.atan"
    ONNX: ClassVar = OnnxForm("Atan", since=7)

    def compute(self, x: Array) -> Array:
        return np.arctan(x)


@irdl_op_definition
class SinhOp(UnaryOp):
    """The hyperbolic sine."""

    name = "sx.sinh"
    ONNX: ClassVar = OnnxForm("Sinh", since=9)

    def compute(self, x: Array) -> Array:
        return np.sinh(x)


@irdl_op_definition
class CoshOp(UnaryOp):
    """The hyperbolic cosine."""

    name = "sx.cosh"
    ONNX: ClassVar = OnnxForm("Cosh", since=9)

    def compute(self, x: Array) -> Array:
        return np.cosh(x)


@irdl_op_definition
class AsinhOp(UnaryOp):
    """The inverse hyperbolic sine."""

    name = "sx.asinh"
    ONNX: ClassVar = OnnxForm("Asinh", since=9)

    def compute(self, x: Array) -> Array:
        return np.arcsinh(x)


@irdl_op_definition
class AcoshOp(UnaryOp):
    """The inverse hyperbolic cosine; NaN below 1."""

    name = "sx.acosh"
    ONNX: ClassVar = OnnxForm("Acosh", since=9)

    def compute(self, x: Array) -> Array:
        return np.arccosh(x)


@irdl_op_definition
class AtanhOp(UnaryOp):
    """The inverse hyperbolic tangent; infinite at ±1, NaN beyond."""

    name = "sx.atanh"
    ONNX: ClassVar = OnnxForm("Atanh", since=9)

    def compute(self, x: Array) -> Array:
        return np.arctanh(x)


@irdl_op_definition
class ErfOp(UnaryOp):
    """The error function."""

    name = "sx.erf"
    ONNX: ClassVar = OnnxForm("Erf", since=9)

    def compute(self, x: Array) -> Array:
        return erf(x)


@irdl_op_definition
class IsNaNOp(UnaryOp):
    """Whether an element is NaN."""

    name = "sx.is_nan"
    DTYPES: ClassVar = (*FLOATS, *SMALL_FLOATS)
    ONNX: ClassVar = OnnxForm("IsNaN", since=9)
    RESULT: ClassVar = bool_

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = given(arrays)
        return [np.isnan(wide(x))]


@irdl_op_definition
class IsInfOp(UnaryOp):
    """Whether an element is infinite, of a sign that is asked for."""

    name = "sx.is_inf"
    DTYPES: ClassVar = (*FLOATS, *SMALL_FLOATS)
    ONNX: ClassVar = OnnxForm("IsInf", since=10)
    RESULT: ClassVar = bool_
    detect_negative = opt_prop_def(IntegerAttr)
    detect_positive = opt_prop_def(IntegerAttr)
    DEFAULTS: ClassVar = {"detect_negative": True, "detect_positive": True}

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = given(arrays)
        value = wide(x)
        negative = (value == -np.inf) & bool(self.attr("detect_negative"))
        return [negative | ((value == np.inf) & bool(self.attr("detect_positive")))]


@irdl_op_definition
class NotOp(UnaryOp):
    """The negation of a bool."""

    name = "sx.not"
    ONNX: ClassVar = OnnxForm("Not", since=1)
    DTYPES: ClassVar = (bool_,)

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = given(arrays)
        return [~x]

    def infer_values(self) -> Sequence[Contents | None]:
        return [facts.elementwise(self)]


@irdl_op_definition
class BitwiseNotOp(UnaryOp):
    """All bits flipped."""

    name = "sx.bitwise_not"
    ONNX: ClassVar = OnnxForm("BitwiseNot", since=18)
    DTYPES: ClassVar = INTEGERS

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = given(arrays)
        return [np.bitwise_not(x)]

    def infer_values(self) -> Sequence[Contents | None]:
        return [facts.elementwise(self, lambda x: -x - 1)]
