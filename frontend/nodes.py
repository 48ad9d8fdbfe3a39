"""Nodes of a graph as users see them: an input, a constant or an op, with named outputs.

A node is a view: it is good until the graph is edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.ir import BlockArgument, Operation, SSAValue

from sardonyx.dialects import locations
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.naming import Names, operator_name
from sardonyx.frontend.spec import TensorSpec

INPUT = "Input"
"""The operator of a node that is an input of the graph."""


@dataclass(frozen=True)
class Output:
    """A value that a node makes."""

    name: str
    value: SSAValue = field(repr=False)

    def spec(self) -> TensorSpec:
        """Its name, dtype and dims."""
        return TensorSpec.of_type(self.name, self.value.type)


@dataclass(frozen=True)
class Node:
    """An input, a constant or an op."""

    name: str
    op: Operation | None = field(repr=False)
    """The op in the IR; None for an input."""
    values: Sequence[SSAValue] = field(repr=False)
    names: Names = field(repr=False)

    @property
    def operator(self) -> str:
        """ONNX's name of what it computes; `Input` for an input."""
        return INPUT if self.op is None else operator_name(self.op)

    @property
    def is_input(self) -> bool:
        return self.op is None

    @property
    def is_constant(self) -> bool:
        return isinstance(self.op, ConstantOp)

    @property
    def location(self) -> str | None:
        """Where it comes from: the user's file and line, or the node of an imported model."""
        if self.op is None:
            argument = self.values[0]
            return locations.describe(argument.location) if isinstance(argument, BlockArgument) else None
        return locations.describe(self.op.location)

    @property
    def attributes(self) -> dict[str, Any]:
        """The properties that are set."""
        return self.op.python_properties() if isinstance(self.op, SxOp) and not self.is_constant else {}

    def outputs(self) -> list[Output]:
        return [Output(self.names.values[value], value) for value in self.values]

    def output(self, index: int = 0) -> Output:
        """An output by position.

        Raises:
            InvalidArgumentError: There is none.
        """
        if not 0 <= index < len(self.values):
            raise InvalidArgumentError(f"the node '{self.name}' has {len(self.values)} outputs, not one number {index}")
        value = self.values[index]
        return Output(self.names.values[value], value)

    def inputs(self) -> list[str | None]:
        """The names of the values that it reads, None for an optional one that is absent."""
        if self.op is None:
            return []
        slots = self.op.slots if isinstance(self.op, SxOp) else tuple(self.op.operands)
        return [None if value is None else self.names.values.get(value, "?") for value in slots]
