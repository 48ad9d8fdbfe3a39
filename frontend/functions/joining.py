"""Joining tensors and taking them apart: concat, stack, split, pad, tile, repeat, roll, flip."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.dialects.dtypes import int64
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.apply import apply, ints, op
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.functions.creation import shape_entries
from sardonyx.frontend.functions.gathering import sliced
from sardonyx.frontend.functions.reductions import normalized_axes, one_axis
from sardonyx.frontend.functions.shape import reshape, shape_tensor, unsqueeze
from sardonyx.frontend.operands import TensorLike, cast, promoted, to_tensor
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor

Arrays = Sequence[TensorLike]


def concat(arrays: Arrays, /, axis: int | None = 0) -> Tensor:
    """The tensors side by side along an axis; with `axis=None` their elements in a row.

    Raises:
        InferenceError: Other extents differ.
    """
    parts = _several(arrays, "concat")
    if axis is None:
        parts, axis = [reshape(p, (-1,)) for p in parts], 0
    if not parts[0].ndim:
        raise InvalidArgumentError("concat() of tensors without axes; stack() joins them", location=user_line())
    return op("sx.concat", parts, axis=one_axis(axis, parts[0].ndim))


def stack(arrays: Arrays, /, axis: int = 0) -> Tensor:
    """The tensors, all of one shape, along a new axis."""
    parts = _several(arrays, "stack")
    at = one_axis(axis, parts[0].ndim + 1)
    return op("sx.concat", [unsqueeze(p, at) for p in parts], axis=at)


def _several(arrays: Arrays, call: str) -> list[Tensor]:
    if isinstance(arrays, Tensor | np.ndarray) or not isinstance(arrays, Sequence):
        raise InvalidArgumentError(f"{call}() takes a list of tensors, not one tensor", location=user_line())
    if not arrays:
        raise InvalidArgumentError(f"{call}() of no tensors", location=user_line())
    return promoted(*arrays)


def split(x: TensorLike, sections: Any, axis: int = 0) -> list[Tensor]:
    """The parts of the tensor along an axis.

    Args:
        x: A tensor.
        sections: A number of parts, or their sizes. An extent that the number doesn't divide leaves a shorter last one.
        axis: The axis.
    """
    x = to_tensor(x)
    at = one_axis(axis, x.ndim)
    if isinstance(sections, int) and not isinstance(sections, bool):
        if sections < 1:
            raise InvalidArgumentError(f"split() into {sections} parts", location=user_line())
        return list(apply("sx.split", x, None, axis=at, num_outputs=sections, results=sections))
    sizes = shape_entries(sections)
    return list(apply("sx.split", x, shape_tensor(sizes), axis=at, results=len(sizes)))


def chunk(x: TensorLike, chunks: int, axis: int = 0) -> list[Tensor]:
    """`split` into a number of parts."""
    return split(x, chunks, axis)


def unstack(x: TensorLike, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis, whose extent is static, without that axis."""
    from sardonyx.frontend.functions.shape import squeeze

    x = to_tensor(x)
    at = one_axis(axis, x.ndim)
    extent = x.shape[at]
    if isinstance(extent, Extent):
        raise InvalidArgumentError(
            f"unstack() along axis {at}, whose extent '{extent}' is dynamic; give it a fixed size in the signature",
            location=user_line(),
        )
    if not extent:
        return ()
    return tuple(squeeze(part, at) for part in split(x, [1] * extent, at))


# ---- pad, tile, repeat


def pad(
    x: TensorLike,
    pads: Any,
    mode: str = "constant",
    constant_value: TensorLike | None = None,
    axes: Sequence[int] | None = None,
) -> Tensor:
    """The tensor with more elements around it.

    Args:
        x: A tensor.
        pads: One number for all sides; `[(before, after), …]` an axis, as NumPy; or all befores, then all afters, as
            ONNX. Negative ones crop.
        mode: `constant`, `reflect`, `edge` or `wrap`.
        constant_value: What the new elements are; 0 by default.
        axes: The axes that `pads` is about; all by default.
    """
    x = to_tensor(x)
    where = None if axes is None else normalized_axes(axes, x.ndim)
    count = x.ndim if where is None else len(where)
    value = None if constant_value is None else promoted(constant_value, dtype=x.dtype)[0]
    amounts = shape_tensor(_pad_entries(pads, count))
    return op("sx.pad", x, amounts, value, None if where is None else ints(where), mode=mode)


def _pad_entries(pads: Any, count: int) -> list[Any]:
    if isinstance(pads, int):
        return [pads] * (2 * count)
    given = list(pads.numpy().tolist()) if isinstance(pads, Tensor) and not pads.is_traced else list(pads)
    if given and isinstance(given[0], Sequence):
        pairs = given * count if len(given) == 1 else given
        if len(pairs) != count or any(len(p) != 2 for p in pairs):
            raise InvalidArgumentError(f"pad() got {len(given)} pairs for {count} axes", location=user_line())
        given = [p[0] for p in pairs] + [p[1] for p in pairs]
    if len(given) != 2 * count:
        raise InvalidArgumentError(f"pad() got {len(given)} pads for {count} axes", location=user_line())
    return shape_entries(given)


