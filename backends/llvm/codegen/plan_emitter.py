"""What emitters of plan ops share: the context's fields, the entry's statuses and options, sizes of buffers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.codegen.emit import KernelEmitter
from sardonyx.backends.llvm.codegen.text import I1, I64, PTR, FunctionBuilder, LType
from sardonyx.backends.llvm.codegen.work import WORTH_A_POOL
from sardonyx.dialects.kernel.ops import AllocOp, KernelFuncOp

if TYPE_CHECKING:
    from sardonyx.backends.llvm.planner import Workspace

CONTEXT_FIELDS = (
    "inputs",  # ptr to {data, dims} per input
    "outputs",  # ptr to {data, dims} per output; a null data is filled by native code
    "constants",  # ptr to one pointer per constant
    "arena", "arena_bytes",  # the workspace: block and capacity
    "places",  # ptr to the table of `sx.place`, where extents of the workspace are not numbers
    "slots",  # ptr to {block, capacity} per late buffer, whose extents the run computes
    "kept", "kept_bytes",  # the newest chunk of what lives until a run ends, and how large a first chunk is to be
    "dtypes",  # ptr to NumPy's dtype object per input, as this process has it
    "pool",  # ptr to `pool_run`, or null: every kernel runs on the calling thread
    "chunks",  # into how many chunks a kernel worth it is cut
    "workers",  # how many threads may help
    "shown0", "shown1", "shown2",  # the values that a failure's message shows
    "entries",  # how often the entry was called
    "kernels",  # how many kernels it has launched
    "launch",  # the number of the launch that runs, for whoever looks at a crash
    "allocate",  # with `separate`: ptr allocate(i64 number, i64 bytes), called for every buffer
    "times",  # with `timed`: ptr to one i64 per launch, the cycles that it took so far
)  # fmt: skip
NEEDS_CARE = -1
OUT_OF_MEMORY = -2
TOO_LARGE = -3
MAX_BYTES = 1 << 46
SHOWN = 3
"""How many values a failure may show."""


def field(name: str) -> str:
    """The position of a context field, in 8-byte units."""
    return str(CONTEXT_FIELDS.index(name))


@dataclass(frozen=True)
class EntryOptions:
    """How the entry is emitted; for tests and profiles.

    With `separate`, every workspace buffer and output is taken by a call of the context's `allocate`, with its number
    (-1 - k for output k) and its exact size. Kernels worth `pool_from` scalar operations are run by the pool. With
    `timed`, the cycles of every launch are counted.
    """

    separate: bool = False
    timed: bool = False
    pool_from: int = WORTH_A_POOL


AS_USUAL = EntryOptions()


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
