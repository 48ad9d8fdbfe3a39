"""Eigenvalues and singular values by Jacobi's rotations, all pairs of a round of the tournament at once.

Golub and Van Loan, Matrix Computations, sections 8.5 and 8.6: each round rotates n/2 disjoint pairs of columns, n - 1
rounds meet every pair, and sweeps are repeated until nothing is left to rotate (at most 30 of them).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sardonyx.frontend.functions.control import fori_loop, while_loop
from sardonyx.frontend.functions.creation import eye, zeros
from sardonyx.frontend.functions.elementwise import (
    abs,
    equal,
    greater,
    less,
    logical_and,
    maximum,
    multiply,
    sqrt,
    where,
)
from sardonyx.frontend.functions.gathering import slice, take, take_along_axis
from sardonyx.frontend.functions.joining import concat
from sardonyx.frontend.functions.linalg import matrix_transpose
from sardonyx.frontend.functions.reductions import max, sum
from sardonyx.frontend.functions.selecting import argsort
from sardonyx.frontend.functions.shape import broadcast_to, expand_dims
from sardonyx.frontend.linalg.compiled import compiled_from
from sardonyx.frontend.linalg.factorizations import qr
from sardonyx.frontend.linalg.support import matrices, static
from sardonyx.frontend.operands import TensorLike, to_tensor
from sardonyx.frontend.tensor import Tensor

SWEEPS = 30
"""More are never needed: convergence is quadratic."""


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, and the eigenvectors as columns."""

    eigenvalues: Tensor
    eigenvectors: Tensor


class SVDResult(NamedTuple):
    """`x = U diag(S) Vh`, the singular values in descending order."""

    U: Tensor
    S: Tensor
    Vh: Tensor


