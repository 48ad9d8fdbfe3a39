"""Lowerings of grid_sample and affine_grid: places in float64, and a lane for each place of the result."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.elementwise import nest
from sardonyx.backends.llvm.lowering.number import Number
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.backends.llvm.lowering.region import row_major
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, float32, float64
from sardonyx.dialects.sx.grid_sample import AffineGridOp, GridSampleOp

MOST_WRITTEN_OUT = 64
"""So many neighbours are written out one by one; more (a cubic of rank 4) are walked by a loop."""
FAR = 1e9
_CUBIC = -0.75


@dataclass
class _Tap:
    """A neighbour along one axis: where it is (an index), whether it is there, its weight."""

    at: Number
    there: Number
    weight: Number


@lowers(GridSampleOp)
def _grid_sample(plan: Plan, op: GridSampleOp) -> None:
    dims, places, out = dims_of(op.x), dims_of(op.grid), dims_of(op.output)
    rank, dtype = len(dims) - 2, dtype_of(op.x)
    plan.require_equal(places[0], dims[0], "the grid has batches of {0}, the operand of {1}")
    plan.require_equal(places[-1], Dim.of(rank), "a place has {0} coordinates for {1} axes")
    _require_some(plan, [*dims[2:]], out)
    kernel = plan.kernel("grid_sample")
    read, grid, write = kernel.read(op.x), kernel.read(op.grid), kernel.write(op.output)
    wide = float32 if dtype.is_float and dtype.bits <= 32 else float64
    sizes = [Number.index(kernel, kernel.extent(d)) for d in dims[2:]]
    steps = [Number.index(kernel, kernel.extent(s)) for s in row_major(dims[2:])]
    image, channels = Number.index(kernel, kernel.outer(plan.count(dims[2:]))), kernel.extent(dims[1])
    count = Number.index(kernel, kernel.outer(plan.count(out[2:])))
    finder = _Finder(op, sizes)

    def batch(b: Body, n: SSAValue, _: Sequence[SSAValue]) -> None:
        first = Number.index(b, n) * count
        base, start = Number.index(b, n) * channels_ * image, Number.index(b, n) * channels_ * count

        def place(v: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            p = Number.index(v, index)
            taps: list[list[_Tap]] = []
            for axis in range(rank):
                offset = (first + p) * rank + (rank - 1 - axis)
                taps.append(finder.taps(axis, Number.load(v, grid, offset, dtype_of(op.grid), float64)))
            terms = _written_out(taps, steps, wide) if _product(taps) <= MOST_WRITTEN_OUT else None

            def channel(c: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
                at = base + Number.index(c, k) * image
                if terms is not None:
                    total = Number.const(kernel, 0.0, wide)
                    for offset, there, weight in terms:
                        total = _added(c, read, dtype, at + offset, there, weight, total)
                else:
                    total = _walked(c, taps, steps, wide, lambda inner, offset, there, weight, so_far: _added(
                        inner, read, dtype, at + offset, there, weight, so_far))  # fmt: skip
                total.store(write, start + Number.index(c, k) * count + p, dtype, c)

            v.loop(channels, channel)

        b.loop(count.value, place, vector=True)

    channels_ = Number.index(kernel, channels)
    # Parallel over the batch and parts of the places: a part is a run of them.
    kernel.loop(kernel.extent(dims[0]), batch, parallel=True)
    kernel.launch()


def _require_some(plan: Plan, sizes: Sequence[Dim], out: Sequence[Dim]) -> None:
    """Refuse a result with elements of an operand without."""
    body = plan.body
    if any(d.static_value == 0 for d in out) or all((d.static_value or 0) > 0 for d in sizes):
        return
    some, none = None, body.compare("eq", plan.count(out), 0)
    for size in sizes:
        one = body.compare("sgt", plan.dim(size), 0)
        some = one if some is None else body.both(some, one)
    if some is not None:
        body.require(body.either(some, none), plan.failure("the operand has nothing to sample"))


def _product(taps: Sequence[Sequence[_Tap]]) -> int:
    total = 1
    for axis in taps:
        total *= len(axis)
    return total


def _added(b: Body, read: SSAValue, dtype: DType, at: Number, there: Number, weight: Number, total: Number) -> Number:
    """What is not there, or has no weight, doesn't count, not even an infinity."""
    wide = total.dtype or float64
    value = Number.load(b, read, at, dtype, wide)
    added = value.fn("fma", weight, total) if wide == float32 else total + value * weight
    return there.where(added, total)


