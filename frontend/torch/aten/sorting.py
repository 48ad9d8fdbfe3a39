"""Sorting, greatest elements, distinct elements."""

from __future__ import annotations

from typing import Any

from sardonyx.dialects.dtypes import bool_, int64, uint8
from sardonyx.frontend.apply import apply
from sardonyx.frontend.functions import elementwise as e, gathering as g, reductions as r, selecting, shape as s
from sardonyx.frontend.operands import to_tensor
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.registry import Call, aten, axis_of


def _ranked(x: Tensor, count: Any, dim: int, largest: bool, ordered: bool = True) -> tuple[Tensor, Tensor]:
    if not x.ndim:
        return x, to_tensor(0, int64)
    wide = e.cast(x, uint8) if x.dtype == bool_ else x
    values, at = selecting.topk(wide, count, axis_of(dim, x.ndim), largest=largest, sorted=ordered)
    return e.cast(values, x.dtype), at


@aten("sort.default")
def sort(n: Call, x: Tensor, dim: int = -1, descending: bool = False) -> tuple[Tensor, Tensor]:
    return _ranked(x, x.shape[axis_of(dim, x.ndim)] if x.ndim else 1, dim, descending)


@aten("sort.stable")
def sort_stable(
    n: Call, x: Tensor, *, stable: Any = True, dim: int = -1, descending: bool = False
) -> tuple[Tensor, Tensor]:
    return sort(n, x, dim, descending)


@aten("argsort.default")
def argsort(n: Call, x: Tensor, dim: int = -1, descending: bool = False) -> Tensor:
    return sort(n, x, dim, descending)[1]


@aten("argsort.stable")
def argsort_stable(n: Call, x: Tensor, *, stable: Any = True, dim: int = -1, descending: bool = False) -> Tensor:
    return sort(n, x, dim, descending)[1]


@aten("msort.default")
def msort(n: Call, x: Tensor) -> Tensor:
    return sort(n, x, 0)[0]


@aten("topk.default")
def topk(n: Call, x: Tensor, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> tuple[Tensor, Tensor]:
    if not x.ndim:
        count = n.ints([k], "k")[0]
        return (x, to_tensor(0, int64)) if count else (g.sliced(s.reshape(x, (1,)), {0: (0, 0)}), to_tensor(0, int64))
    return _ranked(x, k, dim, largest, sorted)


@aten("kthvalue.default")
def kthvalue(n: Call, x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    if not x.ndim:
        return x, to_tensor(0, int64)
    at = axis_of(dim, x.ndim)
    values, places = _ranked(x, k, at, False)
    found = [g.sliced(v, {at: (k - 1, k)}) for v in (values, places)]
    return tuple(v if keepdim else s.squeeze(v, at) for v in found)  # pyright: ignore[reportReturnType]


@aten("median.default")
def median(n: Call, x: Tensor) -> Tensor:
    return _median(n, s.ravel(x), 0, False)[0]


@aten("median.dim")
def median_dim(n: Call, x: Tensor, dim: int, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    return _median(n, x, dim, keepdim)


def _median(n: Call, x: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, Tensor]:
    if not x.ndim:
        return x, to_tensor(0, int64)
    at = axis_of(dim, x.ndim)
    count = n.ints([x.shape[at]], "the extent of the axis")[0]
    value, place = kthvalue(n, x, (count + 1) // 2, at, True)
    if x.dtype.is_float:  # NaN, where there is one
        missing = e.isnan(x)
        some = r.any(missing, at, keepdims=True)
        first = r.argmax(e.cast(missing, uint8), axis=at, keepdims=True)
        value = e.where(some, n.to(float("nan"), x.dtype), value)
        place = e.where(some, first, place)
    return (value, place) if keepdim else (s.squeeze(value, at), s.squeeze(place, at))


@aten("_unique2.default")
def unique2(
    n: Call, x: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, ...]:
    values, _, inverse, counts = apply("sx.unique", s.ravel(x), axis=None, sorted=True)
    return values, s.reshape(inverse, x.shape), counts


@aten("unique_dim.default", "unique_consecutive.default")
def unique_dim(
    n: Call, x: Tensor, dim: int, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, ...]:
    if "consecutive" in n.name:
        raise n.refuse("runs of equal elements", "use torch.unique")
    values, _, inverse, counts = apply("sx.unique", x, axis=axis_of(dim, x.ndim), sorted=True)
    return values, inverse, counts
