"""How transposes move through quantisation: the axis of the scales goes with them."""

from __future__ import annotations

from sardonyx.dialects.attributes import rank_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.sx.support import is_unranked
from sardonyx.passes.layout_rule import LayoutRule, Need, Plan, axis_of, first_only, remake, values
from sardonyx.passes.permutations import Perm


class QuantizeRule(LayoutRule):
    """Scales for all of the tensor stay as they are, those along an axis are for the axis that it becomes, and those of
    blocks are transposed like the data."""

    kind = "quantize"

    def plan(self, op: SxOp, label: Perm) -> Plan | str:
        scale, rank = op.operands[1], len(label)
        if is_unranked(scale):
            return "its scale has no known rank"
        if rank_of(scale) == 0:
            return Plan(first_only(op, label), (label,), lambda operands, emit: remake(op, values(operands)))
        if not -rank <= op.attr("axis") < rank:
            return "its axis is none of the data's"
        axis = label[axis_of(op, rank)]
        blocks = bool(op.attr("block_size")) and rank_of(scale) == rank
        if blocks and any(is_unranked(o) or rank_of(o) != rank for o in op.operands):
            return "its scale and zero point have different ranks"
        needs = (Need(label),) * len(op.operands) if blocks else first_only(op, label)
        return Plan(needs, (label,), lambda operands, emit: remake(op, values(operands), axis=axis))
