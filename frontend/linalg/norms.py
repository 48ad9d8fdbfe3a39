"""Norms, ranks, powers, products and diagonals of matrices and vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.dialects.dtypes import int64
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.functions.creation import cast_if, eye
from sardonyx.frontend.functions.elementwise import abs, equal, greater, multiply, not_equal, pow, sqrt, subtract, where
from sardonyx.frontend.functions.gathering import take
from sardonyx.frontend.functions.joining import roll
from sardonyx.frontend.functions.linalg import matmul, matrix_transpose
from sardonyx.frontend.functions.reductions import max, min, normalized_axes, sum
from sardonyx.frontend.functions.shape import broadcast_to, expand_dims, reshape
from sardonyx.frontend.linalg.factorizations import inv
from sardonyx.frontend.linalg.spectra import svd, svdvals
from sardonyx.frontend.linalg.support import matrices, static
from sardonyx.frontend.operands import TensorLike, floating, promoted, to_tensor
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor


def vector_norm(
    x: TensorLike, /, *, axis: int | Sequence[int] | None = None, keepdims: bool = False, ord: float = 2
) -> Tensor:
    """The norm of the elements along axes, all by default: `sum(abs(x)**ord)**(1/ord)`."""
    x = floating(x)
    axes = tuple(range(x.ndim)) if axis is None else normalized_axes(axis, x.ndim) or ()
    size = abs(x)
    if not axes:
        return cast_if(not_equal(size, 0.0), x.dtype) if ord == 0 else size
    if ord == math.inf:
        return max(size, axis=axes, keepdims=keepdims)
    if ord == -math.inf:
        return min(size, axis=axes, keepdims=keepdims)
    if ord == 0:
        return sum(cast_if(not_equal(size, 0.0), x.dtype), axis=axes, keepdims=keepdims)
    if ord == 1:
        return sum(size, axis=axes, keepdims=keepdims)
    if ord == 2:
        # Scaled by the largest element, so that squares neither overflow nor vanish.
        top = max(size, axis=axes, keepdims=True)
        safe = where(equal(top, 0.0) | equal(top, math.inf), to_tensor(1.0, x.dtype), top)
        scaled = size / safe
        found = multiply(sqrt(sum(scaled * scaled, axis=axes, keepdims=True)), safe)
        return found if keepdims else sum(found, axis=axes)
    return pow(sum(pow(size, ord), axis=axes, keepdims=keepdims), 1.0 / ord)


def matrix_norm(x: TensorLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norm of matrices: 'fro', 'nuc', 1, -1, 2, -2, inf or -inf.

    Raises:
        InvalidArgumentError: There is no such norm.
    """
    x = matrices("matrix_norm", x)
    if ord == "fro":
        return vector_norm(x, axis=(-2, -1), keepdims=keepdims)
    if ord in (1, -1, math.inf, -math.inf):
        inner = -2 if ord in (1, -1) else -1
        sums = sum(abs(x), axis=inner, keepdims=True)
        found = (max if ord > 0 else min)(sums, axis=-3 - inner, keepdims=True)
    elif ord in ("nuc", 2, -2):
        values = svdvals(x)
        pick = sum if ord == "nuc" else max if ord == 2 else min
        found = expand_dims(pick(values, axis=-1, keepdims=True), axis=-1)
    else:
        raise InvalidArgumentError(f"matrix_norm(): there is no norm {ord!r}", location=user_line())
    return found if keepdims else sum(found, axis=(-2, -1))


def matrix_rank(x: TensorLike, /, *, rtol: TensorLike | None = None) -> Tensor:
    """How many singular values are larger than `rtol` times the largest (by default eps times the larger extent)."""
    x = matrices("matrix_rank", x)
    values = svdvals(x)
    limit = _limit(x, values, rtol)
    return sum(cast_if(greater(values, limit), int64), axis=-1)


def pinv(x: TensorLike, /, *, rtol: TensorLike | None = None) -> Tensor:
    """The pseudo-inverse of Moore and Penrose; singular values up to `rtol` times the largest count as zero."""
    x = matrices("pinv", x)
    u, s, vh = svd(x, full_matrices=False)
    kept = greater(s, _limit(x, s, rtol))
    inverse = where(kept, to_tensor(1.0, x.dtype) / where(kept, s, to_tensor(1.0, x.dtype)), to_tensor(0.0, x.dtype))
    return matmul(matrix_transpose(vh) * expand_dims(inverse, axis=-2), matrix_transpose(u))


def _limit(x: Tensor, values: Tensor, rtol: TensorLike | None) -> Tensor:
    rows, columns = (static("pinv", e) for e in x.shape[-2:])
    if rtol is None:
        share = to_tensor(float(np.finfo(x.dtype.numpy).eps) * (rows if rows > columns else columns), x.dtype)
    else:
        share = floating(rtol)
    return max(values, axis=-1, keepdims=True) * (expand_dims(share, axis=-1) if share.ndim else share)


def matrix_power(x: TensorLike, n: int, /) -> Tensor:
    """The n-th power of square matrices by repeated squaring; of the inverse for negative n."""
    x = matrices("matrix_power", x, square=True)
    if n < 0:
        return matrix_power(inv(x), -n)
    if n == 0:
        return broadcast_to(eye(static("matrix_power", x.shape[-1]), dtype=x.dtype), x.shape)
    result: Tensor | None = None
    while True:
        if n & 1:
            result = x if result is None else matmul(result, x)
        n >>= 1
        if not n:
            return result if result is not None else x
        x = matmul(x, x)


def cross(x1: TensorLike, x2: TensorLike, /, *, axis: int = -1) -> Tensor:
    """The cross product along an axis of three elements.

    Raises:
        InvalidArgumentError: The axis has another number of elements.
    """
    a, b = promoted(x1, x2)
    lowest = a.ndim if a.ndim < b.ndim else b.ndim
    if not -lowest <= axis < 0 and not (a.ndim == b.ndim and 0 <= axis < a.ndim):
        raise InvalidArgumentError(f"cross(): axis {axis} is not one of both operands", location=user_line())
    for x in (a, b):
        if isinstance(x.shape[axis], int) and x.shape[axis] != 3:
            raise InvalidArgumentError(
                f"cross(): the axis has {x.shape[axis]} elements, expected 3", location=user_line()
            )
    left = multiply(roll(a, -1, axis=axis), roll(b, 1, axis=axis))
    return subtract(left, multiply(roll(a, 1, axis=axis), roll(b, -1, axis=axis)))


def diagonal(x: TensorLike, /, *, offset: int = 0) -> Tensor:
    """The diagonal of matrices, `offset` to the right of the main one."""
    x = to_tensor(x)
    if x.ndim < 2:
        raise InvalidArgumentError(f"diagonal(): a tensor of rank {x.ndim} is no matrix", location=user_line())
    rows, columns = (static("diagonal", e) for e in x.shape[-2:])
    first_row, first_column = (0, offset) if offset >= 0 else (-offset, 0)
    count = rows - first_row if rows - first_row < columns - first_column else columns - first_column
    count = count if count > 0 else 0
    flat = reshape(x, (*x.shape[:-2], rows * columns))
    places = (np.arange(count) + first_row) * columns + np.arange(count) + first_column
    return take(flat, to_tensor(places.astype(np.int64)), axis=-1)


def trace(x: TensorLike, /, *, offset: int = 0, dtype: object = None) -> Tensor:
    """The sum of the diagonal of matrices."""
    return sum(diagonal(x, offset=offset), axis=-1, dtype=dtype)
