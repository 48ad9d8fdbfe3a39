"""Making tensors: from data, filled, ranges. All are eager, unless a shape or a bound is known only in the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.sx.constant import dense_attribute
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.apply import op
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.operands import (
    TensorLike,
    cast,
    from_foreign,
    is_scalar,
    is_tensor_like,
    promoted,
    scalar,
    to_tensor,
)
from sardonyx.frontend.promotion import DEFAULT_FLOAT, DEFAULT_INT, default_dtype
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor


def asarray(obj: Any, /, *, dtype: object = None, device: object = None, copy: bool | None = None) -> Tensor:
    """A tensor of an array, a number, (nested) lists of numbers or tensors, or an object that exports its data.

    Python floats become the default float dtype, Python integers the default integer dtype; arrays keep theirs.

    Args:
        obj: The data. Arrays are shared, not copied.
        dtype: What the elements become.
        device: "cpu" or None.
        copy: True: never share. False: never copy.

    Raises:
        InvalidArgumentError: It holds no numbers, or a copy is needed and `copy` is False.
    """
    _check_device(device)
    wanted = None if dtype is None else DType.of(dtype)
    if isinstance(obj, list | tuple):
        made = _of_sequence(obj, wanted)
        copied = True
    else:
        made = to_tensor(obj, wanted) if is_tensor_like(obj) else cast_if(Tensor.of_array(_array_of(obj)), wanted)
        copied = not made.is_traced and not _shares(made.numpy(), obj)
    if copy is False and copied:
        raise InvalidArgumentError("asarray(copy=False): the data cannot be shared", location=user_line())
    return made.copy() if copy and not copied else made


def array(obj: Any, /, dtype: object = None, *, copy: bool = True) -> Tensor:
    """`asarray` with a copy, so that a later write into the data doesn't show."""
    return asarray(obj, dtype=dtype, copy=copy or None)


