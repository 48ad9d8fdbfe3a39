"""What the passes that recognise composite forms ask of values: products with their factors, means, roots, and whether
what would be left out is read elsewhere."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import ml_dtypes
from xdsl.ir import Operation, OpResult, SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of, rank_of
from sardonyx.dialects.sx.binary import AddOp, DivOp, MulOp, PowOp
from sardonyx.dialects.sx.cast import CastOp
from sardonyx.dialects.sx.reduce import ReduceMeanOp, ReduceSumOp
from sardonyx.dialects.sx.unary import ReciprocalOp, SqrtOp
from sardonyx.passes.matching import constant_number, defined_by, has_one_use, is_ranked

MAX_FACTORS = 8
"""How many factors of a product are looked at: no form has more."""
ROUNDINGS = 4
"""By how many roundings of its dtype a constant may differ from the number that is meant."""

Ops = dict[Operation, None]
"""A set that keeps its order."""


def is_close(found: float, number: float, like: SSAValue) -> bool:
    """Whether a number is the one that is meant, but for a few roundings to the dtype of a value."""
    dtype = dtype_of(like)
    if not dtype.is_float:
        return found == number
    return math.isclose(found, number, rel_tol=ROUNDINGS * float(ml_dtypes.finfo(dtype.numpy).eps))


def number_of(value: SSAValue) -> float | None:
    """The number that all elements of a constant are."""
    found = constant_number(value)
    return None if found is None else float(found)


def merged(*parts: Ops) -> Ops:
    """The union, in order."""
    return {op: None for part in parts for op in part}


def escapes(ops: Ops, root: Operation) -> Operation | None:
    """The first of these ops that something besides them reads; the root may be read."""
    for op in ops:
        if op is not root and any(use.operation not in ops for result in op.results for use in result.uses):
            return op
    return None


# ---- products


@dataclass
class Product:
    """A product and quotient: its factors above and below the line, and the ops that it is made of."""

    above: list[SSAValue] = field(default_factory=list[SSAValue])
    below: list[SSAValue] = field(default_factory=list[SSAValue])
    ops: Ops = field(default_factory=Ops)


def product_of(value: SSAValue) -> Product:
    """The factors of a value. A product or quotient inside of it counts as its factors where nobody else reads it; a
    1 above the line is left out."""
    found = Product()
    _factor(found, value, above=True, root=True)
    return found


def _factor(found: Product, value: SSAValue, above: bool, root: bool = False) -> None:
    side, other = (found.above, found.below) if above else (found.below, found.above)
    op = defined_by(value, (MulOp, DivOp, ReciprocalOp))
    if op is None or not (root or has_one_use(value)) or len(side) + len(other) >= MAX_FACTORS:
        if root or number_of(value) != 1.0:
            side.append(value)
        return
    found.ops[op] = None
    if isinstance(op, ReciprocalOp):
        return _factor(found, op.operands[0], not above)
    _factor(found, op.operands[0], above)
    _factor(found, op.operands[1], above if isinstance(op, MulOp) else not above)


def square_of(value: SSAValue) -> tuple[SSAValue, Ops] | None:
    """`x` of `x * x` or `x ** 2`."""
    op = defined_by(value, (MulOp, PowOp))
    if op is None:
        return None
    a, b = op.operands
    squared = a is b if isinstance(op, MulOp) else number_of(b) == 2.0
    return (a, {op: None}) if squared else None


def sum_of(value: SSAValue) -> list[tuple[SSAValue, SSAValue]]:
    """The two terms of a sum, in both orders; nothing for all else."""
    op = defined_by(value, AddOp)
    return [] if op is None else [(op.operands[0], op.operands[1]), (op.operands[1], op.operands[0])]


# ---- means and roots


@dataclass(frozen=True)
class Mean:
    """The mean of `data` over some axes, which stay with extent 1."""

    data: SSAValue
    axes: tuple[int, ...]
    ops: Ops


def mean_of(value: SSAValue) -> Mean | None:
    """The mean that a value is: a `reduce_mean`, or a sum by the number of its terms; the axes stay."""
    op = defined_by(value, ReduceMeanOp)
    if op is not None:
        return _reduction(op, {op: None})
    quotient = defined_by(value, (DivOp, MulOp))
    if quotient is None:
        return None
    for total, count in (tuple(quotient.operands), tuple(quotient.operands[::-1])):
        summed, number = defined_by(total, ReduceSumOp), number_of(count)
        found = None if summed is None else _reduction(summed, {quotient: None, summed: None})
        terms = None if found is None else extent_over(found.data, found.axes)
        if number and terms and is_close(number, terms if isinstance(quotient, DivOp) else 1.0 / terms, value):
            return found
        if isinstance(quotient, DivOp):
            break
    return None


def _reduction(op: ReduceMeanOp | ReduceSumOp, ops: Ops) -> Mean | None:
    axes = op.known_axes() if is_ranked(op.data) else None
    return Mean(op.data, axes, ops) if axes and op.attr("keepdims") else None


def extent_over(value: SSAValue, axes: Iterable[int]) -> int | None:
    """The number of elements over some axes; None where it is not known."""
    if not is_ranked(value):
        return None
    sizes = [dims_of(value)[axis].static_value for axis in axes]
    return None if None in sizes else math.prod(size for size in sizes if size is not None)


def root_of(value: SSAValue) -> tuple[SSAValue, bool, Ops] | None:
    """`(y, False, ops)` of `sqrt(y)` or `y ** 0.5`, `(y, True, ops)` of `y ** -0.5`."""
    op = defined_by(value, (SqrtOp, PowOp))
    if op is None:
        return None
    if isinstance(op, SqrtOp):
        return op.operands[0], False, {op: None}
    power = number_of(op.operands[1])
    return (op.operands[0], power < 0, {op: None}) if power in (0.5, -0.5) else None


# ---- the rest


def cast_from(value: SSAValue) -> CastOp | None:
    """The cast between two floating-point dtypes that makes a value."""
    op = defined_by(value, CastOp)
    if op is None or not (dtype_of(op.results[0]).is_float and dtype_of(op.operands[0]).is_float):
        return None
    return op


def trailing(value: SSAValue, axes: tuple[int, ...]) -> bool:
    """Whether the axes are the last ones."""
    rank = rank_of(value)
    return bool(axes) and axes == tuple(range(rank - len(axes), rank))


def owner_of(value: SSAValue) -> Operation | None:
    """The op that defines a value; None for an argument."""
    return value.op if isinstance(value, OpResult) else None
