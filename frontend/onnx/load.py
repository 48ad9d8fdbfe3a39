"""Reads ONNX models: from a file, from bytes or from a ModelProto; refuses what is damaged.

Initializers that lie in files stay there (`LoadedModel.files`); everything else that is external (a constant of a
node, an initializer of a branch) is read, since it is small in practice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message

from sardonyx.backends.onnx.texts import is_text
from sardonyx.dialects.weights import FileSlice
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.external import is_external, locate
from sardonyx.frontend.onnx.texts import parse_text

MAX_FILE = 2**31 - 1
"""Protobuf reads no larger message."""


@dataclass
class LoadedModel:
    """A model that was read: its proto, and where the contents of its external initializers lie, by name."""

    proto: onnx.ModelProto
    files: dict[str, FileSlice] = field(default_factory=dict)


def load_file(path: Path) -> LoadedModel:
    """Read a model file.

    Raises:
        InvalidArgumentError: There is no such file, or it is no ONNX model, or its external data is not in order.
    """
    try:
        size = os.stat(path).st_size
        if size > MAX_FILE:
            raise InvalidArgumentError(f"{path} has {size} bytes, but a model file has fewer than 2 GiB")
        data = path.read_bytes()
    except OSError as error:
        raise InvalidArgumentError(f"cannot read {path}: {error.strerror or error}") from error
    if is_text(path):
        return load_proto(parse_text(data, path), path.parent, str(path))
    return load_bytes(data, str(path), path.parent)


def load_bytes(data: bytes, name: str = "the model", folder: Path | None = None) -> LoadedModel:
    """Read a serialised model; `folder` is where its external data lies."""
    if not data:
        raise InvalidArgumentError(f"{name} is empty")
    proto = onnx.ModelProto()
    try:
        proto.ParseFromString(data)
    except DecodeError as error:
        raise InvalidArgumentError(f"{name} is no ONNX model, or it is damaged: {error}") from error
    return load_proto(proto, folder, name)


def load_proto(proto: onnx.ModelProto, folder: Path | None = None, name: str = "the model") -> LoadedModel:
    """Take a ModelProto (which is not changed, unless it has external data outside its initializers)."""
    if not proto.HasField("graph"):
        raise InvalidArgumentError(f"{name} has no graph: it is no ONNX model, or it is damaged")
    _check_texts(proto, name)
    loaded = LoadedModel(proto)
    for tensor in proto.graph.initializer:
        if is_external(tensor):
            loaded.files[tensor.name] = locate(tensor, folder, f"initializer '{tensor.name}'")
    for tensor in list(_tensors(proto)):
        if is_external(tensor):
            _read(tensor, folder)
    return loaded


def _check_texts(proto: onnx.ModelProto, name: str) -> None:
    """Refuse texts that are no valid UTF-8: Protobuf hands them out as bytes."""
    stack: list[Message] = [proto]
    while stack:
        for what, value in stack.pop().ListFields():
            if what.type == FieldDescriptor.TYPE_STRING:
                for text in (value,) if isinstance(value, str | bytes) else value:
                    if not isinstance(text, str):
                        raise InvalidArgumentError(f"{name} is damaged: {bytes(text[:40])!r} is no valid UTF-8")
            elif what.type == FieldDescriptor.TYPE_MESSAGE:
                stack.extend((value,) if isinstance(value, Message) else value)


def _read(tensor: onnx.TensorProto, folder: Path | None) -> None:
    where = locate(tensor, folder, f"tensor '{tensor.name}'")
    with open(where.path, "rb") as file:
        file.seek(where.offset)
        tensor.raw_data = file.read(where.length)
    del tensor.external_data[:]
    tensor.ClearField("data_location")


def _tensors(proto: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """The tensors in attributes, and the initializers of branches, bodies and functions."""
    stack: list[onnx.GraphProto | onnx.FunctionProto] = [proto.graph, *proto.functions]
    outermost = True
    while stack:
        graph = stack.pop(0) if outermost else stack.pop()
        if isinstance(graph, onnx.GraphProto) and not outermost:
            yield from graph.initializer
        outermost = False
        for node in graph.node:
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.TENSOR:
                    yield attribute.t
                elif attribute.type == onnx.AttributeProto.TENSORS:
                    yield from attribute.tensors
                elif attribute.type == onnx.AttributeProto.GRAPH:
                    stack.append(attribute.g)
                elif attribute.type == onnx.AttributeProto.GRAPHS:
                    stack.extend(attribute.graphs)
