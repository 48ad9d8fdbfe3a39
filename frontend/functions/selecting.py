"""Choosing and placing elements: top-k, sorting, scatter, positions of elements, distinct elements."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sardonyx.dialects.dtypes import DType, bool_, int64
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.apply import apply, ints, op
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.functions.gathering import gather, indices_tensor
from sardonyx.frontend.functions.reductions import one_axis
from sardonyx.frontend.functions.shape import reshape, shape_tensor, transpose
from sardonyx.frontend.operands import TensorLike, carrier_dtype, cast, common_dtype, scalar, to_tensor
from sardonyx.frontend.promotion import DEFAULT_FLOAT
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor


def topk(
    x: TensorLike, k: int | Extent | Tensor, axis: int = -1, *, largest: bool = True, sorted: bool = True
) -> tuple[Tensor, Tensor]:
    """The `k` greatest elements along an axis (the smallest without `largest`), and where they stand.

    Of equal elements the first comes first; NaN counts as the greatest.

    Raises:
        InferenceError: There are fewer than `k`.
    """
    x = to_tensor(x)
    wide = carrier_dtype("sx.top_k", x.dtype)
    count = shape_tensor([k])
    values, at = apply(
        "sx.top_k", cast(x, wide), count, axis=one_axis(axis, x.ndim), largest=bool(largest), sorted=bool(sorted)
    )
    return cast(values, x.dtype), at


def _sorted(x: TensorLike, axis: int, descending: bool) -> tuple[Tensor, Tensor]:
    x = to_tensor(x)
    return topk(x, x.shape[one_axis(axis, x.ndim)], axis, largest=descending)


def sort(x: TensorLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements in order along an axis; NaN counts as the greatest."""
    return _sorted(x, axis, descending)[0]


