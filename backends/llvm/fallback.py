"""Graphs with ops that have no native form: those that the user asked the reference to run (`fallback=True`), and those
that are Python's by their nature, which are custom operators with a kernel in Python, and what makes or takes maps.

The graph is cut into stretches of native ops, each compiled as a graph of its own, and single ops that are evaluated.
Nothing falls back silently: `HybridGraph.fallbacks` lists the ops with their locations and the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, UnrankedTensorType
from xdsl.ir import Attribute, Operation, SSAValue

from sardonyx.backends.llvm.interface import Port
from sardonyx.backends.llvm.lowering.graph import first_refused, is_held, lower_graph
from sardonyx.backends.llvm.runtime.call import CompiledGraph
from sardonyx.backends.llvm.runtime.shapes import check_inputs
from sardonyx.dialects import locations
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.evaluate import EvalContext, evaluate_op
from sardonyx.dialects.module import create_module, input_names, main_function, output_names, return_op, set_outputs
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.custom import CustomOp
from sardonyx.dialects.types import MapType, OptionalType, SequenceType, captures, is_tensor
from sardonyx.errors import InvalidArgumentError, UnsupportedError

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Fallback:
    """An op that the reference runs: its name, where it comes from, and why it is not native."""

    op: str
    location: str | None
    reason: str


def find_fallbacks(module: ModuleOp) -> dict[Operation, str]:
    """The ops that have no native form, with the reason."""
    refused: dict[Operation, str] = {}
    for op in main_function(module).body.block.ops:
        if isinstance(op, func.ReturnOp):
            continue
        found = first_refused(op)
        if found is not None:
            refused[op] = found[1]
    if refused or any(not is_held(v.type) for v in main_function(module).body.block.args):
        return refused
    try:
        lower_graph(module)
    except UnsupportedError as error:
        if isinstance(error.operation, Operation):
            refused[error.operation] = error.message
    return refused


def python_ops(module: ModuleOp) -> dict[Operation, str]:
    """The ops that are Python's by their nature, with the reason: custom operators whose kernels are Python's, ops with
    such a one in a region, and those that make or take maps, which are dicts.

    Raises:
        UnsupportedError: Another op has no native form; the error names the node.
    """
    found: dict[Operation, str] = {}
    for op in main_function(module).body.block.ops:
        for inner in op.walk():
            if isinstance(inner, CustomOp) and inner.native_refusal is not None:
                found.setdefault(op, inner.native_refusal)
        if has_map(op) and not op.regions:
            found.setdefault(op, "maps are Python's dicts, which the reference makes and reads")
    if not found:
        return found
    for op in main_function(module).body.block.ops:
        refused = None if op in found or isinstance(op, func.ReturnOp) else first_refused(op)
        if refused is not None:
            raise UnsupportedError(
                refused[1],
                hint="finalize(fallback=True) runs it by the reference",
                op=refused[0].name,
                location=locations.describe(refused[0].location),
            )
    return found


def has_map(op: Operation) -> bool:
    """Whether the op makes or takes a map, or a list of maps."""
    return any(_holds_map(v.type) for v in (*op.operands, *op.results))


def _holds_map(ty: Attribute) -> bool:
    while isinstance(ty, SequenceType | OptionalType):
        ty = ty.element
    return isinstance(ty, MapType)


@dataclass
class _Stretch:
    """Consecutive native ops: the values that they take and give, and the compiled graph."""

    inputs: list[SSAValue]
    outputs: list[SSAValue]
    compiled: CompiledGraph


class HybridGraph:
    """A graph of which some ops run by the reference. `run` is as that of `CompiledGraph`."""

    def __init__(
        self,
        module: ModuleOp,
        refused: dict[Operation, str],
        compile_native: Callable[[ModuleOp], CompiledGraph],
        strict: bool = False,
    ) -> None:
        """With `strict` no other op than those that are refused runs by the reference."""
        self._module = module
        self._strict = strict
        function = main_function(module)
        self._arguments = list(function.body.block.args)
        self._tensors = [i for i, v in enumerate(self._arguments) if is_tensor(v.type)]
        names = input_names(module)
        self.inputs = [
            Port(names[i], dtype_of(v), () if isinstance(v.type, UnrankedTensorType) else dims_of(v))
            for i, v in enumerate(self._arguments)
            if i in self._tensors
        ]
        """The inputs that are tensors."""
        self._unranked = {
            k for k, i in enumerate(self._tensors) if isinstance(self._arguments[i].type, UnrankedTensorType)
        }
        self._returned = list(return_op(function).operands)
        self.output_names = output_names(module)
        self._steps: list[_Stretch | Operation] = []
        self.fallbacks: list[Fallback] = []
        pending: list[Operation] = []
        for op in function.body.block.ops:
            if isinstance(op, func.ReturnOp | ConstantOp):
                continue
            if op in refused:
                self._close(pending, refused, compile_native)
                self._refuse(op, refused[op])
            else:
                pending.append(op)
        self._close(pending, refused, compile_native)

    def _refuse(self, op: Operation, reason: str) -> None:
        name = op.operator if isinstance(op, CustomOp) else op.name
        self.fallbacks.append(Fallback(name, locations.describe(op.location), reason))
        self._steps.append(op)

    def _close(
        self,
        ops: list[Operation],
        refused: dict[Operation, str],
        compile_native: Callable[[ModuleOp], CompiledGraph],
    ) -> None:
        """Compile the ops collected so far; one that turns out to be refused cuts them in two."""
        if not ops:
            return
        stretch = list(ops)
        ops.clear()
        sub, inputs, outputs, copies = _extract(stretch, set(self._returned))
        try:
            self._steps.append(_Stretch(inputs, outputs, compile_native(sub)))
            return
        except UnsupportedError as error:
            at = next((i for i, op in enumerate(stretch) if copies[op] is error.operation), None)
            reason = error.message
            if self._strict and at is not None:
                raise
            if at is None:  # no single op is to blame, such as for an extent that nothing in the stretch tells
                if len(stretch) == 1:
                    self._refuse(stretch[0], reason)
                    return
                middle = len(stretch) // 2
                self._close(stretch[:middle], refused, compile_native)
                self._close(stretch[middle:], refused, compile_native)
                return
        self._close(stretch[:at], refused, compile_native)
        self._refuse(stretch[at], reason)
        self._close(stretch[at + 1 :], refused, compile_native)

    def run(self, arrays: Sequence[Any], out: Sequence[Array] | None = None) -> list[Array]:
        """Run native stretches and evaluated ops in order.

        Raises:
            SardonyxError: An input does not fit, or the run failed on the data.
        """
        prepared: list[Any] = list(arrays)  # sequences and optionals were checked by whoever bound them
        if len(prepared) != len(self._arguments):
            raise InvalidArgumentError(f"the graph takes {len(self._arguments)} inputs, got {len(prepared)}")
        checked = check_inputs(self.inputs, [prepared[i] for i in self._tensors], self._unranked)
        for i, array in zip(self._tensors, checked, strict=True):
            prepared[i] = array
        ctx = EvalContext(dict(zip(self._arguments, prepared, strict=True)))
        for op in main_function(self._module).body.block.ops:
            if isinstance(op, ConstantOp):
                ctx.values[op.output] = op.array()
        for step in self._steps:
            if isinstance(step, _Stretch):
                results = step.compiled.run([_contiguous(ctx.values[v]) for v in step.inputs])
                ctx.values.update(zip(step.outputs, results, strict=True))
            else:
                evaluate_op(step, ctx)
        results = [ctx.values[v] for v in self._returned]
        if out is None:
            return results
        if any(not isinstance(made, np.ndarray) for made in results):
            raise InvalidArgumentError("out: an output is a sequence or an optional, which is no buffer")
        for given, made in zip(out, results, strict=True):
            np.copyto(getattr(given, "_array", given), made)
        return list(out)


def _contiguous(value: Any) -> Any:
    return np.ascontiguousarray(value).reshape(value.shape) if isinstance(value, np.ndarray) else value


def _extract(
    ops: Sequence[Operation], returned: set[SSAValue]
) -> tuple[ModuleOp, list[SSAValue], list[SSAValue], dict[Operation, Operation]]:
    """A graph of these ops alone: the module, the outer values that it takes and gives, and each op's copy."""
    inside = dict.fromkeys(result for op in ops for result in op.results)
    inputs: dict[SSAValue, None] = {}
    constants: dict[SSAValue, Operation] = {}
    for op in ops:
        for operand in (*op.operands, *captures(op)):
            if isinstance(operand.owner, ConstantOp):
                constants[operand] = operand.owner
            elif operand not in inside:
                inputs.setdefault(operand)
    members = set(ops)
    outputs: list[SSAValue] = [
        v for v in inside if v in returned or any(use.operation not in members for use in v.uses)
    ]
    module, block = create_module("stretch", [(f"v{i}", v.type, None) for i, v in enumerate(inputs)])
    mapping: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    copies: dict[Operation, Operation] = {}
    for op in [*constants.values(), *ops]:
        copy = op.clone(mapping)
        for mine, theirs in zip(op.walk(), copy.walk(), strict=True):
            theirs.location = mine.location
        block.add_op(copy)
        copies[op] = copy
    set_outputs(module, [mapping[v] for v in outputs], [f"r{i}" for i in range(len(outputs))])
    return module, list(inputs), outputs, copies
