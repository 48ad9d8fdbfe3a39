"""A pass that is wrong: it drops pairs of negations, which is right, and single ones, which isn't."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp

from sardonyx.dialects.sx.unary import NegOp
from sardonyx.passes.base import PassRun, SxPass
from sardonyx.passes.driver import RewriteDriver, SxPattern, SxRewriter
from sardonyx.passes.matching import defined_by, forward


class DropPairPattern(SxPattern[NegOp]):
    OPS: ClassVar = (NegOp,)

    def rewrite(self, op: NegOp, rewriter: SxRewriter) -> None:
        inner = defined_by(op.input, NegOp)
        if inner is not None:
            forward(op, inner.input, rewriter)


class DropOnePattern(SxPattern[NegOp]):
    OPS: ClassVar = (NegOp,)

    def rewrite(self, op: NegOp, rewriter: SxRewriter) -> None:
        forward(op, op.input, rewriter)


@dataclass(frozen=True)
class DropNegationsPass(SxPass):
    """Drop negations."""

    name = "drop-negations"

    def run(self, module: ModuleOp, run: PassRun) -> None:
        RewriteDriver([DropPairPattern()], run).rewrite(module)
        RewriteDriver([DropOnePattern()], run).rewrite(module)
