"""What the shape-changing families share: operands that hold extents or axes, merging of extents, limits of size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of, is_anonymous, rank_of, static_shape
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, int64
from sardonyx.dialects.evaluate import Array
from sardonyx.dialects.sx.support import is_unranked, require_equal
from sardonyx.dialects.values import Contents, contents, known_ints
from sardonyx.errors import ExecutionError, InferenceError

MAX_BYTES = 1 << 40
"""A tensor larger than this is refused: no machine holds it, and a tiny model must not ask for it."""
MAX_EXTENT = (1 << 63) - 1
"""The largest number of elements."""


def slots(arrays: Iterable[Array | None]) -> list[Any]:
    """The operands of a run by slot, absent ones None."""
    return list(arrays)


def refuse(op: SxOp, message: str) -> ExecutionError:
    """The error of a run whose data the op cannot take, ready to raise."""
    return ExecutionError(message, op=op.name)


def merge(op: SxOp, a: Dim, b: Dim, message: str) -> Dim:
    """The better of two extents that have to be equal: the static one, else one that has a name.

    Raises:
        InferenceError: They are certainly different; the text begins with `message`.
    """
    require_equal(op, a, b, message)
    if a.is_static or (not b.is_static and not is_anonymous(a)):
        return a
    return b if b.is_static or not is_anonymous(b) else a


def check_vector(
    op: SxOp, value: SSAValue, constraint: str, what: str, dtypes: Sequence[DType] = (int64,)
) -> int | None:
    """The length of a one-dimensional operand, None where it isn't known.

    Raises:
        InferenceError: Its dtype is none of `dtypes`, or its rank isn't 1.
    """
    if dtype_of(value) not in dtypes:
        raise op.fail(f"{constraint} {what} has dtype {dtype_of(value)}; allowed: {', '.join(map(str, dtypes))}")
    if is_unranked(value):
        return None
    if rank_of(value) != 1:
        raise op.fail(f"{constraint} {what} has rank {rank_of(value)}, not 1")
    return dims_of(value)[0].static_value


def elements(value: SSAValue, length: int) -> Contents:
    """The contents of a vector of that length, None per unknown element."""
    known = contents(value)
    return (None,) * length if known is None else known


def objects(value: SSAValue) -> Array | None:
    """The known contents as an array of Dims (None per unknown element), or None; data movement is done on these."""
    known = contents(value)
    shape = static_shape(value)
    if known is None or shape is None:
        return None
    out = np.empty(len(known), object)
    out[:] = known
    return out.reshape(shape)


def numbers(value: SSAValue) -> Array | None:
    """The contents as an array of int64 where all of them are known numbers."""
    known, shape = known_ints(value), static_shape(value)
    return None if known is None or shape is None else np.array(known, np.int64).reshape(shape)


def flat(array: Array | None) -> Contents | None:
    """The contents of a result from its array of Dims (NumPy gives the element itself where the rank is 0)."""
    return None if array is None else tuple(np.asarray(array, object).reshape(-1).tolist())


def check_allocation(op: SxOp, dtype: DType, dims: Iterable[Dim | int], constraint: str) -> None:
    """Refuse a shape that has a negative extent, or asks for more elements or memory than there can be.

    Raises:
        InferenceError: It does.
    """
    count: int | None = 1
    shown = list(dims)
    for dim in shown:
        size = Dim.of(dim).static_value
        if size is not None and size < 0:
            raise op.fail(f"{constraint} the extent {size} is negative")
        if size == 0:
            count = 0
        elif count:
            count = None if size is None else count * size
    if count is not None and (count > MAX_EXTENT or count * dtype.itemsize > MAX_BYTES):
        raise op.fail(
            f"{constraint} a tensor of shape [{', '.join(map(str, shown))}] and dtype {dtype} is larger than "
            f"{MAX_BYTES >> 30} GiB"
        )


def check_run_allocation(op: SxOp, array: Array | np.dtype, shape: Sequence[int]) -> None:
    """The same of a run; raises ExecutionError."""
    dtype = DType.of_array(array) if isinstance(array, np.ndarray) else DType.of(array)
    try:
        check_allocation(op, dtype, shape, "")
    except InferenceError as error:
        raise refuse(op, error.message.strip()) from None


def run_axis(op: SxOp, axis: int, rank: int) -> int:
    """A non-negative axis of a run; raises ExecutionError outside [-rank, rank)."""
    if not -rank <= axis < rank:
        raise refuse(op, f"axis {axis} is out of range for rank {rank}")
    return axis % rank


def run_axes(op: SxOp, axes: Iterable[int], rank: int) -> tuple[int, ...]:
    """Non-negative axes of a run, in the given order; raises ExecutionError where one repeats."""
    found = tuple(run_axis(op, int(a), rank) for a in axes)
    if len(set(found)) != len(found):
        raise refuse(op, f"axes {list(found)} repeat one")
    return found
