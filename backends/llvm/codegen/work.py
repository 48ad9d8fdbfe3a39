"""Estimates a kernel's work from its loops, so that the entry can decide whether the pool is worth it."""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Block, SSAValue

from sardonyx.backends.llvm.codegen.text import I64, FunctionBuilder
from sardonyx.backends.llvm.codegen.widen import fold
from sardonyx.dialects.kernel.contract import ContractOp
from sardonyx.dialects.kernel.ops import IfOp, KernelFuncOp, LoopOp, MathOp, TurnOp
from sardonyx.dialects.kernel.spread import SpreadOp

CHUNK_WORK = 1 << 20
"""Scalar operations of a chunk, where a kernel has many: some 20 µs at the least; to claim a chunk takes 0.1."""
MATH_COST = 8
UNKNOWN_EXTENT = 16
"""Stands for a loop whose bound the kernel computes itself."""


def estimate_work(
    b: FunctionBuilder, kernel: KernelFuncOp, arguments: Mapping[SSAValue, str]
) -> tuple[str, str] | None:
    """(scalar operations, iterations of the outermost parallel loop) as i64 texts; None where there is no such loop."""
    outer = _outermost(kernel.body.block)
    if outer is None:
        return None
    iterations = _extent(b, outer, arguments)
    return fold(b, "mul", iterations, _block(b, outer.body.block, arguments)), iterations


def _outermost(block: Block) -> LoopOp | None:
    """The first parallel loop; where a kernel has two forms, that of the first (their work is the same)."""
    for op in block.ops:
        if isinstance(op, LoopOp) and op.parallel is not None:
            return op
        if isinstance(op, IfOp):
            found = _outermost(op.then_region.block)
            if found is not None:
                return found
    return None


def _block(b: FunctionBuilder, block: Block, arguments: Mapping[SSAValue, str], unknown: int = UNKNOWN_EXTENT) -> str:
    """The work of one pass through a block; `unknown` stands for the extents of its loops that are not known."""
    plain = 0
    nested: list[str] = []
    for op in block.ops:
        if isinstance(op, LoopOp):
            step = op.step.value.data  # a loop inside one of many steps is one of its blocks
            inside = _block(b, op.body.block, arguments, step if step > 1 else UNKNOWN_EXTENT)
            nested.append(fold(b, "mul", _extent(b, op, arguments, unknown), inside))
        elif isinstance(op, ContractOp):
            work = "1"
            for extent in (*op.extents, *op.segments[::2]):
                work = fold(b, "mul", work, _value(extent, arguments))
            nested.append(work)
        elif isinstance(op, IfOp):
            nested.append(_block(b, op.then_region.block, arguments, unknown))
        elif isinstance(op, TurnOp):
            rows, columns = (_value(extent, arguments) for extent in op.extents)
            nested.append(fold(b, "mul", rows, columns))
        elif isinstance(op, SpreadOp):
            nested.append(fold(b, "mul", _value(op.extent, arguments), str(op.times.value.data)))
        elif isinstance(op, MathOp):
            plain += MATH_COST
        else:
            plain += 1
    total = str(max(plain, 1))
    for part in nested:
        total = fold(b, "add", total, part)
    return total


def _extent(b: FunctionBuilder, loop: LoopOp, arguments: Mapping[SSAValue, str], unknown: int = UNKNOWN_EXTENT) -> str:
    """The number of turns (of the whole steps; at least one where it is a number)."""
    upper, step = _value(loop.upper, arguments, unknown), loop.step.value.data
    if step == 1:
        return upper
    if not upper.startswith("%"):
        return str(max(1, int(upper) // step))
    return b.binary("udiv", I64, b.binary("add", I64, upper, str(step - 1)), str(step))


def _value(value: SSAValue, arguments: Mapping[SSAValue, str], unknown: int = UNKNOWN_EXTENT) -> str:
    if value in arguments:
        return arguments[value]
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return str(owner.value.value.data)
    if isinstance(owner, MathOp) and owner.fn.data == "smin":  # the last block of several may be smaller
        known = [v for v in (_value(a, arguments, 0) for a in owner.args) if v != "0"]
        return known[0] if known else str(unknown)
    return str(unknown)
