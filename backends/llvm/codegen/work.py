"""Estimates a kernel's work from its loops, so that the entry can decide whether the pool is worth it."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, SSAValue

from sardonyx.backends.llvm.codegen.text import FunctionBuilder
from sardonyx.backends.llvm.codegen.widen import fold
from sardonyx.dialects.kernel.ops import ContractOp, KernelFuncOp, LoopOp, MathOp

WORTH_A_POOL = 1 << 16
"""Scalar operations from which on a kernel is cut into chunks: some 10 µs on one core, where a fork-join is below 3."""
MATH_COST = 8
UNKNOWN_EXTENT = 16
"""Stands for a loop whose bound the kernel computes itself."""


def estimate_work(
    b: FunctionBuilder, kernel: KernelFuncOp, arguments: Mapping[SSAValue, str]
) -> tuple[str, str] | None:
    """(scalar operations, iterations of the outermost parallel loop) as i64 texts; None where there is no such loop."""
    outer = next((op for op in kernel.body.block.ops if isinstance(op, LoopOp) and op.parallel is not None), None)
    if outer is None:
        return None
    iterations = _extent(outer, arguments)
    return fold(b, "mul", iterations, _block(b, outer.body.block, arguments)), iterations


def _block(b: FunctionBuilder, block: Block, arguments: Mapping[SSAValue, str]) -> str:
    """The work of one pass through a block."""
    plain = 0
    nested: list[str] = []
    for op in block.ops:
        if isinstance(op, LoopOp):
            nested.append(fold(b, "mul", _extent(op, arguments), _block(b, op.body.block, arguments)))
        elif isinstance(op, ContractOp):
            m, n, k = (_value(v, arguments) for v in op.extents)
            nested.append(fold(b, "mul", fold(b, "mul", m, n), k))
        elif isinstance(op, MathOp):
            plain += MATH_COST
        else:
            plain += 1
    total = str(max(plain, 1))
    for part in nested:
        total = fold(b, "add", total, part)
    return total


def _extent(loop: LoopOp, arguments: Mapping[SSAValue, str]) -> str:
    return _value(loop.upper, arguments)


def _value(value: SSAValue, arguments: Mapping[SSAValue, str]) -> str:
    if value in arguments:
        return arguments[value]
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return str(owner.value.value.data)
    return str(UNKNOWN_EXTENT)
