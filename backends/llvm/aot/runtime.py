"""The C interface of a compiled graph as LLVM IR: contexts, checks of inputs, threads, messages; libc is all it needs.

For a library `NAME` and each of its targets there are an entry (`NAME.TARGET.entry`, see `docs/native.md`) and a
*descriptor*, an array of 8-byte words in the order of `WORDS`. `NAME_select` gives that of the first target whose code
this CPU runs. A context is a block of the C library's allocator: the fields that the entry takes, then `OWN` words and
the text of the last failure, then the tables whose sizes the descriptor has.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sardonyx.backends.llvm.aot.cpu import supported, wanted_features
from sardonyx.backends.llvm.aot.weights import RuntimeText, WeightsFile, unmapped, weights_function
from sardonyx.backends.llvm.codegen.pool import MAX_CHUNKS, emit_pool, supports_pool
from sardonyx.backends.llvm.codegen.text import Target
from sardonyx.backends.llvm.interface import CONTEXT_FIELDS, OUT_OF_MEMORY, TOO_LARGE, EntrySizes, Failure, Port
from sardonyx.errors import ExecutionError

ABI = 2
WORDS = (
    "entry", "entry_py", "slots", "places", "constants", "offsets", "metadata", "metadata_bytes", "failures",
    "failure_count", "uses_pool", "launches", "target", "check",
)  # fmt: skip
OWN = ("descriptor", "status")
TEXT_BYTES = 1024
CHUNKS_PER_THREAD = 4
SHOWN_AT_MOST = 4
"""How many values a failure's text shows."""


@dataclass(frozen=True)
class Part:
    """What the library holds for one target: `name` is that of its symbols, `title` what the user calls it, `offsets`
    are the constants' places among the weights."""

    name: str
    title: str
    target: Target
    inputs: Sequence[Port]
    outputs: Sequence[Port]
    failures: Sequence[Failure]
    sizes: EntrySizes
    offsets: Sequence[int]
    metadata: bytes


def c_format(failure: Failure) -> tuple[bytes, list[int]]:
    """The failure's text as printf has it, and which shown values it takes in turn; as Python's error says it."""
    text = str(ExecutionError(failure.message, location=failure.location, op=failure.op))
    order: list[int] = []

    def place(found: re.Match[str]) -> str:
        if len(order) == SHOWN_AT_MOST:
            return "..."
        order.append(int(found[1]))
        return "%lld"

    return re.sub(r"\{([0-2])\}", place, text.replace("%", "%%")).encode() + b"\0", order


def input_failures(inputs: Sequence[Port]) -> list[tuple[int, int, int, Failure]]:
    """(input, axis, extent, failure) for every static extent: native code leaves these checks to whoever calls it."""
    out: list[tuple[int, int, int, Failure]] = []
    for number, port in enumerate(inputs):
        for axis, dim in enumerate(port.dims):
            if dim.static_value is not None:
                message = f"input '{port.name}' has {{0}} elements along axis {axis}, expected {dim.static_value}"
                out.append((number, axis, dim.static_value, Failure(message, None, None)))
    return out


def _check(name: str, checks: Sequence[tuple[int, int, int, Failure]], first: int) -> str:
    """`i64 name(ctx, inputs)`: the status of the first input whose extent is another one, else 0."""
    lines = [f"define internal i64 @{name}(ptr %ctx, ptr %inputs) nounwind {{", "entry:", "  br label %c0"]
    shown = CONTEXT_FIELDS.index("shown0")
    for k, (number, axis, extent, _) in enumerate(checks):
        lines += [
            f"c{k}:",
            f"  %r{k} = getelementptr inbounds i64, ptr %inputs, i64 {2 * number + 1}",
            f"  %d{k} = load ptr, ptr %r{k}, align 8",
            f"  %a{k} = getelementptr inbounds i64, ptr %d{k}, i64 {axis}",
            f"  %x{k} = load i64, ptr %a{k}, align 8",
            f"  %s{k} = icmp eq i64 %x{k}, {extent}",
            f"  br i1 %s{k}, label %c{k + 1}, label %b{k}",
            f"b{k}:",
            f"  %w{k} = getelementptr inbounds i64, ptr %ctx, i64 {shown}",
            f"  store i64 %x{k}, ptr %w{k}, align 8",
            f"  ret i64 {first + k + 1}",
        ]
    return "\n".join([*lines, f"c{len(checks)}:", "  ret i64 0", "}"])


