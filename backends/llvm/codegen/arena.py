"""Native memory for a run: aligned blocks, the arena and its slots, blocks for outputs.

Large blocks begin at a multiple of 2 MiB, and Linux is asked for huge pages: a page that is touched for the first time
costs more than the arithmetic on it (2.9 GB/s with 4 KiB pages, 26 GB/s with huge ones; research: baselines).
"""

from __future__ import annotations

from sardonyx.backends.llvm.codegen.text import I1, I64, PTR, FunctionBuilder, ModuleText

ALIGNMENT = 64
HUGE = 1 << 21
_MADV_HUGEPAGE = 14


def padded(size: int) -> int:
    """What a slot of that many bytes takes: whole cache lines and one more.

    The one more keeps buffers of equal, round sizes from beginning at the same place of a 4 KiB page, where loads would
    wait for stores to the other buffer.
    """
    return (size + 2 * ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def emit_padded(b: FunctionBuilder, size: str) -> str:
    """`padded` in native code."""
    return b.binary("and", I64, b.binary("add", I64, size, str(2 * ALIGNMENT - 1)), str(-ALIGNMENT))


def emit_support(module: ModuleText) -> None:
    """`sx.aligned`, `sx.slot` and `sx.output`, on the C library's allocator."""
    module.declare("aligned_alloc", PTR, [I64, I64])
    module.declare("free", "void", [PTR])
    _aligned(module)
    _slot(module)
    _output(module)


def _aligned(module: ModuleText) -> None:
    """`ptr sx.aligned(i64 size)`: a new block, or null."""
    b = FunctionBuilder(module, "sx.aligned", [(I64, "size")], PTR, linkage="internal")
    some = b.intrinsic("llvm.umax", I64, [(I64, "%size"), (I64, "1")])

    def take(alignment: int) -> str:
        rounded = b.binary("and", I64, b.binary("add", I64, some, str(alignment - 1)), str(-alignment))
        made = b.call("aligned_alloc", PTR, [(I64, str(alignment)), (I64, rounded)])
        if alignment == HUGE and "linux" in module.target.triple:
            module.declare("madvise", "i32", [PTR, I64, "i32"])
            b.call("madvise", "i32", [(PTR, made), (I64, rounded), ("i32", str(_MADV_HUGEPAGE))])
        return made

    large = b.icmp("uge", I64, some, str(HUGE))
    b.emit(f"ret ptr {b.when(large, lambda: [take(HUGE)], lambda: [take(ALIGNMENT)], [PTR])[0]}")
    b.finish()


def _slot(module: ModuleText) -> None:
    """`ptr sx.slot({ptr block, i64 capacity}*, i64 size)`: its block, made anew where it is too small; or null."""
    b = FunctionBuilder(module, "sx.slot", [(PTR, "slot"), (I64, "size")], PTR, linkage="internal")
    block = b.load(PTR, "%slot", 8)
    capacity_at = b.gep(I64, "%slot", "1")
    capacity = b.load(I64, capacity_at, 8)
    small = b.binary("or", I1, b.icmp("ult", I64, capacity, "%size"), b.icmp("eq", PTR, block, "null"))
    with b.unless(small, lambda: b.emit(f"ret ptr {block}")):
        b.call("free", "void", [(PTR, block)])
        made = b.call("sx.aligned", PTR, [(I64, "%size")])
        b.store(PTR, made, "%slot", 8)
        b.store(I64, b.select(I64, b.icmp("eq", PTR, made, "null"), "0", "%size"), capacity_at, 8)
        b.emit(f"ret ptr {made}")
    b.finish()


def _output(module: ModuleText) -> None:
    """`ptr sx.output({ptr data, ptr dims}*, i64 size)`: the memory that the caller gave, else a new block."""
    b = FunctionBuilder(module, "sx.output", [(PTR, "record"), (I64, "size")], PTR, linkage="internal")
    given = b.load(PTR, "%record", 8)
    with b.unless(b.icmp("eq", PTR, given, "null"), lambda: b.emit(f"ret ptr {given}")):
        made = b.call("sx.aligned", PTR, [(I64, "%size")])
        b.store(PTR, made, "%record", 8)
        b.emit(f"ret ptr {made}")
    b.finish()


def emit_keep(module: ModuleText) -> None:
    """`sx.keep` and `sx.forget`: memory that lives until a run ends, in chunks.

    A chunk begins with {the chunk before it, capacity, used bytes}. `kept` points at the newest one, and behind it
    stands how large a first chunk is to be: all that the run before took, so that runs alike take one chunk.
    """
    _forget(module)
    b = FunctionBuilder(module, "sx.keep", [(PTR, "kept"), (I64, "size")], PTR, linkage="internal")
    rounded = b.binary("and", I64, b.binary("add", I64, "%size", str(2 * ALIGNMENT - 1)), str(-ALIGNMENT))
    chunk = b.load(PTR, "%kept", 8)
    there, fresh, fits = (b.fresh_label(name) for name in ("there", "fresh", "fits"))
    before = b.block
    b.emit(f"br i1 {b.icmp('ne', PTR, chunk, 'null')}, label %{there}, label %{fresh}")
    b.start_block(there)
    capacity, used = (b.load(I64, b.gep(I64, chunk, str(word)), 8) for word in (1, 2))
    b.emit(f"br i1 {b.icmp('ule', I64, b.binary('add', I64, used, rounded), capacity)}, label %{fits}, label %{fresh}")
    b.start_block(fits)
    b.store(I64, b.binary("add", I64, used, rounded), b.gep(I64, chunk, "2"), 8)
    b.emit(f"ret ptr {b.gep('i8', b.gep('i8', chunk, str(ALIGNMENT)), used)}")
    b.start_block(fresh)
    known = b.op(f"phi i64 [ 0, %{before} ], [ {capacity}, %{there} ]")
    most = b.binary("shl", I64, known, "1")
    for other in (rounded, b.load(I64, b.gep(I64, "%kept", "1"), 8), str(1 << 16)):
        most = b.intrinsic("llvm.umax", I64, [(I64, most), (I64, other)])
    made = b.call("sx.aligned", PTR, [(I64, b.binary("add", I64, most, str(ALIGNMENT)))])
    with b.unless(b.icmp("ne", PTR, made, "null"), lambda: b.emit("ret ptr null")):
        b.store(PTR, chunk, made, 8)
        b.store(I64, most, b.gep(I64, made, "1"), 8)
        b.store(I64, rounded, b.gep(I64, made, "2"), 8)
        b.store(PTR, made, "%kept", 8)
        b.emit(f"ret ptr {b.gep('i8', made, str(ALIGNMENT))}")
    b.finish()


def _forget(module: ModuleText) -> None:
    """`void sx.forget(ptr kept)`: what the run before kept is free; several chunks are given back."""
    b = FunctionBuilder(module, "sx.forget", [(PTR, "kept")], linkage="internal")
    chunk = b.load(PTR, "%kept", 8)
    with b.unless(b.icmp("ne", PTR, chunk, "null"), lambda: b.emit("ret void")):
        pass
    several = b.icmp("ne", PTR, b.load(PTR, chunk, 8), "null")

    def empty() -> None:
        b.store(I64, "0", b.gep(I64, chunk, "2"), 8)
        b.emit("ret void")

    with b.unless(several, empty):
        pass
    before, head, after = b.block, b.fresh_label("head"), b.fresh_label("after")
    at, total, previous, sum_ = (b.fresh_name() for _ in range(4))
    b.branch_to(head)
    b.start_block(head)
    b.emit(f"{at} = phi ptr [ {chunk}, %{before} ], [ {previous}, %{head} ]")
    b.emit(f"{total} = phi i64 [ 0, %{before} ], [ {sum_}, %{head} ]")
    b.emit(f"{previous} = load ptr, ptr {at}, align 8")
    b.emit(f"{sum_} = add i64 {total}, {b.load(I64, b.gep(I64, at, '1'), 8)}")
    b.call("free", "void", [(PTR, at)])
    b.emit(f"br i1 {b.icmp('ne', PTR, previous, 'null')}, label %{head}, label %{after}")
    b.start_block(after)
    b.store(PTR, "null", "%kept", 8)
    b.store(I64, sum_, b.gep(I64, "%kept", "1"), 8)
    b.emit("ret void")
    b.finish()


PLACE = """define internal i64 @sx.place(ptr %table, i64 %n, ptr %spans) nounwind {
entry:
  %wanted = getelementptr inbounds i64, ptr %table, i64 1
  %placed = getelementptr inbounds i64, ptr %wanted, i64 %n
  %offsets = getelementptr inbounds i64, ptr %placed, i64 %n
  %known = load i64, ptr %table, align 8
  %never = icmp eq i64 %known, 0
  br i1 %never, label %begin, label %compare

compare:
  %c = phi i64 [ 0, %entry ], [ %c.next, %equal ]
  %c.wanted.at = getelementptr inbounds i64, ptr %wanted, i64 %c
  %c.wanted = load i64, ptr %c.wanted.at, align 8
  %c.placed.at = getelementptr inbounds i64, ptr %placed, i64 %c
  %c.placed = load i64, ptr %c.placed.at, align 8
  %c.same = icmp eq i64 %c.wanted, %c.placed
  br i1 %c.same, label %equal, label %begin
equal:
  %c.next = add nsw i64 %c, 1
  %c.end = icmp eq i64 %c.next, %n
  br i1 %c.end, label %unchanged, label %compare
unchanged:
  ret i64 %known

begin:
  br label %clear
clear:
  %r = phi i64 [ 0, %begin ], [ %r.next, %clear ]
  %r.wanted.at = getelementptr inbounds i64, ptr %wanted, i64 %r
  %r.wanted = load i64, ptr %r.wanted.at, align 8
  %r.placed.at = getelementptr inbounds i64, ptr %placed, i64 %r
  store i64 %r.wanted, ptr %r.placed.at, align 8
  %r.offset.at = getelementptr inbounds i64, ptr %offsets, i64 %r
  store i64 -1, ptr %r.offset.at, align 8
  %r.next = add nsw i64 %r, 1
  %r.end = icmp eq i64 %r.next, %n
  br i1 %r.end, label %turn, label %clear

turn:
  %t = phi i64 [ 0, %clear ], [ %t.next, %settled ]
  %total = phi i64 [ 0, %clear ], [ %total.next, %settled ]
  br label %choose
choose:
  %k = phi i64 [ 0, %turn ], [ %k.next, %choose ]
  %best = phi i64 [ -1, %turn ], [ %best.next, %choose ]
  %most = phi i64 [ -1, %turn ], [ %most.next, %choose ]
  %k.offset.at = getelementptr inbounds i64, ptr %offsets, i64 %k
  %k.offset = load i64, ptr %k.offset.at, align 8
  %k.free = icmp eq i64 %k.offset, -1
  %k.size.at = getelementptr inbounds i64, ptr %wanted, i64 %k
  %k.size = load i64, ptr %k.size.at, align 8
  %k.larger = icmp sgt i64 %k.size, %most
  %k.better = and i1 %k.free, %k.larger
  %best.next = select i1 %k.better, i64 %k, i64 %best
  %most.next = select i1 %k.better, i64 %k.size, i64 %most
  %k.next = add nsw i64 %k, 1
  %k.end = icmp eq i64 %k.next, %n
  br i1 %k.end, label %chosen, label %choose
chosen:
  %twice = shl i64 %best.next, 1
  %first.at = getelementptr inbounds i64, ptr %spans, i64 %twice
  %first = load i64, ptr %first.at, align 8
  %last.at = getelementptr inbounds i64, ptr %first.at, i64 1
  %last = load i64, ptr %last.at, align 8
  br label %scan
scan:
  %from = phi i64 [ 0, %chosen ], [ %at.next, %scanned ]
  br label %other
other:
  %p = phi i64 [ 0, %scan ], [ %p.next, %other ]
  %at = phi i64 [ %from, %scan ], [ %at.next, %other ]
  %p.offset.at = getelementptr inbounds i64, ptr %offsets, i64 %p
  %p.offset = load i64, ptr %p.offset.at, align 8
  %p.there = icmp ne i64 %p.offset, -1
  %p.twice = shl i64 %p, 1
  %p.first.at = getelementptr inbounds i64, ptr %spans, i64 %p.twice
  %p.first = load i64, ptr %p.first.at, align 8
  %p.last.at = getelementptr inbounds i64, ptr %p.first.at, i64 1
  %p.last = load i64, ptr %p.last.at, align 8
  %p.begins = icmp sle i64 %p.first, %last
  %p.ends = icmp sge i64 %p.last, %first
  %p.size.at = getelementptr inbounds i64, ptr %wanted, i64 %p
  %p.size = load i64, ptr %p.size.at, align 8
  %p.top = add i64 %p.offset, %p.size
  %at.top = add i64 %at, %most.next
  %p.below = icmp ult i64 %at, %p.top
  %p.above = icmp ugt i64 %at.top, %p.offset
  %p.1 = and i1 %p.there, %p.begins
  %p.2 = and i1 %p.ends, %p.below
  %p.3 = and i1 %p.1, %p.2
  %p.clash = and i1 %p.3, %p.above
  %at.next = select i1 %p.clash, i64 %p.top, i64 %at
  %p.next = add nsw i64 %p, 1
  %p.end = icmp eq i64 %p.next, %n
  br i1 %p.end, label %scanned, label %other
scanned:
  %moved = icmp ne i64 %at.next, %from
  br i1 %moved, label %scan, label %settled
settled:
  %best.at = getelementptr inbounds i64, ptr %offsets, i64 %best.next
  store i64 %at.next, ptr %best.at, align 8
  %top = add i64 %at.next, %most.next
  %higher = icmp ugt i64 %top, %total
  %total.next = select i1 %higher, i64 %top, i64 %total
  %t.next = add nsw i64 %t, 1
  %t.end = icmp eq i64 %t.next, %n
  br i1 %t.end, label %finish, label %turn
finish:
  store i64 %total.next, ptr %table, align 8
  ret i64 %total.next
}"""
"""`i64 sx.place(table, n, spans)`: the arena's size for the wanted sizes of n > 0 slots.

`table` holds, in 8-byte words: the size of the arena (0 before the first run); n wanted sizes; n sizes as they were
placed; n offsets. `spans` holds first and last position of each slot's life. Places anew only where a size has changed:
`planner.pack`, without its sorting.
"""


def emit_place(module: ModuleText) -> None:
    """Add `sx.place`."""
    module.functions["sx.place"] = PLACE


def emit_grow(module: ModuleText) -> None:
    """`ptr sx.grow({ptr block, i64 capacity}*, i64 used, i64 wanted)`: the block, larger where it must be, with its
    first `used` bytes; or null."""
    if "sx.grow" in module.functions:
        return
    b = FunctionBuilder(module, "sx.grow", [(PTR, "slot"), (I64, "used"), (I64, "wanted")], PTR, linkage="internal")
    block = b.load(PTR, "%slot", 8)
    capacity_at = b.gep(I64, "%slot", "1")
    capacity = b.load(I64, capacity_at, 8)
    small = b.binary("or", I1, b.icmp("ult", I64, capacity, "%wanted"), b.icmp("eq", PTR, block, "null"))
    with b.unless(small, lambda: b.emit(f"ret ptr {block}")):
        larger = b.binary("add", I64, capacity, b.binary("lshr", I64, capacity, "1"))
        used = b.icmp("ne", I64, "%used", "0")  # a block that is needed anew is as large as it must be, no more
        size = b.intrinsic("llvm.umax", I64, [(I64, "%wanted"), (I64, b.select(I64, used, larger, "0"))])
        made = b.call("sx.aligned", PTR, [(I64, size)])
        with b.unless(b.icmp("ne", PTR, made, "null"), lambda: b.emit("ret ptr null")):
            module.declare("llvm.memcpy.p0.p0.i64", "void", ["ptr", "ptr", "i64", "i1 immarg"])
            b.emit(f"call void @llvm.memcpy.p0.p0.i64(ptr {made}, ptr {block}, i64 %used, i1 false)")
            b.call("free", "void", [(PTR, block)])
            b.store(PTR, made, "%slot", 8)
            b.store(I64, size, capacity_at, 8)
            b.emit(f"ret ptr {made}")
    b.finish()


def emit_output_list(module: ModuleText) -> None:
    """`i64 sx.output_list({ptr data, ptr dims}* record, i64 words, ptr table, i64 count, i64 present)`.

    The record's data becomes a block with a copy of the table, whose addresses are those of blocks with copies of the
    elements (0 where memory ran out: the result is then 1); its dims become (count, present).
    """
    if "sx.output_list" in module.functions:
        return
    args = [(PTR, "record"), (I64, "words"), (PTR, "table"), (I64, "count"), (I64, "present")]
    b = FunctionBuilder(module, "sx.output_list", args, I64, linkage="internal")
    module.declare("llvm.memcpy.p0.p0.i64", "void", ["ptr", "ptr", "i64", "i1 immarg"])
    dims = b.load(PTR, b.gep(I64, "%record", "1"), 8)
    b.store(I64, "%count", dims, 8)
    b.store(I64, "%present", b.gep(I64, dims, "1"), 8)
    size = b.binary("shl", I64, b.binary("mul", I64, "%count", "%words"), "3")
    made = b.call("sx.aligned", PTR, [(I64, size)])
    b.store(PTR, made, "%record", 8)
    with b.unless(b.icmp("ne", PTR, made, "null"), lambda: b.emit("ret i64 1")):
        b.emit(f"call void @llvm.memcpy.p0.p0.i64(ptr {made}, ptr %table, i64 {size}, i1 false)")

    def copy(index: str, failed: list[str]) -> list[str]:
        at = b.gep(I64, made, b.binary("mul", I64, index, "%words"))
        source, length = b.load(PTR, at, 8), b.load(I64, b.gep(I64, at, "1"), 8)
        block = b.call("sx.aligned", PTR, [(I64, length)])
        b.store(PTR, block, at, 8)
        there = b.icmp("ne", PTR, block, "null")

        def fill() -> list[str]:
            b.emit(f"call void @llvm.memcpy.p0.p0.i64(ptr {block}, ptr {source}, i64 {length}, i1 false)")
            return []

        b.when(there, fill)
        return [b.select(I64, there, failed[0], "1")]

    b.emit(f"ret i64 {b.loop('0', '%count', '1', copy, [(I64, '0')])[0]}")
    b.finish()
