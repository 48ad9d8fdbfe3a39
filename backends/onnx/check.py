"""Holds a written model against ONNX's own tools: its checker and its strict shape inference. They only check."""

from __future__ import annotations

from collections.abc import Mapping

import onnx
from google.protobuf.message import Message
from onnx import checker, shape_inference

from sardonyx.backends.onnx.messages import copy_field
from sardonyx.backends.onnx.skeleton import Content
from sardonyx.backends.onnx.tensors import fill
from sardonyx.dialects.weights import FileSlice, Weight
from sardonyx.errors import SardonyxError

MAX_FOLLOWED = 1 << 16
"""Longer vectors are no shapes: what they hold is not followed. Longer lists in attributes are checked by type."""
MAX_INSIDE = 4096
"""Initializers with more bytes, and those in files, are checked by type: their contents say nothing about the graph."""


class ModelCheckError(SardonyxError):
    """ONNX's tools refuse a model that Sardonyx made: a fault of Sardonyx."""


def _in_file(content: Content) -> bool:
    return isinstance(content, Weight) and isinstance(content.content, FileSlice)


def check_model(proto: onnx.ModelProto, contents: Mapping[str, Content]) -> None:
    """Refuse a model that breaks ONNX's rules.

    Args:
        proto: The model, whose initializers have no contents yet.
        contents: What they hold. In the checked copy small ones are filled in, and large ones are inputs, so that a
            model of any size is checked without its weights.

    Raises:
        ModelCheckError: The checker or strict shape inference found a fault; the text is theirs.
    """
    copy = _abridged(proto)
    inputs = {v.name for v in copy.graph.input}
    for tensor in proto.graph.initializer:
        content = contents.get(tensor.name)
        if content is None:
            copy.graph.initializer.append(tensor)
        elif content.nbytes <= MAX_INSIDE and not _in_file(content):
            filled = copy.graph.initializer.add()
            filled.CopyFrom(tensor)
            fill(filled, content)
        elif tensor.name not in inputs:
            copy.graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    # ONNX's types of sparse initializers fit no operator's inputs; who runs them makes them dense.
    del copy.graph.sparse_initializer[:]
    for sparse in proto.graph.sparse_initializer:
        known = onnx.helper.make_tensor_value_info(sparse.values.name, sparse.values.data_type, sparse.dims)
        copy.graph.input.append(known)
    # The checker wants a shape of each input and output, though ONNX's text does not.
    tensors = [v for v in (*copy.graph.input, *copy.graph.output) if v.type.HasField("tensor_type")]
    shapeless = [v for v in tensors if not v.type.tensor_type.HasField("shape")]
    for value in shapeless:
        value.type.tensor_type.shape.SetInParent()
    try:
        checker.check_model(copy)
        for value in shapeless:
            value.type.tensor_type.ClearField("shape")
        # ONNX follows the contents of vectors element by element, however long they are.
        short = all(_is_short(v.type.tensor_type) for v in (*tensors, *copy.graph.value_info))
        shape_inference.infer_shapes(copy, check_type=True, strict_mode=True, data_prop=short)
    except (checker.ValidationError, shape_inference.InferenceError, RuntimeError, MemoryError) as error:
        text = " ".join(str(error).split())
        raise ModelCheckError(f"the exported model fails ONNX's check: {text}") from error


def _abridged(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A copy without initializers, and with the start only of long lists in attributes (the tables of trees)."""
    copy = onnx.ModelProto()
    _copy_fields(proto, copy, "graph")
    _copy_fields(proto.graph, copy.graph, "node", "initializer")
    for node in proto.graph.node:
        target = copy.graph.node.add()
        if all(len(a.ints) + len(a.floats) + len(a.strings) <= MAX_FOLLOWED for a in node.attribute):
            target.CopyFrom(node)
            continue
        _copy_fields(node, target, "attribute")
        for attribute in node.attribute:
            made = target.attribute.add()
            _copy_fields(attribute, made, "ints", "floats", "strings")
            for name in ("ints", "floats", "strings"):
                getattr(made, name).extend(getattr(attribute, name)[:MAX_FOLLOWED])
    return copy


def _copy_fields(source: Message, target: Message, *without: str) -> None:
    for field, value in source.ListFields():
        if field.name not in without:
            copy_field(field, value, target)


def _is_short(ty: onnx.TypeProto.Tensor) -> bool:
    """Whether a tensor is no vector of more elements than shapes and indices have."""
    dims = ty.shape.dim
    return len(dims) != 1 or dims[0].dim_value <= MAX_FOLLOWED
