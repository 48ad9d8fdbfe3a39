"""Object code of a module: from the cache, or compiled, in several processes where that pays.

llvmlite holds one lock while LLVM works, so threads would wait for each other; forked children do not. The module's
kernels are then spread over parts of about equal length, each an object of its own in the cache. The entry of a large
graph is a part of its own (`LONG_ENTRY`).
"""

from __future__ import annotations

import os
import re
import threading
import time
import warnings
from collections.abc import Sequence

import llvmlite
import llvmlite.binding as llvm

from sardonyx.backends.llvm.codegen.text import ModuleText
from sardonyx.backends.llvm.runtime import cache as object_cache
from sardonyx.backends.llvm.runtime.cache import STATISTICS
from sardonyx.backends.llvm.runtime.jit import emit_object
from sardonyx.backends.llvm.runtime.phases import note, phase

WORTH_A_CHILD = 150_000
"""Characters of LLVM text from which on a child is forked: some 60 ms of LLVM, where fork and pipe cost 10."""
LONG_ENTRY = 150_000
"""Characters of the entry and its helpers from which on they are an object of their own, at LLVM's level 0. The entry
of a large graph is straight code that runs once, 2 KB of text a launch: it takes 6 times as long
to compile at level 2 as at 0 (BERT-base with 12 layers: 0.9 s, 0.16 s), and is a few microseconds faster then."""
_NAMES = re.compile(r"@([\w.]+)")


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
    count = min(os.cpu_count() or 1, (len(whole) - entry * long) // WORTH_A_CHILD + 1, len(kernels))
    if hasattr(os, "sched_getaffinity"):
        count = min(count, len(os.sched_getaffinity(0)))
    if not _may_fork():
        count = 1
    if count < 2 and not long:
        with phase("LLVM"):
            body = emit_object(module.target, whole)
        STATISTICS.compiled += 1
        object_cache.store(name, body)
        return [body]
    with phase("split"):
        parts = split(module, kernels, max(count, 1) + long, long)
    with phase(f"LLVM in {count} processes" if count > 1 else "LLVM"):
        return _compile_parts(module, parts, long, count)


def _key(module: ModuleText, text: str, level: int = 2) -> str:
    target = module.target
    version = ".".join(map(str, llvm.llvm_version_info))
    how = (target.triple, target.cpu, target.features, version, llvmlite.__version__, str(level))
    return object_cache.key(text, *how)


def _may_fork() -> bool:
    """Whether a child can do LLVM's work: no other thread of Python may hold one of its locks."""
    return hasattr(os, "fork") and threading.active_count() == 1


def split(module: ModuleText, kernels: Sequence[str], count: int, alone: bool = False) -> list[str]:
    """The module as texts of about equal length; the first holds the entry, `alone` or with kernels. Helpers that
    kernels call are repeated."""
    lengths = sorted(((len(module.functions[k]), k) for k in dict.fromkeys(kernels)), reverse=True)
    loads = [sum(len(t) for n, t in module.functions.items() if n not in kernels), *([0] * (count - 1))]
    members: list[set[str]] = [{n for n in module.functions if n not in kernels}, *(set() for _ in range(count - 1))]
    for length, kernel in lengths:
        least = loads.index(min(loads[alone:]), alone)
        loads[least] += length
        members[least].add(kernel)
    known = {name: set(_NAMES.findall(text)) for name, text in module.functions.items()}
    return [_part(module, chosen, set(kernels), known) for chosen in members]


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


def _compile_parts(module: ModuleText, parts: Sequence[str], long: bool, count: int) -> list[bytes]:
    """Compile the parts that the cache lacks, in `count` processes: the others in a child each. A `long` entry is the
    first part, and a small piece of work: it goes with the second."""
    levels = [0 if long and k == 0 else 2 for k in range(len(parts))]
    names = [_key(module, text, level) for text, level in zip(parts, levels, strict=True)]
    found = [object_cache.load(name) for name in names]
    missing = [k for k, body in enumerate(found) if body is None]
    here = len(missing) - (count - 1) if count > 1 else len(missing)
    here = max(here, min(1, len(missing)))
    children = [(k, *_fork(module, parts[k], levels[k])) for k in missing[here:]]
    start = time.perf_counter()
    for k in missing[:here]:
        found[k] = emit_object(module.target, parts[k], levels[k])
    if missing:
        note("this process", time.perf_counter() - start)
    for k, child, pipe in children:
        with os.fdopen(pipe, "rb") as file:
            sent = file.read()
        os.waitpid(child, 0)
        # A child that died (out of memory, say) has sent nothing whole; its part is compiled here.
        length = int.from_bytes(sent[:8], "little")
        whole = len(sent) > 8 and len(sent) == 8 + length
        found[k] = sent[8:] if whole else emit_object(module.target, parts[k], levels[k])
    for k in missing:
        STATISTICS.compiled += 1
        object_cache.store(names[k], found[k] or b"")
    return [body for body in found if body is not None]


def _fork(module: ModuleText, text: str, level: int) -> tuple[int, int]:
    """A child that compiles the text and sends the object, its length first."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # Python warns of threads that are not its own (a pool's, a BLAS's): the child calls none of them.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    try:
        body = emit_object(module.target, text, level)
        data = len(body).to_bytes(8, "little") + body
        while data:
            data = data[os.write(writing, data) :]
    finally:
        os._exit(0)


__all__ = ["split", "to_objects"]
