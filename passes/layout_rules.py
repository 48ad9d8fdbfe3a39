"""The layout rules of our ops, in the order of the cases of `compose-transposes`; others add theirs with `register`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sardonyx.dialects.attributes import dims_of, dtype_of, rank_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.values import known_ints
from sardonyx.passes.layout_quantized import QuantizeRule
from sardonyx.passes.layout_rule import (
    ANY,
    Emit,
    LayoutRule,
    Need,
    Operand,
    Plan,
    axis_of,
    first_only,
    remake,
    values,
    vector,
)
from sardonyx.passes.permutations import Perm, identity, inverse, matching, padded


class ElementwiseRule(LayoutRule):
    """All operands broadcast against one another; one of lower rank has its axes at the end."""

    kind = "elementwise"

    def from_operand(self, op: SxOp, index: int, perm: Perm) -> Perm | None:
        return padded(perm, rank_of(op.results[0]))

    def plan(self, op: SxOp, label: Perm) -> Plan | str:
        needs = tuple(Need(label) if rank_of(o) else None for o in op.operands)
        return Plan(needs, (label,) * len(op.results), lambda operands, emit: remake(op, values(operands)))


class CastLikeRule(ElementwiseRule):
    """Only the second operand's dtype matters."""

    def from_operand(self, op: SxOp, index: int, perm: Perm) -> Perm | None:
        return perm if index == 0 else None

    def plan(self, op: SxOp, label: Perm) -> Plan | str:
        return Plan((Need(label), ANY), (label,), lambda operands, emit: remake(op, values(operands)))


class AxisRule(LayoutRule):
    """One data operand, one result of its rank, and a property `axis` (softmax)."""

    kind = "softmax"

    def plan(self, op: SxOp, label: Perm) -> Plan | str:
        axis = label[axis_of(op, len(label))]
        return Plan(first_only(op, label), (label,), lambda operands, emit: remake(op, values(operands), axis=axis))


class CumSumRule(LayoutRule):
    """The axis is an operand; it must be known."""

    kind = "cumsum"

    def plan(self, op: SxOp, label: Perm) -> Plan | str:
        stated = op.operands[1]
        known = known_ints(stated)
        if known is None or len(known) != 1:
            return "its axis is not known"
        axis = np.array(label[known[0] % len(label)], np.int64).reshape([1] * rank_of(stated))

        def build(operands: Sequence[Operand], emit: Emit) -> SxOp:
            return remake(op, [operands[0].value, emit(ConstantOp.dense(axis))])

        return Plan((Need(label), None), (label,), build)


class RemovingRule(LayoutRule):
    """An op that reduces or removes some axes of its first operand; the label orders the operand's axes."""

    def removed(self, op: SxOp) -> tuple[int, ...] | str:
        """The axes, non-negative, or why they are not known."""
        raise NotImplementedError

    def keeps(self, op: SxOp) -> bool:
        """Whether the axes stay with extent 1."""
        return bool(op.attr("keepdims"))

    def rebuild(self, op: SxOp, axes: tuple[int, ...], operands: Sequence[Operand], emit: Emit) -> SxOp:
        """The op on these axes of the new operand."""
        raise NotImplementedError

    def from_result(self, op: SxOp, index: int, perm: Perm) -> Perm | None:
        removed = self.removed(op)
        if isinstance(removed, str):
            return None
        if self.keeps(op):
            return perm
        label = list(identity(rank_of(op.operands[0])))
        kept = [axis for axis in label if axis not in removed]
        for axis, source in zip(kept, perm, strict=True):
            label[axis] = kept[source]
        return tuple(label)

    def plan(self, op: SxOp, label: Perm) -> Plan | str:
        removed = self.removed(op)
        if isinstance(removed, str):
            return removed
        result = label
        if not self.keeps(op):
            kept = [label[i] for i in range(len(label)) if i not in removed]
            result = matching(kept, sorted(kept))
        axes = tuple(sorted(label[axis] for axis in removed))
        return Plan(first_only(op, label), (result,), lambda operands, emit: self.rebuild(op, axes, operands, emit))


class ReduceRule(RemovingRule):
    kind = "reduce"

    def removed(self, op: SxOp) -> tuple[int, ...] | str:
        found = op.known_axes()  # pyright: ignore[reportAttributeAccessIssue]
        return "its axes are not known" if found is None else found

    def rebuild(self, op: SxOp, axes: tuple[int, ...], operands: Sequence[Operand], emit: Emit) -> SxOp:
        if len(operands) > 1 and axes and len(axes) < rank_of(op.operands[0]):
            return remake(op, [operands[0].value, vector(emit, axes)])
        return remake(op, values(operands))


