"""Winograd's minimal filtering: 3x3 convolutions of stride 1 with fewer multiplications, where the user allows it.

F(n, 3) computes a tile of n x n outputs from (n + 2)^2 inputs by one product per input point: input tiles and weights
are transformed, multiplied point by point (each point is a contraction over the channels), and transformed back
(Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2015). F(4, 3) takes 4 times fewer multiplications
than the direct sum and loses a decimal digit, F(2, 3) 2.25 times fewer at no loss. A NaN or an infinity spreads over
its tile. Weights are transformed in float64 when the graph is compiled.

Blocks of tiles are done from end to end, in scratch memory that each chunk has for itself and that stays in the
second-level cache. Where there are few tiles, each step is done for all of them.
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
from sardonyx.backends.llvm.lowering.conv_tile import pack_weights, places_of_unit
from sardonyx.backends.llvm.lowering.epilogue import Point
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan
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
FEWEST_BLOCKS = 4
"""Where there are fewer, each step is a kernel of its own for all tiles."""
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
    """Tiles of all images in blocks, and blocks in parts that may run at once; without `fused` there is one block."""

    across: list[Dim]
    tiles: Dim
    block: int
    fused: bool

    @property
    def blocks(self) -> Dim:
        return self.tiles.ceildiv(self.block)

    @property
    def parts(self) -> Dim:
        return Dim.min(self.blocks, CHUNKS)


def _grid(shape: Sliding, outputs: int, channels: int, m: int) -> _Grid:
    across = [c.ceildiv(outputs) for c in shape.counts]
    tiles = Dim.product([shape.batch, *across])
    points = (outputs + 2) ** 2
    scratch = max(SCRATCH[0], min(SCRATCH[1], 2 * points * channels * m))
    block = max(6, min(24, scratch // (4 * points * (channels + m + 2 * PADDING)) // 6 * 6))
    known = tiles.static_value
    if known:
        number = -(-known // block)
        if number < FEWEST_BLOCKS:
            return _Grid(across, tiles, known, False)
        even = -(-known // number)
        block = -(-even // 6) * 6
    return _Grid(across, tiles, block, True)


class _Steps:
    """The steps of a convolution by F(outputs, 3), as parts of a kernel's body.

    The scratch memory holds [points][tiles of a block][channels], before and after the products.
    """

    def __init__(self, kernel: Kernel, shape: Sliding, grid: _Grid, outputs: int, sizes: tuple[int, int]) -> None:
        """`shape` has the padding that the frame has, `sizes` are the numbers of channels."""
        self.outputs, self.points = outputs, outputs + 2
        self.channels, self.m = sizes
        self.row_in, self.row_out = (size + PADDING for size in sizes)
        self.plane_in, self.plane_out = grid.block * self.row_in, grid.block * self.row_out
        self.across, self.counts = kernel.extents(grid.across), kernel.extents(shape.counts)
        self.line = kernel.extent(shape.padded[1] * self.channels)
        self.image = kernel.extent(Dim.product([*shape.padded, self.channels]))
        self.pixels = kernel.extent(Dim.product(shape.counts))
        self.exact = all(c.static_value is not None and c.static_value % outputs == 0 for c in shape.counts)
        self.into, self.back = _TRANSFORMS[outputs]

    def take(
        self, b: Body, data: SSAValue, before: tuple[SSAValue, IndexLike], place: IndexLike, tile: SSAValue
    ) -> None:
        """Transform the inputs of a tile; `before` is (buffer, offset), `place` that of the tile in the block."""
        points, channels = self.points, self.channels
        number, (row, column) = places_of_unit(b, tile, self.across)
        at = b.plus(b.times(number, self.image), b.times(b.times(row, self.outputs), self.line))
        at = b.plus(at, b.times(b.times(column, self.outputs), channels))
        there = b.plus(before[1], b.times(place, self.row_in))

        def channel(c: Body, lane: SSAValue, _: Sequence[SSAValue]) -> None:
            lines = [c.plus(c.plus(at, c.times(self.line, i)), lane) for i in range(points)]
            given = [[c.load(data, c.plus(own, j * channels)) for j in range(points)] for own in lines]
            found = _both_ways(_Lanes(c), self.into, given)
            for k, value in enumerate(value for line in found for value in line):
                c.store(value, before[0], c.plus(c.plus(there, lane), k * self.plane_in))

        b.loop(channels, channel, vector=True)

    def multiply(
        self,
        b: Body,
        before: tuple[SSAValue, IndexLike],
        weights: tuple[SSAValue, int],
        after: tuple[SSAValue, IndexLike],
        count: IndexLike,
        point: SSAValue,
    ) -> None:
        """The products of one point, for that many tiles; `weights` is (buffer, width of its panels)."""
        width = weights[1]
        matrix = -(-self.m // width) * width * self.channels
        offsets = [
            b.plus(before[1], b.times(point, self.plane_in)),
            b.times(point, matrix),
            b.plus(after[1], b.times(point, self.plane_out)),
        ]
        one = b.index(1)
        strides = [b.index(self.row_in), one, b.index(width), one, b.index(self.row_out)]
        extents = [b.index(count), b.index(self.m), b.index(self.channels)]
        b.add(ContractOp((before[0], weights[0], after[0]), extents, offsets, strides, packed=width))

    def give(
        self,
        b: Body,
        after: tuple[SSAValue, IndexLike],
        result: SSAValue,
        finish: Point | None,
        place: IndexLike,
        tile: SSAValue,
    ) -> None:
        """Transform the sums of a tile back, and store those that are outputs."""
        points, outputs, counts = self.points, self.outputs, self.counts
        number, (row, column) = places_of_unit(b, tile, self.across)
        top, left = b.times(row, outputs), b.times(column, outputs)
        origin = b.plus(b.times(number, self.pixels), b.plus(b.times(top, counts[1]), left))
        rows, columns = b.minus(counts[0], top), b.minus(counts[1], left)
        here = b.plus(after[1], b.times(place, self.row_out))

        def channel(c: Body, lane: SSAValue, _: Sequence[SSAValue]) -> None:
            at = c.plus(here, lane)
            given = [
                [c.load(after[0], c.plus(at, (i * points + j) * self.plane_out)) for j in range(points)]
                for i in range(points)
            ]
            found = _both_ways(_Lanes(c), self.back, given)

            def put(inner: Body, i: int, j: int) -> None:
                pixel = inner.plus(origin, inner.plus(inner.times(counts[1], i), j))
                value = found[i][j] if finish is None else finish(inner, found[i][j], pixel, lane)
                inner.store(value, result, inner.plus(inner.times(pixel, self.m), lane))

            def line_of(inner: Body, i: int) -> None:
                for j in range(outputs):
                    if self.exact or not j:
                        put(inner, i, j)
                    else:
                        inner.when(inner.compare("sgt", columns, j), lambda t, j=j: put(t, i, j))

            for i in range(outputs):
                if self.exact or not i:
                    line_of(c, i)
                else:
                    c.when(c.compare("sgt", rows, i), lambda t, i=i: line_of(t, i))

        b.loop(self.m, channel, vector=True)


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
    m, channels = dims_of(w)[0].static_value or 0, dims_of(w)[1].static_value or 0
    grid = _grid(shape, outputs, channels, m)
    # The frame is as large as all tiles together.
    pads = [
        (before, count * outputs + 2 - size - before)
        for (before, _), count, size in zip(shape.pads, grid.across, shape.sizes, strict=True)
    ]
    wide = replace(shape, pads=tuple(pads))
    frame = framed(plan, float32, plan.buffer(x), wide, last[0])
    width = panel_width(plan.target, 32)
    owner = w.owner
    if not isinstance(owner, ConstantOp):
        raise ValueError("the weights are not constant")
    packed = np.stack([pack_weights(point, 1, width)[0] for point in transformed(owner.array(), outputs)])
    matrices = plan.constant_array(packed.astype(np.float32), float32)
    dims = [shape.batch, Dim.of(m), *shape.counts]
    held = finish.held(float32)
    sums = target if last[1] else plan.workspace(held, [plan.count(dims)])
    block = (outputs + 2) ** 2 * grid.block
    scratch = [plan.workspace(float32, [plan.dim(grid.parts * (block * (n + PADDING)))]) for n in (channels, m)]

    def steps(kernel: Kernel) -> _Steps:
        return _Steps(kernel, wide, grid, outputs, (channels, m))

    if grid.fused:
        _in_blocks(plan, grid, steps, (frame, matrices, sums), scratch, finish, width)
    else:
        _step_by_step(plan, grid, steps, (frame, matrices, sums), scratch, finish, width)
    if not last[1]:
        channels_put_second(plan, (held, finish.result), sums, target, dims, finish.later)


def _in_blocks(
    plan: Plan,
    grid: _Grid,
    steps: Callable[[Kernel], _Steps],
    buffers: tuple[SSAValue, SSAValue, SSAValue],
    scratch: Sequence[SSAValue],
    finish: Finish,
    width: int,
) -> None:
    """One kernel that does all steps for a block of tiles after the other.

    `buffers` are those of the frame, the weights and the result.
    """
    kernel = plan.kernel("winograd")
    data, weights, result = (
        kernel.read_buffer(buffers[0]),
        kernel.read_buffer(buffers[1]),
        kernel.write_buffer(buffers[2]),
    )
    before, after = (kernel.write_buffer(buffer) for buffer in scratch)
    point = None if finish.at_once is None else finish.at_once(kernel)
    step = steps(kernel)
    tiles, blocks = kernel.extent(grid.tiles), kernel.extent(grid.blocks)
    each = kernel.index(0) if grid.blocks.static_value == 0 else kernel.extent(grid.blocks.ceildiv(grid.parts))

    def part(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        chunk = b.add(ChunkOp())
        held = before, b.times(chunk, step.points**2 * step.plane_in)
        made = after, b.times(chunk, step.points**2 * step.plane_out)

        def block(at: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            first = at.times(index, grid.block)
            count = at.index_math("min", grid.block, at.minus(tiles, first))
            at.loop(count, lambda c, t, _: step.take(c, data, held, t, c.plus(first, t)))
            at.loop(step.points**2, lambda c, k, _: step.multiply(c, held, (weights, width), made, count, k))
            at.loop(count, lambda c, t, _: step.give(c, made, result, point, t, c.plus(first, t)))

        low = b.index_math("min", b.times(number, each), blocks)
        b.loop(b.index_math("min", b.plus(low, each), blocks), block, lower=low)

    kernel.loop(kernel.extent(grid.parts), part, parallel=True)
    kernel.launch()


def _step_by_step(
    plan: Plan,
    grid: _Grid,
    steps: Callable[[Kernel], _Steps],
    buffers: tuple[SSAValue, SSAValue, SSAValue],
    scratch: Sequence[SSAValue],
    finish: Finish,
    width: int,
) -> None:
    """A kernel for each step, so that few tiles are work for all threads and large weights pass by once."""
    take = plan.kernel("winograd_inputs")
    data, before = take.read_buffer(buffers[0]), take.write_buffer(scratch[0])
    first = steps(take)
    take.loop(take.extent(grid.tiles), lambda b, t, _: first.take(b, data, (before, 0), t, t), parallel=True)
    take.launch()

    product = plan.kernel("winograd")
    held, weights = product.read_buffer(scratch[0]), product.read_buffer(buffers[1])
    made, second = product.write_buffer(scratch[1]), steps(product)
    product.loop(
        second.points**2,
        lambda b, k, _: second.multiply(b, (held, 0), (weights, width), (made, 0), grid.block, k),
        parallel=True,
    )
    product.launch()

    give = plan.kernel("winograd_outputs")
    after, result = give.read_buffer(scratch[1]), give.write_buffer(buffers[2])
    point = None if finish.at_once is None else finish.at_once(give)
    third = steps(give)
    give.loop(give.extent(grid.tiles), lambda b, t, _: third.give(b, (after, 0), result, point, t, t), parallel=True)
    give.launch()
