"""Emits the ops of plans for control flow and for memory that grows or lives as long as the run."""

from __future__ import annotations

from sardonyx.backends.llvm.codegen.arena import emit_grow, emit_output_list
from sardonyx.backends.llvm.codegen.emit import KernelEmitter, emits
from sardonyx.backends.llvm.codegen.plan_emitter import PlanEmitter, bail, byte_count, field
from sardonyx.backends.llvm.codegen.text import I1, I64, PTR
from sardonyx.backends.llvm.codegen.widen import Value, memory_type, scalar_type
from sardonyx.backends.llvm.interface import MAX_BYTES, OUT_OF_MEMORY, TOO_LARGE
from sardonyx.dialects.kernel.plan_ops import (
    AddressOp,
    AlternateOp,
    AtAddressOp,
    GrowOp,
    KeepOp,
    NothingOp,
    OutputListOp,
    RepeatOp,
    ViewOp,
)


@emits(RepeatOp)
def _repeat(e: PlanEmitter, op: RepeatOp) -> None:
    b, block = e.builder, op.body.block
    limit, first = e.scalar(op.limit), e.scalar(op.condition)
    initial = [e.scalar(v) for v in op.initial]
    before, head, inner, after = b.block, *(b.fresh_label(hint) for hint in ("turn", "body", "after"))
    b.branch_to(head)
    b.start_block(head)
    at = len(b.lines)
    turn, following, going = b.fresh_name(), b.fresh_name(), b.fresh_name()
    names = [b.fresh_name() for _ in initial]
    go = b.binary("and", I1, going, b.icmp("slt", I64, turn, limit))
    b.emit(f"br i1 {go}, label %{inner}, label %{after}")
    b.start_block(inner)
    e.values[block.args[0]] = Value(turn, I64)
    for argument, name in zip(block.args[1:], names, strict=True):
        e.define(argument, name)
    condition, *results = [e.scalar(v) for v in e.emit_block(block)]
    b.emit(f"{following} = add nsw i64 {turn}, 1")
    end = b.block
    b.branch_to(head)
    phis = [
        f"  {turn} = phi i64 [ 0, %{before} ], [ {following}, %{end} ]",
        f"  {going} = phi i1 [ {first}, %{before} ], [ {condition}, %{end} ]",
    ]
    for name, value, start, result in zip(names, op.initial, initial, results, strict=True):
        phis.append(f"  {name} = phi {scalar_type(value.type)} [ {start}, %{before} ], [ {result}, %{end} ]")
    b.lines[at:at] = phis
    b.start_block(after)
    e.define(op.count, turn)
    for result, name in zip(op.carried, names, strict=True):
        e.define(result, name)


@emits(AlternateOp)
def _alternate(e: PlanEmitter, op: AlternateOp) -> None:
    b = e.builder
    size = byte_count(e, list(op.extents), memory_type(scalar_type(op.result.type.element)))
    if e.options.separate:
        block = e.allocate(e.buffers, size)
        e.buffers += 1
    else:
        slot = 0 if op.slot is None else op.slot.value.data
        parity = b.binary("and", I64, e.scalar(op.turn), "1")
        number = b.binary("add", I64, b.binary("shl", I64, parity, "1"), str(2 * slot))
        block = b.call("sx.slot", PTR, [(PTR, b.gep(I64, "%slots", number)), (I64, size)])
    bail(b, b.icmp("ne", PTR, block, "null"), OUT_OF_MEMORY)
    e.define(op.result, block)


@emits(GrowOp)
def _grow(e: PlanEmitter, op: GrowOp) -> None:
    b = e.builder
    wanted, used = e.scalar(op.wanted), e.scalar(op.used)
    bail(b, b.icmp("ule", I64, wanted, str(MAX_BYTES)), TOO_LARGE)
    if e.options.separate:
        block = e.allocate(e.buffers, wanted)
        e.buffers += 1
        bail(b, b.icmp("ne", PTR, block, "null"), OUT_OF_MEMORY)
        copy_bytes(e, block, e.scalar(op.buffer), used)
    else:
        emit_grow(b.module)
        slot = b.gep(I64, "%slots", str(2 * (0 if op.slot is None else op.slot.value.data)))
        block = b.call("sx.grow", PTR, [(PTR, slot), (I64, used), (I64, wanted)])
        bail(b, b.icmp("ne", PTR, block, "null"), OUT_OF_MEMORY)
    e.define(op.result, block)


def copy_bytes(e: KernelEmitter, target: str, source: str, size: str) -> None:
    """Copy between pieces of memory that do not overlap."""
    b = e.builder
    b.module.declare("llvm.memcpy.p0.p0.i64", "void", ["ptr", "ptr", "i64", "i1 immarg"])
    b.emit(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {size}, i1 false)")


@emits(NothingOp)
def _nothing(e: PlanEmitter, op: NothingOp) -> None:
    e.define(op.result, "null")


@emits(ViewOp)
def _view(e: PlanEmitter, op: ViewOp) -> None:
    element = memory_type(scalar_type(op.result.type.element))
    e.define(op.result, e.builder.gep(element, e.scalar(op.buffer), e.scalar(op.offset)))


@emits(AddressOp)
def _address(e: PlanEmitter, op: AddressOp) -> None:
    e.define(op.result, e.builder.cast("ptrtoint", PTR, e.scalar(op.buffer), I64))


@emits(AtAddressOp)
def _at_address(e: PlanEmitter, op: AtAddressOp) -> None:
    e.define(op.result, e.builder.cast("inttoptr", I64, e.scalar(op.address), PTR))


@emits(KeepOp)
def _keep(e: PlanEmitter, op: KeepOp) -> None:
    b = e.builder
    size = byte_count(e, list(op.extents), memory_type(scalar_type(op.result.type.element)))
    if e.options.separate:
        block = e.allocate(e.buffers, size)
        e.buffers += 1
    else:
        block = b.call("sx.keep", PTR, [(PTR, b.gep(I64, "%ctx", field("kept"))), (I64, size)])
    bail(b, b.icmp("ne", PTR, block, "null"), OUT_OF_MEMORY)
    e.define(op.result, block)


@emits(OutputListOp)
def _output_list(e: PlanEmitter, op: OutputListOp) -> None:
    b = e.builder
    emit_output_list(b.module)
    record = b.gep(I64, "%outputs", str(2 * op.number.value.data))
    present = b.cast("zext", I1, e.scalar(op.present), I64)
    given = [(PTR, record), (I64, str(op.words.value.data)), (PTR, e.scalar(op.table)), (I64, e.scalar(op.count))]
    status = b.call("sx.output_list", I64, [*given, (I64, present)])
    bail(b, b.icmp("eq", I64, status, "0"), OUT_OF_MEMORY)
