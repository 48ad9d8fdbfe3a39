"""Emits kernels: walks a `kernel.func` once and writes LLVM text, widening the bodies of `vector` loops.

Each op has an emitter in `EMITTERS`, registered by `@emits(Op)`; a user's op joins by the same decorator. A kernel's
LLVM function is `i64 @name(ptr args, i64 chunk, i64 chunks)`: `args` holds its buffers and extents, 8 bytes each, in
the order of the block's arguments; the outermost `parallel` loop runs the given chunk of its range. It returns 0, or
1 + the number of a failed requirement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.ir import Block, Operation, SSAValue

from sardonyx.backends.llvm.codegen.memory import gather_lanes, load_lanes
from sardonyx.backends.llvm.codegen.text import I64, PTR, FunctionBuilder, LType, ModuleText
from sardonyx.backends.llvm.codegen.widen import (
    Value,
    add_index,
    as_held,
    as_value,
    combine,
    fold,
    from_memory,
    identity,
    memory_type,
    reduce_lanes,
    scalar_type,
    to_memory,
    to_vector,
    value_type,
)
from sardonyx.dialects.kernel.ops import (
    BufferType,
    IfOp,
    KernelFuncOp,
    LoadOp,
    LoopOp,
    RequireOp,
    StoreOp,
    YieldOp,
)
from sardonyx.errors import UnsupportedError

Emitter = Callable[[Any, Any], None]
"""`emit(emitter, op)`: the emitter is a `KernelEmitter`, that of a plan for ops of plans."""
EMITTERS: dict[type[Operation], Emitter] = {}


def emits(*ops: type[Operation]) -> Callable[[Emitter], Emitter]:
    """Register the emitter of these ops."""

    def register(emitter: Emitter) -> Emitter:
        for op in ops:
            EMITTERS[op] = emitter
        return emitter

    return register


@dataclass
class KernelEmitter:
    """The state of one walk: the function being built, the values so far and the lanes of the innermost vector loop.

    `mask` is an i1 vector where some lanes stand beyond the end: they must not touch memory.
    """

    builder: FunctionBuilder
    values: dict[SSAValue, Value] = field(default_factory=dict)
    lanes: int = 0
    mask: str | None = None
    split_outermost: bool = True
    on_failure: Callable[[KernelEmitter, int, Sequence[str]], None] | None = None

    def value(self, ssa: SSAValue) -> Value:
        return self.values[ssa]

    def text(self, ssa: SSAValue) -> str:
        """The value as the current loop needs it: a vector inside a vector loop, else a scalar."""
        return to_vector(self.builder, self.values[ssa], self.lanes)

    def scalar(self, ssa: SSAValue) -> str:
        """A value that must be the same in all lanes."""
        value = self.values[ssa]
        if not value.is_uniform:
            raise UnsupportedError("a value that varies from lane to lane stands where one for all lanes is needed")
        return value.text

    def type_of(self, ssa: SSAValue) -> LType:
        """The LLVM type that `text` gives."""
        return scalar_type(ssa.type).with_lanes(self.lanes)

    def uniform(self, *operands: SSAValue) -> bool:
        return all(self.values[o].is_uniform for o in operands)

    def define(self, ssa: SSAValue, text: str, lanes: int | None = None) -> None:
        self.values[ssa] = Value(text, scalar_type(ssa.type).with_lanes(self.lanes if lanes is None else lanes))

    def elementwise(self, op: Operation, compute: Callable[..., str]) -> None:
        """Emit `compute(builder, type of the first operand, operand texts…)`, once for all lanes where it can be."""
        b, operands, result = self.builder, op.operands, op.results[0]
        lanes = 0 if self.uniform(*operands) else self.lanes
        texts = [as_value(b, o.type, lanes, self.values[o].text if not lanes else self.text(o)) for o in operands]
        computed = compute(b, value_type(operands[0].type).with_lanes(lanes), *texts)
        self.define(result, as_held(b, result.type, lanes, computed), lanes)

    # ---- walking
    def emit_block(self, block: Block) -> Sequence[SSAValue]:
        """Emit the ops of a block; returns what its terminator yields."""
        for op in block.ops:
            if isinstance(op, YieldOp):
                return op.values
            emitter = EMITTERS.get(type(op))
            if emitter is None:
                raise UnsupportedError(f"{op.name} has no emitter for native code", op=op.name)
            emitter(self, op)
        return ()


def emit_kernel(module: ModuleText, kernel: KernelFuncOp, name: str) -> str:
    """Emit a kernel as function `name`; returns its text, which holds the name only where it is defined."""
    builder = FunctionBuilder(module, name, [(PTR, "args"), (I64, "chunk"), (I64, "chunks")], I64, linkage="internal")
    emitter = KernelEmitter(builder, on_failure=_leave_shown)
    for number, argument in enumerate(kernel.body.block.args):
        slot = builder.gep(I64, "%args", str(number))
        ty = PTR if isinstance(argument.type, BufferType) else scalar_type(argument.type)
        emitter.define(argument, builder.load(ty, slot, align=8), 0)
    emitter.emit_block(kernel.body.block)
    builder.emit("ret i64 0")
    builder.finish()
    return module.functions[name]


def _leave_shown(e: KernelEmitter, failure: int, shown: Sequence[str]) -> None:
    """A kernel leaves what its failure shows in front of its arguments, which other chunks may still read."""
    for k, text in enumerate(shown[:3]):
        e.builder.store(I64, text, e.builder.gep(I64, "%args", str(k - 3)), 8)


# ---- structure


@emits(LoopOp)
def _loop(e: KernelEmitter, op: LoopOp) -> None:
    lower, upper = e.scalar(op.lower), e.scalar(op.upper)
    if op.parallel is not None and e.split_outermost and not op.initial:
        lower, upper = _chunk(e, lower, upper)
    outer_split, e.split_outermost = e.split_outermost, False
    if op.vector is not None and not e.lanes:
        results = _vector_loop(e, op, lower, upper)
    else:
        results = _plain_loop(e, op, lower, upper, [e.text(v) for v in op.initial])
    e.split_outermost = outer_split
    for result, text in zip(op.results, results, strict=True):
        e.define(result, text)


def _chunk(e: KernelEmitter, lower: str, upper: str) -> tuple[str, str]:
    """The chunk's part of the range. Iterations are independent, so the number of chunks changes no result."""
    b = e.builder
    extent = b.binary("sub", I64, upper, lower)
    whole = b.icmp("eq", I64, "%chunks", "1")

    def part() -> list[str]:
        per = b.binary("udiv", I64, b.binary("add", I64, extent, b.binary("sub", I64, "%chunks", "1")), "%chunks")
        start = b.binary("add", I64, lower, b.binary("mul", I64, per, "%chunk"))
        end = b.binary("add", I64, start, per)
        start = b.intrinsic("llvm.smin", I64, [(I64, start), (I64, upper)])
        end = b.intrinsic("llvm.smin", I64, [(I64, end), (I64, upper)])
        return [start, end]

    bounds = b.when(whole, lambda: [lower, upper], part, [I64, I64])
    return bounds[0], bounds[1]


