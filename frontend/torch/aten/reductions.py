"""Reductions over axes, running sums, extremes and where they are."""

from __future__ import annotations

from typing import Any

from sardonyx.dialects.dtypes import bool_, int8, int64
from sardonyx.frontend.apply import op
from sardonyx.frontend.functions import elementwise as e, gathering as g, reductions as r, shape as s
from sardonyx.frontend.operands import to_tensor
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.registry import Call, aten, axes_of, axis_of


def _count(n: Call, x: Tensor, axes: list[int]) -> Any:
    """The number of elements that a reduction over these axes takes together."""
    found: Any = 1
    for axis in axes:
        found = found * x.shape[axis]
    return found


@aten("sum.default", "sum.dim_IntList")
def sum_(n: Call, x: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    return r.sum(e.cast(x, n.dtype), axes_of(n, dim, x.ndim), dtype=n.dtype, keepdims=keepdim)


@aten("mean.default", "mean.dim")
def mean(n: Call, x: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    return r.mean(e.cast(x, n.dtype), axes_of(n, dim, x.ndim), keepdims=keepdim)


@aten("prod.default")
def prod(n: Call, x: Tensor, dtype: Any = None) -> Tensor:
    return r.prod(e.cast(x, n.dtype), dtype=n.dtype)


@aten("prod.dim_int")
def prod_dim(n: Call, x: Tensor, dim: int, keepdim: bool = False, dtype: Any = None) -> Tensor:
    return r.prod(e.cast(x, n.dtype), axes_of(n, dim, x.ndim), dtype=n.dtype, keepdims=keepdim)


@aten("nansum.default")
def nansum(n: Call, x: Tensor, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    known = e.where(e.isnan(x), n.to(0, x.dtype), x) if x.dtype.is_float else x
    return sum_(n, known, dim, keepdim)


@aten("amax.default")
def amax(n: Call, x: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    return r.max(x, axes_of(n, list(dim) if not isinstance(dim, int) else dim, x.ndim), keepdims=keepdim)


@aten("amin.default")
def amin(n: Call, x: Tensor, dim: Any = (), keepdim: bool = False) -> Tensor:
    return r.min(x, axes_of(n, list(dim) if not isinstance(dim, int) else dim, x.ndim), keepdims=keepdim)


@aten("aminmax.default")
def aminmax(n: Call, x: Tensor, dim: int | None = None, keepdim: bool = False) -> tuple[Tensor, ...]:
    axes = axes_of(n, dim, x.ndim)
    return r.min(x, axes, keepdims=keepdim), r.max(x, axes, keepdims=keepdim)


@aten("max.default")
def max_all(n: Call, x: Tensor) -> Tensor:
    return r.max(x)


@aten("min.default")
def min_all(n: Call, x: Tensor) -> Tensor:
    return r.min(x)


@aten("max.dim")
def max_dim(n: Call, x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, ...]:
    return _extreme(x, dim, keepdim, r.max, r.argmax)


@aten("min.dim")
def min_dim(n: Call, x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, ...]:
    return _extreme(x, dim, keepdim, r.min, r.argmin)


def _extreme(x: Tensor, dim: int, keepdim: bool, extreme: Any, where: Any) -> tuple[Tensor, ...]:
    if x.ndim == 0:
        return x, to_tensor(0, int64)
    at = axis_of(dim, x.ndim)
    return extreme(x, at, keepdims=keepdim), where(x, axis=at, keepdims=keepdim)


@aten("argmax.default")
def argmax(n: Call, x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return _arg(x, dim, keepdim, r.argmax)


@aten("argmin.default")
def argmin(n: Call, x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    return _arg(x, dim, keepdim, r.argmin)


def _arg(x: Tensor, dim: int | None, keepdim: bool, where: Any) -> Tensor:
    if x.ndim == 0:
        return to_tensor(0, int64)
    return where(x, axis=None if dim is None else axis_of(dim, x.ndim), keepdims=keepdim)


# ---- moments


def variance(n: Call, x: Tensor, dim: Any, correction: Any, keepdim: bool) -> tuple[Tensor, Tensor]:
    """Variance and mean over axes."""
    axes = axes_of(n, dim, x.ndim)
    middle = r.mean(x, axes, keepdims=True)
    distance = e.subtract(x, middle)
    total = r.sum(e.multiply(distance, distance), axes, keepdims=keepdim)
    count = e.subtract(n.to(_count(n, x, axes), x.dtype), n.to(float(correction), x.dtype))
    found = e.divide(total, e.maximum(count, n.to(0.0, x.dtype)))
    return found, middle if keepdim or not axes else s.squeeze(middle, axes)


@aten("var.correction")
def var(n: Call, x: Tensor, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Tensor:
    return variance(n, x, dim, 1 if correction is None else correction, keepdim)[0]


@aten("var.dim")
def var_dim(n: Call, x: Tensor, dim: Any, unbiased: bool = True, keepdim: bool = False) -> Tensor:
    return variance(n, x, dim, int(unbiased), keepdim)[0]


@aten("var_mean.correction")
def var_mean(n: Call, x: Tensor, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> tuple[Tensor, ...]:
    return variance(n, x, dim, 1 if correction is None else correction, keepdim)


@aten("std.correction")
def std(n: Call, x: Tensor, dim: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Tensor:
    return e.sqrt(var(n, x, dim, correction=correction, keepdim=keepdim))


# ---- norms, logarithms of sums


@aten("logsumexp.default")
def logsumexp(n: Call, x: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    return r.logsumexp(n.to(x), axes_of(n, dim, x.ndim), keepdims=keepdim)


@aten("linalg_vector_norm.default")
def vector_norm(n: Call, x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    return norm_over(n, n.to(x), float(ord), axes_of(n, dim, x.ndim), keepdim)


@aten("norm.Scalar", "norm.ScalarOpt_dim", "norm.ScalarOpt_dim_dtype", "norm.ScalarOpt_dtype")
def norm(n: Call, x: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    return norm_over(n, n.to(x), 2.0 if p is None else float(p), axes_of(n, dim, x.ndim), keepdim)


def norm_over(n: Call, x: Tensor, p: float, axes: list[int], keepdim: bool) -> Tensor:
    """The p-norm over axes."""
    size = e.abs(x)
    if p == 2:
        return op("sx.sqrt", r.sum(e.multiply(x, x), axes, dtype=x.dtype, keepdims=keepdim))
    if p == 1:
        return r.sum(size, axes, dtype=x.dtype, keepdims=keepdim)
    if p == 0:
        return r.sum(e.cast(e.not_equal(x, 0), x.dtype), axes, dtype=x.dtype, keepdims=keepdim)
    if p in (float("inf"), float("-inf")):
        return (r.max if p > 0 else r.min)(size, axes, keepdims=keepdim)
    exponent = n.to(p, x.dtype)
    total = r.sum(e.pow(size, exponent), axes, dtype=x.dtype, keepdims=keepdim)
    return e.pow(total, n.to(1 / p, x.dtype))


# ---- running


@aten("cumsum.default")
def cumsum(n: Call, x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    if x.ndim == 0:
        return n.to(x)
    return r.cumsum(n.to(x), axis_of(dim, x.ndim), dtype=n.dtype)


@aten("cumprod.default")
def cumprod(n: Call, x: Tensor, dim: int, dtype: Any = None) -> Tensor:
    if x.ndim == 0:
        return n.to(x)
    return r.cumprod(n.to(x), axis_of(dim, x.ndim), dtype=n.dtype)


@aten("cummax.default")
def cummax(n: Call, x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    return _running(n, x, dim, r.max, e.greater_equal)


@aten("cummin.default")
def cummin(n: Call, x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    return _running(n, x, dim, r.min, e.less_equal)


def _running(n: Call, x: Tensor, dim: int, extreme: Any, keeps: Any) -> tuple[Tensor, Tensor]:
    """Running extremes: those of the triangle of all prefixes, which takes the square of the axis's extent."""
    if x.ndim == 0:
        return x, to_tensor(0, int64)
    at = axis_of(dim, x.ndim)
    last = s.moveaxis(x, at, -1)
    wide = e.cast(last, int8) if last.dtype == bool_ else last
    count = n.ints([x.shape[at]], "the extent of the axis")[0]
    import numpy as np

    rows = [
        s.unsqueeze(extreme(g.sliced(wide, {wide.ndim - 1: (0, i + 1)}), -1, keepdims=False), -1) for i in range(count)
    ]
    if not rows:
        return x, e.cast(x, int64)
    values = apply_concat(rows)
    # The last position so far at which the extreme was met.
    met = e.where(keeps(wide, values), to_tensor(np.arange(count)), to_tensor(-1, int64))
    tops = [s.unsqueeze(r.max(g.sliced(met, {met.ndim - 1: (0, i + 1)}), -1), -1) for i in range(count)]
    values = e.cast(values, x.dtype)
    return s.moveaxis(values, -1, at), s.moveaxis(apply_concat(tops), -1, at)


def apply_concat(parts: list[Tensor]) -> Tensor:
    """Tensors joined along their last axis."""
    return op("sx.concat", parts, axis=parts[0].ndim - 1) if len(parts) > 1 else parts[0]


@aten("logcumsumexp.default")
def logcumsumexp(n: Call, x: Tensor, dim: int) -> Tensor:
    if x.ndim == 0:
        return x
    at = axis_of(dim, x.ndim)
    top = r.max(x, at, keepdims=True)
    top = e.where(e.isfinite(top), top, n.to(0.0))
    return e.add(e.log(r.cumsum(e.exp(e.subtract(x, top)), at)), top)


@aten("count_nonzero.default", "count_nonzero.dim_IntList")
def count_nonzero(n: Call, x: Tensor, dim: Any = None) -> Tensor:
    return r.count_nonzero(x, axes_of(n, dim, x.ndim))


@aten("trace.default")
def trace(n: Call, x: Tensor) -> Tensor:
    from sardonyx.frontend.torch.aten.views import diagonal

    return r.sum(n.to(diagonal(n, x)), dtype=n.dtype)
