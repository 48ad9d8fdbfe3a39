"""`func.call`: the function of that name in the same module."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from sardonyx.dialects.evaluate import EvalContext, Value, register_evaluator
from sardonyx.errors import ExecutionError, UnsupportedError

MAX_DEPTH = 64
"""How deep calls may be nested."""


@register_evaluator(func.CallOp)
def _call(ctx: EvalContext, op: func.CallOp, *arguments: Value) -> Sequence[Value]:
    name = op.callee.string_value()
    function = _find(op, name)
    if function is None or len(function.body.blocks) != 1:
        raise UnsupportedError(f"@{name} has no body of one block that could be evaluated")
    ctx.depth += 1
    if ctx.depth > MAX_DEPTH:
        raise ExecutionError(f"calls are nested more than {MAX_DEPTH} deep")
    try:
        saved, ctx.values = ctx.values, ctx.fresh_values()
        try:
            return ctx.run_block(function.body.block, arguments)
        finally:
            ctx.values = saved
    finally:
        ctx.depth -= 1


def _find(op: Operation, name: str) -> func.FuncOp | None:
    at: Operation | None = op
    while at is not None and not isinstance(at, ModuleOp):
        at = at.parent_op()
    if at is None:
        return None
    functions = (f for f in at.body.block.ops if isinstance(f, func.FuncOp))
    return next((f for f in functions if f.sym_name.data == name), None)
