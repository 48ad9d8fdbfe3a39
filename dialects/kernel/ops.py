"""The ops of the `kernel` dialect: what a kernel does for each element, in loops whose schedule stands on them.

A `kernel.func` is one kernel: structured loops over flat buffers, with a scalar body in `arith`, `math` and
`kernel.math`. `vector` on a loop asks the emitter to widen its body over the lanes of the target; `parallel` on the
outermost loop lets the runtime split it into chunks; `reductions` names how each carried value is combined.
Explicit vectors are the emitter's product and never stand in the IR.

A `kernel.plan` is the whole graph: it reads the extents of the inputs, allocates buffers, and launches kernels. It is
lowered to the one native entry. Extents and flat element offsets are `index`; tensors of unsigned integers have
signless elements here, since the ops say how they read them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, ParametrizedAttribute, Region, SSAValue, TypeAttribute
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsolatedFromAbove, IsTerminator, NoMemoryEffect, Pure, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

INDEX = IndexType()


@irdl_attr_definition
class BufferType(ParametrizedAttribute, TypeAttribute):
    """A flat run of elements in memory; it carries no extent and promises an alignment of one element only."""

    name = "kernel.buffer"
    element: Attribute


@irdl_op_definition
class KernelFuncOp(IRDLOperation):
    """One kernel. Its arguments are buffers and extents, in any order."""

    name = "kernel.func"
    sym_name = prop_def(SymbolNameConstraint())
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())
    assembly_format = "$sym_name $body attr-dict"

    def __init__(self, name: str, body: Region) -> None:
        super().__init__(properties={"sym_name": StringAttr(name)}, regions=[body])


@irdl_op_definition
class PlanOp(IRDLOperation):
    """The whole graph as launches: the body of the native entry."""

    name = "kernel.plan"
    sym_name = prop_def(SymbolNameConstraint())
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove(), SymbolOpInterface())
    assembly_format = "$sym_name $body attr-dict"

    def __init__(self, name: str, body: Region) -> None:
        super().__init__(properties={"sym_name": StringAttr(name)}, regions=[body])


REDUCTIONS = ("add", "mul", "max", "min", "umax", "umin", "and", "or", "serial")
"""How a carried value is combined over the iterations: integers as signed ones, by `umax` and `umin` as unsigned ones.
`serial` is any recurrence: such a loop is never widened."""


@irdl_op_definition
class LoopOp(IRDLOperation):
    """`for i in range(lower, upper, step)` with carried values.

    (C1) Every carried value has a kind in `reductions`, of `REDUCTIONS`. (C2) A `vector` loop carries no `serial`
    value and its step is 1. The body yields each carried value's next state: the old one combined by that kind.
    """

    name = "kernel.loop"
    lower = operand_def(INDEX)
    upper = operand_def(INDEX)
    initial = var_operand_def()
    step = prop_def(IntegerAttr)
    vector = opt_prop_def(UnitAttr)
    parallel = opt_prop_def(UnitAttr)
    reductions = opt_prop_def(ArrayAttr[StringAttr])
    body = region_def("single_block")
    results_ = var_result_def()

    def __init__(
        self,
        lower: SSAValue,
        upper: SSAValue,
        body: Region,
        initial: Sequence[SSAValue] = (),
        reductions: Sequence[str] = (),
        *,
        step: int = 1,
        vector: bool = False,
        parallel: bool = False,
    ) -> None:
        props: dict[str, Attribute | None] = {
            "step": IntegerAttr(step, i64),
            "vector": UnitAttr() if vector else None,
            "parallel": UnitAttr() if parallel else None,
            "reductions": ArrayAttr([StringAttr(k) for k in reductions]) if reductions else None,
        }
        super().__init__(
            operands=[lower, upper, list(initial)],
            properties=props,
            regions=[body],
            result_types=[[v.type for v in initial]],
        )

    @property
    def kinds(self) -> tuple[str, ...]:
        return () if self.reductions is None else tuple(a.data for a in self.reductions.data)

    def verify_(self) -> None:
        kinds = self.kinds
        if len(kinds) != len(self.initial) or any(k not in REDUCTIONS for k in kinds):
            raise VerifyException(f"(C1) {len(self.initial)} carried values, but reductions {list(kinds)}")
        if self.vector is not None and ("serial" in kinds or self.step.value.data != 1):
            raise VerifyException("(C2) a vector loop has step 1 and no serial value")


@irdl_op_definition
class IfOp(IRDLOperation):
    """A two-way choice on a uniform condition; both regions yield the results."""

    name = "kernel.if"
    condition = operand_def(IntegerType(1))
    then_region = region_def("single_block")
    else_region = region_def("single_block")
    results_ = var_result_def()

    def __init__(self, condition: SSAValue, then: Region, otherwise: Region, types: Sequence[Attribute]) -> None:
        super().__init__(operands=[condition], regions=[then, otherwise], result_types=[list(types)])


@irdl_op_definition
class YieldOp(IRDLOperation):
    name = "kernel.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "($values^ `:` type($values))? attr-dict"

    def __init__(self, values: Sequence[SSAValue] = ()) -> None:
        super().__init__(operands=[list(values)])


@irdl_op_definition
class LoadOp(IRDLOperation):
    """Reads one element at a flat offset. `ahead` has native code fetch what lies so many elements further on."""

    name = "kernel.load"
    buffer = operand_def(BufferType)
    offset = operand_def(INDEX)
    result = result_def()
    ahead = opt_prop_def(IntegerAttr)
    traits = traits_def(NoMemoryEffect())
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$buffer `[` $offset `]` attr-dict `:` type($buffer) `->` type($result)"

    def __init__(self, buffer: SSAValue, offset: SSAValue) -> None:
        super().__init__(operands=[buffer, offset], result_types=[buffer.type.element])  # pyright: ignore[reportAttributeAccessIssue]


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Writes one element at a flat offset. Where `past` is true, what is written in whole vectors goes past the caches:
    each then lies at a multiple of its bytes (see `kernel.nontemporal`)."""

    name = "kernel.store"
    value = operand_def()
    buffer = operand_def(BufferType)
    offset = operand_def(INDEX)
    past = opt_operand_def(IntegerType(1))
    assembly_format = "$value `,` $buffer `[` $offset `]` (`past` $past^)? attr-dict `:` type($value) `,` type($buffer)"

    def __init__(self, value: SSAValue, buffer: SSAValue, offset: SSAValue) -> None:
        super().__init__(operands=[value, buffer, offset, None])


