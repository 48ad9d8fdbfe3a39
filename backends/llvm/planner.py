"""Places the workspace buffers of a plan: which share memory, and where.

Buffers whose extents follow from the inputs' alone lie in one arena. A *slot* of the arena is one buffer, or several
of which each is computed from the one before in place; slots that live at the same time get disjoint intervals. Where
all extents are numbers the intervals are fixed here; else native code places them (`codegen/arena.py`, by the same
algorithm) when the extents are not those of the run before. A buffer whose extents the run itself computes is *late*:
it has a block of its own, reused by liveness and grown on demand.

Ops are numbered in the order of the text, those of regions behind the op that they belong to. What is used inside of a
region from outside lives until that region's op ends, since the region may run again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr, i64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import Pure

from sardonyx.backends.llvm.codegen.arena import padded
from sardonyx.backends.llvm.codegen.widen import memory_type, scalar_type
from sardonyx.dialects.kernel.ops import (
    AllocOp,
    IfOp,
    InputDimOp,
    InputOp,
    KernelFuncOp,
    LaunchOp,
    LoadOp,
    PlanOp,
    RequireOp,
    StoreOp,
    WeightOp,
)
from sardonyx.dialects.kernel.plan_ops import AlternateOp, GrowOp, RepeatOp, ViewOp


@dataclass
class Workspace:
    """The arena's slots with their buffers and lifetimes, and what else the entry must know.

    `size` is that of the arena where all extents are numbers. `early` are the ops that depend on inputs' extents alone:
    the entry runs them first, then takes the arena.
    """

    members: list[list[AllocOp]] = field(default_factory=list)
    spans: list[tuple[int, int]] = field(default_factory=list)
    late: int = 0
    size: int | None = 0
    early: set[Operation] = field(default_factory=set)


def plan_workspace(module: ModuleOp) -> Workspace:
    """Place all buffers of the module's plan, and note on each `kernel.alloc` its slot, and its offset where known."""
    ops = list(module.body.block.ops)
    plan = next(op for op in ops if isinstance(op, PlanOp))
    kernels = {op.sym_name.data: op for op in ops if isinstance(op, KernelFuncOp)}
    early = early_ops(list(plan.body.block.ops))
    position = {op: at for at, op in enumerate(plan.walk())}
    last = last_uses(plan, position)
    found = Workspace(early=early)
    whole: dict[AllocOp, int] = {}  # the slots of buffers over which nothing is computed so far
    late: list[AllocOp] = []
    for op in plan.walk():
        if not isinstance(op, AllocOp):
            continue
        if not all(_is_early(extent, early) for extent in op.extents):
            late.append(op)
            continue
        end = last.get(op.result, position[op])
        source = _replaced(op, kernels, position, last, whole)
        if source is None:
            whole[op] = slot = len(found.members)
            found.members.append([op])
            found.spans.append((position[op], end))
        else:
            whole[op] = slot = whole.pop(source)  # a kernel with two results writes only one of them over it
            found.members[slot].append(op)
            found.spans[slot] = (found.spans[slot][0], end)
        op.properties["slot"] = IntegerAttr(slot, i64)
    found.late = _place_growing(plan, _place_late(late, position, last))
    sizes = [max((s for s in map(static_bytes, m) if s is not None), default=0) for m in found.members]
    if all(static_bytes(op) is not None for members in found.members for op in members):
        offsets, found.size = pack([padded(s) for s in sizes], found.spans)
        for members, offset in zip(found.members, offsets, strict=True):
            for op in members:
                op.properties["offset"] = IntegerAttr(offset, i64)
    else:
        found.size = None
    return found


def static_bytes(op: AllocOp) -> int | None:
    """The size of a buffer whose extents are numbers."""
    size = memory_type(scalar_type(op.result.type.element)).bytes
    for extent in op.extents:
        owner = extent.owner
        if not isinstance(owner, arith.ConstantOp) or not isinstance(owner.value, IntegerAttr):
            return None
        size *= owner.value.value.data
    return size


