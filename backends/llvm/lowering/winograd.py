"""Winograd's minimal filtering: 3x3 convolutions of stride 1 with fewer multiplications, where the user allows it.

F(n, 3) computes a tile of n x n outputs from (n + 2)^2 inputs by one product per input point: input tiles and weights
are transformed, multiplied point by point (each point is a contraction over the channels), and transformed back
(Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015). F(4, 3) takes 4 times fewer multiplications
than the direct sum and loses a decimal digit, F(2, 3) 2.25 times fewer at no loss. A NaN or an infinity spreads over
its tile. Weights are transformed in float64 when the graph is compiled.

Blocks of tiles are done from end to end, in scratch memory that each chunk has for itself and that stays in the
second-level cache.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.codegen.contract_shape import panel_width
from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.conv_shape import Finish, Sliding, channels_put_second, framed
from sardonyx.backends.llvm.lowering.conv_tile import pack_weights, part_of, places_of_unit
from sardonyx.backends.llvm.lowering.plan import Plan
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import float32
from sardonyx.dialects.kernel.contract import ContractOp
from sardonyx.dialects.kernel.ops import ChunkOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.conv import ConvOp

Vectors = Sequence[SSAValue]

FAST = "fast"
"""The attribute of a convolution for which the user allows this."""
FEWEST_CHANNELS = 16
MOST_WEIGHTS = 10 << 20
"""Bytes of transformed weights up to which F(4, 3) is taken: they pass by once per block of tiles."""
SCRATCH = (448 << 10, 2 << 20)
"""Bytes of scratch memory that a block of tiles may take: what the second-level cache holds, and where the weights are
large up to half of theirs, since they pass by once per block."""
UNITS = 4
"""Into at least so many units the work is cut, if need be by output channels; each transforms its inputs itself."""
CHUNKS = 32
"""Into at most so many chunks the tiles are cut."""
PADDING = 16
"""Elements between rows of the scratch memory, so that they do not fall on the same lines of the cache."""

G: dict[int, list[list[float]]] = {
    2: [[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]],
    4: [
        [1 / 4, 0, 0],
        [-1 / 6, -1 / 6, -1 / 6],
        [-1 / 6, 1 / 6, -1 / 6],
        [1 / 24, 1 / 12, 1 / 6],
        [1 / 24, -1 / 12, 1 / 6],
        [0, 0, 1],
    ],
}
"""The transforms of three weights, by the number of outputs."""


class _Lanes:
    """Arithmetic on the vectors of one body."""

    def __init__(self, b: Body) -> None:
        self.b = b
        self._numbers: dict[float, SSAValue] = {}

    def number(self, value: float) -> SSAValue:
        if value not in self._numbers:
            self._numbers[value] = self.b.const(float32, value)
        return self._numbers[value]

    def add(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.arithmetic("add", float32, x, y)

    def sub(self, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.arithmetic("sub", float32, x, y)

    def fma(self, factor: float, x: SSAValue, y: SSAValue) -> SSAValue:
        return self.b.math("fma", x.type, x, self.number(factor), y)


def _inputs_4(v: _Lanes, d: Vectors) -> list[SSAValue]:
    even, odd = v.fma(-4, d[2], d[4]), v.fma(-4, d[1], d[3])
    far, near = v.sub(d[4], d[2]), v.sub(d[3], d[1])
    return [
        v.fma(4, d[0], v.fma(-5, d[2], d[4])),
        v.add(even, odd),
        v.sub(even, odd),
        v.fma(2, near, far),
        v.fma(-2, near, far),
        v.fma(4, d[1], v.fma(-5, d[3], d[5])),
    ]


def _outputs_4(v: _Lanes, m: Vectors) -> list[SSAValue]:
    plus, minus, twice, apart = v.add(m[1], m[2]), v.sub(m[1], m[2]), v.add(m[3], m[4]), v.sub(m[3], m[4])
    return [
        v.add(v.add(m[0], plus), twice),
        v.fma(2, apart, minus),
        v.fma(4, twice, plus),
        v.add(v.fma(8, apart, minus), m[5]),
    ]


def _inputs_2(v: _Lanes, d: Vectors) -> list[SSAValue]:
    return [v.sub(d[0], d[2]), v.add(d[1], d[2]), v.sub(d[2], d[1]), v.sub(d[1], d[3])]


def _outputs_2(v: _Lanes, m: Vectors) -> list[SSAValue]:
    return [v.add(v.add(m[0], m[1]), m[2]), v.sub(v.sub(m[1], m[2]), m[3])]


Transform = Callable[[_Lanes, Vectors], list[SSAValue]]
_TRANSFORMS: dict[int, tuple[Transform, Transform]] = {2: (_inputs_2, _outputs_2), 4: (_inputs_4, _outputs_4)}


def _both_ways(v: _Lanes, transform: Transform, points: Sequence[Vectors]) -> list[list[SSAValue]]:
    """A transform along the columns, then along the rows."""
    columns = [transform(v, [row[k] for row in points]) for k in range(len(points[0]))]
    return [transform(v, [column[k] for column in columns]) for k in range(len(columns[0]))]


def transformed(w: Any, outputs: int) -> Any:
    """Weights [M, C, 3, 3] in float64 as [points, M, C]."""
    g = np.array(G[outputs])
    points = np.einsum("ai,mcij,bj->abmc", g, w.astype(np.float64), g)
    return points.reshape(-1, *w.shape[:2])


def outputs_of_tile(op: ConvOp, shape: Sliding) -> int | None:
    """The n of the F(n, 3) to take; None where the direct sum is to be taken."""
    w, group = op.w, op.attr("group")
    windows, dims = shape.windows, dims_of(w)
    kernel = [k.static_value for k in windows.kernel]
    if FAST not in op.attributes or group != 1 or kernel != [3, 3] or dtype_of(w) != float32:
        return None
    if set(windows.strides) != {1} or set(windows.dilations) != {1} or not isinstance(w.owner, ConstantOp):
        return None
    m, channels = dims[0].static_value or 0, dims[1].static_value or 0
    if min(m, channels) < FEWEST_CHANNELS:
        return None
    small = any(c.static_value is not None and c.static_value < 4 for c in shape.counts)
    if small:
        return None
    return 4 if 36 * 4 * m * channels <= MOST_WEIGHTS else 2


@dataclass(frozen=True)
class _Grid:
    """Tiles of all images in blocks, blocks in parts that may run at once; output channels in blocks of `columns`."""

    across: list[Dim]
    tiles: Dim
    block: int
    columns: int
    splits: int

    @property
    def blocks(self) -> Dim:
        return self.tiles.ceildiv(self.block)

    @property
    def parts(self) -> Dim:
        return Dim.min(self.blocks, CHUNKS)


def _grid(shape: Sliding, outputs: int, channels: int, m: int, width: int) -> _Grid:
    across = [c.ceildiv(outputs) for c in shape.counts]
    tiles = Dim.product([shape.batch, *across])
    points = (outputs + 2) ** 2
    scratch = max(SCRATCH[0], min(SCRATCH[1], 2 * points * channels * m))
    block = max(6, min(24, scratch // (4 * points * (channels + m + 2 * PADDING)) // 6 * 6))
    known, splits = tiles.static_value, 1
    if known:
        number = -(-known // block)
        even = -(-known // number)
        block = even if number == 1 else -(-even // 6) * 6
        splits = -(-UNITS // -(-known // block))
    panels = -(-m // width)
    columns = -(-panels // min(splits, panels)) * width
    return _Grid(across, tiles, block, columns, -(-m // columns))


def winograd(
    plan: Plan,
    shape: Sliding,
    operands: tuple[SSAValue, SSAValue],
    target: SSAValue,
    last: tuple[bool, bool],
    finish: Finish,
    outputs: int,
) -> None:
    """Launch the convolution by F(`outputs`, 3); see `outputs_of_tile` and `conv_tile.convolve`."""
    x, w = operands
    points = outputs + 2
    m, channels = dims_of(w)[0].static_value or 0, dims_of(w)[1].static_value or 0
    width = panel_width(plan.target, 32)
    grid = _grid(shape, outputs, channels, m, width)
    # The frame is as large as all tiles together.
    pads = [
        (before, count * outputs + 2 - size - before)
        for (before, _), count, size in zip(shape.pads, grid.across, shape.sizes, strict=True)
    ]
    wide = replace(shape, pads=tuple(pads))
    frame = framed(plan, float32, plan.buffer(x), wide, last[0])
    owner = w.owner
    if not isinstance(owner, ConstantOp):
        raise ValueError("the weights are not constant")
    packed = np.stack([pack_weights(point, 1, width)[0] for point in transformed(owner.array(), outputs)])
    matrices = plan.constant_array(packed.astype(np.float32), float32)
    row_in, row_out = channels + PADDING, min(grid.columns, m) + PADDING
    plane_in, plane_out = grid.block * row_in, grid.block * row_out
    size_in, size_out = points**2 * plane_in, points**2 * plane_out
    units = grid.parts * grid.splits
    scratch = [plan.workspace(float32, [plan.dim(units * size)]) for size in (size_in, size_out)]
    dims = [shape.batch, Dim.of(m), *shape.counts]
    sums = target if last[1] else plan.workspace(float32, [plan.count(dims)])

    kernel = plan.kernel("winograd")
    data, weights, result = kernel.read_buffer(frame), kernel.read_buffer(matrices), kernel.write_buffer(sums)
    before, after = (kernel.write_buffer(buffer) for buffer in scratch)
    point = None if finish.at_once is None else finish.at_once(kernel)
    across, counts = kernel.extents(grid.across), kernel.extents(shape.counts)
    tiles, blocks = kernel.extent(grid.tiles), kernel.extent(grid.blocks)
    each = kernel.extent(grid.blocks.ceildiv(grid.parts)) if grid.blocks.static_value != 0 else kernel.index(0)
    line = kernel.extent(wide.padded[1] * channels)
    image = kernel.extent(Dim.product([*wide.padded, channels]))
    pixels = kernel.extent(Dim.product(shape.counts))
    exact = all(c.static_value is not None and c.static_value % outputs == 0 for c in shape.counts)
    into, back = _TRANSFORMS[outputs]

    def part(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        chunk = b.add(ChunkOp())
        start_in, start_out = b.times(chunk, size_in), b.times(chunk, size_out)
        own, (split,) = places_of_unit(b, number, (grid.splits,))
        left = b.times(split, grid.columns)
        columns = part_of(b, m, left, grid.columns)

        def block(at: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            first = at.times(index, grid.block)
            count = at.index_math("min", grid.block, at.minus(tiles, first))
            at.loop(count, lambda c, t, _: take(c, start_in, t, c.plus(first, t)))

            def multiply(inner: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
                offsets = [
                    inner.plus(start_in, inner.times(k, plane_in)),
                    inner.plus(inner.times(k, packed[0].size), inner.times(left, channels)),
                    inner.plus(start_out, inner.times(k, plane_out)),
                ]
                one = inner.index(1)
                strides = [inner.index(row_in), one, inner.index(width), one, inner.index(row_out)]
                extents = [count, inner.index(columns), inner.index(channels)]
                inner.add(ContractOp((before, weights, after), extents, offsets, strides, packed=width))

            at.loop(points**2, multiply)
            at.loop(count, lambda c, t, _: give(c, start_out, t, c.plus(first, t), (left, columns)))

        low = b.index_math("min", b.times(own, each), blocks)
        b.loop(b.index_math("min", b.plus(low, each), blocks), block, lower=low)

    def take(b: Body, start: IndexLike, place: SSAValue, tile: SSAValue) -> None:
        """Transform the inputs of a tile."""
        number, (row, column) = places_of_unit(b, tile, across)
        at = b.plus(b.times(number, image), b.times(b.times(row, outputs), line))
        at = b.plus(at, b.times(b.times(column, outputs), channels))
        there = b.plus(start, b.times(place, row_in))

        def channel(c: Body, lane: SSAValue, _: Sequence[SSAValue]) -> None:
            lines = [c.plus(c.plus(at, c.times(line, i)), lane) for i in range(points)]
            given = [[c.load(data, c.plus(own, j * channels)) for j in range(points)] for own in lines]
            found = _both_ways(_Lanes(c), into, given)
            for i in range(points):
                for j in range(points):
                    c.store(found[i][j], before, c.plus(c.plus(there, lane), (i * points + j) * plane_in))

        b.loop(channels, channel, vector=True)

    def give(b: Body, start: IndexLike, place: SSAValue, tile: SSAValue, channels: tuple[IndexLike, IndexLike]) -> None:
        """Transform the sums of a tile back, and store those that are outputs; `channels` are (first, number)."""
        number, (row, column) = places_of_unit(b, tile, across)
        top, left = b.times(row, outputs), b.times(column, outputs)
        origin = b.plus(b.times(number, pixels), b.plus(b.times(top, counts[1]), left))
        rows, columns = b.minus(counts[0], top), b.minus(counts[1], left)
        here = b.plus(start, b.times(place, row_out))

        def channel(c: Body, lane: SSAValue, _: Sequence[SSAValue]) -> None:
            at, out = c.plus(here, lane), c.plus(channels[0], lane)
            given = [[c.load(after, c.plus(at, (i * points + j) * plane_out)) for j in range(points)]
                     for i in range(points)]  # fmt: skip
            found = _both_ways(_Lanes(c), back, given)

            def put(inner: Body, i: int, j: int) -> None:
                pixel = inner.plus(origin, inner.plus(inner.times(counts[1], i), j))
                value = found[i][j] if point is None else point(inner, found[i][j], pixel, out)
                inner.store(value, result, inner.plus(inner.times(pixel, m), out))

            def line_of(inner: Body, i: int) -> None:
                for j in range(outputs):
                    if exact or not j:
                        put(inner, i, j)
                    else:
                        inner.when(inner.compare("sgt", columns, j), lambda t, j=j: put(t, i, j))

            for i in range(outputs):
                if exact or not i:
                    line_of(c, i)
                else:
                    c.when(c.compare("sgt", rows, i), lambda t, i=i: line_of(t, i))

        b.loop(channels[1], channel, vector=True)

    kernel.loop(kernel.extent(units), part, parallel=True)
    kernel.launch()
    if not last[1]:
        channels_put_second(plan, (float32, float32), sums, target, dims, finish.later)