class ArgReduceRule(RemovingRule):
    kind = "reduce"

    def removed(self, op: SxOp) -> tuple[int, ...] | str:
        return (axis_of(op, rank_of(op.operands[0])),)

    def rebuild(self, op: SxOp, axes: tuple[int, ...], operands: Sequence[Operand], emit: Emit) -> SxOp:
        return remake(op, values(operands), axis=axes[0])


class SqueezeRule(RemovingRule):
    kind = "squeeze"

    def keeps(self, op: SxOp) -> bool:
        return False

    def removed(self, op: SxOp) -> tuple[int, ...] | str:
        rank = rank_of(op.operands[0])
        if len(op.operands) > 1:
            known = known_ints(op.operands[1])
            return "its axes are not known" if known is None else tuple(axis % rank for axis in known)
        found = [d.static_value for d in dims_of(op.operands[0])]
        return tuple(i for i, extent in enumerate(found) if extent == 1)

    def rebuild(self, op: SxOp, axes: tuple[int, ...], operands: Sequence[Operand], emit: Emit) -> SxOp:
        return type(op).make(operands[0].value, vector(emit, axes))


class UnsqueezeRule(LayoutRule):
    """The label orders the result's axes; new axes may stand anywhere in the new result."""

    kind = "unsqueeze"

    def _added(self, op: SxOp) -> set[int] | None:
        known = known_ints(op.operands[1])
        rank = rank_of(op.results[0])
        return None if known is None else {axis % rank for axis in known}

    def from_operand(self, op: SxOp, index: int, perm: Perm) -> Perm | None:
        added = self._added(op)
        if index or added is None:
            return None
        kept = [i for i in range(rank_of(op.results[0])) if i not in added]
        label = list(identity(rank_of(op.results[0])))
        for i, source in zip(kept, perm, strict=True):
            label[i] = kept[source]
        return tuple(label)

    def plan(self, op: SxOp, label: Perm) -> Plan | str:
        added = self._added(op)
        if added is None:
            return "its axes are not known"
        kept = [label[i] for i in range(len(label)) if i not in added]
        need = Need(matching(kept, sorted(kept)))
        axes = sorted(label[i] for i in added)
        return Plan((need, None), (label,), lambda operands, emit: type(op).make(operands[0].value, vector(emit, axes)))


class ConcatRule(LayoutRule):
    kind = "concat"

    def from_operand(self, op: SxOp, index: int, perm: Perm) -> Perm | None:
        return perm

    def plan(self, op: SxOp, label: Perm) -> Plan | str:
        axis = label[axis_of(op, len(label))]
        needs = (Need(label),) * len(op.operands)
        return Plan(needs, (label,), lambda operands, emit: remake(op, values(operands), axis=axis))


class SplitRule(LayoutRule):
    kind = "split"

    def plan(self, op: SxOp, label: Perm) -> Plan | str:
        axis = label[axis_of(op, len(label))]
        results = (label,) * len(op.results)
        return Plan(first_only(op, label), results, lambda operands, emit: remake(op, values(operands), axis=axis))


class PadRule(LayoutRule):
    """Known pads of all axes are put in the new order; otherwise the axes are stated."""

    kind = "pad"

    def plan(self, op: SxOp, label: Perm) -> Plan | str:
        pads, value, axes = op.pads, op.constant_value, op.axes  # pyright: ignore[reportAttributeAccessIssue]
        rank = len(label)
        chosen = range(rank) if axes is None else known_ints(axes)
        if chosen is None:
            return "its axes are not known"
        known = known_ints(pads)
        order = inverse(label)

        def build(operands: Sequence[Operand], emit: Emit) -> SxOp:
            make = type(op).make
            if axes is None and known is not None:
                moved = [known[at] for at in (*order, *(rank + i for i in order))]
                return make(operands[0].value, vector(emit, moved), value, mode=op.attr("mode"))
            new_axes = vector(emit, [label[axis % rank] for axis in chosen])
            return make(operands[0].value, pads, value, new_axes, mode=op.attr("mode"))

        return Plan(first_only(op, label), (label,), build)


class SliceRule(LayoutRule):
    """The bounds stay, the axes are rewritten."""

    kind = "slice"

    def plan(self, op: SxOp, label: Perm) -> Plan | str:
        starts, ends, axes, steps = op.starts, op.ends, op.axes, op.steps  # pyright: ignore[reportAttributeAccessIssue]
        rank = len(label)
        if axes is None:
            count = dims_of(starts)[0].static_value
            chosen = None if count is None else range(count)
        else:
            chosen = known_ints(axes)
        if chosen is None:
            return "its axes are not known"
        new_axes = [label[axis % rank] for axis in chosen]

        def build(operands: Sequence[Operand], emit: Emit) -> SxOp:
            dtype = dtype_of(starts).numpy
            return type(op).make(operands[0].value, starts, ends, vector(emit, new_axes, dtype), steps)

        return Plan(first_only(op, label), (label,), build)