def argsort(x: TensorLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The positions that sort the elements along an axis; equal ones keep their order."""
    return _sorted(x, axis, descending)[1]


def scatter_elements(
    x: TensorLike, indices: TensorLike, updates: TensorLike, axis: int = 0, reduction: str = "none"
) -> Tensor:
    """`x` with each element of `updates` put at its own position, but along the axis where `indices` says.

    `reduction` combines it with what stands there: `add`, `mul`, `max`, `min`. Nothing is changed in place.

    Raises:
        ExecutionError: An index is out of range.
    """
    x = to_tensor(x)
    found = indices_tensor(indices)
    return op(
        "sx.scatter_elements", x, found, to_tensor(updates, x.dtype), axis=one_axis(axis, x.ndim), reduction=reduction
    )


def scatter_nd(x: TensorLike, indices: TensorLike, updates: TensorLike, reduction: str = "none") -> Tensor:
    """`x` with parts of `updates` put at the tuples of indices along the last axis of `indices`."""
    x = to_tensor(x)
    return op(
        "sx.scatter_nd", x, cast(indices_tensor(indices), int64), to_tensor(updates, x.dtype), reduction=reduction
    )


def tensor_scatter(
    cache: TensorLike,
    update: TensorLike,
    write_indices: TensorLike | None = None,
    axis: int = -2,
    *,
    circular: bool = False,
) -> Tensor:
    """A cache [batch, …] with `update` written along an axis from `write_indices[batch]` on (0 without it)."""
    cache = to_tensor(cache)
    at = None if write_indices is None else cast(indices_tensor(write_indices), int64)
    mode = "circular" if circular else "linear"
    return op("sx.tensor_scatter", cache, to_tensor(update, cache.dtype), at, axis=axis, mode=mode)


def argwhere(x: TensorLike) -> Tensor:
    """The coordinates of all elements that are not 0, a row each; how many is known when the graph runs."""
    return transpose(op("sx.non_zero", to_tensor(x)), (1, 0))


def nonzero(x: TensorLike, /) -> tuple[Tensor, ...]:
    """Per axis the positions of all elements that are not 0; how many is known when the graph runs.

    Raises:
        InvalidArgumentError: The tensor has rank 0.
    """
    x = to_tensor(x)
    if not x.ndim:
        raise InvalidArgumentError("nonzero() of a tensor of rank 0", location=user_line())
    found = op("sx.non_zero", x)
    return tuple(gather(found, axis, 0) for axis in range(x.ndim))


def compress(condition: TensorLike, x: TensorLike, axis: int | None = None) -> Tensor:
    """The slices along an axis (without it, the elements in order) for which the condition is true."""
    x = to_tensor(x)
    keep = to_tensor(np.asarray(condition) if isinstance(condition, list | tuple) else condition)
    return op("sx.compress", x, cast(keep, bool_), axis=None if axis is None else one_axis(axis, x.ndim))


# ---- distinct elements


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Tensor
    inverse_indices: Tensor


def unique(x: TensorLike, *, axis: int | None = None, sorted: bool = True) -> UniqueAll:
    """The distinct elements (or slices along an axis), where each is found first, which one each element is, and how
    often each occurs; in ascending order or, without `sorted`, in that of their first occurrence.

    NaNs are equal to each other. How many there are is known when the graph runs.
    """
    x = to_tensor(x)
    at = None if axis is None else one_axis(axis, x.ndim)
    return UniqueAll(*apply("sx.unique", x, axis=at, sorted=bool(sorted)))


def unique_all(x: TensorLike, /) -> UniqueAll:
    """The distinct elements in ascending order, where each is found first, which one each element of `x` is, and how
    often each occurs. NaNs are equal to each other."""
    x = to_tensor(x)
    values, indices, inverse, counts = unique(x)
    return UniqueAll(values, indices, reshape(inverse, x.shape), counts)


def unique_counts(x: TensorLike, /) -> UniqueCounts:
    """The distinct elements in ascending order, and how often each occurs."""
    values, _, _, counts = unique(x)
    return UniqueCounts(values, counts)


def unique_inverse(x: TensorLike, /) -> UniqueInverse:
    """The distinct elements in ascending order, and which one each element of `x` is."""
    values, _, inverse, _ = unique_all(x)
    return UniqueInverse(values, inverse)


def unique_values(x: TensorLike, /) -> Tensor:
    """The distinct elements in ascending order."""
    return unique(x).values


# ---- masks by index


def one_hot(
    indices: TensorLike,
    depth: int | Extent | Tensor,
    *,
    axis: int = -1,
    on_value: TensorLike = 1,
    off_value: TensorLike = 0,
    dtype: object = None,
) -> Tensor:
    """For each index a vector of `depth` elements along a new axis: `on_value` where the index says, else `off_value`.

    A negative index counts from the end; one out of range gives only `off_value`. The dtype is that of the values,
    the default float dtype for plain numbers.
    """
    found = indices_tensor(indices)
    if dtype is not None:
        target = DType.of(dtype)
    else:
        plain = not any(isinstance(v, Tensor) for v in (on_value, off_value))
        target = DEFAULT_FLOAT if plain else common_dtype([off_value, on_value])
    values = [
        scalar(v, target) if isinstance(v, bool | int | float) else to_tensor(v, target) for v in (off_value, on_value)
    ]
    both = op("sx.concat", [reshape(v, (1,)) for v in values], axis=0)
    return op("sx.one_hot", found, shape_tensor([depth]), both, axis=axis)


def reverse_sequence(x: TensorLike, lengths: TensorLike, *, batch_axis: int = 1, time_axis: int = 0) -> Tensor:
    """The first `lengths[b]` elements along the time axis reversed, for each b of the batch axis."""
    found = cast(indices_tensor(lengths), int64)
    return op("sx.reverse_sequence", to_tensor(x), found, batch_axis=batch_axis, time_axis=time_axis)


def non_max_suppression(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_boxes_per_class: int,
    iou_threshold: float = 0.0,
    score_threshold: float | None = None,
    *,
    center_point_box: bool = False,
) -> Tensor:
    """Rows (batch, class, box) of the boxes that stay once those that overlap a better one are dropped.

    `boxes` are [batches, boxes, 4] (two corners y, x; or centre x, y, width and height), `scores` [batches, classes,
    boxes]; both float32. How many stay is known when the graph runs.
    """
    float32 = DType.of("float32")
    return op(
        "sx.non_max_suppression",
        to_tensor(boxes, float32),
        to_tensor(scores, float32),
        ints([max_output_boxes_per_class]),
        reshape(scalar(iou_threshold, float32), (1,)),
        None if score_threshold is None else reshape(scalar(score_threshold, float32), (1,)),
        center_point_box=int(center_point_box),
    )


top_k, scatter = topk, scatter_elements
