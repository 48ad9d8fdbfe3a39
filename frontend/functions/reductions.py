"""Reductions over axes, arg-reductions and running sums.

`axis` is an axis, several, or None for all of them; the result has the axes that are left (`keepdims`: and an extent of
1 for the reduced ones). Sums and products of integers are in the default integer dtype, or in the operand's where that
is wider.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from sardonyx.dialects.dtypes import DType, bool_, int64, uint64
from sardonyx.errors import InvalidArgumentError, OutOfRangeError
from sardonyx.frontend.apply import ints, op
from sardonyx.frontend.operands import TensorLike, apply_widened, carrier_dtype, cast, floating, scalar, to_tensor
from sardonyx.frontend.promotion import DEFAULT_INT
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor, is_bool

Axis = int | Sequence[int] | None


def normalized_axes(axis: Any, rank: int) -> tuple[int, ...] | None:
    """Non-negative axes; None for all.

    Raises:
        InvalidArgumentError: One is out of range or is named twice.
    """
    if axis is None:
        return None
    given = [axis] if hasattr(axis, "__index__") and not isinstance(axis, list | tuple) else list(axis)
    found = [operator.index(a) for a in given]
    for a in found:
        if not -rank <= a < rank:
            raise OutOfRangeError(f"axis {a} is out of range for a tensor of rank {rank}", location=user_line())
    axes = tuple(a % rank for a in found)
    if len(set(axes)) != len(axes):
        raise InvalidArgumentError(f"the axes {found} name one twice", location=user_line())
    return axes


def one_axis(axis: Any, rank: int) -> int:
    """A single axis, non-negative."""
    axes = normalized_axes(axis, rank)
    if axes is None or len(axes) != 1:
        raise InvalidArgumentError(f"expected one axis, got {axis!r}", location=user_line())
    return axes[0]


def reduce_over(name: str, x: Tensor, axis: Axis, keepdims: bool) -> Tensor:
    """Apply a reduction; one over no axes still applies its elementwise part."""
    axes = None if axis is None else normalized_axes(axis, x.ndim)
    stated = None if axes is None else ints(axes)
    return apply_widened(name, [x], stated, keepdims=bool(keepdims), noop_with_empty_axes=axes == ())


def _accumulated(x: TensorLike, dtype: object) -> Tensor:
    """The operand in the dtype in which it is summed up."""
    x = to_tensor(x)
    if dtype is not None:
        return cast(x, DType.of(dtype))
    if x.dtype.is_float or x.dtype in (int64, uint64):
        return x
    return cast(x, uint64 if x.dtype.kind == "u" else DEFAULT_INT)


def sum(x: TensorLike, axis: Axis = None, *, dtype: object = None, keepdims: bool = False) -> Tensor:
    """The sum; of no elements 0."""
    return reduce_over("sx.reduce_sum", _accumulated(x, dtype), axis, keepdims)


def prod(x: TensorLike, axis: Axis = None, *, dtype: object = None, keepdims: bool = False) -> Tensor:
    """The product; of no elements 1."""
    return reduce_over("sx.reduce_prod", _accumulated(x, dtype), axis, keepdims)


def mean(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The mean, in floats."""
    return reduce_over("sx.reduce_mean", floating(x), axis, keepdims)


