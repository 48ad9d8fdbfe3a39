"""Differences of neighbours, and places in sorted vectors."""

from __future__ import annotations

from typing import Literal

from sardonyx.dialects.dtypes import int64
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.functions.creation import cast_if
from sardonyx.frontend.functions.elementwise import equal, isnan, less, less_equal, logical_or, not_equal, subtract
from sardonyx.frontend.functions.gathering import slice, take
from sardonyx.frontend.functions.joining import concat
from sardonyx.frontend.functions.reductions import any, one_axis, sum
from sardonyx.frontend.functions.shape import expand_dims, reshape
from sardonyx.frontend.operands import TensorLike, promoted, to_tensor
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor


def diff(
    x: TensorLike, /, *, axis: int = -1, n: int = 1, prepend: TensorLike | None = None, append: TensorLike | None = None
) -> Tensor:
    """The differences of neighbours along an axis, `n` times.

    Raises:
        InvalidArgumentError: `n` is negative, or the tensor has no axes.
    """
    x = to_tensor(x)
    if n < 0:
        raise InvalidArgumentError(f"diff(): n is {n}, and must not be negative", location=user_line())
    axis = one_axis(axis, x.ndim)
    parts = [to_tensor(p) for p in (prepend, x, append) if p is not None]
    x = concat(parts, axis=axis) if len(parts) > 1 else x
    for _ in range(n):
        behind = slice(x, [1], [2**62], [axis])
        before = slice(x, [0], [-1], [axis])
        x = not_equal(behind, before) if x.dtype.kind == "b" else subtract(behind, before)
    return x


def searchsorted(
    x1: TensorLike,
    x2: TensorLike,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: TensorLike | None = None,
) -> Tensor:
    """Where the elements of `x2` would be put into the sorted vector `x1` (by `sorter`, where it is not sorted).

    Each is compared with all of `x1`. NaN counts as the greatest.

    Raises:
        InvalidArgumentError: `x1` is no vector, or `side` is neither.
    """
    if side not in ("left", "right"):
        raise InvalidArgumentError(f"searchsorted(): side is 'left' or 'right', not {side!r}", location=user_line())
    vector, values = promoted(x1, x2)
    if vector.ndim != 1:
        raise InvalidArgumentError(
            f"searchsorted(): x1 has rank {vector.ndim}, expected a vector", location=user_line()
        )
    if sorter is not None:
        vector = take(vector, to_tensor(sorter), axis=0)
    wanted = expand_dims(values, axis=-1)
    before = less(vector, wanted) if side == "left" else less_equal(vector, wanted)
    if values.dtype.is_float:
        before = logical_or(before, isnan(wanted) if side == "right" else isnan(wanted) & ~isnan(vector))
    return sum(cast_if(before, int64), axis=-1)


def isin(x1: TensorLike, x2: TensorLike, /, *, invert: bool = False) -> Tensor:
    """Which elements of `x1` occur in `x2`; those that don't, with `invert`."""
    a, b = promoted(x1, x2)
    found = any(equal(expand_dims(a, axis=-1), reshape(b, (-1,))), axis=-1)
    return ~found if invert else found
