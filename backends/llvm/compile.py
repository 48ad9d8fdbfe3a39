"""Compiles a graph to native code, or finds its program in the cache.

What makes programs (`build.py`: lowering, code generation) is loaded where the cache has none, which takes longer than
to run one that it has.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp

from sardonyx.backends.llvm.codegen.text import Target
from sardonyx.backends.llvm.copies import with_explicit_state
from sardonyx.backends.llvm.interface import AS_USUAL, EntryOptions
from sardonyx.backends.llvm.open_ranks import open_ranks
from sardonyx.backends.llvm.registries import EMITTERS, LOWERINGS, SCALARS
from sardonyx.backends.llvm.runtime import jit
from sardonyx.backends.llvm.runtime.call import CompiledGraph, link
from sardonyx.backends.llvm.runtime.phases import phase
from sardonyx.backends.llvm.runtime.program_cache import load_program, store_program
from sardonyx.backends.llvm.runtime.program_key import program_key

if TYPE_CHECKING:
    from sardonyx.backends.llvm.fallback import HybridGraph
    from sardonyx.backends.llvm.ranks import RankedGraph

CUSTOM = "sx.custom"
PYTHONS = (CUSTOM, "sx.zip_map", "sx.dict_vectorizer", "sx.cast_map")
"""The ops of which some are Python's by their nature; `fallback.py` tells."""


@contextmanager
def no_collection() -> Iterator[None]:
    """Python's cyclic collector costs op-heavy phases up to half their time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def compile_module(
    module: ModuleOp, fallback: bool = False, fast_conv: bool = False
) -> CompiledGraph | HybridGraph | RankedGraph:
    """Compile the module's graph for this machine.

    Where the rank of a tensor is not known, it is compiled when a run tells it (`RankedGraph`). With `fallback`, ops
    that have no native form run by the reference; a graph that has such ops is a `HybridGraph`, whose `fallbacks` name
    them. So is one with custom operators whose kernels are Python's, or with maps. `fast_conv` allows convolutions that
    are less exact (see `lowering/winograd.py`).

    Raises:
        UnsupportedError: An op has no native form; the error names the node.
    """
    module = with_explicit_state(module)
    if open_ranks(module):
        from sardonyx.backends.llvm.ranks import RankedGraph, simplified

        with phase("open ranks"):
            module = simplified(module)
        if open_ranks(module):
            compile_ranked = partial(_compile_ranked, fallback=fallback, fast_conv=fast_conv)
            return RankedGraph(module, compile_ranked, check=not fallback)
    return _compile_ranked(module, fallback, fast_conv)


def _compile_ranked(module: ModuleOp, fallback: bool, fast_conv: bool) -> CompiledGraph | HybridGraph:
    compile_part = partial(compile_native, fast_conv=fast_conv)
    if fallback:
        compiled = _from_cache(module, fast_conv=fast_conv)
        if compiled is not None:
            return compiled
        from sardonyx.backends.llvm.fallback import HybridGraph, find_fallbacks

        with phase("search for ops without a native form"):
            refused = find_fallbacks(module)
        if refused:
            return HybridGraph(module, refused, compile_part)
    if any(op.name in PYTHONS for op in module.walk()):
        from sardonyx.backends.llvm.fallback import HybridGraph, python_ops

        python = python_ops(module)
        if python:
            return HybridGraph(module, python, compile_part, strict=True)
    return compile_part(module)


def compile_native(
    module: ModuleOp, target: Target | None = None, options: EntryOptions = AS_USUAL, fast_conv: bool = False
) -> CompiledGraph:
    """Compile a graph all of whose ops have a native form.

    `target` is one that this machine runs (by default all that it has).
    """
    with no_collection():
        key = _key(module, target, options, fast_conv)
        compiled = _load(module, key)
        if compiled is None:
            from sardonyx.backends.llvm.build import build, lower

            with phase("lowering"):
                lowered = lower(module, target, fast_conv)
            program, objects = build(lowered, target, options)
            if key is not None:
                with phase("store in the cache"):
                    store_program(key, module, lowered.constants, program, objects)
            compiled = link(program, objects)
        return compiled


# ---- the cache of programs


def _key(module: ModuleOp, target: Target | None, options: EntryOptions, fast_conv: bool) -> str | None:
    if not _is_ours(module):
        return None
    with phase("key of the cache"):
        return program_key(module, (target or jit.native_target(), options, fast_conv))


def _load(module: ModuleOp, key: str | None) -> CompiledGraph | None:
    if key is None:
        return None
    with phase("load from the cache"):
        found = load_program(key, module)
    return None if found is None else link(*found)


def _from_cache(module: ModuleOp, fast_conv: bool) -> CompiledGraph | None:
    """The compiled graph, where the cache has it: without a search for ops that have no native form."""
    return _load(module, _key(module, None, AS_USUAL, fast_conv))


def _is_ours(module: ModuleOp) -> bool:
    """Whether all code that takes part is this package's: others' may change without the cache's knowing.

    Our own families need not be loaded for that: what is not loaded registers ours.
    """
    registered = (*EMITTERS.values(), *LOWERINGS.values(), *SCALARS.values())
    return all(getattr(f, "__module__", "").startswith("sardonyx.") for f in registered) and all(
        c.__module__.startswith(("sardonyx.", "xdsl.")) and c.name != CUSTOM for c in {type(op) for op in module.walk()}
    )
