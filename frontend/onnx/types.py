"""Declared types and dims of ONNX as those of the IR."""

from __future__ import annotations

import re

import onnx
from xdsl.ir import Attribute

from sardonyx.backends.onnx.tensors import dtype_from_onnx
from sardonyx.dialects.attributes import ANONYMOUS, fresh_dim, tensor_type, unranked_type
from sardonyx.dialects.dims import Dim
from sardonyx.errors import InvalidArgumentError, UnsupportedError

_HYPHEN = re.compile(r"\w-\w")


def value_type(info: onnx.ValueInfoProto, what: str = "input") -> Attribute:
    """The type of a declared tensor; one without a shape has no rank.

    Raises:
        UnsupportedError: It is no tensor, or of an element type that is not supported.
        InvalidArgumentError: It states no type.
    """
    where = f"{what} '{info.name}'"
    kind = info.type.WhichOneof("value")
    if kind is None:
        raise InvalidArgumentError(f"{where} states no type")
    if kind != "tensor_type":
        raise UnsupportedError(f"{where} is a {kind.removesuffix('_type')}, which is not supported yet")
    dtype = dtype_from_onnx(info.type.tensor_type.elem_type, where)
    if not info.type.tensor_type.HasField("shape"):
        return unranked_type(dtype)
    return tensor_type(dtype, [dim_of(d) or fresh_dim() for d in info.type.tensor_type.shape.dim])


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
