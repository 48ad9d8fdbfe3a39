"""Ops that are lowered as several others: `@expands(Op)` says which. It happens on a copy of the graph, when it is
lowered, so that what an op is made of is fused like any other op.

An expansion is called with a `Builder` and the op and returns a value for each result. What it makes bears the op's
location, and a failure names the op that the user knows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp, UnrankedTensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from sardonyx.backends.llvm.lowering.plan import Plan
from sardonyx.backends.llvm.registries import LOWERINGS
from sardonyx.dialects import locations
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.sx import BY_NAME
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.weights import WeightStore
from sardonyx.errors import UnsupportedError

Array = np.ndarray[Any, Any]
Expansion = Callable[["Builder", Any], Sequence[SSAValue]]
EXPANSIONS: dict[type[Operation], Expansion] = {}


def expands(*ops: type[SxOp]) -> Callable[[Expansion], Expansion]:
    """Register what these ops are lowered as."""

    def register(expansion: Expansion) -> Expansion:
        for op in ops:
            EXPANSIONS[op] = expansion
            LOWERINGS[op] = is_expanded  # so that it counts among what has a native form
        return expansion

    return register


def is_expanded(plan: Plan, op: Operation) -> None:
    raise ValueError(f"{op.name} is to be expanded before the graph is lowered")


class Builder:
    """Puts ops in front of the one that is expanded."""

    def __init__(self, op: Operation) -> None:
        self._op = op
        self.made: list[Operation] = []

    def op(self, cls: type[Any], *slots: Any, **properties: Any) -> Any:
        """A new op, with its result types inferred."""
        return self._insert(cls.make(*slots, location=self._op.location, **properties))

    def add(self, cls: type[Any], *slots: Any, **properties: Any) -> SSAValue:
        """The only result of a new op."""
        return self.op(cls, *slots, **properties).results[0]

    def by_name(self, name: str, *slots: Any, **properties: Any) -> SSAValue:
        """The first result of a new op of the sx dialect."""
        return self.add(BY_NAME[f"sx.{name}"], *slots, **properties)

    def constant_of(self, values: Any, dtype: DType) -> SSAValue:
        return self.constant(np.asarray(values, dtype.numpy))

    def constant(self, array: Array) -> SSAValue:
        return self._insert(ConstantOp.of(array, WeightStore())).results[0]

    def _insert(self, op: Operation) -> Operation:
        block = self._op.parent
        if not isinstance(block, Block):
            raise ValueError(f"{self._op.name} stands in no block")
        op.location = self._op.location
        block.insert_op_before(op, self._op)
        self.made.append(op)
        return op


def known(value: SSAValue | None) -> Array | None:
    """The contents of a constant; None where the value is none."""
    return value.owner.array() if value is not None and isinstance(value.owner, ConstantOp) else None


def _check_ranks(op: Operation, origins: dict[Operation, Operation]) -> None:
    if any(isinstance(v.type, UnrankedTensorType) for v in (*op.operands, *op.results)):
        error = UnsupportedError(
            "the rank of a tensor is not known before the run",
            location=locations.describe(op.location),
            op=op.name,
        )
        error.operation = origins[op]
        raise error


def expand(module: ModuleOp) -> tuple[ModuleOp, dict[Operation, Operation]]:
    """The graph with expanded ops, and which op of `module` each op of it stands for; the module itself where there is
    nothing to expand."""
    if not any(type(op) in EXPANSIONS for op in module.walk()):
        return module, {}
    copy = module.clone()
    origins: dict[Operation, Operation] = {}
    for mine, theirs in zip(module.walk(), copy.walk(), strict=True):
        theirs.location = mine.location
        origins[theirs] = mine
    pending = [op for op in copy.walk() if type(op) in EXPANSIONS]
    while pending:
        op = pending.pop()
        _check_ranks(op, origins)
        builder = Builder(op)
        try:
            results = list(EXPANSIONS[type(op)](builder, op))
        except UnsupportedError as error:
            error.operation = origins[op]
            raise
        for made in builder.made:
            origins[made] = origins[op]
            if type(made) in EXPANSIONS:
                pending.append(made)
        Rewriter.replace_op(op, [], results)
    return copy, origins
