"""Functions in the place of their calls: those of the model, and those by which ONNX defines an operator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import onnx
from xdsl.ir import SSAValue

from sardonyx.backends.onnx.types import type_proto
from sardonyx.dialects.values import known_ints
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.node import NodeContext
from sardonyx.frontend.onnx.types import declared_types
from sardonyx.frontend.onnx.validate import opsets_of

if TYPE_CHECKING:
    from sardonyx.frontend.onnx.importer import Importer, Scope


def call(
    importer: Importer,
    function: onnx.FunctionProto,
    node: onnx.NodeProto,
    inputs: Sequence[SSAValue | None],
    scope: Scope,
) -> list[SSAValue | None]:
    """Import a function's body in the place of a node that calls it; returns the values of its outputs.

    A body by which ONNX defines an operator leaves out what the node does not name.
    """
    from sardonyx.frontend.onnx.importer import Scope

    if len(inputs) > len(function.input):
        raise InvalidArgumentError(f"it has {len(inputs)} inputs, but the function takes {len(function.input)}")
    values = {name: value for name, value in zip(function.input, inputs) if value is not None}
    left_out = set(function.input) - values.keys()
    outputs = [scope.public(o) for o in node.output]
    called = scope.prefix + (node.name or next((o for o in node.output if o), node.op_type))
    opsets = opsets_of(function.opset_import) if function.opset_import else scope.opsets
    inner = Scope(
        values,
        {**scope.opsets, **opsets},
        prefix=f"{called}/",
        renamed=dict(zip(function.output, outputs)),
        depth=scope.depth + 1,
        declared=declared_types(function),
        loops=scope.loops,
    )
    attributes = {a.name: a for a in function.attribute_proto} | {a.name: a for a in node.attribute}
    importer.nodes([_bind(n, attributes, left_out) for n in function.node], inner)
    results: list[SSAValue | None] = []
    for name, wanted in zip(function.output, node.output):
        value = inner.find(name)
        if value is None and wanted:
            raise InvalidArgumentError(f"the function's output '{name}' is not computed")
        results.append(value)
    return results


def _bind(node: onnx.NodeProto, attributes: dict[str, onnx.AttributeProto], left_out: set[str]) -> onnx.NodeProto:
    """A node of a body with the caller's attributes in it, and without inputs that the caller left out."""
    bound = onnx.NodeProto()
    bound.CopyFrom(node)
    for index, name in enumerate(bound.input):
        if name in left_out:
            bound.input[index] = ""
    del bound.attribute[:]
    for attribute in node.attribute:
        source = attribute
        if attribute.ref_attr_name:
            given = attributes.get(attribute.ref_attr_name)
            if given is None:
                continue
            source = onnx.AttributeProto()
            source.CopyFrom(given)
            source.name = attribute.name
        target = bound.attribute.add()
        target.CopyFrom(source)
        for graph in (*([target.g] if target.type == onnx.AttributeProto.GRAPH else []), *target.graphs):
            own = {v.name for v in graph.input} | {t.name for t in graph.initializer}
            own.update(name for n in graph.node for name in n.output)
            nodes = [_bind(n, attributes, left_out - own) for n in graph.node]
            del graph.node[:]
            graph.node.extend(nodes)
    return bound


def body_of(schema: Any, n: NodeContext) -> onnx.FunctionProto | None:
    """The function by which ONNX defines the operator, for these attributes and input types.

    `schema` is an `onnx.defs.OpSchema`; its stubs lack what is asked of it here.
    """
    data = b""
    if schema.has_context_dependent_function:
        types = [_type_of(v).SerializeToString() for v in n.inputs]
        # Asked for another opset than one that a body is written for, ONNX has none.
        version = max((v for v in schema.context_dependent_function_opset_versions if v <= n.opset), default=n.opset)
        try:
            data = schema.get_context_dependent_function_with_opset_version(version, n.node.SerializeToString(), types)
        except (ValueError, RuntimeError, TypeError, IndexError) as error:  # its C++ code looks at the types unchecked
            raise InvalidArgumentError(f"ONNX has no body of it for such inputs: {error}") from None
    if not data and schema.has_function:
        data = schema.get_function_with_opset_version(n.opset)
    if not data:
        return None
    function = onnx.FunctionProto()
    function.ParseFromString(data)
    for name, what in schema.attributes.items():  # a body refers to attributes whose default the schema states
        if what.default_value.type and not n.has(name) and name not in {a.name for a in function.attribute_proto}:
            default = function.attribute_proto.add()
            default.CopyFrom(what.default_value)
            default.name = name
    return function


def _type_of(value: SSAValue | None) -> onnx.TypeProto:
    return onnx.TypeProto() if value is None else type_proto(value.type)


def known_branch(importer: Importer, n: NodeContext, scope: Scope) -> list[SSAValue] | None:
    """The branch of an If whose condition is a constant, in its place; None where the condition is not known."""
    from sardonyx.frontend.onnx.importer import Scope

    known = known_ints(n.required(0))
    if known is None or len(known) != 1:
        return None
    condition = bool(known[0])
    graph: onnx.GraphProto = n.attr("then_branch" if condition else "else_branch")
    outputs = [scope.public(o) for o in n.node.output]
    called = scope.prefix + (n.node.name or next((o for o in n.node.output if o), "If"))
    names = [v.name for v in graph.output]
    inner = Scope(
        {},
        scope.opsets,
        prefix=f"{called}/",
        renamed=dict(zip(names, outputs)),
        outer=scope,
        depth=scope.depth + 1,
        declared=declared_types(graph),
        loops=scope.loops,
    )
    n.expanded = True
    importer.body(graph, inner)
    results: list[SSAValue] = []
    for name in names:
        value = inner.find(name)
        if value is None:
            raise InvalidArgumentError(f"nothing computes the output '{name}' of its branch")
        results.append(value)
    return results
