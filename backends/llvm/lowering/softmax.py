"""Softmax, log_softmax and hardmax as row programs along one axis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.argreduce import place_of_extreme
from sardonyx.backends.llvm.lowering.builder import Body
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.backends.llvm.lowering.row_fusion import RowSpace, joins_rows, lower_alone
from sardonyx.backends.llvm.lowering.row_program import Node, Program
from sardonyx.backends.llvm.lowering.rows import greatest_number, sum_of
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.sx.softmax import HardmaxOp, LogSoftmaxOp, SoftmaxOp

Stages = Callable[[Program, Node], Node]


def _space(op: Any) -> RowSpace:
    dims = dims_of(op.input)
    return RowSpace(dims, (op.attr("axis") % len(dims),) if dims else ())


def _registers(op: Any) -> Callable[[Stages], Stages]:
    def register(stages: Stages) -> Stages:
        def join(program: Program, at: Any) -> None:
            result = stages(program, program.value(at.input))
            program.nodes[at.output] = program.rounded(result, dtype_of(at.output))

        joins_rows(op, space=_space)(join)
        lowers(op)(_alone)
        return stages

    return register


def _alone(plan: Plan, op: Any) -> None:
    lower_alone(plan, op)


def _shifted(p: Program, x: Node) -> Node:
    """x minus the row's maximum, which is never positive; NaN where the maximum is infinite (or a NaN: it stays)."""
    greatest = p.fold(x.dtype, greatest_number, x)
    return p.map(x.dtype, lambda b, v, m: b.arithmetic("sub", x.dtype, v, m), x, greatest)


def _power(p: Program, shifted: Node) -> Node:
    return p.map(
        shifted.dtype, lambda b, v: b.math("exp_nonpositive", v.type, v), shifted, is_costly=True, is_long=True
    )


@_registers(SoftmaxOp)
def _softmax(p: Program, x: Node) -> Node:
    """exp(x - max) and its sum; then the quotients."""
    dtype = x.dtype
    power = _power(p, _shifted(p, x))
    inverse = p.map(dtype, lambda b, s: b.arithmetic("div", dtype, b.const(dtype, 1), s), p.fold(dtype, sum_of, power))
    return p.map(dtype, lambda b, v, f: b.arithmetic("mul", dtype, v, f), power, inverse)


@_registers(LogSoftmaxOp)
def _log_softmax(p: Program, x: Node) -> Node:
    shifted = _shifted(p, x)
    total = p.fold(x.dtype, sum_of, _power(p, shifted))
    logarithm = p.map(x.dtype, lambda b, s: b.math("log", s.type, s), total)
    return p.map(x.dtype, lambda b, v, m: b.arithmetic("sub", x.dtype, v, m), shifted, logarithm)


@_registers(HardmaxOp)
def _hardmax(p: Program, x: Node) -> Node:
    """1 at the first maximum of a row, 0 elsewhere."""
    chosen = place_of_extreme(p, x)
    places = p.index(chosen.dtype)

    def mark(b: Body, place: SSAValue, at: SSAValue) -> SSAValue:
        hit = b.compare_scalars("eq", chosen.dtype, place, at)
        return b.select(hit, b.const(x.dtype, 1), b.const(x.dtype, 0))

    return p.map(x.dtype, mark, places, chosen)
