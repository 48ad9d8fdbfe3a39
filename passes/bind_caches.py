"""What native code makes of caches: their buffers are inputs that it writes to."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of, tensor_type
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import uint8
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.state import CacheAppendOp, CacheOp, CacheReadOp
from sardonyx.passes.explicit_state import add_input


def bind_caches(module: ModuleOp) -> bool:
    """Give every cache op of a graph its memory, in place: an input per cache, in the order of the ops, and behind
    them one vector of bytes per length, whose extent is the length. Whether there was one."""
    ops = [op for op in module.walk() if isinstance(op, CacheOp) and op.memory[0] is None]
    buffers: dict[str, SSAValue] = {}
    for op in ops:
        if op.buffer_name not in buffers:
            value = op.output if isinstance(op, CacheReadOp) else op.operands[0]
            dims = list(dims_of(value))
            dims[op.attr("axis") % len(dims)] = Dim.of(op.attr("capacity"))
            buffers[op.buffer_name] = add_input(module, op.buffer_name, _like(tensor_type(dtype_of(value), dims)))
    filled = {
        rows: add_input(module, f"{rows}_filled", _like(tensor_type(uint8, [Dim.symbol(rows)])))
        for rows in dict.fromkeys(op.attr("rows") for op in ops)
    }
    for op in ops:
        given = [buffers[op.buffer_name], filled[op.attr("rows")]]
        slots = [op.operands[0], *given] if isinstance(op, CacheAppendOp) else given
        properties: dict[str, Any] = {k: v for k, v in op.properties.items() if k != "operandSegmentSizes"}
        made: SxOp = type(op).make(*slots, result_types=[op.results[0].type], location=op.location, **properties)
        made.results[0].name_hint = op.results[0].name_hint
        block = op.parent_block()
        assert block is not None
        block.insert_op_before(made, op)
        op.results[0].replace_all_uses_with(made.results[0])
        op.detach()
        op.erase()
    return bool(ops)


def _like(ty: object) -> SSAValue:
    """A value of a type, for its type alone."""
    return ConstantOp.create(result_types=[ty]).results[0]  # pyright: ignore[reportArgumentType]
