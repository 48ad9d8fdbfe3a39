"""Taking elements: slice, gather, take."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.dialects.dtypes import int32, int64
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.apply import ints, op
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.functions.reductions import normalized_axes, one_axis
from sardonyx.frontend.functions.shape import expand, reshape, shape_tensor
from sardonyx.frontend.operands import TensorLike, cast, to_tensor
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor

END = int(np.iinfo(np.int64).max)
"""A bound that means 'to the end'."""


def indices_tensor(indices: TensorLike) -> Tensor:
    """Indices as a tensor of int32 or int64; lists are taken, too."""
    found = to_tensor(np.asarray(indices) if isinstance(indices, list | tuple) else indices)
    if not found.dtype.is_integer:
        raise InvalidArgumentError(f"indices are integers, not {found.dtype}", location=user_line())
    return found if found.dtype in (int32, int64) else cast(found, int64)


def gather(x: TensorLike, indices: TensorLike, axis: int = 0) -> Tensor:
    """The slices along an axis that the indices name; the axes of `indices` take that axis's place.

    Negative indices count from the end; one outside of [-extent, extent) is an error of the run.
    """
    x = to_tensor(x)
    return op("sx.gather", x, indices_tensor(indices), axis=one_axis(axis, x.ndim))


def take(x: TensorLike, indices: TensorLike, /, *, axis: int | None = None) -> Tensor:
    """`gather` under the array API's name; a vector needs no axis."""
    x = to_tensor(x)
    if axis is None:
        if x.ndim != 1:
            x = reshape(x, (-1,))
        axis = 0
    return gather(x, indices, axis)


def gather_elements(x: TensorLike, indices: TensorLike, axis: int = 0) -> Tensor:
    """For each index the element at its own position, but for the axis, where the index says."""
    x = to_tensor(x)
    return op("sx.gather_elements", x, indices_tensor(indices), axis=one_axis(axis, x.ndim))


def take_along_axis(x: TensorLike, indices: TensorLike, /, *, axis: int = -1) -> Tensor:
    """`gather_elements` under the array API's name; the other axes broadcast."""
    x, found = to_tensor(x), indices_tensor(indices)
    at = one_axis(axis, x.ndim)
    if found.ndim != x.ndim:
        raise InvalidArgumentError(
            f"take_along_axis(): indices have rank {found.ndim}, the tensor {x.ndim}", location=user_line()
        )
    ours, theirs = x.shape, found.shape
    others = [i for i in range(x.ndim) if i != at]
    if any(not (isinstance(ours[i], int) and isinstance(theirs[i], int) and ours[i] == theirs[i]) for i in others):
        wide = expand(found, [1 if i == at else extent for i, extent in enumerate(ours)])
        x, found = expand(x, [1 if i == at else extent for i, extent in enumerate(theirs)]), wide
    return op("sx.gather_elements", x, found, axis=at)


def gather_nd(x: TensorLike, indices: TensorLike, batch_dims: int = 0) -> Tensor:
    """The slices that tuples of indices name; the last axis of `indices` holds the tuples."""
    return op("sx.gather_nd", to_tensor(x), cast(indices_tensor(indices), int64), batch_dims=batch_dims)


# ---- slices

Bounds = tuple[Any, Any] | tuple[Any, Any, int]


def sliced(x: Tensor, bounds: Mapping[int, Bounds]) -> Tensor:
    """The tensor cut along some axes, each by (start, stop[, step]) as Python's slices have it.

    Bounds are ints, None, extents or integer tensors [].
    """
    kept: list[tuple[int, Any, Any, int]] = []
    for axis, bound in bounds.items():
        start, stop, step = (*bound, 1) if len(bound) == 2 else bound
        if step == 0:
            raise InvalidArgumentError("a slice has a step of 0", location=user_line())
        if start is None and stop is None and step == 1:
            continue
        start = (0 if step > 0 else -1) if start is None else start
        stop = (END if step > 0 else -END) if stop is None else stop
        kept.append((axis, start, stop, step))
    if not kept:
        return x
    steps = [step for *_, step in kept]
    return op(
        "sx.slice",
        x,
        shape_tensor([start for _, start, _, _ in kept]),
        shape_tensor([stop for _, _, stop, _ in kept]),
        ints(axis for axis, *_ in kept),
        None if all(s == 1 for s in steps) else ints(steps),
    )


def slice(
    x: TensorLike,
    starts: Sequence[Any],
    ends: Sequence[Any],
    axes: Sequence[int] | None = None,
    steps: Sequence[int] | None = None,
) -> Tensor:
    """Every `steps[i]`-th element from `starts[i]` to `ends[i]` (exclusive) along axis `axes[i]`, as ONNX has it."""
    x = to_tensor(x)
    starts, ends = _bounds(starts), _bounds(ends)
    where = tuple(range(len(starts))) if axes is None else normalized_axes(list(axes), x.ndim) or ()
    strides = [1] * len(starts) if steps is None else [operator.index(s) for s in steps]
    if not len(starts) == len(ends) == len(where) == len(strides):
        raise InvalidArgumentError("slice(): starts, ends, axes and steps have different lengths", location=user_line())
    return sliced(x, {a: (s, e, st) for a, s, e, st in zip(where, starts, ends, strides)})


def _bounds(values: Any) -> list[Any]:
    if isinstance(values, Tensor):
        if values.is_traced:
            raise InvalidArgumentError(
                "slice(): a vector of bounds is traced; give a list of tensors, one a bound", location=user_line()
            )
        return [int(v) for v in values.numpy().reshape(-1)]
    if isinstance(values, int | Extent):
        return [values]
    return list(values)
