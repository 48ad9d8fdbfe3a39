"""Single elements whose rank is not known: they are scalars wherever nobody can tell.

Exporters write flags and steps of one element now as `[]`, now as `[1]`, so that what an `if` or a loop makes of them
has no known rank. Where such a value reaches nothing but conditions, elementwise ops and reshapes, its rank changes
nothing, and it is one of rank 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from xdsl.dialects.builtin import ModuleOp, UnrankedTensorType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue, Use

from sardonyx.dialects.attributes import dtype_of, rank_of, static_shape, tensor_type
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx.cast import CastLikeOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.control import IfOp, LoopOp, YieldOp
from sardonyx.dialects.sx.reshape import ReshapeOp
from sardonyx.dialects.types import is_tensor
from sardonyx.dialects.values import known_ints

Bounds = dict[SSAValue, int]
"""The greatest rank that each value may have; -1 where nothing is known of it yet."""


def settle_singles(module: ModuleOp) -> bool:
    """Make scalars of the single elements whose ranks are open and do not matter; says whether there were any.

    Only these values' types are set: what follows from them is to be inferred.
    """
    ops = list(main_function(module).body.walk())
    bounds: Bounds = {value: -1 for value in _values(ops) if _is_open(value) and _sources(value)}
    _raise_bounds(bounds)
    while bad := [v for v in bounds if not _has_bounds(v, bounds) or not all(_is_blind(use, bounds) for use in v.uses)]:
        for value in bad:
            del bounds[value]
    edges = {(op, index) for value in bounds for op, index, _ in _edges(value)}
    for op, index in edges:
        operand = op.operands[index]
        if operand not in bounds and rank_of(operand):
            op.operands[index] = _scalar(operand, op)
    for value in bounds:
        value._type = tensor_type(dtype_of(value), [])
    return bool(bounds)


def _values(ops: Sequence[Operation]) -> Iterator[SSAValue]:
    for op in ops:
        yield from op.results
        for region in op.regions:
            yield from region.block.args


def _is_open(value: SSAValue) -> bool:
    return isinstance(value.type, UnrankedTensorType)


def _edges(value: SSAValue) -> list[tuple[Operation, int, SSAValue]]:
    """The operands whose values, or whose elements, a value has: (op, index, operand). None where it is another kind
    of value."""
    if isinstance(value, BlockArgument):
        op = value.block.parent_op()
        return _carried(op, value.index - 2) if isinstance(op, LoopOp) and value.index >= 2 else []
    if not isinstance(value, OpResult):
        return []
    op = value.op
    if isinstance(op, IfOp):
        return [_yielded(region.block, value.index) for region in op.regions]
    if isinstance(op, LoopOp):
        return _carried(op, value.index) if value.index < op.carried else []
    if isinstance(op, SxOp) and op.ELEMENTWISE and not isinstance(op, CastLikeOp):
        return [(op, index, operand) for index, operand in enumerate(op.operands)]
    return []


def _carried(op: LoopOp, number: int) -> list[tuple[Operation, int, SSAValue]]:
    first = len(op.operands) - op.carried + number
    return [(op, first, op.operands[first]), _yielded(op.body.block, 1 + number)]


def _yielded(block: Block, index: int) -> tuple[Operation, int, SSAValue]:
    end = block.last_op
    if end is None:
        raise IndexError("a region without an end")
    return end, index, end.operands[index]


def _sources(value: SSAValue) -> list[SSAValue]:
    return [operand for _, _, operand in _edges(value)]


def _raise_bounds(bounds: Bounds) -> None:
    """Take from the values those that may have several elements, and find how many axes the others have at most."""
    changed = True
    while changed:
        changed = False
        for value in list(bounds):
            ranks = [bounds.get(s) if _is_open(s) else _single_rank(s) for s in _sources(value)]
            known = [rank for rank in ranks if rank is not None]
            if len(known) < len(ranks):
                del bounds[value]
                changed = True
            elif max(known) > bounds[value]:
                bounds[value] = max(known)
                changed = True


def _single_rank(value: SSAValue) -> int | None:
    """The rank of a tensor that certainly has one element."""
    shape = static_shape(value) if is_tensor(value.type) else None
    return len(shape) if shape is not None and all(extent == 1 for extent in shape) else None


def _has_bounds(value: SSAValue, bounds: Bounds) -> bool:
    return bounds[value] >= 0 and all(source in bounds for source in _sources(value) if _is_open(source))


def _is_blind(use: Use, bounds: Bounds) -> bool:
    """Whether a use is the same for each rank that the value may have."""
    op, index = use.operation, use.index
    value = op.operands[index]
    if isinstance(op, YieldOp):
        holder = op.parent_op()
        if isinstance(holder, IfOp):
            return holder.results[index] in bounds
        if not isinstance(holder, LoopOp):
            return False
        return index == 0 or (index <= holder.carried and _is_state(holder, index - 1, bounds))
    if isinstance(op, IfOp):
        return True
    if isinstance(op, LoopOp):
        number = index - (len(op.operands) - op.carried)
        return number < 0 or _is_state(op, number, bounds)
    if isinstance(op, ReshapeOp):
        extents = known_ints(op.operands[1])
        return index == 0 and extents is not None and all(extents)  # a 0 takes the operand's extent
    if not isinstance(op, SxOp) or not op.ELEMENTWISE or isinstance(op, CastLikeOp):
        return False
    others = (other for other in op.operands if not _is_open(other))
    return all(r in bounds for r in op.results) or any(rank_of(other) >= bounds[value] for other in others)


def _is_state(op: LoopOp, number: int, bounds: Bounds) -> bool:
    return op.results[number] in bounds and op.body.block.args[2 + number] in bounds


def _scalar(value: SSAValue, before: Operation) -> SSAValue:
    """The single element of a tensor, made before an op."""
    shape = ConstantOp.dense(np.empty(0, np.int64))
    reshape = ReshapeOp.make(value, shape.output, location=before.location)
    block = before.parent
    if block is not None:
        block.insert_ops_before([shape, reshape], before)
    return reshape.results[0]
