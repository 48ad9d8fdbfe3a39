"""What a model says of its parts beyond their computation, as texts in the IR, and back in a model.

What is said of a value (doc string, metadata, denotations of its type and axes, names of dims that inference does not
find), of a tensor, of an attribute of a node, of a graph in one, of the devices that a node runs on: each is a message
of ONNX with nothing else in it, in Protobuf's text format. `frontend.onnx.notes` makes them. Values and tensors are
noted by name in the module (inputs and outputs in the attributes of the function's arguments and results), the rest at
the op; so what outlives passes by its name keeps what is said of it.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import TypeVar

import onnx
from google.protobuf import text_format
from google.protobuf.message import Message
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Attribute

from sardonyx.backends.onnx.metadata import DOC, LOCATION_KEY, NODE_METADATA
from sardonyx.dialects.module import get_opset
from sardonyx.errors import InvalidArgumentError, OnnxLossWarning

VALUES = "sx.values"
"""On the module: what is said of values between nodes and of values in the graphs of attributes, by name."""
TENSORS = "sx.tensors"
"""On the module: what is said of initializers, by name."""
SAID, SPARSE = "said", "sparse"
"""Of an initializer: what is said of it, and if it is sparse, how its positions are stated."""
LINEAR, BY_AXIS = "linear", "by axis"
TYPED = "sx.typed"
"""On the module: the model states the types of most values between its nodes."""
VALUE = "sx.value"
"""On an argument or a result: what is said of an input or an output."""
CONFIGURATION = "sx.configuration"
IR_VERSION = "sx.ir_version"
"""On the module: the IR version that what the model says of its parts takes, where its opset implies an older one."""
ATTRIBUTES = "sx.attributes"
"""On an op: what is said of the node's attributes, by name."""
GRAPHS = "sx.graphs"
"""On an op: name, doc string and metadata of the graphs in its attributes, by the attribute's name."""
DEVICES = "sx.devices"

METADATA_IR = 10
"""The IR version from which nodes, values and tensors have metadata."""
DEVICES_IR = 11

MessageT = TypeVar("MessageT", bound=Message)


def text_of(message: Message) -> StringAttr:
    """A message as a text of one line."""
    return StringAttr(text_format.MessageToString(message, as_one_line=True, as_utf8=True))


def message_of(kind: type[MessageT], text: Attribute | None) -> MessageT | None:
    """The message of a text; None where there is no text.

    Raises:
        InvalidArgumentError: The text is none of such a message.
    """
    if not isinstance(text, StringAttr):
        return None
    try:
        return text_format.Parse(text.data, kind())
    except text_format.ParseError as error:
        raise InvalidArgumentError(f"{text.data[:80]!r} says nothing of a {kind.__name__}: {error}") from error


def warn(message: str) -> None:
    """Say, at the line of the user's call, that something which a model declares does not come through."""
    level, frame = 1, sys._getframe(0)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("sardonyx."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, OnnxLossWarning, stacklevel=level)


