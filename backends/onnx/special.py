"""The forms of ops that `nodes.generic_form` does not get right, by op name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnx import defs
from xdsl.dialects.builtin import DictionaryAttr

from sardonyx.backends.onnx import opaque
from sardonyx.backends.onnx.nodes import NodeForm, Unstatable, generic_form, put_attribute
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Proof, divides
from sardonyx.dialects.sx.support import is_unranked


def _split(op: SxOp, form: OnnxForm, schema: defs.OpSchema, opset: int) -> NodeForm:
    """Before opset 18 a Split without sizes means equal parts, and has no attribute that counts them."""
    if "num_outputs" in schema.attributes or op.attr("num_outputs") is None:
        return generic_form(op, form, schema, opset)
    dims = None if is_unranked(op.slots[0]) else dims_of(op.slots[0])
    if dims is None or divides(len(op.results), dims[op.attr("axis")]) is not Proof.PROVED:
        raise Unstatable("Split into parts that may be unequal has no form in it")
    node = NodeForm(form.name, form.domain, list(op.slots), list(op.results))
    put_attribute(op, node, schema, "axis", op.attr("axis"), 0, opset)
    return node


def _mod(op: SxOp, form: OnnxForm, schema: defs.OpSchema, opset: int) -> NodeForm:
    """Before opset 28 Mod of floats is fmod only."""
    if opset < 28 and dtype_of(op.results[0]).is_float and not op.attr("fmod"):
        raise Unstatable("Mod of floats has only the form fmod = 1 in it")
    return generic_form(op, form, schema, opset)


def opaque_form(op: SxOp, form: OnnxForm) -> NodeForm:
    """The node of an unknown operator, as it was."""
    attributes = op.properties.get("attrs")
    stated = opaque.from_ir(attributes.data) if isinstance(attributes, DictionaryAttr) else {}
    return NodeForm(form.name, form.domain, list(op.slots), list(op.results), stated, op.attr("overload"))


SPECIAL: dict[str, Callable[[SxOp, OnnxForm, Any, int], NodeForm]] = {"sx.split": _split, "sx.mod": _mod}
