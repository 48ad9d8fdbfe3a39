"""Lowerings of arg_max and arg_min: first a row's extreme, then the first (or last) place where it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.backends.llvm.lowering.rows import Accumulator, Row, max_of, min_of, rows_of
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dtypes import DType, int64
from sardonyx.dialects.sx.argreduce import ArgMaxOp, ArgMinOp


def place_of_extreme(
    b: Body,
    row: Row,
    dtype: DType,
    load: Callable[[Body, IndexLike], SSAValue],
    greatest: bool = True,
    last: bool = False,
) -> SSAValue:
    """The index (int64) of the extreme along a row of one axis; a NaN is the extreme of all.

    `load` gives an element in `dtype`.
    """
    found = max_of(b, dtype) if greatest else min_of(b, dtype)
    extreme = row.fold(b, [found], lambda inner, at, _: [load(inner, at)])[0]

    def place(inner: Body, at: SSAValue, indices: list[SSAValue]) -> list[SSAValue]:
        x = load(inner, at)
        hit = inner.compare_scalars("eq", dtype, x, extreme)
        if dtype.is_float:  # only where there is a NaN is the extreme equal to nothing
            hit = inner.either(hit, inner.compare_scalars("ne", dtype, x, x))
        index = inner.from_index(indices[0] if indices else inner.index(0), int64)
        return [inner.select(hit, index, inner.const(int64, none))]

    none = -1 if last else (1 << 63) - 1
    accumulator = Accumulator("max" if last else "min", int64, b.const(int64, none))
    return row.fold(b, [accumulator], place)[0]  # pyright: ignore[reportArgumentType]


@lowers(ArgMaxOp, ArgMinOp)
def _arg_reduce(plan: Plan, op: Any) -> None:
    dims, dtype = dims_of(op.data), dtype_of(op.data)
    axis = op.attr("axis") % len(dims)
    extent = dims[axis]
    if not extent.is_static:
        length = plan.dim(extent)
        some = plan.body.compare("ne", length, 0)
        plan.body.require(some, plan.failure(f"axis {axis} has extent {{0}}"), length)
    kernel = plan.kernel(op.name.removeprefix("sx."))
    source, target = kernel.read(op.data), kernel.write(op.output)
    wide = compute_dtype(dtype)

    def load(b: Body, offset: IndexLike) -> SSAValue:
        return b.convert(b.load(source, offset), dtype, wide)

    def point(b: Body, row: Row) -> None:
        greatest, last = isinstance(op, ArgMaxOp), op.attr("select_last_index")
        b.store(place_of_extreme(b, row, wide, load, greatest, last), target, row.flat)

    rows_of(plan, kernel, dims, [axis])[0].each(kernel, point)
    kernel.launch()
