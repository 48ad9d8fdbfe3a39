"""Emits `kernel.nontemporal` and `kernel.scratch`."""

from __future__ import annotations

from sardonyx.backends.llvm.codegen.emit import KernelEmitter, emits
from sardonyx.backends.llvm.codegen.memory import fetch, has_nontemporal
from sardonyx.backends.llvm.codegen.text import I1, I64, PTR
from sardonyx.backends.llvm.codegen.widen import fold, memory_type, scalar_type
from sardonyx.dialects.kernel.nontemporal import FetchOp, NontemporalOp, ScratchOp
from sardonyx.dialects.kernel.ops import BufferType

LARGE = 16 << 20
"""Bytes of a result from which on it is written past the caches."""
LINE = 64


@emits(NontemporalOp)
def _nontemporal(e: KernelEmitter, op: NontemporalOp) -> None:
    b = e.builder
    if not has_nontemporal(b.target):
        e.define(op.result, "false", 0)
        return
    if not isinstance(op.buffer.type, BufferType):
        raise TypeError("a result is written to a buffer")
    item = str(memory_type(scalar_type(op.buffer.type.element)).bytes)
    size = fold(b, "mul", e.scalar(op.count), item)
    large = b.icmp("sge", I64, size, str(LARGE))
    address = b.cast("ptrtoint", PTR, e.scalar(op.buffer), I64)
    ends = b.binary("or", I64, address, fold(b, "mul", e.scalar(op.run), item))
    aligned = b.icmp("eq", I64, b.binary("and", I64, ends, str(LINE - 1)), "0")
    better = b.binary("and", I1, large, aligned)
    if not size.startswith("%"):
        e.large.add(better)
    e.define(op.result, better, 0)


@emits(FetchOp)
def _fetch(e: KernelEmitter, op: FetchOp) -> None:
    if not isinstance(op.buffer.type, BufferType):
        raise TypeError("what is written lies in a buffer")
    offset = e.values[op.offset]
    if e.mask is None and (offset.is_uniform or offset.stride == "1"):
        fetch(e.builder, memory_type(scalar_type(op.buffer.type.element)), e.scalar(op.buffer), offset.text, True)


@emits(ScratchOp)
def _scratch(e: KernelEmitter, op: ScratchOp) -> None:
    if not isinstance(op.result.type, BufferType):
        raise TypeError("memory on the stack is a buffer")
    ty = memory_type(scalar_type(op.result.type.element))
    e.define(op.result, e.builder.reserve(ty, op.count.value.data), 0)
