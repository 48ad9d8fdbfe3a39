"""Emits `kernel.contract`: panels of columns outside, register tiles of rows inside.

A panel of B stays in cache while A's rows pass by. Rows that fill no whole tile run in smaller tiles, columns that fill
no whole vector in a masked one (or one by one, for unpacked element types without masked loads).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block

from sardonyx.backends.llvm.codegen.contract_problem import (
    Ahead,
    Clip,
    Epilogue,
    Operand,
    Problem,
    RowPairs,
    Tile,
    Turned,
    lane_mask,
)
from sardonyx.backends.llvm.codegen.contract_shape import (
    FEW_ROWS,
    K_BLOCK,
    RowRun,
    fetch_step,
    panels_abreast,
    share_rows,
    tile_rows,
    tile_vectors,
    whole_groups,
)
from sardonyx.backends.llvm.codegen.contract_tile import UNROLL, emit_tile, finish_stored_row, steps_of
from sardonyx.backends.llvm.codegen.emit import KernelEmitter, emits
from sardonyx.backends.llvm.codegen.text import I32, I64, FunctionBuilder, LType
from sardonyx.backends.llvm.codegen.turn import turn_matrix
from sardonyx.backends.llvm.codegen.widen import fold, memory_type, scalar_type, value_type
from sardonyx.dialects.kernel.contract import ContractOp
from sardonyx.dialects.kernel.ops import BufferType, LoadOp, MathOp, YieldOp

COPIED = ((48, 256), (24, 1024))
"""From so many rows of A on, with so many bytes between the rows of B, B's panels are copied to the stack (32 KiB)."""
GATHERED_STEP = 528
"""From row to row of a copied A: a block of k, and a line more, so that rows fall on different lines of the caches."""
FEW_K_BLOCK = 1024
"""Steps of k at a time of few rows: panels that are read abreast, for AVX2 256 KiB, stay in the second-level cache."""
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
    together = 2 if op.pairs is not None else 4 if op.quads is not None else 1
    elements = [value_type(ty) for ty in types]
    if together > 1:  # a pair or quad is read as a whole
        elements[:2] = I32, I32
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
        clip=Clip(op.clipped.value.data, *(e.scalar(v) for v in op.clip)) if op.clipped is not None else None,
        segments=tuple(zip(segments[::2], segments[1::2], strict=True)),
        epilogue=epilogue,
        together=together,
        bounded=op.bounded is not None,
        gathered=0 if op.gathered is None else op.gathered.value.data,
        turned=None if op.turned is None else Turned(op.turned.value.data),
    )
    emit_contraction(e.builder, problem, 0 if op.least_rows is None else op.least_rows.value.data)


def _weight(block: Block) -> int:
    """How much code a body makes, roughly in vector instructions."""
    total = 0
    for op in block.ops:
        if isinstance(op, MathOp):
            total += 16
        elif op.regions:
            total += 4 + sum(_weight(inner) for region in op.regions for inner in region.blocks)
        elif isinstance(op, LoadOp):
            total += 1
        elif not isinstance(op, arith.ConstantOp | YieldOp) and not isinstance(op.results[0].type, IndexType):
            total += 1
    return total


def emit_contraction(b: FunctionBuilder, p: Problem, least: int = 0) -> None:
    """All tiles of a problem that is known to have `least` rows."""
    if p.packed is not None and least <= 1 and p.m.startswith("%") and p.rows is None and p.turned is None:
        # Few rows, as where a model generates, wait for B: what the first one reads comes in another order. There are
        # tiles of four.
        few = replace(p, few=True, gathered=0)
        is_few = b.icmp("slt", I64, p.m, str(FEW_ROWS))
        b.when(is_few, lambda: _emit_blocks(b, few, 0), lambda: _emit_blocks(b, p, least))
    else:
        _emit_blocks(b, p, least)


