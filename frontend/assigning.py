"""`x[key] = value`: the tensor with a part replaced. Keys are those of `indexing.py`, and boolean masks."""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.dialects.dims import Proof
from sardonyx.dialects.dtypes import int64
from sardonyx.errors import InvalidArgumentError, OutOfRangeError, SardonyxError
from sardonyx.frontend.apply import op
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.inplace import compare_shapes
from sardonyx.frontend.operands import cast, is_scalar, is_tensor_like, scalar, to_tensor
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor, is_bool


def with_part(x: Tensor, key: object, value: Any) -> Tensor:
    """The tensor with the part that the key names replaced by a value, which broadcasts to the part.

    Raises:
        InvalidArgumentError: The key or the value does not fit.
    """
    new = scalar(value, x.dtype) if is_scalar(value) else to_tensor(value)
    if new.dtype != x.dtype:
        if new.dtype.kind != x.dtype.kind and not (new.dtype.is_integer and x.dtype.is_integer):
            raise InvalidArgumentError(
                f"a part of a tensor of {x.dtype} cannot be {new.dtype}; convert it first (astype)",
                location=user_line(),
            )
        new = cast(new, x.dtype)
    keys = list(key) if isinstance(key, tuple) else [key]
    if all(k is Ellipsis or (isinstance(k, slice) and k == slice(None)) for k in keys):
        return _fits(new, x, x)
    mask = _mask(keys)
    if mask is not None:
        return _by_mask(x, mask, new)
    if not _is_traced(x, new, *keys):
        return _eager(x, key, new)
    run = _one_run(x, keys)
    return _by_positions(x, key, new) if run is None else _by_concat(x, run, new)


def _is_traced(*values: object) -> bool:
    def bounds(v: object) -> list[object]:
        return [v.start, v.stop, v.step] if isinstance(v, slice) else [v]

    return any(
        isinstance(b, Extent) or (isinstance(b, Tensor) and b.is_traced) for value in values for b in bounds(value)
    )


def _eager(x: Tensor, key: Any, new: Tensor) -> Tensor:
    array = x.numpy().copy()
    plain = tuple(np.asarray(k) if isinstance(k, Tensor) else k for k in (key if isinstance(key, tuple) else (key,)))
    try:
        array[plain] = new.numpy()
    except IndexError as error:
        raise OutOfRangeError(f"x[...] = ...: {error}", location=user_line()) from error
    except (ValueError, TypeError) as error:
        raise InvalidArgumentError(f"x[...] = ...: {error}", location=user_line()) from error
    return Tensor.of_array(array)


def _fits(new: Tensor, part: Tensor, x: Tensor) -> Tensor:
    """A value as large as the part that it replaces."""
    from sardonyx.frontend.functions.shape import broadcast_to, reshape

    while new.ndim > part.ndim and type(new.shape[0]) is int and new.shape[0] == 1:  # as NumPy has it
        new = reshape(new, new.shape[1:])
    if compare_shapes(new, part) is Proof.PROVED:
        return new
    if new.ndim > part.ndim:
        shown = ["[" + ", ".join(map(str, t.shape)) + "]" for t in (new, part)]
        raise InvalidArgumentError(f"x[...] = ...: a value of shape {shown[0]} for a part of shape {shown[1]}",
                                   location=user_line())  # fmt: skip
    try:
        return broadcast_to(new, part.shape)
    except SardonyxError as error:
        raise InvalidArgumentError(f"x[...] = ...: {error.message}", location=user_line()) from None


# ---- masks


def _mask(keys: list[Any]) -> Tensor | None:
    """The mask where the key is one of the tensor's first axes, alone."""
    if len(keys) == 1 and is_tensor_like(keys[0]) and not isinstance(keys[0], bool | Extent):
        found = to_tensor(keys[0])
        if is_bool(found):
            return found
    return None


def _by_mask(x: Tensor, mask: Tensor, new: Tensor) -> Tensor:
    from sardonyx.frontend.functions.elementwise import where
    from sardonyx.frontend.functions.shape import reshape

    if mask.ndim > x.ndim:
        raise InvalidArgumentError(
            f"x[mask] = ...: a mask of rank {mask.ndim} for a tensor of rank {x.ndim}", location=user_line()
        )
    if not _is_traced(x, mask, new):
        return _eager(x, mask, new)
    wide = reshape(mask, (*mask.shape, *(1,) * (x.ndim - mask.ndim)))
    if new.ndim > x.ndim - mask.ndim and not (new.ndim == 1 and type(new.shape[0]) is int and new.shape[0] == 1):
        raise InvalidArgumentError(
            "x[mask] = values: how many values the mask takes is known only when the graph runs; write "
            "x = sardonyx.where(mask, other, x) with values of x's shape",
            location=user_line(),
        )
    return where(wide, new, x)


# ---- a run along one axis


def _one_run(x: Tensor, keys: list[Any]) -> tuple[int, Any, Any] | None:
    """(axis, start, stop) where the key takes neighbouring slices along one axis, counted from the front."""
    rank = x.ndim
    taken = sum(1 for k in keys if k is not None and k is not Ellipsis)
    if taken > rank or any(k is None for k in keys):
        return None
    axis, found = 0, None
    for key in keys:
        if key is Ellipsis:
            axis += rank - taken
            continue
        if not (isinstance(key, slice) and key == slice(None)):
            if found is not None:
                return None
            found = (axis, key)
        axis += 1
    if found is None or not isinstance(found[1], slice) or found[1].step not in (None, 1):
        return None
    extent = x.shape[found[0]]
    if not isinstance(extent, int):
        return None
    start, stop = found[1].start, found[1].stop
    if not all(b is None or isinstance(b, int) for b in (start, stop)):
        return None
    first, last, _ = found[1].indices(extent)
    return found[0], first, max(first, last)


def _by_concat(x: Tensor, run: tuple[int, int, int], new: Tensor) -> Tensor:
    """What comes before, the value, and what comes behind."""
    from sardonyx.frontend.functions.gathering import sliced
    from sardonyx.frontend.functions.joining import concat

    axis, start, stop = run
    part = _fits(new, sliced(x, {axis: (start, stop)}), x)
    parts = [part]
    if start:
        parts.insert(0, sliced(x, {axis: (0, start)}))
    if stop < x.shape[axis]:
        parts.append(sliced(x, {axis: (stop, None)}))
    return part if len(parts) == 1 else concat(parts, axis=axis)


# ---- any other key


def _by_positions(x: Tensor, key: Any, new: Tensor) -> Tensor:
    """Scatter the value to the positions that the key takes of a tensor of positions."""
    from sardonyx.frontend.functions.creation import arange
    from sardonyx.frontend.functions.shape import reshape, unsqueeze
    from sardonyx.frontend.indexing import index

    if all(isinstance(e, int) for e in x.shape):
        size = int(np.prod(x.shape, dtype=np.int64))
        places = Tensor.of_array(np.arange(size, dtype=np.int64).reshape(x.shape))
    else:
        places = reshape(arange(0, x.size, dtype=int64), x.shape)
    taken = index(places, key)
    values = reshape(_fits(new, taken, x), (-1,))
    flat = op("sx.scatter_nd", reshape(x, (-1,)), unsqueeze(reshape(taken, (-1,)), -1), values)
    return reshape(flat, x.shape)
