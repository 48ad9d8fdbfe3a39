"""Types follow values: when an operand's type gets better known, so do its users' results."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, NoneAttr, TensorType
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from sardonyx.dialects.attributes import is_anonymous
from sardonyx.dialects.base import SxOp, refine
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.module import sync_signature
from sardonyx.dialects.sx.control import YieldOp
from sardonyx.dialects.values import contents, forget


def reinfer(op: Operation) -> list[OpResult]:
    """Refine the op's result types in place by what inference finds, and what is known of their contents.

    Returns the results of which more is known now.

    Raises:
        InferenceError: The operands break a constraint of the op, or contradict the stated type.
    """
    if not isinstance(op, SxOp):
        return []
    changed: list[OpResult] = []
    for result, inferred in zip(op.results, op.infer(), strict=True):
        better = result.type if result.type == inferred else refine(result.type, inferred, op)
        facts = _named_facts(result)
        retyped = better != result.type
        if retyped:
            result._type = better
        forget(result)
        if retyped or _named_facts(result) != facts:
            changed.append(result)
    return changed


def _named_facts(value: SSAValue) -> tuple[Dim | None, ...] | None:
    """What is known of a value's contents; extents that nobody named are new each time, so they are left out."""
    facts = contents(value)
    return None if facts is None else tuple(None if d is None or is_anonymous(d) else d for d in facts)


def holder(op: Operation) -> Operation:
    """The op whose results follow from an op's operands: for the end of a region the op that holds the region."""
    parent = op.parent_op() if isinstance(op, YieldOp) else None
    return op if parent is None else parent


def agree(old: Attribute, new: Attribute, op: Operation | None = None) -> Attribute:
    """The type of a value that replaces an equal one: what is known of either, the old one's names preferred.

    Raises:
        InferenceError: They contradict each other.
    """
    unnamed = isinstance(old, TensorType) and DYNAMIC_INDEX in old.get_shape() and isinstance(old.encoding, NoneAttr)
    return refine(new, old, op) if unnamed else refine(old, new, op)


def propagate(
    ops: Iterable[Operation],
    allowed: Callable[[Operation], bool] = lambda op: True,
    note: Callable[[Operation], None] = lambda op: None,
) -> None:
    """Re-infer these ops and, where more became known, their users, and so on.

    `allowed` is asked before each op, `note` is told of each whose types changed. Types and facts only ever get more
    precise, so this ends.
    """
    queue = deque(dict.fromkeys(map(holder, ops)))
    waiting = set(queue)
    while queue:
        op = queue.popleft()
        waiting.discard(op)
        if op.parent is None or not isinstance(op, SxOp) or not allowed(op):
            continue
        before = [result.type for result in op.results]
        results = reinfer(op)
        if [result.type for result in op.results] != before:
            note(op)
        for result in results:
            for use in result.uses:
                reader = holder(use.operation)
                if reader not in waiting:
                    waiting.add(reader)
                    queue.append(reader)


def sync_functions(module: ModuleOp) -> bool:
    """Make each function's type follow its arguments and returned values; returns whether one changed."""
    changed = False
    for function in module.walk():
        if not isinstance(function, func.FuncOp) or not function.body.blocks:
            continue
        last = function.body.block.last_op if len(function.body.blocks) == 1 else None
        if not isinstance(last, func.ReturnOp):
            continue
        before = function.function_type
        outputs = tuple(v.type for v in last.operands)
        inputs = tuple(a.type for a in function.body.block.args)
        if before.inputs.data != inputs or before.outputs.data != outputs:
            sync_signature(function)
            changed = True
    return changed
