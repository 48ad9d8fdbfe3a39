"""Depthwise convolutions of data with channels second: the lanes are the pixels of a row.

A plane is walked in blocks of rows that share what they read. All extents but the batch are numbers, so that it is
settled while code is made which cells lie in the padding; no padded copy is made. The last vector of a row goes over
pixels that have been computed already rather than beyond the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype
from sardonyx.backends.llvm.lowering.conv_depthwise import multiply_add
from sardonyx.backends.llvm.lowering.conv_shape import Sliding
from sardonyx.backends.llvm.lowering.epilogue import Point, Stage
from sardonyx.backends.llvm.lowering.plan import Plan
from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.dtypes import DType

MOST_TAPS = 49


@dataclass(frozen=True)
class _Axis:
    """One spatial axis: what is known of its windows."""

    size: int
    count: int
    taps: int
    stride: int
    dilation: int
    before: int

    def valid(self, at: int) -> list[int]:
        """The taps of a window that lie in the data."""
        return [t for t in range(self.taps) if 0 <= self.cell(at, t) < self.size]

    def cell(self, at: int, tap: int) -> int:
        return at * self.stride - self.before + tap * self.dilation

    @property
    def whole(self) -> tuple[int, int]:
        """The windows that lie in the data whole, as a range."""
        full = [at for at in range(self.count) if len(self.valid(at)) == self.taps]
        return (full[0], full[-1] + 1) if full else (self.count, self.count)


def _axes(shape: Sliding) -> list[_Axis] | None:
    """The axes as (height, width), where all extents are numbers."""
    windows = shape.windows
    out: list[_Axis] = []
    for at, (size, count, (before, _)) in enumerate(zip(shape.sizes, shape.counts, shape.pads, strict=True)):
        numbers = (size.static_value, count.static_value, windows.kernel[at].static_value, before.static_value)
        if None in numbers:
            return None
        n, c, k, b = (int(v or 0) for v in numbers)
        out.append(_Axis(n, c, k, windows.strides[at], windows.dilations[at], b))
    return [_Axis(1, 1, 1, 1, 1, 0)] * (2 - len(out)) + out


def fits_planes(plan: Plan, shape: Sliding) -> bool:
    """Whether this kernel does it, and well: wide rows, windows that move on by single pixels."""
    if len(shape.sizes) > 2 or shape.windows.strides[-1] != 1:
        return False
    axes = _axes(shape)
    if axes is None or prod(a.taps for a in axes) > MOST_TAPS:
        return False
    low, high = axes[1].whole
    return high - low >= plan.target.lanes()


def depthwise_planes(
    plan: Plan, shape: Sliding, operands: tuple[SSAValue, SSAValue], target: SSAValue, stage: Stage | None
) -> None:
    """Launch the convolution of data [N, C, …] with weights [C, 1, …] into the buffer `target`; see `fits_planes`."""
    axes = _axes(shape)
    if axes is None:
        raise ValueError("a plane's extents are not known")
    x, w = operands
    kernel = plan.kernel("depthwise")
    data, weights, result = kernel.read(x), kernel.read(w), kernel.write_buffer(target)
    dtype = dtype_of(x)
    planes = _Planes(axes[0], axes[1], dtype, compute_dtype(dtype), plan.target.lanes(), data, weights, result,
                     None if stage is None else stage(kernel))  # fmt: skip
    channels = kernel.extent(shape.channels)

    def plane(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        planes.emit(b, number, b.index_math("floormod", number, channels))

    kernel.loop(kernel.outer(plan.count([shape.batch, shape.channels])), plane, parallel=True)
    kernel.launch()


@dataclass(frozen=True)
class _Planes:
    height: _Axis
    width: _Axis
    dtype: DType
    wide: DType
    lanes: int
    data: SSAValue
    weights: SSAValue
    result: SSAValue
    point: Point | None

    def emit(self, b: Body, number: SSAValue, channel: IndexLike) -> None:
        """One plane: rows at its ends one by one, those in between in blocks."""
        height = self.height
        group = 4 if height.taps * self.width.taps <= 9 else 2
        low, high = height.whole
        end = low + (high - low) // group * group
        for row in range(low):
            self._rows(b, number, channel, row, [row])
        if end > low:

            def body(inner: Body, row: SSAValue, _: Sequence[SSAValue]) -> None:
                self._rows(inner, number, channel, row, list(range(low, low + group)))

            b.loop(end, body, lower=low, step=group)
        if high > end:
            self._rows(b, number, channel, end, list(range(end, high)))
        for row in range(high, height.count):
            self._rows(b, number, channel, row, [row])

    def _rows(self, b: Body, number: SSAValue, channel: IndexLike, row: IndexLike, like: Sequence[int]) -> None:
        """Rows from `row` on, whose taps lie in the data as those of the rows `like` (at the same distances)."""
        low, high = self.width.whole
        for column in range(low):
            self._cells(b, number, channel, row, like, column, self.width.valid(column))

        def body(inner: Body, column: SSAValue, _: Sequence[SSAValue]) -> None:
            self._cells(inner, number, channel, row, like, column, list(range(self.width.taps)))

        whole = low + (high - low) // self.lanes * self.lanes
        b.loop(whole, body, lower=low, vector=True)
        if whole < high:
            b.loop(high, body, lower=high - self.lanes, vector=True)
        for column in range(high, self.width.count):
            self._cells(b, number, channel, row, like, column, self.width.valid(column))

    def _cells(
        self,
        b: Body,
        number: SSAValue,
        channel: IndexLike,
        row: IndexLike,
        like: Sequence[int],
        column: IndexLike,
        taps: Sequence[int],
    ) -> None:
        """One pixel (or a vector of them) of some rows."""
        height, width = self.height, self.width
        readers: dict[tuple[int, int], list[tuple[int, int]]] = {}
        for at, own in enumerate(like):
            for tap in height.valid(own):
                line = at * height.stride + tap * height.dilation
                for t in taps:
                    readers.setdefault((line, t), []).append((at, tap * width.taps + t))
        first = b.minus(b.times(row, height.stride), height.before)
        base = b.times(b.plus(b.times(number, height.size), first), width.size)
        base = b.plus(base, b.minus(b.times(column, width.stride), width.before))
        own_weights = b.times(channel, height.taps * width.taps)
        sums = [b.const(self.wide, 0)] * len(like)
        factors: dict[int, SSAValue] = {}
        for line, t in sorted(readers):
            offset = b.plus(base, line * width.size + t * width.dilation)
            value = b.convert(b.load(self.data, offset), self.dtype, self.wide)
            for at, tap in readers[line, t]:
                if tap not in factors:
                    loaded = b.load(self.weights, b.plus(own_weights, tap))
                    factors[tap] = b.convert(loaded, self.dtype, self.wide)
                sums[at] = multiply_add(b, self.wide, value, factors[tap], sums[at])
        for at, total in enumerate(sums):
            pixel = b.plus(b.times(b.plus(row, at), width.count), column)
            if self.point is None:
                value = b.convert(total, self.wide, self.dtype)
            else:
                value = self.point(b, total, number, pixel)
            b.store(value, self.result, b.plus(b.times(number, height.count * width.count), pixel))
