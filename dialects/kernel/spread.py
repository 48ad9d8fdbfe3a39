"""`kernel.spread`: every element of a run stands several times in a row, as resizing to a multiple needs it."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerAttr, i64
from xdsl.ir import SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def
from xdsl.utils.exceptions import VerifyException

from sardonyx.dialects.kernel.ops import BufferType

_INDEX = IndexType()


@irdl_op_definition
class SpreadOp(IRDLOperation):
    """`target[to + i * times + k] = source[at + i]` for i < extent and k < times.

    The buffers have one element type and do not overlap. (C1) `times` is at least 2.
    """

    name = "kernel.spread"
    source = operand_def(BufferType)
    target = operand_def(BufferType)
    extent = operand_def(_INDEX)
    at = operand_def(_INDEX)
    to = operand_def(_INDEX)
    times = prop_def(IntegerAttr)

    def __init__(
        self, source: SSAValue, target: SSAValue, extent: SSAValue, at: SSAValue, to: SSAValue, times: int
    ) -> None:
        super().__init__(
            operands=[source, target, extent, at, to], properties={"times": IntegerAttr(times, i64)}, result_types=[]
        )

    def verify_(self) -> None:
        if self.times.value.data < 2:
            raise VerifyException(f"(C1) times is {self.times.value.data}")
        if self.source.type != self.target.type:
            raise VerifyException(f"the buffers have the types {self.source.type} and {self.target.type}")
