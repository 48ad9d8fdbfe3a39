"""Helpers of `infer_values`: known contents as grids of dims, and rules applied to them element by element."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dtype_of, static_shape
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim, Proof, less_equal
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.evaluate import EvalContext, evaluate_op
from sardonyx.dialects.values import MAX_ELEMENTS, Contents, contents, known_ints

Rule = Callable[..., Dim | None]
Grid: TypeAlias = "np.ndarray[Any, Any]"
"""An object array of `Dim | None`."""


def as_grid(elements: Sequence[Dim | None], shape: Sequence[int]) -> Grid:
    out = np.empty(len(elements), object)
    out[:] = list(elements)
    return out.reshape(tuple(shape))


def grid(value: SSAValue) -> Grid | None:
    """A value's known elements in its shape, perhaps none; None where it is not small or has no static shape."""
    shape = static_shape(value)
    if shape is None or math.prod(shape) > MAX_ELEMENTS:
        return None
    known = contents(value)
    return np.full(shape, None, object) if known is None else as_grid(known, shape)


def static(element: Dim | None) -> int | None:
    return None if element is None else element.static_value


def at_least(element: Dim, bound: int) -> bool:
    """Whether the element is proved to be at least the bound."""
    return less_equal(bound, element) is Proof.PROVED


def proved(statement: Proof) -> Dim | None:
    """A proof as the element of a bool tensor."""
    return None if statement is Proof.UNKNOWN else Dim.of(int(statement is Proof.PROVED))


def folded(op: SxOp) -> Contents | None:
    """The contents of the only result where all operands are known numbers: what `evaluate` says."""
    arrays: dict[SSAValue, np.ndarray[Any, Any]] = {}
    for operand in op.operands:
        numbers, shape = known_ints(operand), static_shape(operand)
        if numbers is None or shape is None:
            return None
        arrays[operand] = np.array(numbers, dtype_of(operand).numpy).reshape(shape)
    ctx = EvalContext(dict(arrays))
    evaluate_op(op, ctx)
    return tuple(Dim.of(int(v)) for v in ctx.values[op.results[0]].reshape(-1))


def elementwise(op: SxOp, rule: Rule | None = None, partial: bool = False) -> Contents | None:
    """The contents of an elementwise op's only result.

    Elements whose operands are numbers are what `evaluate` says; others what `rule` says of the operands' dims. The
    rule sees unknown elements (None) only with `partial`.
    """
    grids = [grid(o) for o in op.operands]
    shape = static_shape(op.results[0])
    if shape is None or any(g is None for g in grids) or all(contents(o) is None for o in op.operands):
        return None
    spread = [np.broadcast_to(g, shape).reshape(-1) for g in grids if g is not None]
    elements: list[tuple[Dim | None, ...]] = list(zip(*spread, strict=True))
    computed = _computed(op, [g for g in grids if g is not None])
    out: list[Dim | None] = []
    for at, operands in enumerate(elements):
        if all(static(d) is not None for d in operands):
            out.append(Dim.of(int(computed[at])))
        elif rule is not None and (partial or None not in operands):
            out.append(rule(*operands))
        else:
            out.append(None)
    return tuple(wrapped(d, dtype_of(op.results[0])) for d in out)


def _computed(op: SxOp, grids: Sequence[Grid]) -> np.ndarray[Any, Any]:
    """`evaluate` on the elements that are numbers, with 1 for the others."""
    ctx = EvalContext()
    for operand, known in zip(op.operands, grids, strict=True):
        numbers = [1 if (n := static(d)) is None else n for d in known.reshape(-1)]
        ctx.values[operand] = np.array(numbers, dtype_of(operand).numpy).reshape(known.shape)
    evaluate_op(op, ctx)
    return ctx.values[op.results[0]].reshape(-1)


def wrapped(element: Dim | None, dtype: DType) -> Dim | None:
    """A number brought into the dtype's range; symbols stay, since extents fit in what they are computed in."""
    number = static(element)
    if number is None or dtype.kind == "b":
        return element
    low = -(1 << (dtype.bits - 1)) if dtype.kind == "i" else 0
    return Dim.of((number - low) % (1 << dtype.bits) + low)
