"""Evaluates a function op by op through `evaluate()`: the reference, used for eager values, folding and checking."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects import func
from xdsl.ir import Block, Operation, SSAValue

from sardonyx.dialects import locations
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.types import is_tensor
from sardonyx.errors import ExecutionError, SardonyxError, UnsupportedError

Array: TypeAlias = "np.ndarray[Any, Any]"
Value = Any
"""What a value is in a run: an array; a list for a sequence; None for an optional that is empty."""


@dataclass
class EvalContext:
    """What an op's `evaluate` may need beyond its arrays: the values in scope, for ops with regions, and the buffers
    that outlive the run, by name: what they hold (`states`), and what they hold once the run has ended (`updates`)."""

    values: dict[SSAValue, Value] = field(default_factory=dict)
    states: dict[str, Array] = field(default_factory=dict)
    updates: dict[str, Array] = field(default_factory=dict)
    depth: int = 0
    """How deep calls of functions are nested."""

    def fresh_values(self) -> dict[SSAValue, Value]:
        """An empty scope, for a function that is called."""
        return {}

    def run_block(self, block: Block, arguments: Sequence[Value]) -> list[Value]:
        """Evaluate a block in this scope; returns the operands of its terminator. What it defines is dropped again."""
        for argument, array in zip(block.args, arguments, strict=True):
            self.values[argument] = array
        for op in block.ops:
            if op.next_op is None and not isinstance(op, SxOp):
                break
            evaluate_op(op, self)
        else:
            raise ExecutionError("a block ends without a terminator")
        results = [self.values[o] for o in op.operands]
        for argument in block.args:
            del self.values[argument]
        for op in block.ops:
            for result in op.results:
                self.values.pop(result, None)
        return results


def evaluate_op(op: Operation, ctx: EvalContext) -> None:
    """Evaluate one op; its results are put into the context.

    Raises:
        SardonyxError: The op has no reference semantics, or refuses the data; it names the op's location.
    """
    if not isinstance(op, SxOp):
        return _evaluate_foreign(op, ctx)
    slots = op.slots
    count = len(op.get_irdl_definition().operands)
    arrays = [None if s is None else ctx.values[s] for s in slots]
    arrays += [None] * (count - len(arrays))
    try:
        with np.errstate(all="ignore"):
            results = op.evaluate(ctx, *arrays)
    except SardonyxError as error:
        error.op = error.op or op.name
        raise error.at(locations.describe(op.location)) from None
    except MemoryError as error:
        where = locations.describe(op.location)
        raise ExecutionError(f"there is not enough memory: {error}", op=op.name, location=where) from None
    for result, array in zip(op.results, results, strict=True):
        if is_tensor(result.type):
            array = np.asarray(array)
            if array.dtype.kind == "U":  # an element of an array of strings
                array = array.astype(object)
        ctx.values[result] = array


# ---- ops of other dialects

Evaluator = Callable[..., Sequence[Value]]
"""`(ctx, op, *operands) -> results`: what an op of another dialect computes."""

_EVALUATORS: dict[str, Evaluator] = {}
_SHIPPED = {name: f"sardonyx.dialects.foreign.{name}" for name in ("arith", "func", "linalg", "scf", "tensor")}
"""Dialects of upstream's whose evaluators come with Sardonyx; they are imported when an op of theirs is met."""


def register_evaluator(*ops: type[Operation] | str) -> Callable[[Evaluator], Evaluator]:
    """A decorator: the function says what ops of these classes or names compute.

    It gets the `EvalContext`, the op, and its operands' values (arrays, of rank 0 for scalars), and returns the values
    of its results. It may refuse data by raising `ExecutionError`, and run regions by
    `ctx.run_block(block, arguments)`. With it, functions that hold such ops are evaluated, checked, reduced and blamed
    like those of ours.
    """

    def register(function: Evaluator) -> Evaluator:
        for op in ops:
            _EVALUATORS[op if isinstance(op, str) else op.name] = function
        return function

    return register


def find_evaluator(name: str) -> Evaluator | None:
    """What evaluates ops of that name, if there is something."""
    found = _EVALUATORS.get(name)
    module = _SHIPPED.get(name.partition(".")[0])
    if found is None and module is not None:
        importlib.import_module(module)
        found = _EVALUATORS.get(name)
    return found


def _evaluate_foreign(op: Operation, ctx: EvalContext) -> None:
    name = op.attributes["op_name__"].data if op.name == "builtin.unregistered" else op.name  # pyright: ignore[reportAttributeAccessIssue]
    function = find_evaluator(name)
    where = locations.describe(op.location)
    if function is None:
        raise UnsupportedError(
            f"{name} has no reference semantics", location=where, hint="register_evaluator gives it some"
        )
    try:
        with np.errstate(all="ignore"):
            results = list(function(ctx, op, *(ctx.values[o] for o in op.operands)))
    except SardonyxError as error:
        error.op = error.op or name
        raise error.at(where) from None
    if len(results) != len(op.results):
        raise ExecutionError(
            f"the evaluator of {name} gives {len(results)} values, not {len(op.results)}", location=where
        )
    for result, value in zip(op.results, results, strict=True):
        ctx.values[result] = value if value is None or isinstance(value, list | dict) else np.asarray(value)


def evaluate_function(
    function: func.FuncOp,
    inputs: Sequence[Value],
    scope: Mapping[SSAValue, Value] | None = None,
    ctx: EvalContext | None = None,
) -> list[Value]:
    """The function's outputs for these inputs. A value is dropped after its last use.

    Args:
        function: A function of one block.
        inputs: One value per argument.
        scope: Values of outside that the function may read.
        ctx: The context to evaluate in, for those who watch.
    """
    ctx = EvalContext() if ctx is None else ctx
    ctx.values.update(scope or {})
    block = function.body.block
    for argument, array in zip(block.args, inputs, strict=True):
        ctx.values[argument] = array
    remaining: dict[SSAValue, int] = {}
    for op in block.ops:
        for operand in op.operands:
            remaining[operand] = remaining.get(operand, 0) + 1
    for op in block.ops:
        if isinstance(op, func.ReturnOp):
            return [ctx.values[o] for o in op.operands]
        evaluate_op(op, ctx)
        if not op.regions:
            for operand in op.operands:
                remaining[operand] -= 1
                if not remaining[operand] and all(use.operation.parent is block for use in operand.uses):
                    ctx.values.pop(operand, None)
    raise ExecutionError("the function has no return")
