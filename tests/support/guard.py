"""Runs compiled graphs with every buffer at the edge of forbidden memory, in a child process.

`run_guarded` gives each input, constant, workspace buffer and output pages of its own, so that it ends directly before
a page that nobody may touch (`edge="end"`) or begins right behind one (`"start"`). Inputs and constants are read-only.
A kernel that reads or writes past an end, or writes what it may only read, is stopped by the processor; the error names
the kernel, the buffer and the distance. What lies between a buffer and the rest of its pages is filled with a pattern
and checked after the run, and workspace and outputs begin as another pattern (NaN, as floats), so that memory which is
read before it is written shows in the values.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import warnings
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from sardonyx.backends.llvm.codegen.text import Target
from sardonyx.backends.llvm.compile import compile_native
from sardonyx.backends.llvm.interface import CONTEXT_FIELDS, EntryOptions
from sardonyx.backends.llvm.runtime.call import CompiledGraph, Context
from sardonyx.backends.llvm.runtime.pool import POOL

Array = np.ndarray[Any, Any]
PAGE = os.sysconf("SC_PAGE_SIZE")
EDGES = ("end", "start")
CANARY, UNWRITTEN = 0xA5, 0xFF

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *([ctypes.c_int] * 3), ctypes.c_long]
_libc.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_PROT_NONE, _PROT_READ, _PROT_WRITE = 0, 1, 2
_PRIVATE_ANONYMOUS = 0x22
_SIGSEGV, _SIGBUS = 11, 7


class GuardError(AssertionError):
    """Native code touched memory that is not its own."""


@dataclass
class Guarded:
    """A buffer of `size` bytes between forbidden pages."""

    name: str
    size: int
    edge: str
    address: int = field(init=False)
    _pages: int = field(init=False)
    _room: int = field(init=False)

    def __post_init__(self) -> None:
        self._room = -(-self.size // PAGE) * PAGE
        base = _libc.mmap(None, self._room + 2 * PAGE, _PROT_NONE, _PRIVATE_ANONYMOUS, -1, 0)
        if base in (None, ctypes.c_void_p(-1).value):
            raise MemoryError(f"mmap of {self._room} bytes")
        self._pages = base + PAGE
        self._protect(_PROT_READ | _PROT_WRITE)
        ctypes.memset(self._pages, CANARY, self._room)
        self.address = self._pages + (self._room - self.size if self.edge == "end" else 0)
        ctypes.memset(self.address, UNWRITTEN, self.size)

    def _protect(self, how: int) -> None:
        if self._room and _libc.mprotect(self._pages, self._room, how):
            raise OSError(ctypes.get_errno(), "mprotect")

    def fill(self, data: bytes, protected: bool = True) -> None:
        """Give it contents, which nobody may change if it is `protected`."""
        ctypes.memmove(self.address, data, len(data))
        if protected:
            self._protect(_PROT_READ)

    def contents(self) -> bytes:
        return ctypes.string_at(self.address, self.size)

    def damage(self) -> str | None:
        """What was written beside the buffer, inside its pages."""
        before = ctypes.string_at(self._pages, self.address - self._pages)
        behind = self.address + self.size
        after = ctypes.string_at(behind, self._pages + self._room - behind)
        for side, found in (("in front of", before[::-1]), ("behind", after)):
            changed = [k for k, byte in enumerate(found) if byte != CANARY]
            if changed:
                return f"{len(changed)} bytes were written {side} {self}, the nearest {changed[0] + 1} away"
        return None

    def distance(self, address: int) -> str | None:
        """Where an address lies, if it is near this buffer."""
        if not self._pages - PAGE <= address < self._pages + self._room + PAGE:
            return None
        if address < self.address:
            return f"{self.address - address} bytes in front of {self}"
        if address >= self.address + self.size:
            return f"{address - self.address - self.size + 1} bytes past the end of {self}"
        return f"at byte {address - self.address} of {self}, which is read-only"

    def __str__(self) -> str:
        return f"{self.name} ({self.size} bytes)"


class _SigAction(ctypes.Structure):
    """glibc's struct sigaction on 64-bit Linux."""

    _fields_ = [
        ("handler", ctypes.c_void_p), ("mask", ctypes.c_ulong * 16), ("flags", ctypes.c_int),
        ("restorer", ctypes.c_void_p),
    ]  # fmt: skip


