"""Lowerings of cumsum and cumprod: running sums and products along an axis, which may be known or come with the run."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.backends.llvm.lowering.rows import Row, RowAxis, Rows
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dtypes import float64
from sardonyx.dialects.sx.cumprod import CumProdOp
from sardonyx.dialects.sx.cumsum import CumSumOp
from sardonyx.dialects.values import known_ints


@lowers(CumSumOp, CumProdOp)
def _cumulate(plan: Plan, op: CumSumOp | CumProdOp) -> None:
    """Floats accumulate in float64 and round each result once, as the reference has it."""
    combine, name = ("add", "cumsum") if isinstance(op, CumSumOp) else ("mul", "cumprod")
    dtype = dtype_of(op.x)
    wide = float64 if dtype.is_float else dtype
    outer, length, inner = _extents(plan, op)
    kernel = plan.kernel(name)
    source, target = kernel.read(op.x), kernel.write(op.output)
    size, below, above = (kernel.outer(e) for e in (length, inner, outer))
    block = kernel.outer(plan.product(length, inner))
    one = kernel.index(1)
    # Where the axis is the innermost, each row is one chain of sums; else the lanes are neighbouring chains.
    is_innermost = plan.body.index(inner) is plan.body.index(1)
    kept = [RowAxis(above, block)] if is_innermost else [RowAxis(above, block), RowAxis(below, one)]
    rows = Rows(kept, [RowAxis(size, below)], across=not is_innermost)

    def point(b: Body, row: Row) -> None:
        def step(c: Body, index: SSAValue, carried: Any) -> list[SSAValue]:
            place = c.minus(c.minus(size, 1), index) if op.attr("reverse") else index
            at = c.plus(row.base, c.times(place, below))
            following = c.arithmetic(combine, wide, carried[0], c.convert(c.load(source, at), dtype, wide))
            c.store(c.convert(carried[0] if op.attr("exclusive") else following, wide, dtype), target, at)
            return [following]

        b.loop(size, step, [("serial", b.const(wide, 0 if combine == "add" else 1))])

    rows.each(kernel, point)
    kernel.launch()


def _extents(plan: Plan, op: CumSumOp | CumProdOp) -> tuple[IndexLike, IndexLike, IndexLike]:
    """The numbers of elements before, along and behind the axis, as indices of the plan."""
    dims, body = dims_of(op.x), plan.body
    known = known_ints(op.axis)
    if known is not None and len(known) == 1:
        axis = known[0] % len(dims)
        return plan.count(dims[:axis]), plan.dim(dims[axis]), plan.count(dims[axis + 1 :])
    rank = len(dims)
    for d in dims_of(op.axis):
        one = body.compare("eq", plan.dim(d), 1)
        body.require(one, plan.failure("axis has {0} elements, not one"), plan.dim(d))
    given = plan.read_ints(op.axis, 1)[0]
    place = body.select(body.compare("slt", given, 0), body.plus(given, rank), given)
    inside = body.both(body.compare("sge", place, 0), body.compare("slt", place, rank))
    body.require(inside, plan.failure(f"axis {{0}} is out of range for rank {rank}"), given)
    outer: IndexLike = 1
    length: IndexLike = 1
    inner: IndexLike = 1
    one = body.index(1)
    for k, d in enumerate(dims):
        extent = plan.dim(d)
        outer = plan.product(outer, body.select(body.compare("slt", k, place), extent, one))
        length = plan.product(length, body.select(body.compare("eq", k, place), extent, one))
        inner = plan.product(inner, body.select(body.compare("sgt", k, place), extent, one))
    return outer, length, inner
