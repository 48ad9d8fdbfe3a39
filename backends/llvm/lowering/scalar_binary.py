"""Scalar bodies of arithmetic, comparisons, logic and bits of two or more operands."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body
from sardonyx.backends.llvm.lowering.elementwise import scalar
from sardonyx.backends.llvm.lowering.scalar_unary import computed_in
from sardonyx.dialects.attributes import dtype_of, static_shape
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import DType, float64, int64, uint64
from sardonyx.dialects.sx import binary, compare, logical, variadic
from sardonyx.dialects.sx.constant import ConstantOp

Binary = Callable[[Body, Any, SSAValue, SSAValue], SSAValue]


def _arithmetic(name: str) -> Binary:
    return lambda b, op, x, y: b.arithmetic(name, computed_in(op.lhs), x, y)


for _op, _name in {binary.AddOp: "add", binary.SubOp: "sub", binary.MulOp: "mul", binary.DivOp: "div"}.items():
    scalar(_op)(_arithmetic(_name))


@scalar(binary.ModOp)
def _mod(b: Body, op: Any, x: SSAValue, y: SSAValue) -> SSAValue:
    dtype = computed_in(op.lhs)
    if dtype.is_float:
        name = "fmod" if op.attr("fmod") else "floormod"
    elif dtype.kind == "u":
        name = "urem"
    else:
        name = "srem" if op.attr("fmod") else "floormod"
    return b.math(name, x.type, x, y)


# ---- powers


@scalar(binary.PowOp)
def _pow(b: Body, op: Any, x: SSAValue, y: SSAValue) -> SSAValue:
    base, exponent = computed_in(op.lhs), computed_in(op.rhs)
    known = _constant_exponent(op.rhs)
    if base.is_float:
        if known is not None:
            return _known_power(b, base, x, known)
        return _float_power(b, base, x, exponent, y)
    if exponent.is_float:
        wide = b.math("pow", float64.ir, b.convert(x, base, float64), b.convert(y, exponent, float64))
        return b.convert(wide, float64, base)
    # Integers in 64 bits, where no exponent loses bits; a product modulo 2^64 is one modulo 2^32.
    wide, name = (uint64, "upow") if exponent == uint64 else (int64, "pow")
    power = b.math(name, int64.ir, b.convert(x, base, int64), b.convert(y, exponent, wide))
    return b.convert(power, int64, base)


def _float_power(b: Body, base: DType, x: SSAValue, exponent: DType, y: SSAValue) -> SSAValue:
    """A float to any power; integers beyond 2^24 need float64, and beyond 2^53 their parity is looked at apart."""
    small = exponent.is_integer and exponent.bits <= 16
    wide = base if small or exponent == base else float64
    size, power = b.convert(x, base, wide), b.convert(y, exponent, wide)
    if exponent.is_float or exponent.bits < 64:
        return b.convert(b.math("pow", size.type, size, power), wide, base)
    even = b.math("pow", size.type, b.math("abs", size.type, size), power)
    odd = b.compare_scalars("ne", exponent, b.both(y, b.const(exponent, 1)), b.const(exponent, 0))
    return b.convert(b.select(odd, b.math("copysign", size.type, even, size), even), wide, base)


def _constant_exponent(value: SSAValue) -> float | None:
    """The exponent where it is one small number for all elements and has a shorter form."""
    shape = static_shape(value)
    if not isinstance(value.owner, ConstantOp) or shape is None or prod(shape) != 1:
        return None
    number = float(np.asarray(value.owner.array()).reshape(-1)[0])
    return number if number in (-1.0, 0.5, 1.0, 2.0, 3.0) else None


def _known_power(b: Body, dtype: DType, x: SSAValue, exponent: float) -> SSAValue:
    if exponent == -1.0:
        return b.arithmetic("div", dtype, b.const(dtype, 1), x)
    if exponent == 0.5:
        # The power of -0 is +0 and that of -inf is +inf, unlike the root.
        root = b.math("sqrt", x.type, b.arithmetic("add", dtype, x, b.const(dtype, 0)))
        lowest = b.compare_scalars("eq", dtype, x, b.const(dtype, float("-inf")))
        return b.select(lowest, b.const(dtype, float("inf")), root)
    power = x
    for _ in range(int(exponent) - 1):
        power = b.arithmetic("mul", dtype, power, x)
    return power


# ---- comparisons, logic, bits

_RELATIONS: dict[type[SxOp], str] = {
    compare.EqualOp: "eq",
    compare.LessOp: "lt",
    compare.LessEqualOp: "le",
    compare.GreaterOp: "gt",
    compare.GreaterEqualOp: "ge",
}


def _relation(name: str) -> Binary:
    return lambda b, op, x, y: b.compare_scalars(name, computed_in(op.lhs), x, y)


for _op, _name in _RELATIONS.items():
    scalar(_op)(_relation(_name))


@scalar(logical.AndOp, binary.BitwiseAndOp)
def _and(b: Body, op: Any, x: SSAValue, y: SSAValue) -> SSAValue:
    return b.both(x, y)


@scalar(logical.OrOp, binary.BitwiseOrOp)
def _or(b: Body, op: Any, x: SSAValue, y: SSAValue) -> SSAValue:
    return b.either(x, y)


@scalar(logical.XorOp, binary.BitwiseXorOp)
def _xor(b: Body, op: Any, x: SSAValue, y: SSAValue) -> SSAValue:
    return b.add(arith.XOrIOp(x, y))


@scalar(binary.BitShiftOp)
def _bit_shift(b: Body, op: Any, x: SSAValue, y: SSAValue) -> SSAValue:
    right = "lshr" if dtype_of(op.lhs).kind == "u" else "ashr"
    return b.math("shl" if op.attr("direction") == "LEFT" else right, x.type, x, y)


# ---- any number of operands


@scalar(variadic.MaxOp)
def _max(b: Body, op: Any, *xs: SSAValue) -> SSAValue:
    return _fold(b, "max", computed_in(op.inputs[0]), xs)


@scalar(variadic.MinOp)
def _min(b: Body, op: Any, *xs: SSAValue) -> SSAValue:
    return _fold(b, "min", computed_in(op.inputs[0]), xs)


@scalar(variadic.SumOp)
def _sum(b: Body, op: Any, *xs: SSAValue) -> SSAValue:
    dtype = computed_in(op.inputs[0])
    if len(xs) <= 2 or dtype == float64:
        return _fold(b, "add", dtype, xs)
    return b.convert(_fold(b, "add", float64, [b.convert(x, dtype, float64) for x in xs]), float64, dtype)


@scalar(variadic.MeanOp)
def _mean(b: Body, op: Any, *xs: SSAValue) -> SSAValue:
    """In float64, where a sum of float32 neither overflows nor rounds noticeably."""
    dtype = computed_in(op.inputs[0])
    total = _fold(b, "add", float64, [b.convert(x, dtype, float64) for x in xs])
    return b.convert(b.arithmetic("div", float64, total, b.const(float64, len(xs))), float64, dtype)


def _fold(b: Body, name: str, dtype: DType, xs: Any) -> SSAValue:
    return reduce(lambda a, c: b.arithmetic(name, dtype, a, c), xs)
