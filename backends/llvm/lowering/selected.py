"""Places that a condition selects: lowerings of non_zero and compress, whose extents the data decide.

The places are cut into blocks. A first kernel lists each block's selected places at the block's own part of a list,
without a branch, and counts them; the counts are added up, which tells the run how much there is; a second kernel takes
each block's list to where it belongs. Blocks follow from the shape alone, so results depend on no number of threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.elementwise import nest
from sardonyx.backends.llvm.lowering.gather import require_at_most
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.backends.llvm.lowering.region import row_major
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import bool_, int32, int64
from sardonyx.dialects.sx.nonzero import CompressOp, NonZeroOp

BLOCK = 4096
"""The places of a block."""
SHORT = 1 << 31
"""Below it a flat place is an int32, of which vectors are divided."""

Condition = Callable[[Body, SSAValue], SSAValue]


@dataclass(frozen=True)
class Selection:
    """The selected places of [0, count) in buffers of the plan: how many there are, and each block's list."""

    plan: Plan
    total: SSAValue
    blocks: SSAValue
    lists: SSAValue
    starts: SSAValue

    def each(self, kernel: Kernel, point: Callable[[Body, SSAValue, SSAValue], None]) -> None:
        """`point(b, place, its number among the selected)` for all selected places, over lanes."""
        self.each_in(kernel, kernel, point)

    def each_in(self, at: Body, kernel: Kernel, point: Callable[[Body, SSAValue, SSAValue], None]) -> None:
        """The same at a place inside the kernel."""
        lists, starts = kernel.read_buffer(self.lists), kernel.read_buffer(self.starts)

        def block(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
            first = b.to_index(b.load(starts, number), int64)
            behind = b.to_index(b.load(starts, b.plus(number, 1)), int64)
            base = b.times(number, BLOCK)

            def one(inner: Body, j: SSAValue, _: Sequence[SSAValue]) -> None:
                place = inner.to_index(inner.load(lists, inner.plus(base, j)), int32)
                point(inner, inner.plus(base, place), inner.plus(first, j))

            b.loop(b.minus(behind, first), one, vector=True)

        at.loop(kernel.outer(self.blocks), block, parallel=True)


def select_places(plan: Plan, name: str, count: SSAValue, condition: Callable[[Kernel], Condition]) -> Selection:
    """Launch the kernels that find the places for which `condition(kernel)(b, place)` holds."""
    body = plan.body
    blocks = body.index_math("ceildiv", count, BLOCK)
    lists = plan.workspace(int32, [count])
    starts = plan.workspace(int64, [body.plus(blocks, 1)])
    kernel = plan.kernel(name)
    holds = condition(kernel)
    write, counts = kernel.write_buffer(lists), kernel.write_buffer(starts)
    length = kernel.outer(count)

    def block(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        base = b.times(number, BLOCK)
        size = b.index_math("min", b.minus(length, base), BLOCK)

        def one(inner: Body, j: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            # What is not selected is written over by the next place: there is room up to here.
            inner.store(inner.from_index(j, int32), write, inner.plus(base, carried[0]))
            chosen = inner.convert(holds(inner, inner.plus(base, j)), bool_, int64)
            return [inner.plus(carried[0], inner.to_index(chosen, int64))]

        (found,) = b.loop(size, one, [("serial", b.index(0))])
        b.store(b.from_index(found, int64), counts, number)

    kernel.loop(kernel.outer(blocks), block, parallel=True)
    kernel.launch()
    total = body.to_index(body.load(add_up(plan, starts, blocks), blocks), int64)
    return Selection(plan, total, blocks, lists, starts)


def add_up(plan: Plan, counts: SSAValue, length: SSAValue) -> SSAValue:
    """Launch the kernel that turns counts (int64) into where each part starts, with the total behind the last one."""
    kernel = plan.kernel("add_up")
    buffer = kernel.write_buffer(counts)

    def one(b: Body, i: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        own = b.to_index(b.load(buffer, i), int64)
        b.store(b.from_index(carried[0], int64), buffer, i)
        return [b.plus(carried[0], own)]

    bound = kernel.outer(length)
    (total,) = kernel.loop(bound, one, [("serial", kernel.index(0))])
    kernel.store(kernel.from_index(total, int64), buffer, bound)
    kernel.launch()
    return counts


@lowers(NonZeroOp)
def _non_zero(plan: Plan, op: NonZeroOp) -> None:
    dims, dtype = dims_of(op.x), dtype_of(op.x)

    def condition(kernel: Kernel) -> Condition:
        read = kernel.read(op.x)
        return lambda b, place: b.convert(b.load(read, place), dtype, bool_)

    count = plan.body.index(plan.count(dims))
    found = select_places(plan, "non_zero", count, condition)
    plan.bind(dims_of(op.output)[1], found.total, "the number of elements that are not 0")
    target = plan.new_buffer(op.output)
    if not dims:
        return
    kernel = plan.kernel("coordinates")
    write, total = kernel.write_buffer(target), kernel.outer(found.total)
    strides = [kernel.extent(s) for s in row_major(dims)]

    def point(b: Body, place: SSAValue, number: SSAValue, divide: Callable[..., SSAValue]) -> None:
        rest = place
        for axis, stride in enumerate(strides):
            quotient = rest if axis == len(strides) - 1 else divide(b, rest, stride)
            b.store(b.from_index(quotient, int64), write, b.plus(b.times(total, axis), number))
            rest = b.minus(rest, b.times(quotient, stride))

    def narrow(b: Body, a: SSAValue, c: SSAValue) -> SSAValue:
        parts = [b.from_index(v, int32) for v in (a, c)]
        return b.to_index(b.math("udiv", IntegerType(32), *parts), int32)

    if len(dims) == 1:
        found.each(kernel, lambda b, place, number: b.store(b.from_index(place, int64), write, number))
    else:
        forms = [lambda b, a, c: b.index_math("floordiv", a, c), narrow]
        wide = kernel.compare("sge", kernel.outer(count), SHORT)

        def form(divide: Callable[[Body, SSAValue, SSAValue], SSAValue]) -> Callable[[Body], None]:
            return lambda at: found.each_in(at, kernel, lambda b, place, number: point(b, place, number, divide))

        kernel.when(wide, *map(form, forms))
    kernel.launch()


@lowers(CompressOp)
def _compress(plan: Plan, op: CompressOp) -> None:
    dims, (length,), axis = dims_of(op.input), dims_of(op.condition), op.attr("axis")
    flat = axis is None
    at = 0 if flat else axis % len(dims)
    size = Dim.product(dims) if flat else dims[at]
    require_at_most(plan, length, size, "the condition has {0} elements, the axis {1}")

    def condition(kernel: Kernel) -> Condition:
        read = kernel.read(op.condition)
        return lambda b, place: b.load(read, place)

    found = select_places(plan, "chosen", plan.body.index(plan.dim(length)), condition)
    plan.bind(dims_of(op.output)[at], found.total, "the number of chosen elements")
    target = plan.new_buffer(op.output)
    if flat:
        kernel = plan.kernel("compress")
        read, write = kernel.read(op.input), kernel.write_buffer(target)
        found.each(kernel, lambda b, place, number: b.store(b.load(read, place), write, number))
        kernel.launch()
        return
    places = plan.workspace(int64, [found.total])
    kernel = plan.kernel("places")
    listed = kernel.write_buffer(places)
    found.each(kernel, lambda b, place, number: b.store(b.from_index(place, int64), listed, number))
    kernel.launch()
    take(plan, op.input, at, places, found.total, target)


def take(plan: Plan, data: SSAValue, axis: int, places: SSAValue, count: IndexLike, target: SSAValue) -> None:
    """Launch the kernel that gathers along an axis at `count` places (int64, known to be inside)."""
    dims = dims_of(data)
    kernel = plan.kernel("take")
    read, at, write = kernel.read(data), kernel.read_buffer(places), kernel.write_buffer(target)
    size, inner = kernel.extent(dims[axis]), kernel.outer(plan.count(dims[axis + 1 :]))
    outer = kernel.outer(plan.count(dims[:axis]))

    def point(b: Body, where: Sequence[SSAValue], flat: IndexLike) -> None:
        place = b.to_index(b.load(at, where[1]), int64)
        source = b.plus(b.times(b.plus(b.times(where[0], size), place), inner), where[2])
        b.store(b.load(read, source), write, flat)

    nest(kernel, [outer, kernel.outer(count), inner], point)
    kernel.launch()