@irdl_op_definition
class MathOp(IRDLOperation):
    """A scalar function that `arith` and `math` lack or define less safely; `fn` names it in the emitter's table.

    Examples: `sigmoid`, `sdiv` (division by zero gives 0, MIN / -1 gives MIN), `floormod`, `shl` (0 from the width on).
    """

    name = "kernel.math"
    fn = prop_def(StringAttr)
    args = var_operand_def()
    result = result_def()
    traits = traits_def(Pure())
    assembly_format = "$fn `(` $args `)` attr-dict `:` functional-type($args, $result)"

    def __init__(self, fn: str, args: Sequence[SSAValue], result: Attribute) -> None:
        super().__init__(operands=[list(args)], properties={"fn": StringAttr(fn)}, result_types=[result])


@irdl_op_definition
class RequireOp(IRDLOperation):
    """Ends the run with a status where the condition is false.

    `failure` numbers the entry of the plan's table of messages; the operands after the condition (`index`, at most
    three) are what the message shows.
    """

    name = "kernel.require"
    condition = operand_def(IntegerType(1))
    shown = var_operand_def(INDEX)
    failure = prop_def(IntegerAttr)
    assembly_format = "$condition `,` $failure (`(` $shown^ `)`)? attr-dict"

    def __init__(self, condition: SSAValue, failure: int, shown: Sequence[SSAValue] = ()) -> None:
        super().__init__(operands=[condition, list(shown)], properties={"failure": IntegerAttr(failure, i64)})


@irdl_op_definition
class TurnOp(IRDLOperation):
    """A matrix is copied with its rows as columns: `target[c * target_row + r] = source[r * source_row + c]`.

    `extents` are the rows and columns of the source, `offsets` those of source and target, `strides` (source_row,
    target_row), all `index`, in elements. The buffers have one element type and do not overlap.
    """

    name = "kernel.turn"
    source = operand_def(BufferType)
    target = operand_def(BufferType)
    extents = var_operand_def(INDEX)
    offsets = var_operand_def(INDEX)
    strides = var_operand_def(INDEX)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        source: SSAValue,
        target: SSAValue,
        extents: Sequence[SSAValue],
        offsets: Sequence[SSAValue],
        strides: Sequence[SSAValue],
    ) -> None:
        super().__init__(operands=[source, target, list(extents), list(offsets), list(strides)])

    def verify_(self) -> None:
        if [len(part) for part in (self.extents, self.offsets, self.strides)] != [2, 2, 2]:
            raise VerifyException("two extents, two offsets and two strides are needed")
        if self.source.type != self.target.type:
            raise VerifyException(f"the buffers have the types {self.source.type} and {self.target.type}")


@irdl_op_definition
class ChunkOp(IRDLOperation):
    """The number of the chunk that runs, from 0: by it a chunk finds scratch memory of its own.

    There are no more chunks than the parallel loop has iterations. No result may depend on it.
    """

    name = "kernel.chunk"
    result = result_def(INDEX)
    traits = traits_def(Pure())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[INDEX])


# ---- ops of the plan


