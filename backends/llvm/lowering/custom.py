"""Custom operators whose definition has a lowering of its own."""

from __future__ import annotations

from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.dialects.sx.custom import CustomOp
from sardonyx.errors import UnsupportedError


@lowers(CustomOp)
def _custom(plan: Plan, op: CustomOp) -> None:
    refused = op.native_refusal
    if refused is not None or op.definition is None or op.definition.lower is None:
        raise UnsupportedError(refused or f"the operator '{op.operator}' has no native form")
    op.definition.lower(plan, op)