class Notes:
    """What was noted of a module's model, to be put into another one.

    Args:
        module: The module.
        opset: The opset of the model that is made.
        ir_version: The IR version that goes with it.
    """

    def __init__(self, module: ModuleOp, opset: int, ir_version: int) -> None:
        self.module = module
        said = module.attributes.get(IR_VERSION)
        own = said.value.data if isinstance(said, IntegerAttr) and get_opset(module) == opset else 0
        self.ir_version = max(ir_version, own)
        self.with_metadata = self.ir_version >= METADATA_IR
        self.typed = TYPED in module.attributes
        self._values = _entries(module.attributes.get(VALUES))
        self._tensors = _entries(module.attributes.get(TENSORS))
        self._left_out = 0

    def names(self, value: str) -> bool:
        """Whether something is said of a value, or its type is stated."""
        return value in self._values

    def sparse(self, tensor: str) -> str | None:
        """How an initializer of that name states the positions of its elements, if it was sparse."""
        said = _entries(self._tensors.get(tensor)).get(SPARSE)
        return said.data if isinstance(said, StringAttr) else None

    def value(self, info: onnx.ValueInfoProto) -> onnx.ValueInfoProto:
        """Complete the declaration of a value between nodes, or in a graph of an attribute."""
        return self._complete(info, self._values.get(info.name))

    def interface(self, info: onnx.ValueInfoProto, function: func.FuncOp, what: str, index: int) -> None:
        """Complete the declaration of an input (`what` is "arg_attrs") or an output ("res_attrs")."""
        attrs = function.properties.get(what)
        if isinstance(attrs, ArrayAttr) and index < len(attrs.data):
            self._complete(info, _entries(attrs.data[index]).get(VALUE))

    def _complete(self, info: onnx.ValueInfoProto, text: Attribute | None) -> onnx.ValueInfoProto:
        said = message_of(onnx.ValueInfoProto, text)
        if said is not None:
            overlay(info.type, said.type)
            said.ClearField("type")
            self._without_metadata(said)
            info.MergeFrom(said)
        return info

    def _without_metadata(self, said: onnx.ValueInfoProto | onnx.TensorProto) -> None:
        if not self.with_metadata and said.metadata_props:
            self._left_out += 1
            del said.metadata_props[:]

    def tensor(self, tensor: onnx.TensorProto, attributes: Mapping[str, Attribute]) -> None:
        """Complete an initializer: with what was said of it, else with what the node said whose constant it is."""
        said = message_of(onnx.TensorProto, _entries(self._tensors.get(tensor.name)).get(SAID))
        if said is None:
            said = onnx.TensorProto()
            doc, props = attributes.get(DOC), attributes.get(NODE_METADATA)
            if isinstance(doc, StringAttr):
                said.doc_string = doc.data
            for key, value in sorted(_entries(props).items()):
                if isinstance(value, StringAttr):
                    said.metadata_props.add(key=key, value=value.data)
        self._without_metadata(said)
        tensor.MergeFrom(said)

    def node(self, node: onnx.NodeProto, attributes: Mapping[str, Attribute]) -> None:
        """Complete a node: its attributes and the graphs in them, and its devices."""
        if not self.with_metadata and _entries(attributes.get(NODE_METADATA)).keys() - {LOCATION_KEY}:
            self._left_out += 1
        for name, text in _entries(attributes.get(ATTRIBUTES)).items():
            attribute = next((a for a in node.attribute if a.name == name), None)
            said = message_of(onnx.AttributeProto, text)
            if attribute is None or said is None:
                continue
            if attribute.type != onnx.AttributeProto.TENSOR:
                said.ClearField("t")
            elif not self.with_metadata:
                del said.t.metadata_props[:]
            attribute.MergeFrom(said)
        graphs = _entries(attributes.get(GRAPHS))
        for attribute in node.attribute if graphs else ():
            texts = graphs.get(attribute.name)
            inner = [attribute.g] if attribute.type == onnx.AttributeProto.GRAPH else attribute.graphs
            for graph, text in zip(inner, texts.data if isinstance(texts, ArrayAttr) else ()):
                said = message_of(onnx.GraphProto, text)
                if said is not None:
                    graph.MergeFrom(said)
        devices = message_of(onnx.NodeProto, attributes.get(DEVICES))
        if devices is None:
            return
        values = {*node.input, *node.output}
        if self.ir_version < DEVICES_IR:
            warn(f"node '{node.name}': IR version {self.ir_version} has no devices of nodes; they are left out")
        elif all(s.tensor_name in values for c in devices.device_configurations for s in c.sharding_spec):
            node.device_configurations.extend(devices.device_configurations)
        else:
            warn(f"node '{node.name}': what its devices share is not among its values any more; they are left out")

    def finish(self, proto: onnx.ModelProto) -> None:
        """Complete the model, and say what an older IR version cannot state."""
        said = message_of(onnx.ModelProto, self.module.attributes.get(CONFIGURATION))
        if said is not None and self.ir_version >= DEVICES_IR:
            proto.configuration.extend(said.configuration)
        elif said is not None:
            warn(f"IR version {self.ir_version} has no configurations of devices; the model's are left out")
        if self._left_out:
            warn(
                f"metadata of {self._left_out} nodes, values and tensors is left out: IR version {self.ir_version} has "
                f"none (version {METADATA_IR} has)"
            )


def overlay(target: onnx.TypeProto, said: onnx.TypeProto) -> None:
    """Put denotations into a type, and names of dims where it has none; what does not correspond stays as it is."""
    if said.denotation:
        target.denotation = said.denotation
    kind = target.WhichOneof("value")
    if kind is None or kind != said.WhichOneof("value"):
        return
    if kind in ("sequence_type", "optional_type"):
        overlay(getattr(target, kind).elem_type, getattr(said, kind).elem_type)
    elif kind == "map_type":
        overlay(target.map_type.value_type, said.map_type.value_type)
    elif kind == "tensor_type":
        ours, theirs = target.tensor_type.shape.dim, said.tensor_type.shape.dim
        if said.tensor_type.HasField("shape") and not target.tensor_type.HasField("shape"):
            target.tensor_type.shape.CopyFrom(said.tensor_type.shape)
        elif len(ours) == len(theirs):
            for dim, other in zip(ours, theirs):
                if other.denotation:
                    dim.denotation = other.denotation
                if dim.WhichOneof("value") is None and other.dim_param:
                    dim.dim_param = other.dim_param


def _entries(attr: Attribute | None) -> Mapping[str, Attribute]:
    return attr.data if isinstance(attr, DictionaryAttr) else {}


MARK = UnitAttr()
