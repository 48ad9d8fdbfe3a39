"""Branches that the types of a graph's inputs decide, taken before what they hold is looked at."""

from __future__ import annotations

from xdsl.ir import Block, Operation

from sardonyx.dialects.sx.control import IfOp
from sardonyx.dialects.values import known_ints
from sardonyx.passes.propagate import reinfer


def settle_branches(block: Block) -> None:
    """Infer the types of a block's ops in order, and put the branch in place of each `if` whose condition is known by
    then: what it holds is looked at only once it is known to be taken, since another one may not fit."""
    op = block.first_op
    while op is not None:
        if isinstance(op, IfOp) and (known := known_ints(op.cond)) is not None and len(known) == 1:
            op = _inline(op, (op.then_branch if known[0] else op.else_branch).block)
            continue
        for region in op.regions:
            for inner in region.blocks:
                settle_branches(inner)
        reinfer(op)
        op = op.next_op


def _inline(op: IfOp, taken: Block) -> Operation | None:
    """Put a branch in the place of its `if`; gives the op that comes next."""
    end, block = taken.last_op, op.parent
    before = op.prev_op
    for child in list(taken.ops):
        if child is not end and block is not None:
            child.detach()
            block.insert_op_before(child, op)
    for result, value in zip(op.results, () if end is None else end.operands, strict=True):
        result.replace_all_uses_with(value)
    following = op.next_op
    op.detach()
    op.erase()
    if block is None:
        return following
    return block.first_op if before is None else before.next_op
