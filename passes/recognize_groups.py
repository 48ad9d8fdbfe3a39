"""Group normalisations, for `recognize-norms`: a normalisation of data whose channels were grouped by a reshape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of, rank_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import int64
from sardonyx.dialects.sx.binary import AddOp, MulOp
from sardonyx.dialects.sx.layer_norm import LayerNormOp
from sardonyx.dialects.sx.norm import GroupNormOp, InstanceNormOp
from sardonyx.dialects.sx.reshape import ReshapeOp
from sardonyx.passes.constants import make_constant
from sardonyx.passes.driver import SxPattern, SxRewriter
from sardonyx.passes.matching import (
    defined_by,
    dims_equal,
    has_one_use,
    is_constant,
    is_filled_with,
    is_ranked,
    only_user,
    same_shape,
)
from sardonyx.passes.recognize_norms import match_norm
from sardonyx.passes.recognize_parts import escapes, owner_of, sum_of


@dataclass(frozen=True)
class Groups:
    """What was found: `x` whose channels are normalised in groups, times `scale`, plus `bias` (both per channel)."""

    x: SSAValue
    groups: int
    epsilon: float
    scale: SSAValue | None = None
    bias: SSAValue | None = None


def match_groups(value: SSAValue) -> Groups | str | None:
    """The group normalisation that a value is; why it is none, where it looks like one; None for all else."""
    for product, bias in sum_of(value):
        if has_one_use(product):
            found = _scaled(product)
            if isinstance(found, Groups) and _is_per_channel(bias, found.x):
                return Groups(found.x, found.groups, found.epsilon, found.scale, bias)
    return _scaled(value)


def _scaled(value: SSAValue) -> Groups | str | None:
    product = defined_by(value, MulOp)
    if product is None:
        return _plain(value)
    for inner, scale in (tuple(product.operands), tuple(product.operands[::-1])):
        found = _plain(inner) if has_one_use(inner) else None
        if isinstance(found, Groups) and _is_per_channel(scale, found.x):
            return Groups(found.x, found.groups, found.epsilon, scale)
    return None


def _plain(value: SSAValue) -> Groups | str | None:
    """What is reshaped back after it was normalised, without scale and bias."""
    back = defined_by(value, ReshapeOp)
    normalised = None if back is None or not has_one_use(back.data) else _normalised(back.data)
    if normalised is None:
        return None
    grouped, epsilon = normalised
    there = defined_by(grouped, ReshapeOp)
    if there is None or not is_ranked(there.data, grouped, value) or rank_of(there.data) < 2:
        return None
    whole, parts = dims_of(there.data), dims_of(grouped)
    channels, groups = whole[1].static_value, parts[1].static_value
    if not same_shape(value, there.data):
        return "what is normalised is not proved to get the shape back that it had"
    if not channels or not groups or channels % groups or not dims_equal(whole[0], parts[0]):
        return f"{parts[1]} groups are not proved to divide {whole[1]} channels of each item"
    return Groups(there.data, groups, epsilon)


def _normalised(value: SSAValue) -> tuple[SSAValue, float] | None:
    """`(data, epsilon)` where all axes behind the second are normalised, with a scale of 1 and a bias of 0 or none."""
    op = defined_by(value, (InstanceNormOp, LayerNormOp))
    if op is None:
        norm, owner = match_norm(value), owner_of(value)
        if norm is None or owner is None or not norm.is_centred or norm.scale is not None or norm.bias is not None:
            return None
        if norm.axes != tuple(range(2, rank_of(norm.data))) or escapes(norm.ops, owner) is not None:
            return None
        return norm.source, norm.epsilon
    data, *vectors = op.operands
    if not is_ranked(data) or rank_of(data) < 3 or not has_one_use(value):
        return None
    if isinstance(op, LayerNormOp) and op.attr("axis") % rank_of(data) != 2:
        return None
    fits = all(is_filled_with(vector, number) for vector, number in zip(vectors, (1.0, 0.0), strict=False))
    return (data, float(op.attr("epsilon"))) if fits else None


def _is_per_channel(value: SSAValue, x: SSAValue) -> bool:
    """Whether a value has one element per channel of x, and the dtype; a constant may have axes of extent 1 before."""
    if not is_ranked(value) or dtype_of(value) != dtype_of(x):
        return False
    wanted = [dims_of(x)[1], *[1] * (rank_of(x) - 2)]
    ours = dims_of(value)
    lead = len(ours) - len(wanted)
    if lead < 0 or (lead and not (is_constant(value) and all(d.static_value == 1 for d in ours[:lead]))):
        return False
    return all(dims_equal(a, b) for a, b in zip(ours[lead:], wanted, strict=True))


@dataclass
class GroupNormPattern(SxPattern[SxOp]):
    """Case 7: the last op of a group normalisation."""

    OPS: ClassVar = (AddOp, MulOp, ReshapeOp)
    NAME: ClassVar = "group-norm"
    REACH: ClassVar = 12

    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        """Rewrite the op, or say why not."""
        if not is_ranked(op.results[0]):
            return
        found = match_groups(op.results[0])
        if isinstance(found, str):
            return rewriter.decline(found)
        if found is None or self._is_absorbed(op):
            return
        channels = dims_of(found.x)[1].static_value or 0
        made: list[SxOp] = []
        vectors: list[SSAValue] = []
        for value, number, name in ((found.scale, 1, "ones"), (found.bias, 0, "zeros")):
            if value is None:
                made.append(make_constant(np.full(channels, number, dtype_of(found.x).numpy), name))
            elif rank_of(value) == 1:
                vectors.append(value)
                continue
            else:
                shape = make_constant(np.array([channels], int64.numpy))
                made += [shape, ReshapeOp.make(value, shape.output)]
            vectors.append(made[-1].results[0])
        norm = GroupNormOp.make(found.x, *vectors, num_groups=found.groups, epsilon=found.epsilon)
        norm.results[0].name_hint = op.results[0].name_hint
        rewriter.replace(op, [*made, norm], [norm.results[0]])

    @staticmethod
    def _is_absorbed(op: SxOp) -> bool:
        """Whether the only reader of an op takes it into a normalisation that has more."""
        user = only_user(op.results[0])
        return isinstance(user, AddOp | MulOp) and isinstance(match_groups(user.results[0]), Groups)
