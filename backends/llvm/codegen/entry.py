"""Emits the plan as the one native entry, `i64 entry(ptr ctx)`, and what it needs around it.

`ctx` is laid out by `CONTEXT_FIELDS`. The entry returns 0, or 1 + the number of a failure, whose shown values it puts
into the context; `OUT_OF_MEMORY` and `TOO_LARGE` are failures of the entry itself. `entry_py(ptr ctx, ptr arrays)` is
the way in from Python: it takes PyObject pointers of arrays, checks dtype, rank, static extents and contiguity against
the tables in the context, and calls the entry; it returns `NEEDS_CARE` where anything differs, without having run.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.codegen import (
    contract as _contract,
    emit_loop as _emit_loop,
    emit_scalar as _emit_scalar,
    entropy as _entropy,
    nontemporal as _nontemporal,
    plan_flow as _plan_flow,
    spread as _spread,
    turn as _turn,
)
from sardonyx.backends.llvm.codegen.arena import emit_keep, emit_padded, emit_place, emit_support
from sardonyx.backends.llvm.codegen.emit import KernelEmitter, emit_kernel, emits
from sardonyx.backends.llvm.codegen.equal import form_of
from sardonyx.backends.llvm.codegen.plan_emitter import PlanEmitter, bail, byte_count, byte_size, count, field
from sardonyx.backends.llvm.codegen.pool import MAX_CHUNKS
from sardonyx.backends.llvm.codegen.python_call import (
    ARRAY_DATA,
    ARRAY_DESCR,
    ARRAY_DIMS,
    ARRAY_FLAGS,
    ARRAY_NDIM,
)
from sardonyx.backends.llvm.codegen.text import I1, I32, I64, PTR, FunctionBuilder, LType, ModuleText
from sardonyx.backends.llvm.codegen.widen import memory_type, scalar_type
from sardonyx.backends.llvm.codegen.work import CHUNK_WORK, estimate_work
from sardonyx.backends.llvm.interface import (
    AS_USUAL,
    NEEDS_CARE,
    OUT_OF_MEMORY,
    SHOWN,
    TOO_LARGE,
    EntryOptions,
    EntrySizes,
)
from sardonyx.backends.llvm.runtime.phases import advance
from sardonyx.dialects import locations
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.kernel.ops import (
    AllocOp,
    CopyOp,
    InputDimOp,
    InputOp,
    KernelFuncOp,
    LaunchOp,
    OutputOp,
    PlanOp,
    WeightOp,
)
from sardonyx.dialects.kernel.plan_ops import KeepOp

if TYPE_CHECKING:
    from sardonyx.backends.llvm.planner import Workspace

# They register their emitters.
_ = (_contract, _emit_loop, _emit_scalar, _entropy, _nontemporal, _plan_flow, _spread, _turn)


def emit_entry(
    module: ModuleText,
    kernels: Sequence[KernelFuncOp],
    plan: PlanOp,
    workspace: Workspace,
    options: EntryOptions = AS_USUAL,
) -> EntrySizes:
    """Emit all kernels (equal ones once) and the entry.

    Kernels are compared by their ops, then by their emitted text, which holds their name only where they are defined.
    """
    by_form: dict[Hashable, str] = {}
    by_text: dict[str, str] = {}
    symbols: dict[str, str] = {}
    for number, kernel in enumerate(kernels):
        advance(number, len(kernels))
        name, form = kernel.sym_name.data, form_of(kernel)
        if form not in by_form:
            text = emit_kernel(module, kernel, "kernel.candidate")
            del module.functions["kernel.candidate"]
            if text not in by_text:
                by_text[text] = name
                module.functions[name] = text.replace("@kernel.candidate(", f"@{name}(", 1)
            by_form[form] = by_text[text]
        symbols[name] = by_form[form]
    words = max((len(op.args) for op in plan.walk() if isinstance(op, LaunchOp)), default=0)
    emit_support(module)
    builder = FunctionBuilder(module, "entry", [(PTR, "ctx")], I64)
    for name in ("inputs", "outputs", "constants", "slots", "places"):
        builder.emit(f"%{name}.at = getelementptr inbounds i64, ptr %ctx, i64 {field(name)}")
        builder.emit(f"%{name} = load ptr, ptr %{name}.at, align 8")
    # A kernel leaves what its failure shows in front of its arguments.
    builder.emit(f"%frame = alloca [{words + SHOWN} x i64], align 8")
    builder.emit(f"%args = getelementptr inbounds i64, ptr %frame, i64 {SHOWN}")
    builder.emit(f"%pool = load ptr, ptr {builder.gep(I64, '%ctx', field('pool'))}, align 8")
    builder.emit(f"%pool.chunks = load i64, ptr {builder.gep(I64, '%ctx', field('chunks'))}, align 8")
    builder.emit(f"%pool.workers = load i64, ptr {builder.gep(I64, '%ctx', field('workers'))}, align 8")
    count(builder, "entries", 1)
    emitter = PlanEmitter(builder, on_failure=_show)
    emitter.symbols = symbols
    emitter.kernels = {kernel.sym_name.data: kernel for kernel in kernels}
    emitter.options = options
    emitter.launches, emitter.nodes = [], []
    emitter.workspace = workspace
    emitter.sizes = {}
    if any(isinstance(op, KeepOp) for op in plan.walk()):
        emit_keep(module)
        builder.call("sx.forget", "void", [(PTR, builder.gep(I64, "%ctx", field("kept")))])
    _emit_early(emitter, plan)
    emitter.emit_ops([op for op in plan.body.block.ops if op not in workspace.early or isinstance(op, AllocOp)])
    count(builder, "kernels", sum(1 for op in plan.body.block.ops if isinstance(op, LaunchOp)))
    builder.emit("ret i64 0")
    builder.finish()
    places = 0 if workspace.size is not None else 1 + 3 * len(workspace.spans)
    functions = tuple(by_text.values())
    return EntrySizes(
        workspace.late, places, words, emitter.uses_pool, tuple(emitter.launches), tuple(emitter.nodes), functions
    )


def _show(e: KernelEmitter, failure: int, shown: Sequence[str]) -> None:
    for k, text in enumerate(shown[:3]):
        e.builder.store(I64, text, e.builder.gep(I64, "%ctx", field(f"shown{k}")), 8)


def _emit_early(e: PlanEmitter, plan: PlanOp) -> None:
    """What depends on the inputs' extents alone, and then the arena for all buffers that do."""
    b, workspace = e.builder, e.workspace
    e.emit_ops([op for op in plan.body.block.ops if op in workspace.early and not isinstance(op, AllocOp)])
    if not workspace.members or e.options.separate:
        return
    total = str(workspace.size)
    if workspace.size is None:
        for slot, members in enumerate(workspace.members):
            size = "0"
            for op in members:
                e.sizes[op] = byte_size(e, list(op.extents), memory_type(scalar_type(op.result.type.element)))
                bytes_, ok = e.sizes[op]
                usable = bytes_ if ok is None else b.select(I64, ok, bytes_, "0")
                size = usable if size == "0" else b.intrinsic("llvm.umax", I64, [(I64, size), (I64, usable)])
            b.store(I64, emit_padded(b, size), b.gep(I64, "%places", str(1 + slot)), 8)
        emit_place(b.module)
        spans = b.module.constant(I64, [at for span in workspace.spans for at in span])
        count = str(len(workspace.spans))
        total = b.call("sx.place", I64, [(PTR, "%places"), (I64, count), (PTR, spans)])
    arena = b.call("sx.slot", PTR, [(PTR, b.gep(I64, "%ctx", field("arena"))), (I64, total)])
    bail(b, b.icmp("ne", PTR, arena, "null"), OUT_OF_MEMORY)
    b.emit(f"%arena = getelementptr i8, ptr {arena}, i64 0")


