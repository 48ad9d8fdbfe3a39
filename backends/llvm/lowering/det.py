"""Lowering of det: elimination with row exchanges, in float64, rounded once."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dtypes import float64
from sardonyx.dialects.sx.det import DetOp


@lowers(DetOp)
def _det(plan: Plan, op: DetOp) -> None:
    dims, dtype = dims_of(op.x), dtype_of(op.x)
    plan.require_equal(dims[-2], dims[-1], "the matrices have {0} rows and {1} columns")
    count = plan.body.index(plan.count(dims[:-2]))
    held = plan.workspace(float64, [count, plan.dim(dims[-1]), plan.dim(dims[-1])])
    kernel = plan.kernel("det")
    source, work, target = kernel.read(op.x), kernel.write_buffer(held), kernel.write(op.output)
    n = kernel.extent(dims[-1])
    size = kernel.times(n, n)

    def matrix(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        base = b.times(number, size)

        def widen(c: Body, j: SSAValue, _: Sequence[SSAValue]) -> None:
            at = c.plus(base, j)
            c.store(c.convert(c.load(source, at), dtype, float64), work, at)

        b.loop(size, widen, vector=True)
        (found,) = b.loop(
            n, lambda c, k, det: _eliminate(c, work, base, n, k, det[0]), [("serial", b.const(float64, 1))]
        )
        b.store(b.convert(found, float64, dtype), target, number)

    kernel.loop(kernel.outer(count), matrix, parallel=True)
    kernel.launch()


def _eliminate(b: Body, work: SSAValue, base: SSAValue, n: SSAValue, k: SSAValue, det: SSAValue) -> list[SSAValue]:
    """Step k: brings the greatest element of the column up, and takes its row out of those below; gives det * pivot."""
    own = b.plus(base, b.times(k, n))

    def greatest(c: Body, i: SSAValue, best: Sequence[SSAValue]) -> list[SSAValue]:
        size = c.math("abs", float64.ir, c.load(work, c.plus(base, c.plus(c.times(i, n), k))))
        more = c.compare_scalars("gt", float64, size, best[0])
        return [c.select(more, size, best[0]), c.select(more, i, best[1])]

    size = b.math("abs", float64.ir, b.load(work, b.plus(own, k)))
    _, row = b.loop(n, greatest, [("serial", size), ("serial", k)], lower=b.plus(k, 1))
    other = b.plus(base, b.times(row, n))

    def exchange(c: Body, j: SSAValue, _: Sequence[SSAValue]) -> None:
        first, second = c.plus(own, j), c.plus(other, j)
        x, y = c.load(work, first), c.load(work, second)
        c.store(y, work, first)
        c.store(x, work, second)

    moved = b.compare("ne", row, k)
    b.when(moved, lambda c: (c.loop(n, exchange, lower=k), None)[1])
    pivot = b.load(work, b.plus(own, k))
    signed = b.select(moved, b.add(arith.NegfOp(pivot)), pivot)

    def below(c: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        line = c.plus(base, c.times(i, n))
        factor = c.arithmetic("div", float64, c.load(work, c.plus(line, k)), pivot)

        def element(d: Body, j: SSAValue, _: Sequence[SSAValue]) -> None:
            at = d.plus(line, j)
            product = d.arithmetic("mul", float64, factor, d.load(work, d.plus(own, j)))
            d.store(d.arithmetic("sub", float64, d.load(work, at), product), work, at)

        c.loop(n, element, lower=c.plus(k, 1), vector=True)

    # A column of zeros ends it: the determinant is 0, and there is nothing to divide by.
    usable = b.compare_scalars("ne", float64, pivot, b.const(float64, 0))
    b.when(usable, lambda c: (c.loop(n, below, lower=c.plus(k, 1)), None)[1])
    return [b.arithmetic("mul", float64, det, signed)]
