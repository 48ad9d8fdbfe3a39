"""Scalar bodies of the arithmetic ops."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, compute_dtype
from sardonyx.backends.llvm.lowering.elementwise import scalar
from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.sx import binary


@scalar(binary.AddOp)
def _add(b: Body, op: Any, x: SSAValue, y: SSAValue) -> SSAValue:
    return b.arithmetic("add", compute_dtype(dtype_of(op.lhs)), x, y)
