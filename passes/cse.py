"""`cse`."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation
from xdsl.traits import IsolatedFromAbove

from sardonyx.dialects.base import SxOp, refine, to_attribute
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.values import forget
from sardonyx.errors import InferenceError
from sardonyx.passes import provenance
from sardonyx.passes.base import EXACT, PassRun, Promise, SxPass
from sardonyx.passes.constants import content_key
from sardonyx.passes.effects import is_deterministic
from sardonyx.passes.propagate import propagate, sync_functions

ORDER_MATTERS = frozenset(("sx.max", "sx.min"))
"""Commutative in mathematics, but which of -0.0 and 0.0 comes out may depend on the order."""


@dataclass(frozen=True)
class CsePass(SxPass):
    """Compute equal things once.

    Cases:
    1. Two ops of the same kind, operands and properties: the second's readers read the first's results. A property
       that has its default is equal to one that is absent.
    2. Constants are equal if dtype, shape and bits are: -0.0 is not 0.0, f32 1.0 is not f64 1.0, NaN equals the same
       NaN. Weights are compared by key.
    3. The two operands of a commutative op may be swapped (not of max and min: signed zeros).
    4. An op inside a region may read an equal one outside, never the other way round; sibling regions share nothing.
    5. The result's type and location tell what those of both told.
    6. Not: ops that are random, have effects or hold regions.

    Requires: nothing. Ensures: no two ops of cases 1 to 4 are left. Linear in the number of ops.
    Promise: exact.
    """

    name = "cse"
    PROMISE: ClassVar[Promise] = EXACT

    def run(self, module: ModuleOp, run: PassRun) -> None:
        merged = _Merger(run)
        for region in module.regions:
            for block in region.blocks:
                merged.block(block, {}, [])
        if run.changed:
            sync_functions(module)


class _Merger:
    """Walks blocks with the ops known so far; scopes are undone on the way out."""

    def __init__(self, run: PassRun) -> None:
        self.run = run
        self.nearest: dict[Hashable, Operation] = {}
        """The first op of a kind on some operands, for near misses."""

    def block(self, block: Block, known: dict[Hashable, Operation], undo: list[Hashable]) -> None:
        for op in list(block.ops):
            for region in op.regions:
                isolated = op.has_trait(IsolatedFromAbove, value_if_unregistered=True)
                scope = {} if isolated else known
                for inner in region.blocks:
                    mine: list[Hashable] = []
                    self.block(inner, scope, mine)
                    for key in mine:
                        del scope[key]
            if op.regions or not op.results or not is_deterministic(op):
                if self.run.keep_declines and op.results:
                    self.run.decline("merge", op, why_never(op))
                continue
            key = op_key(op)
            first = known.get(key)
            if first is None:
                known[key] = op
                undo.append(key)
            elif self.run.allows("merge", op):
                self.merge(first, op)
                continue
            if self.run.keep_declines and op.operands:
                self.near_miss(op)

    def near_miss(self, op: Operation) -> None:
        """Say what distinguishes the op from one before it on the same operands."""
        operands = tuple(sorted(id(o) for o in op.operands))
        other = self.nearest.setdefault((op.name, operands), op)
        if other is not op and other.parent is not None:
            self.run.decline("merge", op, difference(other, op))

    def merge(self, first: Operation, second: Operation) -> None:
        """Let the readers of the second op read the first."""
        try:
            types = [refine(a.type, b.type, first) for a, b in zip(first.results, second.results, strict=True)]
        except InferenceError:
            self.run.decline("merge", second, "an equal op states a type that contradicts this one's")
            return
        name, location = second.name, second.location
        retyped: list[Operation] = []
        for ours, theirs, ty in zip(first.results, second.results, types, strict=True):
            if ours.type != ty:
                ours._type = ty
                forget(ours)
                retyped.extend(use.operation for use in ours.uses)
            if theirs.type != ty:
                retyped.extend(use.operation for use in theirs.uses)
            theirs.replace_all_uses_with(ours)
        first.location = provenance.stamp(provenance.merge(first.location, location), f"{self.run.pass_name}:merge")
        second.detach()
        second.erase()
        propagate(retyped)
        self.run.rewritten("merge", name, location, [first])
        self.run.statistics.count("merged")


def why_never(op: Operation) -> str:
    """Why an op takes no part."""
    return "it holds regions" if op.regions else "it has effects or draws random numbers"


def difference(first: Operation, second: Operation) -> str:
    """What distinguishes two ops of a kind on the same operands."""
    if list(first.operands) != list(second.operands):
        return f"another {first.name} reads the same operands in another order"
    theirs, ours = dict(first.properties), dict(second.properties)
    names = sorted(n for n in {*theirs, *ours} if theirs.get(n) != ours.get(n))
    if names:
        shown = ", ".join(f"{n} is {ours.get(n, 'absent')}, there {theirs.get(n, 'absent')}" for n in names)
        return f"an equal {first.name} but for its attributes: {shown}"
    return f"another {first.name} on the same operands stands where this one's block cannot read it"


def op_key(op: Operation) -> Hashable:
    """Equal for ops that compute the same, wherever their operands are the same values."""
    if isinstance(op, ConstantOp):
        return (op.name, op.output.type, content_key(op))
    operands = [id(o) for o in op.operands]
    properties: dict[str, Attribute] = dict(op.properties)
    if isinstance(op, SxOp):
        if op.COMMUTATIVE and len(operands) == 2 and op.name not in ORDER_MATTERS:
            operands.sort()
        for name, default in op.DEFAULTS.items():
            if name in properties and default is not None and properties[name] == to_attribute(default):
                del properties[name]
        types: tuple[Attribute, ...] = ()  # they follow from the rest
        if len(op.results) != 1:
            types = (to_attribute(len(op.results)),)
    else:
        types = tuple(r.type for r in op.results)
    return (
        op.name,
        tuple(operands),
        tuple(sorted(properties.items(), key=lambda item: item[0])),
        tuple(sorted((n, a) for n, a in op.attributes.items() if not n.startswith("sx."))),  # those are notes
        types,
    )
