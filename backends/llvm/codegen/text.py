"""Builds LLVM IR as text: types, constants, instructions, structured loops.

This room knows LLVM's syntax and nothing of kernels. SSA values are plain strings (`%12`, `true`, a literal):
about 0.4 µs an instruction, where llvmlite's IR builder takes 8 µs (research: code generation).
A value's type travels beside it as an `LType`, scalar (`lanes == 0`) or vector.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

_BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "half": 16, "bfloat": 16, "float": 32, "double": 64}
_MANGLED = {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64", "ptr": "p0"}


@dataclass(frozen=True, slots=True)
class LType:
    """An LLVM type: a scalar, or a fixed vector of `lanes` scalars."""

    scalar: str
    lanes: int = 0

    def __str__(self) -> str:
        return f"<{self.lanes} x {self.scalar}>" if self.lanes else self.scalar

    @property
    def bits(self) -> int:
        """The width of one lane in bits."""
        return 64 if self.scalar == "ptr" else _BITS[self.scalar]

    @property
    def bytes(self) -> int:
        """The size of one lane in memory, in bytes (i1 takes one)."""
        return (self.bits + 7) // 8

    @property
    def is_float(self) -> bool:
        return self.scalar in ("half", "bfloat", "float", "double")

    def with_scalar(self, scalar: str) -> LType:
        return LType(scalar, self.lanes)

    def with_lanes(self, lanes: int) -> LType:
        return LType(self.scalar, lanes)

    @property
    def int_of_width(self) -> LType:
        """The integer type of the same width and lanes."""
        return LType(f"i{self.bits}", self.lanes)

    @property
    def mask(self) -> LType:
        """The i1 type of the same lanes."""
        return LType("i1", self.lanes)

    @property
    def mangled(self) -> str:
        """The suffix that an overloaded intrinsic's name bears, such as `v8f32`."""
        base = _MANGLED.get(self.scalar, self.scalar)
        return f"v{self.lanes}{base}" if self.lanes else base


I1, I8, I16, I32, I64 = LType("i1"), LType("i8"), LType("i16"), LType("i32"), LType("i64")
F16, BF16, F32, F64, PTR = LType("half"), LType("bfloat"), LType("float"), LType("double"), LType("ptr")


def float_literal(scalar: str, value: float) -> str:
    """The exact LLVM literal of a Python float rounded to the scalar type (nearest even)."""
    if scalar == "double":
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"
    if scalar == "float":
        try:
            single = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            single = math.copysign(math.inf, value)
        return f"0x{struct.unpack('<Q', struct.pack('<d', single))[0]:016X}"
    if scalar == "half":
        try:
            bits = struct.unpack("<H", struct.pack("<e", value))[0]
        except OverflowError:
            bits = 0x7C00 if value > 0 else 0xFC00
        return f"0xH{bits:04X}"
    if scalar == "bfloat":
        if math.isnan(value):
            return "0xR7FC0"
        try:
            bits = struct.unpack("<I", struct.pack("<f", value))[0]
        except OverflowError:
            bits = 0x7F800000 if value > 0 else 0xFF800000
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
        return f"0xR{bits:04X}"
    raise ValueError(f"{scalar} is no floating-point type")


def literal(ty: LType, value: float | int | bool) -> str:
    """The literal of a number in a type; a splat for a vector."""
    if ty.is_float:
        text = float_literal(ty.scalar, float(value))
    elif ty.scalar == "i1":
        text = "true" if value else "false"
    else:
        text = str(int(value))
    return f"splat ({ty.scalar} {text})" if ty.lanes else text


