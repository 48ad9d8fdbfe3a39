"""Patterns of `simplify` on control flow whose course is known."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dtype_of, static_shape
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.control import IfOp, LoopOp
from sardonyx.dialects.values import known_ints
from sardonyx.passes.driver import SxPattern, SxRewriter


class KnownBranchPattern(SxPattern[IfOp]):
    """Case 13: an if whose condition is known is the branch that is taken."""

    NAME: ClassVar = "known-branch"
    OPS: ClassVar = (IfOp,)

    def rewrite(self, op: IfOp, rewriter: SxRewriter) -> None:
        known = known_ints(op.cond)
        if known is None or len(known) != 1:
            return
        block = (op.then_branch if known[0] else op.else_branch).block
        end = block.last_op
        yielded = () if end is None else tuple(end.operands)
        for child in list(block.ops):
            if child is not end:
                child.detach()
                rewriter.insert(child)
        rewriter.replace(op, [], yielded)


class NeverRunsPattern(SxPattern[LoopOp]):
    """Case 14: a loop that certainly never runs results in its initial values, and no rows."""

    NAME: ClassVar = "never-runs"
    OPS: ClassVar = (LoopOp,)

    def rewrite(self, op: LoopOp, rewriter: SxRewriter) -> None:
        trips, condition = known_ints(op.trip_count), known_ints(op.cond)
        never = (trips is not None and len(trips) == 1 and trips[0] <= 0) or condition == (0,)
        if not never:
            return
        rows: list[SSAValue | None] = []
        shapes = [static_shape(row) for row in op.outputs[op.carried :]]
        if any(shape is None and row.uses for shape, row in zip(shapes, op.outputs[op.carried :], strict=True)):
            return rewriter.decline("the extents of its rows are not known")
        for row, shape in zip(op.outputs[op.carried :], shapes, strict=True):
            if shape is None:
                rows.append(None)
                continue
            empty = ConstantOp.dense(np.empty((0, *shape[1:]), dtype_of(row).numpy), op.location)
            rows.append(rewriter.insert(empty).output)
        rewriter.replace(op, [], [*op.initial, *rows])


PATTERNS = (KnownBranchPattern, NeverRunsPattern)
