"""What convolutions and pools share: where windows lie, padding, and images in a padded frame with channels last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype
from sardonyx.backends.llvm.lowering.epilogue import Stage
from sardonyx.backends.llvm.lowering.plan import Plan
from sardonyx.backends.llvm.lowering.region import row_major
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.kernel.ops import TurnOp
from sardonyx.dialects.sx.windows import Windows

TURNED = 16
"""Pixels that are taken at a time where channels are put elsewhere: a line of the cache."""


def paddings(windows: Windows, sizes: Sequence[Dim], counts: Sequence[Dim]) -> list[tuple[Dim, Dim]]:
    """(before, after) per spatial axis as expressions; SAME pads depend on the size."""
    out: list[tuple[Dim, Dim]] = []
    for at, (size, count) in enumerate(zip(sizes, counts, strict=True)):
        if not windows.same:
            before, after = windows.pads[at]
            out.append((Dim.of(before), Dim.of(after)))
            continue
        total = Dim.max(0, (count - 1) * windows.strides[at] + windows.reach(at) - size)
        small = total // 2
        out.append((small, total - small) if windows.auto_pad == "SAME_UPPER" else (total - small, small))
    return out


def require_fit(plan: Plan, counts: Sequence[Dim]) -> None:
    """Refuse a run in which no window fits."""
    for at, count in enumerate(counts):
        low = count.bounds[0]
        if low is None or low < 0:
            index = plan.dim(count)
            failure = plan.failure(f"no window fits into spatial axis {at}")
            plan.body.require(plan.body.compare("sge", index, 0), failure, index)


@dataclass(frozen=True)
class Finish:
    """What sums go through before they are stored.

    `early`: the stage's columns are the channels, and its rows don't matter unless the channels are last in the result.
    Otherwise its rows and columns are those of a result whose channels are second, and it works where that is written.
    """

    stage: Stage | None
    early: bool
    result: DType
    """The dtype that it gives."""

    @property
    def at_once(self) -> Stage | None:
        """What is done where channels are last."""
        return self.stage if self.early else None

    @property
    def later(self) -> Stage | None:
        """What is done where channels are put second."""
        return None if self.early else self.stage

    def held(self, dtype: DType) -> DType:
        """The dtype of what is held in between, for sums of a dtype."""
        return self.result if self.early else compute_dtype(dtype)


@dataclass(frozen=True)
class Sliding:
    """Windows over the spatial axes of a batch of images.

    `sizes` and `counts` are the spatial extents of the data and of the result, `pads` what lies around the data.
    """

    windows: Windows
    batch: Dim
    channels: Dim
    sizes: tuple[Dim, ...]
    counts: tuple[Dim, ...]
    pads: tuple[tuple[Dim, Dim], ...]

    @staticmethod
    def of(plan: Plan, windows: Windows, x: Sequence[Dim], out: Sequence[Dim]) -> Sliding:
        """`x` and `out` are the dims [N, C, D1, …] of data and result; refuses a run in which no window fits."""
        require_fit(plan, out[2:])
        pads = paddings(windows, x[2:], out[2:])
        return Sliding(windows, x[0], x[1], tuple(x[2:]), tuple(out[2:]), tuple(pads))

    @property
    def is_padded(self) -> bool:
        return any(p.static_value != 0 for pair in self.pads for p in pair)

    @property
    def padded(self) -> list[Dim]:
        """The spatial extents with the padding."""
        return [size + before + after for size, (before, after) in zip(self.sizes, self.pads, strict=True)]

    @property
    def is_pointwise(self) -> bool:
        """Whether each window is the element at its own place."""
        ones = all(k.static_value == 1 for k in self.windows.kernel) and set(self.windows.strides) == {1}
        return ones and not self.is_padded


def framed(plan: Plan, dtype: DType, data: SSAValue, shape: Sliding, last: bool) -> SSAValue:
    """The plan-level buffer of the images [N, padded D1, …, C] with zeros around them.

    `data` is the buffer of the operand, whose channels are last or second. It is that itself where there is nothing to
    do; otherwise one kernel writes every row of the frame once.
    """
    if last and not shape.is_padded:
        return data
    extents = [shape.batch, *shape.padded, shape.channels]
    target = plan.workspace(dtype, [plan.dim(d) for d in extents])
    kernel = plan.kernel("frame")
    read, write = kernel.read_buffer(data), kernel.write_buffer(target)
    channels, width = kernel.extent(shape.channels), kernel.extent(shape.sizes[-1])
    inside, padded = kernel.extents(shape.sizes[:-1]), kernel.extents(shape.padded[:-1])
    before = [kernel.extent(b) for b, _ in shape.pads]
    left = kernel.extent(shape.pads[-1][0] * shape.channels)
    right = kernel.extent(shape.pads[-1][1] * shape.channels)
    run = kernel.extent(shape.sizes[-1] * shape.channels)
    line = kernel.extent(shape.padded[-1] * shape.channels)
    plane = kernel.outer(plan.count(shape.sizes))
    zero = kernel.const(dtype, 0)

    def zeros(b: Body, at: IndexLike, count: IndexLike) -> None:
        def cell(c: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
            c.store(zero, write, c.plus(at, i))

        b.loop(count, cell, vector=True)

    def body(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        image, places = places_of(b, number, padded)
        at = b.times(number, line)
        valid: SSAValue | None = None
        row: IndexLike = 0
        for place, extent, margin in zip(places, inside, before, strict=False):
            own = b.minus(place, margin)
            there = b.both(b.compare("sge", own, 0), b.compare("slt", own, extent))
            valid = there if valid is None else b.both(valid, there)
            row = b.plus(b.times(row, extent), own)

        def fill(w: Body) -> None:
            zeros(w, at, left)
            start = w.plus(at, left)
            if last:
                source = w.times(w.plus(w.times(image, _product(w, inside)), row), run)

                def cell(c: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
                    c.store(c.load(read, c.plus(source, i)), write, c.plus(start, i))

                w.loop(run, cell, vector=True)
            else:
                source = w.plus(w.times(image, w.times(channels, plane)), w.times(row, width))
                turned(w, (channels, width), (read, source, plane), (write, start, channels))
            zeros(w, w.plus(start, run), right)

        if valid is None:
            fill(b)
        else:
            b.when(valid, lambda w: fill(w), lambda w: zeros(w, at, line))

    kernel.loop(kernel.outer(plan.count([shape.batch, *shape.padded[:-1]])), body, parallel=True)
    kernel.launch()
    return target


def _product(b: Body, extents: Sequence[IndexLike]) -> IndexLike:
    total: IndexLike = 1
    for extent in extents:
        total = b.times(total, extent)
    return total


def places_of(b: Body, number: SSAValue, extents: Sequence[SSAValue]) -> tuple[IndexLike, list[SSAValue]]:
    """A flat number as (what is left in front, the place along each of these extents)."""
    places: list[SSAValue] = []
    rest: IndexLike = number
    for extent in reversed(extents):
        places.append(b.index_math("floormod", rest, extent))
        rest = b.index_math("floordiv", rest, extent)
    return rest, places[::-1]


def turned(
    b: Body,
    shape: tuple[IndexLike, IndexLike],
    source: tuple[SSAValue, IndexLike, IndexLike],
    target: tuple[SSAValue, IndexLike, IndexLike],
) -> None:
    """Copy a matrix of that many (rows, columns) with its rows as columns; `source` and `target` are (buffer, offset,
    step from row to row)."""
    strides = [b.index(source[2]), b.index(target[2])]
    offsets = [b.index(source[1]), b.index(target[1])]
    b.add(TurnOp(source[0], target[0], [b.index(n) for n in shape], offsets, strides))


Change = Callable[[Body, SSAValue, IndexLike, IndexLike], SSAValue]
"""`change(body, element, channel, pixel)` gives what is stored."""


def turned_back(
    b: Body,
    channels: tuple[IndexLike, IndexLike],
    pixels: tuple[IndexLike, IndexLike],
    source: tuple[SSAValue, IndexLike, IndexLike],
    target: tuple[SSAValue, IndexLike, IndexLike],
    change: Change,
) -> None:
    """The reverse for a block of channels and pixels, each (first, number).

    `source` is (buffer, offset, pixels' step), `target` (buffer, offset, channels' step).
    """
    first, count = channels
    start, number = pixels
    stop = b.plus(start, number)

    def block(outer: Body, at: SSAValue, _: Sequence[SSAValue]) -> None:
        end = outer.index_math("min", outer.plus(at, TURNED), stop)

        def channel(inner: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
            c = inner.plus(first, k)
            read = inner.plus(source[1], c)
            write = inner.plus(target[1], inner.times(c, target[2]))

            def pixel(deep: Body, p: SSAValue, _: Sequence[SSAValue]) -> None:
                value = deep.load(source[0], deep.plus(read, deep.times(p, source[2])))
                deep.store(change(deep, value, c, p), target[0], deep.plus(write, p))

            inner.loop(end, pixel, lower=at, vector=True)

        outer.loop(count, channel)

    b.loop(stop, block, lower=start, step=TURNED)


def strides_last(shape: Sliding) -> list[Dim]:
    """The strides of the padded frame along the spatial axes, in elements."""
    return [stride * shape.channels for stride in row_major(shape.padded)]


def channels_put_last(plan: Plan, dtype: DType, data: SSAValue, dims: Sequence[Dim], last: bool) -> SSAValue:
    """The buffer of data [N, C, D1, …] as [N, D1, …, C]; `data` itself where they are `last` already."""
    if last:
        return data
    target = plan.workspace(dtype, [plan.dim(d) for d in dims])
    kernel = plan.kernel("channels_last")
    read, write = kernel.read_buffer(data), kernel.write_buffer(target)
    channels, pixels = kernel.extent(dims[1]), kernel.outer(plan.count(dims[2:]))
    image = kernel.times(channels, pixels)

    def unit(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        at, first, count = _part_of_image(b, number, pixels, image)
        source, there = b.plus(at, first), b.plus(at, b.times(first, channels))
        turned(b, (channels, count), (read, source, pixels), (write, there, channels))

    kernel.loop(kernel.times(kernel.extent(dims[0]), PARTS), unit, parallel=True)
    kernel.launch()
    return target


def channels_put_second(
    plan: Plan,
    dtypes: tuple[DType, DType],
    data: SSAValue,
    target: SSAValue,
    dims: Sequence[Dim],
    stage: Stage | None = None,
) -> None:
    """Write data [N, D1, …, C] as [N, C, D1, …], whose dims are given, by way of `stage` (its rows are batch and
    channel, its columns the pixels); `dtypes` are those of the data and of the target."""
    kernel = plan.kernel("channels_second")
    read, write = kernel.read_buffer(data), kernel.write_buffer(target)
    point = None if stage is None else stage(kernel)
    channels, pixels = kernel.extent(dims[1]), kernel.outer(plan.count(dims[2:]))
    image = kernel.times(channels, pixels)

    def unit(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        at, first, count = _part_of_image(b, number, pixels, image)
        row = b.times(b.index_math("floordiv", number, PARTS), channels)
        if point is None and dtypes[0] == dtypes[1]:
            source = b.plus(at, b.times(first, channels))
            turned(b, (count, channels), (read, source, channels), (write, b.plus(at, first), pixels))
            return

        def change(inner: Body, value: SSAValue, c: IndexLike, p: IndexLike) -> SSAValue:
            if point is None:
                return inner.convert(value, *dtypes)
            return point(inner, value, inner.plus(row, c), p)

        turned_back(b, (0, channels), (first, count), (read, at, channels), (write, at, pixels), change)

    kernel.loop(kernel.times(kernel.extent(dims[0]), PARTS), unit, parallel=True)
    kernel.launch()


PARTS = 8
"""Into so many runs of pixels an image is cut where its channels are put elsewhere."""


def _part_of_image(
    b: Body, number: SSAValue, pixels: IndexLike, image: IndexLike
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """(where its image begins, its first pixel, its pixels) of a part."""
    each = b.times(b.index_math("ceildiv", b.index_math("ceildiv", pixels, PARTS), TURNED), TURNED)
    first = b.index_math("min", b.times(b.index_math("floormod", number, PARTS), each), pixels)
    count = b.index_math("min", each, b.minus(pixels, first))
    return b.times(b.index_math("floordiv", number, PARTS), image), first, count
