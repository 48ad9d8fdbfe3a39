"""What emitters of plan ops share: the context's fields, the entry's statuses and options, sizes of buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.codegen.emit import KernelEmitter
from sardonyx.backends.llvm.codegen.text import I1, I64, PTR, FunctionBuilder, LType
from sardonyx.backends.llvm.interface import CONTEXT_FIELDS, MAX_BYTES, TOO_LARGE, EntryOptions
from sardonyx.dialects.kernel.ops import AllocOp, KernelFuncOp

if TYPE_CHECKING:
    from sardonyx.backends.llvm.planner import Workspace


def field(name: str) -> str:
    """The position of a context field, in 8-byte units."""
    return str(CONTEXT_FIELDS.index(name))


class PlanEmitter(KernelEmitter):
    """Emits plan ops beside those of kernels."""

    symbols: dict[str, str]
    kernels: dict[str, KernelFuncOp]
    options: EntryOptions
    launches: list[str]
    nodes: list[str]
    workspace: Workspace
    sizes: dict[AllocOp, tuple[str, str | None]]
    uses_pool: bool = False
    buffers: int = 0

    def allocate(self, number: int, size: str) -> str:
        """A buffer from the context's `allocate`."""
        b = self.builder
        function = b.load(PTR, b.gep(I64, "%ctx", field("allocate")), 8)
        return b.op(f"call ptr {function}(i64 {number}, i64 {size})")


def count(b: FunctionBuilder, name: str, amount: int) -> None:
    """Add to a counter of the context."""
    at = b.gep(I64, "%ctx", field(name))
    b.store(I64, b.binary("add", I64, b.load(I64, at, 8), str(amount)), at, 8)


def bail(b: FunctionBuilder, ok: str, status: int | str) -> None:
    """Leave the entry with a status where `ok` is false."""
    with b.unless(ok, lambda: b.emit(f"ret i64 {status}")):
        pass


def constant_text(value: SSAValue) -> str | None:
    """The number of a constant, which may stand in a region that is emitted later."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return str(owner.value.value.data)
    return None


def byte_size(e: KernelEmitter, extents: Sequence[SSAValue], element: LType) -> tuple[str, str | None]:
    """The size of a buffer in bytes, and whether it is one that there can be (None: it is)."""
    b = e.builder
    b.module.declare("llvm.smul.with.overflow.i64", "{ i64, i1 }", [I64, I64])
    total, known = str(element.bytes), element.bytes
    over: str | None = None
    for extent in extents:
        text = constant_text(extent) or e.scalar(extent)
        if known is not None and not text.startswith("%"):
            known *= int(text)
            total = str(known)
            continue
        known = None
        pair = b.op(f"call {{ i64, i1 }} @llvm.smul.with.overflow.i64(i64 {total}, i64 {text})")
        total = b.op(f"extractvalue {{ i64, i1 }} {pair}, 0")
        wrapped = b.op(f"extractvalue {{ i64, i1 }} {pair}, 1")
        over = wrapped if over is None else b.binary("or", I1, over, wrapped)
    if known is not None:
        return total, None if known <= MAX_BYTES else "false"
    fits = b.icmp("ule", I64, total, str(MAX_BYTES))
    return total, fits if over is None else b.select(I1, over, "false", fits)


def byte_count(e: KernelEmitter, extents: Sequence[SSAValue], element: LType) -> str:
    """The size of a buffer in bytes; leaves the entry where it is absurd."""
    size, ok = byte_size(e, extents, element)
    if ok is not None:
        bail(e.builder, ok, TOO_LARGE)
    return size
