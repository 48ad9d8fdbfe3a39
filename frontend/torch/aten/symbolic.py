"""Sizes as numbers: what a graph asks of shapes, and arithmetic on what it gets."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import bool_, float64, int64
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.functions import elementwise as e, shape as s
from sardonyx.frontend.operands import to_tensor
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.registry import Call, aten


@aten("sym_size.int", "size.int")
def sym_size(n: Call, x: Tensor, dim: int) -> Any:
    return x.shape[dim]


@aten("sym_numel.default")
def sym_numel(n: Call, x: Tensor) -> Any:
    found: Any = 1
    for extent in x.shape:
        found = found * extent
    return found


@aten("sym_stride.int")
def sym_stride(n: Call, x: Tensor, dim: int) -> Any:
    meta = n.arg_meta(0)
    if not meta.is_contiguous():
        raise n.refuse("the strides of a tensor that is not contiguous")
    found: Any = 1
    for extent in x.shape[dim % x.ndim + 1 :]:
        found = found * extent
    return found


@aten("sym_storage_offset.default")
def sym_storage_offset(n: Call, x: Tensor) -> Any:
    offset = n.arg_meta(0).storage_offset()
    if not isinstance(offset, int):
        raise n.refuse("a dynamic offset into memory")
    return offset


@aten("sym_is_contiguous.default")
def sym_is_contiguous(n: Call, x: Tensor, memory_format: Any = None) -> bool:
    return bool(n.arg_meta(0).is_contiguous())


# ---- arithmetic


def _number(value: Any) -> bool:
    return isinstance(value, bool | int | float)


def tensor_of(value: Any, dtype: Any) -> Tensor:
    """A number of the graph as a tensor []."""
    from sardonyx.frontend.torch.registry import constant

    if _number(value):
        return constant(value, dtype)
    return e.cast(to_tensor(value), dtype)


def _kind(*values: Any) -> Any:
    """The dtype in which numbers go together."""
    floats = any(isinstance(v, float) or (isinstance(v, Tensor) and v.dtype.is_float) for v in values)
    return float64 if floats else int64


def _arithmetic(name: str, plain: Callable[..., Any], on_tensors: Callable[..., Tensor], on_dims: Any = None) -> None:
    @aten(f"python::{name}")
    def computed(n: Call, a: Any, b: Any) -> Any:
        if _number(a) and _number(b):
            return plain(a, b)
        whole = all(isinstance(v, int | Extent) and not isinstance(v, bool) for v in (a, b))
        if whole and on_dims is not None:
            return _extent(a, b, on_dims, on_tensors)
        kind = float64 if name in ("truediv", "float_pow") else _kind(a, b)
        return on_tensors(tensor_of(a, kind), tensor_of(b, kind))

    computed.__name__ = name


def _extent(a: Any, b: Any, on_dims: Any, on_tensors: Any) -> Extent:
    dim = on_dims(_dim(a), _dim(b))
    return Extent(dim, lambda: s.reshape(on_tensors(tensor_of(a, int64), tensor_of(b, int64)), (1,)))


def _dim(value: Any) -> Dim:
    return value.dim if isinstance(value, Extent) else Dim.of(value)


_arithmetic("add", operator.add, e.add, operator.add)
_arithmetic("sub", operator.sub, e.subtract, operator.sub)
_arithmetic("mul", operator.mul, e.multiply, operator.mul)
_arithmetic("floordiv", operator.floordiv, e.floor_divide, Dim.floordiv)
_arithmetic("mod", operator.mod, e.remainder, Dim.mod)
_arithmetic("truediv", operator.truediv, e.divide)
_arithmetic("pow", operator.pow, e.pow)
_arithmetic("sym_max", max, e.maximum, Dim.max)
_arithmetic("sym_min", min, e.minimum, Dim.min)
_arithmetic("eq", operator.eq, e.equal)
_arithmetic("ne", operator.ne, e.not_equal)
_arithmetic("lt", operator.lt, e.less)
_arithmetic("le", operator.le, e.less_equal)
_arithmetic("gt", operator.gt, e.greater)
_arithmetic("ge", operator.ge, e.greater_equal)


@aten("python::and_")
def and_(n: Call, a: Any, b: Any) -> Any:
    return e.logical_and(tensor_of(a, bool_), tensor_of(b, bool_))


@aten("python::or_")
def or_(n: Call, a: Any, b: Any) -> Any:
    return e.logical_or(tensor_of(a, bool_), tensor_of(b, bool_))


@aten("python::sym_not", "python::not_")
def not_(n: Call, a: Any) -> Any:
    return not a if _number(a) else e.logical_not(tensor_of(a, bool_))


@aten("python::neg")
def neg(n: Call, a: Any) -> Any:
    return -a


@aten("python::sym_float")
def sym_float(n: Call, a: Any) -> Any:
    return float(a) if _number(a) else tensor_of(a, float64)


@aten("python::_sym_sqrt", "python::sym_sqrt")
def sym_sqrt(n: Call, a: Any) -> Any:
    return e.sqrt(tensor_of(a, float64))


@aten("python::trunc", "python::sym_int")
def sym_int(n: Call, a: Any) -> Any:
    return _rounded(n, a, e.trunc)


@aten("python::floor")
def floor(n: Call, a: Any) -> Any:
    return _rounded(n, a, e.floor)


@aten("python::ceil")
def ceil(n: Call, a: Any) -> Any:
    return _rounded(n, a, e.ceil)


@aten("python::round")
def round_(n: Call, a: Any, digits: Any = None) -> Any:
    return _rounded(n, a, e.round)


def _rounded(n: Call, a: Any, function: Any) -> Any:
    if isinstance(a, int | Extent):
        return a
    vector = s.reshape(e.cast(function(tensor_of(a, float64)), int64), (1,))
    return n.translator.extent_of(n.meta, vector)
