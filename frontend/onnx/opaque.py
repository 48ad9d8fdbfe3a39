"""A node of an operator that nobody here knows, as `sx.opaque`."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from xdsl.ir import Attribute, Region, SSAValue

from sardonyx.backends.onnx.opaque import to_ir
from sardonyx.backends.onnx.tensors import type_string
from sardonyx.dialects.attributes import dtype_of, unranked_type
from sardonyx.dialects.dtypes import DTYPES
from sardonyx.dialects.sx.opaque import OpaqueOp
from sardonyx.dialects.types import UnknownType, is_tensor
from sardonyx.errors import UnsupportedError
from sardonyx.frontend.onnx.body import import_body
from sardonyx.frontend.onnx.node import NodeContext
from sardonyx.frontend.onnx.types import value_type


def import_opaquely(n: NodeContext, domain: str) -> Sequence[SSAValue]:
    """The node as it is, its graphs as regions.

    Its results have the types that the model declares for them; one for which it declares none is unknown, and so is
    whatever is computed from it.

    Raises:
        UnsupportedError: An attribute has no form in the IR.
    """
    names = list(n.node.output)
    while names and not names[-1]:
        names.pop()
    inputs = list(n.inputs)
    while inputs and inputs[-1] is None:
        inputs.pop()
    plain = [a for a in n.node.attribute if a.type not in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)]
    graphs: list[str] = []
    regions: list[Region] = []
    for attribute in n.node.attribute:
        several = attribute.type == onnx.AttributeProto.GRAPHS
        for graph in attribute.graphs if several else [attribute.g] if attribute not in plain else []:
            types = [_known_type(v) for v in graph.input]
            regions.append(import_body(n, graph, types)[0])
            graphs.append(f"{attribute.name}[]" if several else attribute.name)
    op = OpaqueOp.make(
        [v for v in inputs if v is not None],
        results=len(names),
        result_types=[declared_type(n, index, name) for index, name in enumerate(names)],
        regions=regions,
        location=n.location,
        op_type=n.node.op_type,
        domain=domain,
        version=n.opset,
        overload=n.node.overload,
        attrs=to_ir(plain, n.importer.store),
        absent=tuple(i for i, v in enumerate(inputs) if v is None),
        graphs=tuple(graphs),
    )
    return n.importer.add(op).results


def declared_type(n: NodeContext, index: int, name: str) -> Attribute:
    """The type of the node's output: what the model declares, else what the schema says of its dtype, else unknown."""
    info = n.scope.declared.get(name) or n.importer.declared.get(n.scope.public(name))
    found = UnknownType() if info is None else _known_type(info)
    if not isinstance(found, UnknownType) or n.schema is None or index >= len(n.schema.outputs):
        return found
    variable = n.schema.outputs[index].type_str
    if variable in _BY_STRING:
        return unranked_type(_BY_STRING[variable])
    for formal, value in zip(n.schema.inputs, n.inputs):
        if formal.type_str == variable and value is not None and is_tensor(value.type):
            return unranked_type(dtype_of(value))
    return found


_BY_STRING = {type_string(dtype): dtype for dtype in DTYPES.values()}


def _known_type(info: onnx.ValueInfoProto) -> Attribute:
    """A declared type; unknown where none is stated, or one that is not supported."""
    if info.type.WhichOneof("value") is None:
        return UnknownType()
    try:
        return value_type(info, "value")
    except UnsupportedError:
        return UnknownType()
