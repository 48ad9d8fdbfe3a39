"""`scf.if`, `scf.for` and `scf.while`; `scf.index_switch` and parallel loops have no semantics here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import scf

from sardonyx.dialects.evaluate import EvalContext, Value, register_evaluator
from sardonyx.dialects.foreign.scalars import numpy_dtype, require


@register_evaluator(scf.IfOp)
def _if(ctx: EvalContext, op: scf.IfOp, condition: Value) -> Sequence[Value]:
    region = op.true_region if bool(condition) else op.false_region
    return ctx.run_block(region.block, []) if region.blocks else []


@register_evaluator(scf.ForOp)
def _for(ctx: EvalContext, op: scf.ForOp, low: Value, high: Value, step: Value, *carried: Value) -> Sequence[Value]:
    require(int(step) > 0, "a loop whose step is not positive")
    values: Sequence[Value] = carried
    dtype = numpy_dtype(op.lb.type)
    for at in range(int(low), int(high), int(step)):
        values = ctx.run_block(op.body.block, [np.array(at, dtype), *values])
    return list(values)


@register_evaluator(scf.WhileOp)
def _while(ctx: EvalContext, op: scf.WhileOp, *carried: Value) -> Sequence[Value]:
    values: Sequence[Value] = carried
    while True:
        going, *values = ctx.run_block(op.before_region.block, values)
        if not bool(going):
            return values
        values = ctx.run_block(op.after_region.block, values)