def _part(text: RuntimeText, library: str, part: Part) -> str:
    """The descriptor of a target and what it points at; its symbol."""
    prefix = f"@{library}.{part.name}"
    checks = input_failures(part.inputs)
    failures = [*part.failures, *(c[3] for c in checks)]
    table: list[str] = []
    for failure in failures:
        template, order = c_format(failure)
        table += [
            f"ptr {text.string(template)}",
            *(f"i64 {n}" for n in order),
            *["i64 0"] * (SHOWN_AT_MOST - len(order)),
        ]
    text.words(f"{prefix}.failures", table)
    text.words(f"{prefix}.offsets", [f"i64 {o}" for o in part.offsets])
    text.functions.append(_check(f"{library}.{part.name}.check", checks, len(part.failures)))
    text.functions.append(supported(part.target, f"{library}.{part.name}.runs"))
    for entry in ("entry", "entry_py"):
        text.globals.append(f"declare hidden i64 {prefix}.{entry}(ptr)")
    values = {
        "entry": f"ptr {prefix}.entry", "entry_py": f"ptr {prefix}.entry_py", "slots": f"i64 {part.sizes.slots}",
        "places": f"i64 {part.sizes.places}", "constants": f"i64 {len(part.offsets)}",
        "offsets": f"ptr {prefix}.offsets", "metadata": f"ptr {text.string(part.metadata)}",
        "metadata_bytes": f"i64 {len(part.metadata)}", "failures": f"ptr {prefix}.failures",
        "failure_count": f"i64 {len(failures)}", "uses_pool": f"i64 {int(part.sizes.uses_pool)}",
        "launches": f"i64 {len(part.sizes.launches)}", "target": f"ptr {text.string(part.title.encode() + bytes(1))}",
        "check": f"ptr {prefix}.check",
    }  # fmt: skip
    return text.words(f"{prefix}.descriptor", [values[w] for w in WORDS])


def _select(library: str, parts: Sequence[Part]) -> str:
    lines = [f"define ptr @{library}_select() nounwind {{", "entry:", "  br label %t0"]
    for k, part in enumerate(parts):
        lines += [
            f"t{k}:",
            f"  %r{k} = call i1 @{library}.{part.name}.runs()",
            f"  br i1 %r{k}, label %y{k}, label %t{k + 1}",
            f"y{k}:",
            f"  ret ptr @{library}.{part.name}.descriptor",
        ]
    return "\n".join([*lines, f"t{len(parts)}:", "  ret ptr null", "}"])


def needs(parts: Sequence[Part]) -> str:
    """What a CPU lacks that runs none of the parts, as a message says it."""
    last = parts[-1]
    features = wanted_features(last.target)
    listed = f" ({', '.join(features)})" if features else ""
    names = ", ".join(p.title for p in parts)
    return f"the library was compiled for {names}: this CPU lacks what {last.title} has{listed}"


