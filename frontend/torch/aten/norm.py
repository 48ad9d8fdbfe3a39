"""Normalisations."""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.dialects.dtypes import DType, bfloat16, float16, float32
from sardonyx.frontend.apply import op
from sardonyx.frontend.functions import elementwise as e, reductions as r, shape as s
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.registry import Call, aten, constant


def _filled(shape: Any, value: float, dtype: DType) -> Tensor:
    return Tensor.of_array(np.full(tuple(shape), value, dtype.numpy))


def _accumulator(dtype: DType) -> DType:
    """The dtype that torch computes statistics in."""
    return float32 if dtype in (float16, bfloat16) else dtype


@aten("layer_norm.default")
def layer_norm(
    n: Call, x: Tensor, shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5, cudnn: bool = True
) -> Tensor:
    return _layer_norm(n, x, shape, weight, bias, eps)[0]


@aten("native_layer_norm.default")
def native_layer_norm(n: Call, x: Tensor, shape: Any, weight: Any, bias: Any, eps: float) -> tuple[Tensor | None, ...]:
    return _layer_norm(n, x, shape, weight, bias, eps, statistics=True)


def _layer_norm(
    n: Call, x: Tensor, shape: Any, weight: Any, bias: Any, eps: float, statistics: bool = False
) -> tuple[Any, ...]:
    axis = x.ndim - len(shape)
    scale = _filled(n.ints(shape, "the normalized shape"), 1.0, x.dtype) if weight is None else weight
    found = op(
        "sx.layer_norm",
        x,
        e.cast(scale, x.dtype),
        None if bias is None else e.cast(bias, x.dtype),
        axis=axis,
        epsilon=float(eps),
    )
    if not statistics or not any(u.args[1] for u in n.node.users):
        return found, None, None
    axes = list(range(axis, x.ndim))
    mean, inverse = statistics_of(x, axes, eps)
    return found, mean, inverse


def statistics_of(x: Tensor, axes: list[int], eps: float) -> tuple[Tensor, Tensor]:
    """The mean and the inverse deviation over axes, which stay."""
    wide = e.cast(x, _accumulator(x.dtype))
    mean = r.mean(wide, axes, keepdims=True)
    distance = e.subtract(wide, mean)
    spread = r.mean(e.multiply(distance, distance), axes, keepdims=True)
    return mean, e.rsqrt(e.add(spread, constant(float(eps), spread.dtype)))


@aten("rms_norm.default", "_fused_rms_norm.default")
def rms_norm(n: Call, x: Tensor, shape: Any, weight: Any = None, eps: float | None = None) -> tuple[Tensor | None, ...]:
    axis = x.ndim - len(shape)
    import ml_dtypes

    small = float(ml_dtypes.finfo(x.dtype.numpy).eps) if eps is None else float(eps)
    scale = _filled(n.ints(shape, "the normalized shape"), 1.0, x.dtype) if weight is None else e.cast(weight, x.dtype)
    return op("sx.rms_norm", x, scale, axis=axis, epsilon=small), None


@aten("group_norm.default")
def group_norm(
    n: Call, x: Tensor, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5, cudnn: bool = True
) -> Tensor:
    channels = n.ints(x.shape[1:2], "the number of channels")
    scale = _filled(channels, 1.0, x.dtype) if weight is None else weight
    shift = _filled(channels, 0.0, x.dtype) if bias is None else bias
    return op("sx.group_norm", x, scale, shift, num_groups=groups, epsilon=float(eps))


@aten("native_group_norm.default")
def native_group_norm(
    n: Call, x: Tensor, weight: Any, bias: Any, batch: Any, channels: Any, area: Any, groups: int, eps: float
) -> tuple[Tensor | None, ...]:
    found = group_norm(n, x, groups, weight, bias, eps)
    if not any(u.args[1] for u in n.node.users):
        return found, None, None
    mean, inverse = statistics_of(s.reshape(x, [x.shape[0], groups, -1]), [2], eps)
    return found, s.squeeze(mean, 2), s.squeeze(inverse, 2)


@aten("_native_batch_norm_legit_no_training.default")
def batch_norm(
    n: Call, x: Tensor, weight: Any, bias: Any, mean: Tensor, var: Tensor, momentum: float, eps: float
) -> tuple[Tensor, ...]:
    channels = n.ints(x.shape[1:2], "the number of channels")
    scale = _filled(channels, 1.0, x.dtype) if weight is None else weight
    shift = _filled(channels, 0.0, x.dtype) if bias is None else bias
    found = op("sx.batch_norm", x, scale, shift, mean, var, epsilon=float(eps))
    empty = Tensor.of_array(np.zeros(0, x.dtype.numpy))
    return found, empty, empty


@aten("_native_batch_norm_legit.no_stats")
def batch_norm_no_stats(
    n: Call, x: Tensor, weight: Any, bias: Any, training: bool, momentum: float, eps: float
) -> tuple[Tensor, ...]:
    found, mean, inverse, _ = _by_batch(x, weight, bias, eps)
    return found, mean, inverse


@aten("_native_batch_norm_legit_functional.default", "_native_batch_norm_legit.default", "native_batch_norm.default")
def batch_norm_functional(
    n: Call, x: Tensor, weight: Any, bias: Any, mean: Tensor, var: Tensor, training: bool, momentum: float, eps: float
) -> tuple[Tensor | None, ...]:
    if not training:
        found, *rest = batch_norm(n, x, weight, bias, mean, var, momentum, eps)
        return (found, *rest, mean, var)
    found, middle, inverse, spread = _by_batch(x, weight, bias, eps)
    count: Any = x.shape[0]
    for extent in x.shape[2:]:
        count = count * extent
    total = n.to(count, spread.dtype)
    unbiased = e.divide(e.multiply(spread, total), e.subtract(total, constant(1.0, spread.dtype)))
    keep, take = constant(1 - momentum, mean.dtype), constant(momentum, mean.dtype)
    new_mean = e.add(e.multiply(mean, keep), e.multiply(e.cast(middle, mean.dtype), take))
    new_var = e.add(e.multiply(var, keep), e.multiply(e.cast(unbiased, var.dtype), take))
    return found, middle, inverse, new_mean, new_var


def _by_batch(x: Tensor, weight: Any, bias: Any, eps: float) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Normalised by its own statistics: the result, and per channel the mean, the inverse deviation, the variance."""
    axes = [a for a in range(x.ndim) if a != 1]
    wide = e.cast(x, _accumulator(x.dtype))
    mean = r.mean(wide, axes, keepdims=True)
    distance = e.subtract(wide, mean)
    spread = r.mean(e.multiply(distance, distance), axes, keepdims=True)
    inverse = e.rsqrt(e.add(spread, constant(float(eps), spread.dtype)))
    found = e.multiply(distance, inverse)
    shape = [-1 if a == 1 else 1 for a in range(x.ndim)]
    if weight is not None:
        found = e.multiply(found, s.reshape(e.cast(weight, found.dtype), shape))
    if bias is not None:
        found = e.add(found, s.reshape(e.cast(bias, found.dtype), shape))
    return e.cast(found, x.dtype), s.reshape(mean, (-1,)), s.reshape(inverse, (-1,)), s.reshape(spread, (-1,))
