"""States of a loop that no iteration reads, and that begin as something of another rank than what they become.

Exporters give a variable that is first set in a loop a placeholder to begin with, often a scalar. A state that its body
does not read, and that is replaced before anybody else reads it, may begin as anything.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from xdsl.dialects.builtin import ModuleOp, TensorType, UnrankedTensorType
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dtype_of, fresh_dim, rank_of, tensor_type
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.control import LoopOp, is_true
from sardonyx.dialects.values import known_ints


def settle_unread(module: ModuleOp) -> bool:
    """Have such states begin as an empty tensor of the rank that they become; says whether there were any."""
    found = False
    for op in list(module.walk()):
        if isinstance(op, LoopOp):
            for number, after in list(_unread(op)):
                _begin_empty(op, number, after)
                found = True
    return found


def _unread(op: LoopOp) -> Iterator[tuple[int, SSAValue]]:
    """The numbers of these states, with what an iteration makes of them."""
    runs = _runs(op)
    yields = op.yielded(op.body, "(C3)")[1:]
    for number, (argument, after) in enumerate(zip(op.body.block.args[2:], yields, strict=False)):
        is_open = isinstance(argument.type, UnrankedTensorType) and isinstance(after.type, TensorType)
        if is_open and not any(argument.uses) and (runs or not any(op.results[number].uses)):
            yield number, after


def _runs(op: LoopOp) -> bool:
    """Whether there is at least one iteration for certain."""
    trips = (1,) if op.trip_count is None else known_ints(op.trip_count)
    return is_true(op.cond) and trips is not None and len(trips) == 1 and trips[0] > 0


def _begin_empty(op: LoopOp, number: int, after: SSAValue) -> None:
    rank = rank_of(after)
    empty = ConstantOp.dense(np.zeros([0] * rank, dtype_of(after).numpy))
    block = op.parent
    if block is not None:
        block.insert_op_before(empty, op)
    op.operands[len(op.operands) - op.carried + number] = empty.output
    op.body.block.args[2 + number]._type = tensor_type(dtype_of(after), [fresh_dim() for _ in range(rank)])
