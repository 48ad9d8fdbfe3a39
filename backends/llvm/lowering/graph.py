"""Lowers a whole graph: walks its ops in order, groups elementwise ones, and calls each other op's lowering."""

from __future__ import annotations

import importlib

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, UnrankedTensorType
from xdsl.ir import Attribute, Operation

from sardonyx.backends.llvm.codegen.text import Target
from sardonyx.backends.llvm.expand import expand
from sardonyx.backends.llvm.interface import Port
from sardonyx.backends.llvm.lowering import elementwise
from sardonyx.backends.llvm.lowering.block import lower_block
from sardonyx.backends.llvm.lowering.containers import TAKES_CONTAINERS, container_port, is_native_container
from sardonyx.backends.llvm.lowering.plan import LoweredGraph, Plan
from sardonyx.backends.llvm.registries import LOWERINGS
from sardonyx.backends.llvm.runtime.jit import native_target
from sardonyx.dialects import locations
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.module import input_names, main_function, output_names, return_op
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.control import RegionOp, YieldOp
from sardonyx.dialects.sx.opaque import OpaqueOp
from sardonyx.dialects.types import describe_type, is_container, is_numeric
from sardonyx.errors import SardonyxError, UnsupportedError

FAMILIES = (
    "move",
    "bit_cast",
    "fill",
    "pad",
    "gather",
    "scatter",
    "selected",
    "one_hot",
    "topk",
    "unique",
    "nms",
    "det",
    "einsum",
    "tfidf",
    "matmul",
    "matmul_integer",
    "matmul_weights",
    "quantize",
    "quantize_product",
    "conv",
    "conv_integer",
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
    "control",
    "sequence",
    "recurrent",
    "recurrent_integer",
    "linear_attention",
    "attention",
    "rotary",
    "state",
    "custom",
    "resize",
    "sample",
    "roi",
    "lp_pool",
    "col2im",
    "deform_conv",
    "signal",
    "random",
    "tree",
    "svm",
    "encode",
)
"""The modules of this package that register lowerings; a new family is one word here."""

_loaded: list[str] = []


def load_families() -> None:
    """Import the modules that register lowerings, once."""
    for family in FAMILIES:
        if family not in _loaded:
            importlib.import_module(f"sardonyx.backends.llvm.lowering.{family}")
            _loaded.append(family)


def has_native_form(op: Operation) -> bool:
    """Whether an op, and all in its regions, can be lowered to native code."""
    return first_refused(op) is None


def has_native_type(ty: Attribute) -> bool:
    """Whether native code can hold the value: a tensor of numbers."""
    return is_numeric(ty)


def nested_value(op: Operation) -> str | None:
    """The type of an operand or result that native code cannot hold; None where it can hold all."""
    held = is_held if isinstance(op, RegionOp | YieldOp) or type(op) in TAKES_CONTAINERS else has_native_type
    return next((describe_type(v.type) for v in (*op.operands, *op.results) if not held(v.type)), None)


def is_held(ty: Attribute) -> bool:
    """Whether native code can hold a tensor, or a sequence or an optional of tensors."""
    return has_native_type(ty) or is_native_container(ty)


def first_refused(op: Operation, ranks: bool = True) -> tuple[Operation, str] | None:
    """The op, this one or one in its regions, that has no native form, and why; None where all have one.

    Without `ranks`, tensors of unknown rank are no reason: a run will tell (see `ranks.py`).
    """
    load_families()
    for one in op.walk():
        if isinstance(one, func.ReturnOp | YieldOp):
            continue
        what = one.operator if isinstance(one, OpaqueOp) else one.name
        if not (isinstance(one, ConstantOp) or type(one) in LOWERINGS or type(one) in elementwise.SCALARS):
            return one, f"{what} has no native form yet"
        refusal: str | None = getattr(one, "native_refusal", None)
        if refusal is not None:
            return one, refusal
        nested = nested_value(one)
        if nested is not None:
            return one, f"{what} on a {nested} has no native form yet"
        if ranks and any(isinstance(v.type, UnrankedTensorType) for v in (*one.operands, *one.results)):
            return one, f"the rank of a tensor that {what} takes or gives is not known before the run"
    return None


def refuse(module: ModuleOp, ranks: bool = True) -> None:
    """Refuse a graph that takes what native code cannot hold, or has an op that has no native form.

    Raises:
        UnsupportedError: It does; the error names the node.
    """
    for name, argument in zip(input_names(module), main_function(module).body.block.args, strict=True):
        if not is_held(argument.type):
            raise UnsupportedError(
                f"the input '{name}' is a {describe_type(argument.type)}, which has no native form yet",
                hint="finalize(fallback=True) runs what takes it by the reference",
            )
    for op in main_function(module).body.block.ops:
        refused = None if isinstance(op, func.ReturnOp) else first_refused(op, ranks)
        if refused is None:
            continue
        at, why = refused
        error = UnsupportedError(
            why,
            hint="finalize(fallback=True) runs it by the reference",
            op=at.name,
            location=locations.describe(at.location),
        )
        error.operation = op
        raise error


def lower_graph(module: ModuleOp, target: Target | None = None) -> LoweredGraph:
    """Lower the graph to kernels and a plan, for a target (this machine by default).

    Raises:
        UnsupportedError: An op has no native form; the error names the node.
    """
    from sardonyx.backends.llvm.copies import with_explicit_state

    load_families()
    module = with_explicit_state(module)
    refuse(module)
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
    ports = [
        container_port(plan, n, v.type) if is_container(v.type) else Port(n, dtype_of(v), dims_of(v))
        for n, v in zip(output_names(module), returned, strict=True)
    ]
    return LoweredGraph(plan.build(), inputs, ports, plan.constants, plan.failures)
