"""Other shapes for the same elements: reshape, transpose, squeeze, broadcast; and the shape as data.

Extents may be ints, the `Extent`s of traced tensors, or integer tensors; a shape keeps its symbols.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.dialects.attributes import dims_of
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import int64
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.apply import ints, op
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.functions.creation import shape_entries
from sardonyx.frontend.functions.reductions import normalized_axes, one_axis
from sardonyx.frontend.operands import TensorLike, cast, to_tensor
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor

Shape = Sequence[Any] | Tensor | int
"""Extents: ints, `Extent`s, integer tensors []; or an integer vector."""


# ---- shapes as data


def shape(x: TensorLike, start: int = 0, end: int | None = None) -> Tensor:
    """The extents of axes `start` to `end` (exclusive) as an int64 vector."""
    return op("sx.shape", to_tensor(x), start=start, end=end)


def shape_vector(x: Tensor, start: int, end: int) -> Tensor:
    """The extents of some axes as an int64 vector."""
    return op("sx.shape", x, start=start, end=end)


def size(x: TensorLike) -> Tensor:
    """The number of elements as an int64 tensor []."""
    return op("sx.size", to_tensor(x))


def shape_tensor(entries: Sequence[Any]) -> Tensor:
    """A shape as an int64 vector: constants, extents and tensors joined in order."""
    parts: list[Tensor] = []
    pending: list[int] = []
    for entry in entries:
        if isinstance(entry, int):
            pending.append(entry)
            continue
        if pending:
            parts.append(ints(pending))
            pending = []
        parts.append(entry.vector() if isinstance(entry, Extent) else _one_element(entry))
    if pending or not parts:
        parts.append(ints(pending))
    return parts[0] if len(parts) == 1 else op("sx.concat", parts, axis=0)


def _one_element(entry: Tensor) -> Tensor:
    if not entry.dtype.is_integer:
        raise InvalidArgumentError(f"a shape consists of integers, not {entry.dtype}", location=user_line())
    return op("sx.reshape", cast(entry, int64), ints([1]))


def _shape_operand(shape: Shape) -> list[Any] | Tensor:
    """The entries of a shape, or a traced vector that holds them."""
    if isinstance(shape, np.ndarray) or (isinstance(shape, Tensor) and shape.ndim == 1):
        vector = to_tensor(shape)
        return cast(vector, int64) if vector.is_traced else [int(e) for e in vector.numpy()]
    return shape_entries(shape)


# ---- reshape


def reshape(x: TensorLike, shape: Shape, *, copy: bool | None = None, allowzero: bool = True) -> Tensor:
    """The elements in row-major order in another shape.

    Args:
        x: A tensor.
        shape: Extents; one may be -1, for what is left.
        copy: Ignored: tensors are immutable.
        allowzero: Whether an entry 0 is an extent of 0; if not, it copies the extent of `x`, as in ONNX.

    Raises:
        InferenceError: The numbers of elements differ.
    """
    x = to_tensor(x)
    entries = _shape_operand(shape)
    if isinstance(entries, Tensor):
        return op("sx.reshape", x, entries, allowzero=False)
    known = [e for e in entries if isinstance(e, int)]
    zero = allowzero and 0 in known
    if zero and -1 in known:
        raise InvalidArgumentError(
            f"a tensor of shape {list(x.shape)} cannot be reshaped to {entries}: beside a 0, -1 is undefined",
            location=user_line(),
        )
    if any(not isinstance(e, int) for e in entries) and not zero:
        entries = _simplified(x, entries)
    return op("sx.reshape", x, shape_tensor(entries), allowzero=zero)


def _simplified(x: Tensor, entries: list[Any]) -> list[Any]:
    """The same shape in constants where that states it: 0 for an extent of `x` that keeps its place, -1 for one more.

    A constant shape is what other tools understand best. What doesn't fit stays computed.
    """
    if not x.is_traced:
        return entries
    dims = dims_of(x.value)
    if not all(isinstance(e, int | Extent) for e in entries):
        return entries
    wanted = [e.dim if isinstance(e, Extent) else Dim.of(e) for e in entries]
    out: list[Any] = []
    for at, (entry, dim) in enumerate(zip(entries, wanted)):
        same = not isinstance(entry, int) and at < len(dims) and equal(dims[at], dim) is Proof.PROVED
        out.append(0 if same else entry)
    open_places = [i for i, e in enumerate(out) if not isinstance(e, int)]
    if -1 not in out and len(open_places) == 1:
        copied = {i for i, e in enumerate(out) if not isinstance(e, Extent) and e == 0}
        have = Dim.product(d for i, d in enumerate(dims) if i not in copied)
        rest = Dim.product(w for i, w in enumerate(wanted) if i not in copied and i != open_places[0])
        if rest.static_value != 0 and have.exact_quotient(rest) == wanted[open_places[0]]:
            out[open_places[0]] = -1
    return out


def flatten(x: TensorLike, axis: int = 1) -> Tensor:
    """A matrix: the axes before `axis` make the rows, the others the columns."""
    return op("sx.flatten", to_tensor(x), axis=axis)


def ravel(x: TensorLike) -> Tensor:
    """All elements as a vector."""
    return reshape(x, (-1,))


def squeeze(x: TensorLike, axis: Any = None) -> Tensor:
    """Without these axes, whose extents are 1; by default without all axes of extent 1."""
    x = to_tensor(x)
    axes = normalized_axes(axis, x.ndim)
    return op("sx.squeeze", x, None if axes is None else ints(axes))


def unsqueeze(x: TensorLike, axis: Any) -> Tensor:
    """With axes of extent 1 where the result has these axes."""
    x = to_tensor(x)
    given = [axis] if hasattr(axis, "__index__") and not isinstance(axis, list | tuple) else list(axis)
    axes = normalized_axes(given, x.ndim + len(given))
    return op("sx.unsqueeze", x, ints(axes or ()))


def expand_dims(x: TensorLike, /, *args: Any, axis: Any = None) -> Tensor:
    """`unsqueeze` of one axis, by default the first."""
    given = args[0] if args else 0 if axis is None else axis
    return unsqueeze(x, given)


# ---- order of axes


def transpose(x: TensorLike, axes: Sequence[int] | None = None) -> Tensor:
    """Axis i of the result is axis `axes[i]`; by default the axes are reversed."""
    x = to_tensor(x)
    if axes is None:
        return op("sx.transpose", x, perm=tuple(reversed(range(x.ndim))))
    given = [operator.index(a) for a in axes]
    if len(given) != x.ndim:
        raise InvalidArgumentError(
            f"transpose() got {len(given)} axes for a tensor of rank {x.ndim}", location=user_line()
        )
    return op("sx.transpose", x, perm=normalized_axes(given, x.ndim))


def permute_dims(x: TensorLike, /, axes: Sequence[int]) -> Tensor:
    """`transpose` under the array API's name."""
    return transpose(x, axes)


