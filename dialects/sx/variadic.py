"""Elementwise ops of any number of operands: max, min, sum, mean."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import ClassVar

import numpy as np
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, result_def, var_operand_def

from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import FLOATS, NUMERIC, DType
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx import facts
from sardonyx.dialects.sx.numeric import broadcast, double, maximum, minimum, narrow, wide
from sardonyx.dialects.sx.support import broadcast_type, check_dtype, same_dtype
from sardonyx.dialects.values import Contents


class VariadicOp(SxOp):
    """Any number of operands, broadcast together.

    (C1) There is at least one operand; all have the same dtype, one of `DTYPES`. (C2) Their shapes broadcast.
    """

    inputs = var_operand_def()
    output = result_def()
    ELEMENTWISE: ClassVar = True
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def infer(self) -> Sequence[Attribute]:
        if not self.inputs:
            raise self.fail("(C1) there is no operand")
        dtype = same_dtype(self, self.inputs, "(C1)")
        check_dtype(self, self.inputs[0], self.DTYPES, "(C1)")
        return [broadcast_type(self, dtype, self.inputs, "(C2)")]


@irdl_op_definition
class MaxOp(VariadicOp):
    """The greatest operand; NaN where any is NaN. Of zeros with both signs it is +0 (a backend may give either)."""

    name = "sx.max"
    COMMUTATIVE: ClassVar = True
    ONNX: ClassVar = OnnxForm("Max", since=8)
    DTYPES: ClassVar = NUMERIC

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        operands = broadcast(self, arrays, "(C2)")
        return [np.asarray(reduce(maximum, map(wide, operands))).astype(operands[0].dtype)]

    def infer_values(self) -> Sequence[Contents | None]:
        return [facts.elementwise(self, Dim.max)]


@irdl_op_definition
class MinOp(VariadicOp):
    """The smallest operand; NaN where any is NaN. Of zeros with both signs it is -0 (a backend may give either)."""

    name = "sx.min"
    COMMUTATIVE: ClassVar = True
    ONNX: ClassVar = OnnxForm("Min", since=8)
    DTYPES: ClassVar = NUMERIC

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        operands = broadcast(self, arrays, "(C2)")
        return [np.asarray(reduce(minimum, map(wide, operands))).astype(operands[0].dtype)]

    def infer_values(self) -> Sequence[Contents | None]:
        return [facts.elementwise(self, Dim.min)]


@irdl_op_definition
class SumOp(VariadicOp):
    """The sum of all operands, accumulated from left to right in float64 and rounded once."""

    name = "sx.sum"
    ONNX: ClassVar = OnnxForm("Sum", since=8)

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        operands = broadcast(self, arrays, "(C2)")
        return [narrow(reduce(np.add, map(double, operands)), operands[0].dtype)]


@irdl_op_definition
class MeanOp(VariadicOp):
    """The mean of all operands, computed in float64 and rounded once."""

    name = "sx.mean"
    ONNX: ClassVar = OnnxForm("Mean", since=8)

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        operands = broadcast(self, arrays, "(C2)")
        return [narrow(reduce(np.add, map(double, operands)) / len(operands), operands[0].dtype)]
