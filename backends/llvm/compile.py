"""Compiles a graph to native code: tensor level → kernel level → LLVM text → object → `CompiledGraph`."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from xdsl.dialects.builtin import ModuleOp

from sardonyx.backends.llvm.codegen.entry import AS_USUAL, EntryOptions, EntrySizes, emit_entry, emit_python_entry
from sardonyx.backends.llvm.codegen.text import ModuleText, Target
from sardonyx.backends.llvm.fallback import HybridGraph, find_fallbacks
from sardonyx.backends.llvm.lowering.graph import lower_graph
from sardonyx.backends.llvm.lowering.plan import LoweredGraph
from sardonyx.backends.llvm.planner import plan_workspace
from sardonyx.backends.llvm.prepare import prepare
from sardonyx.backends.llvm.runtime import jit
from sardonyx.backends.llvm.runtime.call import CompiledGraph, Program, constant_arrays
from sardonyx.dialects.kernel.ops import KernelFuncOp, PlanOp
from sardonyx.errors import UnsupportedError


@contextmanager
def _no_collection() -> Iterator[None]:
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


def compile_module(module: ModuleOp, fallback: bool = False, fast_conv: bool = False) -> CompiledGraph | HybridGraph:
    """Compile the module's graph for this machine.

    With `fallback`, ops that have no native form run by the reference; a graph that has such ops is a `HybridGraph`,
    whose `fallbacks` name them. `fast_conv` allows convolutions that are less exact (see `lowering/winograd.py`).

    Raises:
        UnsupportedError: An op has no native form; the error names the node.
    """
    if fallback:
        refused = find_fallbacks(module)
        if refused:
            return HybridGraph(module, refused, partial(compile_native, fast_conv=fast_conv))
    return compile_native(module, fast_conv=fast_conv)


def compile_native(
    module: ModuleOp, target: Target | None = None, options: EntryOptions = AS_USUAL, fast_conv: bool = False
) -> CompiledGraph:
    """Compile a graph all of whose ops have a native form.

    `target` is one that this machine runs (by default all that it has).
    """
    with _no_collection():
        return compile_lowered(_lowered(module, target, fast_conv), target, options)


def compile_lowered(
    lowered: LoweredGraph, target: Target | None = None, options: EntryOptions = AS_USUAL
) -> CompiledGraph:
    """Compile a graph that has been lowered for the target."""
    text, sizes = emit_module(lowered, target, options)
    body = jit.to_object(text)
    program = Program(lowered.inputs, lowered.outputs, constant_arrays(lowered.constants), lowered.failures, sizes)
    return CompiledGraph(program, jit.Library(body, ("entry", "entry_py")))


def _lowered(module: ModuleOp, target: Target | None, fast_conv: bool) -> LoweredGraph:
    """The kernels and the plan of the prepared graph."""
    prepared = prepare(module, fast_conv)
    try:
        return lower_graph(prepared, target)
    except UnsupportedError:
        if prepared is module:
            raise
        return lower_graph(module, target)  # so that the error names the caller's op