def pack(sizes: Sequence[int], spans: Sequence[tuple[int, int]]) -> tuple[list[int], int]:
    """Offsets for intervals of memory, and the size of the whole: the largest first, each as low as it fits."""
    offsets: dict[int, int] = {}
    for slot in sorted(range(len(sizes)), key=lambda k: (-sizes[k], k)):
        first, last = spans[slot]
        others = sorted(
            (offsets[k], offsets[k] + sizes[k]) for k in offsets if spans[k][0] <= last and spans[k][1] >= first
        )
        offset = 0
        for start, end in others:
            if offset + sizes[slot] <= start:
                break
            offset = max(offset, end)
        offsets[slot] = offset
    total = max((offsets[k] + sizes[k] for k in offsets), default=0)
    return [offsets[k] for k in range(len(sizes))], total


# ---- what is known before the first kernel


def early_ops(body: Sequence[Operation]) -> set[Operation]:
    """The ops that need nothing but the inputs: extents, checks, reads of small inputs, and buffers of such extents.

    What follows a check that is not among them stays where it is, if it could go wrong without it.
    """
    early: set[Operation] = set()
    unchecked = False
    for op in body:
        known = all(
            isinstance(v.owner, Operation) and v.owner in early and not isinstance(v.owner, AllocOp)
            for v in op.operands
        )
        if isinstance(op, RequireOp):
            if known:
                early.add(op)
            unchecked |= not known
        elif isinstance(op, LoadOp):
            source = op.buffer.owner
            if known and not unchecked and isinstance(source, InputOp | WeightOp):
                early.add(op)
        elif known and (isinstance(op, InputOp | InputDimOp | WeightOp | AllocOp) or (_is_pure(op) and not op.regions)):
            early.add(op)
    return early


def _is_pure(op: Operation) -> bool:
    return op.has_trait(Pure) or isinstance(op, arith.ConstantOp)


# ---- lifetimes


def _is_early(value: SSAValue, early: set[Operation]) -> bool:
    """Whether an extent is known before the first kernel; a constant is, wherever it stands."""
    owner = value.owner
    return isinstance(owner, Operation) and (owner in early or isinstance(owner, arith.ConstantOp))


def last_uses(plan: PlanOp, position: dict[Operation, int]) -> dict[SSAValue, int]:
    """The position at which each value is used last, also under other names: a view, what a region results in.

    A use inside a region of a value from outside counts as one by the last op of that region.
    """
    end = dict(position)
    for op in reversed(list(plan.walk())):
        parent = op.parent_op()
        if parent is not None and parent in end:
            end[parent] = max(end[parent], end[op])
    last: dict[SSAValue, int] = {}
    for op in plan.walk():
        for operand in op.operands:
            home, at = operand.owner if isinstance(operand.owner, Block) else operand.owner.parent_block(), op
            while (parent := at.parent_op()) is not None and at.parent_block() is not home:
                at = parent
            last[operand] = max(last.get(operand, 0), position[op] if at is op else end[at])
    names = list(_other_names(plan, end))
    changed = True
    while changed:
        changed = False
        for value, other, least in names:
            at = max(last.get(other, 0), least)
            if last.get(value, 0) < at:
                last[value], changed = at, True
    return last


def _other_names(plan: PlanOp, end: dict[Operation, int]) -> Iterator[tuple[SSAValue, SSAValue, int]]:
    """(value, another name of the same buffer, the first position at which it may be dead)."""
    for op in plan.walk():
        if isinstance(op, ViewOp):
            yield op.buffer, op.result, 0
        elif isinstance(op, IfOp):
            for region in op.regions:
                yielded = region.block.last_op
                for value, result in zip(() if yielded is None else yielded.operands, op.results, strict=True):
                    yield value, result, 0
        elif isinstance(op, RepeatOp):
            yielded = op.body.block.last_op
            after = () if yielded is None else yielded.operands[1:]
            for first, value, result in zip(op.initial, after, op.carried, strict=True):
                yield first, result, end[op]
                yield value, result, end[op]


