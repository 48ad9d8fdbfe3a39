"""NumPy's functions on tensors: `np.exp(x)`, `np.concatenate([x, y])`, `x_array + tensor`.

Each one supported is our function of the same meaning, in NumPy's argument names. On a traced tensor any other is
refused by name; on eager ones alone NumPy computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import numpy as np

from sardonyx.dialects.dtypes import DType
from sardonyx.errors import UnsupportedError
from sardonyx.frontend.operands import cast, to_tensor
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor

Function = Callable[..., Any]

# NumPy's ufunc -> our function in `functions.elementwise`, where the names differ.
_UFUNC_NAMES = {
    "true_divide": "divide", "power": "pow", "float_power": "pow", "absolute": "abs", "fabs": "abs", "rint": "round",
    "arcsin": "asin", "arccos": "acos", "arctan": "atan", "arcsinh": "asinh", "arccosh": "acosh", "arctanh": "atanh",
    "mod": "remainder", "invert": "bitwise_invert", "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift", "conjugate": "positive", "fmod": "fmod",
}  # fmt: skip
_UFUNCS = {
    "add", "subtract", "multiply", "divide", "floor_divide", "remainder", "negative", "positive", "sign", "square",
    "reciprocal", "maximum", "minimum", "ceil", "floor", "trunc", "exp", "exp2", "expm1", "log", "log1p", "log2",
    "log10", "logaddexp", "sqrt", "hypot", "sin", "cos", "tan", "sinh", "cosh", "tanh", "equal", "not_equal", "less",
    "less_equal", "greater", "greater_equal", "isnan", "isinf", "isfinite", "logical_and", "logical_or",
    "logical_xor", "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor",
}  # fmt: skip
_REDUCTIONS = {
    "add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all", "logical_or": "any",
}  # fmt: skip


def call_ufunc(ufunc: np.ufunc, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `__array_ufunc__` answers.

    Raises:
        UnsupportedError: There is no such function on traced tensors; the error names it.
    """
    name = ufunc.__name__
    dtype, rest = _plain_options(kwargs)
    found: Function | None = None
    if not rest and method == "__call__":
        found = _ufunc(name)
    elif method == "reduce" and name in _REDUCTIONS:
        reduced = getattr(_family("reductions"), _REDUCTIONS[name])
        axis, keepdims = rest.pop("axis", 0), bool(rest.pop("keepdims", False))
        found = None if rest else lambda x: reduced(x, axis, keepdims=keepdims)
    if found is None:
        shown = f"np.{name}" if method == "__call__" else f"np.{name}.{method}"
        return _by_numpy(shown, getattr(ufunc, method), inputs, kwargs)
    out = found(*inputs)
    return out if dtype is None else cast(out, DType.of(dtype))