@emits(InputOp)
def _input(e: KernelEmitter, op: InputOp) -> None:
    b = e.builder
    e.define(op.result, b.load(PTR, b.gep(I64, "%inputs", str(2 * op.number.value.data)), 8))


@emits(InputDimOp)
def _input_dim(e: KernelEmitter, op: InputDimOp) -> None:
    b = e.builder
    dims = b.load(PTR, b.gep(I64, "%inputs", str(2 * op.number.value.data + 1)), 8)
    e.define(op.result, b.load(I64, b.gep(I64, dims, str(op.axis.value.data)), 8))


@emits(WeightOp)
def _weight(e: KernelEmitter, op: WeightOp) -> None:
    b = e.builder
    e.define(op.result, b.load(PTR, b.gep(I64, "%constants", str(op.number.value.data)), 8))


@emits(OutputOp)
def _output(e: PlanEmitter, op: OutputOp) -> None:
    b = e.builder
    element = memory_type(scalar_type(op.result.type.element))
    size = byte_count(e, list(op.extents), element)
    record = b.gep(I64, "%outputs", str(2 * op.number.value.data))
    dims = b.load(PTR, b.gep(I64, record, "1"), 8)
    for axis, extent in enumerate(op.extents):
        b.store(I64, e.scalar(extent), b.gep(I64, dims, str(axis)), 8)
    if e.options.separate:
        block = e.allocate(-1 - op.number.value.data, size)
        b.store(PTR, block, record, 8)
    else:
        block = b.call("sx.output", PTR, [(PTR, record), (I64, size)])
    bail(b, b.icmp("ne", PTR, block, "null"), OUT_OF_MEMORY)
    e.define(op.result, block)


