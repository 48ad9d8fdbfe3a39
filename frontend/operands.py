"""From what users pass to tensors: arrays, Python numbers, extents; one dtype for several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from sardonyx.dialects.dtypes import DType
from sardonyx.errors import InvalidArgumentError, SardonyxError
from sardonyx.frontend.apply import op, op_class
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.promotion import check_scalar, default_dtype, promote, with_scalars
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor


class ExportsData(Protocol):
    """An object of another library that hands on its data by DLPack, such as a torch tensor."""

    def __dlpack__(self, **options: Any) -> Any: ...


TensorLike = Tensor | np.ndarray[Any, Any] | np.generic | Extent | bool | int | float | ExportsData
"""What functions take as a tensor; objects with `__array__` alone are taken, too."""


def is_scalar(value: object) -> bool:
    """Whether it is a Python number, whose dtype gives way to that of tensors."""
    return isinstance(value, bool | int | float)


def is_tensor_like(value: object) -> bool:
    """Whether functions take it as a tensor."""
    return (
        isinstance(value, Tensor | np.ndarray | np.generic | bool | int | float | Extent)
        or hasattr(type(value), "__dlpack__")
        or hasattr(type(value), "__array__")
    )


def to_tensor(value: Any, dtype: DType | None = None) -> Tensor:
    """The value as a tensor, of that dtype if one is given. Arrays are shared, not copied.

    Raises:
        InvalidArgumentError: It is nothing that holds numbers.
    """
    if isinstance(value, Tensor):
        return value if dtype is None else cast(value, dtype)
    if isinstance(value, Extent):
        return to_tensor(value.scalar(), dtype)
    if is_scalar(value):
        return scalar(value, dtype or default_dtype(type(value)))
    if not is_tensor_like(value):
        kind = type(value).__name__
        hint = "lists become tensors by sardonyx.asarray" if isinstance(value, list | tuple) else None
        raise InvalidArgumentError(f"expected a tensor, got {kind}", location=user_line(), hint=hint)
    array = from_foreign(value)
    return to_tensor(Tensor.of_array(array), dtype)


def from_foreign(value: Any) -> np.ndarray[Any, Any]:
    """The array of an object that isn't a Tensor, in native byte order, shared where it can be."""
    if not isinstance(value, np.ndarray):
        try:
            value = np.from_dlpack(value) if _prefers_dlpack(value) else np.asarray(value)
        except (TypeError, ValueError, BufferError, RuntimeError) as error:
            raise InvalidArgumentError(
                f"the data of a {type(value).__name__} cannot be read: {error}", location=user_line()
            ) from error
    try:
        dtype = DType.of(value.dtype)
    except SardonyxError as error:
        error.at(user_line())
        raise
    return value if value.dtype == dtype.numpy and value.dtype.isnative else value.astype(dtype.numpy)


def _prefers_dlpack(value: object) -> bool:
    return hasattr(type(value), "__dlpack__") and not hasattr(type(value), "__array__")


def scalar(value: bool | int | float, dtype: DType) -> Tensor:
    """A Python number as a tensor []; a value beyond a float's range is infinite.

    Raises:
        InvalidArgumentError: An integer does not fit.
    """
    try:
        check_scalar(value, dtype)
    except SardonyxError as error:
        error.at(user_line())
        raise
    if isinstance(value, float) and dtype.is_integer:
        raise InvalidArgumentError(f"the number {value} is no {dtype}", location=user_line())
    with np.errstate(over="ignore"):
        return Tensor.of_array(np.array(value, np.float64 if isinstance(value, float) else None).astype(dtype.numpy))


def cast(x: Tensor, dtype: DType) -> Tensor:
    """The tensor as another dtype."""
    return x if x.dtype == dtype else op("sx.cast", x, to=dtype)


def common_dtype(values: Sequence[Any]) -> DType:
    """The dtype that these operands have together."""
    tensors = [v.dtype if isinstance(v, Tensor) else to_tensor(v).dtype for v in values if not _is_weak(v)]
    kinds = [int if isinstance(v, Extent) else type(v) for v in values if _is_weak(v)]
    try:
        return with_scalars(tensors, kinds)
    except SardonyxError as error:
        error.at(user_line())
        raise


def promoted(*values: Any, dtype: DType | None = None, floating: bool = False) -> list[Tensor]:
    """The operands as tensors of one dtype.

    Args:
        values: Tensors, arrays, Python numbers, extents.
        dtype: The dtype; by default the one that they have together.
        floating: Whether integers become floats.
    """
    target = dtype or common_dtype(values)
    if floating and not target.is_float:
        target = default_dtype(float)
    return [scalar(v, target) if is_scalar(v) else to_tensor(v, target) for v in values]


def _is_weak(value: object) -> bool:
    return is_scalar(value) or isinstance(value, Extent)


def floating(x: Any) -> Tensor:
    """The operand as a tensor of floats: integers and bools become the default float dtype."""
    return promoted(x, floating=True)[0]


def apply_widened(name: str, tensors: Sequence[Tensor], *rest: Tensor | None, **properties: Any) -> Tensor:
    """Apply an op to tensors of one dtype, in a wider dtype where it doesn't take theirs; the result has theirs."""
    dtype = tensors[0].dtype
    carrier = carrier_dtype(name, dtype)
    out = op(name, *(cast(t, carrier) for t in tensors), *rest, **properties)
    return cast(out, dtype)


def carrier_dtype(name: str, dtype: DType) -> DType:
    """The dtype in which an op takes values of this one: itself, or the narrowest that holds them."""
    allowed: Sequence[DType] = getattr(op_class(name), "DTYPES", ())
    if not allowed or dtype in allowed:
        return dtype
    wider = [d for d in allowed if d.kind in ("iu" if dtype.kind == "b" else dtype.kind + "i") and _holds(d, dtype)]
    return min(wider, key=lambda d: (d.bits, d.kind != dtype.kind), default=dtype)


def _holds(wide: DType, dtype: DType) -> bool:
    if wide.kind == dtype.kind and wide.bits < dtype.bits:
        return False
    try:
        return promote(wide, dtype) == wide
    except SardonyxError:
        return False
