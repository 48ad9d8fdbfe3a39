"""What of a model can be imported where one of its nodes cannot."""

from __future__ import annotations

import onnx
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sardonyx.errors import SardonyxError
from sardonyx.frontend.onnx.importer import Importer
from sardonyx.frontend.onnx.model import OnnxModel


def before_node(model: OnnxModel, location: str | None) -> tuple[ModuleOp, list[SSAValue]] | None:
    """The nodes before the one at which the importer stopped, and what that one reads of them.

    Args:
        model: It cannot be imported.
        location: Of the importer's error, as `node 'conv1' (Conv)`.

    Returns:
        A module without outputs, and values of it; None where no node of the main graph is named so.
    """
    nodes = model.nodes_proto.graph.node
    at = next((i for i, n in enumerate(nodes) if location == f"node '{_called(n)}' ({n.op_type})"), None)
    if at is None:
        return None
    part = onnx.ModelProto()
    part.CopyFrom(model.nodes_proto)
    del part.graph.node[at:]
    del part.graph.output[:]
    importer = Importer(part, None, model.contents)
    try:
        module, _ = importer.run()
    except SardonyxError:  # of another node of the same name
        return None
    return module, [value for name in nodes[at].input if (value := importer.values.get(name)) is not None]


def _called(node: onnx.NodeProto) -> str:
    """A node's name, as errors have it."""
    return node.name or next((o for o in node.output if o), "")
