"""Lowering of top_k: each row keeps a list of the best so far, which is sorted whenever it is full.

Once the list has held k elements the k-th is a bar. A block is first compared with it over lanes, then its parts, and
only of parts in which something is better anything joins the list. A full list is sorted and cut to k, so that a row
costs one pass over its elements and, in the worst order, two of sorting. A list that the whole row fits into is sorted
once: that is a sort. Rows that do not lie together are brought together first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, compute_dtype, number_of
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.backends.llvm.lowering.region import axis as axis_of, copy_region, row_major
from sardonyx.backends.llvm.lowering.sorting import LONGEST, PairLists, Pairs, key_dtype, key_of
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, bool_, int64
from sardonyx.dialects.sx.topk import TopKOp

BLOCK, PART = 64, 16
"""The elements that are compared with the bar together, and those that join the list together."""
SPARE = 16
"""A list has room for so many elements more than the best, at least."""


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
    inner, outer = plan.count(dims[axis + 1 :]), plan.count(dims[:axis])
    rows = plan.product(outer, inner)
    # Room for twice the best, so that a sort makes place for at least as many; never for more than the row.
    kept = body.index_math("min", body.index_math("max", body.times(k, 2), body.plus(k, SPARE)), n)
    lists = PairLists(plan, dtype, rows, body.plus(kept, PART))
    data = plan.buffer(op.x) if Dim.product(dims[axis + 1 :]).static_value == 1 else _together(plan, op, axis)
    kernel = plan.kernel("top_k")
    source, values, places = kernel.read_buffer(data), kernel.write(op.values), kernel.write(op.indices)
    held = lists.inside(kernel)
    size, best, below = kernel.outer(n), kernel.outer(k), kernel.outer(inner)
    # Where nothing is wanted nothing is read.
    length = kernel.select(kernel.compare("eq", best, 0), kernel.index(0), size)

    def row(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        base, to = b.times(number, size), b.times(number, best)
        if number_of(below) != 1:
            above = b.index_math("floordiv", number, below)
            to = b.plus(b.times(b.times(above, best), below), b.minus(number, b.times(above, below)))
        pairs = held.of_chunk(b)
        found = _Row(pairs, dtype, bool(op.attr("largest")), source, base, length, best).list_best(b)

        def emit(c: Body, j: SSAValue, _: Sequence[SSAValue]) -> None:
            place = pairs.place(c, c.plus(found, j))
            at = c.plus(to, c.times(j, below))
            c.store(c.load(source, c.plus(base, place)), values, at)
            c.store(c.from_index(place, int64), places, at)

        b.loop(best, emit)

    kernel.loop(kernel.outer(rows), row, parallel=True)
    kernel.launch()


def _together(plan: Plan, op: TopKOp, axis: int) -> SSAValue:
    """A buffer in which the elements of each row are neighbours."""
    dims = dims_of(op.x)
    order = [*range(axis), *range(axis + 1, len(dims)), axis]
    turned = [dims[k] for k in order]
    target = plan.workspace(dtype_of(op.x), [plan.dim(d) for d in turned])
    source = row_major(dims)
    axes = [axis_of(d, source[k], t) for d, k, t in zip(turned, order, row_major(turned), strict=True)]
    copy_region(plan, "rows", axes, plan.buffer(op.x), target)
    return target


@dataclass(frozen=True)
class _Row:
    """One row inside the kernel, and the lists of the chunk."""

    pairs: Pairs
    dtype: DType
    largest: bool
    source: SSAValue
    base: SSAValue
    length: SSAValue
    best: SSAValue

    def list_best(self, b: Body) -> SSAValue:
        """The offset of the list of the first pairs of the row, in order."""
        # The two lists, how many pairs the first holds, the bar, and whether there is one.
        start = [
            b.index(0),
            self.pairs.capacity,
            b.index(0),
            b.const(compute_dtype(self.dtype), 0),
            b.const(bool_, False),
        ]

        def block(c: Body, low: SSAValue, state: Sequence[SSAValue]) -> Sequence[SSAValue]:
            high = c.index_math("min", c.plus(low, BLOCK), self.length)
            looked = self._look(c, low, high, state)
            return c.when(
                c.either(looked, c.compare("eq", high, self.length)),
                lambda d: d.loop(high, part, [("serial", v) for v in state], lower=low, step=PART),
                lambda d: state,
            )

        def part(c: Body, low: SSAValue, state: Sequence[SSAValue]) -> Sequence[SSAValue]:
            high = c.index_math("min", c.plus(low, PART), self.length)
            source, target, count, bar, barred = state
            (filled,) = c.when(
                self._look(c, low, high, state), lambda d: self._join(d, low, high, state), lambda d: [count]
            )
            full = c.compare("sgt", filled, c.minus(self.pairs.capacity, PART))
            first = c.both(c.negate(barred), c.compare("sge", filled, self.best))
            last = c.compare("eq", high, self.length)
            return c.when(
                c.either(c.either(full, first), last),
                lambda d: self._settle(d, source, target, filled, bar),
                lambda d: [source, target, filled, bar, barred],
            )

        return b.loop(self.length, block, [("serial", v) for v in start], step=BLOCK)[0]

    def _value(self, b: Body, place: SSAValue) -> SSAValue:
        value = b.load(self.source, b.plus(self.base, place))
        return b.convert(value, self.dtype, compute_dtype(self.dtype))

    def _better(self, b: Body, place: SSAValue, bar: SSAValue) -> SSAValue:
        """Whether an element is before the bar; a NaN on either side may be."""
        value = self._value(b, place)
        if self.dtype.is_float:
            return b.add(arith.CmpfOp(value, bar, "ugt" if self.largest else "ult"))
        return b.compare_scalars("gt" if self.largest else "lt", self.dtype, value, bar)

    def _look(self, b: Body, low: SSAValue, high: SSAValue, state: Sequence[SSAValue]) -> SSAValue:
        """Whether something in [low, high) may join the list."""

        def one(c: Body, i: SSAValue, seen: Sequence[SSAValue]) -> list[SSAValue]:
            return [c.either(seen[0], self._better(c, i, state[3]))]

        return b.loop(high, one, [("or", b.negate(state[4]))], lower=low, vector=True)[0]

    def _join(self, b: Body, low: SSAValue, high: SSAValue, state: Sequence[SSAValue]) -> list[SSAValue]:
        """Append what may be better than the bar; gives how many pairs there are then."""
        source, _, count, bar, barred = state
        open_ = b.negate(barred)

        def one(c: Body, i: SSAValue, found: Sequence[SSAValue]) -> list[SSAValue]:
            value = c.load(self.source, c.plus(self.base, i))
            # What is no better is written over by the next: there is room for a part.
            self.pairs.put(c, c.plus(source, found[0]), key_of(c, value, self.dtype, self.largest), i)
            takes = c.either(open_, self._better(c, i, bar))
            return [c.plus(found[0], c.to_index(takes, bool_))]

        return list(b.loop(high, one, [("serial", count)], lower=low))

    def _settle(self, b: Body, source: SSAValue, target: SSAValue, filled: SSAValue, bar: SSAValue) -> list[SSAValue]:
        """Sort the list, cut it to the best, and set the bar where there are so many."""
        there, other = self.pairs.sort(b, source, target, filled)
        left = b.index_math("min", filled, self.best)
        enough = b.compare("eq", left, self.best)
        place = b.plus(there, b.minus(self.best, 1))
        (limit,) = b.when(enough, lambda c: [self._value(c, self.pairs.place(c, place))], lambda c: [bar])
        return [there, other, left, limit, enough]
