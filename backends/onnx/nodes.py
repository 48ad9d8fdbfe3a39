"""One ONNX node from an op, by the op class and ONNX's schema; see `forms`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import onnx
from onnx import defs
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import Region, SSAValue

from sardonyx.backends.onnx.contrib import CONTRIB, contrib_schema
from sardonyx.backends.onnx.options import MAX_OPSET
from sardonyx.backends.onnx.tensors import tensor_from_array, type_text
from sardonyx.backends.onnx.wire import put_floats, put_ints
from sardonyx.dialects.attributes import WeightAttr
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.sx.ml_support import labels_array, table_of
from sardonyx.dialects.types import describe_type, is_tensor
from sardonyx.dialects.values import known_ints

AttrType = defs.OpSchema.AttrType
Option = defs.OpSchema.FormalParameterOption


class Unstatable(Exception):
    """An op has no node at this opset; `dtype_only`: only the dtypes of its operands or results are to blame."""

    def __init__(self, reason: str, *, dtype_only: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.dtype_only = dtype_only


@dataclass
class NodeForm:
    """One ONNX node: inputs and outputs are values (None where an optional one is left out)."""

    op_type: str
    domain: str
    inputs: list[SSAValue | None]
    outputs: list[SSAValue | None]
    attributes: dict[str, onnx.AttributeProto] = field(default_factory=dict)
    overload: str = ""
    graphs: dict[str, list[Region]] = field(default_factory=dict)
    """The regions that are its attributes of graphs; one each but for those in `lists`."""
    lists: set[str] = field(default_factory=set)


# The lowest opset in which an attribute's value has its meaning, where the schema cannot say so.
VALUE_SINCE: dict[tuple[str, str, object], int] = {
    ("Pad", "mode", "wrap"): 19,
}


@cache
def schema_of(domain: str, name: str, opset: int) -> defs.OpSchema | None:
    """The schema of an operator at an opset, None where there is none (or a deprecated one)."""
    if domain == CONTRIB:
        return contrib_schema(name)
    try:
        found = defs.get_schema(name, opset, domain)
    except defs.SchemaError:
        return None
    return None if found.deprecated else found


@cache
def _allowed_types(domain: str, name: str, since: int) -> dict[str, frozenset[str]]:
    schema = schema_of(domain, name, since)
    if schema is None:
        return {}
    return {c.type_param_str: frozenset(c.allowed_type_strs) for c in schema.type_constraints}


def generic_form(op: SxOp, form: OnnxForm, schema: defs.OpSchema, opset: int) -> NodeForm:
    """The node of an op whose operands are the operator's inputs and whose properties are its attributes."""
    inputs = list(op.slots)
    node = NodeForm(form.name, form.domain, inputs, results_of(op, schema))
    for prop in type(op).get_irdl_definition().properties:
        if prop == "operandSegmentSizes":
            continue
        name = form.attribute(prop)
        if name is not None:
            put_attribute(op, node, schema, name, op.attr(prop), op.DEFAULTS.get(prop), opset)
    _inputs_to_attributes(op, node, schema, form)
    for name, what in schema.attributes.items():
        if what.required and name not in node.attributes:
            raise Unstatable(f"its attribute '{name}' has no value")
    return node


def results_of(op: SxOp, schema: defs.OpSchema) -> list[SSAValue | None]:
    """The node's outputs: optional ones that nobody reads are left out."""
    formal = schema.outputs
    outputs: list[SSAValue | None] = []
    for index, result in enumerate(op.results):
        if index >= len(formal) and not (formal and formal[-1].option == Option.Variadic):
            if result.uses:
                raise Unstatable(f"{schema.name} has only {len(formal)} outputs in it")
            continue
        option = formal[min(index, len(formal) - 1)].option
        outputs.append(None if option == Option.Optional and not result.uses else result)
    while outputs and outputs[-1] is None:
        outputs.pop()
    return outputs


def put_attribute(
    op: SxOp, node: NodeForm, schema: defs.OpSchema, name: str, value: Any, default: Any, opset: int
) -> None:
    """State one property, unless it is what the schema's default says anyway."""
    if value is None:
        return
    what = schema.attributes.get(name)
    if what is None:
        if same_value(value, default):
            return  # an older schema without the attribute means the default
        raise Unstatable(f"{schema.name} has no attribute '{name}' in it")
    since = VALUE_SINCE.get((schema.name, name, value if isinstance(value, str | int) else None), 0)
    if opset < since:
        raise Unstatable(f"{schema.name} has no {name} '{value}' in it")
    proto = make_attribute(name, value, what.type)
    stated = what.default_value
    if stated.type and _same_proto(stated, proto) and not what.required:
        return
    node.attributes[name] = proto


