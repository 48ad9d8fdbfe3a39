"""Types and dims of the IR as ONNX's declarations."""

from __future__ import annotations

import onnx
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from sardonyx.dialects.attributes import dtype_of, fresh_dim, is_anonymous, type_dims
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.types import MapType, OptionalType, SequenceType, UnknownType
from sardonyx.errors import InvalidArgumentError


def dim_text(dim: Dim) -> int | str | None:
    """A dim as ONNX states it: a number, a name or the text of an expression; None for one that nobody named.

    Raises:
        InvalidArgumentError: It is a number that ONNX's int64 does not hold.
    """
    if dim.static_value is not None:
        if dim.static_value >= 2**63:
            raise InvalidArgumentError(f"an extent of {dim.static_value} does not fit into 64 bits")
        return dim.static_value
    if is_anonymous(dim):
        return None
    return dim.symbol_name or str(dim)


def type_proto(ty: Attribute, declared: tuple[Dim | None, ...] | None = None) -> onnx.TypeProto:
    """A type as ONNX declares it; one that is not known states nothing.

    Args:
        ty: The type.
        declared: Dims that an imported model declared; they stand where inference knows nothing.
    """
    proto = onnx.TypeProto()
    if isinstance(ty, SequenceType):
        proto.sequence_type.elem_type.CopyFrom(type_proto(ty.element))
        return proto
    if isinstance(ty, OptionalType):
        proto.optional_type.elem_type.CopyFrom(type_proto(ty.element))
        return proto
    if isinstance(ty, MapType):
        proto.map_type.key_type = DType.of(ty.key).onnx
        proto.map_type.value_type.CopyFrom(type_proto(ty.element))
        return proto
    if isinstance(ty, UnknownType):
        return proto
    tensor = proto.tensor_type
    tensor.elem_type = dtype_of(ty).onnx
    if isinstance(ty, TensorType):
        dims = type_dims(ty)
    elif declared is not None:
        dims = tuple(fresh_dim() for _ in declared)
    else:
        return proto
    tensor.shape.SetInParent()
    for axis, dim in enumerate(dims):
        stated = dim_text(dim)
        if stated is None and declared is not None and len(declared) == len(dims):
            known = declared[axis]
            stated = None if known is None else dim_text(known)
        target = tensor.shape.dim.add()
        if isinstance(stated, int):
            target.dim_value = stated
        elif stated:
            target.dim_param = stated
    return proto


def value_info(name: str, ty: Attribute, declared: tuple[Dim | None, ...] | None = None) -> onnx.ValueInfoProto:
    """The declaration of a value (see `type_proto`)."""
    info = onnx.ValueInfoProto(name=name)
    info.type.CopyFrom(type_proto(ty, declared))
    return info