def _emit_blocks(b: FunctionBuilder, p: Problem, least: int) -> list[str]:
    """The blocks of k one after the other; gives no values."""
    rows = _number(p.m)
    once = p.packed is not None and rows is not None and rows <= FEW_ROWS  # one tile reads a panel: nothing to keep
    length = FEW_K_BLOCK if p.few else K_BLOCK
    small = not p.k.startswith("%") and int(p.k) <= length
    if p.segments or once or small or p.turned is not None or p.c.element != p.sum:
        _emit_block(b, p, steps_of(b, p), "0", least)
        return []
    # Blocks of k of about one size, a multiple of what the k loop takes at a time; k of 0 is one empty block.
    some = p.k if not p.k.startswith("%") else b.intrinsic("llvm.smax", I64, [(I64, p.k), (I64, "1")])
    blocks = _ceil_div(b, some, str(length))
    size = _round_up(b, _ceil_div(b, some, blocks), UNROLL)
    final = fold(b, "sub", blocks, "1")
    held = b.reserve(p.a.element, p.gathered * GATHERED_STEP) if p.gathered else None

    def block(number: str, _: list[str]) -> list[str]:
        start = fold(b, "mul", number, size)
        left = fold(b, "sub", p.k, start)
        whole = not size.startswith("%") and int(size) * int(blocks) == int(p.k)
        inside = replace(
            p,
            a=replace(p.a, pointer=b.gep(memory_type(p.a.element), p.a.pointer, fold(b, "mul", start, p.a.column))),
            k=size if whole else b.intrinsic("llvm.smin", I64, [(I64, size), (I64, left)]),
            first=b.icmp("eq", I64, number, "0"),
            last=b.icmp("eq", I64, number, final),
        )
        if held is not None:
            inside = _gathered(b, inside, held)
        _emit_block(b, inside, p.k, start, least)
        return []

    b.loop("0", blocks, "1", block)
    return []


def _gathered(b: FunctionBuilder, p: Problem, held: str) -> Problem:
    """The same block of k with A's rows copied to `held`."""
    wide = p.a.element.with_lanes(b.target.lanes(p.a.element.bits))

    def row(m: str, _: list[str]) -> list[str]:
        source = b.gep(p.a.element, p.a.pointer, fold(b, "mul", m, p.a.row))
        place = b.gep(p.a.element, held, fold(b, "mul", m, str(GATHERED_STEP)))

        def run(ty: LType) -> Callable[[str, list[str]], list[str]]:
            def step(k: str, _: list[str]) -> list[str]:
                b.store(ty, b.load(ty, b.gep(p.a.element, source, k)), b.gep(p.a.element, place, k))
                return []

            return step

        whole = whole_groups(b, "0", p.k, wide.lanes)
        b.loop("0", whole, str(wide.lanes), run(wide))
        if whole != p.k:
            b.loop(whole, p.k, "1", run(p.a.element))
        return []

    b.loop("0", p.m, "1", row)
    return replace(p, a=Operand(held, p.a.element, str(GATHERED_STEP), "1"))


