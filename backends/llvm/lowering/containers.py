"""What sequences and optionals are in a plan: tables of records, one a tensor.

A record is `record_words` 8-byte words: the address of the elements, their size in bytes, the rank, the extents. A
sequence is a table with its number of records; an optional of a tensor is one of at most one record; an optional of a
sequence also says whether it holds one. A table is a buffer like any other, and is copied, carried and reused as one.
What its records point at lives until the run ends: inputs and constants as they are, copies of all else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType, i64
from xdsl.ir import Attribute, Operation, SSAValue

from sardonyx.backends.llvm.interface import RECORD_HEAD, Port
from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, scalar_ir
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.backends.llvm.registries import Lowering
from sardonyx.dialects.attributes import dims_of, dtype_of, type_dims
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import int64
from sardonyx.dialects.kernel.ops import AllocOp, CopyOp, InputOp, WeightOp
from sardonyx.dialects.kernel.plan_ops import AddressOp, AtAddressOp, KeepOp, NothingOp, ViewOp
from sardonyx.dialects.types import OptionalType, SequenceType, innermost, is_container, is_numeric
from sardonyx.errors import UnsupportedError

TAKES_CONTAINERS: set[type[Operation]] = set()
"""Ops whose lowerings take sequences or optionals."""
LEAST_RANK = 8
LASTING = (InputOp, WeightOp, KeepOp, AtAddressOp)
"""Ops whose buffers live, unchanged, until the run ends."""


@dataclass(frozen=True)
class Container:
    """A sequence or an optional: its table, the number of records; for an optional of a sequence, if there is one."""

    table: SSAValue
    count: SSAValue
    present: SSAValue | None = None

    @property
    def parts(self) -> list[SSAValue]:
        return [self.table, self.count] if self.present is None else [self.table, self.count, self.present]


def lowers_containers(*ops: type[SxOp]) -> Callable[[Lowering], Lowering]:
    """`lowers`, for ops that take or make sequences or optionals."""
    TAKES_CONTAINERS.update(ops)
    return lowers(*ops)


def is_native_container(ty: Attribute) -> bool:
    """Whether native code can hold a sequence or optional of that type."""
    return isinstance(ty, SequenceType | OptionalType) and is_numeric(innermost(ty))


def holds_sequence(ty: Attribute) -> bool:
    """Whether it is an optional of a sequence."""
    return isinstance(ty, OptionalType) and isinstance(ty.element, SequenceType)


def record_words(plan: Plan) -> int:
    """The length of a record: it holds any rank in the graph."""
    if plan.record_words is None:
        ranks = [LEAST_RANK]
        for op in plan.source.walk():
            values = [*op.results, *(a for region in op.regions for block in region.blocks for a in block.args)]
            types = (innermost(value.type) for value in values)
            ranks += [len(ty.get_shape()) for ty in types if isinstance(ty, TensorType)]
        plan.record_words = RECORD_HEAD + max(ranks)
    return plan.record_words


def container_port(plan: Plan, name: str, ty: Attribute) -> Port:
    """The port of an input or output that is a sequence or an optional."""
    kind = "optional sequence" if holds_sequence(ty) else "sequence" if isinstance(ty, SequenceType) else "optional"
    return Port(name, dtype_of(innermost(ty)), (), kind, record_words(plan))


def container(plan: Plan, value: SSAValue) -> Container:
    """What a sequence or an optional is.

    Raises:
        UnsupportedError: Nothing that is native makes it.
    """
    found = plan.containers.get(value)
    if found is None:
        raise UnsupportedError(f"no kernel computes {value}", location=plan.where(), op=plan.op_name())
    return found


def as_type(plan: Plan, value: SSAValue, ty: Attribute) -> Container:
    """A value as a container of the type: one that is no optional as an optional that holds it."""
    if isinstance(ty, OptionalType) and not isinstance(value.type, OptionalType):
        return wrap(plan, value)
    return container(plan, value)


def wrap(plan: Plan, value: SSAValue) -> Container:
    """The optional that holds a value."""
    if is_container(value.type):
        held = container(plan, value)
        return Container(held.table, held.count, plan.body.true())
    table = new_table(plan, None, 1)
    write_record(plan, table, 0, value)
    return Container(table, plan.body.index(1))


def nothing(plan: Plan, ty: Attribute) -> Container:
    """An optional of the type that holds nothing, or a sequence without elements."""
    absent = plan.body.negate(plan.body.true()) if holds_sequence(ty) else None
    return Container(plan.body.add(NothingOp(i64)), plan.body.index(0), absent)


def is_present(plan: Plan, value: SSAValue) -> SSAValue:
    """Whether an optional holds a value, an i1."""
    held = container(plan, value)
    return plan.body.compare("ne", held.count, 0) if held.present is None else held.present


def new_table(plan: Plan, value: SSAValue | None, count: IndexLike) -> SSAValue:
    """A buffer for so many records of a value (None: of no value that a region gives a place)."""
    extents = [plan.product(count, record_words(plan))]
    place = None if value is None else plan.places.get(value)
    return plan.body.add(AllocOp(extents, i64)) if place is None else place(extents, i64)


def record_at(plan: Plan, b: Body, index: IndexLike, word: int = 0) -> SSAValue:
    """The offset of a word of a record."""
    return b.plus(b.times(index, record_words(plan)), word)


def read_word(b: Body, table: SSAValue, offset: IndexLike) -> SSAValue:
    return b.to_index(b.load(table, offset), int64)


def write_words(b: Body, table: SSAValue, offset: IndexLike, words: Sequence[IndexLike]) -> None:
    for k, word in enumerate(words):
        b.store(b.from_index(b.index(word), int64), table, b.plus(offset, k))


def copy_records(
    plan: Plan, source: SSAValue, first: IndexLike, target: SSAValue, at: IndexLike, count: IndexLike
) -> None:
    """Copy records from one table to another."""
    body = plan.body
    size = body.times(count, 8 * record_words(plan))
    views = [body.add(ViewOp(t, record_at(plan, body, k))) for t, k in ((source, first), (target, at))]
    body.block.add_op(CopyOp(views[0], views[1], size))


def lasting_buffer(plan: Plan, value: SSAValue) -> SSAValue:
    """The elements of a tensor where they stay until the run ends: a copy, unless they do."""
    buffer = plan.buffer(value)
    if isinstance(buffer.owner, Operation) and isinstance(buffer.owner, LASTING):
        return buffer
    body, dims, dtype = plan.body, dims_of(value), dtype_of(value)
    made = body.add(KeepOp([plan.dim(d) for d in dims], scalar_ir(dtype)))
    body.block.add_op(CopyOp(buffer, made, plan.product(plan.count(dims), dtype.itemsize)))
    return made


def write_record(plan: Plan, table: SSAValue, index: IndexLike, value: SSAValue) -> None:
    """Let a record stand for a tensor."""
    body, dims = plan.body, dims_of(value)
    address = body.add(AddressOp(lasting_buffer(plan, value)))
    size = plan.product(plan.count(dims), dtype_of(value).itemsize)
    words = [address, size, len(dims), *(plan.dim(d) for d in dims)]
    write_words(body, table, record_at(plan, body, index), words)


def take_record(plan: Plan, table: SSAValue, index: IndexLike, value: SSAValue) -> None:
    """Let a tensor value be what a record says, which must be of the rank and the extents of its type."""
    body = plan.body
    at = record_at(plan, body, index)
    check_rank(plan, body, table, at, len(dims_of(value)))
    address = read_word(body, table, at)
    for axis, d in enumerate(dims_of(value)):
        plan.bind(
            d, read_word(body, table, body.plus(at, RECORD_HEAD + axis)), f"the element's extent along axis {axis}"
        )
    plan.set_buffer(value, body.add(AtAddressOp(address, scalar_ir(dtype_of(value)))))


def check_rank(plan: Plan, body: Body, table: SSAValue, at: IndexLike, rank: int) -> None:
    """Require that the record at an offset has a rank."""
    found = read_word(body, table, body.plus(at, 2))
    failure = plan.failure("an element has rank {0}, expected {1}")
    body.require(body.compare("eq", found, rank), failure, found, rank)


def element_dims(ty: Attribute) -> int | None:
    """The rank of the tensors in a type; None where it is not known."""
    element = innermost(ty)
    return len(type_dims(element)) if isinstance(element, TensorType) else None
