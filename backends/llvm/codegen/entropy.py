"""Emits `kernel.entropy`: the C library's getentropy, into a field of the context that nothing else uses by then."""

from __future__ import annotations

from sardonyx.backends.llvm.codegen.emit import KernelEmitter, emits
from sardonyx.backends.llvm.codegen.plan_emitter import field
from sardonyx.backends.llvm.codegen.text import I32, I64, PTR
from sardonyx.dialects.kernel.entropy import EntropyOp


@emits(EntropyOp)
def _entropy(e: KernelEmitter, op: EntropyOp) -> None:
    b = e.builder
    at = b.gep(I64, "%ctx", field("shown0"))
    b.module.declare("getentropy", "i32", [PTR, I64])
    b.module.declare("llvm.readcyclecounter", I64, [])
    status = b.op(f"call i32 @getentropy(ptr {at}, i64 8)")
    # A system without it (Linux before 3.17) leaves the clock, which is another one in every run too.
    clock = lambda: [b.op("call i64 @llvm.readcyclecounter()")]  # noqa: E731
    drawn = b.when(b.icmp("eq", I32, status, "0"), lambda: [b.load(I64, at, 8)], clock, [I64])
    e.define(op.result, drawn[0])
