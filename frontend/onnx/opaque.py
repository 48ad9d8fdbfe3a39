"""A node of an operator that nobody here knows, as `sx.opaque`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import onnx
from xdsl.ir import Attribute, SSAValue

from sardonyx.backends.onnx.opaque import to_ir
from sardonyx.dialects.sx.opaque import OpaqueOp
from sardonyx.errors import UnsupportedError
from sardonyx.frontend.onnx.node import NodeContext
from sardonyx.frontend.onnx.types import value_type


def import_opaquely(
    n: NodeContext, domain: str, declared: Mapping[str, onnx.ValueInfoProto], public: Callable[[str], str]
) -> Sequence[SSAValue]:
    """The node as it is; its results have the types that the model declares for them.

    Raises:
        UnsupportedError: The model declares no type for an output, or an attribute has no form in the IR.
    """
    names = list(n.node.output)
    while names and not names[-1]:
        names.pop()
    types: list[Attribute] = []
    for name in names:
        info = declared.get(public(name))
        if info is None:
            raise UnsupportedError(
                f"the operator {domain}.{n.node.op_type} is unknown, "
                f"and the model declares no type for its output '{name}'"
            )
        types.append(value_type(info, "value"))
    inputs = list(n.inputs)
    while inputs and inputs[-1] is None:
        inputs.pop()
    op = OpaqueOp.make(
        [v for v in inputs if v is not None],
        results=len(types),
        result_types=types,
        location=n.location,
        op_type=n.node.op_type,
        domain=domain,
        version=n.opset,
        overload=n.node.overload,
        attrs=to_ir(n.node.attribute, n.importer.store),
        absent=tuple(i for i, v in enumerate(inputs) if v is None),
    )
    return n.importer.add(op).results
