"""`linalg` on tensors: generic ops by their maps and bodies, and the named ops that xDSL has, without convolutions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase
from xdsl.dialects.linalg import ops as linalg
from xdsl.ir import Operation

from sardonyx.dialects.evaluate import EvalContext, Value, register_evaluator
from sardonyx.dialects.foreign.scalars import Array, numpy_dtype, require
from sardonyx.errors import ExecutionError, UnsupportedError

MAX_POINTS = 1 << 16
"""How many points the space of a generic op may have."""


@register_evaluator(linalg.GenericOp)
def _generic(ctx: EvalContext, op: linalg.GenericOp, *operands: Array) -> Sequence[Value]:
    maps = [m.data for m in op.indexing_maps.data]
    space = _extents(maps, operands)
    if int(np.prod(space, dtype=np.int64)) > MAX_POINTS:
        raise ExecutionError(f"the space {list(space)} has more than {MAX_POINTS} points")
    inputs = len(op.inputs)
    outputs = [o.copy() for o in operands[inputs:]]
    arrays = [*operands[:inputs], *outputs]
    indices = [inner for inner in op.body.walk() if isinstance(inner, linalg.IndexOp)]
    for point in itertools.product(*map(range, space)):
        places = [tuple(m.eval(list(point), [])) for m in maps]
        for array, place in zip(arrays, places, strict=True):
            require(all(0 <= i < e for i, e in zip(place, array.shape, strict=True)), "an index map leaves its operand")
        for inner in indices:
            ctx.values[inner.results[0]] = np.array(point[inner.dim.value.data], np.int64)
        made = ctx.run_block(op.body.block, [np.asarray(a[p]) for a, p in zip(arrays, places, strict=True)])
        for array, place, value in zip(outputs, places[inputs:], made, strict=True):
            array[place] = value
    return outputs


@register_evaluator(linalg.IndexOp)
def _index(ctx: EvalContext, op: linalg.IndexOp) -> Sequence[Value]:
    return [ctx.values[op.results[0]]]  # the generic op around it has put it there


def _extents(maps: Sequence[Any], operands: Sequence[Array]) -> tuple[int, ...]:
    """The extents of the iteration space: those of the operands that a map reads by one dim alone.

    Raises:
        ExecutionError: Two operands disagree, or no operand tells an extent.
    """
    found: dict[int, int] = {}
    for affine, array in zip(maps, operands, strict=True):
        for axis, result in enumerate(affine.results):
            position = getattr(result, "position", None)
            if position is None or str(result).startswith("s"):
                continue
            known = found.setdefault(position, array.shape[axis])
            if known != array.shape[axis]:
                raise ExecutionError(f"the extents of dim {position} disagree: {known} and {array.shape[axis]}")
    missing = [d for d in range(maps[0].num_dims) if d not in found]
    if missing:
        raise ExecutionError(f"no operand tells the extent of dim {missing[0]}")
    return tuple(found[d] for d in range(maps[0].num_dims))


def _elementwise(function: Callable[..., Any], *ops: type[Operation]) -> None:
    """Register a named elementwise op: its last operand is what the result is written to."""

    @register_evaluator(*ops)
    def evaluate(ctx: EvalContext, op: Operation, *operands: Array) -> Sequence[Value]:
        *inputs, out = operands
        value = np.asarray(function(*inputs))
        if any(i.shape != out.shape for i in inputs):
            raise ExecutionError(f"shapes {[list(o.shape) for o in operands]} are not equal")
        return [value.astype(numpy_dtype(op.results[0].type))]


_elementwise(np.add, linalg.AddOp)
_elementwise(np.subtract, linalg.SubOp)
_elementwise(np.multiply, linalg.MulOp)
_elementwise(np.maximum, linalg.MaxOp)
_elementwise(np.minimum, linalg.MinOp)
_elementwise(np.exp, linalg.ExpOp)
_elementwise(np.log, linalg.LogOp)
_elementwise(np.sqrt, linalg.SqrtOp)
_elementwise(np.where, linalg.SelectOp)
_elementwise(lambda x: x, linalg.CopyOp)


@register_evaluator(linalg.FillOp)
def _fill(ctx: EvalContext, op: linalg.FillOp, value: Array, out: Array) -> Sequence[Value]:
    return [np.full(out.shape, value).astype(out.dtype)]


@register_evaluator(linalg.MatmulOp)
def _matmul(ctx: EvalContext, op: linalg.MatmulOp, a: Array, b: Array, out: Array) -> Sequence[Value]:
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[0] or out.shape != (a.shape[0], b.shape[1]):
        raise ExecutionError(f"matrices {list(a.shape)}, {list(b.shape)} and {list(out.shape)} do not fit")
    kind = np.float64 if out.dtype.kind == "f" else np.int64
    return [(out.astype(kind) + a.astype(kind) @ b.astype(kind)).astype(out.dtype)]


def _numbers(attr: Any) -> list[int]:
    return (
        [int(v) for v in attr.get_values()] if isinstance(attr, DenseArrayBase) else [v.value.data for v in attr.data]
    )


@register_evaluator(linalg.TransposeOp)
def _transpose(ctx: EvalContext, op: linalg.TransposeOp, source: Array, out: Array) -> Sequence[Value]:
    return [np.ascontiguousarray(np.transpose(source, _numbers(op.permutation)))]


@register_evaluator(linalg.BroadcastOp)
def _broadcast(ctx: EvalContext, op: linalg.BroadcastOp, source: Array, out: Array) -> Sequence[Value]:
    added = tuple(_numbers(op.dimensions))
    return [np.broadcast_to(np.expand_dims(source, added), out.shape).copy()]


@register_evaluator(linalg.ReduceOp)
def _reduce(ctx: EvalContext, op: linalg.ReduceOp, *operands: Array) -> Sequence[Value]:
    if len(operands) != 2:
        raise UnsupportedError("linalg.reduce of several operands has no reference semantics")
    source, out = operands
    dims = _numbers(op.dimensions)
    if source.size > MAX_POINTS:
        raise ExecutionError(f"{source.size} elements are more than {MAX_POINTS}")
    result = out.copy()
    for point in np.ndindex(source.shape):
        place = tuple(i for axis, i in enumerate(point) if axis not in dims)
        (value,) = ctx.run_block(op.region.block, [np.asarray(source[point]), np.asarray(result[place])])
        result[place] = value
    return [result]
