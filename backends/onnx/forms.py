"""How an op stands as one ONNX node at an opset, or why it can't.

`form_of` is the one place that knows: emission writes what it returns, and `legalize-for-opset` rewrites the ops for
which it raises. It is derived from the op class's `OnnxForm` and from ONNX's schema of that opset, so a new op needs
nothing here. What a schema cannot say stands in `special` and in the tables here and in `nodes`.
"""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from sardonyx.backends.onnx.metadata import domain_version
from sardonyx.backends.onnx.nodes import NodeForm, Unstatable, check_types, generic_form, schema_of
from sardonyx.backends.onnx.special import SPECIAL, opaque_form
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.sx.opaque import OpaqueOp

# Operators of which this file states forms older than their class's `since`: those whose axes were an attribute.
OLDER_SINCE: dict[str, int] = dict.fromkeys(
    ["ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
     "ReduceSumSquare"], 13
)  # fmt: skip


def form_of(op: SxOp, opset: int) -> NodeForm:
    """The op as one node of an opset.

    Raises:
        Unstatable: It can't be one.
    """
    form = onnx_form(op)
    if form is None:
        raise Unstatable("it has no ONNX form")
    if isinstance(op, OpaqueOp):
        return opaque_form(op, form, domain_opset(op, form, opset))
    schema = schema_of(form.domain, form.name, domain_opset(op, form, opset))
    if schema is None:
        raise Unstatable(f"{form.name} is not an operator of {form.domain or 'it'}")
    if not form.domain and opset < OLDER_SINCE.get(form.name, form.since):
        raise Unstatable(f"{form.name} has another meaning in it")
    special = SPECIAL.get(op.name)
    node = special(op, form, schema, opset) if special is not None else generic_form(op, form, schema, opset)
    check_types(node, schema)
    return node


def domain_opset(op: SxOp, form: OnnxForm, opset: int) -> int:
    """The version of the operator's domain in the model that the op's module becomes."""
    if not form.domain:
        return opset
    at: Operation | None = op
    while at is not None and not isinstance(at, ModuleOp):
        at = at.parent_op()
    return form.since if at is None else domain_version(at, form.domain, form.since)


def onnx_form(op: SxOp) -> OnnxForm | None:
    """The class's form; that of an unknown operator is the op's own."""
    if isinstance(op, OpaqueOp):
        return OnnxForm(op.attr("op_type"), op.attr("domain"))
    return type(op).ONNX
