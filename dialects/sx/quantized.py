"""What quantised ops share: the shapes of scales and zero points, and sums of products of small integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import Shape, dims_of, dtype_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.evaluate import Array
from sardonyx.dialects.sx.extents import refuse
from sardonyx.dialects.sx.support import format_dims, is_unranked
from sardonyx.errors import InferenceError

ROWS, COLUMNS = -2, -1
"""The axis of a matrix along which it has a parameter each: the left factor's rows, the right one's columns."""


def check_dtype_of(op: SxOp, parameter: SSAValue | None, data: SSAValue, constraint: str, what: str) -> None:
    """Refuse a zero point whose dtype is not that of its data."""
    if parameter is not None and dtype_of(parameter) != dtype_of(data):
        raise op.fail(f"{constraint} {what} has dtype {dtype_of(parameter)}, its data {dtype_of(data)}")


def check_scalar(op: SxOp, parameter: SSAValue | None, constraint: str, what: str) -> None:
    """Refuse a parameter of more than one element (a vector of one is taken for a scalar)."""
    if parameter is not None and not is_unranked(parameter):
        _one(op, dims_of(parameter), constraint, what)


def _one(op: SxOp, dims: Shape, constraint: str, what: str) -> None:
    if len(dims) > 1 or (dims and equal(dims[0], Dim.of(1)) is Proof.REFUTED):
        raise op.fail(f"{constraint} {what} of shape {format_dims(dims)} is no scalar")


def check_channels(op: SxOp, parameter: SSAValue | None, count: Dim | None, constraint: str, what: str) -> None:
    """Refuse what is neither a scalar nor a vector with an element per channel."""
    if parameter is None or is_unranked(parameter):
        return
    _channels(op, dims_of(parameter), count, constraint, what)


def _channels(op: SxOp, dims: Shape, count: Dim | None, constraint: str, what: str) -> None:
    fits = not dims or (
        len(dims) == 1
        and (count is None or any(equal(dims[0], Dim.of(n)) is not Proof.REFUTED for n in (Dim.of(1), count)))
    )
    if not fits:
        raise op.fail(f"{constraint} {what} of shape {format_dims(dims)} is neither a scalar nor one of {count} each")


def check_lines(op: SxOp, parameter: SSAValue | None, matrix: SSAValue, axis: int, constraint: str, what: str) -> None:
    """Refuse a parameter of a matrix that is no scalar, no vector of an element per row or column (`axis`), and no
    tensor of the matrix's rank whose extent along the other of its last two axes is 1."""
    if parameter is not None and not is_unranked(parameter) and not is_unranked(matrix):
        _lines(op, dims_of(parameter), dims_of(matrix), axis, constraint, what)


def _lines(op: SxOp, dims: Shape, matrix: Shape, axis: int, constraint: str, what: str) -> None:
    lines = matrix[axis] if len(matrix) > 1 else Dim.of(1)
    if not dims or (len(dims) == 1 and any(equal(dims[0], Dim.of(n)) is not Proof.REFUTED for n in (Dim.of(1), lines))):
        return
    if len(dims) == len(matrix) > 1:
        across = len(matrix) + (ROWS + COLUMNS - axis)
        wanted = [Dim.of(1) if i == across else d for i, d in enumerate(matrix)]
        if all(
            any(equal(d, Dim.of(n)) is not Proof.REFUTED for n in (Dim.of(1), w))
            for d, w in zip(dims, wanted, strict=True)
        ):
            return
    per = "row" if axis == ROWS else "column"
    raise op.fail(f"{constraint} {what} of shape {format_dims(dims)} is neither one number nor one per {per} of "
                  f"{format_dims(matrix)}")  # fmt: skip


# ---- in a run


def scalar(op: SxOp, parameter: Array, what: str) -> Array:
    """The one element of a parameter, 0-d; raises ExecutionError where it has another number of elements."""
    if parameter.ndim > 1 or parameter.size != 1:
        raise refuse(op, f"{what} of shape {list(parameter.shape)} is no scalar")
    return parameter.reshape(())


def per_channel(op: SxOp, parameter: Array, count: int, rank: int, axis: int, what: str) -> Array:
    """A scalar as it is; an element per channel along `axis` of a tensor of that rank."""
    if parameter.ndim == 0 or parameter.shape == (1,):
        return parameter.reshape(())
    if parameter.shape != (count,):
        raise refuse(op, f"{what} of shape {list(parameter.shape)} is neither a scalar nor one of {count} each")
    return parameter.reshape([count if i == axis else 1 for i in range(rank)])


def per_line(op: SxOp, parameter: Array, matrix: Array, axis: int, what: str) -> Array:
    """A parameter of a matrix, so that it broadcasts to it."""
    try:
        _lines(op, _dims(parameter.shape), _dims(matrix.shape), axis, "", what)
    except InferenceError as error:
        raise refuse(op, error.message.strip()) from None
    if parameter.ndim == 1 and parameter.size == 1:
        return parameter.reshape(())
    return parameter[:, None] if parameter.ndim == 1 and axis == ROWS else parameter


def _dims(shape: Sequence[int]) -> Shape:
    return tuple(map(Dim.of, shape))


def centred(data: Array, zero_point: Array | None) -> Array:
    """The data less their zero point, as float64, which holds every sum of products of 8-bit integers exactly."""
    wide = data.astype(np.float64)
    return wide if zero_point is None else wide - zero_point.astype(np.float64)


def wrapped_int32(sums: Array) -> Array:
    """Whole numbers in float64 as int32, modulo 2^32."""
    return sums.astype(np.int64).astype(np.int32)
