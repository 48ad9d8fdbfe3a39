"""Windows that slide over images with channels last, channel by channel: depthwise convolutions and pools.

The lanes are channels. Several windows of a row are computed at a time, so that they share what they read; cells that
lie in the padding are left out rather than read, so that no padded copy is made. Along the last spatial axis that is
settled while code is made where its extents are numbers; along the others the run's position bounds the loops.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, number_of
from sardonyx.backends.llvm.lowering.conv_shape import Sliding, places_of
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan
from sardonyx.backends.llvm.lowering.region import row_major
from sardonyx.dialects.dims import Dim

WINDOWS = 8
"""Windows that are computed at a time: their sums, and a row of weights, stay in registers."""
SMALLEST_PART = 48
"""Channels that one chunk takes at least, where the rows are few."""
MANY_ROWS = 32
EVEN = 8
"""What the number of chunks should be a multiple of, so that each thread gets as many."""
MAX_TAPS = 32
"""Cells of a row up to which they are written out."""


@dataclass(frozen=True)
class Place:
    """Where a window stands: its index along each spatial axis, and how many of its cells lie in the data."""

    indices: tuple[IndexLike, ...]
    cells: Callable[[Body], IndexLike]


@dataclass(frozen=True)
class Steps:
    """What is done with the cells of a window, for one channel.

    Attributes:
        start: The first state of a window.
        weight: What belongs to a cell (by its tap's number among all of the window), if anything.
        add: The state after one more cell: `add(b, state, offset in the data, weight)`.
        finish: Stores the result: `finish(b, state, place, channel, flat number of the window)`.
    """

    start: Callable[[Body, SSAValue], SSAValue]
    weight: Callable[[Body, IndexLike, SSAValue], SSAValue] | None
    add: Callable[[Body, SSAValue, SSAValue, SSAValue | None], SSAValue]
    finish: Callable[[Body, SSAValue, Place, SSAValue, IndexLike], None]


class Slide:
    """The loops of one kernel over the windows of images [N, D1, …, C]."""

    def __init__(self, plan: Plan, kernel: Kernel, shape: Sliding, steps: Steps) -> None:
        self.plan, self.kernel, self.shape, self.steps = plan, kernel, shape, steps
        windows = shape.windows
        self.channels = kernel.extent(shape.channels)
        self.sizes, self.counts = kernel.extents(shape.sizes), kernel.extents(shape.counts)
        self.before = [kernel.extent(p) for p, _ in shape.pads]
        self.strides = [kernel.extent(s * shape.channels) for s in row_major(shape.sizes)]
        self.kernel_extents = kernel.extents(windows.kernel)
        self.taps_below = [kernel.extent(t) for t in row_major(windows.kernel)]
        self.image = kernel.extent(Dim.product([*shape.sizes, shape.channels]))

    def emit(self) -> None:
        """All windows; a row of windows, or a part of its channels, is what chunks are made of."""
        kernel, shape = self.kernel, self.shape
        rows = Dim.product([shape.batch, *shape.counts[:-1]])
        parts, each = self._channel_parts(rows)
        upper = self.counts[:-1]

        def unit(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
            part: IndexLike = 0
            row: IndexLike = number
            if parts != 1:
                part = b.index_math("floormod", number, parts)
                row = b.index_math("floordiv", number, parts)
            image, places = places_of(b, b.index(row), upper)
            first = b.times(part, each)
            end: IndexLike = self.channels
            if parts != 1:
                end = b.index_math("min", b.plus(first, each), self.channels)
            self._row(b, b.times(image, self.image), tuple(places), b.times(row, self.counts[-1]), (first, end))

        kernel.loop(kernel.outer(self.plan.product(self.plan.dim(rows), parts)), unit, parallel=True)

    def _channel_parts(self, rows: Dim) -> tuple[int, int]:
        """Into how many parts the channels are cut, and their length."""
        known, channels = rows.static_value, self.shape.channels.static_value
        if not known or channels is None or known >= MANY_ROWS or channels < 2 * SMALLEST_PART:
            return 1, channels or 0
        most = channels // SMALLEST_PART
        even = [p for p in range(1, most + 1) if known * p % EVEN == 0 and known * p >= MANY_ROWS]
        parts = even[0] if even else min(-(-MANY_ROWS // known), most)
        each = -(-channels // parts // 16) * 16
        return -(-channels // each), each

    # ---- one row of windows
    def _row(
        self,
        b: Body,
        data: IndexLike,
        places: tuple[IndexLike, ...],
        flat: IndexLike,
        channels: tuple[IndexLike, IndexLike],
    ) -> None:
        """`data` is where the image begins, `flat` the number of the row's first window."""
        bounds: list[tuple[IndexLike, IndexLike]] = []
        base = data
        for at, place in enumerate(places):
            start = b.minus(b.times(place, self.shape.windows.strides[at]), self.before[at])
            bounds.append(self._inside(b, at, start))
            base = b.plus(base, b.times(start, self.strides[at]))
        block = _Block(self, places, bounds, base, flat, channels)
        windows, last = self.shape.windows, len(self.counts) - 1
        count, size = number_of(self.counts[last]), number_of(self.sizes[last])
        before, taps = number_of(self.before[last]), number_of(self.kernel_extents[last])
        if count is not None and size is not None and before is not None and taps is not None and taps <= MAX_TAPS:
            self._known_row(b, block, count, size, before, taps)
            return
        taps = taps or 0
        if before is None or not taps or taps > MAX_TAPS:
            self._singles(b, block, 0, self.counts[last])
            return
        # Windows that lie in the data whole: from `first` to `end`.
        stride, reach = windows.strides[last], (taps - 1) * windows.dilations[last] + 1
        first = b.index_math("min", -(-before // stride), self.counts[last])
        room = b.minus(b.plus(self.sizes[last], before), reach)
        fitting = b.plus(b.index_math("floordiv", room, stride), 1)
        end = b.index_math("max", first, b.index_math("min", fitting, self.counts[last]))
        group = 4
        whole = b.plus(first, b.times(b.index_math("floordiv", b.minus(end, first), group), group))
        self._singles(b, block, 0, first)
        valid = [tuple(range(taps))] * group

        def several(inner: Body, at: SSAValue, _: Sequence[SSAValue]) -> None:
            block.emit(inner, at, valid)

        b.loop(whole, several, lower=first, step=group)

        def one(inner: Body, at: SSAValue, _: Sequence[SSAValue]) -> None:
            block.emit(inner, at, valid[:1])

        b.loop(end, one, lower=whole)
        self._singles(b, block, end, self.counts[last])

    def _inside(self, b: Body, at: int, start: IndexLike) -> tuple[IndexLike, IndexLike]:
        """Which taps along an axis lie in the data, for a window that begins at `start`."""
        dilation = self.shape.windows.dilations[at]
        kernel = self.kernel_extents[at]
        if number_of(self.before[at]) == 0 and not self.shape.windows.ceil and self._fits(at):
            return 0, kernel
        low = b.index_math("ceildiv", b.index_math("max", 0, b.minus(0, start)), dilation)
        high = b.index_math("ceildiv", b.index_math("max", 0, b.minus(self.sizes[at], start)), dilation)
        high = b.index_math("min", high, kernel)
        return low, b.index_math("max", low, high)

    def _fits(self, at: int) -> bool:
        return all(p.static_value == 0 for p in self.shape.pads[at])

    def _known_row(self, b: Body, block: _Block, count: int, size: int, before: int, taps: int) -> None:
        """A row of which all extents are numbers: blocks of windows, those alike in one loop."""
        windows, last = self.shape.windows, len(self.counts) - 1
        stride, dilation = windows.strides[last], windows.dilations[last]
        group = _group(count, taps)

        def valid(first: int) -> list[tuple[int, ...]]:
            out: list[tuple[int, ...]] = []
            for window in range(first, min(first + group, count)):
                start = window * stride - before
                out.append(tuple(t for t in range(taps) if 0 <= start + t * dilation < size))
            return out

        at = 0
        while at < count:
            shown = valid(at)
            end = at + group
            while end + group <= count and valid(end) == shown:
                end += group
            if end == at + group or end > count:
                block.emit(b, at, shown)
            else:

                def body(inner: Body, first: SSAValue, _: Sequence[SSAValue], shown: Sequence = shown) -> None:
                    block.emit(inner, first, shown)

                b.loop(end, body, lower=at, step=group)
            at = end

    def _singles(self, b: Body, block: _Block, first: IndexLike, end: IndexLike) -> None:
        """One window at a time, its taps bounded as along the other axes."""
        last = len(self.counts) - 1

        def body(inner: Body, at: SSAValue, _: Sequence[SSAValue]) -> None:
            start = inner.minus(inner.times(at, self.shape.windows.strides[last]), self.before[last])
            block.emit_single(inner, at, start, self._inside(inner, last, start))

        b.loop(end, body, lower=first)


def _group(count: int, taps: int) -> int:
    """How many windows to take at a time: as even parts of a row as the registers allow."""
    most = WINDOWS if taps <= 5 else 4
    parts = -(-count // most) if count else 1
    return max(1, -(-count // parts))


@dataclass(frozen=True)
class _Block:
    """Windows of one row, for a range of channels. `bounds` are the taps in the data along the outer axes, `base` is
    where tap 0 along these lies in column 0, `flat` the number of the row's first window."""

    slide: Slide
    places: tuple[IndexLike, ...]
    bounds: list[tuple[IndexLike, IndexLike]]
    base: IndexLike
    flat: IndexLike
    channels: tuple[IndexLike, IndexLike]

    def _outer(
        self,
        b: Body,
        states: Sequence[SSAValue],
        row: Callable[[Body, IndexLike, IndexLike, Sequence[SSAValue]], list[SSAValue]],
    ) -> Sequence[SSAValue]:
        """The loops over the outer taps; `row(b, offset, number of its first tap, states)` does one row of taps."""
        slide = self.slide
        windows = slide.shape.windows

        def level(at: Body, depth: int, offset: IndexLike, tap: IndexLike, held: Sequence[SSAValue]) -> list[SSAValue]:
            if depth == len(self.bounds):
                return row(at, offset, tap, held)

            def body(inner: Body, index: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
                moved = inner.times(index, inner.times(slide.strides[depth], windows.dilations[depth]))
                following = inner.plus(tap, inner.times(index, slide.taps_below[depth]))
                return level(inner, depth + 1, inner.plus(offset, moved), following, carried)

            low, high = self.bounds[depth]
            return list(at.loop(high, body, [("serial", s) for s in held], lower=low))

        return level(b, 0, self.base, 0, states)

    def _cells(self, known: IndexLike) -> Callable[[Body], IndexLike]:
        def cells(b: Body) -> IndexLike:
            total = known
            for low, high in self.bounds:
                total = b.times(total, b.minus(high, low))
            return total

        return cells

    def emit(self, b: Body, first: IndexLike, valid: Sequence[tuple[int, ...]]) -> None:
        """Windows from `first` on, with the taps of each that lie in the data."""
        slide = self.slide
        shape, steps, last = slide.shape, slide.steps, len(slide.counts) - 1
        stride, dilation = shape.windows.strides[last], shape.windows.dilations[last]
        left = b.times(b.minus(b.times(first, stride), slide.before[last]), slide.strides[last])
        used = sorted({tap for taps in valid for tap in taps})

        def channel(c: Body, at: SSAValue, _: Sequence[SSAValue]) -> None:
            def row(r: Body, offset: IndexLike, tap: IndexLike, states: Sequence[SSAValue]) -> list[SSAValue]:
                start = r.plus(r.plus(offset, left), at)
                weights: dict[int, SSAValue] = {}
                if steps.weight is not None:
                    weights = {t: steps.weight(r, r.plus(tap, t), at) for t in used}
                out = list(states)
                readers: dict[int, list[tuple[int, int]]] = {}
                for window, taps in enumerate(valid):
                    for t in taps:
                        readers.setdefault(window * stride + t * dilation, []).append((window, t))
                for column in sorted(readers):
                    place = r.plus(start, r.times(slide.strides[last], column))
                    for window, t in readers[column]:
                        out[window] = steps.add(r, out[window], place, weights.get(t))
                return out

            states = self._outer(c, [steps.start(c, at) for _ in valid], row)
            for window, (state, taps) in enumerate(zip(states, valid, strict=True)):
                where = c.plus(first, window)
                steps.finish(
                    c, state, Place((*self.places, where), self._cells(len(taps))), at, c.plus(self.flat, where)
                )

        b.loop(self.channels[1], channel, lower=self.channels[0], vector=True)

    def emit_single(self, b: Body, at: IndexLike, start: IndexLike, taps: tuple[IndexLike, IndexLike]) -> None:
        """The window `at`, which begins at column `start`, with the taps of a range."""
        slide = self.slide
        steps, last = slide.steps, len(slide.counts) - 1
        dilation = slide.shape.windows.dilations[last]
        left = b.times(start, slide.strides[last])
        low, high = taps
        cells = self._cells(b.minus(high, low))

        def channel(c: Body, lane: SSAValue, _: Sequence[SSAValue]) -> None:
            def row(r: Body, offset: IndexLike, tap: IndexLike, states: Sequence[SSAValue]) -> list[SSAValue]:
                begin = r.plus(r.plus(offset, left), lane)

                def body(inner: Body, t: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
                    place = inner.plus(begin, inner.times(t, inner.times(slide.strides[last], dilation)))
                    weight = None if steps.weight is None else steps.weight(inner, inner.plus(tap, t), lane)
                    return [steps.add(inner, carried[0], place, weight)]

                return list(r.loop(high, body, [("serial", states[0])], lower=low))

            (state,) = self._outer(c, [steps.start(c, lane)], row)
            steps.finish(c, state, Place((*self.places, at), cells), lane, c.plus(self.flat, at))

        b.loop(self.channels[1], channel, lower=self.channels[0], vector=True)


def taps_of(shape: Sliding) -> int | None:
    """The number of cells of a window, where it is known."""
    known = [k.static_value for k in shape.windows.kernel]
    return None if None in known else prod(k or 0 for k in known)