def run_guarded(
    module: ModuleOp,
    feeds: Sequence[Array],
    edge: str = "end",
    threads: int = 1,
    target: Target | None = None,
    writable: Collection[int] = (),
) -> list[Array]:
    """Compile the graph, run it in a child process between forbidden pages, and return its outputs.

    `writable` are the numbers of inputs that native code may write to, such as the memory of caches. With several
    threads every kernel that can be cut is cut into chunks, however small it is.

    Raises:
        GuardError: Native code touched what is not its own; the message names kernel and buffer.
    """
    compiled = compile_native(module, target, EntryOptions(separate=True, pool_from=1 if threads > 1 else 1 << 62))
    POOL.address(threads)  # the child compiles nothing
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Python warns of forks in a process that has threads
        child = os.fork()
    if child == 0:
        os.close(reading)
        _child(compiled, feeds, edge, threads, writable, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        message = pipe.read()
    _, status = os.waitpid(child, 0)
    if not message:
        raise GuardError(f"the child ended with status {status} ({edge} of the buffers)")
    outcome, payload = pickle.loads(message)
    if outcome != "ok":
        raise GuardError(f"{payload} ({edge} of the buffers, {threads} threads)")
    return payload


def _child(
    compiled: CompiledGraph, feeds: Sequence[Array], edge: str, threads: int, writable: Collection[int], pipe: int
) -> None:
    """Run, send the outcome through the pipe, and never return."""
    try:
        outcome = _run(compiled, feeds, edge, threads, writable, pipe)
    except BaseException as error:  # noqa: BLE001 - the parent raises it
        outcome = ("error", f"{type(error).__name__}: {error}")
    _send(pipe, outcome)


def _send(pipe: int, outcome: tuple[str, Any]) -> None:
    data = pickle.dumps(outcome)
    while data:
        data = data[os.write(pipe, data) :]
    os._exit(0)


def _run(
    compiled: CompiledGraph, feeds: Sequence[Array], edge: str, threads: int, writable: Collection[int], pipe: int
) -> tuple[str, list[Array] | str]:
    buffers: list[Guarded] = []

    def guarded(name: str, size: int) -> Guarded:
        buffers.append(Guarded(name, size, edge))
        return buffers[-1]

    def filled(name: str, array: Array, protected: bool = True) -> int:
        made = guarded(name, array.nbytes)
        made.fill(np.ascontiguousarray(array).tobytes(), protected)
        return made.address

    made_outputs: dict[int, Guarded] = {}

    def allocate(number: int, size: int) -> int:
        if number >= 0:
            return guarded(f"workspace {number}", size).address
        made_outputs[-1 - number] = made = guarded(f"output {-1 - number}", size)
        return made.address

    compiled.use_threads(threads)
    context = Context(compiled)
    hook = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(allocate)
    context.fields[CONTEXT_FIELDS.index("allocate")] = ctypes.cast(hook, ctypes.c_void_p).value or 0
    constants = [filled(f"constant {k}", array) for k, array in enumerate(compiled.constants)]
    table = (ctypes.c_int64 * max(len(constants), 1))(*constants)
    context.fields[CONTEXT_FIELDS.index("constants")] = ctypes.addressof(table)
    dims: list[Any] = []
    for k, array in enumerate(feeds):
        dims.append((ctypes.c_int64 * max(array.ndim, 1))(*array.shape))
        context.input_table[2 * k] = filled(f"input {k}", array, k not in writable)
        context.input_table[2 * k + 1] = ctypes.addressof(dims[-1])

    def crashed(signal: int, info: int, _: int) -> None:
        launch = context.field("launch")
        kernel = compiled.sizes.launches[launch] if launch < len(compiled.sizes.launches) else "?"
        address = ctypes.c_int64.from_address(info + 16).value
        place = next((d for d in (b.distance(address) for b in reversed(buffers)) if d), f"at address {address:#x}")
        _send(pipe, ("crash", f"kernel {kernel} (launch {launch}) stopped by signal {signal} {place}"))

    action = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)(crashed)
    wanted = _SigAction(ctypes.cast(action, ctypes.c_void_p).value, flags=4)  # SA_SIGINFO
    for signal in (_SIGSEGV, _SIGBUS):
        _libc.sigaction(signal, ctypes.byref(wanted), None)

    status = compiled.enter(context)
    if status:
        raise compiled.failure(status, context)
    damages = [d for d in (b.damage() for b in buffers) if d]
    if damages:
        return "damage", "; ".join(damages)
    results: list[Array] = []
    for k, port in enumerate(compiled.outputs):
        shape = tuple(context.output_dims[k][: len(port.dims)])
        results.append(np.ndarray(shape, port.dtype.numpy, made_outputs[k].contents()))
    return "ok", results
