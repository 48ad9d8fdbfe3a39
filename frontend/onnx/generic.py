"""A node as the op whose `OnnxForm` names it: inputs are operands, attributes are properties of the same name."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue
from xdsl.irdl import OptOperandDef, OptResultDef, VarOperandDef, VarResultDef

from sardonyx.backends.onnx.tensors import dtype_from_onnx
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.sx import BY_ONNX
from sardonyx.dialects.sx.constant import dense_attribute
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.node import NodeContext

IGNORED = frozenset({"consumed_inputs", "broadcast", "output_sequence"})
"""Attributes without a meaning today: hints of opset 1, Gemm's broadcast, which its operands show, and whether the
first output of a recurrent layer is wanted, which its name says."""

DTYPES = frozenset({"dtype", "to", "output_datatype"})
"""Attributes that name a dtype by ONNX's number; 0 stands for none where one may be left out."""


def import_generically(n: NodeContext, domain: str) -> Sequence[SSAValue] | None:
    """The node's op, or None where no op is its form.

    Raises:
        UnsupportedError: The op has no counterpart for an attribute or an input of the node.
    """
    cls = BY_ONNX.get((domain, n.node.op_type))
    if cls is None or cls.ONNX is None or not cls.IS_IMPORTED:
        return None
    definition = cls.get_irdl_definition()
    results = definition.results
    variadic = results and isinstance(results[-1][1], VarResultDef) and not isinstance(results[-1][1], OptResultDef)
    count = len(n.node.output) if variadic else None
    op = n.importer.add(cls.make(*_slots(n, cls), results=count, location=n.location, **_properties(n, cls, cls.ONNX)))
    return op.results


def _slots(n: NodeContext, cls: type[SxOp]) -> list[Any]:
    slots: list[Any] = []
    operands = cls.get_irdl_definition().operands
    for index, (_, what) in enumerate(operands):
        if isinstance(what, VarOperandDef) and not isinstance(what, OptOperandDef):
            group = n.inputs[index:]
            if any(v is None for v in group):
                raise InvalidArgumentError("one of its inputs is missing")
            slots.append(group)
            return slots
        slots.append(n.input(index))
    if any(v is not None for v in n.inputs[len(operands) :]):
        raise n.unsupported(f"only its first {len(operands)} inputs are supported")
    return slots


def _properties(n: NodeContext, cls: type[SxOp], form: OnnxForm) -> dict[str, Any]:
    by_attribute: dict[str, str] = {}
    for prop in cls.get_irdl_definition().properties:
        attribute = form.attribute(prop)
        if attribute is not None and prop != "operandSegmentSizes":
            by_attribute[attribute] = prop
    out: dict[str, Any] = {}
    for name in n.attribute_names():
        prop = by_attribute.get(name)
        if prop is None:
            if n.has(name) and name not in IGNORED and not _is_schema_default(n, name):
                raise n.unsupported(f"its attribute '{name}' is not supported")
            continue
        value = n.attr(name)
        if name in DTYPES and isinstance(value, int):
            value = dtype_from_onnx(value, f"its attribute '{name}'") if value or name == "to" else None
        out[prop] = property_value(value, cls.DEFAULTS.get(prop))
    return out


def _is_schema_default(n: NodeContext, name: str) -> bool:
    if n.schema is None or name not in n.schema.attributes:
        return False
    default = n.schema.attributes[name].default_value
    mine = next(a for a in n.node.attribute if a.name == name)
    return bool(default.type) and (default.i, default.f, default.s) == (mine.i, mine.f, mine.s)


def property_value(value: Any, default: Any) -> Any:
    """An attribute's value as the op's property holds it: flags are bools, tensors dense, floats the default's."""
    if isinstance(default, bool) and isinstance(value, int):
        return bool(value)
    if isinstance(value, float) and isinstance(default, float) and np.float32(value) == np.float32(default):
        return default
    if isinstance(value, np.ndarray):
        return dense_attribute(value)
    return value