def emit_runtime(library: str, parts: Sequence[Part], weights: str | WeightsFile | None) -> str:
    """The module's text.

    `weights` is the path of a file whose bytes go into this module, '' where `weights_assembly` is assembled by itself,
    the file that is to be beside the library, or None where there are none.
    """
    text = RuntimeText()
    symbols = [_part(text, library, part) for part in parts]
    del symbols
    triple = parts[0].target.triple
    outputs = len(parts[0].outputs)
    text.functions += [_select(library, parts), weights_function(text, library, weights)]
    refusal = text.string((needs(parts) + "\0").encode())
    memory, no_weights = (text.string(m) for m in (b"out of memory\0", unmapped(weights)))
    large = text.string(b"a tensor of the run would be larger than 64 TiB\0")
    exhausted = text.string(b"the run needs more memory than there is\0")
    version = text.words(
        "@sardonyx_model",
        [f"i64 {ABI}", f"ptr @{library}_select", f"ptr @{library}.weights", f"ptr {refusal}", f"ptr {no_weights}"],
    )
    text.globals[-1] = text.globals[-1].replace(f"{version} = internal constant", f"{version} = weak constant")
    threads = supports_pool(parts[0].target)
    fields = {f: CONTEXT_FIELDS.index(f) for f in CONTEXT_FIELDS}
    own = len(CONTEXT_FIELDS)
    head = own + len(OWN) + TEXT_BYTES // 8
    words = {w: k for k, w in enumerate(WORDS)}

    def word(pointer: str, number: int, name: str) -> str:
        at = f"  %{name}.at = getelementptr inbounds i64, ptr {pointer}, i64 {number}"
        return f"{at}\n  %{name} = load i64, ptr %{name}.at, align 8"

    text.functions.append(f"""define ptr @{library}_create(ptr %error) nounwind {{
entry:
  %d = call ptr @{library}_select()
  %none = icmp eq ptr %d, null
  br i1 %none, label %refuse, label %bytes
refuse:
  %why = phi ptr [ {refusal}, %entry ], [ {no_weights}, %bytes ], [ {memory}, %make ]
  %silent = icmp eq ptr %error, null
  br i1 %silent, label %leave, label %tell
tell:
  store ptr %why, ptr %error, align 8
  br label %leave
leave:
  ret ptr null
bytes:
{word("%d", words["constants"], "constants")}
{word("%d", words["slots"], "slots")}
{word("%d", words["places"], "places")}
{word("%d", words["launches"], "launches")}
{word("%d", words["offsets"], "offsets.n")}
  %offsets = inttoptr i64 %offsets.n to ptr
  %base = call ptr @{library}.weights()
  %absent = icmp eq ptr %base, null
  %any = icmp ne i64 %constants, 0
  %unmapped = and i1 %absent, %any
  br i1 %unmapped, label %refuse, label %make
make:
  %two = shl i64 %slots, 1
  %at.slots = add i64 {head}, %constants
  %at.places = add i64 %at.slots, %two
  %at.times = add i64 %at.places, %places
  %all = add i64 %at.times, %launches
  %ctx = call ptr @calloc(i64 %all, i64 8)
  %full = icmp eq ptr %ctx, null
  br i1 %full, label %refuse, label %fill
fill:
  %table = getelementptr inbounds i64, ptr %ctx, i64 {head}
  %p.slots = getelementptr inbounds i64, ptr %ctx, i64 %at.slots
  %p.places = getelementptr inbounds i64, ptr %ctx, i64 %at.places
  %p.times = getelementptr inbounds i64, ptr %ctx, i64 %at.times
  %f.constants = getelementptr inbounds i64, ptr %ctx, i64 {fields["constants"]}
  store ptr %table, ptr %f.constants, align 8
  %f.slots = getelementptr inbounds i64, ptr %ctx, i64 {fields["slots"]}
  store ptr %p.slots, ptr %f.slots, align 8
  %f.places = getelementptr inbounds i64, ptr %ctx, i64 {fields["places"]}
  store ptr %p.places, ptr %f.places, align 8
  %f.times = getelementptr inbounds i64, ptr %ctx, i64 {fields["times"]}
  store ptr %p.times, ptr %f.times, align 8
  %f.d = getelementptr inbounds i64, ptr %ctx, i64 {own}
  store ptr %d, ptr %f.d, align 8
  br label %next
next:
  %k = phi i64 [ 0, %fill ], [ %k.next, %one ]
  %more = icmp ult i64 %k, %constants
  br i1 %more, label %one, label %done
one:
  %o.at = getelementptr inbounds i64, ptr %offsets, i64 %k
  %o = load i64, ptr %o.at, align 8
  %c = getelementptr inbounds i8, ptr %base, i64 %o
  %t.at = getelementptr inbounds i64, ptr %table, i64 %k
  store ptr %c, ptr %t.at, align 8
  %k.next = add i64 %k, 1
  br label %next
done:
  ret ptr %ctx
}}""")
    pool = "@pool_run" if threads else "null"
    want = "  call void @pool_want(i64 %helpers)" if threads else ""
    text.functions.append(f"""define void @{library}_set_threads(ptr %ctx, i64 %threads) nounwind {{
entry:
  %least = call i64 @llvm.smax.i64(i64 %threads, i64 1)
  %count = call i64 @llvm.smin.i64(i64 %least, i64 {MAX_CHUNKS})
  %helpers = sub i64 %count, 1
  %cut = mul i64 %count, {CHUNKS_PER_THREAD}
  %chunks = call i64 @llvm.smin.i64(i64 %cut, i64 {MAX_CHUNKS})
  %several = icmp sgt i64 %count, 1
  %run = select i1 %several, ptr {pool}, ptr null
  %f.pool = getelementptr inbounds i64, ptr %ctx, i64 {fields["pool"]}
  store ptr %run, ptr %f.pool, align 8
  %f.chunks = getelementptr inbounds i64, ptr %ctx, i64 {fields["chunks"]}
  store i64 %chunks, ptr %f.chunks, align 8
  %f.workers = getelementptr inbounds i64, ptr %ctx, i64 {fields["workers"]}
  store i64 %helpers, ptr %f.workers, align 8
  br i1 %several, label %start, label %end
start:
{want}
  br label %end
end:
  ret void
}}""")
    text.functions.append(f"""define i64 @{library}_run(ptr %ctx, ptr %inputs, ptr %outputs) nounwind {{
entry:
  %before = alloca [{max(1, outputs)} x ptr], align 8
  %f.d = getelementptr inbounds i64, ptr %ctx, i64 {own}
  %d = load ptr, ptr %f.d, align 8
  %f.status = getelementptr inbounds i64, ptr %ctx, i64 {own + 1}
{word("%d", words["check"], "check.n")}
  %check = inttoptr i64 %check.n to ptr
  %bad = call i64 %check(ptr %ctx, ptr %inputs)
  %fits = icmp eq i64 %bad, 0
  br i1 %fits, label %note, label %end
note:
  %n = phi i64 [ 0, %entry ], [ %n.next, %noted ]
  %n.more = icmp ult i64 %n, {outputs}
  br i1 %n.more, label %noted, label %go
noted:
  %n.two = shl i64 %n, 1
  %n.from = getelementptr inbounds i64, ptr %outputs, i64 %n.two
  %n.data = load ptr, ptr %n.from, align 8
  %n.to = getelementptr inbounds ptr, ptr %before, i64 %n
  store ptr %n.data, ptr %n.to, align 8
  %n.next = add i64 %n, 1
  br label %note
go:
  %f.in = getelementptr inbounds i64, ptr %ctx, i64 {fields["inputs"]}
  store ptr %inputs, ptr %f.in, align 8
  %f.out = getelementptr inbounds i64, ptr %ctx, i64 {fields["outputs"]}
  store ptr %outputs, ptr %f.out, align 8
{word("%d", words["entry"], "entry.n")}
  %function = inttoptr i64 %entry.n to ptr
  %status = call i64 %function(ptr %ctx)
  %good = icmp eq i64 %status, 0
  br i1 %good, label %end, label %undo
undo:
  %u = phi i64 [ 0, %go ], [ %u.next, %undone ]
  %u.more = icmp ult i64 %u, {outputs}
  br i1 %u.more, label %look, label %end
look:
  %u.two = shl i64 %u, 1
  %u.at = getelementptr inbounds i64, ptr %outputs, i64 %u.two
  %u.data = load ptr, ptr %u.at, align 8
  %u.was.at = getelementptr inbounds ptr, ptr %before, i64 %u
  %u.was = load ptr, ptr %u.was.at, align 8
  %u.same = icmp eq ptr %u.data, %u.was
  br i1 %u.same, label %undone, label %back
back:
  call void @free(ptr %u.data)
  store ptr %u.was, ptr %u.at, align 8
  br label %undone
undone:
  %u.next = add i64 %u, 1
  br label %undo
end:
  %result = phi i64 [ %bad, %entry ], [ 0, %go ], [ %status, %undo ]
  store i64 %result, ptr %f.status, align 8
  ret i64 %result
}}""")
    entry_words = 1 + SHOWN_AT_MOST
    loads: list[str] = []
    for k in range(SHOWN_AT_MOST):
        loads.append(word("%failure", 1 + k, f"which{k}"))
        loads.append(f"  %from{k} = getelementptr inbounds i64, ptr %shown, i64 %which{k}")
        loads.append(f"  %value{k} = load i64, ptr %from{k}, align 8")
    arguments = ", ".join(f"i64 %value{k}" for k in range(SHOWN_AT_MOST))
    text.functions.append(f"""define ptr @{library}_error(ptr %ctx) nounwind {{
entry:
  %f.d = getelementptr inbounds i64, ptr %ctx, i64 {own}
  %d = load ptr, ptr %f.d, align 8
{word("%ctx", own + 1, "status")}
  %buffer = getelementptr inbounds i64, ptr %ctx, i64 {own + len(OWN)}
  switch i64 %status, label %numbered [
    i64 0, label %nothing
    i64 {OUT_OF_MEMORY}, label %memory
    i64 {TOO_LARGE}, label %large
  ]
nothing:
  store i8 0, ptr %buffer, align 1
  ret ptr %buffer
memory:
  ret ptr {exhausted}
large:
  ret ptr {large}
numbered:
{word("%d", words["failure_count"], "count")}
  %number = sub i64 %status, 1
  %known = icmp ult i64 %number, %count
  br i1 %known, label %write, label %nothing
write:
{word("%d", words["failures"], "failures.n")}
  %failures = inttoptr i64 %failures.n to ptr
  %place = mul i64 %number, {entry_words}
  %failure = getelementptr inbounds i64, ptr %failures, i64 %place
  %format = load ptr, ptr %failure, align 8
  %shown = getelementptr inbounds i64, ptr %ctx, i64 {fields["shown0"]}
{chr(10).join(loads)}
  call i32 (ptr, i64, ptr, ...) @snprintf(ptr %buffer, i64 {TEXT_BYTES}, ptr %format, {arguments})
  ret ptr %buffer
}}""")
    text.functions.append(f"""define void @{library}_destroy(ptr %ctx) nounwind {{
entry:
  %nothing = icmp eq ptr %ctx, null
  br i1 %nothing, label %end, label %begin
begin:
  %f.d = getelementptr inbounds i64, ptr %ctx, i64 {own}
  %d = load ptr, ptr %f.d, align 8
{word("%d", words["slots"], "slots")}
  %f.arena = getelementptr inbounds i64, ptr %ctx, i64 {fields["arena"]}
  %arena = load ptr, ptr %f.arena, align 8
  call void @free(ptr %arena)
  %f.slots = getelementptr inbounds i64, ptr %ctx, i64 {fields["slots"]}
  %table = load ptr, ptr %f.slots, align 8
  br label %next
next:
  %k = phi i64 [ 0, %begin ], [ %k.next, %one ]
  %more = icmp ult i64 %k, %slots
  br i1 %more, label %one, label %kept
one:
  %two = shl i64 %k, 1
  %at = getelementptr inbounds i64, ptr %table, i64 %two
  %block = load ptr, ptr %at, align 8
  call void @free(ptr %block)
  %k.next = add i64 %k, 1
  br label %next
kept:
  %f.kept = getelementptr inbounds i64, ptr %ctx, i64 {fields["kept"]}
  %first = load ptr, ptr %f.kept, align 8
  br label %chain
chain:
  %chunk = phi ptr [ %first, %kept ], [ %previous, %link ]
  %last = icmp eq ptr %chunk, null
  br i1 %last, label %whole, label %link
link:
  %previous = load ptr, ptr %chunk, align 8
  call void @free(ptr %chunk)
  br label %chain
whole:
  call void @free(ptr %ctx)
  br label %end
end:
  ret void
}}""")
    text.functions.append(
        f"define void @{library}_free(ptr %data) nounwind {{\n  call void @free(ptr %data)\n  ret void\n}}"
    )
    declared = [
        "declare ptr @calloc(i64, i64)", "declare void @free(ptr)", "declare i32 @snprintf(ptr, i64, ptr, ...)",
        "declare i64 @llvm.smax.i64(i64, i64)", "declare i64 @llvm.smin.i64(i64, i64)",
    ]  # fmt: skip
    if threads:
        declared += ["declare hidden i64 @pool_run(ptr, ptr, i64, i64)", "declare hidden void @pool_want(i64)"]
    lines = [f'target triple = "{triple}"', *text.globals, *text.functions, *declared]
    return "\n".join(lines) + "\n"


def pool_text(library: str, target: Target) -> str | None:
    """The pool's module, its names made the library's; None where there is no pool."""
    if not supports_pool(target):
        return None
    text = str(emit_pool(target))
    return re.sub(r"^define (i64|void|ptr) @", r"define hidden \1 @", text, flags=re.MULTILINE)