@emits(AllocOp)
def _alloc(e: PlanEmitter, op: AllocOp) -> None:
    b = e.builder
    slot = op.slot.value.data if op.slot is not None else 0
    if e.options.separate:
        size = byte_count(e, list(op.extents), memory_type(scalar_type(op.result.type.element)))
        block = e.allocate(e.buffers, size)
        e.buffers += 1
    elif op.late is not None:
        size = byte_count(e, list(op.extents), memory_type(scalar_type(op.result.type.element)))
        block = b.call("sx.slot", PTR, [(PTR, b.gep(I64, "%slots", str(2 * slot))), (I64, size)])
    else:
        if op in e.sizes and e.sizes[op][1] is not None:
            bail(b, str(e.sizes[op][1]), TOO_LARGE)
        offset = None if op.offset is None else str(op.offset.value.data)
        if offset is None:
            at = b.gep(I64, "%places", str(1 + 2 * len(e.workspace.spans) + slot))
            offset = b.load(I64, at, 8)
        e.define(op.result, b.gep("i8", "%arena", offset))
        return
    bail(b, b.icmp("ne", PTR, block, "null"), OUT_OF_MEMORY)
    e.define(op.result, block)


@emits(CopyOp)
def _copy(e: KernelEmitter, op: CopyOp) -> None:
    b = e.builder
    b.module.declare("llvm.memcpy.p0.p0.i64", "void", ["ptr", "ptr", "i64", "i1 immarg"])
    b.emit(
        f"call void @llvm.memcpy.p0.p0.i64(ptr {e.scalar(op.target)}, ptr {e.scalar(op.source)}, "
        f"i64 {e.scalar(op.bytes)}, i1 false)"
    )


@emits(LaunchOp)
def _launch(e: PlanEmitter, op: LaunchOp) -> None:
    b = e.builder
    for number, argument in enumerate(op.args):
        ty = scalar_type(argument.type)
        b.store(ty, e.scalar(argument), b.gep(I64, "%args", str(number)), 8)
    symbol = e.symbols[op.callee.string_value()]
    number = str(len(e.launches))
    b.store(I64, number, b.gep(I64, "%ctx", field("launch")), 8)
    e.launches.append(op.callee.string_value())
    e.nodes.append(locations.describe(op.location) or "")
    if not isinstance(op.parent_op(), PlanOp):  # those of the plan itself are counted at its end
        count(b, "kernels", 1)
    before = _cycles(b) if e.options.timed else None
    status = _run_kernel(e, op, symbol)
    if before is not None:
        took = b.binary("sub", I64, _cycles(b), before)
        at = b.gep(I64, b.load(PTR, b.gep(I64, "%ctx", field("times")), 8), number)
        b.store(I64, b.binary("add", I64, b.load(I64, at, 8), took), at, 8)
    ok, bad = b.fresh_label("ran"), b.fresh_label("failed")
    b.emit(f"br i1 {b.icmp('eq', I64, status, '0')}, label %{ok}, label %{bad}")
    b.start_block(bad)
    for k in range(SHOWN):
        b.store(I64, b.load(I64, b.gep(I64, "%frame", str(k)), 8), b.gep(I64, "%ctx", field(f"shown{k}")), 8)
    b.emit(f"ret i64 {status}")
    b.start_block(ok)


def _cycles(b: FunctionBuilder) -> str:
    b.module.declare("llvm.readcyclecounter", I64, [])
    return b.op("call i64 @llvm.readcyclecounter()")


