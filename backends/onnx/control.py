"""The forms of ops whose attributes are graphs or types: if, loop, scan, optional."""

from __future__ import annotations

from typing import Any

import onnx
from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import SSAValue

from sardonyx.backends.onnx.nodes import NodeForm, put_attribute
from sardonyx.backends.onnx.types import type_proto
from sardonyx.dialects.base import OnnxForm, SxOp


def region_form(op: SxOp, form: OnnxForm, schema: Any, opset: int) -> NodeForm:
    """A node whose graphs are the op's regions, by the names that both have."""
    inputs: list[SSAValue | None] = list(op.slots)
    inputs += [None] * (schema.min_input - len(inputs))
    node = NodeForm(form.name, form.domain, inputs, list(op.results))
    names = [name for name, _ in type(op).get_irdl_definition().regions]
    node.graphs = {name: [region] for name, region in zip(names, op.regions, strict=True)}
    return node


def scan_form(op: SxOp, form: OnnxForm, schema: Any, opset: int) -> NodeForm:
    """Axes and directions that are all 0 are not stated."""
    node = region_form(op, form, schema, opset)
    for name, attr in op.properties.items():
        if not isinstance(attr, DenseArrayBase) or any(op.attr(name)):
            put_attribute(op, node, schema, name, op.attr(name), None, opset)
    return node


def optional_form(op: SxOp, form: OnnxForm, schema: Any, opset: int) -> NodeForm:
    """The type is stated where there is no value to show it."""
    node = NodeForm(form.name, form.domain, list(op.slots), list(op.results))
    stated = op.properties.get("type")
    if stated is not None:
        node.attributes["type"] = onnx.AttributeProto(
            name="type", type=onnx.AttributeProto.TYPE_PROTO, tp=type_proto(stated)
        )
    return node


FORMS = {"sx.if": region_form, "sx.loop": region_form, "sx.scan": scan_form, "sx.optional": optional_form}
