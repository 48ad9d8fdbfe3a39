"""The attributes of an operator that Sardonyx does not know, in the IR and in ONNX.

Ints are `i64`, floats `f32`, strings `"…"`, lists of ints and floats dense arrays, lists of strings arrays, tensors
dense attributes or, if large, weights; types, sparse tensors and lists of tensors are kept in ONNX's own form.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Mapping

import onnx
from google.protobuf.message import DecodeError
from onnx import helper
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    f32,
    i64,
)
from xdsl.ir import Attribute

from sardonyx.backends.onnx.nodes import Unstatable
from sardonyx.backends.onnx.tensors import array_from_proto, tensor_from_array
from sardonyx.dialects.attributes import WeightAttr, WeightRef
from sardonyx.dialects.sx.constant import MAX_DENSE_BYTES, dense_array, dense_attribute
from sardonyx.dialects.weights import WeightStore
from sardonyx.errors import UnsupportedError

Kind = onnx.AttributeProto
SERIALIZED = "onnx.attribute"
"""The key of an attribute of a kind that has no form of its own: the AttributeProto itself, in base64."""
_SERIALIZED = (Kind.TENSORS, Kind.SPARSE_TENSOR, Kind.SPARSE_TENSORS, Kind.TYPE_PROTO, Kind.TYPE_PROTOS)


def to_ir(attributes: Iterable[onnx.AttributeProto], store: WeightStore) -> DictionaryAttr:
    """A node's attributes as one of the IR.

    Raises:
        UnsupportedError: One is a graph, which is a region, or a text that is no valid UTF-8.
    """
    return DictionaryAttr({a.name: _to_ir(a, store) for a in attributes})


def _to_ir(proto: onnx.AttributeProto, store: WeightStore) -> Attribute:
    kind = proto.type
    try:
        if kind == Kind.STRING:
            return StringAttr(proto.s.decode())
        if kind == Kind.STRINGS:
            return ArrayAttr([StringAttr(s.decode()) for s in proto.strings])
    except UnicodeDecodeError:
        raise UnsupportedError(f"its attribute '{proto.name}' is no valid UTF-8") from None
    if kind == Kind.INT:
        return IntegerAttr(proto.i, i64)
    if kind == Kind.FLOAT:
        return FloatAttr(proto.f, f32)
    if kind == Kind.INTS:
        return DenseArrayBase.from_list(i64, list(proto.ints))
    if kind == Kind.FLOATS:
        return DenseArrayBase.from_list(f32, list(proto.floats))
    if kind == Kind.TENSOR:
        array = array_from_proto(proto.t, f"attribute '{proto.name}'")
        if array.nbytes <= MAX_DENSE_BYTES:
            return dense_attribute(array)
        weight = store.add(array, proto.t.name or proto.name)
        return WeightAttr(WeightRef(weight.key, weight))
    if kind in _SERIALIZED:
        raw = base64.b64encode(proto.SerializeToString(deterministic=True)).decode()
        return DictionaryAttr({SERIALIZED: StringAttr(raw)})
    raise UnsupportedError(f"its attribute '{proto.name}' is of a kind that an unknown operator cannot have")


def from_ir(attributes: Mapping[str, Attribute]) -> dict[str, onnx.AttributeProto]:
    """The attributes of the node, from what `to_ir` made."""
    return {name: _from_ir(name, attributes[name]) for name in sorted(attributes)}


def _from_ir(name: str, attr: Attribute) -> onnx.AttributeProto:
    if isinstance(attr, IntegerAttr):
        return helper.make_attribute(name, attr.value.data, attr_type=Kind.INT)
    if isinstance(attr, FloatAttr):
        return helper.make_attribute(name, attr.value.data, attr_type=Kind.FLOAT)
    if isinstance(attr, StringAttr):
        return helper.make_attribute(name, attr.data, attr_type=Kind.STRING)
    if isinstance(attr, DenseArrayBase):
        kind = Kind.FLOATS if attr.elt_type == f32 else Kind.INTS
        return helper.make_attribute(name, list(attr.get_values()), attr_type=kind)
    if isinstance(attr, ArrayAttr) and all(isinstance(s, StringAttr) for s in attr.data):
        return helper.make_attribute(name, [s.data for s in attr.data], attr_type=Kind.STRINGS)
    if isinstance(attr, DenseIntOrFPElementsAttr):
        return helper.make_attribute(name, tensor_from_array(name, dense_array(attr)), attr_type=Kind.TENSOR)
    if isinstance(attr, WeightAttr) and attr.data.source is not None:
        return helper.make_attribute(name, tensor_from_array(name, attr.data.source.array()), attr_type=Kind.TENSOR)
    if isinstance(attr, DictionaryAttr) and isinstance(raw := attr.data.get(SERIALIZED), StringAttr):
        proto = onnx.AttributeProto()
        try:
            proto.ParseFromString(base64.b64decode(raw.data, validate=True))
        except (binascii.Error, DecodeError):
            raise Unstatable(f"its attribute '{name}' is damaged") from None
        return proto
    raise Unstatable(f"its attribute '{name}' has no form in ONNX")
