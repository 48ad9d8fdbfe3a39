"""Constants as passes meet them: finding the one behind a value, and making new ones."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, LocationAttr, TensorType
from xdsl.ir import Attribute, OpResult, SSAValue

from sardonyx.dialects.attributes import WeightAttr
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.sx.constant import MAX_DENSE_BYTES, ConstantOp, dense_array
from sardonyx.dialects.weights import WeightStore

if TYPE_CHECKING:
    from sardonyx.dialects.evaluate import Array

MAX_COMPARED_BYTES = 4096
"""Dense contents up to this size are compared by their elements; larger ones by how they are written."""


def constant_of(value: SSAValue | None) -> ConstantOp | None:
    """The constant that defines a value, if one does."""
    op = value.op if isinstance(value, OpResult) else None
    return op if isinstance(op, ConstantOp) else None


def small_array(value: SSAValue | None, max_bytes: int = MAX_DENSE_BYTES) -> Array | None:
    """The contents of a dense constant of at most that size; None for all else."""
    op = constant_of(value)
    if op is None or isinstance(op.value, WeightAttr) or type_bytes(op.output.type) > max_bytes:
        return None
    return op.array()


def type_bytes(ty: Attribute) -> int:
    """The size of a tensor of that type; a very large number where it is not static."""
    if not isinstance(ty, TensorType):
        return 1 << 62
    size = DType.of(ty.element_type).itemsize
    for extent in ty.get_shape():
        if extent < 0:
            return 1 << 62
        size *= extent
    return size


def make_constant(array: Array, name: str = "folded", location: LocationAttr | None = None) -> ConstantOp:
    """A constant of these contents, which nobody may change any more.

    Small ones are dense. A large one is a weight whose key is made of its contents, so that it clashes with no other
    weight; the attribute carries the bytes, from where whoever owns the module's store takes them in.
    """
    if array.nbytes <= MAX_DENSE_BYTES or array.dtype.kind == "O":
        return ConstantOp.dense(array, location)
    import numpy as np

    contiguous = np.ascontiguousarray(array).reshape(array.shape)
    hasher = hashlib.blake2b(digest_size=8)
    hasher.update(f"{DType.of(array.dtype).name}{array.shape}".encode())
    hasher.update(contiguous.reshape(-1).view("u1").data)
    return ConstantOp.of_weight(WeightStore().add(contiguous, f"{name}_{hasher.hexdigest()}"), location)


def content_key(op: ConstantOp) -> object:
    """Equal for constants of the same dtype, shape and bits; no large payload is read for it."""
    value = op.value
    if not isinstance(value, DenseIntOrFPElementsAttr):
        return value
    size = type_bytes(value.type)
    if size <= MAX_COMPARED_BYTES:
        array = dense_array(value)
        return (DType.of(array.dtype).name, array.shape, array.tobytes())
    return value
