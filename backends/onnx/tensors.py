"""Arrays and weights to ONNX's `TensorProto` and back.

Contents are written as `raw_data` (little-endian; elements of less than a byte are packed), and read from it or from
the typed fields. What a tensor states of its size is held against what it holds before anything is allocated.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import onnx
from xdsl.ir import Attribute

from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.dtypes import BY_ONNX, DType
from sardonyx.dialects.packing import pack, unpack
from sardonyx.dialects.sx.strings import is_string, string_array
from sardonyx.dialects.types import MapType, OptionalType, SequenceType, UnknownType
from sardonyx.dialects.weights import FileSlice, Weight
from sardonyx.errors import InvalidArgumentError, UnsupportedError

Array = np.ndarray[Any, Any]

# The typed field in which a TensorProto holds elements of a type, and the dtype of the field's elements (ONNX's
# onnx.proto: "int32_data: for int32, uint8, int8, uint16, int16, bool, and bit patterns of floats up to 16 bits"; an
# entry holds two elements of 4 bits, four of 2 bits, else one).
_TYPED_FIELDS: dict[str, tuple[str, str]] = {
    "float32": ("float_data", "f4"),
    "float64": ("double_data", "f8"),
    "int64": ("int64_data", "i8"),
    "uint64": ("uint64_data", "u8"),
    "uint32": ("uint64_data", "u8"),
}


def dtype_from_onnx(number: int, where: str) -> DType:
    """The dtype of an element type of ONNX.

    Raises:
        UnsupportedError: ONNX has the type, Sardonyx doesn't.
        InvalidArgumentError: There is no such type.
    """
    found = BY_ONNX.get(number)
    if found is not None:
        return found
    names: dict[int, str] = {v: k for k, v in onnx.TensorProto.DataType.items()}
    if number not in names or number == onnx.TensorProto.UNDEFINED:
        raise InvalidArgumentError(f"{where}: {number} is no element type of ONNX")
    raise UnsupportedError(f"{where}: elements of type {names[number].lower()} are not supported yet")


def type_string(dtype: DType) -> str:
    """The type as ONNX's schemas write it: `tensor(float)`."""
    return f"tensor({ {'float32': 'float', 'float64': 'double'}.get(dtype.name, dtype.name) })"


def type_text(ty: Attribute) -> str | None:
    """A type as ONNX's schemas write it: `seq(tensor(float))`; None where it is not known."""
    if isinstance(ty, SequenceType | OptionalType):
        inner = type_text(ty.element)
        return None if inner is None else f"{'seq' if isinstance(ty, SequenceType) else 'optional'}({inner})"
    if isinstance(ty, MapType):
        key, value = (type_string(d).removeprefix("tensor") for d in (DType.of(ty.key), dtype_of(ty.element)))
        return f"map({key.strip('()')}, {value.strip('()')})"
    return None if isinstance(ty, UnknownType) else type_string(dtype_of(ty))


def tensor_shape(proto: onnx.TensorProto, dtype: DType, where: str) -> tuple[int, ...]:
    """The dims of a tensor, held against what an address space can hold.

    Raises:
        InvalidArgumentError: A dim is negative, or the size overflows.
    """
    shape = tuple(proto.dims)
    if any(d < 0 for d in shape):
        raise InvalidArgumentError(f"{where}: dims {list(shape)} are negative")
    extents = [d for d in shape if d] if 0 in shape else shape
    if math.prod(extents) * dtype.itemsize > sys.maxsize:
        raise InvalidArgumentError(f"{where}: dims {list(shape)} overflow")
    return shape


def array_from_proto(proto: onnx.TensorProto, where: str) -> Array:
    """The contents of a tensor that holds them itself; read-only.

    Raises:
        InvalidArgumentError: Its dims, type and contents disagree.
        UnsupportedError: Its element type is not supported.
    """
    dtype = dtype_from_onnx(proto.data_type, where)
    shape = tensor_shape(proto, dtype, where)
    if proto.HasField("segment"):
        raise UnsupportedError(f"{where}: tensors in segments are not supported")
    if proto.data_location == onnx.TensorProto.EXTERNAL:
        raise InvalidArgumentError(f"{where}: its contents are in a file, which is not here")
    count = math.prod(shape)
    if dtype.kind == "s":
        return _strings(proto, shape, where)
    if proto.HasField("raw_data"):
        return _from_raw(proto.raw_data, dtype, shape, where)
    shared = dtype.packed and 8 % dtype.bits == 0
    entries = dtype.stored_size(count) if shared else count
    name, item = _TYPED_FIELDS.get(dtype.name, ("int32_data", "i4"))
    values = getattr(proto, name)
    if len(values) != entries:
        raise InvalidArgumentError(
            f"{where}: dims {list(shape)} of {dtype} take {entries} entries, but {name} holds {len(values)}"
        )
    flat = np.fromiter(values, item, entries)
    if shared:
        flat = unpack(flat.astype(np.uint8), dtype, count)
    elif dtype.is_float and dtype.bits <= 16:
        flat = (flat & ((1 << dtype.bits) - 1)).astype(f"u{dtype.itemsize}").view(dtype.numpy)
    else:
        flat = flat.astype(dtype.numpy, copy=False)
    flat.flags.writeable = False
    return flat.reshape(shape)


