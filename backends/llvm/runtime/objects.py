"""Object code of a module: from the cache, or compiled, in several processes where that pays.

llvmlite holds one lock while LLVM works, so threads would wait for each other; forked children do not. The module's
kernels are then spread over parts of about equal length, each an object of its own in the cache, which a process
compiles one after the other, so that it can be told how far one is. The entry of a large
graph is a part of its own (`LONG_ENTRY`).
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import llvmlite
import llvmlite.binding as llvm

from sardonyx.backends.llvm.codegen.text import ModuleText
from sardonyx.backends.llvm.runtime import cache as object_cache
from sardonyx.backends.llvm.runtime.cache import STATISTICS
from sardonyx.backends.llvm.runtime.jit import emit_object
from sardonyx.backends.llvm.runtime.phases import advance, note, phase

WORTH_A_CHILD = 150_000
"""Characters of LLVM text from which on a child is forked: some 60 ms of LLVM, where fork and pipe cost 10."""
PIECE = 120_000
"""Characters of LLVM text that are compiled at a time: some 0.2 s, after which it is told how far one is."""
LONG_ENTRY = 150_000
"""Characters of the entry and its helpers from which on they are an object of their own, at LLVM's level 0. The entry
of a large graph is straight code that runs once, 2 KB of text a launch: it takes 6 times as long
to compile at level 2 as at 0 (BERT-base with 12 layers: 0.9 s, 0.16 s), and is a few microseconds faster then."""
_NAMES = re.compile(r"@([\w.]+)")


@dataclass(frozen=True)
class Part:
    """A piece of a module that is compiled by itself: its text, how many kernels it holds, and LLVM's level for it."""

    text: str
    kernels: int
    level: int = 2

    @property
    def cost(self) -> float:
        """About how long LLVM takes, in characters at level 2."""
        return len(self.text) / (1 if self.level else 6)


