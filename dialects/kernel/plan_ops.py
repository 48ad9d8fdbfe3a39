"""Ops of plans for control flow and for memory whose size the run finds out as it goes.

`kernel.if` (of `ops.py`) chooses between regions of plan ops; `kernel.repeat` runs one again and again. Buffers are
carried as what they are, pointers: nothing is copied where a region yields one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import IntegerAttr, IntegerType, i64
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from sardonyx.dialects.kernel.ops import INDEX, BufferType, YieldOp


@irdl_op_definition
class RepeatOp(IRDLOperation):
    """Runs its body while the condition holds, at most `limit` times; values are carried from turn to turn.

    The body takes the number of the turn and the carried values; it yields the next condition and the next values.
    Results are the number of turns and the last values.

    (C1) The body takes an index and what is carried, and yields an i1 and as much; the types are those of `initial`.
    """

    name = "kernel.repeat"
    limit = operand_def(INDEX)
    condition = operand_def(IntegerType(1))
    initial = var_operand_def()
    body = region_def("single_block")
    count = result_def(INDEX)
    carried = var_result_def()

    def __init__(self, limit: SSAValue, condition: SSAValue, initial: Sequence[SSAValue], body: Region) -> None:
        super().__init__(
            operands=[limit, condition, list(initial)],
            regions=[body],
            result_types=[INDEX, [v.type for v in initial]],
        )

    def verify_(self) -> None:
        block = self.body.block
        types = [v.type for v in self.initial]
        last = block.last_op
        yielded = [v.type for v in last.values] if isinstance(last, YieldOp) else []
        if [a.type for a in block.args] != [INDEX, *types] or yielded != [IntegerType(1), *types]:
            raise VerifyException("(C1) the body's arguments, or what it yields, are not what is carried")


@irdl_op_definition
class AlternateOp(IRDLOperation):
    """A buffer for what a turn of `kernel.repeat` makes for the next one: one of two, by the number of the turn.

    So the next turn reads this one while it writes the other. The planner numbers the two late blocks `slot` and
    `slot` + 1; nothing else lies in them.
    """

    name = "kernel.alternate"
    turn = operand_def(INDEX)
    extents = var_operand_def(INDEX)
    slot = opt_prop_def(IntegerAttr)
    result = result_def(BufferType)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$turn `[` $extents `]` attr-dict `:` type($result)"

    def __init__(self, turn: SSAValue, extents: Sequence[SSAValue], element: Attribute) -> None:
        super().__init__(operands=[turn, list(extents)], result_types=[BufferType(element)])


@irdl_op_definition
class GrowOp(IRDLOperation):
    """Memory of at least `wanted` bytes whose first `used` bytes are those of `buffer`, which is gone afterwards.

    It is late block `slot` (the planner gives all ops of one `number` the same one), which grows by half at least.
    """

    name = "kernel.grow"
    buffer = operand_def(BufferType)
    used = operand_def(INDEX)
    wanted = operand_def(INDEX)
    number = prop_def(IntegerAttr)
    slot = opt_prop_def(IntegerAttr)
    result = result_def(BufferType)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$buffer `,` $used `,` $wanted attr-dict `:` type($buffer) `->` type($result)"

    def __init__(self, buffer: SSAValue, used: SSAValue, wanted: SSAValue, number: int) -> None:
        super().__init__(
            operands=[buffer, used, wanted],
            properties={"number": IntegerAttr(number, i64)},
            result_types=[buffer.type],
        )


@irdl_op_definition
class NothingOp(IRDLOperation):
    """A buffer of no elements: a null pointer."""

    name = "kernel.nothing"
    result = result_def(BufferType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, element: Attribute) -> None:
        super().__init__(result_types=[BufferType(element)])


@irdl_op_definition
class ViewOp(IRDLOperation):
    """The part of a buffer that begins at an offset, in elements."""

    name = "kernel.view"
    buffer = operand_def(BufferType)
    offset = operand_def(INDEX)
    result = result_def(BufferType)
    traits = traits_def(Pure())
    assembly_format = "$buffer `[` $offset `]` attr-dict `:` type($buffer) `->` type($result)"

    def __init__(self, buffer: SSAValue, offset: SSAValue) -> None:
        super().__init__(operands=[buffer, offset], result_types=[buffer.type])


@irdl_op_definition
class AddressOp(IRDLOperation):
    """Where a buffer lies, as an index: what a record of a sequence's table holds."""

    name = "kernel.address"
    buffer = operand_def(BufferType)
    result = result_def(INDEX)
    traits = traits_def(Pure())
    assembly_format = "$buffer attr-dict `:` type($buffer)"

    def __init__(self, buffer: SSAValue) -> None:
        super().__init__(operands=[buffer], result_types=[INDEX])


@irdl_op_definition
class AtAddressOp(IRDLOperation):
    """The buffer at an address that `kernel.address` gave."""

    name = "kernel.at_address"
    address = operand_def(INDEX)
    result = result_def(BufferType)
    traits = traits_def(Pure())
    assembly_format = "$address attr-dict `:` type($result)"

    def __init__(self, address: SSAValue, element: Attribute) -> None:
        super().__init__(operands=[address], result_types=[BufferType(element)])


@irdl_op_definition
class KeepOp(IRDLOperation):
    """Memory that lives until the run ends: what the elements of sequences lie in."""

    name = "kernel.keep"
    extents = var_operand_def(INDEX)
    result = result_def(BufferType)
    assembly_format = "`[` $extents `]` attr-dict `:` type($result)"

    def __init__(self, extents: Sequence[SSAValue], element: Attribute) -> None:
        super().__init__(operands=[list(extents)], result_types=[BufferType(element)])


@irdl_op_definition
class OutputListOp(IRDLOperation):
    """Graph output `number` is a table of records: the caller gets a copy of the table and of each element.

    `count` is the number of records, of `words` 8-byte words each: an address, a size in bytes, a rank, extents.
    `present` is false where it is an optional that holds nothing.
    """

    name = "kernel.output_list"
    number = prop_def(IntegerAttr)
    words = prop_def(IntegerAttr)
    table = operand_def(BufferType)
    count = operand_def(INDEX)
    present = operand_def(IntegerType(1))
    assembly_format = "$number `,` $words `,` $table `,` $count `,` $present attr-dict `:` type($table)"

    def __init__(self, number: int, words: int, table: SSAValue, count: SSAValue, present: SSAValue) -> None:
        super().__init__(
            operands=[table, count, present],
            properties={"number": IntegerAttr(number, i64), "words": IntegerAttr(words, i64)},
        )


PLAN_OPS: tuple[type[Any], ...] = (
    RepeatOp, AlternateOp, GrowOp, NothingOp, ViewOp, AddressOp, AtAddressOp, KeepOp, OutputListOp,
)  # fmt: skip
