"""The derivatives that belong to ATen's core: what a training step captured as a graph consists of."""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.dialects.dtypes import int64
from sardonyx.frontend.functions import creation as c, elementwise as e, linalg, nn, reductions as r, shape as s
from sardonyx.frontend.functions.gathering import sliced
from sardonyx.frontend.functions.joining import concat, pad
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.aten.pool import _cells
from sardonyx.frontend.torch.aten.scatter import _put
from sardonyx.frontend.torch.registry import Call, aten, constant, listed


@aten("convolution_backward.default")
def convolution_backward(
    n: Call, grad: Tensor, x: Tensor, weight: Tensor, bias_sizes: Any, stride: Any, padding: Any, dilation: Any,
    transposed: bool, output_padding: Any, groups: int, output_mask: Any,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    rank = weight.ndim - 2
    if transposed:
        raise n.refuse("the derivative of a transposed convolution")
    step, side, spread = (n.ints(listed(v, rank), "a window") for v in (stride, padding, dilation))
    kernel = n.ints(weight.shape[2:], "the kernel")
    have, out = n.ints(x.shape[2:], "the image's extents"), n.ints(grad.shape[2:], "the gradient's extents")
    found: list[Tensor | None] = [None, None, None]
    if output_mask[0]:
        missing = [
            h - ((o - 1) * st - 2 * p + d * (k - 1) + 1)
            for h, o, st, p, d, k in zip(have, out, step, side, spread, kernel)
        ]
        found[0] = nn.conv_transpose(
            grad, weight, None, strides=step, pads=side * 2, dilations=spread, group=groups, output_padding=missing
        )
    if output_mask[1]:
        found[1] = _weight_gradient(n, grad, x, weight, step, side, spread, groups, have, out, kernel)
    if output_mask[2]:
        found[2] = r.sum(grad, [a for a in range(grad.ndim) if a != 1], dtype=grad.dtype)
    return tuple(found)


def _weight_gradient(
    n: Call, grad: Tensor, x: Tensor, weight: Tensor, step: list[int], side: list[int], spread: list[int],
    groups: int, have: list[int], out: list[int], kernel: list[int],
) -> Tensor:  # fmt: skip
    """Each tap of the kernel: the product of the gradient with the elements that the tap met."""
    rank = len(kernel)
    wide = pad(x, [(0, 0), (0, 0), *((p, p) for p in side)])
    batch, rows = n.ints(grad.shape[:1], "the batch")[0], n.ints([weight.shape[0]], "the channels")[0]
    columns = n.ints([weight.shape[1]], "the channels")[0]
    area = int(np.prod(out))
    left = s.reshape(grad, [batch, groups, rows // groups, area])
    taps = []
    for tap in np.ndindex(*kernel):
        bounds = {
            2 + a: (int(tap[a]) * spread[a], int(tap[a]) * spread[a] + (out[a] - 1) * step[a] + 1, step[a])
            for a in range(rank)
        }
        met = s.reshape(sliced(wide, bounds), [batch, groups, columns, area])
        product = linalg.matmul(left, s.swapaxes(met, -1, -2))  # [batch, groups, rows / groups, columns]
        taps.append(s.reshape(r.sum(product, 0, dtype=product.dtype), [rows, columns, 1]))
    return s.reshape(concat(taps, -1), [rows, columns, *kernel])


@aten("avg_pool2d_backward.default")
def avg_pool2d_backward(
    n: Call, grad: Tensor, x: Tensor, kernel: Any, stride: Any, padding: Any, ceil: bool, include: bool, divisor: Any
) -> Tensor:
    kernel, side = n.ints(listed(kernel, 2), "the kernel"), n.ints(listed(padding, 2), "the padding")
    step = n.ints(listed(stride, 2), "the stride") if stride else kernel
    have, out = n.ints(x.shape[-2:], "the image"), n.ints(grad.shape[-2:], "the gradient")
    spread = []
    for axis in range(2):
        matrix = np.zeros((out[axis], have[axis]))
        sizes = np.zeros(out[axis])
        for cell in range(out[axis]):
            start = cell * step[axis] - side[axis]
            end = min(start + kernel[axis], have[axis] + side[axis])
            low, high = max(start, 0), min(end, have[axis])
            matrix[cell, low:high] = 1
            sizes[cell] = end - start if include else high - low
        spread.append((matrix, sizes))
    (rows, tall), (columns, wide) = spread
    area = np.full((out[0], out[1]), divisor, float) if divisor else np.outer(tall, wide)
    scaled = e.divide(grad, Tensor.of_array(area.astype(grad.dtype.numpy)))
    return _spread_out(scaled, rows, columns)


def _spread_out(grad: Tensor, rows: np.ndarray, columns: np.ndarray) -> Tensor:
    """Each cell of the last two axes given to all elements of its window."""
    dtype = grad.dtype.numpy
    return linalg.matmul(linalg.matmul(rows.T.astype(dtype), grad), columns.astype(dtype))


@aten("_adaptive_avg_pool2d_backward.default")
def adaptive_backward(n: Call, grad: Tensor, x: Tensor) -> Tensor:
    have, out = n.ints(x.shape[-2:], "the image"), n.ints(grad.shape[-2:], "the gradient")
    matrices = []
    for extent, count in zip(have, out):
        matrix = np.zeros((count, extent))
        for cell, (start, end) in enumerate(_cells(extent, count)):
            matrix[cell, start:end] = 1 / (end - start)
        matrices.append(matrix)
    return _spread_out(grad, *matrices)


@aten("max_pool2d_with_indices_backward.default")
def max_pool2d_backward(
    n: Call, grad: Tensor, x: Tensor, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil: bool, at: Tensor
) -> Tensor:
    lead, (high, wide) = list(x.shape[:-2]), n.ints(x.shape[-2:], "the image")
    zeros = c.full([*lead, high * wide], constant(0, grad.dtype))
    found = _put(zeros, -1, s.reshape(at, [*lead, -1]), s.reshape(grad, [*lead, -1]), "add")
    return s.reshape(found, x.shape)


@aten("native_layer_norm_backward.default")
def layer_norm_backward(
    n: Call, grad: Tensor, x: Tensor, shape: Any, mean: Tensor, rstd: Tensor, weight: Any, bias: Any, output_mask: Any
) -> tuple[Tensor | None, ...]:
    inner = list(range(x.ndim - len(shape), x.ndim))
    outer = list(range(x.ndim - len(shape)))
    normal = e.multiply(e.subtract(x, mean), rstd)
    scaled = grad if weight is None else e.multiply(grad, weight)
    found: list[Tensor | None] = [None, None, None]
    if output_mask[0]:
        level = r.mean(scaled, inner, keepdims=True)
        slope = r.mean(e.multiply(scaled, normal), inner, keepdims=True)
        found[0] = e.multiply(rstd, e.subtract(e.subtract(scaled, level), e.multiply(normal, slope)))
    if output_mask[1] and weight is not None:
        found[1] = r.sum(e.multiply(grad, normal), outer, dtype=grad.dtype) if outer else e.multiply(grad, normal)
    if output_mask[2] and bias is not None:
        found[2] = r.sum(grad, outer, dtype=grad.dtype) if outer else grad
    return tuple(found)


@aten("native_group_norm_backward.default")
def group_norm_backward(
    n: Call, grad: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, weight: Any, batch: Any, channels: Any, area: Any,
    groups: int, output_mask: Any,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    each = channels // groups
    shape = [batch, groups, each, area]
    middle, inverse = (s.reshape(v, [batch, groups, 1, 1]) for v in (mean, rstd))
    g, y = s.reshape(grad, shape), s.reshape(x, shape)
    normal = e.multiply(e.subtract(y, middle), inverse)
    scaled = g if weight is None else e.multiply(g, s.reshape(weight, [1, groups, each, 1]))
    found: list[Tensor | None] = [None, None, None]
    if output_mask[0]:
        level = r.mean(scaled, [2, 3], keepdims=True)
        slope = r.mean(e.multiply(scaled, normal), [2, 3], keepdims=True)
        inner = e.multiply(inverse, e.subtract(e.subtract(scaled, level), e.multiply(normal, slope)))
        found[0] = s.reshape(inner, x.shape)
    if output_mask[1]:
        found[1] = s.reshape(r.sum(e.multiply(g, normal), [0, 3], dtype=grad.dtype), [channels])
    if output_mask[2]:
        found[2] = s.reshape(r.sum(g, [0, 3], dtype=grad.dtype), [channels])
    return tuple(found)


@aten("embedding_dense_backward.default")
def embedding_backward(n: Call, grad: Tensor, indices: Tensor, rows: Any, padding_idx: int, scale: bool) -> Tensor:
    width = grad.shape[-1]
    flat, at = s.reshape(grad, [-1, width]), s.reshape(e.cast(indices, int64), [-1])
    if scale:
        counts = _put(c.full([rows], constant(0, int64)), 0, at, c.full(at.shape, constant(1, int64)), "add")
        from sardonyx.frontend.functions.gathering import gather

        flat = e.divide(flat, e.cast(s.unsqueeze(gather(counts, at, 0), 1), flat.dtype))
    if padding_idx >= 0:
        kept = s.unsqueeze(e.not_equal(at, constant(padding_idx, int64)), 1)
        flat = e.where(kept, flat, constant(0, flat.dtype))
    where = s.broadcast_to(s.unsqueeze(at, 1), flat.shape)
    return _put(c.full([rows, width], constant(0, flat.dtype)), 0, where, flat, "add")