def _place_late(allocs: Sequence[AllocOp], position: dict[Operation, int], last: dict[SSAValue, int]) -> int:
    """Number the blocks of late buffers: a block that is free goes to the next one, of the same extents if possible."""
    free: list[tuple[tuple[SSAValue, ...], int]] = []
    living: list[tuple[int, AllocOp, int]] = []
    count = 0
    for op in allocs:
        at = position[op]
        for entry in [entry for entry in living if entry[0] < at]:
            living.remove(entry)
            free.append((tuple(entry[1].extents), entry[2]))
        key = tuple(op.extents)
        match = next((entry for entry in free if entry[0] == key), free[-1] if free else None)
        if match is None:
            slot, count = count, count + 1
        else:
            free.remove(match)
            slot = match[1]
        living.append((last.get(op.result, at), op, slot))
        op.properties["slot"] = IntegerAttr(slot, i64)
        op.properties["late"] = UnitAttr()
    return count


def _place_growing(plan: PlanOp, count: int) -> int:
    """Number the blocks of buffers that loops carry or let grow, which no other buffer shares."""
    grown: dict[int, int] = {}
    for op in plan.walk():
        if isinstance(op, AlternateOp):
            op.properties["slot"] = IntegerAttr(count, i64)
            count += 2
        elif isinstance(op, GrowOp):
            number = op.number.value.data
            if number not in grown:
                grown[number], count = count, count + 1
            op.properties["slot"] = IntegerAttr(grown[number], i64)
    return count


# ---- in place


def _replaced(
    op: AllocOp,
    kernels: dict[str, KernelFuncOp],
    at: dict[Operation, int],
    last: dict[SSAValue, int],
    slots: dict[AllocOp, int],
) -> AllocOp | None:
    """The buffer that this one may be written over: read for the last time by the kernel that computes this one.

    That kernel must read each of its elements at the place where it then writes, and nowhere else.
    """
    users = [use.operation for use in op.result.uses]
    if not users or any(u not in at for u in users):
        return None
    first = min(users, key=lambda u: at[u])
    block = op.parent_block()
    if not isinstance(first, LaunchOp) or first.parent_block() is not block:
        return None
    kernel = kernels.get(first.callee.string_value())
    if kernel is None:
        return None
    size = scalar_type(op.result.type.element).bytes
    for argument, value in zip(kernel.body.block.args, first.args, strict=True):
        source = value.owner
        if not isinstance(source, AllocOp) or source is op or source not in slots or last[value] != at[first]:
            continue
        if source.parent_block() is not block:  # a region that runs again would find it overwritten
            continue
        if scalar_type(source.result.type.element).bytes != size:
            continue
        if not _same_extents(source, op) or sum(1 for v in first.args if v is value) != 1:
            continue
        written = kernel.body.block.args[list(first.args).index(op.result)]
        if reads_where_it_writes(argument, written):
            return source
    return None


def _same_extents(a: AllocOp, b: AllocOp) -> bool:
    sizes = static_bytes(a), static_bytes(b)
    return (None not in sizes and sizes[0] == sizes[1]) or tuple(a.extents) == tuple(b.extents)


def reads_where_it_writes(read: SSAValue, written: SSAValue) -> bool:
    """Whether a kernel takes each element of `read` just before it stores that place of `written`.

    All loads and stores of the two stand in one innermost block with one offset, the loads first.
    """
    loads = [use.operation for use in read.uses if isinstance(use.operation, LoadOp)]
    stores = [use.operation for use in written.uses if isinstance(use.operation, StoreOp)]
    if not loads or len(loads) != len(list(read.uses)) or len(stores) != 1 or len(list(written.uses)) != 1:
        return False
    store, block = stores[0], stores[0].parent_block()
    if block is None or any(op.parent_block() is not block or not _same_index(op.offset, store.offset) for op in loads):
        return False
    order = list(block.ops)
    return all(order.index(op) < order.index(store) for op in loads)


def _same_index(a: SSAValue, b: SSAValue) -> bool:
    """Whether two indices are computed alike."""
    if a is b:
        return True
    x, y = a.owner, b.owner
    if not isinstance(x, Operation) or not isinstance(y, Operation) or type(x) is not type(y) or x.regions:
        return False
    if not _is_pure(x) or x.properties != y.properties or x.attributes != y.attributes:
        return False
    if len(x.operands) != len(y.operands) or len(x.results) != 1 or len(y.results) != 1:
        return False
    return all(_same_index(p, q) for p, q in zip(x.operands, y.operands, strict=True))
