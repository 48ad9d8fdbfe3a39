"""`x[…]`: ints, slices, None, Ellipsis and integer tensors, as NumPy has them.

An int takes its slice by a gather, so that one out of range is an error and not an empty result; slices of all axes are
one op. Integer tensors follow NumPy's rules: their axes stand where the indexed axes stood, or in front where a slice
lies between them.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np

from sardonyx.dialects.dtypes import int64
from sardonyx.errors import InvalidArgumentError, OutOfRangeError, UnsupportedError
from sardonyx.frontend.apply import op
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.operands import cast, is_tensor_like, to_tensor
from sardonyx.frontend.rewrites import rewrite_of_line
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor, is_bool


@dataclass
class _Parts:
    """An index taken apart; axes are those of the indexed tensor."""

    slices: dict[int, tuple[Any, Any, int]]
    arrays: dict[int, Tensor]
    """Indices of axes: integer tensors; ints are tensors []."""
    new_axes: list[int]
    """How many of the tensor's axes come before each new one."""
    has_tensors: bool = False
    """Whether an index is a tensor: ints then take part in NumPy's advanced indexing."""


def index(x: Tensor, key: object) -> Tensor:
    """The part of a tensor that an index names.

    Raises:
        InvalidArgumentError: There are too many indices, or one is out of range or of another type.
        UnsupportedError: An index is a boolean mask of a traced tensor.
    """
    from sardonyx.frontend.functions.gathering import sliced

    keys = list(key) if isinstance(key, tuple) else [key]
    if any(_is_mask(k) for k in keys):
        return _by_mask(x, key)
    parts = _parse(x, keys)
    out = sliced(x, parts.slices)
    if parts.has_tensors:
        if parts.new_axes:
            out, parts.arrays = _with_new_axes(out, parts)
        return _advanced(out, parts.arrays)
    return _insert(_at_ints(out, parts.arrays), parts)


def _is_mask(key: object) -> bool:
    if isinstance(key, bool | np.bool_):
        return True
    if isinstance(key, list):
        return bool(key) and all(isinstance(k, bool | np.bool_) for k in key)
    return is_tensor_like(key) and not isinstance(key, Extent) and is_bool(to_tensor(key))


def _by_mask(x: Tensor, key: object) -> Tensor:
    keys = list(key) if isinstance(key, tuple) else [key]
    if x.is_traced or any(isinstance(k, Tensor) and k.is_traced for k in keys):
        raise UnsupportedError(
            "a boolean mask as an index: how many elements it takes is known only when the graph runs; use "
            "sardonyx.where(mask, x, other), which keeps the shape, or sardonyx.compress",
            location=user_line(),
            hint=rewrite_of_line(),
        )
    plain: list[Any] = [np.asarray(k) if isinstance(k, Tensor) else k for k in keys]
    where: Any = tuple(plain) if isinstance(key, tuple) else plain[0]
    try:
        return Tensor.of_array(np.asarray(x.numpy()[where]))
    except IndexError as error:
        raise OutOfRangeError(f"x[mask]: {error}", location=user_line()) from None


def _parse(x: Tensor, keys: list[Any]) -> _Parts:
    rank = x.ndim
    taken = sum(1 for k in keys if k is not None and k is not Ellipsis)
    if taken > rank:
        raise OutOfRangeError(f"{taken} indices for a tensor of rank {rank}", location=user_line())
    if sum(1 for k in keys if k is Ellipsis) > 1:
        raise InvalidArgumentError("an index has more than one '...'", location=user_line())
    parts = _Parts({}, {}, [])
    axis = 0
    for k in keys:
        if k is Ellipsis:
            axis += rank - taken
        elif k is None:
            parts.new_axes.append(axis)
        else:
            _parse_one(x, axis, k, parts)
            axis += 1
    return parts


def _parse_one(x: Tensor, axis: int, key: Any, parts: _Parts) -> None:
    if isinstance(key, slice):
        step = 1 if key.step is None else operator.index(key.step)
        parts.slices[axis] = (_bound(key.start), _bound(key.stop), step)
        return
    if isinstance(key, list):
        key = np.asarray(key if key else np.zeros(0, np.int64))
    if isinstance(key, Extent):
        parts.arrays[axis] = key.scalar()
        return
    if isinstance(key, Tensor | np.ndarray) and not (isinstance(key, np.ndarray) and not key.ndim):
        found = to_tensor(key)
        if not found.dtype.is_integer:
            raise InvalidArgumentError(f"an index is of integers, not {found.dtype}", location=user_line())
        parts.arrays[axis] = cast(found, int64)
        parts.has_tensors |= found.ndim > 0
        return
    try:
        number = operator.index(key)
    except TypeError:
        raise InvalidArgumentError(
            f"an index is an int, a slice, None, ... or an integer tensor, not {type(key).__name__}",
            location=user_line(),
        ) from None
    extent = x.shape[axis]
    if isinstance(extent, int) and not -extent <= number < extent:
        raise OutOfRangeError(
            f"index {number} is out of range for axis {axis} with extent {extent}", location=user_line()
        )
    parts.arrays[axis] = Tensor.of_array(np.array(number, np.int64))


def _bound(value: Any) -> Any:
    if value is None or isinstance(value, Extent):
        return value
    if isinstance(value, Tensor) and value.is_traced:
        return value
    return operator.index(value)


def _at_ints(x: Tensor, arrays: dict[int, Tensor]) -> Tensor:
    """The slices at single positions, without those axes."""
    for axis in sorted(arrays, reverse=True):
        x = op("sx.gather", x, arrays[axis], axis=axis)
    return x


def _insert(x: Tensor, parts: _Parts) -> Tensor:
    """The new axes put in."""
    from sardonyx.frontend.functions.shape import unsqueeze

    if not parts.new_axes:
        return x
    return unsqueeze(x, [_place(before, n, parts) for n, before in enumerate(parts.new_axes)])


def _place(before: int, number: int, parts: _Parts) -> int:
    return before - sum(1 for a in parts.arrays if a < before) + number


def _with_new_axes(x: Tensor, parts: _Parts) -> tuple[Tensor, dict[int, Tensor]]:
    """The new axes put in before tensors index, whose axes move on."""
    from sardonyx.frontend.functions.shape import unsqueeze

    out = unsqueeze(x, [before + n for n, before in enumerate(parts.new_axes)])
    moved = {a + sum(1 for before in parts.new_axes if before <= a): t for a, t in parts.arrays.items()}
    return out, moved


def _advanced(x: Tensor, arrays: dict[int, Tensor]) -> Tensor:
    """Indexing by integer tensors, broadcast together."""
    from sardonyx.frontend.functions.joining import concat
    from sardonyx.frontend.functions.shape import broadcast_arrays, transpose, unsqueeze

    axes = sorted(arrays)
    if len(axes) == 1:
        return op("sx.gather", x, arrays[axes[0]], axis=axes[0])
    indices = broadcast_arrays(*(arrays[a] for a in axes))
    tuples = concat([unsqueeze(i, -1) for i in indices], axis=-1)
    rest = [a for a in range(x.ndim) if a not in axes]
    front = x if axes == list(range(len(axes))) else transpose(x, [*axes, *rest])
    out = op("sx.gather_nd", front, tuples)
    place = axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0
    width = indices[0].ndim
    if not place:
        return out
    # The result is [indices…, rest…]; the first `place` of the rest belong in front.
    order = [*range(width, width + place), *range(width), *range(width + place, out.ndim)]
    return transpose(out, order)
