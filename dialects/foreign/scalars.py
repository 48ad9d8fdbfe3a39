"""NumPy's dtypes of upstream's element types, and arithmetic on signless integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    MemRefType,
    TensorType,
    UnrankedTensorType,
    VectorType,
)
from xdsl.ir import Attribute

from sardonyx.errors import ExecutionError, UnsupportedError

Array = np.ndarray[Any, Any]


def element_type(ty: Attribute) -> Attribute:
    """The type of the elements; a scalar's is its own."""
    if isinstance(ty, TensorType | VectorType | MemRefType | UnrankedTensorType):
        return ty.element_type
    return ty


def numpy_dtype(ty: Attribute) -> np.dtype[Any]:
    """The dtype in which values of a type (or its elements) are held.

    Raises:
        UnsupportedError: There is none.
    """
    ty = element_type(ty)
    if isinstance(ty, IndexType):
        return np.dtype(np.int64)
    if isinstance(ty, IntegerType):
        width = ty.width.data
        if width == 1:
            return np.dtype(np.bool_)
        if width in (8, 16, 32, 64):
            return np.dtype(f"int{width}")
    for cls, name in ((Float16Type, "float16"), (Float32Type, "float32"), (Float64Type, "float64")):
        if isinstance(ty, cls):
            return np.dtype(name)
    if isinstance(ty, BFloat16Type):
        import ml_dtypes

        return np.dtype(ml_dtypes.bfloat16)
    raise UnsupportedError(f"there are no values of type {ty}")


def width_of(ty: Attribute) -> int:
    """The bits of an integer type; index has 64."""
    ty = element_type(ty)
    return ty.width.data if isinstance(ty, IntegerType) else 64


def unsigned(x: Array) -> Array:
    """The same bits as unsigned integers; i1 as 8 bits."""
    x = np.asarray(x)
    return x.astype(np.uint8) if x.dtype == np.bool_ else x.astype(f"uint{x.dtype.itemsize * 8}", copy=False)


def require(condition: Any, message: str) -> None:
    """Refuse what MLIR leaves undefined.

    Raises:
        ExecutionError: The condition does not hold for all elements.
    """
    if not bool(np.all(condition)):
        raise ExecutionError(f"undefined: {message}")
