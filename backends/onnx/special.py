"""The forms of ops that `nodes.generic_form` does not get right, by op name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import defs
from xdsl.dialects.builtin import DictionaryAttr

from sardonyx.backends.onnx import control, opaque, sampling_forms
from sardonyx.backends.onnx.nodes import (
    NodeForm,
    Unstatable,
    generic_form,
    put_attribute,
    schema_of,
)
from sardonyx.backends.onnx.wire import put_choices
from sardonyx.dialects.attributes import dims_of, dtype_of, static_shape
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Proof, divides
from sardonyx.dialects.dtypes import FLOATS_8, float8e8m0
from sardonyx.dialects.sx.ml_support import is_table, table_of
from sardonyx.dialects.sx.support import is_unranked
from sardonyx.dialects.sx.tree_eval import MODES


def _split(op: SxOp, form: OnnxForm, schema: defs.OpSchema, opset: int) -> NodeForm:
    """Before opset 18 a Split without sizes means equal parts, and has no attribute that counts them."""
    if "num_outputs" in schema.attributes or op.attr("num_outputs") is None:
        return generic_form(op, form, schema, opset)
    data = op.slots[0]
    dims = None if data is None or is_unranked(data) else dims_of(data)
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


def _conv(op: SxOp, form: OnnxForm, schema: defs.OpSchema, opset: int) -> NodeForm:
    _require_channels_second(op)
    return generic_form(op, form, schema, opset)


def _require_channels_second(op: SxOp) -> None:
    if op.attr("layout") != "NCHW":
        raise Unstatable(f"the layout {op.attr('layout')} has no form in it")


def _pool(op: SxOp, form: OnnxForm, schema: defs.OpSchema, opset: int) -> NodeForm:
    """Before opset 22 `ceil_mode` did not say that a window which starts behind the data is dropped."""
    _require_channels_second(op)
    data = op.slots[0]
    if opset < 22 and op.attr("ceil_mode") and data is not None and op.attr("auto_pad") in (None, "NOTSET"):
        sizes, found = static_shape(data), static_shape(op.results[0])
        if sizes is not None and found is not None and _ceiled(op, sizes[2:]) != found[2:]:
            raise Unstatable("a last window that starts behind the data has another meaning in it")
    return generic_form(op, form, schema, opset)


def _ceiled(op: SxOp, sizes: Sequence[int]) -> tuple[int, ...]:
    """The extents by the formula of the older opsets."""
    rank = len(sizes)
    kernel = op.attr("kernel_shape")
    strides, dilations = op.attr("strides") or (1,) * rank, op.attr("dilations") or (1,) * rank
    pads = op.attr("pads") or (0,) * (2 * rank)
    out: list[int] = []
    for axis, size in enumerate(sizes):
        span = size + pads[axis] + pads[axis + rank] - ((kernel[axis] - 1) * dilations[axis] + 1)
        out.append(-(-span // strides[axis]) + 1)
    return tuple(out)


def _batch_norm(op: SxOp, form: OnnxForm, schema: defs.OpSchema, opset: int) -> NodeForm:
    """At inference there is one output."""
    if not op.attr("training_mode") and any(r.uses for r in op.results[1:]):
        raise Unstatable("running statistics are outputs of training mode only")
    return generic_form(op, form, schema, opset)


def _trees(op: SxOp, form: OnnxForm, schema: defs.OpSchema, opset: int) -> NodeForm:
    """Modes are names; tables of doubles have attributes of their own, since ai.onnx.ml 3.

    The attributes, which may have millions of entries, are made once for an op.
    """
    state = (schema.since_version, tuple(map(id, op.properties.values())))
    made = getattr(op, "_onnx_tables", None)
    if made is None or made[0] != state:
        made = op._onnx_tables = (state, _tree_attributes(op, form, schema, opset))  # pyright: ignore[reportAttributeAccessIssue]
    return NodeForm(form.name, form.domain, list(op.slots), list(op.results), dict(made[1]))


def _tree_attributes(op: SxOp, form: OnnxForm, schema: defs.OpSchema, opset: int) -> dict[str, onnx.AttributeProto]:
    node = NodeForm(form.name, form.domain, [], [])
    for prop in type(op).get_irdl_definition().properties:
        attr = op.properties.get(prop)
        if not is_table(attr) or prop.startswith("classlabels"):
            put_attribute(op, node, schema, prop, op.attr(prop), op.DEFAULTS.get(prop), opset)
            continue
        array = table_of(attr)
        if prop == "nodes_modes" and form.name != "TreeEnsemble":
            made = node.attributes[prop] = onnx.AttributeProto(name=prop, type=onnx.AttributeProto.STRINGS)
            put_choices(made, _MODE_NAMES, array)
            continue
        if array.dtype == np.float64 and form.name != "TreeEnsemble":
            prop += "_as_tensor"
        put_attribute(op, node, schema, prop, attr, None, opset)
    return node.attributes


_MODE_NAMES = [name.encode() for name in MODES]


def _cast(op: SxOp, form: OnnxForm, schema: defs.OpSchema, opset: int) -> NodeForm:
    """`saturate` and `round_mode` are for some dtypes only; an older opset lacks them, and those dtypes."""
    node = NodeForm(form.name, form.domain, list(op.slots), list(op.results))
    target = dtype_of(op.results[0])
    for name, of in (("saturate", (*FLOATS_8, float8e8m0)), ("round_mode", (float8e8m0,))):
        if name in schema.attributes or target in of:
            put_attribute(op, node, schema, name, op.attr(name), op.DEFAULTS.get(name), opset)
    if "to" in schema.attributes:
        put_attribute(op, node, schema, "to", op.attr("to"), None, opset)
    return node


def _recurrent(op: SxOp, form: OnnxForm, schema: defs.OpSchema, opset: int) -> NodeForm:
    """`hidden_size` follows from the weights, but engines want it stated."""
    node = generic_form(op, form, schema, opset)
    weights = op.operands[2]
    hidden = None if is_unranked(weights) else dims_of(weights)[2].static_value
    if hidden is not None:
        put_attribute(op, node, schema, "hidden_size", hidden, None, opset)
    return node


def opaque_form(op: SxOp, form: OnnxForm, target: int) -> NodeForm:
    """The node of an unknown operator, as it was; `target` is the version of its domain in the model.

    Raises:
        Unstatable: ONNX defines the operator, and it is another one in that version.
    """
    version, since = (_since(form, v) for v in (op.attr("version"), target))
    if version != since:
        raise Unstatable(f"{form.name} was imported at version {op.attr('version')}, and differs in version {target}")
    attributes = op.properties.get("attrs")
    stated = opaque.from_ir(attributes.data) if isinstance(attributes, DictionaryAttr) else {}
    node = NodeForm(form.name, form.domain, list(op.slots), list(op.results), stated, op.attr("overload"))
    for name, region in zip(op.attr("graphs"), op.regions, strict=True):
        node.graphs.setdefault(name.removesuffix("[]"), []).append(region)
        if name.endswith("[]"):
            node.lists.add(name.removesuffix("[]"))
    return node


def _since(form: OnnxForm, version: int) -> int | None:
    """The version in which the operator got its meaning of that version; None for one that ONNX does not define."""
    schema = schema_of(form.domain, form.name, version)
    return None if schema is None else schema.since_version


SPECIAL: dict[str, Callable[[SxOp, OnnxForm, Any, int], NodeForm]] = {
    **sampling_forms.FORMS,
    **control.FORMS,
    "sx.split": _split,
    "sx.cast": _cast,
    "sx.rnn": _recurrent,
    "sx.gru": _recurrent,
    "sx.lstm": _recurrent,
    "sx.cast_like": _cast,
    "sx.mod": _mod,
    "sx.conv": _conv,
    "sx.max_pool": _pool,
    "sx.average_pool": _pool,
    "sx.batch_norm": _batch_norm,
    "sx.tree_ensemble": _trees,
    "sx.tree_ensemble_regressor": _trees,
    "sx.tree_ensemble_classifier": _trees,
}
