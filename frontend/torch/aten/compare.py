"""Comparisons, logic, and tests of floats."""

from __future__ import annotations

import math
from typing import Any

from sardonyx.dialects.dtypes import bool_, int8, uint8
from sardonyx.frontend.functions import elementwise as e, reductions as r
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.registry import Call, aten

_COMPARISONS = {
    "eq": e.equal, "ne": e.not_equal, "lt": e.less, "le": e.less_equal, "gt": e.greater, "ge": e.greater_equal,
}  # fmt: skip


def _register(name: str, function: Any) -> None:
    @aten(f"{name}.Tensor", f"{name}.Scalar")
    def compared(n: Call, x: Any, other: Any) -> Tensor:
        if isinstance(other, int) and not isinstance(other, bool) and isinstance(x, Tensor) and x.dtype.is_integer:
            answer = _out_of_range(name, x, other)
            if answer is not None:
                return e.logical_or(e.not_equal(x, x), answer)
        a, b = n.both(x, other, n.common(0, 1))
        if a.dtype == bool_ and name not in ("eq", "ne"):
            a, b = e.cast(a, int8), e.cast(b, int8)
        return function(a, b)

    compared.__name__ = name


def _out_of_range(name: str, x: Tensor, number: int) -> bool | None:
    """The answer of a comparison with a number that the dtype doesn't hold."""
    bits, signed = x.dtype.bits, x.dtype.kind == "i"
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    if low <= number <= high:
        return None
    above = number > high
    return {"eq": False, "ne": True, "lt": above, "le": above, "gt": not above, "ge": not above}[name]


for _name, _function in _COMPARISONS.items():
    _register(_name, _function)


@aten("logical_and.default")
def logical_and(n: Call, x: Any, other: Any) -> Tensor:
    return e.logical_and(x, other)


@aten("logical_or.default")
def logical_or(n: Call, x: Any, other: Any) -> Tensor:
    return e.logical_or(x, other)


@aten("logical_xor.default")
def logical_xor(n: Call, x: Any, other: Any) -> Tensor:
    return e.logical_xor(x, other)


@aten("logical_not.default")
def logical_not(n: Call, x: Any) -> Tensor:
    return e.logical_not(x)


@aten("isnan.default")
def isnan(n: Call, x: Tensor) -> Tensor:
    return e.isnan(x)


@aten("isinf.default")
def isinf(n: Call, x: Tensor) -> Tensor:
    return e.isinf(x)


@aten("isfinite.default")
def isfinite(n: Call, x: Tensor) -> Tensor:
    return e.isfinite(x)


@aten("isposinf.default")
def isposinf(n: Call, x: Tensor) -> Tensor:
    return e.equal(x, math.inf) if x.dtype.is_float else e.not_equal(x, x)


@aten("isneginf.default")
def isneginf(n: Call, x: Tensor) -> Tensor:
    return e.equal(x, -math.inf) if x.dtype.is_float else e.not_equal(x, x)


@aten("isclose.default")
def isclose(
    n: Call, x: Tensor, other: Tensor, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Tensor:
    a, b = n.both(x, other, n.common(0, 1))
    same = e.equal(a, b)
    if not a.dtype.is_float:
        from sardonyx.dialects.dtypes import float64

        a, b = e.cast(a, float64), e.cast(b, float64)
    distance = e.abs(e.subtract(a, b))
    near = e.less_equal(distance, e.add(n.to(atol, a.dtype), e.multiply(n.to(rtol, a.dtype), e.abs(b))))
    found = e.logical_or(same, e.logical_and(e.isfinite(distance), near))
    return e.logical_or(found, e.logical_and(e.isnan(a), e.isnan(b))) if equal_nan else found


@aten("equal.default")
def equal(n: Call, x: Tensor, other: Tensor) -> Tensor:
    return r.all(e.equal(*n.both(x, other, n.common(0, 1))))


# ---- reductions to truth


def _truth(x: Tensor, found: Tensor) -> Tensor:
    return e.cast(found, uint8) if x.dtype == uint8 else found


@aten("any.default")
def any_(n: Call, x: Tensor) -> Tensor:
    return _truth(x, r.any(x))


@aten("any.dim", "any.dims")
def any_dims(n: Call, x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    return _truth(x, _over(r.any, x, dim, keepdim))


@aten("all.default")
def all_(n: Call, x: Tensor) -> Tensor:
    return _truth(x, r.all(x))


@aten("all.dim", "all.dims")
def all_dims(n: Call, x: Tensor, dim: Any = None, keepdim: bool = False) -> Tensor:
    return _truth(x, _over(r.all, x, dim, keepdim))


def _over(function: Any, x: Tensor, dim: Any, keepdim: bool) -> Tensor:
    if x.ndim == 0 or (isinstance(dim, list) and not dim):
        return e.cast(x, bool_)
    return function(x, dim, keepdims=keepdim)
