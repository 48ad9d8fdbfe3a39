"""Emits `kernel.contract`: register tiles of MR rows by NV vectors over unpacked operands.

The tile's accumulators are the k loop's phis, so LLVM keeps them in registers; each step splats one element of A per
row and multiplies NV vectors of B. Rows that fill no whole tile run in smaller tiles, columns that fill no whole vector
in a masked one (or one by one, for element types without masked loads). 16-bit floats compute in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sardonyx.backends.llvm.codegen.emit import KernelEmitter, emits
from sardonyx.backends.llvm.codegen.emit_scalar import extend_float, truncate_float
from sardonyx.backends.llvm.codegen.text import I64, PTR, FunctionBuilder, LType, Target
from sardonyx.backends.llvm.codegen.widen import fold, from_memory, memory_type, to_memory, value_type
from sardonyx.dialects.kernel.ops import BufferType, ContractOp


@dataclass(frozen=True)
class Operand:
    """A matrix in memory: element (i, j) lies at `offset + i * row + j * column`."""

    pointer: str
    element: LType
    row: str
    column: str


@dataclass(frozen=True)
class Problem:
    """One contraction: operands, extents, and the type that sums are kept in."""

    a: Operand
    b: Operand
    c: Operand
    m: str
    n: str
    k: str
    sum: LType
    accumulate: bool
    packed: int | None = None


def tile_shapes(target: Target, lanes: int, m: int | None) -> list[tuple[int, int]]:
    """(rows, vectors) of the tiles to use in turn: MR * NV accumulators, NV vectors of B and one of A fit in
    registers."""
    wide = 3 if target.registers >= 32 else 2
    tall = 8 if target.registers >= 32 else 6
    if m is not None and m <= 4:
        vectors = {1: 4, 2: 4, 3: 3, 4: 3}.get(m, wide) * (2 if target.registers >= 32 else 1)
        return [(m, vectors)] if m else []
    if m is not None:
        rest = m % tall
        return [(tall, wide)] + ([(rest, wide)] if rest else [])
    return [(tall, wide), (3, wide), (1, wide)]


@emits(ContractOp)
def _contract(e: KernelEmitter, op: ContractOp) -> None:
    m, n, k = (e.scalar(v) for v in op.extents)
    offsets = [e.scalar(v) for v in op.offsets]
    a_m, a_k, b_k, b_n, c_m = (e.scalar(v) for v in op.strides)
    elements = []
    for buffer in (op.a, op.b, op.c):
        ty = buffer.type
        elements.append(value_type(ty.element if isinstance(ty, BufferType) else ty))
    pointers = [
        e.builder.gep(ty, e.scalar(buffer), offset)
        for buffer, ty, offset in zip((op.a, op.b, op.c), elements, offsets, strict=True)
    ]
    first = elements[0]
    total = LType("float") if first.is_float and first.bits == 16 else first
    problem = Problem(
        Operand(pointers[0], elements[0], a_m, a_k),
        Operand(pointers[1], elements[1], b_k, b_n),
        Operand(pointers[2], elements[2], c_m, "1"),
        m, n, k, total, op.accumulate is not None, None if op.packed is None else op.packed.value.data,
    )  # fmt: skip
    emit_contraction(e.builder, problem)


def panel_width(target: Target, bits: int) -> int:
    """The columns of a packed panel: what a tall tile takes at a time. `bits` is the width of a sum."""
    return target.lanes(max(bits, 32)) * (3 if target.registers >= 32 else 2)


def emit_contraction(b: FunctionBuilder, p: Problem) -> None:
    """Panels of columns outside, tiles of rows inside: a panel of B stays in cache while A passes by."""
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
            end = _whole(b, at, p.n, lanes * vectors)
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
    vectors = width // lanes

    def panel(masked: bool) -> Callable[[str, list[str]], list[str]]:
        def body(column: str, _: list[str]) -> list[str]:
            at = b.gep(p.b.element, p.b.pointer, fold(b, "mul", column, p.k))
            # A panel starts at its own column, so that `_tile` finds it without an offset.
            inside = replace(p, b=Operand(at, p.b.element, str(width), "1"))
            masks = tuple(_column_mask(b, p, fold(b, "add", column, str(v * lanes)), lanes) for v in range(vectors))
            row = "0"
            for number, (rows, _v) in enumerate(shapes):
                tile = Tile(rows, vectors, lanes, masks if masked else None, in_panel=True)
                row = _rows(b, inside, tile, row, column, number == len(shapes) - 1)
            return []

        return body

    end = _whole(b, "0", p.n, width)
    if end != "0":
        b.loop("0", end, str(width), panel(False))
    if end != p.n:
        b.loop(end, p.n, str(width), panel(True))


@dataclass(frozen=True)
class Tile:
    """`rows` by `vectors` vectors of `lanes` columns; one scalar column where lanes is 0.

    `masks` say per vector which lanes are columns. `in_panel`: B is a packed panel, padded, that needs no mask.
    """

    rows: int
    vectors: int
    lanes: int
    masks: tuple[str, ...] | None
    in_panel: bool = False

    def mask(self, vector: int) -> str | None:
        """The mask of a vector of C."""
        return None if self.masks is None else self.masks[vector]

    def b_mask(self, vector: int) -> str | None:
        """The mask of a vector of B."""
        return None if self.in_panel else self.mask(vector)


def _whole(b: FunctionBuilder, lower: str, upper: str, group: int) -> str:
    if not lower.startswith("%") and not upper.startswith("%"):
        return str(int(lower) + max(0, int(upper) - int(lower)) // group * group)
    extent = fold(b, "sub", upper, lower)
    if group & (group - 1) == 0:
        return fold(b, "add", lower, b.binary("and", I64, extent, str(-group)))
    groups = b.binary("udiv", I64, extent, str(group))
    return fold(b, "add", lower, b.binary("mul", I64, groups, str(group)))


def _column_mask(b: FunctionBuilder, p: Problem, column: str, lanes: int) -> str:
    """Which lanes of the vector at `column` are columns at all."""
    wide = I64.with_lanes(lanes)
    left = b.splat(wide, b.binary("sub", I64, p.n, column))
    steps = f"<{', '.join(f'i64 {k}' for k in range(lanes))}>"
    return b.icmp("slt", wide, steps, left)


def _rows(b: FunctionBuilder, p: Problem, tile: Tile, row: str, column: str, last: bool) -> str:
    """Run a tile over as many rows as it fits; returns the first row that is left."""
    end = p.m if last else _whole(b, row, p.m, tile.rows)
    if row == end:
        return end

    def body(first: str, _: list[str]) -> list[str]:
        _tile(b, p, tile, first, column)
        return []

    b.loop(row, end, str(tile.rows), body)
    return end


def _tile(b: FunctionBuilder, p: Problem, tile: Tile, row: str, column: str) -> None:
    wide = p.sum.with_lanes(tile.lanes)
    a_rows: list[str] = []
    c_rows: list[str] = []
    for r in range(tile.rows):
        at = fold(b, "add", row, str(r))
        a_rows.append(b.gep(p.a.element, p.a.pointer, fold(b, "mul", at, p.a.row)))
        c_rows.append(b.gep(p.c.element, p.c.pointer, fold(b, "add", fold(b, "mul", at, p.c.row), column)))
    b_start = p.b.pointer if tile.in_panel else b.gep(p.b.element, p.b.pointer, fold(b, "mul", column, p.b.column))
    starts: list[str] = []
    for r in range(tile.rows):
        for v in range(tile.vectors):
            if p.accumulate:
                starts.append(_read(b, p.c.element, wide, _at(b, p.c.element, c_rows[r], v, tile), tile.mask(v)))
            else:
                starts.append(b.const(wide, 0))

    def step(k: str, sums: list[str]) -> list[str]:
        b_row = b.gep(p.b.element, b_start, fold(b, "mul", k, p.b.row))
        columns = [
            _read(b, p.b.element, wide, _at(b, p.b.element, b_row, v, tile), tile.b_mask(v))
            for v in range(tile.vectors)
        ]
        k_offset = fold(b, "mul", k, p.a.column)
        out: list[str] = []
        for r in range(tile.rows):
            element = _read(b, p.a.element, p.sum, b.gep(p.a.element, a_rows[r], k_offset), None)
            spread = b.splat(wide, element)
            for v in range(tile.vectors):
                out.append(_multiply_add(b, wide, spread, columns[v], sums[r * tile.vectors + v]))
        return out

    sums = b.loop("0", p.k, "1", step, [(wide, s) for s in starts])
    for r in range(tile.rows):
        for v in range(tile.vectors):
            _write(
                b, p.c.element, wide, sums[r * tile.vectors + v], _at(b, p.c.element, c_rows[r], v, tile), tile.mask(v)
            )


def _multiply_add(b: FunctionBuilder, ty: LType, x: str, y: str, total: str) -> str:
    if ty.is_float:
        return b.fma(ty, x, y, total)
    if ty.scalar == "i1":
        return b.binary("or", ty, total, b.binary("and", ty, x, y))
    return b.binary("add", ty, total, b.binary("mul", ty, x, y))


def _at(b: FunctionBuilder, element: LType, pointer: str, vector: int, tile: Tile) -> str:
    return pointer if vector == 0 else b.gep(element, pointer, str(vector * tile.lanes))


def _read(b: FunctionBuilder, element: LType, wide: LType, pointer: str, mask: str | None) -> str:
    ty = element.with_lanes(wide.lanes)
    if mask is None:
        return _widened(b, ty, wide, from_memory(b, ty, b.load(memory_type(ty), pointer)))
    name = f"llvm.masked.load.{ty.mangled}.p0"
    b.module.declare(name, ty, [PTR, ty.mask, ty])
    loaded = b.op(f"call {ty} @{name}(ptr align {element.bytes} {pointer}, {ty.mask} {mask}, {ty} zeroinitializer)")
    return _widened(b, ty, wide, loaded)


def _write(b: FunctionBuilder, element: LType, wide: LType, value: str, pointer: str, mask: str | None) -> None:
    ty = element.with_lanes(wide.lanes)
    if ty != wide:
        value = truncate_float(b, wide, ty, value)
    if mask is None:
        b.store(memory_type(ty), to_memory(b, ty, value), pointer)
        return
    name = f"llvm.masked.store.{ty.mangled}.p0"
    b.module.declare(name, "void", [ty, PTR, ty.mask])
    b.emit(f"call void @{name}({ty} {value}, ptr align {element.bytes} {pointer}, {ty.mask} {mask})")


def _widened(b: FunctionBuilder, ty: LType, target: LType, value: str) -> str:
    wanted = target.with_lanes(ty.lanes)
    return value if ty == wanted else extend_float(b, ty, wanted, value)
