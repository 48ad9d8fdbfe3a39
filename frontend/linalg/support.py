"""What the factorisations share: checks, columns by a number that only the run knows."""

from __future__ import annotations

from typing import Any

from sardonyx.dialects.dtypes import int64
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.functions.creation import arange
from sardonyx.frontend.functions.elementwise import equal
from sardonyx.frontend.functions.gathering import take
from sardonyx.frontend.operands import TensorLike, floating
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor


def matrices(call: str, x: TensorLike, square: bool = False) -> Tensor:
    """The operand as floats, with at least two axes; `square`: of equal extents.

    Raises:
        InvalidArgumentError: It has fewer, or they are known to differ.
    """
    found = floating(x)
    if found.ndim < 2:
        raise InvalidArgumentError(f"{call}(): a tensor of rank {found.ndim} is no matrix", location=user_line())
    rows, columns = found.shape[-2:]
    if square and isinstance(rows, int) and isinstance(columns, int) and rows != columns:
        raise InvalidArgumentError(f"{call}(): a matrix of {rows} x {columns} is not square", location=user_line())
    return found


def static(call: str, extent: Any) -> int:
    """An extent as a number.

    Raises:
        InvalidArgumentError: Only the run knows it.
    """
    if isinstance(extent, Extent):
        raise InvalidArgumentError(
            f"{call}(): the extents of the matrices must be numbers, not '{extent.dim}'", location=user_line()
        )
    return int(extent)


def positions(extent: Any) -> Tensor:
    """0, 1, … along an axis."""
    return arange(extent, dtype=int64)


def column(x: Tensor, number: Tensor) -> Tensor:
    """The column of that number, [..., rows]."""
    return take(x, number, axis=-1)


def row(x: Tensor, number: Tensor) -> Tensor:
    """The row of that number, [..., columns]."""
    return take(x, number, axis=-2)


def at(places: Tensor, number: Tensor) -> Tensor:
    """Which of the positions is the number."""
    return equal(places, number)