class ShapedRule(LayoutRule):
    """Expand and tile: the second operand has one entry per axis of the result, which are put in the new order."""

    kind = "expand"

    def from_operand(self, op: SxOp, index: int, perm: Perm) -> Perm | None:
        return padded(perm, rank_of(op.results[0])) if index == 0 else None

    def plan(self, op: SxOp, label: Perm) -> Plan | str:
        entries = op.operands[1]
        if dims_of(entries)[0].static_value != len(label):
            return "its shape has fewer entries than the result has axes"
        known = known_ints(entries)
        order = inverse(label)

        def build(operands: Sequence[Operand], emit: Emit) -> SxOp:
            if known is not None:
                moved = vector(emit, [known[axis] for axis in order])
            else:
                moved = emit(_op("sx.gather").make(entries, vector(emit, order)))
            return remake(op, [operands[0].value, moved])

        return Plan((Need(label), None), (label,), build)


class GatherRule(LayoutRule):
    """The axes of the indices stand where the gathered axis was; the label orders the data's axes."""

    kind = "gather"

    def from_result(self, op: SxOp, index: int, perm: Perm) -> Perm | None:
        return None

    def plan(self, op: SxOp, label: Perm) -> Plan | str:
        axis = axis_of(op, len(label))
        indices = [("index", i) for i in range(rank_of(op.operands[1]))]

        def tokens(axes: Sequence[int], at: int) -> list[object]:
            return [token for a in axes for token in (indices if a == at else [a])]

        result = matching(tokens(label, label[axis]), tokens(identity(len(label)), label[axis]))
        new_axis = label[axis]
        return Plan((Need(label), None), (result,), lambda operands, emit: remake(op, values(operands), axis=new_axis))


class GatherElementsRule(LayoutRule):
    kind = "gather"

    def from_operand(self, op: SxOp, index: int, perm: Perm) -> Perm | None:
        return perm

    def plan(self, op: SxOp, label: Perm) -> Plan | str:
        axis = label[axis_of(op, len(label))]
        return Plan(
            (Need(label), Need(label)), (label,), lambda operands, emit: remake(op, values(operands), axis=axis)
        )


class FixedAxesRule(LayoutRule):
    """Normalisations: some axes have to stay where they are, the others are alike."""

    kind = "normalization"

    def __init__(self, fixed: Callable[[SxOp, int], Sequence[int]]) -> None:
        self.fixed = fixed

    def from_result(self, op: SxOp, index: int, perm: Perm) -> Perm | None:
        return perm if index == 0 else None

    def plan(self, op: SxOp, label: Perm) -> Plan | str:
        rank = len(label)
        for axis in self.fixed(op, rank):
            if label[axis] != axis:
                return f"axis {axis} has a meaning of its own there"
        results = tuple(label if rank_of(r) == rank else identity(rank_of(r)) for r in op.results)
        return Plan(first_only(op, label), results, lambda operands, emit: remake(op, values(operands)))


class MatMulRule(LayoutRule):
    """Leading axes in another order stay so; two transposed matrices are multiplied the other way round."""

    kind = "matmul"

    def from_operand(self, op: SxOp, index: int, perm: Perm) -> Perm | None:
        rank = rank_of(op.results[0])
        return padded(perm, rank) if len(perm) <= rank else None

    def plan(self, op: SxOp, label: Perm) -> Plan | str:
        rank = len(label)
        if any(rank_of(o) < 2 for o in op.operands):
            return "an operand is a vector"
        if set(label[-2:]) != {rank - 2, rank - 1}:
            return "rows or columns would become leading axes"
        swapped = label[-1] != rank - 1

        def build(operands: Sequence[Operand], emit: Emit) -> SxOp:
            a, b = values(operands)
            return remake(op, [b, a] if swapped else [a, b])

        return Plan((Need(label), Need(label)), (label,), build)


