"""Which ranks of a graph are not known before a run; `ranks.py` compiles such graphs."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp, UnrankedTensorType
from xdsl.ir import Operation, SSAValue

from sardonyx.dialects import locations
from sardonyx.dialects.attributes import dims_of
from sardonyx.dialects.module import input_names, main_function

_COUNTS = {"sx.slice": ("starts", 0), "sx.pad": ("pads", 0), "sx.gather_nd": ("indices", -1)}
"""Ops that take a number for each of some axes: the operand, and the axis of it that says of how many."""


@dataclass(frozen=True)
class OpenRank:
    """A value whose rank is not known before a run: the input's name, or the op that makes it, and where it stands."""

    what: str
    location: str | None


def open_ranks(module: ModuleOp) -> list[OpenRank]:
    """The inputs and results whose ranks are not known, and the ops that slice, pad or gather along who knows how many
    axes."""
    out = [
        OpenRank(f"input '{name}'", None)
        for name, argument in zip(input_names(module), main_function(module).body.block.args, strict=True)
        if is_open(argument)
    ]
    for op in main_function(module).body.walk():
        if any(is_open(result) for result in op.results) or _counts_unknown(op):
            out.append(OpenRank(op.name, locations.describe(op.location)))
    return out


def _counts_unknown(op: Operation) -> bool:
    """Whether the op takes a vector of a number for each of some axes, and nobody knows of how many. Native code is
    made for a known number of them, as it is for known ranks."""
    name, axis = _COUNTS.get(op.name, ("", 0))
    value = getattr(op, name) if name else None
    return value is not None and not is_open(value) and dims_of(value)[axis].static_value is None


def is_open(value: SSAValue) -> bool:
    """Whether a value is a tensor of a rank that is not known."""
    return isinstance(value.type, UnrankedTensorType)
