"""Lowers the ops of a block in order: a graph's, or that of a region. Groups that fuse are chosen within the block."""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.ir import Block

from sardonyx.backends.llvm.lowering import elementwise, epilogue, remarks, row_fusion, views
from sardonyx.backends.llvm.lowering.plan import Plan
from sardonyx.backends.llvm.registries import LOWERINGS
from sardonyx.backends.llvm.runtime.phases import advance
from sardonyx.dialects import locations
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.control import YieldOp
from sardonyx.dialects.types import is_container
from sardonyx.errors import SardonyxError


def lower_block(plan: Plan, block: Block) -> None:
    """Append what the block's ops become to the plan, where it stands. The terminator is left to the caller.

    Raises:
        SardonyxError: An op has no native form for its operands; the error names the op.
    """
    aside = {op for op in block.ops if any(is_container(result.type) for result in op.results)}
    inlined = elementwise.choose_inlined(block, aside)
    fused = epilogue.choose(block, inlined)
    inside = {one.contraction for one in fused.values()}
    taken = aside | inside | {op for one in fused.values() for op in one.ops}
    regions = row_fusion.choose(block, taken)
    joined = {op for region in regions for op in region.ops}
    last = {region.ops[-1]: region for region in regions}
    through = {view.root: view for view in views.choose(block, taken | joined)}
    joined |= {op for view in through.values() for op in view.ops}
    inlined = elementwise.choose_inlined(block, joined | aside)
    total = len(block.ops) if isinstance(block.parent_op(), func.FuncOp) else 0
    for number, op in enumerate(block.ops):
        plan.current = op
        if total:
            advance(number, total)
        try:
            if isinstance(op, func.ReturnOp | YieldOp):
                continue
            if isinstance(op, ConstantOp):
                plan.constant(op)
            elif op in last:
                remarks.fused("rows", op, last[op].ops)
                row_fusion.lower(plan, last[op])
            elif op in through:
                remarks.fused("views", op, through[op].ops)
                views.lower(plan, through[op])
            elif op in inlined or op in inside or op in joined:
                continue
            elif op in fused:
                remarks.fused("epilogue", op, (fused[op].contraction, *fused[op].ops))
                epilogue.lower(plan, fused[op])
            elif type(op) in elementwise.SCALARS and op not in aside:
                remarks.fused("elementwise", op, elementwise.members(op, inlined))  # pyright: ignore[reportArgumentType]
                elementwise.lower_group(plan, op, inlined)  # pyright: ignore[reportArgumentType]
            else:
                LOWERINGS[type(op)](plan, op)
        except SardonyxError as error:
            error.op = error.op or op.name
            error.operation = op  # at last the one of the graph itself
            raise error.at(locations.describe(op.location)) from None
    plan.current = None
