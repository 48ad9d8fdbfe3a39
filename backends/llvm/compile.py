"""Compiles a graph to native code: tensor level → kernel level → LLVM text → object → `CompiledGraph`."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from sardonyx.backends.llvm.codegen.emit import EMITTERS
from sardonyx.backends.llvm.codegen.entry import AS_USUAL, EntryOptions, EntrySizes, emit_entry, emit_python_entry
from sardonyx.backends.llvm.codegen.text import ModuleText, Target
from sardonyx.backends.llvm.fallback import HybridGraph, find_fallbacks, python_kernels
from sardonyx.backends.llvm.lowering.elementwise import SCALARS
from sardonyx.backends.llvm.lowering.graph import lower_graph
from sardonyx.backends.llvm.lowering.plan import LOWERINGS, LoweredGraph
from sardonyx.backends.llvm.planner import plan_workspace
from sardonyx.backends.llvm.prepare import prepare, with_explicit_state
from sardonyx.backends.llvm.ranks import RankedGraph, open_ranks, simplified
from sardonyx.backends.llvm.runtime import jit
from sardonyx.backends.llvm.runtime.call import CompiledGraph, Program, constant_arrays
from sardonyx.backends.llvm.runtime.objects import to_objects
from sardonyx.backends.llvm.runtime.phases import phase
from sardonyx.backends.llvm.runtime.program_cache import load_program, program_key, store_program
from sardonyx.dialects.kernel.ops import KernelFuncOp, PlanOp, WeightOp
from sardonyx.dialects.sx.custom import CustomOp
from sardonyx.errors import UnsupportedError


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


def emit_module(
    lowered: LoweredGraph, target: Target | None = None, options: EntryOptions = AS_USUAL
) -> tuple[ModuleText, EntrySizes]:
    """LLVM text of a lowered graph for a target (this machine by default)."""
    text = ModuleText(target or jit.native_target())
    ops = list(lowered.module.body.block.ops)
    kernels = [op for op in ops if isinstance(op, KernelFuncOp)]
    plan = next(op for op in ops if isinstance(op, PlanOp))
    sizes = emit_entry(text, kernels, plan, plan_workspace(lowered.module), options)
    emit_python_entry(text, [port.dims for port in lowered.inputs], len(lowered.outputs))
    return text, sizes


def compile_module(
    module: ModuleOp, fallback: bool = False, fast_conv: bool = False
) -> CompiledGraph | HybridGraph | RankedGraph:
    """Compile the module's graph for this machine.

    Where the rank of a tensor is not known, it is compiled when a run tells it (`RankedGraph`). With `fallback`, ops
    that have no native form run by the reference; a graph that has such ops is a `HybridGraph`, whose `fallbacks` name
    them. So is one with custom operators whose kernels are Python's. `fast_conv` allows convolutions that are less
    exact (see `lowering/winograd.py`).

    Raises:
        UnsupportedError: An op has no native form; the error names the node.
    """
    module = with_explicit_state(module)
    if open_ranks(module):
        with phase("open ranks"):
            module = simplified(module)
    if open_ranks(module):
        return RankedGraph(module, partial(_compile_ranked, fallback=fallback, fast_conv=fast_conv), check=not fallback)
    return _compile_ranked(module, fallback, fast_conv)


def _compile_ranked(module: ModuleOp, fallback: bool, fast_conv: bool) -> CompiledGraph | HybridGraph:
    if fallback:
        compiled = _from_cache(module, fast_conv=fast_conv)
        if compiled is not None:
            return compiled
        with phase("search for ops without a native form"):
            refused = find_fallbacks(module)
        if refused:
            return HybridGraph(module, refused, partial(compile_native, fast_conv=fast_conv))
    kernels = python_kernels(module)
    if kernels:
        return HybridGraph(module, kernels, partial(compile_native, fast_conv=fast_conv), strict=True)
    return compile_native(module, fast_conv=fast_conv)


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
            with phase("lowering"):
                lowered = _lowered(module, target, fast_conv)
            program, objects = _build(lowered, target, options)
            if key is not None:
                with phase("store in the cache"):
                    store_program(key, module, lowered, program, objects)
            compiled = _link(program, objects)
        return compiled


def compile_lowered(
    lowered: LoweredGraph, target: Target | None = None, options: EntryOptions = AS_USUAL
) -> CompiledGraph:
    """Compile a graph that has been lowered for the target."""
    return _link(*_build(lowered, target, options))


def _build(lowered: LoweredGraph, target: Target | None, options: EntryOptions) -> tuple[Program, list[bytes]]:
    with phase("text"):
        text, sizes = emit_module(lowered, target, options)
    with phase("objects"):
        objects = to_objects(text, sizes.functions)
    _forget_unread(lowered)
    constants = constant_arrays(lowered.constants)
    return Program(lowered.inputs, lowered.outputs, constants, lowered.failures, sizes), objects


def _forget_unread(lowered: LoweredGraph) -> None:
    """Let go of constants that no kernel reads, such as weights of which only the packed form is read."""
    for op in lowered.module.walk():
        if isinstance(op, WeightOp) and not any(op.result.uses):
            lowered.constants[op.number.value.data] = np.empty(0, np.uint8)


def _link(program: Program, objects: Sequence[bytes]) -> CompiledGraph:
    with phase("link"):
        return CompiledGraph(program, jit.Library(objects, ("entry", "entry_py")))


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
    return None if found is None else _link(*found)


def _from_cache(module: ModuleOp, fast_conv: bool) -> CompiledGraph | None:
    """The compiled graph, where the cache has it: without a search for ops that have no native form."""
    return _load(module, _key(module, None, AS_USUAL, fast_conv))


def _is_ours(module: ModuleOp) -> bool:
    """Whether all code that takes part is this package's: others' may change without the cache's knowing.

    Our own families need not be loaded for that, which takes 0.1 to 0.3 s: what is not loaded registers ours.
    """
    registered = (*EMITTERS.values(), *LOWERINGS.values(), *SCALARS.values())
    classes = {type(op) for op in module.walk()}
    return (
        CustomOp not in classes
        and all(getattr(f, "__module__", "").startswith("sardonyx.") for f in registered)
        and all(c.__module__.startswith(("sardonyx.", "xdsl.")) for c in classes)
    )


def _lowered(module: ModuleOp, target: Target | None, fast_conv: bool) -> LoweredGraph:
    """The kernels and the plan of the prepared graph."""
    with phase("passes"):
        prepared = prepare(module, fast_conv)
    try:
        return lower_graph(prepared, target)
    except UnsupportedError:
        if prepared is module:
            raise
        return lower_graph(module, target)  # so that the error names the caller's op
