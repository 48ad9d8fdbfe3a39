"""Patterns of `simplify` on control flow whose course is known."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of, is_anonymous, static_shape
from sardonyx.dialects.dims import Proof, equal
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.control import IfOp, LoopOp
from sardonyx.dialects.types import is_tensor
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


class InvariantPattern(SxPattern[LoopOp]):
    """Case 20: what a loop carries and its body yields as it came is read from outside."""

    NAME: ClassVar = "loop-invariant"
    OPS: ClassVar = (LoopOp,)

    def rewrite(self, op: LoopOp, rewriter: SxRewriter) -> None:
        block = op.body.block
        end = block.last_op
        if end is None:
            return
        kept: list[int] = []
        stays: dict[int, SSAValue] = {}
        for index, first in enumerate(op.initial):
            argument, after = block.args[2 + index], end.operands[1 + index]
            if after is not argument or not self.tells_all(first, argument, rewriter):
                kept.append(index)
            else:
                stays[index] = first
        if not stays:
            return
        rows = range(op.carried, len(op.results))
        for index, first in stays.items():
            rewriter.replace_all_uses_with(block.args[2 + index], first)
        end.operands = [end.operands[0], *(end.operands[1 + i] for i in (*kept, *rows))]
        initial = [op.initial[i] for i in kept]
        for index in reversed(stays):
            block.erase_arg(block.args[2 + index])
        region = op.detach_region(op.body)
        made = LoopOp.make(
            op.trip_count, op.cond, initial, results=len(kept) + len(rows), regions=[region], location=op.location
        )
        results: list[SSAValue | None] = list(op.initial)
        for place, index in enumerate(kept):
            results[index] = made.outputs[place]
        rewriter.replace(op, made, [*results, *made.outputs[len(kept) :]])

    def tells_all(self, first: SSAValue, argument: SSAValue, rewriter: SxRewriter) -> bool:
        """Whether the initial value's type says all that the argument's does, so that no check of a run is lost."""
        if not is_tensor(first.type) or not is_tensor(argument.type):
            return False
        known = isinstance(first.type, TensorType)
        if dtype_of(first) == dtype_of(argument) and (known or not isinstance(argument.type, TensorType)):
            if not isinstance(argument.type, TensorType) or self.fits(first, argument):
                return True
        rewriter.decline(f"a value that it carries comes as {first.type}, and the body takes {argument.type}")
        return False

    def fits(self, first: SSAValue, argument: SSAValue) -> bool:
        """Whether each extent that the argument names is proved to be the initial value's."""
        ours, theirs = dims_of(argument), dims_of(first)
        return len(ours) == len(theirs) and all(
            is_anonymous(a) or equal(a, b) is Proof.PROVED for a, b in zip(ours, theirs, strict=True)
        )


PATTERNS = (KnownBranchPattern, NeverRunsPattern, InvariantPattern)