def _strings(proto: onnx.TensorProto, shape: tuple[int, ...], where: str) -> Array:
    if len(proto.string_data) != math.prod(shape):
        raise InvalidArgumentError(
            f"{where}: dims {list(shape)} take {math.prod(shape)} strings, but it holds {len(proto.string_data)}"
        )
    try:
        made = string_array([text.decode() for text in proto.string_data], shape)
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"{where}: a string is no valid UTF-8") from None
    made.flags.writeable = False
    return made


def _from_raw(raw: bytes, dtype: DType, shape: tuple[int, ...], where: str) -> Array:
    count = math.prod(shape)
    wanted = dtype.stored_size(count)
    if len(raw) != wanted:
        raise InvalidArgumentError(
            f"{where}: dims {list(shape)} of {dtype} take {wanted} bytes, but it holds {len(raw)}"
        )
    if dtype.kind == "b":
        flat = np.frombuffer(raw, np.uint8) != 0
    elif dtype.packed:
        flat = unpack(np.frombuffer(raw, np.uint8), dtype, count)
    else:
        flat = np.frombuffer(raw, dtype.numpy)
    if sys.byteorder == "big" and dtype.itemsize > 1:
        flat = flat.byteswap()
    flat.flags.writeable = False
    return flat.reshape(shape)


def empty_tensor(name: str, dtype: DType, shape: tuple[int, ...]) -> onnx.TensorProto:
    """A tensor that states its type only; `fill` or `place` give it contents."""
    return onnx.TensorProto(name=name, data_type=dtype.onnx, dims=shape)


def stored_size(content: Weight | Array) -> int:
    """The bytes that the contents take in a file."""
    return DType.of(content.dtype).stored_size(content.size)


def raw_bytes(content: Weight | Array) -> bytes:
    """The contents as ONNX stores them (one copy)."""
    return raw_view(content).tobytes()


def raw_view(content: Weight | Array) -> memoryview:
    """The contents as ONNX stores them, without a copy where they lie so in one piece."""
    dtype = DType.of(content.dtype)
    if isinstance(content, Weight) and isinstance(content.content, FileSlice) and content.content.packed:
        return content.stored().data
    array = content.array() if isinstance(content, Weight) else content
    if dtype.packed:
        return pack(array, dtype).data
    if sys.byteorder == "big":
        array = array.byteswap()
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.uint8).data if flat.size else memoryview(b"")


def fill(proto: onnx.TensorProto, content: Weight | Array) -> None:
    """Put the contents into the tensor."""
    if not isinstance(content, Weight) and is_string(content):
        proto.string_data.extend(text.encode() for text in content.reshape(-1))
        return
    proto.raw_data = raw_bytes(content)


def tensor_from_array(name: str, array: Array) -> onnx.TensorProto:
    """A tensor with the array's contents inside."""
    proto = empty_tensor(name, DType.of_array(array), array.shape)
    fill(proto, array)
    return proto


def sparse_from_array(name: str, array: Array, linear: bool) -> onnx.SparseTensorProto:
    """The elements of an array that are not zero (-0 is none); each position is one number, or one for each axis."""
    flat = np.ascontiguousarray(array).reshape(-1)
    kept = (
        np.flatnonzero(flat.view(np.uint8).reshape(len(flat), -1).any(axis=1)) if flat.size else np.zeros(0, np.int64)
    )
    where = kept if linear else np.stack(np.unravel_index(kept, array.shape), axis=-1).reshape(len(kept), array.ndim)
    return onnx.SparseTensorProto(
        values=tensor_from_array(name, flat[kept]),
        indices=tensor_from_array(f"{name}_indices", where.astype(np.int64)),
        dims=array.shape,
    )


def place(proto: onnx.TensorProto, location: str, offset: int, length: int) -> None:
    """Say that the tensor's contents are in a file beside the model."""
    proto.data_location = onnx.TensorProto.EXTERNAL
    for key, value in (("location", location), ("offset", str(offset)), ("length", str(length))):
        proto.external_data.add(key=key, value=value)