def _written_out(
    taps: Sequence[Sequence[_Tap]], steps: Sequence[Number], wide: DType
) -> list[tuple[Number, Number, Number]]:
    """(offset, there, weight) of every combination of neighbours."""
    out: list[tuple[Number, Number, Number]] = []
    for combination in itertools.product(*taps):
        offset = combination[0].at * steps[0]
        weight, there = combination[0].weight, combination[0].there
        for tap, step in zip(combination[1:], steps[1:], strict=True):
            offset, weight, there = offset + tap.at * step, weight * tap.weight, there & tap.there
        out.append((offset, there & weight.ne(0.0), weight.to(wide)))
    return out


def _walked(
    b: Body,
    taps: Sequence[Sequence[_Tap]],
    steps: Sequence[Number],
    wide: DType,
    add: Callable[[Body, Number, Number, Number, Number], Number],
) -> Number:
    """The same by a loop over the combinations."""

    def pick(which: Number, values: Sequence[Number]) -> Number:
        out = values[0]
        for k, value in enumerate(values[1:], 1):
            out = which.eq(k).where(value, out)
        return out

    def step(at: Body, index: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        rest = Number.index(at, index)
        offset = weight = there = None
        for axis, below in zip(reversed(taps), reversed(steps), strict=True):
            which, rest = rest % len(axis), rest // len(axis)
            own = pick(which, [t.at for t in axis]) * below
            factor, here = pick(which, [t.weight for t in axis]), pick(which, [t.there for t in axis])
            offset = own if offset is None else own + offset
            weight = factor if weight is None else factor * weight
            there = here if there is None else there & here
        if offset is None or weight is None or there is None:
            raise ValueError("there are no axes")
        total = Number(at, carried[0], wide)
        return [add(at, offset, there & weight.ne(0.0), weight.to(wide), total).value]

    return Number(b, b.loop(_product(taps), step, [("serial", b.const(wide, 0))])[0], wide)


class _Finder:
    """Finds the neighbours of places: `GridSampleOp._taps` in scalars."""

    def __init__(self, op: GridSampleOp, sizes: Sequence[Number]) -> None:
        self.mode, self.padding, self.align = op.attr("mode"), op.attr("padding_mode"), bool(op.attr("align_corners"))
        self.sizes = [s.to(float64) for s in sizes]

    def taps(self, axis: int, n: Number) -> list[_Tap]:
        size, mode = self.sizes[axis], self.mode
        low, high = (0.0, size - 1.0) if self.align else (-0.5, size - 0.5)
        at = (n + 1.0) / 2.0 * (size - 1.0) if self.align else ((n + 1.0) * size - 1.0) / 2.0
        nan = at.ne(at)
        # Far outside a coordinate is as good as just outside; NaN is one that is far away.
        at = nan.where(Number.const(n.body, -FAR), at.clip(-FAR, FAR))
        if mode == "nearest":
            at = at.fn("round_half_even")
        beyond = at.lt(low) | at.gt(high)
        if self.padding == "border" and mode != "cubic":
            at = beyond.where(at.clip(0.0, size - 1.0), at)
        elif self.padding == "reflection":
            at = beyond.where(_reflected(at, low, high), at)
        if mode == "nearest":
            at = at.fn("round_half_even")
        base = at.floor()
        return [self._tap(axis, base + offset, weight, low, high) for offset, weight in self._weights(at - base)]

    def _weights(self, t: Number) -> list[tuple[float, Number]]:
        """`grid_sample.weights`."""
        if self.mode == "nearest":
            return [(0.0, Number.const(t.body, 1.0))]
        if self.mode == "linear":
            return [(0.0, 1.0 - t), (1.0, t)]
        a = _CUBIC

        def near(d: Number) -> Number:
            return ((a + 2) * d - (a + 3)) * d * d + 1.0

        def far(d: Number) -> Number:
            return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

        return [(-1.0, far(t + 1.0)), (0.0, near(t)), (1.0, near(1.0 - t)), (2.0, far(2.0 - t))]

    def _tap(self, axis: int, x: Number, weight: Number, low: float | Number, high: Number) -> _Tap:
        last = self.sizes[axis] - 1.0
        there = Number(x.body, x.body.true(), None)
        if self.padding == "zeros":
            there = x.ge(0.0) & x.le(last)
        elif self.padding == "reflection":
            x = _reflected(x, low, high).fn("trunc")
        return _Tap(x.clip(0.0, last).to_index(), there, weight)


def _reflected(x: Number, low: float | Number, high: Number) -> Number:
    """`grid_sample.reflected`, of a finite coordinate."""
    span = high - low
    period = span * 2.0
    away = x - low
    folded = (away / period).floor().fn("fma", -period, away)  # exact, but for a quotient that was rounded up
    folded = folded.lt(0.0).where(folded + period, folded)
    inside = folded.gt(span).where(period - folded, folded) + low
    out = (x.lt(low) | x.gt(high)).where(inside, x)
    lowest = low if isinstance(low, Number) else Number.const(x.body, low)
    return span.gt(0.0).where(out, lowest)


@lowers(AffineGridOp)
def _affine_grid(plan: Plan, op: AffineGridOp) -> None:
    dims, theta, dtype = dims_of(op.grid), dims_of(op.theta), dtype_of(op.theta)
    rank = len(dims) - 2
    plan.require_equal(dims_of(op.size)[0], Dim.of(rank + 2), "size has {0} entries, not {1}")
    entries = plan.read_ints(op.size, rank + 2)
    for place, extent in ((0, dims[0]), *enumerate(dims[1:-1], 2)):
        plan.bind(extent, entries[place], f"entry {place} of size")
    plan.require_equal(theta[0], dims[0], "theta has a batch of {0}, size of {1}")
    plan.require_equal(theta[1], Dim.of(rank), "theta has {0} rows, not {1}")
    plan.require_equal(theta[2], Dim.of(rank + 1), "theta has {0} columns, not {1}")
    kernel = plan.kernel("affine_grid")
    read, write = kernel.read(op.theta), kernel.write(op.grid)
    extents = kernel.extents(dims[:-1])
    bounds: list[IndexLike] = [*extents, kernel.index(rank)]
    sizes = [Number.index(kernel, e).to(float64) for e in extents[1:]]

    def coordinate(at: Number, size: Number) -> Number:
        if not op.attr("align_corners"):
            return (at * 2.0 + 1.0) / size.max(1.0) - 1.0
        step = 2.0 / (size - 1.0)
        last, single = at.eq(size - 1.0), size.le(1.0)
        zero, one = Number.const(at.body, 0.0), Number.const(at.body, 1.0)
        return single.where(zero, last.where(one, at * step - 1.0))

    def point(b: Body, where: Sequence[SSAValue], flat: IndexLike) -> None:
        row = Number.index(b, where[0]) * rank + Number.index(b, where[-1])
        total: Number | None = None
        for column in range(rank):  # x is the last axis
            axis = rank - 1 - column
            at = coordinate(Number.index(b, where[1 + axis]).to(float64), sizes[axis])
            term = at * Number.load(b, read, row * (rank + 1) + column, dtype, float64)
            total = term if total is None else total + term
        moved = Number.load(b, read, row * (rank + 1) + rank, dtype, float64)
        (moved if total is None else total + moved).store(write, flat, dtype, b)

    nest(kernel, bounds, point)
    kernel.launch()