def _tournament(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For an even number of players: the rounds' first and second players, and where each player stands in the
    concatenation of both."""
    circle = list(range(1, count))
    first, second, back = [], [], []
    for _ in range(count - 1):
        order = [0, *circle]
        half = count // 2
        a, b = order[:half], order[half:][::-1]
        first.append(a)
        second.append(b)
        back.append(np.argsort(np.array(a + b)))
        circle = circle[-1:] + circle[:-1]
    return np.array(first), np.array(second), np.array(back)


def _rotation(app: Tensor, aqq: Tensor, apq: Tensor, negligible: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine of the angle that makes the off-diagonal element zero; none where it is negligible."""
    dtype = app.dtype
    one, zero = to_tensor(1.0, dtype), to_tensor(0.0, dtype)
    safe = where(negligible, one, apq)
    zeta = (aqq - app) / (safe + safe)
    tangent = where(less(zeta, 0.0), -one, one) / (abs(zeta) + sqrt(zeta * zeta + 1.0))
    tangent = where(negligible, zero, tangent)
    cosine = one / sqrt(tangent * tangent + 1.0)
    return cosine, cosine * tangent


def _turned(x: Tensor, a: Tensor, b: Tensor, back: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """Pairs of columns rotated: a' = c a - s b, b' = s a + c b."""
    left, right = take(x, a, axis=-1), take(x, b, axis=-1)
    c, s = expand_dims(cosine, axis=-2), expand_dims(sine, axis=-2)
    return take(concat([c * left - s * right, s * left + c * right], axis=-1), back, axis=-1)


def _padded(x: Tensor, rows: int, columns: int) -> Tensor:
    """The matrices with zeros behind their rows and columns."""
    if columns:
        x = concat([x, zeros((*x.shape[:-1], columns), dtype=x.dtype)], axis=-1)
    if rows:
        x = concat([x, zeros((*x.shape[:-2], rows, x.shape[-1]), dtype=x.dtype)], axis=-2)
    return x


@compiled_from(6)
def eigh(x: TensorLike, /) -> EighResult:
    """Eigenvalues and eigenvectors of symmetric matrices; the lower triangle is read.

    Raises:
        InvalidArgumentError: The matrices are not square, or their extents are not numbers.
    """
    x = matrices("eigh", x, square=True)
    count = static("eigh", x.shape[-1])
    if count < 2:
        values = take(x, to_tensor(0), axis=-1) if count else sum(x, axis=-1)
        return EighResult(values, broadcast_to(eye(count, dtype=x.dtype), x.shape))
    numbers = np.arange(count)
    lower = to_tensor(numbers[:, None] >= numbers)
    strict = to_tensor(numbers[:, None] > numbers)
    x = where(lower, x, to_tensor(0.0, x.dtype))
    x = x + where(matrix_transpose(strict), matrix_transpose(x), to_tensor(0.0, x.dtype))
    odd = count % 2
    work = _padded(x, odd, odd)
    size = count + odd
    vectors = broadcast_to(eye(size, dtype=x.dtype), work.shape)
    first, second, back = (to_tensor(t) for t in _tournament(size))
    apart = to_tensor(1.0 - np.eye(size), x.dtype)
    # What rounding alone leaves off the diagonal grows with the extent.
    limit = to_tensor(float(np.finfo(x.dtype.numpy).eps) * size, x.dtype)
    scale = max(abs(work))

    def round_(j: Tensor, state: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        a, v = state
        p, q, order = (take(t, j, axis=0) for t in (first, second, back))
        app, aqq, apq = (_entries(a, r, c) for r, c in ((p, p), (q, q), (p, q)))
        negligible = equal(apq, 0.0)
        c, s = _rotation(app, aqq, apq, negligible)
        a = _turned(a, p, q, order, c, s)
        a = matrix_transpose(_turned(matrix_transpose(a), p, q, order, c, s))
        return a, _turned(v, p, q, order, c, s)

    def sweep(state: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        number, a, v = state
        a, v = fori_loop(0, size - 1, round_, (a, v))
        return number + 1, a, v

    def unfinished(state: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        number, a, _ = state
        return logical_and(less(number, SWEEPS), greater(max(abs(a * apart)), limit * scale))

    _, work, vectors = while_loop(unfinished, sweep, (to_tensor(0), work, vectors))
    values = sum(work * to_tensor(np.eye(size), x.dtype), axis=-1)
    values = slice(values, [0], [count], [-1])
    vectors = slice(slice(vectors, [0], [count], [-1]), [0], [count], [-2])
    order = argsort(values, axis=-1)
    wanted = broadcast_to(expand_dims(order, axis=-2), vectors.shape)
    return EighResult(take_along_axis(values, order, axis=-1), take_along_axis(vectors, wanted, axis=-1))


def _entries(a: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The entries (rows[i], columns[i]) of each matrix."""
    chosen = take(a, rows, axis=-2)
    wanted = broadcast_to(expand_dims(columns, axis=-1), (*chosen.shape[:-1], 1))
    return take(take_along_axis(chosen, wanted, axis=-1), to_tensor(0), axis=-1)


@compiled_from(6)
def eigvalsh(x: TensorLike, /) -> Tensor:
    """The eigenvalues of symmetric matrices, in ascending order."""
    return eigh(x).eigenvalues


@compiled_from(6)
def svd(x: TensorLike, /, *, full_matrices: bool = True) -> SVDResult:
    """Singular values and vectors, by rotations of columns that make them orthogonal (Hestenes).

    Raises:
        InvalidArgumentError: The extents of the matrices are not numbers.
    """
    x = matrices("svd", x)
    rows, columns = static("svd", x.shape[-2]), static("svd", x.shape[-1])
    if rows < columns:
        u, s, vh = svd(matrix_transpose(x), full_matrices=full_matrices)
        return SVDResult(matrix_transpose(vh), s, matrix_transpose(u))
    turned, v = _orthogonal_columns(x, columns)
    lengths = sqrt(sum(turned * turned, axis=-2))
    order = argsort(lengths, axis=-1, descending=True)
    values = take_along_axis(lengths, order, axis=-1)
    turned = _columns(turned, order)
    v = _columns(v, order)
    # Householder gives an orthonormal basis also where singular values are zero; it differs from the columns by signs.
    q, r = qr(turned, mode="complete" if full_matrices else "reduced")
    heads = sum(slice(r, [0], [columns], [-2]) * to_tensor(np.eye(columns), x.dtype), axis=-1)
    signs = where(less(heads, 0.0), to_tensor(-1.0, x.dtype), to_tensor(1.0, x.dtype))
    if full_matrices and rows > columns:
        from sardonyx.frontend.functions.creation import ones

        signs = concat([signs, ones((*signs.shape[:-1], rows - columns), dtype=x.dtype)], axis=-1)
    return SVDResult(multiply(q, expand_dims(signs, axis=-2)), values, matrix_transpose(v))


def _columns(x: Tensor, order: Tensor) -> Tensor:
    wanted = broadcast_to(expand_dims(order, axis=-2), (*x.shape[:-1], order.shape[-1]))
    return take_along_axis(x, wanted, axis=-1)


def _orthogonal_columns(x: Tensor, columns: int) -> tuple[Tensor, Tensor]:
    """`x v` with orthogonal columns, and the orthogonal v."""
    unit = broadcast_to(eye(columns, dtype=x.dtype), (*x.shape[:-2], columns, columns))
    if columns < 2:
        return x, unit
    odd = columns % 2
    size = columns + odd
    work, v = _padded(x, 0, odd), _padded(unit, odd, odd)
    first, second, back = (to_tensor(t) for t in _tournament(size))
    rows = static("svd", x.shape[-2])
    limit = to_tensor(float(np.finfo(x.dtype.numpy).eps) * (rows if rows > 4 else 4), x.dtype)

    def round_(j: Tensor, state: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor, Tensor]:
        a, v, worst = state
        p, q, order = (take(t, j, axis=0) for t in (first, second, back))
        left, right = take(a, p, axis=-1), take(a, q, axis=-1)
        app, aqq = sum(left * left, axis=-2), sum(right * right, axis=-2)
        apq = sum(left * right, axis=-2)
        bound = limit * sqrt(app) * sqrt(aqq)
        negligible = ~greater(abs(apq), bound)
        c, s = _rotation(app, aqq, apq, negligible)
        worst = maximum(worst, max(where(negligible, to_tensor(0.0, x.dtype), to_tensor(1.0, x.dtype))))
        return _turned(a, p, q, order, c, s), _turned(v, p, q, order, c, s), worst

    def sweep(state: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        number, a, v, _ = state
        a, v, worst = fori_loop(0, size - 1, round_, (a, v, to_tensor(0.0, x.dtype)))
        return number + 1, a, v, worst

    def unfinished(state: tuple[Tensor, ...]) -> Tensor:
        return logical_and(less(state[0], SWEEPS), greater(state[3], 0.0))

    _, work, v, _ = while_loop(unfinished, sweep, (to_tensor(0), work, v, to_tensor(1.0, x.dtype)))
    return slice(work, [0], [columns], [-1]), slice(slice(v, [0], [columns], [-1]), [0], [columns], [-2])


@compiled_from(6)
def svdvals(x: TensorLike, /) -> Tensor:
    """The singular values, in descending order."""
    return svd(x, full_matrices=False).S