def tile(x: TensorLike, repetitions: Any, /) -> Tensor:
    """The tensor repeated along its axes; missing ones on either side are put in front, as NumPy."""
    x = to_tensor(x)
    counts = shape_entries(repetitions)
    missing = len(counts) - x.ndim
    if missing > 0:
        x = unsqueeze(x, list(range(missing)))
    return op("sx.tile", x, shape_tensor([1] * -missing + counts))


def repeat(x: TensorLike, repeats: int | TensorLike, /, *, axis: int | None = None) -> Tensor:
    """Each element repeated in place, along an axis or of the elements in a row.

    Args:
        x: A tensor.
        repeats: How often, a number or integers [extent of the axis]; where they are traced, the run decides on the
            extent.
        axis: The axis; by default the elements in a row.

    Raises:
        InvalidArgumentError: `repeats` are no integers, negative, or no vector.
    """
    x = to_tensor(x)
    if axis is None:
        x, axis = reshape(x, (-1,)), 0
    at = one_axis(axis, x.ndim)
    if not isinstance(repeats, int):
        return _repeat_each(x, to_tensor(repeats), at)
    doubled = unsqueeze(x, at + 1)
    spread = tile(doubled, [repeats if i == at + 1 else 1 for i in range(doubled.ndim)])
    shape = list(x.shape)
    shape[at] = shape[at] * repeats
    return reshape(spread, shape)


def _repeat_each(x: Tensor, repeats: Tensor, axis: int) -> Tensor:
    """The slices along an axis, each as often as its own number says."""
    from sardonyx.frontend.functions.creation import arange
    from sardonyx.frontend.functions.differences import searchsorted
    from sardonyx.frontend.functions.gathering import take
    from sardonyx.frontend.functions.reductions import cumsum
    from sardonyx.frontend.functions.shape import broadcast_to

    if not repeats.dtype.is_integer or repeats.ndim > 1:
        raise InvalidArgumentError(
            f"repeat(): repeats is an integer or a vector of integers, not {repeats.dtype}{list(repeats.shape)}",
            location=user_line(),
        )
    if not repeats.is_traced and (repeats.numpy() < 0).any():
        raise InvalidArgumentError("repeat(): a number of repeats is negative", location=user_line())
    counts = broadcast_to(cast(repeats, int64), (x.shape[axis],))
    ends = cumsum(counts, axis=0)
    total = op("sx.reduce_sum", counts, keepdims=False)
    places = arange(0, int(total) if not total.is_traced else total, dtype=int64)
    return take(x, searchsorted(ends, places, side="right"), axis=axis)


# ---- order of elements


def flip(x: TensorLike, /, *, axis: Any = None) -> Tensor:
    """The elements in reverse order along axes, by default all."""
    x = to_tensor(x)
    axes = normalized_axes(axis, x.ndim)
    named = tuple(range(x.ndim)) if axes is None else axes
    if not named:
        return x
    low = -np.iinfo(np.int64).max
    return op("sx.slice", x, ints([-1] * len(named)), ints([low] * len(named)), ints(named), ints([-1] * len(named)))


def roll(x: TensorLike, /, shift: Any, *, axis: Any = None) -> Tensor:
    """The elements moved along axes; those that leave at one end come in at the other."""
    x = to_tensor(x)
    if axis is None:
        return reshape(roll(reshape(x, (-1,)), shift, axis=0), x.shape)
    axes = [axis] if isinstance(axis, int) else list(axis)
    shifts = [operator.index(s) for s in (shift if isinstance(shift, Sequence) else [shift] * len(axes))]
    if len(shifts) != len(axes):
        raise InvalidArgumentError("roll(): shift and axis have different lengths", location=user_line())
    for amount, a in zip(shifts, axes):
        at = one_axis(a, x.ndim)
        extent = x.shape[at]
        if isinstance(extent, int):
            amount = amount % extent if extent else 0
        if not amount:
            continue
        if isinstance(extent, Extent):
            x = _roll_dynamic(x, amount, at, extent)
        else:
            x = op("sx.concat", [sliced(x, {at: (-amount, None)}), sliced(x, {at: (0, -amount)})], axis=at)
    return x


def _roll_dynamic(x: Tensor, amount: int, axis: int, extent: Extent) -> Tensor:
    """By gathering position (i - amount) mod extent."""
    from sardonyx.frontend.functions.creation import arange
    from sardonyx.frontend.functions.elementwise import remainder

    size = extent.scalar()
    return op("sx.gather", x, cast(remainder(arange(extent) - amount, size), int64), axis=axis)


concatenate = concat
