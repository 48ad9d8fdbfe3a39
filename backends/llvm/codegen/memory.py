"""Loads and stores of vectors of which a mask may exclude lanes: excluded lanes touch no memory."""

from __future__ import annotations

from sardonyx.backends.llvm.codegen.text import I64, PTR, FunctionBuilder, LType, Target


def load_lanes(b: FunctionBuilder, ty: LType, pointer: str, mask: str | None) -> str:
    """Consecutive elements of a type as it lies in memory; excluded lanes are 0."""
    if mask is None:
        return b.load(ty, pointer)
    name = f"llvm.masked.load.{ty.mangled}.p0"
    b.module.declare(name, ty, [PTR, ty.mask, ty])
    return b.op(f"call {ty} @{name}(ptr align {ty.bytes} {pointer}, {ty.mask} {mask}, {ty} zeroinitializer)")


def fetch(b: FunctionBuilder, ty: LType, base: str, index: str, to_write: bool = False) -> None:
    """Ask for the cache line of an element that will be read, or written; it need not lie inside of the buffer."""
    b.prefetch(b.op(f"getelementptr {ty}, ptr {base}, i64 {index}"), 3, to_write)


def store_lanes(b: FunctionBuilder, ty: LType, value: str, pointer: str, mask: str | None) -> None:
    """Consecutive elements of a type as it lies in memory."""
    if mask is None:
        b.store(ty, value, pointer)
        return
    name = f"llvm.masked.store.{ty.mangled}.p0"
    b.module.declare(name, "void", [ty, PTR, ty.mask])
    b.emit(f"call void @{name}({ty} {value}, ptr align {ty.bytes} {pointer}, {ty.mask} {mask})")


def has_nontemporal(target: Target) -> bool:
    """Whether whole vectors can be written past the caches."""
    return target.triple.startswith("x86_64")


def store_past_caches(b: FunctionBuilder, ty: LType, value: str, pointer: str) -> None:
    """Consecutive elements at a multiple of their bytes (or of a cache line's). Other threads see them in order only
    behind a fence."""
    b.emit(f"store {ty} {value}, ptr {pointer}, align {min(64, ty.lanes * ty.bytes)}, !nontemporal !{{i32 1}}")


def fence_stores(b: FunctionBuilder) -> None:
    """Have all that was written past the caches be seen before what is written from here on."""
    b.module.declare("llvm.x86.sse.sfence", "void", [])
    b.emit("call void @llvm.x86.sse.sfence()")


def gather_lanes(b: FunctionBuilder, ty: LType, base: str, offsets: str, mask: str) -> str:
    """Elements at a vector of offsets; excluded lanes are 0."""
    pointers = LType("ptr", ty.lanes)
    places = b.op(f"getelementptr {ty.scalar}, ptr {base}, {I64.with_lanes(ty.lanes)} {offsets}")
    name = f"llvm.masked.gather.{ty.mangled}.{pointers.mangled}"
    b.module.declare(name, ty, [pointers, ty.mask, ty])
    return b.op(f"call {ty} @{name}({pointers} align {ty.bytes} {places}, {ty.mask} {mask}, {ty} zeroinitializer)")
