"""Declared types and dims of ONNX as those of the IR."""

from __future__ import annotations

import re

import onnx
from xdsl.ir import Attribute

from sardonyx.backends.onnx.tensors import dtype_from_onnx
from sardonyx.dialects.attributes import ANONYMOUS, dtype_of, fresh_dim, tensor_type, unranked_type
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.types import (
    MapType,
    OptionalType,
    SequenceType,
    UnknownType,
    describe_type,
    innermost,
    is_tensor,
    stored,
)
from sardonyx.errors import InvalidArgumentError, UnsupportedError

_HYPHEN = re.compile(r"\w-\w")


MAX_DEPTH = 8
"""How deep the types of sequences and optionals may be nested."""


def value_type(info: onnx.ValueInfoProto, what: str = "input") -> Attribute:
    """The type of a declared value; a tensor without a shape has no rank.

    Raises:
        UnsupportedError: It is a sparse tensor, or of an element type that is not supported.
        InvalidArgumentError: It states no type.
    """
    return type_of(info.type, f"{what} '{info.name}'")


def type_of(proto: onnx.TypeProto, where: str, depth: int = 0) -> Attribute:
    """The type that a TypeProto states (see `value_type`). Dims of elements that have no name may differ."""
    kind = proto.WhichOneof("value")
    if kind is None:
        raise InvalidArgumentError(f"{where} states no type")
    if depth > MAX_DEPTH:
        raise UnsupportedError(f"{where} has a type that is nested more than {MAX_DEPTH} deep")
    if kind == "sequence_type":
        return SequenceType(type_of(proto.sequence_type.elem_type, where, depth + 1))
    if kind == "optional_type":
        return OptionalType(type_of(proto.optional_type.elem_type, where, depth + 1))
    if kind == "map_type":
        value = type_of(proto.map_type.value_type, where, depth + 1)
        if not is_tensor(value):
            raise UnsupportedError(f"{where} is a map to other things than tensors")
        return MapType(dtype_from_onnx(proto.map_type.key_type, where).ir, tensor_type(dtype_of(value), []))
    if kind != "tensor_type":
        raise UnsupportedError(f"{where} is a {kind.removesuffix('_type')}, which is not supported yet")
    dtype = dtype_from_onnx(proto.tensor_type.elem_type, where)
    if not proto.tensor_type.HasField("shape"):
        return unranked_type(dtype)
    dims = [dim_of(d) for d in proto.tensor_type.shape.dim]
    if depth:
        return stored(unranked_type(dtype), dims)
    return tensor_type(dtype, [d or fresh_dim() for d in dims])


def stated_kind(proto: onnx.TypeProto) -> str | None:
    """The kind and dtype of a declared type, as `describe_type` writes them; None for one that is not stated."""
    kind = proto.WhichOneof("value")
    if kind in ("sequence_type", "optional_type"):
        inner = stated_kind(getattr(proto, kind).elem_type)
        return None if inner is None else f"{'seq' if kind == 'sequence_type' else 'optional'}({inner})"
    if kind == "map_type":
        inner = stated_kind(proto.map_type.value_type)
        return None if inner is None else f"map({dtype_from_onnx(proto.map_type.key_type, 'a declared map')}, {inner})"
    if kind != "tensor_type" or not proto.tensor_type.elem_type:
        return None
    return str(dtype_from_onnx(proto.tensor_type.elem_type, "a declared value"))


def contradicts(stated: str | None, ty: Attribute) -> bool:
    """Whether a declared kind and dtype are not those of a type."""
    return stated is not None and not isinstance(innermost(ty), UnknownType) and stated != describe_type(ty)


def declared_types(graph: onnx.GraphProto | onnx.FunctionProto) -> dict[str, onnx.ValueInfoProto]:
    """What a graph declares of its values, by name."""
    infos = list(graph.value_info)
    if isinstance(graph, onnx.GraphProto):
        infos.extend(graph.output)
    return {v.name: v for v in infos}


def dim_of(proto: onnx.TensorShapeProto.Dimension) -> Dim | None:
    """A declared dim: a number, an expression, or a symbol; None for one that is not stated.

    Several tools write '?' for what they don't know, so two of these are not one dim. A hyphen between letters is
    part of a name (`batch-size`), not a minus.
    """
    if proto.HasField("dim_value") and proto.dim_value >= 0:
        return Dim.of(proto.dim_value)
    text = proto.dim_param.strip()
    if not text or text.startswith(ANONYMOUS):
        return None
    if _HYPHEN.search(text):
        return Dim.symbol(text)
    try:
        parsed = Dim.parse(text)
    except InvalidArgumentError:
        return Dim.symbol(text)
    return Dim.symbol(text) if parsed.is_static else parsed