def _run_kernel(e: PlanEmitter, op: LaunchOp, symbol: str) -> str:
    """Call the kernel, by the pool where there is one and the work is worth its cost; gives the status."""
    b = e.builder
    alone = [(PTR, "%args"), (I64, "0"), (I64, "1")]
    kernel = e.kernels[op.callee.string_value()]
    texts = [e.value(a).text for a in op.args]
    arguments: dict[SSAValue, str] = dict(zip(kernel.body.block.args, texts, strict=True))
    estimate = estimate_work(b, kernel, arguments)
    if estimate is None:
        return b.call(symbol, I64, alone)
    work, iterations = estimate
    if not work.startswith("%") and int(work) < e.options.pool_from:
        return b.call(symbol, I64, alone)
    e.uses_pool = True
    worth = b.icmp("sge", I64, work, str(e.options.pool_from))
    there = b.icmp("ne", PTR, "%pool", "null")
    several = b.icmp("sgt", I64, iterations, "1")
    go = b.binary("and", I1, b.binary("and", I1, worth, there), several)

    def together() -> list[str]:
        chunks = b.intrinsic("llvm.smax", I64, [(I64, "%pool.chunks"), (I64, _pieces(b, work))])
        chunks = b.intrinsic("llvm.smin", I64, [(I64, chunks), (I64, iterations)])
        return [b.op(f"call i64 %pool(ptr @{symbol}, ptr %args, i64 {chunks}, i64 %pool.workers)")]

    return b.when(go, together, lambda: [b.call(symbol, I64, alone)], [I64])[0]


def _pieces(b: FunctionBuilder, work: str) -> str:
    """Into how many chunks that much work is cut, however few the threads: none so large that the others wait long for
    whoever got the last."""
    if not work.startswith("%"):
        return str(min(MAX_CHUNKS, int(work) // CHUNK_WORK))
    return b.intrinsic("llvm.smin", I64, [(I64, b.binary("udiv", I64, work, str(CHUNK_WORK))), (I64, str(MAX_CHUNKS))])


def emit_python_entry(module: ModuleText, inputs: Sequence[tuple[Dim, ...]], outputs: int) -> None:
    """`i64 entry_py(ptr ctx, ptr arrays)` on PyObject pointers of NumPy arrays, the inputs and then the outputs.

    `inputs` are the extents that the graph declares. A null output is allocated by native code.
    """
    b = FunctionBuilder(module, "entry_py", [(PTR, "ctx"), (PTR, "arrays")], I64)
    tables = {name: b.load(PTR, b.gep(I64, "%ctx", field(name)), 8) for name in ("inputs", "outputs", "dtypes")}
    for number, dims in enumerate(inputs):
        array = b.load(PTR, b.gep(PTR, "%arrays", str(number)), 8)

        def read(ty: LType, offset: int, array: str = array) -> str:
            return b.load(ty, b.gep("i8", array, str(offset)), 8 if ty != I32 else 4)

        wanted = b.load(PTR, b.gep(PTR, tables["dtypes"], str(number)), 8)
        same = b.icmp("eq", PTR, read(PTR, ARRAY_DESCR), wanted)
        rank = b.icmp("eq", I32, read(I32, ARRAY_NDIM), str(len(dims)))
        flags = b.binary("and", I32, read(I32, ARRAY_FLAGS), "1")  # NPY_ARRAY_C_CONTIGUOUS
        ok = b.binary("and", I1, b.binary("and", I1, same, rank), b.icmp("ne", I32, flags, "0"))
        bail(b, ok, NEEDS_CARE)
        extents = read(PTR, ARRAY_DIMS)
        for axis, dim in enumerate(dims):
            if dim.static_value is not None:
                actual = b.load(I64, b.gep(I64, extents, str(axis)), 8)
                bail(b, b.icmp("eq", I64, actual, str(dim.static_value)), NEEDS_CARE)
        b.store(PTR, read(PTR, ARRAY_DATA), b.gep(I64, tables["inputs"], str(2 * number)), 8)
        b.store(PTR, extents, b.gep(I64, tables["inputs"], str(2 * number + 1)), 8)
    for number in range(outputs):
        record = b.gep(I64, tables["outputs"], str(2 * number))
        array = b.load(PTR, b.gep(PTR, "%arrays", str(len(inputs) + number)), 8)
        data = b.when(
            b.icmp("eq", PTR, array, "null"),
            lambda: ["null"],
            lambda array=array: [b.load(PTR, b.gep("i8", array, str(ARRAY_DATA)), 8)],
            [PTR],
        )
        b.store(PTR, data[0], record, 8)
    b.emit(f"ret i64 {b.call('entry', I64, [(PTR, '%ctx')])}")
    b.finish()