def to_objects(module: ModuleText, kernels: Sequence[str]) -> list[bytes]:
    """The objects that together hold the module's code. `kernels` are the functions that only the entry calls."""
    whole = str(module)
    name = _key(module, whole)
    found = object_cache.load(name)
    if found is not None:
        return [found]
    called = set(kernels)
    entry = sum(len(text) for name, text in module.functions.items() if name not in called)
    long = bool(kernels) and entry > LONG_ENTRY
    size = len(whole) - entry * long
    count = min(os.cpu_count() or 1, size // WORTH_A_CHILD + 1, len(kernels))
    if hasattr(os, "sched_getaffinity"):
        count = min(count, len(os.sched_getaffinity(0)))
    if not _may_fork():
        count = 1
    pieces = max(count, min(size // PIECE + 1, len(kernels)))
    if pieces < 2 and not long:
        with phase("LLVM"):
            body = emit_object(module.target, whole)
        STATISTICS.compiled += 1
        object_cache.store(name, body)
        return [body]
    with phase("split"):
        parts = split(module, kernels, max(pieces, 1) + long, long)
    with phase(f"LLVM in {count} processes" if count > 1 else "LLVM"):
        return _compile_parts(module, parts, count)


def _key(module: ModuleText, text: str, level: int = 2) -> str:
    target = module.target
    version = ".".join(map(str, llvm.llvm_version_info))
    how = (target.triple, target.cpu, target.features, version, llvmlite.__version__, str(level))
    return object_cache.key(text, *how)


def _may_fork() -> bool:
    """Whether a child can do LLVM's work: no other thread of Python may hold one of its locks."""
    return hasattr(os, "fork") and threading.active_count() == 1


def split(module: ModuleText, kernels: Sequence[str], count: int, alone: bool = False) -> list[Part]:
    """The module as parts of about equal length; the first holds the entry, `alone` and for level 0 or with kernels.
    Helpers that kernels call are repeated."""
    lengths = sorted(((len(module.functions[k]), k) for k in dict.fromkeys(kernels)), reverse=True)
    loads = [sum(len(t) for n, t in module.functions.items() if n not in kernels), *([0] * (count - 1))]
    members: list[set[str]] = [{n for n in module.functions if n not in kernels}, *(set() for _ in range(count - 1))]
    for length, kernel in lengths:
        least = loads.index(min(loads[alone:]), alone)
        loads[least] += length
        members[least].add(kernel)
    known = {name: set(_NAMES.findall(text)) for name, text in module.functions.items()}
    called = set(kernels)
    return [
        Part(_part(module, chosen, called, known), len(chosen & called), 0 if alone and number == 0 else 2)
        for number, chosen in enumerate(members)
    ]


def _part(module: ModuleText, chosen: set[str], kernels: set[str], known: dict[str, set[str]]) -> str:
    """The text of the functions chosen, with what they refer to."""
    wanted, pending = set(chosen), list(chosen)
    while pending:
        for name in known[pending.pop()]:
            if name in module.functions and name not in kernels and name not in wanted:
                wanted.add(name)
                pending.append(name)
    used = set().union(*(known[name] for name in wanted))
    lines = [f'target triple = "{module.target.triple}"', ""]
    lines += [f"@{name} = {text}" for name, text in module.globals.items() if name in used]
    for name, text in module.functions.items():
        if name in wanted:
            lines.append(text.replace("define internal ", "define ", 1) if name in kernels else text)
        elif name in used:
            lines.append(f"declare i64 @{name}(ptr, i64, i64)")
    lines += [t for n, t in module.declarations.items() if n in used and n not in module.functions]
    return "\n".join(lines) + "\n"


def _compile_parts(module: ModuleText, parts: Sequence[Part], count: int) -> list[bytes]:
    """Compile the parts that the cache lacks, in `count` processes: this one and children."""
    names = [_key(module, part.text, part.level) for part in parts]
    found = [object_cache.load(name) for name in names]
    missing = [k for k, body in enumerate(found) if body is None]
    total = sum(part.kernels for part in parts)
    done = total - sum(parts[k].kernels for k in missing)
    advance(done, total)
    shares = _shares(parts, missing, count)
    children: list[_Child] = []
    try:
        for share in shares[1:]:
            children.append(_Child(module, parts, share))
        start = time.perf_counter()
        for k in shares[0] if shares else ():
            found[k] = emit_object(module.target, parts[k].text, parts[k].level)
            done += parts[k].kernels + sum(parts[n].kernels for child in children for n in child.finished(wait=False))
            advance(done, total)
        if missing:
            note("this process", time.perf_counter() - start)
        for child in children:
            for k in child.finished(wait=True):
                done += parts[k].kernels
                advance(done, total)
            for k, body in child.bodies():
                # A child that died (out of memory, say) has sent nothing whole; its parts are compiled here.
                found[k] = body or emit_object(module.target, parts[k].text, parts[k].level)
    finally:
        for child in children:
            child.end()
    for k in missing:
        STATISTICS.compiled += 1
        object_cache.store(names[k], found[k] or b"")
    return [body for body in found if body is not None]


def _shares(parts: Sequence[Part], numbers: Sequence[int], count: int) -> list[list[int]]:
    """The parts of each process: the longest first, to whoever has least; no process without any."""
    shares: list[list[int]] = [[] for _ in range(min(count, len(numbers)))]
    for k in sorted(numbers, key=lambda k: -parts[k].cost):
        min(shares, key=lambda share: sum(parts[n].cost for n in share)).append(k)
    return shares


class _Child:
    """A process that compiles parts of a module.

    It sends a byte for each part that is done, and at last all objects, each behind its length: the pipe holds the
    bytes, so it never waits for its parent before it is done.
    """

    def __init__(self, module: ModuleText, parts: Sequence[Part], share: Sequence[int]) -> None:
        self._share = share
        self._told = 0
        self._pipe, writing = os.pipe()
        with warnings.catch_warnings():
            # Python warns of threads that are not its own (a pool's, a BLAS's): the child calls none of them.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._process = os.fork()
        if self._process:
            os.close(writing)
            return
        try:
            bodies: list[bytes] = []
            for k in share:
                bodies.append(emit_object(module.target, parts[k].text, parts[k].level))
                os.write(writing, b".")
            data = b"".join(len(body).to_bytes(8, "little") + body for body in bodies)
            while data:
                data = data[os.write(writing, data) :]
        finally:
            os._exit(0)

    def finished(self, wait: bool) -> Iterator[int]:
        """The parts that it says are done: all, as they end, or those of which it has said so by now."""
        while self._told < len(self._share):
            if (not wait and not select.select([self._pipe], [], [], 0)[0]) or not os.read(self._pipe, 1):
                return
            self._told += 1
            yield self._share[self._told - 1]

    def bodies(self) -> list[tuple[int, bytes]]:
        """Each part's object, all of which are done; empty where it died."""
        sent: list[bytes] = []
        while chunk := os.read(self._pipe, 1 << 20):
            sent.append(chunk)
        data, at = b"".join(sent), 0
        found: list[bytes] = []
        for _ in self._share:
            length = int.from_bytes(data[at : at + 8], "little")
            body = data[at + 8 : at + 8 + length]
            found.append(body if len(body) == length else b"")
            at += 8 + length
        return list(zip(self._share, found, strict=True))

    def end(self) -> None:
        """Let go of it; one that still works is stopped."""
        os.close(self._pipe)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)


__all__ = ["split", "to_objects"]