class GemmRule(LayoutRule):
    """Transposed matrices are a matter of the flags; a transposed result is the product the other way round."""

    kind = "gemm"

    def from_operand(self, op: SxOp, index: int, perm: Perm) -> Perm | None:
        return None

    def absorb(self, op: SxOp) -> Plan | None:
        needs = (ANY, ANY, *[None] * (len(op.operands) - 2))

        def build(operands: Sequence[Operand], emit: Emit) -> SxOp:
            flags = {flag: op.attr(flag) ^ flipped(o) for flag, o in zip(("transA", "transB"), operands)}
            return remake(op, values(operands), **flags)

        return Plan(needs, (identity(2),), build)

    def plan(self, op: SxOp, label: Perm) -> Plan | str:
        rest = [Need(label) if rank_of(o) else None for o in op.operands[2:]]

        def build(operands: Sequence[Operand], emit: Emit) -> SxOp:
            a, b, *c = operands
            return remake(
                op,
                [b.value, a.value, *values(c)],
                transA=not (op.attr("transB") ^ flipped(b)),
                transB=not (op.attr("transA") ^ flipped(a)),
            )

        return Plan((ANY, ANY, *rest), (label,), build)


def flipped(operand: Operand) -> bool:
    return operand.perm == (1, 0)


class ShapeRule(LayoutRule):
    """Extents are taken from the data as it is, and put in order."""

    kind = "shape"

    def from_operand(self, op: SxOp, index: int, perm: Perm) -> Perm | None:
        return None

    def from_result(self, op: SxOp, index: int, perm: Perm) -> Perm | None:
        return None

    def plan(self, op: SxOp, label: Perm) -> Plan | str:
        return "extents have no order of axes"

    def absorb(self, op: SxOp) -> Plan | None:
        def build(operands: Sequence[Operand], emit: Emit) -> SxOp:
            (data,) = operands
            if op.name == "sx.size" or data.perm is None:
                return remake(op, [data.value])
            axes = [data.perm[axis] for axis in op.axes(len(data.perm))]  # pyright: ignore[reportAttributeAccessIssue]
            if axes and axes == list(range(axes[0], axes[0] + len(axes))):
                return type(op).make(data.value, start=axes[0], end=axes[-1] + 1)
            return _op("sx.gather").make(emit(type(op).make(data.value)), vector(emit, axes))

        return Plan((ANY,), (identity(rank_of(op.results[0])),), build)


def _op(name: str) -> type[SxOp]:
    from sardonyx.dialects.sx import BY_NAME

    return BY_NAME[name]


_ELEMENTWISE = ElementwiseRule()
_AXIS, _REDUCE, _ARG, _SHAPED, _SHAPE = AxisRule(), ReduceRule(), ArgReduceRule(), ShapedRule(), ShapeRule()
_REDUCTIONS = "sum mean max min prod l1 l2 log_sum log_sum_exp sum_square"


def _trailing(op: SxOp, rank: int) -> Sequence[int]:
    """The axes that are normalised; all, where scale or bias vary along others."""
    axis = axis_of(op, rank)
    return range(axis if all(rank_of(o) <= rank - axis for o in op.operands[1:]) else 0, rank)


_RULES: dict[str, LayoutRule] = {
    **{f"sx.{name}": _AXIS for name in ("softmax", "log_softmax", "hardmax", "lp_normalization")},
    **{f"sx.reduce_{name}": _REDUCE for name in _REDUCTIONS.split()},
    "sx.cast_like": CastLikeRule(),
    "sx.cumsum": CumSumRule(),
    "sx.quantize_linear": QuantizeRule(),
    "sx.dequantize_linear": QuantizeRule(),
    "sx.arg_max": _ARG,
    "sx.arg_min": _ARG,
    "sx.squeeze": SqueezeRule(),
    "sx.unsqueeze": UnsqueezeRule(),
    "sx.concat": ConcatRule(),
    "sx.split": SplitRule(),
    "sx.pad": PadRule(),
    "sx.slice": SliceRule(),
    "sx.expand": _SHAPED,
    "sx.tile": _SHAPED,
    "sx.gather": GatherRule(),
    "sx.gather_elements": GatherElementsRule(),
    "sx.matmul": MatMulRule(),
    "sx.gemm": GemmRule(),
    "sx.shape": _SHAPE,
    "sx.size": _SHAPE,
    "sx.batch_norm": FixedAxesRule(lambda op, rank: (1,) if rank > 1 else ()),
    "sx.lrn": FixedAxesRule(lambda op, rank: (1,)),
    "sx.instance_norm": FixedAxesRule(lambda op, rank: (0, 1)),
    "sx.group_norm": FixedAxesRule(lambda op, rank: (0, 1)),
    "sx.layer_norm": FixedAxesRule(_trailing),
    "sx.rms_norm": FixedAxesRule(_trailing),
}


def register(op_name: str, rule: LayoutRule) -> None:
    """State how transposes go with an op."""
    _RULES[op_name] = rule


def rule_of(op: SxOp) -> LayoutRule | None:
    """The op's rule, or None for one that transposes do not move through."""
    found = _RULES.get(op.name)
    if found is None and op.ELEMENTWISE and len(op.results) == 1 and not op.regions:
        return _ELEMENTWISE
    return found