def _plain_options(kwargs: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The dtype, and options that mean something."""
    missing = np._NoValue
    rest = {k: v for k, v in kwargs.items() if v is not None and v is not missing and k != "dtype"}
    if rest.get("where") is True:
        del rest["where"]
    if rest.get("casting") == "same_kind":
        del rest["casting"]
    return kwargs.get("dtype"), rest


def _ufunc(name: str) -> Function | None:
    if name == "matmul":
        return _family("linalg").matmul
    ours = _UFUNC_NAMES.get(name, name)
    return getattr(_family("elementwise"), ours) if ours in _UFUNCS or name in _UFUNC_NAMES else None


def _family(name: str) -> Any:
    import importlib

    return importlib.import_module(f"sardonyx.frontend.functions.{name}")


def call_function(func: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What `__array_function__` answers.

    Raises:
        UnsupportedError: There is no such function on traced tensors, or it does not take an argument that is given.
    """
    name = f"{func.__module__}.{func.__name__}".replace("numpy", "np", 1)
    given = {k: v for k, v in kwargs.items() if v is not np._NoValue}
    found = _table().get(func)
    if found is None:
        return _by_numpy(name, func, args, given)
    try:
        bound = _call_signature(found).bind(*args, **given)
    except TypeError as error:
        if not _has_traced((args, kwargs)):
            return _by_numpy(name, func, args, given)
        raise UnsupportedError(f"{name} on a traced tensor: {error}", location=user_line()) from error
    return found(*bound.args, **bound.kwargs)


@cache
def _call_signature(fn: Function) -> Any:
    import inspect

    return inspect.signature(fn)


def _by_numpy(name: str, func: Function, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """NumPy's own result on eager tensors."""
    if _has_traced((args, kwargs)):
        raise UnsupportedError(
            f"{name} does not work on a traced tensor",
            location=user_line(),
            hint="compute with sardonyx's functions",
        )
    out = func(*_arrays(args), **_arrays(kwargs))
    return _tensors(out)


def _walk(value: Any) -> Iterator[Any]:
    if isinstance(value, list | tuple):
        for item in value:
            yield from _walk(item)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _walk(item)
    else:
        yield value


def _has_traced(value: Any) -> bool:
    return any(isinstance(leaf, Tensor) and leaf.is_traced for leaf in _walk(value))


def _arrays(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, list | tuple):
        return [_arrays(v) for v in value] if isinstance(value, list) else tuple(_arrays(v) for v in value)
    return {k: _arrays(v) for k, v in value.items()} if isinstance(value, Mapping) else value


def _tensors(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biuf":
        return Tensor.of_array(np.asarray(value))
    if type(value) is list:
        return [_tensors(v) for v in value]
    if type(value) is tuple:
        return tuple(_tensors(v) for v in value)
    return value


# ---- NumPy's functions in terms of ours; each takes the arguments that it supports


@cache
def _table() -> dict[Function, Function]:
    names = ("creation", "elementwise", "gathering", "joining", "linalg", "reductions", "selecting", "shape")
    c, e, g, j, li, r, sel, s = (_family(n) for n in names)

    def reduction(ours: Function) -> Function:
        return lambda a, axis=None, keepdims=False: ours(a, axis, keepdims=keepdims)

    def summing(ours: Function) -> Function:
        return lambda a, axis=None, dtype=None, keepdims=False: ours(a, axis, dtype=dtype, keepdims=keepdims)

    def spread(ours: Function) -> Function:
        return lambda a, axis=None, ddof=0, keepdims=False: ours(a, axis, correction=ddof, keepdims=keepdims)

    def running(ours: Function) -> Function:
        return lambda a, axis=None, dtype=None: ours(s.ravel(a) if axis is None else a, axis, dtype=dtype)

    def ordered(ours: Function) -> Function:
        return lambda a, axis=-1: ours(s.ravel(a) if axis is None else a, axis=-1 if axis is None else axis)

    def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Tensor]:
        return _numpy_split(ary, indices_or_sections, axis)

    def joined(ours: Function) -> Function:
        return lambda arrays, axis=0: ours(arrays, axis)

    return {
        np.sum: summing(r.sum), np.prod: summing(r.prod), np.mean: reduction(r.mean), np.max: reduction(r.max),
        np.min: reduction(r.min), np.all: reduction(r.all), np.any: reduction(r.any), np.var: spread(r.var),
        np.std: spread(r.std), np.cumsum: running(r.cumsum), np.cumprod: running(r.cumprod),
        np.count_nonzero: reduction(r.count_nonzero),
        np.argmax: lambda a, axis=None, *, keepdims=False: r.argmax(a, axis, keepdims=keepdims),
        np.argmin: lambda a, axis=None, *, keepdims=False: r.argmin(a, axis, keepdims=keepdims),
        np.concatenate: joined(j.concat), np.stack: joined(j.stack), np.split: split,
        np.vstack: lambda tup: j.concat([_at_least_2d(t) for t in tup], 0),
        np.hstack: lambda tup: j.concat([s.unsqueeze(t, 0) if not to_tensor(t).ndim else t for t in tup],
                                        0 if to_tensor(tup[0]).ndim < 2 else 1),
        np.transpose: lambda a, axes=None: s.transpose(a, axes),
        np.matrix_transpose: lambda x: li.matrix_transpose(x),
        np.reshape: lambda a, shape: s.reshape(a, shape), np.ravel: lambda a: s.ravel(a),
        np.squeeze: lambda a, axis=None: s.squeeze(a, axis), np.expand_dims: lambda a, axis: s.unsqueeze(a, axis),
        np.swapaxes: lambda a, axis1, axis2: s.swapaxes(a, axis1, axis2),
        np.moveaxis: lambda a, source, destination: s.moveaxis(a, source, destination),
        np.broadcast_to: lambda array, shape: s.broadcast_to(array, shape),
        np.broadcast_arrays: lambda *args: tuple(s.broadcast_arrays(*args)),
        np.shape: lambda a: a.shape, np.ndim: lambda a: a.ndim, np.size: _numpy_size,
        np.where: lambda condition, x, y: e.where(e.astype(condition, "bool"), x, y),
        np.clip: lambda a, a_min=None, a_max=None, *, min=None, max=None: e.clip(
            a, a_min if min is None else min, a_max if max is None else max),
        np.round: _numpy_round, np.copy: lambda a: to_tensor(a), np.astype: lambda x, dtype: e.astype(x, dtype),
        np.zeros_like: lambda a, dtype=None: c.zeros_like(a, dtype=dtype),
        np.ones_like: lambda a, dtype=None: c.ones_like(a, dtype=dtype),
        np.empty_like: lambda a, dtype=None: c.zeros_like(a, dtype=dtype),
        np.full_like: lambda a, fill_value, dtype=None: c.full_like(a, fill_value, dtype=dtype),
        np.tril: lambda m, k=0: c.tril(m, k=k), np.triu: lambda m, k=0: c.triu(m, k=k),
        np.dot: lambda a, b: li.dot(a, b), np.outer: lambda a, b: li.outer(s.ravel(a), s.ravel(b)),
        np.tensordot: lambda a, b, axes=2: li.tensordot(a, b, axes=axes),
        np.tile: lambda A, reps: j.tile(A, reps), np.repeat: lambda a, repeats, axis=None: j.repeat(
            a, repeats, axis=axis),
        np.flip: lambda m, axis=None: j.flip(m, axis=axis),
        np.roll: lambda a, shift, axis=None: j.roll(a, shift, axis=axis),
        np.take: lambda a, indices, axis=None: g.take(a, indices, axis=axis),
        np.take_along_axis: lambda arr, indices, axis=-1: g.take_along_axis(arr, indices, axis=axis),
        np.sort: ordered(sel.sort), np.argsort: ordered(sel.argsort), np.nonzero: lambda a: sel.nonzero(a),
        np.argwhere: lambda a: sel.argwhere(a), np.unique: lambda ar: sel.unique_values(ar),
        np.compress: lambda condition, a, axis=None: sel.compress(condition, a, axis),
        np.einsum: lambda subscripts, *operands: li.einsum(subscripts, *operands), np.linalg.det: lambda a: li.det(a),
        np.pad: _numpy_pad, np.isclose: _numpy_isclose,
    }  # fmt: skip


def _at_least_2d(x: Any) -> Tensor:
    tensor = to_tensor(x)
    return tensor.reshape(1, -1) if tensor.ndim < 2 else tensor


def _numpy_size(a: Any, axis: int | None = None) -> Any:
    return a.size if axis is None else a.shape[axis]


def _numpy_round(a: Any, decimals: int = 0) -> Tensor:
    e = _family("elementwise")
    if not decimals:
        return e.round(a)
    factor = 10.0**decimals
    return e.divide(e.round(e.multiply(a, factor)), factor)


def _numpy_split(ary: Any, sections: Any, axis: int) -> list[Tensor]:
    """NumPy names the places between the parts; ours are their sizes."""
    split = _family("joining").split
    tensor = to_tensor(ary)
    if isinstance(sections, int):
        extent = tensor.shape[axis]
        if isinstance(extent, int) and extent % sections:
            raise ValueError("array split does not result in an equal division")
        return split(tensor, sections, axis)
    extent = tensor.shape[axis]
    places = [0, *sections, extent]
    return split(tensor, [b - a for a, b in zip(places, places[1:])], axis)


def _numpy_pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = None) -> Tensor:
    pairs = [pad_width] if isinstance(pad_width, tuple) and isinstance(pad_width[0], int) else pad_width
    return _family("joining").pad(array, pairs, mode, constant_values)


def _numpy_isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8) -> Tensor:
    e = _family("elementwise")
    near = e.less_equal(e.abs(e.subtract(a, b)), e.add(e.multiply(e.abs(b), rtol), atol))
    return e.logical_or(e.logical_and(near, e.isfinite(b)), e.equal(a, b))