def _ceil_div(b: FunctionBuilder, x: str, y: str) -> str:
    if not x.startswith("%") and not y.startswith("%"):
        return str(-(-int(x) // int(y)))
    return b.binary("udiv", I64, fold(b, "add", x, fold(b, "sub", y, "1")), y)


def _round_up(b: FunctionBuilder, x: str, group: int) -> str:
    if not x.startswith("%"):
        return str(-(-int(x) // group) * group)
    return b.binary("and", I64, fold(b, "add", x, str(group - 1)), str(-group))


def _emit_block(b: FunctionBuilder, p: Problem, k: str, start: str, least: int) -> None:
    """The tiles of one block of k: `p.k` steps from `start` on, of `k` in all."""
    lanes = b.target.lanes(max(p.sum.bits, 32))
    if p.packed is not None:
        vectors = p.packed // lanes
        vectors *= _abreast(b, p, lanes, vectors)
        p = _with_room(b, p, lanes * vectors)
        tall = 1 if p.few else tile_rows(b.target, vectors, p.spare(b.target))
        runs = share_rows(b, p.m, tall, least)
        if runs:
            _packed_panels(b, p, runs, lanes, k, start)
        return
    vectors = tile_vectors(b.target, lanes, _number(p.m), _number(p.n))
    p = _with_room(b, p, lanes * vectors)
    runs = share_rows(b, p.m, tile_rows(b.target, vectors, p.spare(b.target)), least)
    if runs:
        p = replace(
            p, b=replace(p.b, pointer=b.gep(memory_type(p.b.element), p.b.pointer, fold(b, "mul", start, p.b.row)))
        )
        _loose_columns(b, p, runs, lanes, vectors)


def _abreast(b: FunctionBuilder, p: Problem, lanes: int, vectors: int) -> int:
    """How many panels of so many vectors a tile reads abreast."""
    return panels_abreast(b.target, lanes, 1 if p.few else _number(p.m), vectors)


def _with_room(b: FunctionBuilder, p: Problem, width: int) -> Problem:
    """With memory for a panel of the result, if that is turned."""
    if p.turned is None:
        return p
    held = b.reserve(memory_type(p.c.element), p.turned.rows * width)
    return replace(p, turned=replace(p.turned, held=held, width=width))


def _number(text: str) -> int | None:
    return None if text.startswith("%") else int(text)


def _loose_columns(b: FunctionBuilder, p: Problem, runs: Sequence[RowRun], lanes: int, widest: int) -> None:
    """Tiles over B as it is: as wide as can be, then by single vectors, then a masked one."""

    def panel(vectors: int, masked: bool, width: int) -> Callable[[str, list[str]], list[str]]:
        def body(column: str, _: list[str]) -> list[str]:
            masks = (lane_mask(b, fold(b, "sub", p.n, column), lanes),) if masked else None
            _tiles(b, p, runs, Tile(0, vectors, width, masks), column)
            return []

        return body

    at = "0"
    if p.b.column == "1":
        for vectors in dict.fromkeys([widest, 1]):
            end = whole_groups(b, at, p.n, lanes * vectors)
            if at != end:
                copied = vectors == widest and _pays_to_copy(p)
                body = _copied_panel(b, p, runs, lanes, vectors) if copied else panel(vectors, False, lanes)
                b.loop(at, end, str(lanes * vectors), body)
            at = end
        if p.sum.bits >= 32 and p.b.element.bits >= 32 and p.c.element.bits >= 32:
            if at != p.n:
                b.loop(at, p.n, str(lanes), panel(1, True, lanes))
            return
    if at != p.n:
        b.loop(at, p.n, "1", panel(1, False, 0))


def _pays_to_copy(p: Problem) -> bool:
    """Whether each panel of B, as it is, is to be put in order first: where many tiles read it, and its rows, which lie
    apart, would take a line or two each of the first-level cache."""
    rows, apart = _number(p.m), _number(p.b.row)
    known = None if apart is None else apart * p.b.element.bytes
    many = rows is not None and any(rows >= least and (known is None or known >= bytes_) for least, bytes_ in COPIED)
    plain = not p.segments and p.turned is None
    return many and plain and p.b.element == p.c.element == p.sum and p.sum.is_float


def _copied_panel(
    b: FunctionBuilder, p: Problem, runs: Sequence[RowRun], lanes: int, vectors: int
) -> Callable[[str, list[str]], list[str]]:
    """The body of a loop over panels of B that copies each to the stack; a block of k has at most `K_BLOCK` steps."""
    wide = p.b.element.with_lanes(lanes)
    held = b.reserve(wide, K_BLOCK * vectors)

    def body(column: str, _: list[str]) -> list[str]:
        source = b.gep(p.b.element, p.b.pointer, column)

        def line(k: str, _: list[str]) -> list[str]:
            start = b.gep(p.b.element, source, fold(b, "mul", k, p.b.row))
            place = b.gep(wide, held, fold(b, "mul", k, str(vectors)))
            for v in range(vectors):
                value = b.load(wide, b.gep(p.b.element, start, str(v * lanes)))
                b.store(wide, value, b.gep(wide, place, str(v)))
            return []

        b.loop("0", p.k, "1", line)
        # Of the next panel's lines those are fetched that hold the ends of its rows: the others are here already.
        last = b.gep(p.b.element, source, str(2 * lanes * vectors - 1))
        ahead = Ahead(last, apart=fold(b, "mul", p.b.row, str(p.b.element.bytes)))
        inside = replace(p, b=Operand(held, p.b.element, str(lanes * vectors), "1"), ahead=ahead)
        _tiles(b, inside, runs, Tile(0, vectors, lanes, None, in_panel=True), column)
        return []

    return body


def _packed_panels(b: FunctionBuilder, p: Problem, runs: Sequence[RowRun], lanes: int, k: str, start: str) -> None:
    """Panels of columns one after the other, or several abreast; only the last one's results may be masked."""
    width = p.packed or lanes
    line = width * p.b.element.bits // 8
    vectors = width // lanes
    abreast = _abreast(b, p, lanes, vectors)

    alone = abreast > 1 or len(runs) == 1 and runs[0].upper == str(runs[0].rows)

    def panels(masked: bool, vectors: int) -> Callable[[str, list[str]], list[str]]:
        def body(column: str, _: list[str]) -> list[str]:
            offset = fold(b, "add", fold(b, "mul", column, k), fold(b, "mul", start, str(width)))
            at = b.gep(memory_type(p.b.element), p.b.pointer, offset)
            left = fold(b, "sub", p.n, column) if masked else None
            # A panel starts at its own column, so that the tile finds it without an offset.
            right = Operand(at, p.b.element, str(width), "1", width // lanes, fold(b, "mul", k, str(width)))
            inside = replace(p, b=right)
            if not alone:  # what one tile reads comes in order, as the processor expects it
                following = b.beyond(at, fold(b, "mul", k, str(line)))
                inside = replace(inside, ahead=Ahead(following, fetch_step(_number(p.m), runs[0].rows, line)))
            _tiles(b, inside, runs, Tile(0, vectors, lanes, None, in_panel=True, left=left), column)
            return []

        return body

    at = "0"
    while True:  # what fills no group goes in smaller ones, or, where it is known how much that is, in one
        end = whole_groups(b, at, p.n, width * abreast)
        if end != at:
            b.loop(at, end, str(width * abreast), panels(False, vectors * abreast))
        at = end
        if abreast == 1 or not end.startswith("%"):
            break
        abreast //= 2
    if at != p.n:
        rest = vectors if at.startswith("%") else -(-(int(p.n) - int(at)) // lanes)
        b.loop(at, p.n, str(width * abreast), panels(True, rest))


def _tiles(b: FunctionBuilder, p: Problem, runs: Sequence[RowRun], like: Tile, column: str) -> None:
    """All rows of a panel. An epilogue with a long body takes the panel's sums from C, where it can hold them, once the
    tiles are through: so its code stands there once, not once per kind of tile."""
    if p.turned is not None:
        _turned_tiles(b, p, p.turned, runs, like, column)
        return
    later = p.epilogue is not None and not p.epilogue.is_light and p.c.element == p.sum
    inside = replace(p, epilogue=None) if later else p
    for run in runs:
        tile = replace(like, rows=run.rows)

        def body(row: str, _: list[str], tile: Tile = tile) -> list[str]:
            emit_tile(b, inside, tile, row, column)
            return []

        b.loop(run.lower, run.upper, str(run.rows), body)
    if not later:
        return

    def rows() -> list[str]:
        tile = like.masked(b)

        def finish(row: str, _: list[str]) -> list[str]:
            finish_stored_row(b, p, tile, row, column)
            return []

        b.loop("0", p.m, "1", finish)
        return []

    if p.last is None:
        rows()
    else:
        b.when(p.last, rows)


def _turned_tiles(
    b: FunctionBuilder, p: Problem, turned: Turned, runs: Sequence[RowRun], like: Tile, column: str
) -> None:
    """All rows of a panel, by way of a copy of the panel in the first-level cache whose columns then become rows."""
    ty = memory_type(p.c.element)
    start = b.gep(ty, turned.held, fold(b, "sub", "0", column))
    rows = None if p.rows is None else replace(p.rows, c_outer=None)
    _tiles(
        b, replace(p, c=Operand(start, p.c.element, str(turned.width), "1"), rows=rows, turned=None), runs, like, column
    )

    def turn() -> list[str]:
        columns = str(like.vectors * like.step)
        if like.left is not None:
            columns = b.intrinsic("llvm.smin", I64, [(I64, columns), (I64, like.left)])
        elif like.masks is not None:
            columns = fold(b, "sub", p.n, column)
        target = b.gep(ty, p.c.pointer, fold(b, "mul", column, p.c.row))
        turn_matrix(b, ty, (p.m, columns), (turned.held, str(turned.width)), (target, p.c.row))
        return []

    if p.last is None:
        turn()
    else:
        b.when(p.last, turn)
