"""Makes a program: tensor level → kernel level → LLVM text → objects. Loaded only where the cache has none."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from sardonyx.backends.llvm.codegen.entry import emit_entry, emit_python_entry
from sardonyx.backends.llvm.codegen.text import ModuleText, Target
from sardonyx.backends.llvm.interface import AS_USUAL, EntryOptions, EntrySizes
from sardonyx.backends.llvm.lowering.graph import lower_graph
from sardonyx.backends.llvm.lowering.plan import LoweredGraph
from sardonyx.backends.llvm.planner import plan_workspace
from sardonyx.backends.llvm.prepare import prepare
from sardonyx.backends.llvm.runtime import jit
from sardonyx.backends.llvm.runtime.call import CompiledGraph, Program, constant_arrays, link
from sardonyx.backends.llvm.runtime.objects import to_objects
from sardonyx.backends.llvm.runtime.phases import phase
from sardonyx.dialects.kernel.ops import KernelFuncOp, PlanOp, WeightOp
from sardonyx.errors import UnsupportedError


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


def lower(module: ModuleOp, target: Target | None, fast_conv: bool) -> LoweredGraph:
    """The kernels and the plan of the prepared graph."""
    with phase("passes"):
        prepared = prepare(module, fast_conv)
    try:
        return lower_graph(prepared, target)
    except UnsupportedError:
        if prepared is module:
            raise
        return lower_graph(module, target)  # so that the error names the caller's op


def build(
    lowered: LoweredGraph, target: Target | None = None, options: EntryOptions = AS_USUAL
) -> tuple[Program, list[bytes]]:
    """The program of a lowered graph, and its objects."""
    with phase("text"):
        text, sizes = emit_module(lowered, target, options)
    with phase("objects"):
        objects = to_objects(text, sizes.functions)
    forget_unread(lowered)
    constants = constant_arrays(lowered.constants)
    return Program(lowered.inputs, lowered.outputs, constants, lowered.failures, sizes), objects


def forget_unread(lowered: LoweredGraph) -> None:
    """Let go of constants that no kernel reads, such as weights of which only the packed form is read."""
    for op in lowered.module.walk():
        if isinstance(op, WeightOp) and not any(op.result.uses):
            lowered.constants[op.number.value.data] = np.empty(0, np.uint8)


def compile_lowered(
    lowered: LoweredGraph, target: Target | None = None, options: EntryOptions = AS_USUAL
) -> CompiledGraph:
    """Compile a graph that has been lowered for the target."""
    return link(*build(lowered, target, options))
