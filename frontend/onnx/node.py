"""What an adapter sees of an ONNX node: its inputs as values, its attributes, and how to add ops for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import defs
from xdsl.dialects.builtin import LocationAttr, UnrankedTensorType
from xdsl.ir import SSAValue

from sardonyx.backends.onnx.tensors import array_from_proto
from sardonyx.dialects.attributes import dims_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import DType, int64
from sardonyx.dialects.sx import BY_NAME
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.errors import InvalidArgumentError, UnsupportedError

if TYPE_CHECKING:
    from sardonyx.frontend.onnx.importer import Importer, Scope

Kind = onnx.AttributeProto


class NodeContext:
    """One node that is being imported.

    Attributes:
        node: The node.
        opset: The imported version of its domain.
        schema: Its schema at that version; None for an operator that ONNX does not define.
        inputs: Its inputs, None where one is left out.
        scope: The names that it sees.
        expanded: Whether other nodes stand in its place, which have names of their own.
        asked: Which inputs (by number) and attributes (by name) were asked for.
    """

    expanded: bool = False

    def __init__(
        self,
        importer: Importer,
        node: onnx.NodeProto,
        opset: int,
        schema: defs.OpSchema | None,
        inputs: list[SSAValue | None],
        location: LocationAttr,
        scope: Scope,
    ) -> None:
        self.importer = importer
        self.node = node
        self.opset = opset
        self.schema = schema
        self.inputs = inputs
        self.location = location
        self.scope = scope
        self.asked: set[int | str] = set()
        self._attributes = {a.name: a for a in node.attribute}

    # ---- reading
    def input(self, index: int) -> SSAValue | None:
        self.asked.add(index)
        return self.inputs[index] if index < len(self.inputs) else None

    def required(self, index: int) -> SSAValue:
        value = self.input(index)
        if value is None:
            raise InvalidArgumentError(f"its input {index} is missing")
        return value

    def has(self, name: str) -> bool:
        self.asked.add(name)
        return name in self._attributes

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute as a Python value; else the default, else what the schema says."""
        self.asked.add(name)
        proto = self._attributes.get(name)
        if proto is None and default is None and self.schema is not None and name in self.schema.attributes:
            proto = self.schema.attributes[name].default_value
            if not proto.type:
                return None
        return default if proto is None else attribute_value(proto)

    def stated(self, name: str) -> onnx.AttributeProto | None:
        """The attribute as the node states it."""
        return self._attributes.get(name)

    def attribute_names(self) -> list[str]:
        """All attributes that the node has or whose default its schema states."""
        names = list(self._attributes)
        if self.schema is not None:
            names.extend(n for n, a in self.schema.attributes.items() if a.default_value.type and n not in names)
        return names

    def ignores(self, *what: int | str) -> None:
        """These inputs and attributes change nothing about the result: they count as asked for."""
        self.asked.update(what)

    def unread(self) -> str | None:
        """What the node states and nobody asked for, an input or an attribute, in words; else None."""
        for index, value in enumerate(self.inputs):
            if value is not None and index not in self.asked:
                return f"its input {index} is not supported"
        name = next((a for a in self._attributes if a not in self.asked), None)
        return None if name is None else f"its attribute '{name}' is not supported"

    def wanted(self, index: int) -> bool:
        """Whether the node names that output."""
        return index < len(self.node.output) and bool(self.node.output[index])

    def unsupported(self, message: str) -> UnsupportedError:
        return UnsupportedError(f"{self.node.op_type} of opset {self.opset}: {message}")

    # ---- building
    def op(self, name: str, *slots: SSAValue | None | Sequence[SSAValue], **properties: Any) -> SxOp:
        """Add an op by the name that follows `sx.`; it bears the node's location."""
        return self.importer.add(BY_NAME[f"sx.{name}"].make(*slots, location=self.location, **properties))

    def __call__(self, name: str, *slots: SSAValue | None | Sequence[SSAValue], **properties: Any) -> SSAValue:
        """The first result of a new op."""
        return self.op(name, *slots, **properties).results[0]

    def constant(self, values: Any, dtype: DType = int64) -> SSAValue:
        """A constant that the node implies; None stands for an attribute that is missing."""
        if values is None:
            raise InvalidArgumentError("one of its attributes is missing")
        with np.errstate(all="ignore"):
            array = np.asarray(values, np.float64 if dtype.is_float else None).astype(dtype.numpy)
        return self.importer.add(ConstantOp.of(array, self.importer.store)).results[0]


def attribute_value(proto: onnx.AttributeProto) -> Any:
    """The Python value of an attribute: int, float, str, array, or a tuple of these; graphs as they are."""
    kind = proto.type
    if kind == Kind.INT:
        return proto.i
    if kind == Kind.FLOAT:
        return proto.f
    if kind == Kind.STRING:
        return _text(proto.s, proto)
    if kind == Kind.INTS:
        return tuple(proto.ints)
    if kind == Kind.FLOATS:
        return tuple(proto.floats)
    if kind == Kind.STRINGS:
        return tuple(_text(s, proto) for s in proto.strings)
    if kind == Kind.TENSOR:
        return array_from_proto(proto.t, f"attribute '{proto.name}'")
    if kind == Kind.GRAPH:
        return proto.g
    if kind == Kind.TYPE_PROTO:
        return proto.tp
    raise UnsupportedError(f"its attribute '{proto.name}' is of a kind that is not supported")


def _text(raw: bytes, proto: onnx.AttributeProto) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"its attribute '{proto.name}' is no valid UTF-8") from None


def rank_of(value: SSAValue) -> int | None:
    """The rank, None where it is unknown."""
    return None if isinstance(value.type, UnrankedTensorType) else len(dims_of(value))


def constant_item(value: SSAValue | None) -> object:
    """The element of a constant scalar; None where the value is no such constant."""
    if value is None or not isinstance(value.owner, ConstantOp):
        return None
    array = value.owner.array()
    return array.item() if array.size == 1 else None
