"""Values during emission: what one SSA value of a kernel is, under the lanes of the loop being emitted.

Inside a `vector` loop every value is one of three: *uniform* (the same scalar for all lanes), *affine* (an index that
grows by a known stride from lane to lane), or *varying* (a vector). Loads look at their offset's form: an affine offset
of stride 1 is one vector load, a uniform one a scalar load, anything else one scalar load per lane.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IndexType, IntegerType
from xdsl.ir import Attribute

from sardonyx.backends.llvm.codegen.text import I64, FunctionBuilder, LType, literal
from sardonyx.dialects.kernel.ops import BufferType


@dataclass(frozen=True, slots=True)
class Value:
    """An emitted value: its text, its LLVM type, and for an affine index the stride from lane to lane.

    `type.lanes` is 0 for a uniform or affine value. `stride` is None for a uniform or varying one, else an SSA name or
    a decimal number.
    """

    text: str
    type: LType
    stride: str | None = None

    @property
    def is_uniform(self) -> bool:
        return self.stride is None and not self.type.lanes

    @property
    def is_affine(self) -> bool:
        return self.stride is not None

    @property
    def is_varying(self) -> bool:
        return self.type.lanes > 0


def scalar_type(attr: Attribute) -> LType:
    """The LLVM type that a scalar of the kernel level is held in: 16-bit floats as integers, since LLVM would hold them
    as float32 on a machine without instructions for them, and call its library to get them back."""
    ty = value_type(attr)
    return LType("i16") if ty.is_float and ty.bits == 16 else ty


def as_value(b: FunctionBuilder, attr: Attribute, lanes: int, text: str) -> str:
    """A held scalar in its own type, for the op that computes with it."""
    ty = value_type(attr).with_lanes(lanes)
    return b.bitcast(scalar_type(attr).with_lanes(lanes), text, ty)


def as_held(b: FunctionBuilder, attr: Attribute, lanes: int, text: str) -> str:
    """The reverse of `as_value`."""
    return b.bitcast(value_type(attr).with_lanes(lanes), text, scalar_type(attr).with_lanes(lanes))


def value_type(attr: Attribute) -> LType:
    """The LLVM type of a scalar of the kernel level (`index` is i64, a buffer is a pointer)."""
    if isinstance(attr, IndexType):
        return I64
    if isinstance(attr, BufferType):
        return LType("ptr")
    if isinstance(attr, IntegerType):
        return LType(f"i{attr.width.data}")
    if isinstance(attr, Float32Type):
        return LType("float")
    if isinstance(attr, Float64Type):
        return LType("double")
    if isinstance(attr, Float16Type):
        return LType("half")
    if isinstance(attr, BFloat16Type):
        return LType("bfloat")
    raise TypeError(f"{attr} has no LLVM type")


def memory_type(ty: LType) -> LType:
    """How a value of the type lies in memory: booleans take a byte, 16-bit floats are read as integers."""
    if ty.scalar == "i1":
        return ty.with_scalar("i8")
    return ty.with_scalar("i16") if ty.is_float and ty.bits == 16 else ty


def from_memory(b: FunctionBuilder, ty: LType, text: str) -> str:
    """A value as it was loaded. Any byte that is not 0 is true: nothing promises what a caller's buffer holds."""
    stored = memory_type(ty)
    if ty.scalar == "i1":
        return b.icmp("ne", stored, text, b.const(stored, 0))
    return b.bitcast(stored, text, ty)


def to_memory(b: FunctionBuilder, ty: LType, text: str) -> str:
    """A value as it is stored."""
    stored = memory_type(ty)
    return b.cast("zext", ty, text, stored) if ty.scalar == "i1" else b.bitcast(ty, text, stored)


def to_vector(b: FunctionBuilder, value: Value, lanes: int) -> str:
    """The value as a vector of `lanes` lanes; as it is when lanes is 0."""
    if not lanes or value.is_varying:
        return value.text
    wide = value.type.with_lanes(lanes)
    if value.is_uniform:
        if not value.text.startswith("%"):
            return f"splat ({value.type} {value.text})"
        return b.splat(wide, value.text)
    steps = f"<{', '.join(f'i64 {k}' for k in range(lanes))}>"
    base = b.splat(wide, value.text)
    if value.stride != "1":
        stride = value.stride or "0"
        scaled = f"splat (i64 {stride})" if not stride.startswith("%") else b.splat(wide, stride)
        steps = b.binary("mul", wide, steps, scaled)
    return b.binary("add", wide, base, steps)