def make_attribute(name: str, value: Any, kind: Any) -> onnx.AttributeProto:
    """The attribute of a property's Python value, in the type that the schema asks for."""
    if isinstance(value, DType):
        value = value.onnx
    if isinstance(value, DenseIntOrFPElementsAttr | WeightAttr):
        value = table_of(value)
    if kind == AttrType.TENSOR:
        value = _tensor_value(value)
    proto = onnx.AttributeProto(name=name)
    if kind == AttrType.INT:
        proto.type, proto.i = onnx.AttributeProto.INT, int(value)
    elif kind == AttrType.FLOAT:
        proto.type, proto.f = onnx.AttributeProto.FLOAT, float(np.float32(value))
    elif kind == AttrType.STRING:
        proto.type, proto.s = onnx.AttributeProto.STRING, str(value).encode()
    elif kind == AttrType.INTS:
        proto.type = onnx.AttributeProto.INTS
        put_ints(proto, value if isinstance(value, np.ndarray) else np.array([int(v) for v in value], np.int64))
    elif kind == AttrType.FLOATS:
        proto.type = onnx.AttributeProto.FLOATS
        put_floats(proto, np.asarray(value, np.float32))
    elif kind == AttrType.STRINGS:
        proto.type = onnx.AttributeProto.STRINGS
        proto.strings.extend(str(v).encode() for v in value)
    elif kind == AttrType.TENSOR and isinstance(value, np.ndarray):
        proto.type = onnx.AttributeProto.TENSOR
        proto.t.CopyFrom(tensor_from_array("", value))
    else:
        raise Unstatable(f"its attribute '{name}' has no form in ONNX")
    return proto


def _tensor_value(value: Any) -> Any:
    """The array of a tensor of strings, which the IR has as texts."""
    if isinstance(value, tuple) and all(isinstance(text, str) for text in value):
        return labels_array(value)
    return value


def same_value(value: Any, default: Any) -> bool:
    """Whether a property's value is the default; floats are compared as ONNX stores them."""
    if isinstance(value, float) and isinstance(default, float):
        return np.float32(value) == np.float32(default)
    if isinstance(value, Sequence) and isinstance(default, Sequence) and not isinstance(value, str):
        return tuple(value) == tuple(default)
    return type(value) is type(default) and value == default


def _same_proto(a: onnx.AttributeProto, b: onnx.AttributeProto) -> bool:
    if a.type != b.type:
        return False
    fields = {
        onnx.AttributeProto.INT: "i", onnx.AttributeProto.FLOAT: "f", onnx.AttributeProto.STRING: "s",
        onnx.AttributeProto.INTS: "ints", onnx.AttributeProto.FLOATS: "floats", onnx.AttributeProto.STRINGS: "strings",
    }  # fmt: skip
    name = fields.get(a.type)
    return name is not None and getattr(a, name) == getattr(b, name)


def _inputs_to_attributes(op: SxOp, node: NodeForm, schema: defs.OpSchema, form: OnnxForm) -> None:
    """Inputs that an older schema has as attributes (the axes of reductions) are stated so, where they are known."""
    formal = schema.inputs
    if formal and formal[-1].option == Option.Variadic:
        return
    while node.inputs and node.inputs[-1] is None:
        node.inputs.pop()
    newest = schema_of(form.domain, form.name, MAX_OPSET)
    for index in range(len(formal), len(node.inputs)):
        value = node.inputs[index]
        if value is None:
            continue
        name = newest.inputs[index].name if newest is not None and index < len(newest.inputs) else ""
        what = schema.attributes.get(name)
        if what is None or what.type != AttrType.INTS:
            raise Unstatable(f"{schema.name} has no input '{name}' in it")
        known = known_ints(value)
        if known is None:
            raise Unstatable(f"the '{name}' of {schema.name} are an attribute in it, and are not known before a run")
        if known:
            node.attributes[name] = make_attribute(name, known, AttrType.INTS)
        elif op.attr("noop_with_empty_axes"):
            raise Unstatable(f"{schema.name} has no attribute 'noop_with_empty_axes' in it")
    del node.inputs[len(formal) :]


def check_types(node: NodeForm, schema: defs.OpSchema) -> None:
    """Hold the dtypes of inputs and outputs against the schema's type constraints.

    Raises:
        Unstatable: A dtype is not allowed, or two that must agree do not.
    """
    if len(node.inputs) < schema.min_input or len(node.inputs) > schema.max_input:
        raise Unstatable(f"{schema.name} takes {schema.min_input} to {schema.max_input} inputs in it")
    allowed = _allowed_types(schema.domain, schema.name, schema.since_version)
    bound: dict[str, str] = {}
    for formal, value, what in typed_values(node, schema):
        variable, text = formal.type_str, type_text(value.type)
        if text is None:
            continue  # it comes from an unknown operator
        shown = describe_type(value.type)
        if text not in allowed.get(variable, frozenset({variable})):
            only = is_tensor(value.type)
            raise Unstatable(f"{schema.name} has no {shown} for its {what} '{formal.name}' in it", dtype_only=only)
        if variable in allowed and formal.is_homogeneous and bound.setdefault(variable, shown) != shown:
            raise Unstatable(f"{schema.name} wants one dtype for '{variable}', found {bound[variable]} and {shown}")


def typed_values(node: NodeForm, schema: defs.OpSchema) -> list[tuple[Any, SSAValue, str]]:
    """The formal parameter, the value and 'input' or 'output', for every value of the node."""
    out: list[tuple[Any, SSAValue, str]] = []
    for values, formal, what in ((node.inputs, schema.inputs, "input"), (node.outputs, schema.outputs, "output")):
        for index, value in enumerate(values):
            if value is not None and formal:
                out.append((formal[min(index, len(formal) - 1)], value, what))
    return out
