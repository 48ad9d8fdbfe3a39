"""Protobuf messages of ONNX: copied field by field, and the nodes of a graph with those of the graphs in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message


def copy_field(field: FieldDescriptor, value: Any, target: Message) -> None:
    """Give a message a field that `ListFields` gave of another."""
    if field.is_repeated:
        getattr(target, field.name).extend(value)
    elif isinstance(value, Message):
        getattr(target, field.name).CopyFrom(value)
    else:
        setattr(target, field.name, value)


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph and of the graphs in their attributes."""
    stack = [graph]
    while stack:
        for node in stack.pop().node:
            yield node
            for attribute in node.attribute:
                if attribute.type == onnx.AttributeProto.GRAPH:
                    stack.append(attribute.g)
                stack.extend(attribute.graphs)
