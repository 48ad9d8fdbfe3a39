"""Logic on bools: and, or, xor (`not` is in `unary`)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from xdsl.irdl import irdl_op_definition

from sardonyx.dialects.base import OnnxForm
from sardonyx.dialects.dtypes import bool_
from sardonyx.dialects.evaluate import Array
from sardonyx.dialects.sx.binary import BinaryOp


class LogicalOp(BinaryOp):
    """Two bools.

    (C1) Both operands are bool. (C2) Their shapes broadcast.
    """

    COMMUTATIVE: ClassVar = True
    DTYPES: ClassVar = (bool_,)


@irdl_op_definition
class AndOp(LogicalOp):
    """Whether both operands are true."""

    name = "sx.and"
    ONNX: ClassVar = OnnxForm("And", since=7)

    def compute(self, a: Array, b: Array) -> Array:
        return np.logical_and(a, b)


@irdl_op_definition
class OrOp(LogicalOp):
    """Whether either operand is true."""

    name = "sx.or"
    ONNX: ClassVar = OnnxForm("Or", since=7)

    def compute(self, a: Array, b: Array) -> Array:
        return np.logical_or(a, b)


@irdl_op_definition
class XorOp(LogicalOp):
    """Whether one operand is true and the other is not."""

    name = "sx.xor"
    ONNX: ClassVar = OnnxForm("Xor", since=7)

    def compute(self, a: Array, b: Array) -> Array:
        return np.logical_xor(a, b)
