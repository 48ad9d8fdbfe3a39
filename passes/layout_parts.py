"""The parts of a `Layout`: views, labels, requests and what they cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import LocationAttr, TensorType
from xdsl.ir import Operation, SSAValue

from sardonyx.dialects.dims import Dim
from sardonyx.errors import InvalidArgumentError
from sardonyx.passes import provenance
from sardonyx.passes.layout_rule import LayoutRule, Plan
from sardonyx.passes.permutations import Perm

TYPICAL_EXTENT = 16
"""What a dynamic extent counts as when sizes are compared."""

Request: TypeAlias = tuple[SSAValue, Perm]
"""A root, and the order (perhaps with leading axes) in which it is wanted."""

Cost: TypeAlias = tuple[int, int]
"""Transposes, and the elements that they move."""


@dataclass(frozen=True)
class View:
    """A transpose's result: `transpose(root, perm)`, and the locations of the transposes that it stands for."""

    root: SSAValue
    perm: Perm
    locations: tuple[LocationAttr, ...]


@dataclass(frozen=True)
class Label:
    """An op's order of axes, what follows from it, and the locations of the transposes that led to it."""

    perm: Perm
    plan: Plan
    rule: LayoutRule
    locations: tuple[LocationAttr, ...]


def is_ranked_op(op: Operation) -> bool:
    return all(isinstance(v.type, TensorType) for v in (*op.operands, *op.results))


def typical(dim: Dim) -> int:
    """An extent for comparing sizes."""
    try:
        return max(0, dim.evaluate(dict.fromkeys(dim.symbols(), TYPICAL_EXTENT)))
    except InvalidArgumentError:  # a broadcast against another extent
        return TYPICAL_EXTENT


def several(*parts: tuple[LocationAttr, ...]) -> tuple[LocationAttr, ...]:
    """Locations joined into one where there are several, so that they stay bounded."""
    found = list(dict.fromkeys(location for part in parts for location in part))
    return tuple(found) if len(found) < 2 else (provenance.merge(*found),)


def compared(cost: Cost, other: Cost) -> str:
    if cost[0] > other[0]:
        return f"{cost[0] - other[0]} more transposes would be left"
    return "as many transposes would be left"
