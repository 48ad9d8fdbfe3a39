"""Cholesky, LU by Gauss and Jordan, and QR by Householder: one step for each column, in a loop of the graph.

Golub and Van Loan, Matrix Computations, chapters 3 to 5. Data cannot raise in a graph: a matrix that is not positive
definite gives NaN, a singular one infinities or NaN.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from sardonyx.dialects.dtypes import int64
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.functions.control import fori_loop
from sardonyx.frontend.functions.creation import eye, full_like, ones_like, zeros_like
from sardonyx.frontend.functions.elementwise import (
    abs,
    equal,
    greater_equal,
    less,
    log,
    multiply,
    sqrt,
    where,
)
from sardonyx.frontend.functions.gathering import slice, take, take_along_axis
from sardonyx.frontend.functions.linalg import matmul, matrix_transpose
from sardonyx.frontend.functions.reductions import argmax, sum
from sardonyx.frontend.functions.shape import broadcast_to, expand_dims
from sardonyx.frontend.linalg.compiled import compiled_from
from sardonyx.frontend.linalg.support import at, column, matrices, positions, row, static
from sardonyx.frontend.operands import TensorLike, promoted, to_tensor
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor


class QRResult(NamedTuple):
    """An orthonormal `Q` and an upper triangular `R`."""

    Q: Tensor
    R: Tensor


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""

    sign: Tensor
    logabsdet: Tensor


@compiled_from(32)
def cholesky(x: TensorLike, /, *, upper: bool = False) -> Tensor:
    """The triangular L with `L L' = x` (or U with `U' U = x`) of symmetric positive definite matrices."""
    x = matrices("cholesky", x, square=True)
    places = positions(x.shape[-1])

    def step(j: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        rest, factor = state
        current = column(rest, j)
        pivot = sqrt(take(current, j, axis=-1))
        new = where(greater_equal(places, j), current / expand_dims(pivot, axis=-1), to_tensor(0.0, x.dtype))
        outer = expand_dims(new, axis=-1) * expand_dims(new, axis=-2)
        placed = where(at(places, j), expand_dims(new, axis=-1), to_tensor(0.0, x.dtype))
        return rest - outer, factor + placed

    _, lower = fori_loop(0, x.shape[-1], step, (x, zeros_like(x)))
    return matrix_transpose(lower) if upper else lower


def _eliminated(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """`inverse(a) b` by Gauss and Jordan with partial pivoting, with the sign and the logarithm of |det a|."""
    places = positions(a.shape[-1])
    count = a.shape[-1]
    zero = to_tensor(0.0, a.dtype)

    def step(j: Tensor, state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        left, right, sign, size = state
        candidates = where(greater_equal(places, j), abs(column(left, j)), to_tensor(-1.0, a.dtype))
        best = argmax(candidates, axis=-1, keepdims=True)
        order = where(at(places, j), best, where(equal(places, best), j, places))
        left, right = _rows(left, order), _rows(right, order)
        pivots = column(left, j)
        pivot = take(pivots, j, axis=-1)
        swapped = take(best, to_tensor(0, int64), axis=-1)
        turned = where(equal(swapped, j), to_tensor(1.0, a.dtype), to_tensor(-1.0, a.dtype))
        sign = multiply(sign, turned * where(less(pivot, 0.0), to_tensor(-1.0, a.dtype), to_tensor(1.0, a.dtype)))
        sign = where(equal(pivot, 0.0), zero, sign)
        size = size + log(abs(pivot))
        own = expand_dims(at(places, j), axis=-1)
        scale = expand_dims(expand_dims(pivot, axis=-1), axis=-1)
        factors = where(own, zero, expand_dims(pivots, axis=-1))
        normal_left, normal_right = (
            expand_dims(row(left, j), axis=-2) / scale,
            expand_dims(row(right, j), axis=-2) / scale,
        )
        left = where(own, normal_left, left - factors * normal_left)
        right = where(own, normal_right, right - factors * normal_right)
        return left, right, sign, size

    first = take(take(a, to_tensor(0, int64), axis=-1), to_tensor(0, int64), axis=-1) if _has_rows(a) else None
    if first is None:
        batch = sum(sum(a, axis=-1), axis=-1)
        return b, ones_like(batch), zeros_like(batch)
    state = (a, b, ones_like(first), zeros_like(first))
    _, solved, sign, size = fori_loop(0, count, step, state)
    return solved, sign, size


def _has_rows(x: Tensor) -> bool:
    return x.shape[-1] != 0 if isinstance(x.shape[-1], int) else True


def _rows(x: Tensor, order: Tensor) -> Tensor:
    """The rows in another order."""
    wanted = broadcast_to(expand_dims(order, axis=-1), x.shape)
    return take_along_axis(x, wanted, axis=-2)


@compiled_from(24)
def solve(x1: TensorLike, x2: TensorLike, /) -> Tensor:
    """The y with `x1 y = x2`; `x2` is a vector, or matrices with as many rows.

    Raises:
        InvalidArgumentError: `x1` is not square.
    """
    a, b = promoted(x1, x2, floating=True)
    a = matrices("solve", a, square=True)
    vector = b.ndim == 1
    b = expand_dims(b, axis=-1) if vector else b
    if b.ndim < 2:
        raise InvalidArgumentError("solve(): the right side has no rows", location=user_line())
    batch = _broadcast_batch(a, b)
    solved, _, _ = _eliminated(broadcast_to(a, (*batch, *a.shape[-2:])), broadcast_to(b, (*batch, *b.shape[-2:])))
    return take(solved, to_tensor(0, int64), axis=-1) if vector else solved


def _broadcast_batch(a: Tensor, b: Tensor) -> tuple[Any, ...]:
    from sardonyx.frontend.functions.shape import broadcast_shapes

    return tuple(broadcast_shapes(a.shape[:-2], b.shape[:-2]))


@compiled_from(24)
def inv(x: TensorLike, /) -> Tensor:
    """The inverse of square matrices."""
    x = matrices("inv", x, square=True)
    unit = where(_diagonal_mask(x), ones_like(x), zeros_like(x))
    return _eliminated(x, unit)[0]


@compiled_from(24)
def slogdet(x: TensorLike, /) -> SlogdetResult:
    """The sign and the logarithm of the absolute value of the determinant; 0 and -inf for a singular matrix."""
    x = matrices("slogdet", x, square=True)
    _, sign, size = _eliminated(x, x)
    return SlogdetResult(sign, where(equal(sign, 0.0), full_like(size, -float("inf")), size))


def _diagonal_mask(x: Tensor) -> Tensor:
    places = positions(x.shape[-1])
    return equal(expand_dims(places, axis=-1), places)


@compiled_from(16)
def qr(x: TensorLike, /, *, mode: Literal["reduced", "complete"] = "reduced") -> QRResult:
    """`x = Q R` by Householder reflections.

    Raises:
        InvalidArgumentError: The mode is neither, or the number of rows is not a number.
    """
    if mode not in ("reduced", "complete"):
        raise InvalidArgumentError(f"qr(): mode is 'reduced' or 'complete', not {mode!r}", location=user_line())
    x = matrices("qr", x)
    rows, columns = static("qr", x.shape[-2]), static("qr", x.shape[-1])
    count = min(rows, columns)
    places = positions(rows)
    zero, one = to_tensor(0.0, x.dtype), to_tensor(1.0, x.dtype)
    # Q's rows times those of x: a unit matrix for each of the batch.
    start = broadcast_to(eye(rows, dtype=x.dtype), (*x.shape[:-2], rows, rows))

    def step(j: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        q, r = state
        below = where(greater_equal(places, j), column(r, j), zero)
        size = sqrt(sum(below * below, axis=-1, keepdims=True))
        head = expand_dims(take(below, j, axis=-1), axis=-1)
        normal = below + where(at(places, j), where(less(head, 0.0), -size, size), zero)
        length = sum(normal * normal, axis=-1, keepdims=True)
        scale = where(equal(length, 0.0), zero, to_tensor(2.0, x.dtype) / where(equal(length, 0.0), one, length))
        v = expand_dims(normal, axis=-1)
        across = matrix_transpose(v)
        weight = expand_dims(scale, axis=-1)
        r = r - weight * matmul(v, matmul(across, r))
        q = q - weight * matmul(matmul(q, v), across)
        return q, r

    q, r = fori_loop(0, count, step, (start, x)) if count else (start, x)
    upper = greater_equal(positions(columns), expand_dims(places, axis=-1))
    r = where(upper, r, zero)
    if mode == "reduced":
        q, r = slice(q, [0], [count], [-1]), slice(r, [0], [count], [-2])
    return QRResult(q, r)
