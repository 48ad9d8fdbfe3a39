"""Lowers a whole graph: walks its ops in order, groups elementwise ones, and calls each other op's lowering."""

from __future__ import annotations

import importlib

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from sardonyx.backends.llvm.codegen.text import Target
from sardonyx.backends.llvm.expand import expand
from sardonyx.backends.llvm.lowering import elementwise
from sardonyx.backends.llvm.lowering.block import lower_block
from sardonyx.backends.llvm.lowering.plan import LOWERINGS, LoweredGraph, Plan, Port
from sardonyx.backends.llvm.runtime.jit import native_target
from sardonyx.dialects import locations
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.module import input_names, main_function, output_names, return_op
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.opaque import OpaqueOp
from sardonyx.dialects.types import describe_type, is_numeric
from sardonyx.errors import SardonyxError, UnsupportedError

FAMILIES = (
    "move",
    "bit_cast",
    "fill",
    "pad",
    "gather",
    "scatter",
    "matmul",
    "matmul_integer",
    "quantize",
    "conv",
    "pool",
    "scalar_unary",
    "scalar_binary",
    "scalar_activation",
    "scalar_select",
    "reduce",
    "argreduce",
    "softmax",
    "cumsum",
    "layer_norm",
    "norm",
    "resize",
)
"""The modules of this package that register lowerings; a new family is one word here."""

_loaded: list[str] = []


def load_families() -> None:
    """Import the modules that register lowerings, once."""
    for family in FAMILIES:
        if family not in _loaded:
            importlib.import_module(f"sardonyx.backends.llvm.lowering.{family}")
            _loaded.append(family)


def has_native_form(op: object) -> bool:
    """Whether an op can be lowered to native code."""
    load_families()
    return isinstance(op, ConstantOp) or type(op) in LOWERINGS or type(op) in elementwise.SCALARS


def has_native_type(ty: Attribute) -> bool:
    """Whether native code can hold the value: a tensor of numbers."""
    return is_numeric(ty)


def nested_value(op: Operation) -> str | None:
    """The type of an operand or result that native code cannot hold; None where it can hold all."""
    return next((describe_type(v.type) for v in (*op.operands, *op.results) if not has_native_type(v.type)), None)


def _refuse(module: ModuleOp) -> None:
    """Refuse a graph that takes sequences, optionals or strings, or has an op that has no native form."""
    for name, argument in zip(input_names(module), main_function(module).body.block.args, strict=True):
        if not has_native_type(argument.type):
            raise UnsupportedError(
                f"the input '{name}' is a {describe_type(argument.type)}, which has no native form yet",
                hint="finalize(fallback=True) runs what takes it by the reference",
            )
    for op in main_function(module).body.block.ops:
        nested = nested_value(op) if has_native_form(op) else None
        if nested is None and (has_native_form(op) or isinstance(op, func.ReturnOp)):
            continue
        what = op.operator if isinstance(op, OpaqueOp) else op.name
        error = UnsupportedError(
            f"{what} has no native form yet" if nested is None else f"{what} on a {nested} has no native form yet",
            hint="finalize(fallback=True) runs it by the reference",
            op=op.name,
            location=locations.describe(op.location),
        )
        error.operation = op
        raise error


def lower_graph(module: ModuleOp, target: Target | None = None) -> LoweredGraph:
    """Lower the graph to kernels and a plan, for a target (this machine by default).

    Raises:
        UnsupportedError: An op has no native form; the error names the node.
    """
    load_families()
    _refuse(module)
    module, origins = expand(module)
    try:
        return _lower(module, target)
    except SardonyxError as error:
        origin = origins.get(error.operation) if isinstance(error.operation, Operation) else None
        if origin is not None:  # what the user knows, in place of what it was expanded to
            error.operation, error.op = origin, origin.name
        raise


def _lower(module: ModuleOp, target: Target | None) -> LoweredGraph:
    """Lower a graph all of whose ops have a lowering or a scalar body."""
    function = main_function(module)
    plan = Plan(module, function, target or native_target())
    inputs = plan.lower_inputs(input_names(module))
    returned = return_op(function).operands
    plan.mark_outputs(returned)
    lower_block(plan, function.body.block)
    plan.finish_outputs(returned)
    ports = [Port(n, dtype_of(v), dims_of(v)) for n, v in zip(output_names(module), returned, strict=True)]
    return LoweredGraph(plan.build(), inputs, ports, plan.constants, plan.failures)
