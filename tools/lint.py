"""What a trace may have frozen: captured arrays that became constants, and shapes that became numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from xdsl.ir import Operation, SSAValue

from sardonyx.dialects import locations
from sardonyx.dialects.attributes import WeightAttr, dims_of
from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.types import is_tensor
from sardonyx.dialects.values import known_ints

LARGE = 64 << 10
"""Captured arrays from this size on are reported, in bytes."""
_SHAPED = {"sx.reshape": 1, "sx.expand": 1, "sx.tile": 1}
"""Ops with the operand that states a shape."""


def lint(graph: Any) -> list[str]:
    """What a person should look at, each with its line."""
    found: list[str] = []
    for op in main_function(graph.module).body.block.walk():
        found.extend(_captured(op))
        found.extend(_frozen_shape(op))
    return found


def _captured(op: Operation) -> Iterator[str]:
    if not isinstance(op, ConstantOp) or not isinstance(op.value, WeightAttr):
        return
    weight = op.value.data
    size = int(_bytes(op))
    if size >= LARGE and (weight.key.split("_")[0] in ("w", "constant", "lifted") or weight.key.isdecimal()):
        where = _where(op)
        yield f"{where}an array of {size} bytes was captured as '{weight.key}': make it a parameter or an input"


def _bytes(op: ConstantOp) -> int:
    count = 1
    for dim in dims_of(op.output) or ():
        count *= dim.static_value or 0
    from sardonyx.dialects.attributes import dtype_of

    return count * max(dtype_of(op.output).bits, 8) // 8


def _frozen_shape(op: Operation) -> Iterator[str]:
    place = _SHAPED.get(op.name)
    if place is None or len(op.operands) <= place or not _dynamic(op.operands[0]):
        return
    shape = op.operands[place]
    known = known_ints(shape)
    if known is None or op.name != "sx.reshape" or any(n in (0, -1) for n in known):
        return
    yield f"{_where(op)}a tensor with dynamic dims is reshaped to the constant shape {list(known)}: sizes are frozen"


def _dynamic(value: SSAValue) -> bool:
    dims = dims_of(value) if is_tensor(value.type) else None
    return dims is None or any(not d.is_static for d in dims)


def _where(op: Operation) -> str:
    found = locations.describe(op.location)
    return f"{found}: " if found else ""
