"""Lowering of top_k: each row keeps a list of the best so far, which is sorted whenever it is full.

A row is read in blocks. Once the list holds k elements the k-th is a bar: a block is first compared with it over lanes,
and only what is better joins the list, behind which there is room for a block. A full list is sorted and cut to k, so
that a row costs one pass over its elements and, in the worst order, two of sorting. A list that the whole row fits into
is sorted once: that is a sort.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, number_of
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.backends.llvm.lowering.sorting import LONGEST, PairLists, Pairs, key_dtype, key_of
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import bool_, int64
from sardonyx.dialects.sx.topk import TopKOp

BLOCK = 64
"""The elements that are compared with the bar together."""

Key = Callable[[Body, SSAValue], SSAValue]
"""The key of an element of the row."""


@lowers(TopKOp)
def _top_k(plan: Plan, op: TopKOp) -> None:
    body, dims, dtype = plan.body, dims_of(op.x), dtype_of(op.x)
    axis = op.attr("axis") % len(dims)
    (k_dim,) = dims_of(op.values)[axis : axis + 1]
    for d in dims_of(op.k):
        plan.require_equal(d, Dim.of(1), "k has {0} elements, not {1}")
    if not plan.is_bound(k_dim):
        plan.bind(k_dim, plan.read_ints(op.k, 1)[0], "k")
    n, k = plan.dim(dims[axis]), plan.dim(k_dim)
    body.require(body.compare("sle", k, n), plan.failure("k is {0}, the axis has {1} elements"), k, n)
    if key_dtype(dtype) != int64:
        body.require(body.compare("slt", n, LONGEST), plan.failure("an axis of {0} elements is too long to sort"), n)
    inner = plan.count(dims[axis + 1 :])
    rows = plan.product(plan.count(dims[:axis]), inner)
    # Room for twice the best, so that a sort makes place for at least as many; never for more than the row.
    kept = body.index_math("min", body.plus(body.times(k, 2), BLOCK), n)
    lists = PairLists(plan, dtype, rows, body.plus(kept, BLOCK))
    kernel = plan.kernel("top_k")
    source, values, places = kernel.read(op.x), kernel.write(op.values), kernel.write(op.indices)
    held = lists.inside(kernel)
    size, best, below = kernel.outer(n), kernel.outer(k), kernel.outer(inner)
    descending = bool(op.attr("largest"))

    def row(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        if number_of(below) == 1:
            base, to = b.times(number, size), b.times(number, best)
        else:
            outer = b.index_math("floordiv", number, below)
            column = b.minus(number, b.times(outer, below))
            base = b.plus(b.times(b.times(outer, size), below), column)
            to = b.plus(b.times(b.times(outer, best), below), column)
        pairs = held.of_chunk(b)

        def key(c: Body, i: SSAValue) -> SSAValue:
            return key_of(c, c.load(source, c.plus(base, c.times(i, below))), dtype, descending)

        found = _best(b, pairs, size, best, key)

        def emit(c: Body, j: SSAValue, _: Sequence[SSAValue]) -> None:
            place = pairs.place(c, c.plus(found, j))
            at = c.plus(to, c.times(j, below))
            c.store(c.load(source, c.plus(base, c.times(place, below))), values, at)
            c.store(c.from_index(place, int64), places, at)

        b.loop(best, emit)

    kernel.loop(kernel.outer(rows), row, parallel=True)
    kernel.launch()


def _best(b: Body, pairs: Pairs, size: SSAValue, best: SSAValue, key: Key) -> SSAValue:
    """The offset of the list of the `best` first pairs of a row, in order."""
    held = pairs.held
    start = [b.index(0), pairs.capacity, b.index(0), b.const(held, 0), b.const(bool_, False)]

    def block(c: Body, low: SSAValue, state: Sequence[SSAValue]) -> Sequence[SSAValue]:
        source, target, count, bar, barred = state
        high = c.index_math("min", c.plus(low, BLOCK), size)

        def better(d: Body, i: SSAValue) -> SSAValue:
            return d.compare_scalars("lt", held, key(d, i), bar)

        def look(d: Body, i: SSAValue, seen: Sequence[SSAValue]) -> list[SSAValue]:
            return [d.either(seen[0], better(d, i))]

        open_ = c.negate(barred)
        (seen,) = c.loop(high, look, [("or", open_)], lower=low, vector=True)

        def join(d: Body) -> list[SSAValue]:
            def one(e: Body, i: SSAValue, found: Sequence[SSAValue]) -> list[SSAValue]:
                own = key(e, i)
                # What is no better is written over by the next: there is room for a block.
                pairs.put(e, e.plus(source, found[0]), own, i)
                takes = e.either(open_, e.compare_scalars("lt", held, own, bar))
                return [e.plus(found[0], e.to_index(takes, bool_))]

            return list(d.loop(high, one, [("serial", count)], lower=low))

        (filled,) = c.when(seen, join, lambda d: [count])
        full = c.compare("sgt", filled, c.minus(pairs.capacity, BLOCK))
        last = c.compare("eq", high, size)

        def settle(d: Body) -> list[SSAValue]:
            there, other = pairs.sort(d, source, target, filled)
            left = d.index_math("min", filled, best)
            enough = d.both(d.compare("eq", left, best), d.compare("sgt", best, 0))
            place = d.plus(there, d.index_math("max", d.minus(best, 1), 0))
            (limit,) = d.when(enough, lambda f: [pairs.key(f, place)], lambda f: [bar])
            return [there, other, left, limit, enough]

        return c.when(c.either(full, last), settle, lambda d: [source, target, filled, bar, barred])

    return b.loop(size, block, [("serial", v) for v in start], step=BLOCK)[0]