@irdl_op_definition
class InputOp(IRDLOperation):
    """The buffer of graph input `number`."""

    name = "kernel.input"
    number = prop_def(IntegerAttr)
    result = result_def(BufferType)
    assembly_format = "$number attr-dict `:` type($result)"

    def __init__(self, number: int, element: Attribute) -> None:
        super().__init__(properties={"number": IntegerAttr(number, i64)}, result_types=[BufferType(element)])


@irdl_op_definition
class InputDimOp(IRDLOperation):
    """The extent of axis `axis` of graph input `number`."""

    name = "kernel.input_dim"
    number = prop_def(IntegerAttr)
    axis = prop_def(IntegerAttr)
    result = result_def(INDEX)
    assembly_format = "$number `,` $axis attr-dict"

    def __init__(self, number: int, axis: int) -> None:
        super().__init__(
            properties={"number": IntegerAttr(number, i64), "axis": IntegerAttr(axis, i64)}, result_types=[INDEX]
        )


@irdl_op_definition
class WeightOp(IRDLOperation):
    """The buffer of constant `number` of the compiled module's table."""

    name = "kernel.weight"
    number = prop_def(IntegerAttr)
    result = result_def(BufferType)
    assembly_format = "$number attr-dict `:` type($result)"

    def __init__(self, number: int, element: Attribute) -> None:
        super().__init__(properties={"number": IntegerAttr(number, i64)}, result_types=[BufferType(element)])


@irdl_op_definition
class OutputOp(IRDLOperation):
    """Fixes the extents of graph output `number` and gives its buffer: the caller's, or a new block."""

    name = "kernel.output"
    number = prop_def(IntegerAttr)
    extents = var_operand_def(INDEX)
    result = result_def(BufferType)
    assembly_format = "$number `[` $extents `]` attr-dict `:` type($result)"

    def __init__(self, number: int, extents: Sequence[SSAValue], element: Attribute) -> None:
        super().__init__(
            operands=[list(extents)],
            properties={"number": IntegerAttr(number, i64)},
            result_types=[BufferType(element)],
        )


@irdl_op_definition
class AllocOp(IRDLOperation):
    """A workspace buffer of the product of the extents; its memory is reused after the last use.

    The planner notes where it lies: `slot` of the arena (buffers that are computed in place share one), at byte
    `offset` where that is known; or, where the run itself computes the extents, block `slot` of the `late` ones.
    """

    name = "kernel.alloc"
    extents = var_operand_def(INDEX)
    slot = opt_prop_def(IntegerAttr)
    offset = opt_prop_def(IntegerAttr)
    late = opt_prop_def(UnitAttr)
    result = result_def(BufferType)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "`[` $extents `]` attr-dict `:` type($result)"

    def __init__(self, extents: Sequence[SSAValue], element: Attribute) -> None:
        super().__init__(operands=[list(extents)], result_types=[BufferType(element)])


@irdl_op_definition
class MulSaturatingOp(IRDLOperation):
    """The product of two non-negative extents; 2^62 where it would overflow, so that allocation refuses it."""

    name = "kernel.mul_saturating"
    lhs = operand_def(INDEX)
    rhs = operand_def(INDEX)
    result = result_def(INDEX)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs attr-dict"

    def __init__(self, lhs: SSAValue, rhs: SSAValue) -> None:
        super().__init__(operands=[lhs, rhs], result_types=[INDEX])


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Runs a kernel on buffers and extents, given in the order of its arguments; `writes` marks which it writes."""

    name = "kernel.launch"
    callee = prop_def(SymbolRefAttr)
    args = var_operand_def()
    writes = prop_def(DenseArrayBase)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$callee `(` $args `)` attr-dict `:` type($args)"

    def __init__(self, callee: str, args: Sequence[SSAValue], writes: Sequence[int]) -> None:
        super().__init__(
            operands=[list(args)],
            properties={"callee": SymbolRefAttr(callee), "writes": DenseArrayBase.from_list(i64, list(writes))},
        )


@irdl_op_definition
class CopyOp(IRDLOperation):
    """Copies `bytes` bytes between buffers that do not overlap."""

    name = "kernel.copy"
    source = operand_def(BufferType)
    target = operand_def(BufferType)
    bytes = operand_def(INDEX)
    assembly_format = "$source `,` $target `,` $bytes attr-dict `:` type($source) `,` type($target)"

    def __init__(self, source: SSAValue, target: SSAValue, size: SSAValue) -> None:
        super().__init__(operands=[source, target, size])


def single_block(arg_types: Sequence[Attribute] = ()) -> tuple[Region, Block]:
    """A region with one empty block."""
    block = Block(arg_types=list(arg_types))
    return Region(block), block


OPS: tuple[type[Any], ...] = (
    KernelFuncOp, PlanOp, LoopOp, IfOp, YieldOp, LoadOp, StoreOp, MathOp, RequireOp, TurnOp, ChunkOp, InputOp,
    InputDimOp, WeightOp, OutputOp, AllocOp, MulSaturatingOp, LaunchOp, CopyOp,
)  # fmt: skip