def swapaxes(x: TensorLike, axis1: int, axis2: int) -> Tensor:
    """Two axes exchanged."""
    x = to_tensor(x)
    order = list(range(x.ndim))
    a, b = one_axis(axis1, x.ndim), one_axis(axis2, x.ndim)
    order[a], order[b] = order[b], order[a]
    return transpose(x, order)


def moveaxis(x: TensorLike, source: Any, destination: Any, /) -> Tensor:
    """Axes moved to other places; the rest keep their order."""
    x = to_tensor(x)
    sources, places = normalized_axes(source, x.ndim) or (), normalized_axes(destination, x.ndim) or ()
    if len(sources) != len(places):
        raise InvalidArgumentError("moveaxis(): source and destination name different numbers of axes")
    order = [a for a in range(x.ndim) if a not in sources]
    for place, axis in sorted(zip(places, sources)):
        order.insert(place, axis)
    return transpose(x, order)


# ---- broadcasting


def broadcast_to(x: TensorLike, /, shape: Shape) -> Tensor:
    """The tensor repeated along axes of extent 1 to have exactly this shape.

    Raises:
        InvalidArgumentError: It doesn't broadcast to it.
    """
    x = to_tensor(x)
    entries = _shape_operand(shape)
    if isinstance(entries, Tensor):
        return op("sx.expand", x, entries)
    _check_broadcast(x, entries)
    return op("sx.expand", x, shape_tensor(entries))


def _check_broadcast(x: Tensor, entries: Sequence[Any]) -> None:
    have = x.shape
    fits = len(have) <= len(entries) and all(
        not isinstance(a, int) or not isinstance(b, int) or a in (1, b)
        for a, b in zip(reversed(have), reversed(entries))
    )
    if not fits:
        raise InvalidArgumentError(
            f"a tensor of shape {list(have)} does not broadcast to {list(entries)}", location=user_line()
        )


def expand(x: TensorLike, shape: Shape) -> Tensor:
    """The tensor broadcast together with a shape, in both directions, as ONNX's Expand."""
    entries = _shape_operand(shape)
    return op("sx.expand", to_tensor(x), entries if isinstance(entries, Tensor) else shape_tensor(entries))


def broadcast_arrays(*tensors: TensorLike) -> list[Tensor]:
    """All of them in the shape that they broadcast to."""
    found = [to_tensor(t) for t in tensors]
    if not any(t.is_traced for t in found):
        shape = broadcast_shapes(*(t.shape for t in found))
        return [t if t.shape == shape else broadcast_to(t, shape) for t in found]
    out: list[Tensor] = []
    for i, tensor in enumerate(found):
        for other in found[:i] + found[i + 1 :]:
            tensor = expand(tensor, other.shape)
        out.append(tensor)
    return out


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The shape that static shapes broadcast to.

    Raises:
        InvalidArgumentError: They don't.
    """
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        shown = " and ".join(str(list(s)) for s in shapes)
        raise InvalidArgumentError(f"the shapes {shown} do not broadcast", location=user_line()) from error


# ---- depth and space


def depth_to_space(x: TensorLike, blocksize: int, mode: str = "DCR") -> Tensor:
    """Blocks of channels moved into height and width, as ONNX has it."""
    return op("sx.depth_to_space", to_tensor(x), blocksize=blocksize, mode=mode)


def space_to_depth(x: TensorLike, blocksize: int) -> Tensor:
    """Blocks of height and width moved into channels."""
    return op("sx.space_to_depth", to_tensor(x), blocksize=blocksize)
