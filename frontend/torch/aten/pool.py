"""Pooling: greatest elements, means, and windows that fit a wanted size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sardonyx.dialects.dtypes import float64, int64
from sardonyx.frontend.functions import elementwise as e, joining, linalg, nn, reductions as r, shape as s
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.registry import Call, aten, constant, is_static, listed


def _batched(x: Tensor, rank: int) -> tuple[Tensor, bool]:
    batched = x.ndim == rank + 2
    return (x if batched else s.unsqueeze(x, 0)), batched


def _unbatched(x: Tensor, batched: bool) -> Tensor:
    return x if batched else s.squeeze(x, 0)


# ---- greatest elements


@aten("max_pool1d.default", "max_pool2d.default", "max_pool3d.default")
def max_pool(
    n: Call, x: Tensor, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: bool = False
) -> Tensor:
    return _max_pool(n, x, int(n.name[len("aten.max_pool")]), kernel, stride, padding, dilation, ceil)[0]


@aten("max_pool2d_with_indices.default")
def max_pool2d(
    n: Call, x: Tensor, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: bool = False
) -> tuple[Tensor, Tensor]:
    return _max_pool(n, x, 2, kernel, stride, padding, dilation, ceil)


@aten("max_pool3d_with_indices.default")
def max_pool3d(
    n: Call, x: Tensor, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, ceil: bool = False
) -> tuple[Tensor, Tensor]:
    return _max_pool(n, x, 3, kernel, stride, padding, dilation, ceil)


def _max_pool(
    n: Call, x: Tensor, rank: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool
) -> tuple[Tensor, Tensor]:
    x, batched = _batched(x, rank)
    kernel = listed(kernel, rank)
    dtype = x.dtype
    if not dtype.is_float and dtype.bits > 8:  # exact below 2^53
        x = e.cast(x, float64)
    values, at = nn.max_pool_with_indices(
        x,
        kernel,
        listed(stride, rank) if stride else kernel,
        listed(padding, rank) * 2,
        dilations=listed(dilation, rank),
        ceil_mode=ceil,
    )
    plane: Any = 1
    for extent in x.shape[2:]:
        plane = plane * extent
    # Ours count over all elements, torch's over those of one channel.
    at = e.remainder(at, n.to(plane, int64))
    return _unbatched(e.cast(values, dtype), batched), _unbatched(at, batched)


# ---- means


@aten("avg_pool1d.default", "avg_pool2d.default", "avg_pool3d.default")
def avg_pool(
    n: Call,
    x: Tensor,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil: bool = False,
    count_include_pad: bool = True,
    divisor: int | None = None,
) -> Tensor:
    rank = int(n.name[len("aten.avg_pool")])
    x, batched = _batched(x, rank)
    kernel = listed(kernel, rank)
    stride, pads = listed(stride, rank) if stride else kernel, listed(padding, rank) * 2
    dtype = x.dtype
    if not dtype.is_float:
        x = e.cast(x, float64)
    if divisor is not None and ceil:
        # The divisor is the same for the windows that reach over the end: they are filled up with zeros.
        extents = n.ints(x.shape[2:], "the pooled extents, where divisor_override and ceil_mode are set")
        ends = [_missing(*sizes) for sizes in zip(extents, kernel, stride, pads)]
        x = joining.pad(x, [0, 0, *pads[:rank], 0, 0, *(p + end for p, end in zip(pads, ends))])
        pads, ceil = [0] * len(pads), False
    found = nn.average_pool(
        x,
        kernel,
        stride,
        pads,
        ceil_mode=ceil,
        count_include_pad=count_include_pad or divisor is not None,
    )
    if divisor is not None:
        found = e.multiply(found, constant(math.prod(kernel) / divisor, found.dtype))
    if not dtype.is_float:
        # A quotient that is whole but for rounding is taken for whole, then torch cuts fractions off.
        found = e.trunc(e.add(found, e.multiply(e.sign(found), constant(1e-9, float64))))
    return _unbatched(e.cast(found, dtype), batched)


def _missing(extent: int, kernel: int, stride: int, padding: int) -> int:
    """How many elements the last window lacks behind the padding, where each begins before the padding at the end."""
    count = -(-(extent + 2 * padding - kernel) // stride) + 1
    if (count - 1) * stride >= extent + padding:
        count -= 1
    return max(0, (count - 1) * stride + kernel - extent - 2 * padding)


@aten(
    "adaptive_avg_pool1d.default", "adaptive_avg_pool2d.default", "adaptive_avg_pool3d.default",
    "_adaptive_avg_pool2d.default", "_adaptive_avg_pool3d.default",
)  # fmt: skip
def adaptive_avg_pool(n: Call, x: Tensor, output_size: Any) -> Tensor:
    rank = len(output_size) if not isinstance(output_size, int) else 1
    wanted = n.ints(output_size, "the output size")
    extents = x.shape[-rank:]
    axes = list(range(x.ndim - rank, x.ndim))
    if all(v == 1 for v in wanted):
        return r.mean(x, axes, keepdims=True)
    if is_static(extents) and all(v and have % v == 0 for have, v in zip(extents, wanted)):
        kernel = [have // v for have, v in zip(extents, wanted)]
        y, batched = _batched(x, rank)
        return _unbatched(nn.average_pool(y, kernel, kernel), batched)
    # Windows of different sizes: along each axis a matrix of means.
    for axis, have, want in zip(axes, n.ints(extents, "the pooled extents"), wanted):
        weights = np.zeros((have, want))
        for cell, (start, end) in enumerate(_cells(have, want)):
            weights[start:end, cell] = 1 / (end - start)
        x = s.moveaxis(linalg.matmul(s.moveaxis(x, axis, -1), weights.astype(x.dtype.numpy)), -1, axis)
    return x


def _cells(have: int, want: int) -> list[tuple[int, int]]:
    return [(i * have // want, -(-(i + 1) * have // want)) for i in range(want)]


@aten("adaptive_max_pool1d.default", "adaptive_max_pool2d.default", "adaptive_max_pool3d.default")
def adaptive_max_pool(n: Call, x: Tensor, output_size: Any) -> tuple[Tensor, Tensor]:
    from sardonyx.frontend.functions.gathering import sliced

    rank = len(output_size) if not isinstance(output_size, int) else 1
    wanted = n.ints(output_size, "the output size")
    extents = n.ints(x.shape[-rank:], "the pooled extents")
    if all(v and have % v == 0 for have, v in zip(extents, wanted)):
        kernel = [have // v for have, v in zip(extents, wanted)]
        return _max_pool(n, x, rank, kernel, kernel, 0, 1, False)
    # Windows of different sizes: cell by cell.
    lead = list(x.shape[:-rank])
    values, places = [], []
    for cell in np.ndindex(*wanted):
        bounds = [_cells(have, want)[i] for have, want, i in zip(extents, wanted, cell)]
        part = sliced(x, {x.ndim - rank + a: b for a, b in enumerate(bounds)})
        flat = s.reshape(part, [*lead, math.prod(b - a for a, b in bounds)])
        values.append(r.max(flat, -1, keepdims=True))
        grid = np.meshgrid(*(np.arange(a, b) for a, b in bounds), indexing="ij")
        numbers = np.ravel_multi_index([v.reshape(-1) for v in grid], extents).astype(np.int64)
        from sardonyx.frontend.functions.gathering import gather

        places.append(gather(Tensor.of_array(numbers), r.argmax(flat, axis=-1, keepdims=True), 0))
    from sardonyx.frontend.functions.joining import concat

    shape = [*lead, *wanted]
    return s.reshape(concat(values, -1), shape), s.reshape(concat(places, -1), shape)


@aten("max_unpool2d.default", "max_unpool3d.default")
def max_unpool(n: Call, x: Tensor, indices: Tensor, output_size: Any, *rest: Any) -> Tensor:
    from sardonyx.frontend.functions.creation import full
    from sardonyx.frontend.torch.aten.scatter import _put

    rank = len(output_size)
    plane = math.prod(n.ints(output_size, "the output size"))
    lead = list(x.shape[:-rank])
    flat = s.reshape(x, [*lead, -1])
    zeros = full([*lead, plane], constant(0, x.dtype))
    found = _put(zeros, -1, s.reshape(indices, [*lead, -1]), flat)
    return s.reshape(found, [*lead, *output_size])
