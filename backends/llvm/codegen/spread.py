"""Emits `kernel.spread`: a vector is loaded once, and shuffled for each vector that is made of it."""

from __future__ import annotations

from sardonyx.backends.llvm.codegen.emit import KernelEmitter, emits
from sardonyx.backends.llvm.codegen.text import I64, LType
from sardonyx.backends.llvm.codegen.widen import fold, memory_type, scalar_type
from sardonyx.dialects.kernel.ops import BufferType
from sardonyx.dialects.kernel.spread import SpreadOp


@emits(SpreadOp)
def _spread(e: KernelEmitter, op: SpreadOp) -> None:
    b = e.builder
    if not isinstance(op.source.type, BufferType):
        raise TypeError("a run is read from a buffer")
    ty: LType = memory_type(scalar_type(op.source.type.element))
    extent, times = e.scalar(op.extent), op.times.value.data
    source = b.gep(ty, e.scalar(op.source), e.scalar(op.at))
    target = b.gep(ty, e.scalar(op.target), e.scalar(op.to))
    lanes = max(2, b.target.vector_bits // ty.bits)
    wide = ty.with_lanes(lanes)
    if extent.startswith("%"):
        whole = b.binary("and", I64, extent, str(-lanes))
    else:
        whole = str(int(extent) // lanes * lanes)

    def vectors(index: str, _: list[str]) -> list[str]:
        loaded = b.load(wide, b.gep(ty, source, index), ty.bytes)
        at = b.gep(ty, target, fold(b, "mul", index, str(times)))
        for part in range(times):
            order = ", ".join(f"i32 {(part * lanes + k) // times}" for k in range(lanes))
            made = b.op(f"shufflevector {wide} {loaded}, {wide} poison, <{lanes} x i32> <{order}>")
            b.store(wide, made, at if not part else b.gep(ty, at, str(part * lanes)), ty.bytes)
        return []

    def elements(index: str, _: list[str]) -> list[str]:
        loaded = b.load(ty, b.gep(ty, source, index), ty.bytes)
        at = b.gep(ty, target, fold(b, "mul", index, str(times)))
        for part in range(times):
            b.store(ty, loaded, b.gep(ty, at, str(part)), ty.bytes)
        return []

    b.loop("0", whole, str(lanes), vectors)
    b.loop(whole, extent, "1", elements)
