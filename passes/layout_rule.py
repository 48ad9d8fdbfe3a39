"""What a layout rule is: how an op takes to transposed operands.

A rule describes an op as `op(x) = transpose(op'(x'), r)`, where each data operand is `x = transpose(x', p)`. All the
permutations of one op follow from one, its *label*. `from_operand` and `from_result` give the label that suits a
transposed operand or a wanted result; `plan` gives the rest: what each operand must be, what the results are, and how
to build the op with its axes rewritten. A rule that cannot says why, for `--explain`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.dialects.base import SxOp, to_attribute
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.passes.permutations import Perm


@dataclass(frozen=True)
class Need:
    """What a planned op wants of an operand v: the x with `v' = transpose(x, perm)`, where v' is v with leading axes of
    extent 1 up to the permutation's rank (they may be left out again). Without a permutation any order will do."""

    perm: Perm | None


ANY = Need(None)
"""Any order of axes; `build` is told which."""

Emit: TypeAlias = Callable[[SxOp], SSAValue]
"""Inserts a helper op and returns its first result."""


@dataclass(frozen=True)
class Operand:
    """An operand as the plan gets it: the value, and for `ANY` the permutation that is still to be done on it."""

    value: SSAValue
    perm: Perm | None = None


@dataclass(frozen=True)
class Plan:
    """An op on other orders of axes.

    Attributes:
        needs: Per operand what it must be; None leaves it as it is.
        results: Per result the permutation r of `old = transpose(new, r)`.
        build: Makes the new op from the operands.
    """

    needs: tuple[Need | None, ...]
    results: tuple[Perm, ...]
    build: Callable[[Sequence[Operand], Emit], SxOp]


class LayoutRule(ABC):
    """What transposes do to ops of one kind; `kind` names the rule in statistics and locations."""

    kind: str = ""

    def from_operand(self, op: SxOp, index: int, perm: Perm) -> Perm | None:
        """The label that suits operand `index` being `transpose(x, perm)`."""
        return perm if index == 0 else None

    def from_result(self, op: SxOp, index: int, perm: Perm) -> Perm | None:
        """A label with which result `index` is `transpose(new, perm)`."""
        return perm

    @abstractmethod
    def plan(self, op: SxOp, label: Perm) -> Plan | str:
        """What the op becomes, or why it cannot."""

    def absorb(self, op: SxOp) -> Plan | None:
        """A plan with the results as they are, for an op that takes operands in any order at no cost."""
        return None


def remake(op: SxOp, operands: Sequence[SSAValue], **properties: Any) -> SxOp:
    """The op on other operands, as many, with some properties changed; the result types are inferred."""
    props = dict(op.properties)
    for name, value in properties.items():
        default = op.DEFAULTS.get(name)
        if type(value) is type(default) and value == default:
            props.pop(name, None)
        else:
            props[name] = to_attribute(value)
    new = type(op).create(
        operands=list(operands), result_types=list(op.result_types), properties=props, attributes=dict(op.attributes)
    )
    for result, ty in zip(new.results, new.infer(), strict=True):
        result._type = ty
    return new


def values(operands: Sequence[Operand]) -> list[SSAValue]:
    return [operand.value for operand in operands]


def vector(emit: Emit, entries: Sequence[int], dtype: Any = "int64") -> SSAValue:
    """A constant vector of axes or extents."""
    return emit(ConstantOp.dense(np.array(list(entries), dtype)))


def first_only(op: SxOp, label: Perm) -> tuple[Need | None, ...]:
    """The first operand is data, the others stay as they are."""
    return (Need(label), *[None] * (len(op.operands) - 1))


def axis_of(op: SxOp, rank: int, name: str = "axis") -> int:
    return op.attr(name) % rank if rank else 0