def add_index(b: FunctionBuilder, x: Value, y: Value, opcode: str = "add") -> Value:
    """x + y (or x - y) of two indices, none of them varying."""
    base = fold(b, opcode, x.text, y.text)
    if x.stride is None and y.stride is None:
        return Value(base, I64)
    stride = fold(b, opcode, x.stride or "0", y.stride or "0")
    return Value(base, I64, None if stride == "0" else stride)


def mul_index(b: FunctionBuilder, x: Value, y: Value) -> Value | None:
    """x * y of two indices where at most one is affine; None where both are."""
    if x.is_affine and y.is_affine:
        return None
    if y.is_affine:
        x, y = y, x
    base = fold(b, "mul", x.text, y.text)
    if x.stride is None:
        return Value(base, I64)
    stride = fold(b, "mul", x.stride, y.text)
    return Value(base, I64, None if stride == "0" else stride)


def fold(b: FunctionBuilder, opcode: str, x: str, y: str) -> str:
    """An i64 operation, done here where both operands are numbers or one is neutral."""
    x_number = None if x.startswith("%") else int(x)
    y_number = None if y.startswith("%") else int(y)
    if x_number is not None and y_number is not None:
        result = {"add": x_number + y_number, "sub": x_number - y_number, "mul": x_number * y_number}[opcode]
        if -(1 << 63) <= result < 1 << 63:
            return str(result)
    if opcode == "add" and x_number == 0:
        return y
    if opcode in ("add", "sub") and y_number == 0:
        return x
    if opcode == "mul":
        if 0 in (x_number, y_number):
            return "0"
        if x_number == 1:
            return y
        if y_number == 1:
            return x
    return b.binary(opcode, I64, x, y)


def identity(kind: str, ty: LType) -> str:
    """The neutral element of a reduction as a scalar literal. Max and min of floats start from the infinities."""
    if kind in ("add", "or"):
        return literal(ty.with_lanes(0), 0)
    if kind == "mul":
        return literal(ty.with_lanes(0), 1)
    if kind == "and":
        return "true" if ty.scalar == "i1" else "-1"
    if ty.is_float:
        return literal(ty.with_lanes(0), float("-inf") if kind == "max" else float("inf"))
    if kind in ("umax", "umin"):
        return "0" if kind == "umax" else "-1"
    lowest = -(1 << (ty.bits - 1))
    return str(lowest if kind == "max" else -lowest - 1)


def combine(b: FunctionBuilder, kind: str, ty: LType, x: str, y: str) -> str:
    """One step of a reduction on LLVM values: NaN wins in max and min."""
    if kind == "add":
        return b.binary("fadd" if ty.is_float else "add", ty, x, y)
    if kind == "mul":
        return b.binary("fmul" if ty.is_float else "mul", ty, x, y)
    if kind in ("and", "or"):
        return b.binary(kind, ty, x, y)
    if ty.is_float:
        return extremum(b, kind, ty, x, y)
    predicate = {"max": "sgt", "min": "slt", "umax": "ugt", "umin": "ult"}[kind]
    return b.select(ty, b.icmp(predicate, ty, x, y), x, y)


def extremum(b: FunctionBuilder, kind: str, ty: LType, x: str, y: str) -> str:
    """max or min of floats: NaN if either is NaN; -0 is less than +0 is not promised (NumPy's rule)."""
    better = b.fcmp("ogt" if kind == "max" else "olt", ty, x, y)
    chosen = b.select(ty, better, x, y)  # y where unordered: right if y is the NaN
    return b.select(ty, b.fcmp("uno", ty, x, x), x, chosen)


def reduce_lanes(b: FunctionBuilder, kind: str, ty: LType, vector: str) -> str:
    """Combine all lanes by a tree of shuffles; returns a scalar."""
    lanes, at = ty.lanes, vector
    while lanes > 1:
        lanes //= 2
        order = ", ".join(f"i32 {k + lanes if k < lanes else 0}" for k in range(ty.lanes))
        shifted = b.op(f"shufflevector {ty} {at}, {ty} poison, <{ty.lanes} x i32> <{order}>")
        at = combine(b, kind, ty, at, shifted)
    return b.extract(ty, at, 0)


def lane_mask(b: FunctionBuilder, lanes: int, active: str) -> str:
    """True in the first `active` lanes; `active` is a number or an i64, at most `lanes`."""
    if not active.startswith("%"):
        return f"<{', '.join(f'i1 {str(lane < int(active)).lower()}' for lane in range(lanes))}>"
    ty = LType("i32", lanes)
    count = b.splat(ty, b.cast("trunc", I64, active, LType("i32")))
    return b.icmp("slt", ty, f"<{', '.join(f'i32 {lane}' for lane in range(lanes))}>", count)
