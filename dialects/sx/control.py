"""Control flow: if, loop, scan. Their regions read outer values directly; `sx.yield` ends a region."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator

from sardonyx.dialects.attributes import (
    Shape,
    dims_of,
    dtype_of,
    fresh_dim,
    rank_of,
    static_shape,
    tensor_type,
    type_dims,
    unranked_type,
)
from sardonyx.dialects.base import SEGMENTS, OnnxForm, SxOp, refine
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import bool_, int64
from sardonyx.dialects.evaluate import EvalContext, Value
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.region_values import check_fits, flag, integer, stack
from sardonyx.dialects.sx.sequence import is_empty
from sardonyx.dialects.sx.support import is_unranked, normalize_axis
from sardonyx.dialects.types import (
    OptionalType,
    SequenceType,
    escaped,
    is_tensor,
    join,
    known_symbols,
    with_dtype_of,
)
from sardonyx.dialects.values import contents
from sardonyx.errors import ExecutionError, InferenceError


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a region: its operands are what the region results in."""

    name = "sx.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator())

    def print(self, printer: Printer) -> None:
        if self.operands:
            printer.print_string(" ")
            printer.print_list(self.operands, printer.print_ssa_value)
            printer.print_string(" : ")
            printer.print_list([o.type for o in self.operands], printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> YieldOp:
        unresolved = parser.parse_optional_undelimited_comma_separated_list(
            parser.parse_optional_unresolved_operand, parser.parse_unresolved_operand
        )
        if not unresolved:
            return cls.create()
        parser.parse_punctuation(":")
        types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        return cls.create(operands=parser.resolve_operands(unresolved, types, parser.pos))


class RegionOp(SxOp):
    """An op with regions of one block each, which end with `sx.yield` and may read any value that the op may.

    What flows in a circle (a value that a loop carries) has in the region a type that fits each time: a dim of it that
    changes, or may, is a symbol of its own.
    """

    def block(self, region: Region, constraint: str) -> Block:
        """The region's only block.

        Raises:
            InferenceError: There is none, or several, or it does not end with `sx.yield`.
        """
        if len(region.blocks) != 1 or not isinstance(region.block.last_op, YieldOp):
            raise self.fail(f"{constraint} a region is one block that ends with sx.yield")
        return region.block

    def yielded(self, region: Region, constraint: str) -> Sequence[SSAValue]:
        last = self.block(region, constraint).last_op
        return () if last is None else last.operands

    def joined(self, a: Attribute, b: Attribute, message: str) -> Attribute:
        try:
            return join(a, b)
        except InferenceError as error:
            raise self.fail(f"{message}: {error.message}") from None

    def check_carried(self, argument: SSAValue, value: SSAValue, known: frozenset[str], message: str) -> None:
        """Refuse a value that certainly does not fit a region's argument; unknown dims are checked when it runs.

        A dim of the argument that is not known outside may be another one in each iteration.
        """
        ty = escaped(argument.type, known)
        if isinstance(ty, OptionalType) and not isinstance(value.type, OptionalType):
            ty = ty.element
        try:
            refine(ty, value.type)
        except InferenceError:
            raise self.fail(f"{message} has type {value.type}, but the region takes {argument.type}") from None

    def check_flag(self, value: SSAValue, message: str) -> None:
        shape = static_shape(value) if is_tensor(value.type) else ()
        if not is_tensor(value.type) or dtype_of(value) != bool_ or (shape is not None and shape not in ((), (1,))):
            raise self.fail(f"{message} is one bool, not {value.type}")


@irdl_op_definition
class IfOp(RegionOp):
    """What `then_branch` results in where `cond` is true, else what `else_branch` does.

    (C1) `cond` is one bool. (C2) Both regions are one block without arguments that ends with `sx.yield`. (C3) They
    yield as many values as there are results, of the same kinds and dtypes. Dims that differ are new symbols.
    """

    name = "sx.if"
    cond = operand_def()
    outputs = var_result_def()
    then_branch = region_def()
    else_branch = region_def()
    ONNX: ClassVar = OnnxForm("If", since=1)

    def infer(self) -> Sequence[Attribute]:
        self.check_flag(self.cond, "(C1) the condition")
        branches = [self.yielded(region, "(C2)") for region in self.regions]
        if any(region.block.args for region in self.regions):
            raise self.fail("(C2) a branch takes no arguments")
        counts = [len(self.results), *(len(values) for values in branches)]
        if len(set(counts)) > 1:
            raise self.fail(f"(C3) there are {counts[0]} results; the branches yield {counts[1]} and {counts[2]}")
        known = known_symbols(self)
        return [
            self.joined(escaped(a.type, known), escaped(b.type, known), f"(C3) result {index} of the branches")
            for index, (a, b) in enumerate(zip(*branches, strict=True))
        ]

    def evaluate(self, ctx: EvalContext, *arrays: Value) -> Sequence[Value]:
        chosen = self.then_branch if flag(self, arrays[0], "(C1)") else self.else_branch
        return ctx.run_block(chosen.block, [])


def is_true(value: SSAValue | None) -> bool:
    """Whether a condition is absent or the constant true."""
    if value is None:
        return True
    known = contents(value)
    return known is not None and len(known) == 1 and known[0] == Dim.of(1)


def is_same(value: SSAValue, other: SSAValue) -> bool:
    """Whether a value is another one, perhaps by way of identities."""
    while isinstance(value, OpResult) and value.op.name == "sx.identity":
        value = value.op.operands[0]
    return value is other


@irdl_op_definition
class LoopOp(RegionOp):
    """Runs `body` up to `trip_count` times (any number of times where it is absent) while the condition is true.

    The body takes the number of the iteration (int64), the condition, and the carried values; it yields the next
    condition, the next carried values, and rows. Results are the last carried values (the initial ones after no
    iteration), then the rows of all iterations, stacked along a new first axis. `cond`, true where absent, is the first
    condition.

    (C1) `trip_count` is one int64, `cond` one bool. (C2) The body is one block that ends with `sx.yield`; it takes two
    more arguments than there are initial values. (C3) It yields one value more than there are results, the first of
    them one bool. (C4) Initial and yielded carried values fit the body's arguments. (C5) Rows are tensors, of the same
    shape in each iteration. (C6) It is not certain that the loop never ends.
    """

    name = "sx.loop"
    trip_count = opt_operand_def()
    cond = opt_operand_def()
    initial = var_operand_def()
    outputs = var_result_def()
    body = region_def()
    ONNX: ClassVar = OnnxForm("Loop", since=1)
    irdl_options = SEGMENTS

    @property
    def carried(self) -> int:
        """How many values are carried."""
        return len(self.initial)

    def infer(self) -> Sequence[Attribute]:
        if self.trip_count is not None and (
            not is_tensor(self.trip_count.type)
            or dtype_of(self.trip_count) != int64
            or static_shape(self.trip_count) not in ((), (1,), None)
        ):
            raise self.fail(f"(C1) the trip count is one int64, not {self.trip_count.type}")
        if self.cond is not None:
            self.check_flag(self.cond, "(C1) the condition")
        block = self.block(self.body, "(C2)")
        yields = self.yielded(self.body, "(C2)")
        count = self.carried
        if len(block.args) != count + 2 or dtype_of(block.args[0]) != int64:
            raise self.fail(f"(C2) the body takes {len(block.args)} arguments for {count} initial values")
        if len(yields) != len(self.results) + 1 or len(self.results) < count:
            raise self.fail(f"(C3) the body yields {len(yields)} values for {len(self.results)} results")
        self.check_flag(block.args[1], "(C2) the body's second argument")
        self.check_flag(yields[0], "(C3) the yielded condition")
        always = is_true(self.cond) and (is_true(yields[0]) or is_same(yields[0], block.args[1]))
        if self.trip_count is None and always:
            raise self.fail("(C6) the loop never ends: it has no trip count, and its condition is always true")
        known = known_symbols(self)
        types: list[Attribute] = []
        for index, (first, argument, after) in enumerate(zip(self.initial, block.args[2:], yields[1:], strict=False)):
            self.check_carried(argument, first, known, f"(C4) initial value {index}")
            self.check_carried(argument, after, known, f"(C4) carried value {index} after an iteration")
            what = f"(C4) carried value {index} before and after an iteration"
            before, result = escaped(first.type, known), escaped(after.type, known)
            if is_empty(first) and isinstance(result, SequenceType) and with_dtype_of(before) == with_dtype_of(result):
                before = result  # an empty sequence is one of tensors of any shape
            if isinstance(before, OptionalType) and not isinstance(result, OptionalType):
                before = before.element  # as ONNX has it: what the body yields
            types.append(self.joined(before, result, what))
        trips = self._trips() if always else None
        for row in yields[1 + count :]:
            types.append(_stacked(self, row, trips, 0, known))
        return types

    def _trips(self) -> Dim | None:
        """The number of iterations where only the trip count decides it."""
        known = None if self.trip_count is None else contents(self.trip_count)
        return Dim.max(known[0], 0) if known is not None and len(known) == 1 and known[0] is not None else None

    def evaluate(self, ctx: EvalContext, *arrays: Value) -> Sequence[Value]:
        trips = None if arrays[0] is None else integer(self, arrays[0], "(C1)")
        going = True if arrays[1] is None else flag(self, arrays[1], "(C1)")
        # Slots that are absent at the end are left out, but an optional that is empty is None, too.
        values = [ctx.values[v] for v in self.initial]
        block, count = self.body.block, self.carried
        rows: list[list[Value]] = [[] for _ in range(len(self.results) - count)]
        condition_shape = (1,) if static_shape(block.args[1]) == (1,) else ()
        number = 0
        while going and (trips is None or number < trips):
            for index, (argument, value) in enumerate(zip(block.args[2:], values, strict=True)):
                check_fits(self, argument, value, f"(C4) carried value {index}, in iteration {number},")
            condition = np.full(condition_shape, True)
            results = ctx.run_block(block, [np.asarray(number, np.int64), condition, *values])
            going = flag(self, results[0], "(C3)")
            values = results[1 : 1 + count]
            for row, value in zip(rows, results[1 + count :], strict=True):
                row.append(value)
            number += 1
        yields = self.yielded(self.body, "(C2)")[1 + count :]
        return [*values, *(stack(self, ctx, row, value, 0, "(C5)") for row, value in zip(rows, yields, strict=True))]


def _stacked(op: RegionOp, row: SSAValue, extent: Dim | None, axis: int, known: frozenset[str]) -> Attribute:
    """The type of the rows of all iterations."""
    if not is_tensor(row.type):
        raise op.fail(f"(C5) a row is a tensor, not {row.type}")
    if is_unranked(row):
        return unranked_type(dtype_of(row))
    dims = list(type_dims(escaped(row.type, known)))
    dims.insert(axis, extent if extent is not None else fresh_dim())
    return tensor_type(dtype_of(row), dims)


@irdl_op_definition
class ScanOp(RegionOp):
    """Runs `body` over the slices of the scan inputs, which are the last `num_scan_inputs` operands.

    The body takes the states (the other operands at first) and one slice of each scan input, without the scanned axis;
    it yields the next states and rows. Results are the last states, then the rows of all iterations, stacked along an
    axis of their own. Axes are 0 and directions forward (0) where they are not stated; 1 is backward: the last slice
    comes first, the last row stands first.

    (C1) `num_scan_inputs` is at least 1 and at most the number of operands; scan inputs are tensors. (C2) The body is
    one block that ends with `sx.yield`; it takes as many arguments as there are operands, and yields as many values as
    there are results. (C3) Axes and directions are one per scan input or row; axes are in range, directions 0 or 1.
    (C4) The scanned axes have the same extent. (C5) Initial and yielded states, and slices, fit the body's arguments;
    rows are tensors, of the same shape in each iteration.
    """

    name = "sx.scan"
    inputs = var_operand_def()
    num_scan_inputs = prop_def(IntegerAttr)
    scan_input_axes = opt_prop_def(DenseArrayBase)
    scan_input_directions = opt_prop_def(DenseArrayBase)
    scan_output_axes = opt_prop_def(DenseArrayBase)
    scan_output_directions = opt_prop_def(DenseArrayBase)
    outputs = var_result_def()
    body = region_def()
    ONNX: ClassVar = OnnxForm("Scan", since=9)

    @property
    def states(self) -> int:
        """How many values are carried."""
        return len(self.inputs) - self.attr("num_scan_inputs")

    def _list(self, name: str, count: int) -> tuple[int, ...]:
        found = self.attr(name)
        if found is None:
            return (0,) * count
        if len(found) != count:
            raise self.fail(f"(C3) {name} has {len(found)} entries, not {count}")
        if name.endswith("directions") and any(d not in (0, 1) for d in found):
            raise self.fail(f"(C3) {name} are 0 or 1, not {list(found)}")
        return found

    def infer(self) -> Sequence[Attribute]:
        count = self.states
        if not 0 <= count < len(self.inputs):
            raise self.fail(f"(C1) {self.attr('num_scan_inputs')} of {len(self.inputs)} operands cannot be scanned")
        block, yields = self.block(self.body, "(C2)"), self.yielded(self.body, "(C2)")
        if len(block.args) != len(self.inputs) or len(yields) != len(self.results) or len(yields) < count:
            raise self.fail(
                f"(C2) the body takes {len(block.args)} arguments and yields {len(yields)} values, but there are "
                f"{len(self.inputs)} operands and {len(self.results)} results"
            )
        extent: Dim | None = None
        for index, ty, scanned in self.slices():
            self.check_slice(block.args[count + index], ty, index)
            if scanned is None:
                continue
            if extent is not None and equal(extent, scanned) is Proof.REFUTED:
                raise self.fail(f"(C4) the scanned axes have {extent} and {scanned} elements")
            extent = scanned if extent is None or scanned.is_static else extent
        known = known_symbols(self)
        types: list[Attribute] = []
        for index, (first, argument, after) in enumerate(zip(self.inputs, block.args, yields[:count], strict=False)):
            self.check_carried(argument, first, known, f"(C5) initial state {index}")
            self.check_carried(argument, after, known, f"(C5) state {index} after an iteration")
            what = f"(C5) state {index} before and after an iteration"
            types.append(self.joined(escaped(first.type, known), escaped(after.type, known), what))
        rows = yields[count:]
        axes = self._list("scan_output_axes", len(rows))
        self._list("scan_output_directions", len(rows))
        for row, axis in zip(rows, axes, strict=True):
            if is_tensor(row.type) and not is_unranked(row):
                axis = normalize_axis(self, axis, rank_of(row) + 1, "(C3)")
            types.append(_stacked(self, row, extent, axis, known))
        return types

    def slices(self) -> list[tuple[int, Attribute, Dim | None]]:
        """The number, the type of a slice, and the scanned extent (None where it is not known) of each scan input."""
        scanned = self.inputs[self.states :]
        self._list("scan_input_directions", len(scanned))
        out: list[tuple[int, Attribute, Dim | None]] = []
        for index, (value, axis) in enumerate(zip(scanned, self._list("scan_input_axes", len(scanned)), strict=True)):
            if not is_tensor(value.type):
                raise self.fail(f"(C1) a scan input is a tensor, not {value.type}")
            if is_unranked(value):
                out.append((index, unranked_type(dtype_of(value)), None))
                continue
            at = normalize_axis(self, axis, rank_of(value), "(C3)") if rank_of(value) else -1
            if at < 0:
                raise self.fail("(C3) a scan input has at least one axis")
            dims: Shape = dims_of(value)
            out.append((index, tensor_type(dtype_of(value), [*dims[:at], *dims[at + 1 :]]), dims[at]))
        return out

    def check_slice(self, argument: SSAValue, ty: Attribute, index: int) -> None:
        try:
            refine(argument.type, ty)
        except InferenceError:
            raise self.fail(
                f"(C5) a slice of scan input {index} has type {ty}, but the body takes {argument.type}"
            ) from None

    def evaluate(self, ctx: EvalContext, *arrays: Value) -> Sequence[Value]:
        given = [ctx.values[v] for v in self.inputs]
        count, block = self.states, self.body.block
        values, scanned = given[:count], given[count:]
        fronts: list[Any] = []
        axes = self._list("scan_input_axes", len(scanned))
        for array, axis, backward in zip(scanned, axes, self._list("scan_input_directions", len(scanned)), strict=True):
            if not -array.ndim <= axis < array.ndim:
                raise ExecutionError(f"(C3) axis {axis} is out of range for rank {array.ndim}", op=self.name)
            front = np.moveaxis(array, axis, 0)
            fronts.append(front[::-1] if backward else front)
        lengths = {len(f) for f in fronts}
        if len(lengths) > 1:
            raise ExecutionError(f"(C4) the scanned axes have {sorted(lengths)} elements", op=self.name)
        rows: list[list[Value]] = [[] for _ in range(len(self.results) - count)]
        for number in range(lengths.pop()):
            taken = [front[number] for front in fronts]
            for index, (argument, value) in enumerate(zip(block.args, [*values, *taken], strict=True)):
                check_fits(self, argument, value, f"(C5) argument {index} of the body, in iteration {number},")
            results = ctx.run_block(block, [*values, *map(np.asarray, taken)])
            values = results[:count]
            for row, value in zip(rows, results[count:], strict=True):
                row.append(value)
        yields = self.yielded(self.body, "(C2)")[count:]
        out: list[Value] = list(values)
        output_axes = self._list("scan_output_axes", len(rows))
        directions = self._list("scan_output_directions", len(rows))
        for row, value, axis, backward in zip(rows, yields, output_axes, directions, strict=True):
            out.append(stack(self, ctx, row[::-1] if backward else row, value, axis, "(C5)"))
        return out


def constant_flag(value: SSAValue) -> bool | None:
    """The condition where it is a constant; None where it is not known."""
    op = value.owner
    if not isinstance(op, ConstantOp):
        return None
    array = op.array()
    return bool(array.reshape(-1)[0]) if array.size == 1 else None


def terminator_parent(op: Operation) -> Operation | None:
    """The op whose region a `sx.yield` ends; None for any other op."""
    return op.parent_op() if isinstance(op, YieldOp) else None
