"""Comparisons: equal, less, less_equal, greater, greater_equal; the result is bool. NaN equals and precedes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition

from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.base import OnnxForm
from sardonyx.dialects.dims import Dim, equal, less_equal
from sardonyx.dialects.dtypes import ALL, bool_, string
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx import facts
from sardonyx.dialects.sx.binary import BinaryOp
from sardonyx.dialects.sx.numeric import broadcast
from sardonyx.dialects.sx.strings import is_string
from sardonyx.dialects.sx.support import broadcast_type


class CompareOp(BinaryOp):
    """Two operands of one dtype compared element by element.

    (C1) The operands have the same dtype, one of `DTYPES`. (C2) Their shapes broadcast.
    """

    RESULT: ClassVar = bool_


@irdl_op_definition
class EqualOp(CompareOp):
    """`lhs == rhs`; zeros of both signs are equal. Strings may be compared, too."""

    name = "sx.equal"
    COMMUTATIVE: ClassVar = True
    ONNX: ClassVar = OnnxForm("Equal", since=11)
    DTYPES: ClassVar = ALL

    def infer(self) -> Sequence[Attribute]:
        if any(dtype_of(operand) != string for operand in (self.lhs, self.rhs)):
            return super().infer()
        return [broadcast_type(self, bool_, [self.lhs, self.rhs], "(C2)")]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        a, b = broadcast(self, arrays, "(C2)")
        return [np.asarray(np.equal(a, b), np.bool_)] if is_string(a) else super().evaluate(ctx, a, b)

    def compute(self, a: Array, b: Array) -> Array:
        return np.equal(a, b)

    def combine(self, a: Dim, b: Dim) -> Dim | None:
        return facts.proved(equal(a, b))


@irdl_op_definition
class LessOp(CompareOp):
    """`lhs < rhs`."""

    name = "sx.less"
    ONNX: ClassVar = OnnxForm("Less", since=9)

    def compute(self, a: Array, b: Array) -> Array:
        return np.less(a, b)

    def combine(self, a: Dim, b: Dim) -> Dim | None:
        return facts.proved(less_equal(a + 1, b))


@irdl_op_definition
class LessEqualOp(CompareOp):
    """`lhs <= rhs`."""

    name = "sx.less_equal"
    ONNX: ClassVar = OnnxForm("LessOrEqual", since=12)

    def compute(self, a: Array, b: Array) -> Array:
        return np.less_equal(a, b)

    def combine(self, a: Dim, b: Dim) -> Dim | None:
        return facts.proved(less_equal(a, b))


@irdl_op_definition
class GreaterOp(CompareOp):
    """`lhs > rhs`."""

    name = "sx.greater"
    ONNX: ClassVar = OnnxForm("Greater", since=9)

    def compute(self, a: Array, b: Array) -> Array:
        return np.greater(a, b)

    def combine(self, a: Dim, b: Dim) -> Dim | None:
        return facts.proved(less_equal(b + 1, a))


@irdl_op_definition
class GreaterEqualOp(CompareOp):
    """`lhs >= rhs`."""

    name = "sx.greater_equal"
    ONNX: ClassVar = OnnxForm("GreaterOrEqual", since=12)

    def compute(self, a: Array, b: Array) -> Array:
        return np.greater_equal(a, b)

    def combine(self, a: Dim, b: Dim) -> Dim | None:
        return facts.proved(less_equal(b, a))