def max(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The greatest element; NaN where one is."""
    return reduce_over("sx.reduce_max", to_tensor(x), axis, keepdims)


def min(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The smallest element; NaN where one is."""
    return reduce_over("sx.reduce_min", to_tensor(x), axis, keepdims)


def all(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Whether all elements are true."""
    return reduce_over("sx.reduce_min", cast(to_tensor(x), bool_), axis, keepdims)


def any(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """Whether an element is true."""
    return reduce_over("sx.reduce_max", cast(to_tensor(x), bool_), axis, keepdims)


def count_nonzero(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """How many elements are not 0."""
    return sum(cast(to_tensor(x), bool_), axis, keepdims=keepdims)


def var(x: TensorLike, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance: the mean squared distance to the mean, over `n - correction`; of too few elements NaN."""
    x = floating(x)
    distance = x - mean(x, axis, keepdims=True)
    squares = distance * distance
    if not correction:
        return mean(squares, axis, keepdims=keepdims)
    axes = normalized_axes(axis, x.ndim)
    count: Any = 1
    for a in range(x.ndim) if axes is None else axes:
        count = count * x.shape[a]
    total = sum(squares, axis, keepdims=keepdims)
    if isinstance(count, int):
        return total / (float(count - correction) if count > correction else 0.0)
    degrees = cast(to_tensor(count), x.dtype) - correction
    return total / op("sx.max", [degrees, scalar(0.0, x.dtype)])


def std(x: TensorLike, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The root of the variance."""
    return op("sx.sqrt", var(x, axis, correction=correction, keepdims=keepdims))


# ---- ONNX's other reductions


def reduce_l1(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The sum of absolute values."""
    return reduce_over("sx.reduce_l1", to_tensor(x), axis, keepdims)


def reduce_l2(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The root of the sum of squares."""
    return reduce_over("sx.reduce_l2", to_tensor(x), axis, keepdims)


def reduce_log_sum(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The logarithm of the sum."""
    return reduce_over("sx.reduce_log_sum", floating(x), axis, keepdims)


def logsumexp(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The logarithm of the sum of exponentials, without overflow."""
    return reduce_over("sx.reduce_log_sum_exp", floating(x), axis, keepdims)


def reduce_sum_square(x: TensorLike, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The sum of squares."""
    return reduce_over("sx.reduce_sum_square", to_tensor(x), axis, keepdims)


# ---- where the extremes are


def _arg(name: str, x: TensorLike, axis: int | None, keepdims: bool, select_last_index: bool) -> Tensor:
    from sardonyx.frontend.functions.shape import reshape

    x = to_tensor(x)
    if is_bool(x):
        x = cast(x, carrier_dtype(name, x.dtype))
    if axis is None:
        rank = x.ndim
        found = op(name, reshape(x, (-1,)), axis=0, keepdims=False, select_last_index=select_last_index)
        return reshape(found, (1,) * rank) if keepdims else found
    return op(name, x, axis=one_axis(axis, x.ndim), keepdims=bool(keepdims), select_last_index=select_last_index)


def argmax(
    x: TensorLike, axis: int | None = None, *, keepdims: bool = False, select_last_index: bool = False
) -> Tensor:
    """The index of the greatest element along an axis, or among all; the first one of several."""
    return _arg("sx.arg_max", x, axis, keepdims, select_last_index)


def argmin(
    x: TensorLike, axis: int | None = None, *, keepdims: bool = False, select_last_index: bool = False
) -> Tensor:
    """The index of the smallest element along an axis, or among all; the first one of several."""
    return _arg("sx.arg_min", x, axis, keepdims, select_last_index)


# ---- running sums


def cumsum(
    x: TensorLike,
    axis: int | None = None,
    *,
    dtype: object = None,
    exclusive: bool = False,
    reverse: bool = False,
) -> Tensor:
    """Running sums along an axis, which may be left out for a vector."""
    x = _accumulated(x, dtype)
    if axis is None:
        if x.ndim != 1:
            raise InvalidArgumentError(f"cumsum() of a tensor of rank {x.ndim} needs an axis", location=user_line())
        axis = 0
    at = scalar(one_axis(axis, x.ndim), DEFAULT_INT)
    return apply_widened("sx.cumsum", [x], at, exclusive=bool(exclusive), reverse=bool(reverse))


def cumulative_sum(
    x: TensorLike, /, *, axis: int | None = None, dtype: object = None, include_initial: bool = False
) -> Tensor:
    """Running sums along an axis; with `include_initial` a 0 comes first."""
    from sardonyx.frontend.functions.creation import zeros
    from sardonyx.frontend.functions.joining import concat

    out = cumsum(x, axis, dtype=dtype)
    if not include_initial:
        return out
    at = one_axis(0 if axis is None else axis, out.ndim)
    first = zeros([1 if i == at else extent for i, extent in enumerate(out.shape)], dtype=out.dtype)
    return concat([first, out], at)


def cumprod(
    x: TensorLike, axis: int | None = None, *, dtype: object = None, exclusive: bool = False, reverse: bool = False
) -> Tensor:
    """Running products along an axis, which may be left out for a vector."""
    x = _accumulated(x, dtype)
    if axis is None:
        if x.ndim != 1:
            raise InvalidArgumentError(f"cumprod() of a tensor of rank {x.ndim} needs an axis", location=user_line())
        axis = 0
    at = scalar(one_axis(axis, x.ndim), DEFAULT_INT)
    return apply_widened("sx.cumprod", [x], at, exclusive=bool(exclusive), reverse=bool(reverse))


def cumulative_prod(
    x: TensorLike, /, *, axis: int | None = None, dtype: object = None, include_initial: bool = False
) -> Tensor:
    """Running products along an axis; with `include_initial` a 1 comes first."""
    from sardonyx.frontend.functions.creation import ones
    from sardonyx.frontend.functions.joining import concat

    out = cumprod(x, axis, dtype=dtype)
    if not include_initial:
        return out
    at = one_axis(0 if axis is None else axis, out.ndim)
    first = ones([1 if i == at else extent for i, extent in enumerate(out.shape)], dtype=out.dtype)
    return concat([first, out], at)


arg_max, arg_min = argmax, argmin
reduce_sum, reduce_mean, reduce_prod, reduce_max, reduce_min = sum, mean, prod, max, min
reduce_log_sum_exp = logsumexp
