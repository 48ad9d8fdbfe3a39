"""Emits `kernel.turn`: blocks of elements are turned in registers, what is left is copied one by one.

A block of L rows by L columns is L vectors, which log2(L) rounds of shuffles exchange until each holds a column.
"""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.backends.llvm.codegen.emit import KernelEmitter, emits
from sardonyx.backends.llvm.codegen.text import I64, FunctionBuilder, LType
from sardonyx.backends.llvm.codegen.widen import fold, memory_type, value_type
from sardonyx.dialects.kernel.ops import TurnOp

MOST_LANES = 8
RUN = 64
"""Columns that are turned for all rows before the next ones."""
WIDE = 2
"""Blocks of columns that are turned at a time, so that a line of the cache is read once."""


@emits(TurnOp)
def _turn(e: KernelEmitter, op: TurnOp) -> None:
    b = e.builder
    element = memory_type(value_type(op.source.type.element))  # pyright: ignore[reportAttributeAccessIssue]
    rows, columns = (e.scalar(v) for v in op.extents)
    source_row, target_row = (e.scalar(v) for v in op.strides)
    source = b.gep(element, e.scalar(op.source), e.scalar(op.offsets[0]))
    target = b.gep(element, e.scalar(op.target), e.scalar(op.offsets[1]))

    def at(pointer: str, outer: str, stride: str, inner: str) -> str:
        return b.gep(element, pointer, fold(b, "add", fold(b, "mul", outer, stride), inner))

    def one_by_one(first: tuple[str, str], end: tuple[str, str]) -> None:
        """The rows and columns of a range."""

        def row(r: str, _: list[str]) -> list[str]:
            def cell(c: str, _: list[str]) -> list[str]:
                b.store(element, b.load(element, at(source, r, source_row, c)), at(target, c, target_row, r))
                return []

            b.loop(first[1], end[1], "1", cell)
            return []

        b.loop(first[0], end[0], "1", row)

    lanes = min(MOST_LANES, b.target.lanes(element.bits))
    if element.bits != 32 or lanes < 2:
        one_by_one(("0", "0"), (rows, columns))
        return
    wide = element.with_lanes(lanes)

    def blocks(count: int, columns_from: str, columns_to: str, rows_to: str) -> None:
        """Runs of columns outside, so that what is written stays in cache until its lines are full."""

        def run(first: str, _: list[str]) -> list[str]:
            end = first if count == 1 else b.intrinsic("llvm.smin", I64, [(I64, fold(b, "add", first, str(RUN))),
                                                                          (I64, columns_to)])  # fmt: skip

            def row(r: str, _: list[str]) -> list[str]:
                def column(c: str, _: list[str]) -> list[str]:
                    for part in range(count):
                        one_block(r, fold(b, "add", c, str(part * lanes)))
                    return []

                if count == 1:
                    return column(first, [])
                b.loop(first, end, str(count * lanes), column)
                return []

            b.loop("0", rows_to, str(lanes), row)
            return []

        b.loop(columns_from, columns_to, str(lanes if count == 1 else RUN), run)

    def one_block(r: str, c: str) -> None:
        given = [b.load(wide, at(source, fold(b, "add", r, str(k)), source_row, c)) for k in range(lanes)]
        for k, text in enumerate(_exchange(b, wide, given)):
            b.store(wide, text, at(target, fold(b, "add", c, str(k)), target_row, r))

    whole_rows = _whole(b, rows, lanes)
    many, whole_columns = _whole(b, columns, WIDE * lanes), _whole(b, columns, lanes)
    blocks(WIDE, "0", many, whole_rows)
    blocks(1, many, whole_columns, whole_rows)
    one_by_one((whole_rows, "0"), (rows, whole_columns))
    one_by_one(("0", whole_columns), (rows, columns))


def _whole(b: FunctionBuilder, extent: str, group: int) -> str:
    """The largest multiple of a power of two in an extent."""
    if not extent.startswith("%"):
        return str(int(extent) // group * group)
    return b.binary("and", I64, extent, str(-group))


def _exchange(b: FunctionBuilder, ty: LType, rows: Sequence[str]) -> list[str]:
    """The columns of a square block, given its rows."""
    lanes = ty.lanes
    held = list(rows)
    step = 1
    while step < lanes:
        low = ", ".join(f"i32 {k if not k & step else lanes + k - step}" for k in range(lanes))
        high = ", ".join(f"i32 {k + step if not k & step else lanes + k}" for k in range(lanes))
        for k in range(lanes):
            if k & step:
                continue
            x, y = held[k], held[k + step]
            held[k] = b.op(f"shufflevector {ty} {x}, {ty} {y}, <{lanes} x i32> <{low}>")
            held[k + step] = b.op(f"shufflevector {ty} {x}, {ty} {y}, <{lanes} x i32> <{high}>")
        step *= 2
    return held
