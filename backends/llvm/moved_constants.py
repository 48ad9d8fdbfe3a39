"""Moves of constants are done once, when the graph is compiled: a weight that a model transposes at each run, say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from sardonyx.dialects.base import SxOp
from sardonyx.dialects.sx.cast import CastOp
from sardonyx.dialects.sx.concat import ConcatOp, SplitOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.reshape import FlattenOp, ReshapeOp, SqueezeOp, UnsqueezeOp
from sardonyx.dialects.sx.slice import SliceOp
from sardonyx.dialects.sx.transpose import TransposeOp
from sardonyx.passes.base import PassRun
from sardonyx.passes.driver import RewriteDriver, SxRewriter
from sardonyx.passes.fold_constants import FoldConstantsPass, FoldPattern

MOVES = (CastOp, ConcatOp, FlattenOp, ReshapeOp, SliceOp, SplitOp, SqueezeOp, TransposeOp, UnsqueezeOp)


@dataclass
class MovedConstantPattern(FoldPattern):
    """Evaluate a move of constants that other ops read; what is only handed out is computed when it is asked for."""

    OPS: ClassVar = MOVES
    NAME: ClassVar = "move-constant"

    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        if any(isinstance(use.operation, func.ReturnOp) for result in op.results for use in result.uses):
            return rewriter.decline("the graph returns it")
        super().rewrite(op, rewriter)


@dataclass(frozen=True)
class MoveConstantsPass(FoldConstantsPass):
    """Evaluate moves of constants, within the budget of `fold-constants`.

    Cases:
    1. A transpose, reshape, slice, concat, split or cast of constants becomes a constant.
    2. Not: one that the graph returns; one whose result is larger than `fold-constants` allows (weights of few bits
       stay so in memory).

    Options: `max-bytes`, as for `fold-constants`.
    Requires: nothing. Ensures: no move of constants within the budget is left that another op reads.
    Promise: exact.
    """

    name = "move-constants"

    def run(self, module: ModuleOp, run: PassRun) -> None:
        RewriteDriver([MovedConstantPattern(self.max_bytes)], run).rewrite(module)


def moves_constants(module: ModuleOp) -> bool:
    """Whether an op of the graph moves constants."""
    return any(
        isinstance(op, MOVES) and all(isinstance(operand.owner, ConstantOp) for operand in op.operands)
        for op in module.walk()
    )
