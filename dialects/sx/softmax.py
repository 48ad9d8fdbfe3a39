"""Normalised exponentials along one axis: softmax, log_softmax, hardmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import rank_of
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dtypes import FLOATS, DType
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.numeric import double, given, narrow
from sardonyx.dialects.sx.support import broadcast_type, check_dtype, is_unranked, normalize_axis


class SoftmaxLikeOp(SxOp):
    """A function of each slice along `axis`; the result has the operand's type.

    (C1) The operand's dtype is one of `DTYPES`. (C2) `axis` is in [-rank, rank).
    """

    input = operand_def()
    axis = opt_prop_def(IntegerAttr)
    output = result_def()
    DEFAULTS: ClassVar = {"axis": -1}
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.input, self.DTYPES, "(C1)")
        if not is_unranked(self.input):
            normalize_axis(self, self.attr("axis"), rank_of(self.input), "(C2)")
        return [broadcast_type(self, dtype, [self.input], "(C1)")]

    def compute(self, x: Array, axis: int) -> Array:
        """The result on float64 elements."""
        raise NotImplementedError(f"{self.name} does not define compute()")

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = given(arrays)
        axis = normalize_axis(self, self.attr("axis"), x.ndim, "(C2)")
        return [narrow(self.compute(double(x), axis), x.dtype) if x.size else x]


@irdl_op_definition
class SoftmaxOp(SoftmaxLikeOp):
    """`exp(input) / sum(exp(input))`, without overflow.

    -inf gives 0; a slice that holds NaN or inf, or -inf only, is all NaN.
    """

    name = "sx.softmax"
    ONNX: ClassVar = OnnxForm("Softmax", since=13)

    def compute(self, x: Array, axis: int) -> Array:
        powers = np.exp(x - np.max(x, axis=axis, keepdims=True))
        return powers / np.sum(powers, axis=axis, keepdims=True)


@irdl_op_definition
class LogSoftmaxOp(SoftmaxLikeOp):
    """`log(softmax(input))`, without overflow and without loss; NaN where softmax has it."""

    name = "sx.log_softmax"
    ONNX: ClassVar = OnnxForm("LogSoftmax", since=13)

    def compute(self, x: Array, axis: int) -> Array:
        shifted = x - np.max(x, axis=axis, keepdims=True)
        return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


@irdl_op_definition
class HardmaxOp(SoftmaxLikeOp):
    """1 at the first greatest element (the first NaN if there is one), else 0."""

    name = "sx.hardmax"
    ONNX: ClassVar = OnnxForm("Hardmax", since=13)

    def compute(self, x: Array, axis: int) -> Array:
        out = np.zeros_like(x)
        np.put_along_axis(out, np.expand_dims(np.argmax(x, axis=axis), axis), 1.0, axis)
        return out
