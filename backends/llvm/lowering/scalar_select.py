"""Scalar bodies of the ops that choose between elements: where, clip."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body
from sardonyx.backends.llvm.lowering.elementwise import scalar
from sardonyx.backends.llvm.lowering.scalar_unary import computed_in
from sardonyx.dialects.sx import select


@scalar(select.WhereOp)
def _where(b: Body, op: Any, condition: SSAValue, x: SSAValue, y: SSAValue) -> SSAValue:
    return b.select(condition, x, y)


@scalar(select.ClipOp)
def _clip(b: Body, op: Any, x: SSAValue, low: SSAValue | None = None, high: SSAValue | None = None) -> SSAValue:
    dtype = computed_in(op.input)
    if low is not None:
        x = b.arithmetic("max", dtype, x, low)
    return b.arithmetic("min", dtype, x, high) if high is not None else x
