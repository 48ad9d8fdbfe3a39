"""Gives the workspace buffers of a plan their slots: memory that is reused once a buffer has been used last."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from sardonyx.dialects.kernel.ops import AllocOp, PlanOp


def assign_slots(plan: PlanOp) -> int:
    """Number the slots of all `kernel.alloc` ops; returns how many there are.

    A slot that has become free is taken by the next buffer of the same extents, else by any: a slot grows to the
    largest buffer that it ever held.
    """
    last_use: dict[SSAValue, int] = {}
    ops = list(plan.body.block.ops)
    for position, op in enumerate(ops):
        for operand in op.operands:
            last_use[operand] = position
    ending: dict[int, list[AllocOp]] = {}
    for op in ops:
        if isinstance(op, AllocOp):
            ending.setdefault(last_use.get(op.result, -1), []).append(op)
    free: list[tuple[tuple[SSAValue, ...], int]] = []
    slots: dict[AllocOp, int] = {}
    count = 0
    for position, op in enumerate(ops):
        if isinstance(op, AllocOp):
            key = tuple(op.extents)
            match = next((entry for entry in free if entry[0] == key), free[-1] if free else None)
            if match is None:
                slot, count = count, count + 1
            else:
                free.remove(match)
                slot = match[1]
            slots[op] = slot
            op.properties["slot"] = IntegerAttr(slot, i64)
        for dead in ending.get(position, ()):
            free.append((tuple(dead.extents), slots[dead]))
    return count
