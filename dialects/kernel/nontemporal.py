"""Writing past the caches: what a large result's elements displace there is read sooner than they are."""

from __future__ import annotations

from xdsl.dialects.builtin import IndexType, IntegerAttr, IntegerType, i1, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def, traits_def
from xdsl.traits import Pure

from sardonyx.dialects.kernel.ops import BufferType

_INDEX = IndexType()


@irdl_op_definition
class NontemporalOp(IRDLOperation):
    """Whether the first `count` elements of a buffer are better written by stores that are `nontemporal`.

    They are if they take more than their share of the last cache, and if each run of `run` elements begins at a
    multiple of 64 bytes. False on targets without such stores.
    """

    name = "kernel.nontemporal"
    buffer = operand_def(BufferType)
    count = operand_def(_INDEX)
    run = operand_def(_INDEX)
    result = result_def(IntegerType(1))
    traits = traits_def(Pure())
    assembly_format = "$buffer `[` $count `by` $run `]` attr-dict `:` type($buffer)"

    def __init__(self, buffer: SSAValue, count: SSAValue, run: SSAValue) -> None:
        super().__init__(operands=[buffer, count, run], result_types=[i1])


@irdl_op_definition
class FetchOp(IRDLOperation):
    """Has native code fetch the line of an element that is soon to be written."""

    name = "kernel.fetch"
    buffer = operand_def(BufferType)
    offset = operand_def(_INDEX)
    assembly_format = "$buffer `[` $offset `]` attr-dict `:` type($buffer)"

    def __init__(self, buffer: SSAValue, offset: SSAValue) -> None:
        super().__init__(operands=[buffer, offset])


@irdl_op_definition
class ScratchOp(IRDLOperation):
    """Memory of so many elements on the stack, as long as the kernel runs; its contents are undefined at first."""

    name = "kernel.scratch"
    count = prop_def(IntegerAttr)
    result = result_def(BufferType)
    traits = traits_def(Pure())
    assembly_format = "$count attr-dict `:` type($result)"

    def __init__(self, count: int, element: Attribute) -> None:
        super().__init__(properties={"count": IntegerAttr(count, i64)}, result_types=[BufferType(element)])
