"""Emitters of scalar ops: `arith`, index arithmetic (kept affine where it can be) and `kernel.math`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr
from xdsl.ir import Operation

from sardonyx.backends.llvm.codegen.emit import KernelEmitter, emits
from sardonyx.backends.llvm.codegen.text import I64, FunctionBuilder, LType, literal
from sardonyx.backends.llvm.codegen.widen import add_index, extremum, mul_index, scalar_type, value_type
from sardonyx.dialects.kernel.ops import ChunkOp, MathOp, MulSaturatingOp
from sardonyx.errors import UnsupportedError

MAX_EXTENT = 1 << 62
"""What a product of extents saturates at; no allocation of that size is granted."""


@emits(arith.ConstantOp)
def _constant(e: KernelEmitter, op: arith.ConstantOp) -> None:
    ty = value_type(op.result.type)
    value: Any = op.value
    if isinstance(value, IntegerAttr | FloatAttr):
        number: Any = value.value.data
        text = literal(ty, bool(number) if ty.scalar == "i1" else number)
        if ty.is_float and ty.bits == 16:
            text = str(int(text[3:], 16))  # the bits behind 0xH or 0xR
        e.define(op.result, text, 0)
        return
    raise UnsupportedError(f"constant {value} has no native form", op=op.name)


@emits(ChunkOp)
def _chunk(e: KernelEmitter, op: ChunkOp) -> None:
    e.define(op.result, "%chunk", 0)


@emits(arith.AddiOp, arith.SubiOp)
def _add(e: KernelEmitter, op: arith.AddiOp | arith.SubiOp) -> None:
    opcode = "add" if isinstance(op, arith.AddiOp) else "sub"
    x, y = e.value(op.lhs), e.value(op.rhs)
    if isinstance(op.lhs.type, IndexType) and not x.is_varying and not y.is_varying:
        e.values[op.result] = add_index(e.builder, x, y, opcode)
        return
    e.elementwise(op, lambda b, ty, a, c: b.binary(opcode, ty, a, c))


@emits(arith.MuliOp)
def _mul(e: KernelEmitter, op: arith.MuliOp) -> None:
    x, y = e.value(op.lhs), e.value(op.rhs)
    if isinstance(op.lhs.type, IndexType) and not x.is_varying and not y.is_varying:
        product = mul_index(e.builder, x, y)
        if product is not None:
            e.values[op.result] = product
            return
    e.elementwise(op, lambda b, ty, a, c: b.binary("mul", ty, a, c))


@emits(MulSaturatingOp)
def _mul_saturating(e: KernelEmitter, op: MulSaturatingOp) -> None:
    b = e.builder
    x, y = e.scalar(op.lhs), e.scalar(op.rhs)
    if not x.startswith("%") and not y.startswith("%"):
        e.define(op.result, str(min(int(x) * int(y), MAX_EXTENT)), 0)
        return
    b.module.declare("llvm.smul.with.overflow.i64", "{ i64, i1 }", [I64, I64])
    pair = b.op(f"call {{ i64, i1 }} @llvm.smul.with.overflow.i64(i64 {x}, i64 {y})")
    product = b.op(f"extractvalue {{ i64, i1 }} {pair}, 0")
    over = b.op(f"extractvalue {{ i64, i1 }} {pair}, 1")
    capped = b.intrinsic("llvm.smin", I64, [(I64, product), (I64, str(MAX_EXTENT))])
    e.define(op.result, b.select(I64, over, str(MAX_EXTENT), capped), 0)


_BINARY: dict[type[Operation], str] = {
    arith.AddfOp: "fadd", arith.SubfOp: "fsub", arith.MulfOp: "fmul", arith.DivfOp: "fdiv",
    arith.AndIOp: "and", arith.OrIOp: "or", arith.XOrIOp: "xor",
}  # fmt: skip


@emits(*_BINARY)
def _binary(e: KernelEmitter, op: Operation) -> None:
    opcode = _BINARY[type(op)]
    e.elementwise(op, lambda b, ty, x, y: b.binary(opcode, ty, x, y))


@emits(arith.MaximumfOp)
def _maximumf(e: KernelEmitter, op: arith.MaximumfOp) -> None:
    e.elementwise(op, lambda b, ty, x, y: extremum(b, "max", ty, x, y))


@emits(arith.MinimumfOp)
def _minimumf(e: KernelEmitter, op: arith.MinimumfOp) -> None:
    e.elementwise(op, lambda b, ty, x, y: extremum(b, "min", ty, x, y))


@emits(arith.MaxnumfOp)
def _maxnumf(e: KernelEmitter, op: arith.MaxnumfOp) -> None:
    """The second operand where it is greater, else the first, which thus wins over a NaN."""
    e.elementwise(op, lambda b, ty, x, y: b.select(ty, b.fcmp("ogt", ty, y, x), y, x))


_EXTREMES: dict[type[Operation], str] = {
    arith.MaxSIOp: "sgt", arith.MinSIOp: "slt", arith.MaxUIOp: "ugt", arith.MinUIOp: "ult",
}  # fmt: skip


@emits(*_EXTREMES)
def _integer_extreme(e: KernelEmitter, op: Operation) -> None:
    predicate = _EXTREMES[type(op)]
    e.elementwise(op, lambda b, ty, x, y: b.select(ty, b.icmp(predicate, ty, x, y), x, y))


@emits(arith.NegfOp)
def _negf(e: KernelEmitter, op: arith.NegfOp) -> None:
    e.elementwise(op, lambda b, ty, x: b.op(f"fneg {ty} {x}"))


_CMPI = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_CMPF = (
    "false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true",
)  # fmt: skip


@emits(arith.CmpiOp)
def _cmpi(e: KernelEmitter, op: arith.CmpiOp) -> None:
    predicate = _CMPI[op.predicate.value.data]
    e.elementwise(op, lambda b, ty, x, y: b.icmp(predicate, ty, x, y))


@emits(arith.CmpfOp)
def _cmpf(e: KernelEmitter, op: arith.CmpfOp) -> None:
    predicate = _CMPF[op.predicate.value.data]
    e.elementwise(op, lambda b, ty, x, y: b.fcmp(predicate, ty, x, y))


@emits(arith.SelectOp)
def _select(e: KernelEmitter, op: arith.SelectOp) -> None:
    b = e.builder
    if e.uniform(op.cond, op.lhs, op.rhs):
        ty = scalar_type(op.result.type)
        e.define(op.result, b.select(ty, e.text(op.cond) if not e.lanes else e.value(op.cond).text,
                                     e.value(op.lhs).text, e.value(op.rhs).text), 0)  # fmt: skip
        return
    e.define(op.result, b.select(e.type_of(op.lhs), e.text(op.cond), e.text(op.lhs), e.text(op.rhs)))


# ---- conversions


def _convert(e: KernelEmitter, op: Operation, compute: Callable[[FunctionBuilder, LType, LType, str], str]) -> None:
    """Emit a conversion from the operand's type to the result's."""
    target = value_type(op.results[0].type)
    e.elementwise(
        op, lambda b, ty, x: x if ty.scalar == target.scalar else compute(b, ty, target.with_lanes(ty.lanes), x)
    )


_CASTS: dict[type[Operation], str] = {
    arith.ExtSIOp: "sext", arith.ExtUIOp: "zext", arith.TruncIOp: "trunc",
    arith.SIToFPOp: "sitofp", arith.UIToFPOp: "uitofp", arith.BitcastOp: "bitcast",
}  # fmt: skip


@emits(*_CASTS)
def _cast(e: KernelEmitter, op: Operation) -> None:
    opcode = _CASTS[type(op)]
    _convert(e, op, lambda b, source, target, x: b.cast(opcode, source, x, target))


@emits(arith.ExtFOp)
def _extf(e: KernelEmitter, op: arith.ExtFOp) -> None:
    _convert(e, op, extend_float)


@emits(arith.TruncFOp)
def _truncf(e: KernelEmitter, op: arith.TruncFOp) -> None:
    _convert(e, op, truncate_float)


@emits(arith.IndexCastOp)
def _index_cast(e: KernelEmitter, op: arith.IndexCastOp) -> None:
    """Signed between an integer and an index; an affine index stays one."""
    source = e.value(op.input)
    if scalar_type(op.input.type) == I64 and scalar_type(op.result.type) == I64:
        e.values[op.result] = source
        return

    def compute(b: FunctionBuilder, ty: LType, target: LType, x: str) -> str:
        return b.cast("sext" if ty.bits < target.bits else "trunc", ty, x, target)

    _convert(e, op, compute)


def extend_float(b: FunctionBuilder, source: LType, target: LType, x: str) -> str:
    """An exact widening; 16-bit floats go through float32."""
    from sardonyx.backends.llvm.codegen import halves

    single = source.with_scalar("float")
    if source.scalar == "bfloat":
        x, source = halves.bf16_to_f32(b, source, x), single
    elif source.scalar == "half":
        x, source = halves.f16_to_f32(b, source, x), single
    return x if source == target else b.cast("fpext", source, x, target)


def truncate_float(b: FunctionBuilder, source: LType, target: LType, x: str) -> str:
    """A narrowing that rounds once, to nearest even."""
    from sardonyx.backends.llvm.codegen import halves

    if target.scalar == "bfloat":
        return halves.bf16_from_f64(b, source, x) if source.scalar == "double" else halves.bf16_from_f32(b, source, x)
    if target.scalar == "half":
        return halves.f16_from_f64(b, source, x) if source.scalar == "double" else halves.f16_from_f32(b, source, x)
    return b.cast("fptrunc", source, x, target)


# ---- kernel.math


@emits(MathOp)
def _math(e: KernelEmitter, op: MathOp) -> None:
    from sardonyx.backends.llvm.codegen.functions import lookup

    compute = lookup(op.fn.data, value_type(op.args[0].type), value_type(op.result.type))
    if compute is None:
        raise UnsupportedError(f"function '{op.fn.data}' on {op.args[0].type} has no native form", op=op.name)
    found = compute
    e.elementwise(op, lambda b, ty, *texts: found(b, ty, *texts))
