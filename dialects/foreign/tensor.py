"""`tensor`: making, cutting and joining tensors. What `tensor.empty` holds is zeros: nobody may read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType
from xdsl.ir import Attribute

from sardonyx.dialects.evaluate import EvalContext, Value, register_evaluator
from sardonyx.dialects.foreign.scalars import Array, numpy_dtype, require
from sardonyx.errors import UnsupportedError


def extents(ty: Attribute, dynamic: Sequence[Value]) -> tuple[int, ...]:
    """The extents of a type whose unknown ones are given.

    Raises:
        UnsupportedError: The type is no ranked tensor.
    """
    if not isinstance(ty, TensorType):
        raise UnsupportedError(f"{ty} is no ranked tensor")
    given: Iterator[Value] = iter(dynamic)
    return tuple(int(next(given)) if e == DYNAMIC_INDEX else e for e in ty.get_shape())


@register_evaluator(tensor.EmptyOp)
def _empty(ctx: EvalContext, op: tensor.EmptyOp, *dynamic: Value) -> Sequence[Value]:
    return [np.zeros(extents(op.tensor.type, dynamic), numpy_dtype(op.tensor.type))]


@register_evaluator(tensor.SplatOp)
def _splat(ctx: EvalContext, op: tensor.SplatOp, element: Array, *dynamic: Value) -> Sequence[Value]:
    return [np.full(extents(op.results[0].type, dynamic), element)]


@register_evaluator(tensor.FromElementsOp)
def _from_elements(ctx: EvalContext, op: tensor.FromElementsOp, *elements: Array) -> Sequence[Value]:
    return [np.array(elements, numpy_dtype(op.results[0].type)).reshape(extents(op.results[0].type, ()))]


@register_evaluator(tensor.DimOp)
def _dim(ctx: EvalContext, op: tensor.DimOp, source: Array, index: Array) -> Sequence[Value]:
    require(0 <= int(index) < source.ndim, "a dimension beyond the rank")
    return [np.array(source.shape[int(index)], np.int64)]


@register_evaluator(tensor.CastOp)
def _cast(ctx: EvalContext, op: tensor.CastOp, source: Array) -> Sequence[Value]:
    ty = op.results[0].type
    if isinstance(ty, TensorType):
        fits = all(e in (DYNAMIC_INDEX, got) for e, got in zip(ty.get_shape(), source.shape, strict=False))
        require(fits and len(ty.get_shape()) == source.ndim, f"a cast of {list(source.shape)} to {ty}")
    return [source]


def _place(source: Array, indices: Sequence[Array]) -> tuple[int, ...]:
    at = tuple(int(i) for i in indices)
    require(all(0 <= i < e for i, e in zip(at, source.shape, strict=True)), f"the index {list(at)} is out of bounds")
    return at


@register_evaluator(tensor.ExtractOp)
def _extract(ctx: EvalContext, op: tensor.ExtractOp, source: Array, *indices: Array) -> Sequence[Value]:
    return [np.asarray(source[_place(source, indices)])]


@register_evaluator(tensor.InsertOp)
def _insert(ctx: EvalContext, op: tensor.InsertOp, element: Array, target: Array, *indices: Array) -> Sequence[Value]:
    out = target.copy()
    out[_place(target, indices)] = element
    return [out]


def _slices(op: Any, ctx: EvalContext, shape: Sequence[int]) -> tuple[tuple[slice, ...], list[int]]:
    """The slices that offsets, sizes and strides state, and the sizes."""
    columns: list[list[int]] = []
    for static, dynamic in (
        (op.static_offsets, op.offsets), (op.static_sizes, op.sizes), (op.static_strides, op.strides),
    ):  # fmt: skip
        given = iter(dynamic)
        columns.append([int(ctx.values[next(given)]) if v == DYNAMIC_INDEX else v for v in static.get_values()])
    offsets, sizes, strides = columns
    inside = all(
        o >= 0 and s >= 0 and (s == 0 or 0 <= o + (s - 1) * t < e)
        for o, s, t, e in zip(offsets, sizes, strides, shape, strict=True)
    )
    require(inside and all(t > 0 for t in strides), f"a slice beyond {list(shape)}")
    return tuple(slice(o, o + s * t, t) for o, s, t in zip(offsets, sizes, strides, strict=True)), sizes


@register_evaluator(tensor.ExtractSliceOp)
def _extract_slice(ctx: EvalContext, op: tensor.ExtractSliceOp, source: Array, *rest: Value) -> Sequence[Value]:
    places, _ = _slices(op, ctx, source.shape)
    out = source[places]
    wanted = op.results[0].type
    assert isinstance(wanted, TensorType)
    if len(wanted.get_shape()) < out.ndim:  # extents of 1 that the result leaves out
        keep = list(wanted.get_shape())
        shape = [e for i, e in enumerate(out.shape) if e != 1 or _kept(i, out.shape, keep)]
        out = out.reshape(shape[: len(keep)] if len(shape) >= len(keep) else out.shape)
    return [out]


def _kept(axis: int, shape: Sequence[int], keep: Sequence[int]) -> bool:
    """Whether an axis of extent 1 is one that the result has: as many of them are kept as it needs, the last ones."""
    needed = len(keep) - sum(e != 1 for e in shape)
    ones = [i for i, e in enumerate(shape) if e == 1]
    return axis in ones[len(ones) - needed :]


@register_evaluator(tensor.InsertSliceOp)
def _insert_slice(
    ctx: EvalContext, op: tensor.InsertSliceOp, source: Array, target: Array, *rest: Value
) -> Sequence[Value]:
    places, sizes = _slices(op, ctx, target.shape)
    out = target.copy()
    out[places] = source.reshape(sizes)
    return [out]


@register_evaluator(tensor.CollapseShapeOp)
def _collapse(ctx: EvalContext, op: tensor.CollapseShapeOp, source: Array) -> Sequence[Value]:
    groups = [[i.value.data for i in group.data] for group in op.reassociation.data]
    return [source.reshape([int(np.prod([source.shape[i] for i in group], dtype=np.int64)) for group in groups])]


@register_evaluator(tensor.ExpandShapeOp)
def _expand(ctx: EvalContext, op: tensor.ExpandShapeOp, source: Array, *dynamic: Value) -> Sequence[Value]:
    given = iter(dynamic)
    shape = [int(next(given)) if e == DYNAMIC_INDEX else e for e in op.static_output_shape.get_values()]
    require(int(np.prod(shape, dtype=np.int64)) == source.size, f"{list(source.shape)} expanded to {shape}")
    return [source.reshape(shape)]


@register_evaluator(tensor.ReshapeOp)
def _reshape(ctx: EvalContext, op: tensor.ReshapeOp, source: Array, shape: Array) -> Sequence[Value]:
    wanted = [int(e) for e in shape]
    require(int(np.prod(wanted, dtype=np.int64)) == source.size, f"{list(source.shape)} reshaped to {wanted}")
    return [source.reshape(wanted)]


@register_evaluator(tensor.ConcatOp)
def _concat(ctx: EvalContext, op: tensor.ConcatOp, *sources: Array) -> Sequence[Value]:
    return [np.concatenate(sources, op.dim.value.data)]
