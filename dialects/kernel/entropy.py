"""`kernel.entropy`: a number that nobody can know before the run."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType
from xdsl.irdl import IRDLOperation, irdl_op_definition, result_def


@irdl_op_definition
class EntropyOp(IRDLOperation):
    """64 random bits of the operating system, another number in every run; an op of the plan."""

    name = "kernel.entropy"
    result = result_def(IndexType())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[IndexType()])
