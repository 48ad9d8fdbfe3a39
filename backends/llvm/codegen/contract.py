"""Emits `kernel.contract`: panels of columns outside, register tiles of rows inside.

A panel of B stays in cache while A's rows pass by. Rows that fill no whole tile run in smaller tiles, columns that fill
no whole vector in a masked one (or one by one, for unpacked element types without masked loads).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block

from sardonyx.backends.llvm.codegen.contract_shape import tile_shapes
from sardonyx.backends.llvm.codegen.contract_tile import (
    Epilogue,
    Operand,
    Problem,
    RowPairs,
    Tile,
    emit_tile,
    whole_groups,
)
from sardonyx.backends.llvm.codegen.emit import KernelEmitter, emits
from sardonyx.backends.llvm.codegen.text import I64, FunctionBuilder, LType
from sardonyx.backends.llvm.codegen.widen import fold, memory_type, scalar_type, value_type
from sardonyx.dialects.kernel.contract import ContractOp
from sardonyx.dialects.kernel.ops import BufferType, LoadOp, MathOp, YieldOp

LIGHT = 8
"""Scalar operations up to which an epilogue stands in the code once per accumulator."""


@emits(ContractOp)
def _contract(e: KernelEmitter, op: ContractOp) -> None:
    m, n, k = (e.scalar(v) for v in op.extents)
    offsets = [e.scalar(v) for v in op.offsets]
    a_m, a_k, b_k, b_n, c_m = (e.scalar(v) for v in op.strides)
    segments = [e.scalar(v) for v in op.segments]
    buffers = (op.a, op.b, op.c)
    types = [ty.element if isinstance(ty := buffer.type, BufferType) else ty for buffer in buffers]
    elements = [value_type(ty) for ty in types]
    pointers = [
        e.builder.gep(memory_type(ty), e.scalar(buffer), offset)
        for buffer, ty, offset in zip(buffers, elements, offsets, strict=True)
    ]
    first = elements[0]
    epilogue = None
    if op.epilogue is not None:
        block = op.epilogue.block
        epilogue = Epilogue(e, block, scalar_type(types[2]), _weight(block) <= LIGHT)
    problem = Problem(
        a=Operand(pointers[0], elements[0], a_m, a_k),
        b=Operand(pointers[1], elements[1], b_k, b_n),
        c=Operand(pointers[2], elements[2], c_m, "1"),
        m=m,
        n=n,
        k=k,
        sum=LType("float") if first.is_float and first.bits == 16 else first,
        accumulate=op.accumulate is not None,
        packed=None if op.packed is None else op.packed.value.data,
        rows=RowPairs(*(e.scalar(v) for v in op.rows)) if op.rows else None,
        segments=tuple(zip(segments[::2], segments[1::2], strict=True)),
        epilogue=epilogue,
    )
    emit_contraction(e.builder, problem)


def _weight(block: Block) -> int:
    """How much code a body makes, roughly in vector instructions."""
    total = 0
    for op in block.ops:
        if isinstance(op, MathOp):
            total += 8
        elif op.regions:
            total += 4 + sum(_weight(inner) for region in op.regions for inner in region.blocks)
        elif isinstance(op, LoadOp):
            total += 1
        elif not isinstance(op, arith.ConstantOp | YieldOp) and not isinstance(op.results[0].type, IndexType):
            total += 1
    return total


def emit_contraction(b: FunctionBuilder, p: Problem) -> None:
    """All tiles of a problem."""
    lanes = b.target.lanes(max(p.sum.bits, 32))
    static_m = None if p.m.startswith("%") else int(p.m)
    shapes = tile_shapes(b.target, lanes, static_m)
    if not shapes:
        return
    if p.packed is not None:
        _packed_panels(b, p, shapes, lanes, p.packed)
        return
    widest = max(vectors for _, vectors in shapes)
    contiguous = p.b.column == "1"

    def panel(vectors: int, masked: bool, width: int) -> Callable[[str, list[str]], list[str]]:
        def body(column: str, _: list[str]) -> list[str]:
            masks = (_column_mask(b, p, column, lanes),) if masked else None
            row = "0"
            for at, (rows, _v) in enumerate(shapes):
                tile = Tile(rows, vectors, lanes if width else 0, masks)
                row = _rows(b, p, tile, row, column, at == len(shapes) - 1)
            return []

        return body

    at = "0"
    if contiguous:
        for vectors in dict.fromkeys([widest, 1]):
            end = whole_groups(b, at, p.n, lanes * vectors)
            if at != end:
                b.loop(at, end, str(lanes * vectors), panel(vectors, False, lanes))
            at = end
        if p.sum.bits >= 32 and p.b.element.bits >= 32 and p.c.element.bits >= 32:
            if at != p.n:
                b.loop(at, p.n, str(lanes), panel(1, True, lanes))
            return
    if at != p.n:
        b.loop(at, p.n, "1", panel(1, False, 0))


def _packed_panels(b: FunctionBuilder, p: Problem, shapes: list[tuple[int, int]], lanes: int, width: int) -> None:
    """Panels of `width` columns one after the other; only the last one's results may be masked."""
    length = p.k
    for count, _ in p.segments:
        length = fold(b, "mul", length, count)

    def panel(masked: bool, vectors: int) -> Callable[[str, list[str]], list[str]]:
        def body(column: str, _: list[str]) -> list[str]:
            at = b.gep(memory_type(p.b.element), p.b.pointer, fold(b, "mul", column, length))
            # A panel starts at its own column, so that the tile finds it without an offset.
            inside = replace(p, b=Operand(at, p.b.element, str(width), "1"))
            masks = tuple(_column_mask(b, p, fold(b, "add", column, str(v * lanes)), lanes) for v in range(vectors))
            row = "0"
            for number, (rows, _v) in enumerate(shapes):
                tile = Tile(rows, vectors, lanes, masks if masked else None, in_panel=True)
                row = _rows(b, inside, tile, row, column, number == len(shapes) - 1)
            return []

        return body

    vectors = width // lanes
    end = whole_groups(b, "0", p.n, width)
    if end != "0":
        b.loop("0", end, str(width), panel(False, vectors))
    if end != p.n:
        rest = vectors if end.startswith("%") else -(-(int(p.n) - int(end)) // lanes)
        b.loop(end, p.n, str(width), panel(True, rest))


def _column_mask(b: FunctionBuilder, p: Problem, column: str, lanes: int) -> str:
    """Which lanes of the vector at `column` are columns at all."""
    wide = I64.with_lanes(lanes)
    left = b.splat(wide, b.binary("sub", I64, p.n, column))
    steps = f"<{', '.join(f'i64 {k}' for k in range(lanes))}>"
    return b.icmp("slt", wide, steps, left)


def _rows(b: FunctionBuilder, p: Problem, tile: Tile, row: str, column: str, last: bool) -> str:
    """Run a tile over as many rows as it fits; returns the first row that is left."""
    end = p.m if last else whole_groups(b, row, p.m, tile.rows)
    if row == end:
        return end

    def body(first: str, _: list[str]) -> list[str]:
        emit_tile(b, p, tile, first, column)
        return []

    b.loop(row, end, str(tile.rows), body)
    return end
