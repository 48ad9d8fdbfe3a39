"""Arg_max and arg_min as row programs: first a row's extreme, then the first (or last) place where it stands."""

from __future__ import annotations

from functools import partial
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.backends.llvm.lowering.row_fusion import RowSpace, joins_rows, lower_alone
from sardonyx.backends.llvm.lowering.row_program import Node, Program, Within
from sardonyx.backends.llvm.lowering.rows import Accumulator, max_of, min_of
from sardonyx.dialects.attributes import dims_of
from sardonyx.dialects.dtypes import DType, int32, int64
from sardonyx.dialects.sx.argreduce import ArgMaxOp, ArgMinOp


def place_of_extreme(p: Program, x: Node, greatest: bool = True, last: bool = False) -> Node:
    """The index of the extreme along a row of one axis, an int32 where that is certain to hold it, else an int64.

    A NaN is the extreme of all.
    """
    dtype = x.dtype
    extreme = p.fold(dtype, max_of if greatest else min_of, x)
    extents = [p.dims[axis].static_value for axis in p.reduced]
    places = int32 if all(e is not None and e < 1 << 31 for e in extents) else int64
    none = -1 if last else (1 << (places.bits - 1)) - 1

    def found(b: Body, v: SSAValue, best: SSAValue, index: SSAValue) -> SSAValue:
        hit = b.compare_scalars("eq", dtype, v, best)
        if dtype.is_float:  # only where there is a NaN is the extreme equal to nothing
            hit = b.either(hit, b.compare_scalars("ne", dtype, v, v))
        return b.select(hit, index, b.const(places, none))

    def start(b: Body, of: DType) -> Accumulator:
        return Accumulator("max" if last else "min", of, b.const(of, none))

    place = p.fold(places, start, p.map(places, found, x, extreme, p.index(places)))
    if dtype.kind != "b":
        better = ("ge" if last else "gt") if greatest else ("le" if last else "lt")
        place.within = Within(extreme, partial(_is_better, dtype, better, last))
    return place


def _is_better(dtype: DType, better: str, last: bool, b: Body, found: SSAValue, best: SSAValue) -> SSAValue:
    """Whether the extreme is rather that of a later part of the row than that of all parts before it."""
    ahead = b.compare_scalars(better, dtype, found, best)
    if not dtype.is_float:
        return ahead
    is_nan = b.compare_scalars("ne", dtype, found, found)
    return b.either(ahead, is_nan if last else b.both(is_nan, b.compare_scalars("eq", dtype, best, best)))


def _space(op: Any) -> RowSpace:
    dims = dims_of(op.data)
    return RowSpace(dims, (op.attr("axis") % len(dims),))


def _require_elements(plan: Plan, op: Any) -> None:
    """Refuse an axis of no elements, where only the run can tell."""
    axis = op.attr("axis") % len(dims_of(op.data))
    extent = dims_of(op.data)[axis]
    if not extent.is_static:
        length = plan.dim(extent)
        some = plan.body.compare("ne", length, 0)
        plan.body.require(some, plan.failure(f"axis {axis} has extent {{0}}"), length)


@joins_rows(ArgMaxOp, ArgMinOp, space=_space, check=_require_elements)
def _join(program: Program, op: Any) -> None:
    greatest, last = isinstance(op, ArgMaxOp), bool(op.attr("select_last_index"))
    place = place_of_extreme(program, program.value(op.data), greatest, last)
    program.nodes[op.output] = program.convert(place, int64)


@lowers(ArgMaxOp, ArgMinOp)
def _arg_reduce(plan: Plan, op: Any) -> None:
    lower_alone(plan, op)
