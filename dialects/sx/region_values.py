"""Values that go into and come out of regions in a run of the reference: conditions, counts, carried values, rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dtype_of, type_dims
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.evaluate import Array, EvalContext, Value
from sardonyx.dialects.types import captures
from sardonyx.errors import ExecutionError, InvalidArgumentError


def flag(op: SxOp, array: Any, constraint: str) -> bool:
    """The one element of a condition.

    Raises:
        ExecutionError: It has none, or several.
    """
    return bool(_item(op, array, "a condition", constraint))


def integer(op: SxOp, array: Any, constraint: str) -> int:
    """The one element of a count.

    Raises:
        ExecutionError: It has none, or several.
    """
    return int(_item(op, array, "a trip count", constraint))


def _item(op: SxOp, array: Array, what: str, constraint: str) -> Any:
    if array.size != 1:
        raise ExecutionError(f"{constraint} {what} has {array.size} elements, not 1", op=op.name)
    return array.reshape(-1)[0]


def check_fits(op: SxOp, argument: SSAValue, value: Value, what: str) -> None:
    """Hold a value that enters a region against the rank and the static dims that the region states.

    Raises:
        ExecutionError: They differ.
    """
    ty = argument.type
    if not isinstance(ty, TensorType):
        return
    stated = ty.get_shape()
    if len(stated) != value.ndim or any(s not in (DYNAMIC_INDEX, got) for s, got in zip(stated, value.shape)):
        shown = "x".join("?" if s == DYNAMIC_INDEX else str(s) for s in stated) or "()"
        raise ExecutionError(f"{what} has shape {list(value.shape)}, but its region takes {shown}", op=op.name)


def stack(op: SxOp, ctx: EvalContext, rows: list[Value], yielded: SSAValue, axis: int, constraint: str) -> Array:
    """The rows of all iterations along a new axis; without any, of the extents that the yielded value's type states.

    Raises:
        ExecutionError: Their shapes differ.
    """
    if not rows:
        shape = row_shape(op, ctx, yielded)
        return np.empty((0, *shape) if axis in (0, -len(shape) - 1) else _inserted(shape, axis), _numpy(yielded))
    shapes = {row.shape for row in rows}
    if len(shapes) > 1:
        shown = " and ".join(str(list(s)) for s in sorted(shapes)[:2])
        raise ExecutionError(f"{constraint} rows of different shapes cannot be stacked: {shown}", op=op.name)
    return np.stack(rows, axis)


def _inserted(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    at = axis % (len(shape) + 1)
    return (*shape[:at], 0, *shape[at:])


def _numpy(value: SSAValue) -> Any:
    return dtype_of(value).numpy


def row_shape(op: SxOp, ctx: EvalContext, yielded: SSAValue) -> tuple[int, ...]:
    """The extents of a row that was never computed: those that follow from outside, else 0."""
    if not isinstance(yielded.type, TensorType):
        return ()
    bound: dict[str, int] = {}
    for value in (*op.operands, *captures(op)):
        array = ctx.values.get(value)
        if isinstance(value.type, TensorType) and isinstance(array, np.ndarray):
            for dim, extent in zip(type_dims(value.type), array.shape):
                if dim.symbol_name is not None:
                    bound[dim.symbol_name] = extent
    out: list[int] = []
    for dim in type_dims(yielded.type):
        try:
            out.append(dim.evaluate(bound) if dim.symbols() <= bound.keys() else 0)
        except InvalidArgumentError:
            out.append(0)
    return tuple(out)
