"""A model with its weights inside as a stream of bytes, so that no more than one weight is copied at a time.

The bytes are those that Protobuf's deterministic serialisation of the whole model gives: fields in the order of their
numbers (https://protobuf.dev/programming-guides/encoding/).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import onnx
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from sardonyx.backends.onnx.messages import copy_field
from sardonyx.backends.onnx.skeleton import Content, Skeleton
from sardonyx.backends.onnx.tensors import fill, raw_view, stored_size
from sardonyx.backends.onnx.wire import key

GRAPH, INITIALIZER, RAW_DATA = 7, 5, 9
"""Numbers of fields: of ModelProto, GraphProto and TensorProto."""
CHUNK = 1 << 24


def can_stream(skeleton: Skeleton) -> bool:
    """Whether the stream has all of the model: fields that ONNX does not know are not in it."""
    return not len(UnknownFieldSet(skeleton.proto)) and not len(UnknownFieldSet(skeleton.proto.graph))


def write_inside(skeleton: Skeleton, out: BinaryIO) -> None:
    """Write the model with its weights inside."""
    graph = skeleton.proto.graph
    before, after = _split(skeleton.proto, GRAPH)
    first, last = _split(graph, INITIALIZER)
    sizes = [_tensor_size(skeleton, tensor) for tensor in graph.initializer]
    total = len(first) + len(last) + sum(len(key(INITIALIZER, size)) + size for size in sizes)
    out.write(before + key(GRAPH, total) + first)
    for tensor, size in zip(graph.initializer, sizes, strict=True):
        out.write(key(INITIALIZER, size))
        for piece in _tensor(skeleton, tensor):
            out.write(piece)
    out.write(last + after)


def _tensor_size(skeleton: Skeleton, tensor: onnx.TensorProto) -> int:
    content = skeleton.contents.get(tensor.name)
    if content is None:
        return tensor.ByteSize()
    if content.dtype.kind in "sO":
        return _filled(tensor, content).ByteSize()
    size = stored_size(content)
    return tensor.ByteSize() + len(key(RAW_DATA, size)) + size


def _tensor(skeleton: Skeleton, tensor: onnx.TensorProto) -> Iterator[bytes | memoryview]:
    content = skeleton.contents.get(tensor.name)
    if content is None:
        yield tensor.SerializeToString(deterministic=True)
        return
    if content.dtype.kind in "sO":
        yield _filled(tensor, content).SerializeToString(deterministic=True)
        return
    before, after = _split(tensor, RAW_DATA)
    view = raw_view(content)
    yield before + key(RAW_DATA, len(view))
    for start in range(0, len(view), CHUNK):
        yield view[start : start + CHUNK]
    yield after


def _filled(tensor: onnx.TensorProto, content: Content) -> onnx.TensorProto:
    """A tensor of strings, which have no bytes of their own."""
    whole = onnx.TensorProto()
    whole.CopyFrom(tensor)
    fill(whole, content)
    return whole


def _split(message: Message, number: int) -> tuple[bytes, bytes]:
    """The fields before and behind the one of that number, serialised."""
    parts = type(message)(), type(message)()
    for field, value in message.ListFields():
        if field.number != number:
            copy_field(field, value, parts[field.number > number])
    before, after = (part.SerializeToString(deterministic=True) for part in parts)
    return before, after