def _static_extent(lower: str, upper: str) -> int | None:
    """The number of steps of 1 between two bounds, where both are numbers."""
    if lower.startswith("%") or upper.startswith("%"):
        return None
    return max(0, int(upper) - int(lower))


def _turns(
    b: FunctionBuilder,
    bounds: tuple[str, str],
    step: int,
    body: Callable[[str, list[str]], list[str]],
    carried: Sequence[tuple[LType, str]],
) -> list[str]:
    """A loop; nothing, or its body alone, where it is known to have no turn or one."""
    extent = _static_extent(*bounds)
    turns = None if extent is None else -(-extent // step)
    if turns == 0:
        return [text for _, text in carried]
    if turns == 1:
        return body(bounds[0], [text for _, text in carried])
    return b.loop(bounds[0], bounds[1], str(step), body, carried)


def _plain_loop(e: KernelEmitter, op: LoopOp, lower: str, upper: str, initial: Sequence[str]) -> list[str]:
    """One iteration at a time; inside a vector loop the carried values are vectors."""
    block = op.body.block
    types = [e.type_of(v) for v in op.initial]

    def body(index: str, carried: list[str]) -> list[str]:
        e.values[block.args[0]] = Value(index, I64)
        for argument, text in zip(block.args[1:], carried, strict=True):
            e.define(argument, text)
        return [e.text(v) for v in e.emit_block(block)]

    return _turns(e.builder, (lower, upper), op.step.value.data, body, list(zip(types, initial, strict=True)))


def _vector_loop(e: KernelEmitter, op: LoopOp, lower: str, upper: str) -> list[str]:
    """Whole vectors first, then one element at a time; reductions keep partial results per lane."""
    b = e.builder
    block = op.body.block
    lanes = b.target.lanes()
    kinds = op.kinds
    initial = [e.scalar(v) for v in op.initial]
    scalars = [scalar_type(v.type) for v in op.initial]
    extent = _static_extent(lower, upper)
    if extent is not None and extent < lanes:
        return _plain_loop(e, op, lower, upper, initial)
    unroll = 4 if kinds and _is_light(block) and (extent is None or extent >= 4 * lanes) else 1

    def lane_body(index: str, carried: list[str]) -> list[str]:
        e.lanes = lanes
        e.values[block.args[0]] = Value(index, I64, "1")
        for argument, text in zip(block.args[1:], carried, strict=True):
            e.define(argument, text)
        results = [e.text(v) for v in e.emit_block(block)]
        e.lanes = 0
        return results

    def group(index: str, carried: list[str]) -> list[str]:
        out: list[str] = []
        width = len(kinds)
        for part in range(unroll):
            at = index if part == 0 else fold(b, "add", index, str(part * lanes))
            out += lane_body(at, carried[part * width : (part + 1) * width])
        return out

    wide = [ty.with_lanes(lanes) for ty in scalars]
    neutral = [f"splat ({ty} {identity(kind, ty)})" for kind, ty in zip(kinds, scalars, strict=True)]
    carried = list(zip(wide, neutral, strict=True))
    at = lower
    if unroll > 1:
        end = _whole_groups(b, at, upper, lanes * unroll)
        sums = _turns(b, (at, end), lanes * unroll, group, carried * unroll)
        partial: list[str] = []
        for k, kind in enumerate(kinds):
            total = sums[k]
            for part in range(1, unroll):
                total = combine(b, kind, wide[k], total, sums[part * len(kinds) + k])
            partial.append(total)
        at = end
        carried = list(zip(wide, partial, strict=True))
    end = _whole_groups(b, at, upper, lanes)
    sums = _turns(b, (at, end), lanes, lane_body, carried)
    totals = [
        combine(b, kind, ty, start, reduce_lanes(b, kind, vector_type, total))
        for kind, ty, start, vector_type, total in zip(kinds, scalars, initial, wide, sums, strict=True)
    ]
    return _plain_loop(e, op, end, upper, totals)


def _whole_groups(b: FunctionBuilder, lower: str, upper: str, group: int) -> str:
    """The end of the whole groups that fit between the bounds."""
    known = _static_extent(lower, upper)
    if known is not None:
        return str(int(lower) + known // group * group)
    extent = b.binary("sub", I64, upper, lower)
    positive = b.intrinsic("llvm.smax", I64, [(I64, extent), (I64, "0")])
    return b.binary("add", I64, lower, b.binary("and", I64, positive, str(-group)))


def _is_light(block: Block) -> bool:
    """Whether the body is short enough to be repeated."""
    return sum(1 for _ in block.ops) <= 12 and not any(op.regions for op in block.ops)


@emits(IfOp)
def _if(e: KernelEmitter, op: IfOp) -> None:
    condition = e.scalar(op.condition)
    types = [e.type_of(r) for r in op.results]

    def branch(block: Block) -> Callable[[], list[str]]:
        return lambda: [e.text(v) for v in e.emit_block(block)]

    results = e.builder.when(condition, branch(op.then_region.block), branch(op.else_region.block), types)
    for result, text in zip(op.results, results, strict=True):
        e.define(result, text)


@emits(RequireOp)
def _require(e: KernelEmitter, op: RequireOp) -> None:
    b = e.builder
    condition = e.values[op.condition]
    ok = condition.text
    if condition.is_varying:
        bits = b.cast("bitcast", condition.type, condition.text, LType(f"i{condition.type.lanes}"))
        ok = b.icmp("eq", LType(f"i{condition.type.lanes}"), bits, "-1")
    failure = op.failure.value.data
    shown = [e.values[v].text for v in op.shown if e.values[v].is_uniform]

    def bail() -> None:
        if e.on_failure is not None:
            e.on_failure(e, failure, shown)
        b.emit(f"ret i64 {failure + 1}")

    with b.unless(ok, bail):
        pass


# ---- memory


@emits(LoadOp)
def _load(e: KernelEmitter, op: LoadOp) -> None:
    b = e.builder
    pointer = e.scalar(op.buffer)
    offset = e.values[op.offset]
    ty = scalar_type(op.result.type)
    stored = memory_type(ty)
    if offset.is_uniform:
        text = b.load(stored, b.gep(stored, pointer, offset.text))
        e.define(op.result, from_memory(b, ty, text), 0)
        return
    lanes = e.lanes
    wide = stored.with_lanes(lanes)
    if offset.stride == "1":
        text = load_lanes(b, wide, b.gep(stored, pointer, offset.text), e.mask)
    elif e.mask is not None:
        text = gather_lanes(b, wide, pointer, to_vector(b, offset, lanes), e.mask)
    else:
        text = "poison"
        for lane in range(lanes):
            element = b.load(stored, b.gep(stored, pointer, _lane_offset(e, offset, lane)))
            text = b.insert(wide, text, element, lane)
    e.define(op.result, from_memory(b, ty.with_lanes(lanes), text))


@emits(StoreOp)
def _store(e: KernelEmitter, op: StoreOp) -> None:
    b = e.builder
    pointer = e.scalar(op.buffer)
    offset = e.values[op.offset]
    ty = scalar_type(op.value.type)
    stored = memory_type(ty)
    if not e.lanes or (offset.is_uniform and e.uniform(op.value)):
        text = e.values[op.value].text
        b.store(stored, to_memory(b, ty, text), b.gep(stored, pointer, offset.text))
        return
    wide = ty.with_lanes(e.lanes)
    text = to_memory(b, wide, e.text(op.value))
    if offset.stride == "1":
        b.store(stored.with_lanes(e.lanes), text, b.gep(stored, pointer, offset.text))
        return
    for lane in range(e.lanes):
        element = b.extract(stored.with_lanes(e.lanes), text, lane)
        b.store(stored, element, b.gep(stored, pointer, _lane_offset(e, offset, lane)))


def _lane_offset(e: KernelEmitter, offset: Value, lane: int) -> str:
    b = e.builder
    if offset.is_varying:
        return b.extract(offset.type, offset.text, lane)
    if offset.is_uniform:
        return offset.text
    stride = offset.stride or "0"
    step = str(int(stride) * lane) if not stride.startswith("%") else b.binary("mul", I64, stride, str(lane))
    return add_index(b, Value(offset.text, I64), Value(step, I64)).text
