"""Putting elements: scatter in all its forms, and writes into parts of a tensor."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sardonyx.dialects.dtypes import DType, bool_, int32, int64, uint8
from sardonyx.frontend.apply import op
from sardonyx.frontend.functions import (
    creation as c,
    elementwise as e,
    gathering as g,
    joining as j,
    reductions as r,
    shape as s,
)
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.aten.indexing import covering, without_masks
from sardonyx.frontend.torch.registry import Call, aten, axis_of, constant


def _put(x: Tensor, dim: int, index: Tensor, source: Tensor, reduction: str = "none") -> Tensor:
    """Elements put along an axis; a source may have more than the index names."""
    shape = x.shape
    if not x.ndim or not index.ndim:
        x, index, source = (s.reshape(v, (-1,)) for v in (x, index, source))
        dim = 0
    at = axis_of(dim, x.ndim)
    source = covering(source, index, -1)
    wide, carrier = x, x.dtype
    if x.dtype == bool_ and reduction != "none":
        wide, source, carrier = e.cast(x, int32), e.cast(source, int32), int32
    found = op("sx.scatter_elements", wide, index, e.cast(source, carrier), axis=at, reduction=reduction)
    return s.reshape(e.cast(found, x.dtype), shape) if not shape else e.cast(found, x.dtype)


@aten("scatter.src", "scatter.reduce")
def scatter(n: Call, x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str = "") -> Tensor:
    return _put(x, dim, index, src, _REDUCTIONS.get(reduce, "none"))


@aten("scatter.value", "scatter.value_reduce")
def scatter_value(n: Call, x: Tensor, dim: int, index: Tensor, value: Any, reduce: str = "") -> Tensor:
    return _put(x, dim, index, c.full(index.shape, n.to(value)), _REDUCTIONS.get(reduce, "none"))


@aten("scatter_add.default")
def scatter_add(n: Call, x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    return _put(x, dim, index, src, "add")


_REDUCTIONS = {
    "sum": "add", "add": "add", "prod": "mul", "multiply": "mul", "amax": "max", "amin": "min", "mean": "add",
}  # fmt: skip


@aten("scatter_reduce.two")
def scatter_reduce(
    n: Call, x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    return _reduced(n, x, dim, index, src, reduce, include_self)


def _reduced(n: Call, x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    start = x if include_self else _put(x, dim, index, c.full(index.shape, _neutral(reduce, x.dtype)))
    found = _put(start, dim, index, src, _REDUCTIONS[reduce])
    if reduce != "mean":
        return found
    ones = c.full(x.shape, constant(int(include_self), int64))
    counts = _put(ones, dim, index, c.full(index.shape, constant(1, int64)), "add")
    counts = e.maximum(counts, constant(1, int64))
    if x.dtype.is_float:
        return e.divide(found, e.cast(counts, x.dtype))
    return e.floor_divide(found, e.cast(counts, x.dtype))


def _neutral(reduce: str, dtype: DType) -> Tensor:
    if reduce in ("sum", "mean", "add"):
        return constant(0, dtype)
    if reduce in ("prod", "multiply"):
        return constant(1, dtype)
    high = reduce == "amin"
    if dtype.is_float:
        return constant(math.inf if high else -math.inf, dtype)
    if dtype == bool_:
        return constant(high, dtype)
    limits = np.iinfo(dtype.numpy)
    return constant(int(limits.max if high else limits.min), dtype)


# ---- by lists of positions


def _spread(index: Tensor, like: Tensor, at: int) -> Tensor:
    """A list of positions along an axis as indices of the shape of `like`."""
    flat = s.reshape(index, (-1,))
    lined = s.reshape(flat, [-1 if a == at else 1 for a in range(like.ndim)])
    return s.broadcast_to(lined, like.shape)


@aten("index_add.default")
def index_add(n: Call, x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> Tensor:
    scaled = source if alpha == 1 else e.multiply(source, n.to(alpha))
    return _along(x, dim, index, scaled, "add")


@aten("index_copy.default")
def index_copy(n: Call, x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    return _along(x, dim, index, source, "none")


@aten("index_fill.int_Scalar", "index_fill.int_Tensor")
def index_fill(n: Call, x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    if not x.ndim:
        return s.reshape(index_fill(n, s.reshape(x, (1,)), 0, index, value), ())
    at = axis_of(dim, x.ndim)
    count = s.reshape(index, (-1,)).shape[0]
    shape = [count if a == at else extent for a, extent in enumerate(x.shape)]
    return _along(x, dim, index, c.full(shape, n.to(value)), "none")


@aten("index_reduce.default")
def index_reduce(
    n: Call, x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    if not x.ndim:
        x, source = s.reshape(x, (1,)), s.reshape(source, (-1,))
        return s.reshape(_reduced(n, x, 0, s.reshape(index, (-1,)), source, reduce, include_self), ())
    at = axis_of(dim, x.ndim)
    return _reduced(n, x, at, _spread(index, source, at), source, reduce, include_self)


def _along(x: Tensor, dim: int, index: Tensor, source: Tensor, reduction: str) -> Tensor:
    if not x.ndim:
        flat = [s.reshape(v, (-1,)) for v in (x, index, source)]
        return s.reshape(_put(flat[0], 0, flat[1], flat[2], reduction), ())
    at = axis_of(dim, x.ndim)
    if source.ndim < x.ndim:
        source = s.unsqueeze(source, at)
    return _put(x, at, _spread(index, source, at), source, reduction)


# ---- by tuples of positions


@aten("index_put.default", "_unsafe_index_put.default", "_index_put_impl.default")
def index_put(
    n: Call, x: Tensor, indices: Any, values: Tensor, accumulate: bool = False, unsafe: bool = False
) -> Tensor:
    given = list(indices)
    masks = [i for i in given if i is not None and i.dtype in (bool_, uint8)]
    only = [i for i in given if i is not None]
    if len(masks) == len(only) == 1 and given[0] is not None and not accumulate and _is_one(values):
        mask = e.cast(masks[0], bool_)
        mask = s.reshape(mask, [*mask.shape, *([1] * (x.ndim - mask.ndim))])
        return e.where(mask, s.reshape(n.to(values), ()), x)
    found = without_masks(n, x, given)
    axes = [a for a, i in enumerate(found) if i is not None]
    if not axes:
        return e.add(x, s.broadcast_to(values, x.shape)) if accumulate else s.broadcast_to(values, x.shape)
    rest = [a for a in range(x.ndim) if a not in axes]
    positions = s.broadcast_arrays(*(i for i in found if i is not None))
    tuples = j.concat([s.unsqueeze(e.cast(p, int64), -1) for p in positions], -1)
    width = positions[0].ndim
    # Where values stand is where indexing would take them: at the first axis if the axes are neighbours, else in front.
    place = axes[0] if axes[-1] - axes[0] == len(axes) - 1 else 0
    remaining = [x.shape[a] for a in rest]
    shape = [*remaining[:place], *positions[0].shape, *remaining[place:]]
    updates = s.broadcast_to(n.to(values), shape)
    order = [*range(place, place + width), *range(place), *range(place + width, len(shape))]
    updates = s.transpose(updates, order) if updates.ndim else updates
    front = [*axes, *rest]
    wide, carrier = x, x.dtype
    if x.dtype == bool_ and accumulate:
        wide, updates, carrier = e.cast(x, int32), e.cast(updates, int32), int32
    out = op("sx.scatter_nd", s.transpose(wide, front), tuples, updates, reduction="add" if accumulate else "none")
    out = e.cast(out, x.dtype) if carrier != x.dtype else out
    return s.transpose(out, [front.index(a) for a in range(x.ndim)])


def _is_one(values: Tensor) -> bool:
    return all(isinstance(extent, int) and extent == 1 for extent in values.shape)


@aten("put.default")
def put(n: Call, x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    flat = _put(s.ravel(x), 0, s.ravel(index), s.ravel(source), "add" if accumulate else "none")
    return s.reshape(flat, x.shape)


@aten("masked_scatter.default")
def masked_scatter(n: Call, x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    wide, flags = s.broadcast_arrays(x, mask)
    flat = s.ravel(flags)
    taken = e.subtract(r.cumsum(e.cast(flat, int64), 0), constant(1, int64))
    there = g.gather(s.ravel(source), e.maximum(taken, constant(0, int64)), 0)
    return e.where(flags, s.reshape(there, wide.shape), wide)


# ---- into parts


@aten("select_scatter.default")
def select_scatter(n: Call, x: Tensor, src: Tensor, dim: int, index: Any) -> Tensor:
    at = axis_of(dim, x.ndim)
    return _into(n, x, s.unsqueeze(src, at), at, index, None, 1)


@aten("slice_scatter.default")
def slice_scatter(
    n: Call, x: Tensor, src: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> Tensor:
    at = axis_of(dim, x.ndim)
    return _into(n, x, src, at, 0 if start is None else start, end, n.ints([step], "the step")[0])


def _into(n: Call, x: Tensor, src: Tensor, at: int, start: Any, end: Any, step: int) -> Tensor:
    """The tensor with `src` written from `start` on along an axis, every `step`."""
    extent = x.shape[at]
    if isinstance(start, int) and isinstance(extent, int):
        start = min(max(start + extent if start < 0 else start, 0), extent)
    elif isinstance(start, int) and start < 0:
        start = extent + start
    count = src.shape[at]
    src = e.cast(src, x.dtype)
    shape = [count if a == at else v for a, v in enumerate(x.shape)]
    if [str(v) for v in src.shape] != [str(v) for v in shape]:
        src = s.broadcast_to(src, shape)
    if step == 1:
        if (
            isinstance(start, int)
            and isinstance(count, int)
            and isinstance(extent, int)
            and start == 0 == extent - count
        ):
            return src
        parts = [g.sliced(x, {at: (0, start)}), src, g.sliced(x, {at: (start + count, None)})]
        if isinstance(start, int) and start == 0:
            parts = parts[1:]
        return j.concat(parts, at)
    where = e.add(e.multiply(c.arange(count, dtype="int64"), constant(step, int64)), n.to(start, int64))
    return _put(x, at, _spread(where, src, at), src)


@aten("diagonal_scatter.default")
def diagonal_scatter(n: Call, x: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    first, second = axis_of(dim1, x.ndim), axis_of(dim2, x.ndim)
    last = s.moveaxis(x, (first, second), (-2, -1))
    rows, columns = n.ints(last.shape[-2:], "the extents of the diagonal's axes")
    mask = np.eye(rows, columns, offset, dtype=bool)
    count = n.ints(src.shape[-1:], "the diagonal's extent")[0]
    # The i-th element of the diagonal, spread over its row or its column.
    start = max(0, -offset)
    tall = s.unsqueeze(src, -1)
    tall = j.pad(tall, [(0, 0)] * (tall.ndim - 2) + [(start, rows - start - count), (0, 0)])
    found = e.where(Tensor.of_array(mask), tall, last)
    return s.moveaxis(found, (-2, -1), (first, second))


@aten("as_strided_scatter.default")
def as_strided_scatter(n: Call, x: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: Any = None) -> Tensor:
    shape, strides = n.ints(size, "the size"), n.ints(stride, "the strides")
    offset = 0 if storage_offset is None else n.ints([storage_offset], "the offset")[0]
    if not n.arg_meta(0).is_contiguous():
        raise n.refuse("writing through strides into memory that is not contiguous")
    where = np.full(shape, offset, np.int64)
    for axis, (extent, step) in enumerate(zip(shape, strides)):
        where += (np.arange(extent, dtype=np.int64) * step).reshape([-1 if a == axis else 1 for a in range(len(shape))])
    flat = _put(s.ravel(x), 0, Tensor.of_array(where.reshape(-1)), s.ravel(src))
    return s.reshape(flat, x.shape)


@aten("copy.default")
def copy(n: Call, x: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    from sardonyx.frontend.torch.aten.pointwise import cast_as_torch

    return s.broadcast_to(cast_as_torch(src, n.dtype), x.shape)


@aten("fill.Scalar", "fill.Tensor")
def fill(n: Call, x: Tensor, value: Any) -> Tensor:
    return c.full(x.shape, s.reshape(n.to(value), ()))
