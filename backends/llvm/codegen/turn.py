"""Emits `kernel.turn`: square tiles are transposed in registers, what is left over element by element.

A tile is as many rows as a vector has lanes. Within each 128 bits the rows are interleaved pairwise, which is one
instruction each, and then the 128-bit parts change places (the usual network; see, for instance, J. O. Eklundh, A fast
computer method for matrix transposing, IEEE Trans. Comput. C-21, 1972).
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.backends.llvm.codegen.emit import KernelEmitter, emits
from sardonyx.backends.llvm.codegen.text import I64, FunctionBuilder, LType, Target
from sardonyx.backends.llvm.codegen.widen import fold, memory_type, scalar_type
from sardonyx.dialects.kernel.ops import BufferType, TurnOp

BAND = 16
"""So many columns are done for all rows before the next ones: the lines that they write stay in cache."""


@emits(TurnOp)
def _turn(e: KernelEmitter, op: TurnOp) -> None:
    b = e.builder
    if not isinstance(op.source.type, BufferType):
        raise TypeError("a matrix is turned from a buffer")
    ty = memory_type(scalar_type(op.source.type.element))
    rows, columns = (e.scalar(v) for v in op.extents)
    source, target = (
        b.gep(ty, e.scalar(buffer), e.scalar(offset))
        for buffer, offset in zip((op.source, op.target), op.offsets, strict=True)
    )
    strides = [e.scalar(v) for v in op.strides]
    turn_matrix(b, ty, (rows, columns), (source, strides[0]), (target, strides[1]), fetch=True)


def turn_matrix(
    b: FunctionBuilder,
    ty: LType,
    extents: tuple[str, str],
    source: tuple[str, str],
    target: tuple[str, str],
    fetch: bool = False,
) -> None:
    """Copy a matrix of (rows, columns) with its rows as columns; `source` and `target` are (address, step from row to
    row). With `fetch`, what is read is fetched ahead."""
    rows, columns = extents
    matrix = _Matrix(b, ty, source[0], target[0], source[1], target[1])
    size = tile_size(b.target, ty)
    whole_rows, whole_columns = _whole(b, rows, size), _whole(b, columns, size)

    def band(first: str, _: list[str]) -> list[str]:
        end = b.intrinsic("llvm.smin", I64, [(I64, fold(b, "add", first, str(BAND))), (I64, whole_columns)])

        def across(row: str, _: list[str]) -> list[str]:
            if fetch:
                matrix.fetch_band(row, first, size)
            b.loop(first, end, str(size), lambda column, _: matrix.tile(row, column, size))
            return []

        b.loop("0", whole_rows, str(size), across)
        return []

    b.loop("0", whole_columns, str(BAND), band)
    matrix.elements("0", whole_rows, whole_columns, columns)
    matrix.elements(whole_rows, rows, "0", columns)


def tile_size(target: Target, ty: LType) -> int:
    """Rows and columns of a tile; small elements take 128-bit vectors, whose interleavings are all there is."""
    return target.vector_bits // ty.bits if ty.bits >= 32 else 128 // ty.bits


def _whole(b: FunctionBuilder, extent: str, size: int) -> str:
    if not extent.startswith("%"):
        return str(int(extent) // size * size)
    return b.binary("and", I64, extent, str(-size))


class _Matrix:
    """The matrix that is read, and the one that is written."""

    def __init__(
        self, b: FunctionBuilder, ty: LType, source: str, target: str, source_stride: str, target_stride: str
    ) -> None:
        self.b, self.ty, self.source, self.target = b, ty, source, target
        self.source_stride, self.target_stride = source_stride, target_stride

    def _at(self, base: str, stride: str, major: str, minor: str) -> str:
        return self.b.gep(self.ty, base, fold(self.b, "add", fold(self.b, "mul", major, stride), minor))

    def tile(self, row: str, column: str, size: int) -> list[str]:
        b, wide = self.b, self.ty.with_lanes(size)
        loaded = []
        at = self._at(self.source, self.source_stride, row, column)
        for _ in range(size):
            loaded.append(b.load(wide, at, self.ty.bytes))
            at = b.gep(self.ty, at, self.source_stride)
        at = self._at(self.target, self.target_stride, column, row)
        for vector in transposed(b, wide, loaded):
            b.store(wide, vector, at, self.ty.bytes)
            at = b.gep(self.ty, at, self.target_stride)
        return []

    def fetch_band(self, row: str, column: str, size: int) -> None:
        """Have the next band's lines of these rows fetched."""
        at = self._at(self.source, self.source_stride, row, fold(self.b, "add", column, str(2 * BAND - 1)))
        for _ in range(size):
            self.b.prefetch(at, 2)
            at = self.b.gep(self.ty, at, self.source_stride)

    def elements(self, first_row: str, last_row: str, first_column: str, last_column: str) -> None:
        b = self.b

        def each(column: str, _: list[str]) -> list[str]:
            def one(row: str, _: list[str]) -> list[str]:
                value = b.load(self.ty, self._at(self.source, self.source_stride, row, column))
                b.store(self.ty, value, self._at(self.target, self.target_stride, column, row))
                return []

            b.loop(first_row, last_row, "1", one)
            return []

        b.loop(first_column, last_column, "1", each)


def transposed(b: FunctionBuilder, wide: LType, rows: Sequence[str]) -> list[str]:
    """The columns of a square tile of as many rows as the vectors have lanes."""
    lanes = wide.lanes
    part = min(lanes, 128 // wide.bits)  # lanes in 128 bits

    def shuffle(x: str, y: str, order: Sequence[int]) -> str:
        text = ", ".join(f"i32 {k}" for k in order)
        return b.op(f"shufflevector {wide} {x}, {wide} {y}, <{lanes} x i32> <{text}>")

    def interleaved(x: str, y: str, high: bool) -> str:
        order = []
        for k in range(lanes):
            place = k // part * part + (k % part + part * high) // 2
            order.append(place + lanes * (k % 2))
        return shuffle(x, y, order)

    at = list(rows)
    step = 1
    while step < part:  # within 128 bits, for each `part` rows
        following: list[str] = []
        for group in range(0, lanes, part):
            for k in range(part // 2):
                x, y = at[group + k], at[group + k + part // 2]
                following += [interleaved(x, y, False), interleaved(x, y, True)]
        at, step = following, step * 2
    distance = part
    while distance < lanes:  # the 128-bit parts, as blocks
        following = list(at)
        for k in range(lanes):
            if k & distance:
                continue
            x, y = at[k], at[k + distance]
            following[k] = shuffle(x, y, [j if not j & distance else j - distance + lanes for j in range(lanes)])
            following[k + distance] = shuffle(
                x, y, [j + distance if not j & distance else j + lanes for j in range(lanes)]
            )
        at, distance = following, distance * 2
    return at