@dataclass(frozen=True)
class Target:
    """What the generator must know of a machine; `cpu`, `features` and `triple` go to LLVM as they are."""

    triple: str
    cpu: str
    features: str
    vector_bits: int
    registers: int
    has_fma: bool

    def lanes(self, bits: int = 32) -> int:
        """How many lanes of that width fill one vector register."""
        return max(1, self.vector_bits // bits)


@dataclass
class ModuleText:
    """A module under construction: functions, the intrinsics and symbols they declare, and constant tables."""

    target: Target
    functions: dict[str, str] = field(default_factory=dict)
    declarations: dict[str, str] = field(default_factory=dict)
    globals: dict[str, str] = field(default_factory=dict)

    def declare(self, name: str, ret: LType | str, args: Sequence[LType | str], attributes: str = "") -> None:
        """Declare an external function or an intrinsic once."""
        if name not in self.declarations and name not in self.functions:
            self.declarations[name] = f"declare {ret} @{name}({', '.join(map(str, args))}) {attributes}".rstrip()

    def constant(self, ty: LType, values: Sequence[float | int], align: int = 64) -> str:
        """A private constant array; returns its symbol (`@table.0`). Equal tables are shared."""
        body = ", ".join(f"{ty} {literal(ty, v)}" for v in values)
        text = f"private unnamed_addr constant [{len(values)} x {ty}] [{body}], align {align}"
        for name, known in self.globals.items():
            if known == text:
                return f"@{name}"
        name = f"table.{len(self.globals)}"
        self.globals[name] = text
        return f"@{name}"

    def __str__(self) -> str:
        parts = [f'target triple = "{self.target.triple}"', ""]
        parts += [f"@{name} = {text}" for name, text in self.globals.items()]
        parts += list(self.functions.values())
        parts += [text for name, text in self.declarations.items() if name not in self.functions]
        return "\n".join(parts) + "\n"


class FunctionBuilder:
    """Builds one function. Blocks are structured: `loop`, `branch`; phis are made by them."""

    def __init__(
        self,
        module: ModuleText,
        name: str,
        args: Sequence[tuple[LType | str, str]],
        ret: LType | str = "void",
        attributes: str = "nounwind",
        linkage: str = "",
        arg_attributes: Sequence[str] = (),
    ) -> None:
        self.module = module
        self.target = module.target
        self.name = name
        self.ret = ret
        self.lines: list[str] = []
        self.counter = 0
        self.block = "entry"
        padded = list(arg_attributes) + [""] * (len(args) - len(arg_attributes))
        signature = ", ".join(
            f"{ty} {attr + ' ' if attr else ''}%{arg}" for (ty, arg), attr in zip(args, padded, strict=True)
        )
        self.header = f"define {linkage + ' ' if linkage else ''}{ret} @{name}({signature}) {attributes} {{\nentry:"

    # ---- raw text
    def emit(self, text: str) -> None:
        """Append one instruction that has no result."""
        self.lines.append(f"  {text}")

    def op(self, text: str) -> str:
        """Append one instruction and return its result's name."""
        name = self.fresh_name()
        self.lines.append(f"  {name} = {text}")
        return name

    def fresh_name(self) -> str:
        self.counter += 1
        return f"%v{self.counter}"

    def fresh_label(self, hint: str) -> str:
        self.counter += 1
        return f"{hint}.{self.counter}"

    def start_block(self, label: str) -> None:
        """Begin a block; the one before it must have been ended by a branch or a return."""
        self.lines.append(f"{label}:")
        self.block = label

    def finish(self) -> None:
        """Close the function and add it to the module."""
        self.module.functions[self.name] = "\n".join([self.header, *self.lines, "}"])

    # ---- values
    def const(self, ty: LType, value: float | int | bool) -> str:
        return literal(ty, value)

    def binary(self, opcode: str, ty: LType, a: str, b: str) -> str:
        return self.op(f"{opcode} {ty} {a}, {b}")

    def fadd(self, ty: LType, a: str, b: str) -> str:
        return self.op(f"fadd {ty} {a}, {b}")

    def fsub(self, ty: LType, a: str, b: str) -> str:
        return self.op(f"fsub {ty} {a}, {b}")

    def fmul(self, ty: LType, a: str, b: str) -> str:
        return self.op(f"fmul {ty} {a}, {b}")

    def fdiv(self, ty: LType, a: str, b: str) -> str:
        return self.op(f"fdiv {ty} {a}, {b}")

    def fma(self, ty: LType, a: str, b: str, c: str) -> str:
        """a*b + c, fused where the target fuses; without FMA `llvm.fma` would become a call of libm."""
        if self.target.has_fma:
            return self.intrinsic("llvm.fma", ty, [(ty, a), (ty, b), (ty, c)])
        return self.fadd(ty, self.fmul(ty, a, b), c)

    def fcmp(self, predicate: str, ty: LType, a: str, b: str) -> str:
        return self.op(f"fcmp {predicate} {ty} {a}, {b}")

    def icmp(self, predicate: str, ty: LType, a: str, b: str) -> str:
        return self.op(f"icmp {predicate} {ty} {a}, {b}")

    def select(self, ty: LType, condition: str, a: str, b: str) -> str:
        """Lane by lane; the condition is an i1 of the same lanes."""
        return self.op(f"select {ty.mask} {condition}, {ty} {a}, {ty} {b}")

    def cast(self, opcode: str, source: LType, value: str, result: LType) -> str:
        """`opcode` is LLVM's: bitcast, fptosi, sitofp, fpext, fptrunc, zext, sext, trunc …"""
        return self.op(f"{opcode} {source} {value} to {result}")

    def bitcast(self, source: LType, value: str, result: LType) -> str:
        return value if source == result else self.cast("bitcast", source, value, result)

    def splat(self, ty: LType, scalar: str) -> str:
        """Broadcast a scalar SSA value to all lanes of the vector type."""
        if not ty.lanes:
            return scalar
        one = self.op(f"insertelement {ty} poison, {ty.scalar} {scalar}, i64 0")
        return self.op(f"shufflevector {ty} {one}, {ty} poison, <{ty.lanes} x i32> zeroinitializer")

    def extract(self, ty: LType, vector: str, lane: int | str) -> str:
        return self.op(f"extractelement {ty} {vector}, i64 {lane}")

    def insert(self, ty: LType, vector: str, scalar: str, lane: int | str) -> str:
        return self.op(f"insertelement {ty} {vector}, {ty.scalar} {scalar}, i64 {lane}")

    def intrinsic(
        self, name: str, ret: LType, args: Sequence[tuple[LType, str]], suffix: str | None = None, flags: str = ""
    ) -> str:
        """Call an overloaded intrinsic; its name gets the mangled suffix of the result unless one is given."""
        mangled = f"{name}.{ret.mangled if suffix is None else suffix}" if suffix != "" else name
        self.module.declare(mangled, ret, [ty for ty, _ in args])
        operands = ", ".join(f"{ty} {value}" for ty, value in args)
        return self.op(f"call {flags + ' ' if flags else ''}{ret} @{mangled}({operands})")

    def call(self, name: str, ret: LType | str, args: Sequence[tuple[LType | str, str]]) -> str:
        """Call a function of the module, or one declared in it."""
        text = f"call {ret} @{name}({', '.join(f'{ty} {value}' for ty, value in args)})"
        if str(ret) == "void":
            self.emit(text)
            return ""
        return self.op(text)

    # ---- memory
    def gep(self, element: LType | str, base: str, index: str) -> str:
        return self.op(f"getelementptr inbounds {element}, ptr {base}, i64 {index}")

    def load(self, ty: LType, pointer: str, align: int | None = None, metadata: str = "") -> str:
        """`align` is in bytes; by default that of one lane, the only one that a user's buffer promises."""
        return self.op(f"load {ty}, ptr {pointer}, align {align or ty.bytes}{metadata}")

    def store(self, ty: LType, value: str, pointer: str, align: int | None = None) -> None:
        self.emit(f"store {ty} {value}, ptr {pointer}, align {align or ty.bytes}")

    def beyond(self, base: str, offset: str) -> str:
        """An address so many bytes further on, which may lie behind the end of what `base` points into."""
        return self.op(f"getelementptr i8, ptr {base}, i64 {offset}")

    def prefetch(self, pointer: str, locality: int, to_write: bool = False) -> None:
        """Have the line at an address, which need not be there, fetched into the first-level cache (locality 3) or the
        second (2)."""
        self.module.declare("llvm.prefetch.p0", "void", ["ptr", "i32 immarg", "i32 immarg", "i32 immarg"])
        self.emit(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 {int(to_write)}, i32 {locality}, i32 1)")

    def reserve(self, ty: LType, count: int) -> str:
        """Stack memory for `count` values of a type, for the whole function; returns its address."""
        name = f"%stack.{self.header.count('alloca')}"
        self.header += f"\n  {name} = alloca {ty}, i64 {count}, align 64"
        return name

    # ---- control
    def branch_to(self, label: str) -> None:
        self.emit(f"br label %{label}")

    def loop(
        self,
        lower: str,
        upper: str,
        step: str,
        body: Callable[[str, list[str]], Sequence[str]],
        carried: Sequence[tuple[LType, str]] = (),
    ) -> list[str]:
        """`for i in range(lower, upper, step)` on signed i64; `body(i, carried values)` returns the next ones."""
        before, head, inner, after = self.block, *(self.fresh_label(h) for h in ("head", "body", "after"))
        self.branch_to(head)
        self.start_block(head)
        at = len(self.lines)
        index, following = self.fresh_name(), self.fresh_name()
        names = [self.fresh_name() for _ in carried]
        inside = self.op(f"icmp slt i64 {index}, {upper}")
        self.emit(f"br i1 {inside}, label %{inner}, label %{after}")
        self.start_block(inner)
        results = list(body(index, names))
        self.emit(f"{following} = add nsw i64 {index}, {step}")
        end = self.block
        self.emit(f"br label %{head}")
        phis = [f"  {index} = phi i64 [ {lower}, %{before} ], [ {following}, %{end} ]"]
        for name, (ty, initial), result in zip(names, carried, results, strict=True):
            phis.append(f"  {name} = phi {ty} [ {initial}, %{before} ], [ {result}, %{end} ]")
        self.lines[at:at] = phis
        self.start_block(after)
        return names

    def when(
        self,
        condition: str,
        then: Callable[[], Sequence[str]],
        otherwise: Callable[[], Sequence[str]] | None = None,
        types: Sequence[LType] = (),
    ) -> list[str]:
        """A two-way branch; both sides return the values of `types`, which are joined by phis."""
        yes, no, join = (self.fresh_label(h) for h in ("then", "else", "join"))
        self.emit(f"br i1 {condition}, label %{yes}, label %{no}")
        self.start_block(yes)
        first = list(then())
        first_end = self.block
        self.branch_to(join)
        self.start_block(no)
        second = list(otherwise()) if otherwise else []
        second_end = self.block
        self.branch_to(join)
        self.start_block(join)
        return [
            self.op(f"phi {ty} [ {a}, %{first_end} ], [ {b}, %{second_end} ]")
            for ty, a, b in zip(types, first, second, strict=True)
        ]

    @contextmanager
    def unless(self, ok: str, bail: Callable[[], None]) -> Iterator[None]:
        """Leave the function through `bail` (which must return) where `ok` is false; go on otherwise."""
        bad, good = self.fresh_label("bad"), self.fresh_label("good")
        self.emit(f"br i1 {ok}, label %{good}, label %{bad}")
        self.start_block(bad)
        bail()
        self.start_block(good)
        yield


def host_target(features: str | None = None, cpu: str | None = None) -> Target:
    """This machine's target, or that of a CPU and feature string given (for tests of other vector widths)."""
    import llvmlite.binding as llvm

    name = cpu or llvm.get_host_cpu_name()
    if features is None:
        features = llvm.get_host_cpu_features().flatten() if cpu is None else ""
    return describe_target(llvm.get_process_triple(), name, features)


def describe_target(triple: str, cpu: str, features: str) -> Target:
    """Derive vector width, registers and FMA from the feature string (`+avx2,+fma,…`)."""
    on = {f[1:] for f in features.split(",") if f.startswith("+")}
    if triple.startswith(("aarch64", "arm64")):
        return Target(triple, cpu, features, 128, 32, True)
    if "avx512f" in on and "avx512vl" in on:
        return Target(triple, cpu, features, 512, 32, True)
    if "avx2" in on and "fma" in on:
        return Target(triple, cpu, features, 256, 16, True)
    return Target(triple, cpu, features, 128, 16, "fma" in on)
