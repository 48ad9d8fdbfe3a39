"""Chains of ops that are a Gaussian error linear unit in float32 are computed as one function."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue

from sardonyx.backends.llvm.lowering.scalar_activation import AS_A_SUM
from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.dtypes import float32
from sardonyx.dialects.sx.activation import GeluOp
from sardonyx.passes.base import PassRun, Promise, SxPass, reassociates
from sardonyx.passes.driver import RewriteDriver
from sardonyx.passes.recognize_gelu import GeluPattern


@dataclass
class GeluSumPattern(GeluPattern):
    """As `recognize-gelu`, and the op bears the attribute `AS_A_SUM`."""

    NAME: ClassVar = "gelu-sum"

    def made(self, x: SSAValue, approximate: str) -> Operation | None:
        if approximate != "none" or dtype_of(x) != float32:
            return None
        op = GeluOp.make(x)
        op.attributes[AS_A_SUM] = UnitAttr()
        return op


@dataclass(frozen=True)
class GeluSumsPass(SxPass):
    """Compute `x * 1/2 * (1 + erf(x / sqrt(2)))` in float32 as one function that is as exact as this sum.

    Cases:
    1. The chain that `recognize-gelu` finds, in float32.
    2. Not: other dtypes, and the approximation with tanh. An op that is `gelu` already keeps its small results.

    Requires: nothing. Ensures: no such chain is left; each is a `gelu` with the attribute `as_a_sum`.
    Promise: reassociates(8).
    """

    name = "gelu-sums"
    PROMISE: ClassVar[Promise] = reassociates(8)

    def run(self, module: ModuleOp, run: PassRun) -> None:
        RewriteDriver([GeluSumPattern()], run).rewrite(module)
