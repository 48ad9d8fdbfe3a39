"""One register tile of a contraction: MR rows by NV vectors of columns.

The accumulators are the k loop's phis, so LLVM keeps them in registers; each step splats one element of A per row and
multiplies NV vectors of B. 16-bit floats compute in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sardonyx.backends.llvm.codegen.contract_dot import add_bounded_quads, add_pairs, add_quads
from sardonyx.backends.llvm.codegen.contract_problem import (
    Ahead,
    Epilogue,
    Problem,
    Tile,
)
from sardonyx.backends.llvm.codegen.contract_shape import whole_groups
from sardonyx.backends.llvm.codegen.emit_scalar import extend_float, truncate_float
from sardonyx.backends.llvm.codegen.memory import load_lanes, store_lanes
from sardonyx.backends.llvm.codegen.text import I64, FunctionBuilder, LType
from sardonyx.backends.llvm.codegen.widen import Value, fold, from_memory, memory_type, to_memory

UNROLL = 4
"""Steps of k per turn of a large tile's loop: its bookkeeping counts where two threads share a core's front end."""
CACHE_LINE = 64
SHORT_RUN = 64
"""The steps of k up to which those that fill no turn count."""
LARGE_TILE = 8
"""The accumulators from which on a tile is large."""


def emit_tile(b: FunctionBuilder, p: Problem, tile: Tile, row: str, column: str) -> None:
    """The tile whose first element is C[row, column]."""
    a_rows, c_rows, outer = _row_pointers(b, p, tile.rows, row, column)
    b_start = p.b.pointer if tile.in_panel else b.gep(p.b.element, p.b.pointer, fold(b, "mul", column, p.b.column))
    wide = p.sum.with_lanes(tile.lanes)

    def held() -> list[str]:
        masked = tile.masked(b)
        return [
            _read(b, p.c.element, wide, _at(b, p.c.element, pointer, v, tile), masked.mask(v))
            for pointer in c_rows
            for v in range(tile.vectors)
        ]

    zeros = [b.const(wide, 0)] * (tile.rows * tile.vectors)
    first = None if p.accumulate else p.first
    if first is not None:
        _fetch_rows(b, p, tile, c_rows)
    sums = _sum(b, p, tile, a_rows, b_start, held() if p.accumulate else zeros, row, outer)
    if first is not None:  # what C holds has come meanwhile

        def added() -> list[str]:
            return [_add(b, wide, x, y) for x, y in zip(sums, held(), strict=True)]

        sums = b.when(first, lambda: sums, added, [wide] * len(zeros))
    tile = tile.masked(b)

    def plain() -> list[str]:
        for r, pointer in enumerate(c_rows):
            for v in range(tile.vectors):
                at = _at(b, p.c.element, pointer, v, tile)
                _write(b, p.c.element, wide, sums[r * tile.vectors + v], at, tile.mask(v))
        return []

    def finish() -> list[str]:
        if p.epilogue is None:
            return plain()
        if not p.epilogue.is_light and tile.rows > 1:
            _finish_by_rows(b, p, p.epilogue, tile, row, column, sums)
            return []
        for r, pointer in enumerate(c_rows):
            of_row = sums[r * tile.vectors : (r + 1) * tile.vectors]
            _finish_row(b, p, p.epilogue, tile, fold(b, "add", row, str(r)), column, pointer, of_row)
        return []

    if p.last is None or p.epilogue is None:
        finish()
    else:
        b.when(p.last, finish, plain)


def _row_pointers(
    b: FunctionBuilder, p: Problem, rows: int, row: str, column: str
) -> tuple[list[str], list[str], tuple[str, str]]:
    """The start of each of the tile's rows in A, and in C at the column; the first and the last row's outer number."""
    a_rows: list[str] = []
    c_rows: list[str] = []
    offsets, outer = _row_offsets(b, p, rows, row)
    for a_offset, c_offset in offsets:
        pointer = b.gep(p.a.element, p.a.pointer, a_offset)
        # What LLVM makes of so many related pointers takes it most of its time: here it is not to see the relation.
        # AArch64 has no addresses of two registers and a number, and needs it.
        a_rows.append(b.op(f"freeze ptr {pointer}") if b.target.triple.startswith("x86_64") else pointer)
        c_rows.append(b.gep(p.c.element, p.c.pointer, fold(b, "add", c_offset, column)))
    return a_rows, c_rows, outer


def _row_offsets(b: FunctionBuilder, p: Problem, rows: int, row: str) -> tuple[list[tuple[str, str]], tuple[str, str]]:
    if p.rows is None:
        places = [fold(b, "add", row, str(r)) for r in range(rows)]
        return [(fold(b, "mul", at, p.a.row), fold(b, "mul", at, p.c.row)) for at in places], ("0", "0")
    pairs = p.rows
    at = fold(b, "add", pairs.first, row)
    first = outer = b.binary("udiv", I64, at, pairs.inner)
    inner = fold(b, "sub", at, fold(b, "mul", outer, pairs.inner))

    def offset(outer_stride: str, inner_stride: str) -> str:
        return fold(b, "add", fold(b, "mul", outer, outer_stride), fold(b, "mul", inner, inner_stride))

    c_outer = pairs.c_outer
    a_at = offset(pairs.a_outer, p.a.row)
    c_at = fold(b, "mul", row, p.c.row) if c_outer is None else offset(c_outer, p.c.row)
    out = [(a_at, c_at)]
    for _ in range(rows - 1):  # a division for the first row only; each further one is the next, or starts an outer one
        following = b.binary("add", I64, inner, "1")
        wraps = b.icmp("eq", I64, following, pairs.inner)
        next_outer = b.binary("add", I64, outer, "1")
        a_at = b.select(I64, wraps, fold(b, "mul", next_outer, pairs.a_outer), fold(b, "add", a_at, p.a.row))
        c_at = fold(b, "add", c_at, p.c.row)
        if c_outer is not None:
            c_at = b.select(I64, wraps, fold(b, "mul", next_outer, c_outer), c_at)
        outer = b.select(I64, wraps, next_outer, outer)
        inner = b.select(I64, wraps, "0", following)
        out.append((a_at, c_at))
    return out, (first, outer)


def _sum(
    b: FunctionBuilder,
    p: Problem,
    tile: Tile,
    a_rows: Sequence[str],
    b_start: str,
    starts: Sequence[str],
    row: str,
    outer: tuple[str, str],
) -> list[str]:
    """The k loop, inside the loops over segments; the accumulators are carried through all of them."""
    wide = p.sum.with_lanes(tile.lanes)
    ahead = None if p.ahead is None else _ahead_of_tile(b, p, p.ahead, tile, row)
    bounds = [("0", count) for count, _ in p.segments]
    if p.clip is not None:
        bounds[p.clip.level] = p.clip.bounds(b, outer, p.segments[p.clip.level][0])

    def segment(depth: int, a_offset: str, number: str, sums: Sequence[str]) -> list[str]:
        """`number` is that of the segment at this depth."""
        if depth == len(p.segments):
            before = fold(b, "mul", number, p.k)
            start = b.gep(p.b.element, b_start, fold(b, "mul", before, p.b.row))
            fetched = ahead
            if ahead is not None and before != "0":
                fetched = replace(ahead, pointer=b.beyond(ahead.pointer, fold(b, "mul", before, str(ahead.step))))
            return _multiply(b, p, tile, a_rows, a_offset, start, sums, fetched)
        count, stride = p.segments[depth]

        def turn(index: str, carried: list[str]) -> list[str]:
            at = fold(b, "add", a_offset, fold(b, "mul", index, stride))
            return segment(depth + 1, at, fold(b, "add", fold(b, "mul", number, count), index), carried)

        return b.loop(*bounds[depth], "1", turn, [(wide, s) for s in sums])

    if not p.segments:
        return _multiply(b, p, tile, a_rows, "0", b_start, starts, ahead)
    return segment(0, "0", "0", starts)


def _ahead_of_tile(b: FunctionBuilder, p: Problem, ahead: Ahead, tile: Tile, row: str) -> Ahead:
    """What this tile fetches: it goes on where the one above it ended."""
    number = b.binary("udiv", I64, row, str(tile.rows)) if row != "0" else "0"
    if ahead.apart is None:
        length = fold(b, "mul", steps_of(b, p), str(ahead.step))
        return replace(ahead, pointer=b.beyond(ahead.pointer, fold(b, "mul", number, length)))
    first = fold(b, "mul", number, _turns(b, p.k))
    inside = b.icmp("slt", I64, first, p.k)  # else all rows have been fetched
    distance = fold(b, "mul", first, ahead.apart)
    return Ahead(
        b.beyond(ahead.pointer, b.select(I64, inside, distance, "0")),
        apart=b.select(I64, inside, ahead.apart, "0"),
    )


def steps_of(b: FunctionBuilder, p: Problem) -> str:
    """The steps of k in all segments."""
    length = p.k
    for count, _ in p.segments:
        length = fold(b, "mul", length, count)
    return length


def _turns(b: FunctionBuilder, k: str) -> str:
    """The turns of the k loop."""
    steps = _unroll(k)
    return b.binary("lshr", I64, k, str(steps.bit_length() - 1)) if k.startswith("%") else str(int(k) // steps)


def _unroll(k: str) -> int:
    """The steps of a turn: for short runs a number that divides theirs, so that none is left over."""
    if k.startswith("%") or int(k) > SHORT_RUN:
        return UNROLL
    return next((steps for steps in (UNROLL, 7, 6, 5, 3) if int(k) % steps == 0), UNROLL)


def _multiply(
    b: FunctionBuilder,
    p: Problem,
    tile: Tile,
    a_rows: Sequence[str],
    a_offset: str,
    b_start: str,
    sums: Sequence[str],
    fetched: Ahead | None,
) -> list[str]:
    """The loop over one run of k, and what it fetches ahead."""
    wide = p.sum.with_lanes(tile.lanes)
    add = {1: _multiply_add, 2: add_pairs, 4: add_bounded_quads if p.bounded else add_quads}[p.together]
    each = p.b.vectors or tile.vectors
    panels = [b_start]
    for panel in range(1, -(-tile.vectors // each)):
        panels.append(b.gep(memory_type(p.b.element), b_start, fold(b, "mul", p.b.apart, str(panel))))

    def turn(k: str, sums: list[str], steps: int) -> list[str]:
        b_rows = [b.gep(p.b.element, start, fold(b, "mul", k, p.b.row)) for start in panels]
        k_offset = fold(b, "add", a_offset, fold(b, "mul", k, p.a.column))
        for u in range(steps):
            if u:
                b_rows = [b.gep(p.b.element, b_row, p.b.row) for b_row in b_rows]
                k_offset = fold(b, "add", k_offset, p.a.column)
            columns = [
                _read(b, p.b.element, wide, _at(b, p.b.element, b_rows[v // each], v % each, tile), tile.b_mask(v))
                for v in range(tile.vectors)
            ]
            out: list[str] = []
            for r in range(tile.rows):
                element = _read(b, p.a.element, p.sum, b.gep(p.a.element, a_rows[r], k_offset), None)
                spread = b.splat(wide, element)
                for v in range(tile.vectors):
                    out.append(add(b, wide, spread, columns[v], sums[r * tile.vectors + v]))
            sums = out
        return sums

    state, start = list(sums), "0"
    # Where products are not fused, LLVM would hold those of several steps, and spill sums.
    if (
        p.is_fused(b.target)
        and tile.lanes
        and tile.rows * tile.vectors >= LARGE_TILE
        and (p.k.startswith("%") or int(p.k) >= _unroll(p.k))
    ):
        unroll = _unroll(p.k)
        start = whole_groups(b, "0", p.k, unroll)

        def turns(k: str, sums: list[str]) -> list[str]:
            if fetched is not None and fetched.apart is not None:
                at = fold(b, "mul", b.binary("udiv", I64, k, str(unroll)), fetched.apart)
                b.prefetch(b.beyond(fetched.pointer, at), 2)
            elif fetched is not None:
                at = b.beyond(fetched.pointer, fold(b, "mul", k, str(fetched.step)))
                for line in range(0, unroll * fetched.step, CACHE_LINE):
                    b.prefetch(b.beyond(at, str(line)) if line else at, 2)
            return turn(k, sums, unroll)

        if start == str(unroll):
            state = turns("0", state)
        else:
            state = b.loop("0", start, str(unroll), turns, [(wide, s) for s in state])
    if start == p.k:
        return state
    return b.loop(start, p.k, "1", lambda k, s: turn(k, s, 1), [(wide, s) for s in state])


def _finish_row(
    b: FunctionBuilder,
    p: Problem,
    epilogue: Epilogue,
    tile: Tile,
    row: str,
    column: str,
    pointer: str,
    sums: Sequence[str],
) -> None:
    """Put a row of sums through the epilogue, and store it."""
    wide = p.sum.with_lanes(tile.lanes)
    stored = memory_type(p.c.element.with_lanes(tile.lanes))
    for v in range(tile.vectors):
        at = fold(b, "add", column, str(v * tile.step))
        value = epilogue.apply(Value(sums[v], wide), row, at, tile.mask(v))
        store_lanes(b, stored, value, _at(b, p.c.element, pointer, v, tile), tile.mask(v))


def _finish_by_rows(
    b: FunctionBuilder, p: Problem, epilogue: Epilogue, tile: Tile, row: str, column: str, sums: Sequence[str]
) -> None:
    """A body that is too long to stand in the code once per accumulator: the sums go to the stack, and a loop over the
    rows takes them from there."""
    wide = p.sum.with_lanes(tile.lanes)
    count = tile.rows * tile.vectors
    held = b.reserve(wide, count)
    for number, text in enumerate(sums):
        b.store(wide, text, b.gep(wide, held, str(number)))

    def body(r: str, _: list[str]) -> list[str]:
        at = fold(b, "add", row, r)
        c_offset = _row_offsets(b, p, 1, at)[0][0][1]
        pointer = b.gep(p.c.element, p.c.pointer, fold(b, "add", c_offset, column))
        first = b.gep(wide, held, fold(b, "mul", r, str(tile.vectors)))
        loaded = [b.load(wide, b.gep(wide, first, str(v)) if v else first) for v in range(tile.vectors)]
        _finish_row(b, p, epilogue, tile, at, column, pointer, loaded)
        return []

    b.loop("0", str(tile.rows), "1", body)


def _fetch_rows(b: FunctionBuilder, p: Problem, tile: Tile, rows: Sequence[str]) -> None:
    """Have the lines of C that a tile adds to fetched."""
    size = max(p.c.element.bits // 8, 1)
    for pointer in rows:
        for at in range(0, tile.vectors * tile.step * size, CACHE_LINE):
            b.prefetch(b.beyond(pointer, str(at)) if at else pointer, 3)


def _add(b: FunctionBuilder, ty: LType, x: str, y: str) -> str:
    return b.binary("fadd" if ty.is_float else "or" if ty.scalar == "i1" else "add", ty, x, y)


def _multiply_add(b: FunctionBuilder, ty: LType, x: str, y: str, total: str) -> str:
    if ty.is_float:
        return b.fma(ty, x, y, total)
    if ty.scalar == "i1":
        return b.binary("or", ty, total, b.binary("and", ty, x, y))
    return b.binary("add", ty, total, b.binary("mul", ty, x, y))


def finish_stored_row(b: FunctionBuilder, p: Problem, tile: Tile, row: str, column: str) -> None:
    """Put the sums of a row, which C holds, through the epilogue; `tile` says which vectors from `column` on."""
    if p.epilogue is None:
        return
    wide = p.sum.with_lanes(tile.lanes)
    pointer = b.gep(p.c.element, p.c.pointer, fold(b, "add", _row_offsets(b, p, 1, row)[0][0][1], column))
    sums = [
        _read(b, p.c.element, wide, _at(b, p.c.element, pointer, v, tile), tile.mask(v)) for v in range(tile.vectors)
    ]
    _finish_row(b, p, p.epilogue, tile, row, column, pointer, sums)


def _at(b: FunctionBuilder, element: LType, pointer: str, vector: int, tile: Tile) -> str:
    return pointer if vector == 0 else b.gep(memory_type(element), pointer, str(vector * tile.step))


def _read(b: FunctionBuilder, element: LType, wide: LType, pointer: str, mask: str | None) -> str:
    ty = element.with_lanes(wide.lanes)
    loaded = from_memory(b, ty, load_lanes(b, memory_type(ty), pointer, mask))
    wanted = wide.with_lanes(ty.lanes)
    return loaded if ty == wanted else extend_float(b, ty, wanted, loaded)


def _write(b: FunctionBuilder, element: LType, wide: LType, value: str, pointer: str, mask: str | None) -> None:
    ty = element.with_lanes(wide.lanes)
    if ty != wide:
        value = truncate_float(b, wide, ty, value)
    store_lanes(b, memory_type(ty), to_memory(b, ty, value), pointer, mask)