def from_dlpack(x: Any, /, *, device: object = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the data of an object with `__dlpack__`, such as a torch tensor."""
    _check_device(device)
    if isinstance(x, Tensor):
        return x.copy() if copy else x
    if not hasattr(x, "__dlpack__"):
        raise InvalidArgumentError(f"from_dlpack() takes an object with __dlpack__, not {type(x).__name__}")
    made = Tensor.of_array(from_foreign(np.from_dlpack(x)))
    return made.copy() if copy else made


def cast_if(x: Tensor, dtype: DType | None) -> Tensor:
    return x if dtype is None else cast(x, dtype)


def _array_of(obj: Any) -> np.ndarray[Any, Any]:
    if isinstance(obj, complex | str | bytes) or obj is None:
        raise InvalidArgumentError(f"a tensor holds numbers, not {type(obj).__name__}", location=user_line())
    return from_foreign(np.asarray(obj))


def _shares(array: np.ndarray[Any, Any], obj: Any) -> bool:
    source = obj.numpy() if isinstance(obj, Tensor) else obj
    if isinstance(source, np.ndarray):
        return np.may_share_memory(array, source)
    return not is_scalar(obj) and hasattr(obj, "__dlpack__") and np.may_share_memory(array, from_foreign(obj))


def _leaves(obj: Any) -> list[Any]:
    if isinstance(obj, list | tuple):
        return [leaf for item in obj for leaf in _leaves(item)]
    return [obj]


def _of_sequence(obj: Sequence[Any], dtype: DType | None) -> Tensor:
    leaves = _leaves(obj)
    if any(isinstance(leaf, Extent) or (isinstance(leaf, Tensor) and leaf.is_traced) for leaf in leaves):
        return cast_if(_stacked(obj), dtype)
    plain = [np.asarray(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    if all(is_scalar(leaf) for leaf in plain):
        kinds = [default_dtype(type(leaf)) for leaf in plain]
        found = DEFAULT_FLOAT if not kinds else max(kinds, key=lambda d: "bif".index(d.kind))
        dtype = dtype or found
    try:
        made = np.array(_nested(obj), dtype=dtype.numpy if dtype is not None else None)
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidArgumentError(f"the lists make no tensor: {error}", location=user_line()) from error
    return Tensor.of_array(from_foreign(made))


def _nested(obj: Any) -> Any:
    if isinstance(obj, list | tuple):
        return [_nested(item) for item in obj]
    return np.asarray(obj) if isinstance(obj, Tensor) else obj


def _stacked(obj: Any) -> Tensor:
    from sardonyx.frontend.functions.joining import stack

    parts = [_stacked(item) if isinstance(item, list | tuple) else item for item in obj]
    return stack(promoted(*parts))


def _check_device(device: object) -> None:
    if device is not None and device != "cpu":
        raise InvalidArgumentError(f"there is no device {device!r}", hint="the only one is 'cpu'")


# ---- filled


def full(shape: Any, fill_value: TensorLike, *, dtype: object = None, device: object = None) -> Tensor:
    """A tensor of that shape with one value everywhere; extents may be those of traced tensors."""
    _check_device(device)
    value = promoted(fill_value, dtype=None if dtype is None else DType.of(dtype))[0]
    extents = shape_entries(shape)
    if value.is_traced or value.ndim:
        from sardonyx.frontend.functions.shape import broadcast_to

        return broadcast_to(value, extents)
    if any(not isinstance(e, int) for e in extents):
        from sardonyx.frontend.functions.shape import shape_tensor

        return op("sx.constant_of_shape", shape_tensor(extents), value=dense_attribute(value.numpy().reshape(1)))
    return Tensor.of_array(np.full(_checked(extents), value.numpy()[()], value.dtype.numpy))


def zeros(*shape: Any, dtype: object = None, device: object = None) -> Tensor:
    """Zeros, of the default float dtype: `zeros(2, 37)` or `zeros((2, 37))`."""
    return full(_varargs(shape), 0, dtype=DEFAULT_FLOAT if dtype is None else dtype, device=device)


def ones(*shape: Any, dtype: object = None, device: object = None) -> Tensor:
    """Ones, of the default float dtype: `ones(2, 37)` or `ones((2, 37))`."""
    return full(_varargs(shape), 1, dtype=DEFAULT_FLOAT if dtype is None else dtype, device=device)


def empty(*shape: Any, dtype: object = None, device: object = None) -> Tensor:
    """A tensor whose contents don't matter; they are zeros."""
    return zeros(*shape, dtype=dtype, device=device)


def _varargs(shape: tuple[Any, ...]) -> Any:
    return shape[0] if len(shape) == 1 else shape


def shape_entries(shape: Any) -> list[Any]:
    """The entries of a shape that is an extent, a sequence of such, or an eager vector: ints, Extents, tensors.

    Raises:
        InvalidArgumentError: An entry is none.
    """
    if isinstance(shape, Tensor) and shape.ndim == 1 and not shape.is_traced:
        return [int(e) for e in shape.numpy()]
    given = list(shape) if isinstance(shape, list | tuple | np.ndarray) else [shape]
    out: list[Any] = []
    for entry in given:
        if isinstance(entry, Extent) or (isinstance(entry, Tensor) and entry.is_traced):
            out.append(entry)
            continue
        if isinstance(entry, bool | float) or not hasattr(entry, "__index__"):
            raise InvalidArgumentError(
                f"a shape consists of integers, not {type(entry).__name__}: {entry!r}", location=user_line()
            )
        out.append(int(entry.__index__()))
    return out


def _checked(extents: Sequence[int]) -> tuple[int, ...]:
    if any(e < 0 for e in extents):
        raise InvalidArgumentError(f"the shape {list(extents)} has a negative extent", location=user_line())
    return tuple(extents)


def _like(x: TensorLike, value: TensorLike, dtype: object, device: object) -> Tensor:
    x = to_tensor(x)
    return full(x.shape, value, dtype=x.dtype if dtype is None else dtype, device=device)


def zeros_like(x: TensorLike, /, *, dtype: object = None, device: object = None) -> Tensor:
    """Zeros of the shape and dtype of `x`."""
    return _like(x, 0, dtype, device)


def ones_like(x: TensorLike, /, *, dtype: object = None, device: object = None) -> Tensor:
    """Ones of the shape and dtype of `x`."""
    return _like(x, 1, dtype, device)


def empty_like(x: TensorLike, /, *, dtype: object = None, device: object = None) -> Tensor:
    return _like(x, 0, dtype, device)


def full_like(x: TensorLike, /, fill_value: TensorLike, *, dtype: object = None, device: object = None) -> Tensor:
    """One value everywhere, of the shape and dtype of `x`."""
    return _like(x, fill_value, dtype, device)


# ---- ranges


def arange(
    start: TensorLike,
    /,
    stop: TensorLike | None = None,
    step: TensorLike = 1,
    *,
    dtype: object = None,
    device: object = None,
) -> Tensor:
    """`start`, `start + step`, … up to `stop`, exclusive; with one argument from 0 to it.

    Bounds may be extents or tensors [] of a trace: the number of elements is then known when the graph runs.

    Raises:
        InvalidArgumentError: The step is 0.
    """
    _check_device(device)
    if stop is None:
        start, stop = 0, start
    wanted = None if dtype is None else DType.of(dtype)
    bounds: Any = (start, stop, step)
    if all(is_scalar(b) or isinstance(b, np.generic) for b in bounds):
        if step == 0:
            raise InvalidArgumentError("arange(): the step is 0", location=user_line())
        target = wanted or (DEFAULT_FLOAT if any(isinstance(b, float | np.floating) for b in bounds) else DEFAULT_INT)
        # In NumPy's own dtypes, then rounded once: 0, 0.1, 0.2 … as float32 would drift.
        return cast(Tensor.of_array(np.arange(*bounds)), target)
    operands = promoted(*bounds, dtype=wanted)
    return op("sx.range", *operands)


def linspace(
    start: TensorLike,
    stop: TensorLike,
    /,
    num: int,
    *,
    dtype: object = None,
    device: object = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` evenly spaced values from `start` to `stop`, which is the last one unless `endpoint` is False."""
    _check_device(device)
    wanted = DEFAULT_FLOAT if dtype is None else DType.of(dtype)
    if is_scalar(start) and is_scalar(stop):
        made = np.linspace(start, stop, num, endpoint=endpoint, dtype=np.float64)  # pyright: ignore[reportCallIssue, reportArgumentType]
        return cast(Tensor.of_array(made), wanted)
    low, high = promoted(start, stop, floating=True)
    steps = max(num - 1 if endpoint else num, 1)
    fractions = Tensor.of_array((np.arange(num) / steps).astype(low.dtype.numpy))
    return cast(low + (high - low) * fractions, wanted)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: object = None, device: object = None
) -> Tensor:
    """Ones on the `k`-th diagonal, else zeros."""
    _check_device(device)
    target = DEFAULT_FLOAT if dtype is None else DType.of(dtype)
    return Tensor.of_array(np.eye(n_rows, n_cols, k).astype(target.numpy))


def tril(x: TensorLike, /, *, k: int = 0) -> Tensor:
    """The lower triangle of the last two axes; zeros above the `k`-th diagonal."""
    return _triangle(x, k, upper=False)


def triu(x: TensorLike, /, *, k: int = 0) -> Tensor:
    """The upper triangle of the last two axes; zeros below the `k`-th diagonal."""
    return _triangle(x, k, upper=True)


def trilu(x: TensorLike, k: int = 0, *, upper: bool = True) -> Tensor:
    """The upper or lower triangle, as ONNX has it."""
    return _triangle(x, k, upper)


def _triangle(x: TensorLike, k: int, upper: bool) -> Tensor:
    return op("sx.trilu", to_tensor(x), scalar(k, DEFAULT_INT) if k else None, upper=upper)


def meshgrid(*arrays: TensorLike, indexing: str = "xy") -> list[Tensor]:
    """Coordinates of a grid from coordinates of its axes."""
    from sardonyx.frontend.functions.shape import broadcast_arrays, reshape

    if indexing not in ("xy", "ij"):
        raise InvalidArgumentError(f"meshgrid(): indexing is 'xy' or 'ij', not {indexing!r}")
    vectors = [to_tensor(a) for a in arrays]
    axes = list(range(len(vectors)))
    if indexing == "xy" and len(axes) > 1:
        axes[0], axes[1] = 1, 0
    placed = [reshape(v, [-1 if i == axis else 1 for i in range(len(vectors))]) for v, axis in zip(vectors, axes)]
    return broadcast_arrays(*placed)
