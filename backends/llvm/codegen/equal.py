"""Which kernels are the same but for their names, told from their ops, before any text is made of them."""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.ir import Operation, Region, SSAValue

from sardonyx.dialects.kernel.ops import KernelFuncOp


def form_of(kernel: KernelFuncOp) -> Hashable:
    """What a kernel's code depends on: its ops with their properties and types, and which value each operand is."""
    parts: list[Hashable] = []
    _add_region(kernel.body, {}, parts)
    return tuple(parts)


def _add_region(region: Region, numbers: dict[SSAValue, int], parts: list[Hashable]) -> None:
    for block in region.blocks:
        parts.append(len(block.args))
        for argument in block.args:
            numbers[argument] = len(numbers)
            parts.append(argument.type)
        for op in block.ops:
            _add_op(op, numbers, parts)
        parts.append(None)  # the end of the block


def _add_op(op: Operation, numbers: dict[SSAValue, int], parts: list[Hashable]) -> None:
    parts.append((type(op), len(op.results), len(op.regions), *(numbers[operand] for operand in op.operands)))
    for result in op.results:
        numbers[result] = len(numbers)
        parts.append(result.type)
    for own in (op.properties, op.attributes):
        parts.append(tuple(own.items()))  # floats among them are compared by their bits
    for region in op.regions:
        _add_region(region, numbers, parts)
