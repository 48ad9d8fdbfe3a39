"""Lowerings of sequences and optionals: what is done to their tables of records (`containers.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.interface import RECORD_HEAD
from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, scalar_ir
from sardonyx.backends.llvm.lowering.containers import (
    Container,
    check_rank,
    container,
    copy_records,
    is_present,
    lowers_containers,
    new_table,
    nothing,
    read_word,
    record_at,
    take_record,
    wrap,
    write_record,
    write_words,
)
from sardonyx.backends.llvm.lowering.plan import Plan
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dtypes import int64
from sardonyx.dialects.kernel.ops import CopyOp
from sardonyx.dialects.kernel.plan_ops import AddressOp, AtAddressOp, KeepOp
from sardonyx.dialects.sx.optional import OptionalGetElementOp, OptionalHasElementOp, OptionalOp
from sardonyx.dialects.sx.sequence import (
    ConcatFromSequenceOp,
    SequenceAtOp,
    SequenceConstructOp,
    SequenceEmptyOp,
    SequenceEraseOp,
    SequenceInsertOp,
    SequenceLengthOp,
    SplitToSequenceOp,
)
from sardonyx.dialects.sx.support import normalize_axis
from sardonyx.dialects.sx.unary import IdentityOp
from sardonyx.dialects.types import OptionalType, is_container, is_tensor


@lowers_containers(IdentityOp)
def _identity(plan: Plan, op: IdentityOp) -> None:
    """Of a sequence or an optional; that of a tensor is elementwise."""
    plan.containers[op.results[0]] = container(plan, op.operands[0])


@lowers_containers(SequenceConstructOp)
def _construct(plan: Plan, op: SequenceConstructOp) -> None:
    table = new_table(plan, op.output_sequence, len(op.inputs))
    for k, value in enumerate(op.inputs):
        write_record(plan, table, k, value)
    plan.containers[op.output_sequence] = Container(table, plan.body.index(len(op.inputs)))


@lowers_containers(SequenceEmptyOp)
def _empty(plan: Plan, op: SequenceEmptyOp) -> None:
    plan.containers[op.output] = nothing(plan, op.output.type)


@lowers_containers(SequenceInsertOp)
def _insert(plan: Plan, op: SequenceInsertOp) -> None:
    body, given = plan.body, container(plan, op.input_sequence)
    at = given.count if op.position is None else _position(plan, op.position, given.count, and_behind=True)
    count = body.plus(given.count, 1)
    table = new_table(plan, op.output_sequence, count)
    copy_records(plan, given.table, 0, table, 0, at)
    write_record(plan, table, at, op.tensor)
    if op.position is not None:
        copy_records(plan, given.table, at, table, body.plus(at, 1), body.minus(given.count, at))
    plan.containers[op.output_sequence] = Container(table, count)


@lowers_containers(SequenceEraseOp)
def _erase(plan: Plan, op: SequenceEraseOp) -> None:
    body, given = plan.body, container(plan, op.input_sequence)
    at = _position(plan, op.position, given.count)
    count = body.minus(given.count, 1)
    table = new_table(plan, op.output_sequence, count)
    copy_records(plan, given.table, 0, table, 0, at)
    copy_records(plan, given.table, body.plus(at, 1), table, at, body.minus(count, at))
    plan.containers[op.output_sequence] = Container(table, count)


def _position(plan: Plan, value: SSAValue | None, count: SSAValue, and_behind: bool = False) -> SSAValue:
    """A position in a sequence, from the end where it is negative; the last one where it is absent. With `and_behind`
    it may be that behind the last element."""
    body = plan.body
    at = body.index(-1) if value is None else plan.read_ints(value, 1)[0]
    if value is not None:
        for d in dims_of(value):
            if d.static_value != 1:
                extent = plan.dim(d)
                failure = plan.failure("(C2) the position has {0} elements, not 1")
                body.require(body.compare("eq", extent, 1), failure, extent)
    low = body.compare("sge", at, body.minus(0, count))
    high = body.compare("sle" if and_behind else "slt", at, count)
    failure = plan.failure("(C2) position {0} is out of range for {1} elements")
    body.require(body.both(low, high), failure, at, count)
    return body.select(body.compare("slt", at, 0), body.plus(at, count), at)


@lowers_containers(SequenceAtOp)
def _at(plan: Plan, op: SequenceAtOp) -> None:
    given = container(plan, op.input_sequence)
    take_record(plan, given.table, _position(plan, op.position, given.count), op.tensor)


@lowers_containers(SequenceLengthOp)
def _length(plan: Plan, op: SequenceLengthOp) -> None:
    given = container(plan, op.input_sequence)
    plan.body.store(plan.body.from_index(given.count, int64), plan.new_buffer(op.length), 0)


# ---- splitting and joining


@lowers_containers(SplitToSequenceOp)
def _split(plan: Plan, op: SplitToSequenceOp) -> None:
    body, dims, dtype = plan.body, dims_of(op.input), dtype_of(op.input)
    axis = normalize_axis(op, op.attr("axis"), len(dims), "(C1)")
    extent, outer, inner = plan.dim(dims[axis]), plan.count(dims[:axis]), plan.count(dims[axis + 1 :])
    count, starts = _starts(plan, op, extent)
    whole = body.add(KeepOp([plan.dim(d) for d in dims], scalar_ir(dtype)))
    if all(d.static_value == 1 for d in dims[:axis]):
        size = plan.product(plan.count(dims), dtype.itemsize)
        body.block.add_op(CopyOp(plan.buffer(op.input), whole, size))
    else:
        _copy_parts(plan, op.input, whole, (count, starts), (outer, extent, inner))
    drops = op.split is None and not op.attr("keepdims")
    table = new_table(plan, op.output_sequence, count)
    address, row = body.add(AddressOp(whole)), body.times(plan.product(outer, inner), dtype.itemsize)
    extents = [plan.dim(d) for d in dims]

    def record(b: Body, part: SSAValue, _: Sequence[SSAValue]) -> None:
        start = read_word(b, starts, part)
        own = b.minus(read_word(b, starts, b.plus(part, 1)), start)
        shape: list[IndexLike] = [*extents[:axis], *([] if drops else [own]), *extents[axis + 1 :]]
        words = [b.plus(address, b.times(start, row)), b.times(own, row), len(shape), *shape]
        write_words(b, table, record_at(plan, b, part), words)

    body.loop(count, record)
    plan.containers[op.output_sequence] = Container(table, count)


def _starts(plan: Plan, op: SplitToSequenceOp, extent: SSAValue) -> tuple[SSAValue, SSAValue]:
    """The number of parts, and a buffer of where each begins and the last one ends."""
    body = plan.body
    split = op.split
    if split is not None and len(dims_of(split)) == 1:
        count = plan.dim(dims_of(split)[0])
        starts, dtype, given = plan.workspace(int64, [body.plus(count, 1)]), dtype_of(split), plan.buffer(split)
        failure = plan.failure("(C2) a part of {0} elements, up to which there are {1}, is none of an axis of {2}")

        def step(b: Body, part: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
            size = b.to_index(b.load(given, part), dtype)
            fits = b.both(b.compare("sge", size, 0), b.compare("sle", size, b.minus(extent, carried[0])))
            b.require(fits, failure, size, carried[0], extent)
            b.store(b.from_index(carried[0], int64), starts, part)
            return [b.plus(carried[0], size)]

        (end,) = body.loop(count, step, [("serial", body.index(0))])
        failure = plan.failure("(C2) the parts have {0} elements, the axis {1}")
        body.require(body.compare("eq", end, extent), failure, end, extent)
        body.store(body.from_index(end, int64), starts, count)
        return count, starts
    size: IndexLike = 1
    if split is not None:
        size = plan.read_ints(split, 1)[0]
        body.require(body.compare("sgt", size, 0), plan.failure("(C2) a part has {0} elements"), size)
    last = body.index_math("floordiv", body.minus(extent, 1), size)  # -1 where there is nothing; no sum overflows
    count = body.plus(last, 1)
    starts = plan.workspace(int64, [body.plus(count, 1)])

    def each(b: Body, part: SSAValue, _: Sequence[SSAValue]) -> None:
        b.store(b.from_index(b.index_math("min", b.times(part, size), extent), int64), starts, part)

    body.loop(body.plus(count, 1), each)
    return count, starts


def _copy_parts(
    plan: Plan, value: SSAValue, target: SSAValue, parts: tuple[SSAValue, SSAValue], sizes: Sequence[SSAValue]
) -> None:
    """Launch the kernel that lays the parts of [outer, extent, inner] one after the other, each contiguous."""
    kernel = plan.kernel("split_to_sequence")
    read, write, starts = kernel.read(value), kernel.write_buffer(target), kernel.read_buffer(parts[1])
    count, (outer, extent, inner) = kernel.outer(parts[0]), [kernel.outer(s) for s in sizes]

    def part(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        start = read_word(b, starts, number)
        run = b.times(b.minus(read_word(b, starts, b.plus(number, 1)), start), inner)
        first = b.times(b.times(outer, start), inner)

        def row(c: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            source = c.times(c.plus(c.times(index, extent), start), inner)
            goal = c.plus(first, c.times(index, run))

            def one(d: Body, at: SSAValue, _: Sequence[SSAValue]) -> None:
                d.store(d.load(read, d.plus(source, at)), write, d.plus(goal, at))

            c.loop(run, one, vector=True)

        b.loop(outer, row)

    kernel.loop(count, part, parallel=True)
    kernel.launch()


@lowers_containers(ConcatFromSequenceOp)
def _concat(plan: Plan, op: ConcatFromSequenceOp) -> None:
    body, given, result = plan.body, container(plan, op.input_sequence), op.concat_result
    out, dtype, is_new = dims_of(result), dtype_of(result), bool(op.attr("new_axis"))
    axis = normalize_axis(op, op.attr("axis"), len(out), "(C2)")
    body.require(body.compare("sgt", given.count, 0), plan.failure("(C1) the sequence has no elements"))
    rank = len(out) - is_new
    others = [k for k in range(rank) if is_new or k != axis]
    firsts = [read_word(body, given.table, RECORD_HEAD + k) for k in others]
    failure = plan.failure("(C3) elements with {0} and {1} elements along another axis cannot be joined")

    def check(b: Body, index: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        at = record_at(plan, b, index)
        check_rank(plan, b, given.table, at, rank)
        for k, first in zip(others, firsts, strict=True):
            own = read_word(b, given.table, b.plus(at, RECORD_HEAD + k))
            b.require(b.compare("eq", own, first), failure, first, own)
        return [b.plus(carried[0], 1 if is_new else read_word(b, given.table, b.plus(at, RECORD_HEAD + axis)))]

    (total,) = body.loop(given.count, check, [("serial", body.index(0))])
    extents = dict(zip([k + (is_new and k >= axis) for k in others], firsts, strict=True))
    extents[axis] = total
    plan.bind_all([(d, extents[k], f"the extent along axis {k}") for k, d in enumerate(out)])
    kernel = plan.kernel("concat_from_sequence")
    table, write = kernel.read_buffer(given.table), kernel.write(result)
    count, outer, inner = (kernel.outer(v) for v in (given.count, plan.count(out[:axis]), plan.count(out[axis + 1 :])))
    whole = kernel.times(kernel.extent(out[axis]), inner)

    def element(b: Body, index: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        at = record_at(plan, b, index)
        source = b.add(AtAddressOp(read_word(b, table, at), scalar_ir(dtype)))
        run = inner if is_new else b.times(read_word(b, table, b.plus(at, RECORD_HEAD + axis)), inner)

        def row(c: Body, place: SSAValue, _: Sequence[SSAValue]) -> None:
            start, goal = c.times(place, run), c.plus(c.times(place, whole), carried[0])

            def one(d: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
                d.store(d.load(source, d.plus(start, k)), write, d.plus(goal, k))

            c.loop(run, one, vector=True)

        b.loop(outer, row)
        return [b.plus(carried[0], run)]

    kernel.loop(count, element, [("serial", kernel.index(0))])
    kernel.launch()


# ---- optionals


@lowers_containers(OptionalOp)
def _optional(plan: Plan, op: OptionalOp) -> None:
    plan.containers[op.output] = nothing(plan, op.output.type) if op.input is None else wrap(plan, op.input)


@lowers_containers(OptionalHasElementOp)
def _has_element(plan: Plan, op: OptionalHasElementOp) -> None:
    body = plan.body
    has = body.true()
    if op.input is None:
        has = body.negate(has)
    elif isinstance(op.input.type, OptionalType):
        has = is_present(plan, op.input)
    body.store(has, plan.new_buffer(op.output), 0)


@lowers_containers(OptionalGetElementOp)
def _get_element(plan: Plan, op: OptionalGetElementOp) -> None:
    body, value = plan.body, op.input
    if is_tensor(value.type):
        plan.alias(op.output, value)
        return
    held: Any = container(plan, value)
    if isinstance(value.type, OptionalType):
        body.require(is_present(plan, value), plan.failure("(C2) the optional holds no value"))
    if is_container(op.output.type):
        plan.containers[op.output] = Container(held.table, held.count)
    else:
        take_record(plan, held.table, 0, op.output)
