"""Lowering of unique: a stable sort of the slices, column by column from the last one, and a walk along the order.

The walk numbers the kinds, notes where each is found first (the sort is stable) and how many slices there are of it.
Without `sorted` the kinds are then numbered anew in the order of their first slices. How many kinds there are is known
after the first kernel; all results follow from its lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.backends.llvm.lowering.selected import take
from sardonyx.backends.llvm.lowering.sorting import LONGEST, PairLists, Pairs, key_dtype, key_of
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import int64
from sardonyx.dialects.sx.unique import UniqueOp


@dataclass(frozen=True)
class Slices:
    """The slices along an axis inside a kernel: how many, and where their elements stand. All are indices."""

    count: SSAValue
    outer: SSAValue
    inner: SSAValue

    def at(self, b: Body, number: SSAValue, column: SSAValue) -> SSAValue:
        """The offset of an element of a slice."""
        above = b.index_math("floordiv", column, self.inner)
        below = b.minus(column, b.times(above, self.inner))
        return b.plus(b.times(b.plus(b.times(above, self.count), number), self.inner), below)


@lowers(UniqueOp)
def _unique(plan: Plan, op: UniqueOp) -> None:
    body, dims, dtype = plan.body, dims_of(op.x), dtype_of(op.x)
    flat = op.attr("axis") is None
    axis = 0 if flat else op.attr("axis") % len(dims)
    shape = [Dim.product(dims)] if flat else list(dims)
    count = plan.count(dims) if flat else plan.dim(dims[axis])
    if key_dtype(dtype) != int64:
        failure = plan.failure("{0} elements are too many to sort")
        body.require(body.compare("slt", count, LONGEST), failure, count)
    outer, inner = (body.index(plan.count(part)) for part in (shape[:axis], shape[axis + 1 :]))
    firsts, behind, found = (plan.workspace(int64, [e]) for e in (count, count, 1))
    lists = PairLists(plan, dtype, 1, count)
    kernel = plan.kernel("unique")
    source = kernel.read(op.x)
    inverse = kernel.write(op.inverse_indices)
    slices = Slices(*(kernel.outer(v) for v in (count, outer, inner)))
    pairs = lists.inside(kernel).of_chunk(kernel)
    order = _sorted(kernel, pairs, slices, source)
    results = kernel.write_buffer(firsts), kernel.write_buffer(behind), inverse
    kinds = _walk(kernel, pairs, slices, source, order, results)
    kernel.store(kernel.from_index(kinds, int64), kernel.write_buffer(found), 0)
    kernel.launch()
    kinds = body.to_index(body.load(found, 0), int64)
    if not op.attr("sorted"):
        firsts, behind = _by_first(plan, op, count, kinds, firsts, behind)
    (number,) = dims_of(op.counts)
    plan.bind(number, kinds, "the number of distinct elements")
    kernel = plan.kernel("counts")
    places, read = kernel.read_buffer(firsts), kernel.read_buffer(behind)
    indices, counts = kernel.write(op.indices), kernel.write(op.counts)

    def each(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        b.store(b.load(places, i), indices, i)
        b.store(b.load(read, i), counts, i)

    kernel.loop(kernel.outer(kinds), each, vector=True)
    kernel.launch()
    target = plan.new_buffer(op.y)
    if not flat:
        take(plan, op.x, axis, firsts, kinds, target)
        return
    kernel = plan.kernel("take")
    source, at, write = kernel.read(op.x), kernel.read_buffer(firsts), kernel.write_buffer(target)
    bound = kernel.outer(kinds)
    kernel.loop(bound, lambda b, i, _: b.store(b.load(source, b.to_index(b.load(at, i), int64)), write, i), vector=True)
    kernel.launch()


def _sorted(kernel: Kernel, pairs: Pairs, slices: Slices, source: SSAValue) -> SSAValue:
    """The offset of the list of all slices in lexicographic order."""

    def begin(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        pairs.put(b, i, b.const(pairs.held, 0), i)

    kernel.loop(slices.count, begin)
    columns = kernel.times(slices.outer, slices.inner)

    def column(b: Body, step: SSAValue, lists: Sequence[SSAValue]) -> Sequence[SSAValue]:
        number = b.minus(b.minus(columns, 1), step)

        def fetch(c: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
            at = c.plus(lists[0], i)
            place = pairs.place(c, at)
            pairs.put(c, at, key_of(c, c.load(source, slices.at(c, place, number)), pairs.dtype), place)

        b.loop(slices.count, fetch)
        return pairs.sort(b, lists[0], lists[1], slices.count, by_rank=False)

    return kernel.loop(columns, column, [("serial", kernel.index(0)), ("serial", pairs.capacity)])[0]


def _walk(
    kernel: Kernel,
    pairs: Pairs,
    slices: Slices,
    source: SSAValue,
    order: SSAValue,
    results: tuple[SSAValue, SSAValue, SSAValue],
) -> SSAValue:
    """Number the kinds along the order, and fill in first slices, counts and each slice's kind; gives how many."""
    firsts, counts, inverse = results
    columns = kernel.times(slices.outer, slices.inner)
    one = kernel.index(1)

    def step(b: Body, i: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        kinds, before, begun = carried
        place = pairs.place(b, b.plus(order, i))

        def differs(c: Body, j: SSAValue, seen: Sequence[SSAValue]) -> list[SSAValue]:
            keys = [key_of(c, c.load(source, slices.at(c, p, j)), pairs.dtype) for p in (place, before)]
            return [c.either(seen[0], c.compare_scalars("ne", pairs.held, *keys))]

        (new,) = b.loop(columns, differs, [("serial", b.compare("eq", i, 0))])

        def opens(c: Body) -> list[SSAValue]:
            c.store(c.from_index(place, int64), firsts, kinds)
            return [c.plus(kinds, 1), i]

        kinds, begun = b.when(new, opens, lambda c: [kinds, begun])
        own = b.minus(kinds, 1)
        b.store(b.from_index(own, int64), inverse, place)
        b.store(b.from_index(b.plus(b.minus(i, begun), one), int64), counts, own)
        return [kinds, place, begun]

    zero = kernel.index(0)
    # Before the first slice stands the first one: it is new whatever it holds.
    (first,) = kernel.when(
        kernel.compare("sgt", slices.count, 0), lambda b: [pairs.place(b, order)], lambda b: [b.index(0)]
    )
    return kernel.loop(slices.count, step, [("serial", zero), ("serial", first), ("serial", zero)])[0]


def _by_first(
    plan: Plan, op: UniqueOp, count: IndexLike, kinds: SSAValue, firsts: SSAValue, counts: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """The lists of first slices and counts in the order of the first slices, and the kinds numbered so."""
    numbers, moved, lengths = (plan.workspace(int64, [kinds]) for _ in range(3))
    kernel = plan.kernel("by_first")
    inverse = kernel.write_buffer(plan.buffer(op.inverse_indices))
    old = kernel.read_buffer(firsts), kernel.read_buffer(counts)
    new, renamed = (kernel.write_buffer(moved), kernel.write_buffer(lengths)), kernel.write_buffer(numbers)
    bound = kernel.outer(count)

    def step(b: Body, i: SSAValue, carried: Sequence[SSAValue]) -> Sequence[SSAValue]:
        kind = b.to_index(b.load(inverse, i), int64)
        is_first = b.compare("eq", b.to_index(b.load(old[0], kind), int64), i)

        def name(c: Body) -> list[SSAValue]:
            c.store(c.from_index(carried[0], int64), renamed, kind)
            for source, target in zip(old, new, strict=True):
                c.store(c.load(source, kind), target, carried[0])
            return [c.plus(carried[0], 1)]

        return b.when(is_first, name, lambda c: [carried[0]])

    kernel.loop(bound, step, [("serial", kernel.index(0))])

    def rename(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        b.store(b.load(renamed, b.to_index(b.load(inverse, i), int64)), inverse, i)

    kernel.loop(bound, rename)
    kernel.launch()
    return moved, lengths
