"""Emits kernels: walks a `kernel.func` once and writes LLVM text, widening the bodies of `vector` loops.

Each op has an emitter in `EMITTERS`, registered by `@emits(Op)`; a user's op joins by the same decorator. A kernel's
LLVM function is `i64 @name(ptr args, i64 chunk, i64 chunks)`: `args` holds its buffers and extents, 8 bytes each, in
the order of the block's arguments; the outermost `parallel` loop runs the given chunk of its range. It returns 0, or
1 + the number of a failed requirement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from xdsl.ir import Block, Operation, SSAValue

from sardonyx.backends.llvm.codegen.memory import (
    fence_stores,
    fetch,
    gather_lanes,
    has_nontemporal,
    load_lanes,
    store_lanes,
    store_past_caches,
)
from sardonyx.backends.llvm.codegen.text import I64, PTR, FunctionBuilder, LType, ModuleText
from sardonyx.backends.llvm.codegen.widen import (
    Value,
    add_index,
    as_held,
    as_value,
    fold,
    from_memory,
    memory_type,
    scalar_type,
    to_memory,
    to_vector,
    value_type,
)
from sardonyx.backends.llvm.registries import EMITTERS, Emitter
from sardonyx.dialects.kernel.ops import (
    BufferType,
    IfOp,
    KernelFuncOp,
    LoadOp,
    RequireOp,
    StoreOp,
    YieldOp,
)
from sardonyx.errors import UnsupportedError


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

    `mask` is an i1 vector where some lanes stand beyond the end: they must not touch memory. `active` is how many lanes
    take part where those are the first ones, as in the rest of a vector loop.
    """

    builder: FunctionBuilder
    values: dict[SSAValue, Value] = field(default_factory=dict)
    lanes: int = 0
    mask: str | None = None
    active: str | None = None
    split_outermost: bool = True
    past: str | None = None
    """What the condition of stores that may go past the caches is known to be in the loop that is being emitted."""
    large: set[str] = field(default_factory=set)
    """Such conditions that only wait for the run to see how a buffer is aligned."""
    needs_fence: bool = False
    """Whether something was written past the caches, so that a fence must stand at the kernel's end."""
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
        return self.emit_ops(block.ops)

    def emit_ops(self, ops: Iterable[Operation]) -> Sequence[SSAValue]:
        """Emit ops in order; returns what a terminator among them yields."""
        for op in ops:
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
    if emitter.needs_fence:
        fence_stores(builder)
    builder.emit("ret i64 0")
    builder.finish()
    return module.functions[name]


def _leave_shown(e: KernelEmitter, failure: int, shown: Sequence[str]) -> None:
    """A kernel leaves what its failure shows in front of its arguments, which other chunks may still read."""
    for k, text in enumerate(shown[:3]):
        e.builder.store(I64, text, e.builder.gep(I64, "%args", str(k - 3)), 8)


# ---- structure


@emits(IfOp)
def _if(e: KernelEmitter, op: IfOp) -> None:
    condition = e.scalar(op.condition)
    if condition in ("true", "false"):
        taken = op.then_region if condition == "true" else op.else_region
        for result, value in zip(op.results, e.emit_block(taken.block), strict=True):
            e.values[result] = e.values[value]
        return
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
        met = condition.text
        if e.mask is not None:
            idle = b.binary("xor", condition.type, e.mask, "splat (i1 true)")
            met = b.binary("or", condition.type, met, idle)
        bits = b.cast("bitcast", condition.type, met, LType(f"i{condition.type.lanes}"))
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
        if op.ahead is not None and e.mask is None:
            fetch(b, stored, pointer, fold(b, "add", offset.text, str(op.ahead.value.data)))
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
    wide = stored.with_lanes(e.lanes)
    text = to_memory(b, ty.with_lanes(e.lanes), e.text(op.value))
    if offset.stride == "1":
        at = b.gep(stored, pointer, offset.text)
        _store_vector(e, wide, text, at, "false" if op.past is None else e.past or e.scalar(op.past))
        return
    if e.mask is not None and e.active is None:
        raise UnsupportedError("a store to places apart stands under a mask", op=op.name)
    if offset.is_uniform:  # the last iteration wins
        last = e.lanes - 1 if e.active is None else fold(b, "sub", e.active, "1")
        b.store(stored, b.extract(wide, text, last), b.gep(stored, pointer, offset.text))
        return
    # Lanes that take no part write where the first one does, which comes last.
    known = e.active is not None and not e.active.startswith("%")
    for lane in reversed(range(int(e.active or 0) if known else e.lanes)):
        b.store(stored, b.extract(wide, text, lane), b.gep(stored, pointer, _lane_offset(e, offset, lane)))


def _store_vector(e: KernelEmitter, wide: LType, text: str, at: str, past: str) -> None:
    """Consecutive elements, past the caches where the condition is true."""
    b = e.builder

    def stay() -> list[str]:
        store_lanes(b, wide, text, at, e.mask)
        return []

    def pass_by() -> list[str]:
        store_past_caches(b, wide, text, at)
        return []

    if past == "false" or e.mask is not None or not has_nontemporal(b.target):
        stay()
        return
    e.needs_fence = True
    if past == "true":
        pass_by()
    else:
        b.when(past, pass_by, stay)


def _lane_offset(e: KernelEmitter, offset: Value, lane: int) -> str:
    """The offset of a lane; of the first one for lanes that turn out to take no part."""
    own = _own_offset(e, offset, lane)
    if lane == 0 or e.active is None or not e.active.startswith("%"):
        return own
    b = e.builder
    return b.select(I64, b.icmp("sgt", I64, e.active, str(lane)), own, _own_offset(e, offset, 0))


def _own_offset(e: KernelEmitter, offset: Value, lane: int) -> str:
    b = e.builder
    if offset.is_varying:
        return b.extract(offset.type, offset.text, lane)
    stride = offset.stride or "0"
    step = str(int(stride) * lane) if not stride.startswith("%") else b.binary("mul", I64, stride, str(lane))
    return add_index(b, Value(offset.text, I64), Value(step, I64)).text
