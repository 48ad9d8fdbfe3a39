"""Taking elements: slices, selections, gathers, indexing by tensors and masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.dialects.dtypes import bool_, int32, int64, uint8
from sardonyx.frontend import indexing
from sardonyx.frontend.apply import op
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.functions import elementwise as e, gathering as g, shape as s
from sardonyx.frontend.operands import to_tensor
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.registry import Call, aten, axis_of

TO_THE_END = (1 << 63) - 1


@aten("slice.Tensor", "slice_copy.Tensor")
def slice_(n: Call, x: Tensor, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1) -> Tensor:
    at = axis_of(dim, x.ndim)
    stride = n.ints([step], "the step")[0]
    return g.sliced(x, {at: (start, _end(end), stride)})


def _end(end: Any) -> Any:
    return None if isinstance(end, int) and end >= TO_THE_END else end


@aten("narrow.default")
def narrow(n: Call, x: Tensor, dim: int, start: Any, length: Any) -> Tensor:
    at = axis_of(dim, x.ndim)
    if isinstance(start, int) and start < 0:
        start = x.shape[at] + start
    return g.sliced(x, {at: (start, start + length)})


@aten("select.int", "select_copy.int")
def select(n: Call, x: Tensor, dim: int, index: Any) -> Tensor:
    at = index.scalar() if isinstance(index, Extent) else to_tensor(index, int64)
    return op("sx.gather", x, at, axis=axis_of(dim, x.ndim))


@aten("index_select.default")
def index_select(n: Call, x: Tensor, dim: int, index: Tensor) -> Tensor:
    if not x.ndim:
        return s.reshape(g.gather(s.reshape(x, (1,)), s.reshape(index, (-1,))), index.shape[:0])
    return g.gather(x, index if index.ndim else s.reshape(index, (1,)), axis_of(dim, x.ndim))


@aten("gather.default")
def gather(n: Call, x: Tensor, dim: int, index: Tensor, sparse_grad: bool = False) -> Tensor:
    if not x.ndim or not index.ndim:
        flat = g.gather_elements(_vector(x), _vector(index), 0)
        return s.reshape(flat, index.shape)
    return g.gather_elements(covering(x, index, axis_of(dim, x.ndim)), index, axis_of(dim, x.ndim))


def _vector(x: Tensor) -> Tensor:
    return x if x.ndim else s.reshape(x, (1,))


def covering(x: Tensor, index: Tensor, axis: int) -> Tensor:
    """The part of the tensor that an index of fewer elements is of: equal extents on all axes but one."""
    bounds = {}
    for a, (have, want) in enumerate(zip(x.shape, index.shape)):
        if a != axis and isinstance(have, int) and isinstance(want, int) and want < have:
            bounds[a] = (0, want)
    return g.sliced(x, bounds) if bounds else x


@aten("take_along_dim.default")
def take_along_dim(n: Call, x: Tensor, index: Tensor, dim: int | None = None) -> Tensor:
    if dim is None:
        return g.gather_elements(s.ravel(x), s.ravel(index), 0)
    return g.take_along_axis(x, index, axis=axis_of(dim, x.ndim))


@aten("take.default")
def take(n: Call, x: Tensor, index: Tensor) -> Tensor:
    return g.gather(s.ravel(x), index)


@aten("nonzero.default")
def nonzero(n: Call, x: Tensor) -> Tensor:
    if not x.ndim:
        rows = op("sx.non_zero", s.reshape(x, (1,)))
        return s.reshape(g.sliced(s.transpose(rows, (1, 0)), {1: (0, 0)}), [rows.shape[1], 0])
    return s.transpose(op("sx.non_zero", x), (1, 0))


@aten("nonzero_numpy.default")
def nonzero_numpy(n: Call, x: Tensor) -> tuple[Tensor, ...]:
    found = op("sx.non_zero", _vector(x))
    return tuple(g.gather(found, axis, 0) for axis in range(max(1, x.ndim)))


@aten("argwhere.default")
def argwhere(n: Call, x: Tensor) -> Tensor:
    return nonzero(n, x)


@aten("masked_select.default")
def masked_select(n: Call, x: Tensor, mask: Tensor) -> Tensor:
    a, b = s.broadcast_arrays(x, mask)
    return op("sx.compress", s.ravel(a), s.ravel(b), axis=0)


def without_masks(n: Call, x: Tensor, indices: list[Any]) -> list[Tensor | None]:
    """The indices with each mask replaced by the positions where it is true."""
    found: list[Tensor | None] = []
    for index in indices:
        if index is not None and index.dtype in (bool_, uint8):
            positions = op("sx.non_zero", e.cast(_vector(index), bool_))
            if not index.ndim:
                raise n.refuse("indexing by a single bool", "use torch.where")
            found.extend(g.gather(positions, axis, 0) for axis in range(index.ndim))
        else:
            found.append(None if index is None else index if index.dtype in (int32, int64) else e.cast(index, int64))
    return found


@aten("index.Tensor", "_unsafe_index.Tensor")
def index(n: Call, x: Tensor, indices: Any) -> Tensor:
    if not x.ndim and all(i is None for i in indices):
        return x
    found = without_masks(n, x, list(indices))
    keys = tuple(slice(None) if i is None else i for i in found)
    if all(i is None or not i.ndim for i in found):  # positions, not lists: each takes its axis away
        for axis in reversed(range(len(found))):
            position = found[axis]
            if position is not None:
                x = op("sx.gather", x, position, axis=axis)
        return x
    return indexing.index(x, keys)


@aten("embedding.default")
def embedding(n: Call, weight: Tensor, indices: Tensor, *rest: Any, **options: Any) -> Tensor:
    return g.gather(weight, indices)


@aten("searchsorted.Tensor", "searchsorted.Scalar")
def searchsorted(
    n: Call,
    edges: Tensor,
    values: Any,
    *,
    right: bool = False,
    side: str | None = None,
    out_int32: Any = 0,
    sorter: Any = None,
) -> Tensor:
    if sorter is not None:
        edges = g.take_along_axis(edges, sorter, axis=-1)
    x = to_tensor(values)
    if not isinstance(values, Tensor):
        x = n.to(values, edges.dtype)
    return _ranks(n, edges, x, right or side == "right")


@aten("bucketize.Tensor", "bucketize.Scalar")
def bucketize(n: Call, values: Any, edges: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    return _ranks(n, edges, values if isinstance(values, Tensor) else n.to(values, edges.dtype), right)


def _ranks(n: Call, edges: Tensor, values: Tensor, right: bool) -> Tensor:
    """How many edges lie below each value: by comparing each value with each edge."""
    from sardonyx.frontend.functions import reductions as r

    each = s.unsqueeze(values, -1)
    around = edges if edges.ndim == 1 else s.unsqueeze(edges, -2)
    common = edges.dtype if edges.dtype.is_float or not values.dtype.is_float else values.dtype
    a, b = e.cast(around, common), e.cast(each, common)
    below = e.less_equal(a, b) if right else e.less(a, b)
    below = e.logical_or(below, e.logical_and(e.isnan(b), e.logical_not(e.isnan(a)))) if common.is_float else below
    return e.cast(r.sum(below, -1), n.dtype)


@aten("bincount.default")
def bincount(n: Call, x: Tensor, weights: Any = None, minlength: int = 0) -> Tensor:
    raise n.refuse("how many bins there are depends on the data", "use one_hot(x, bins).sum(0)")


@aten("tril_indices.default")
def tril_indices(n: Call, row: int, col: int, offset: int = 0, *, dtype: Any = None) -> Tensor:
    return Tensor.of_array(np.stack(np.tril_indices(row, offset, col)).astype(n.dtype.numpy))


@aten("triu_indices.default")
def triu_indices(n: Call, row: int, col: int, offset: int = 0, *, dtype: Any = None) -> Tensor:
    return Tensor.of_array(np.stack(np.triu_indices(row, offset, col)).astype(n.dtype.numpy))


@aten("one_hot.default")
def one_hot(n: Call, x: Tensor, num_classes: int = -1) -> Tensor:
    if num_classes < 0:
        raise n.refuse("the number of classes depends on the data", "give num_classes")
    return e.cast(e.equal(s.unsqueeze(x, -1), to_tensor(np.arange(num_classes))), n.dtype)
