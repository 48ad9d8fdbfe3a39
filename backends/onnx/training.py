"""How a model is trained further (`ModelProto.training_info`): kept as it is, and given back where it still fits.

The graphs of a training step read values of the model's graph by name and are written in the model's opset. So they
are kept as they are, and an export has them where the opset is the same and all that they name is there; else it says
what is missing.
"""

from __future__ import annotations

import base64
import binascii

import onnx
from google.protobuf.message import DecodeError
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr

from sardonyx.backends.onnx.messages import all_nodes
from sardonyx.backends.onnx.notes import warn
from sardonyx.dialects.module import get_opset
from sardonyx.errors import InvalidArgumentError

TRAINING = "sx.training"
MAX_BYTES = 1 << 24
"""Larger training graphs hold weights of their own, which have no place in the IR's text."""
_NAMING = frozenset({"xs", "zs", "y"})
"""Attributes of ai.onnx.preview.training.Gradient that name values."""


def note_training(proto: onnx.ModelProto, module: ModuleOp) -> None:
    """Note a model's training information in the module."""
    if not proto.training_info:
        return
    size = sum(info.ByteSize() for info in proto.training_info)
    if size > MAX_BYTES:
        warn(f"the model's training information takes {size} bytes, more than {MAX_BYTES}; it is left out")
        return
    module.attributes[TRAINING] = ArrayAttr(
        StringAttr(base64.b64encode(info.SerializeToString(deterministic=True)).decode())
        for info in proto.training_info
    )


def state_training(module: ModuleOp, opset: int, proto: onnx.ModelProto) -> set[str]:
    """Put it into a model of an opset, whole, or warn; returns the domains that its operators are of.

    Raises:
        InvalidArgumentError: What was noted is damaged.
    """
    noted = module.attributes.get(TRAINING)
    if not isinstance(noted, ArrayAttr):
        return set()
    infos: list[onnx.TrainingInfoProto] = []
    for text in noted.data:
        try:
            raw = base64.b64decode(text.data if isinstance(text, StringAttr) else "", validate=True)
            infos.append(onnx.TrainingInfoProto.FromString(raw))
        except (binascii.Error, ValueError, DecodeError) as error:
            raise InvalidArgumentError(f"the graph's training information is damaged: {error}") from error
    own = get_opset(module)
    if opset != own:
        warn(f"the model's training information is left out: it is of opset {own}, and the model of opset {opset}")
        return set()
    graph = proto.graph
    known = {v.name for v in graph.input} | {t.name for t in graph.initializer}
    known |= {t.values.name for t in graph.sparse_initializer} | {o for n in graph.node for o in n.output}
    gone = sorted({name for info in infos for name in _needed(info)} - known)
    if gone:
        warn(f"the model's training information is left out: it names '{gone[0]}', which the model has no more")
        return set()
    proto.training_info.extend(infos)
    used = {n.domain for info in infos for g in (info.initialization, info.algorithm) for n in all_nodes(g)}
    return used - {"", "ai.onnx"}


def _needed(info: onnx.TrainingInfoProto) -> set[str]:
    """The names of the model's graph that a training step reads or sets."""
    own: set[str] = set()
    read: set[str] = set()
    for graph in (info.initialization, info.algorithm):
        own |= {v.name for v in graph.input} | {t.name for t in graph.initializer}
        own |= {t.values.name for t in graph.sparse_initializer}
        read |= {v.name for v in graph.output}
        for node in all_nodes(graph):
            own.update(node.output)
            read.update(node.input)
            for attribute in node.attribute if node.op_type == "Gradient" else ():
                if attribute.name in _NAMING:
                    read.update(s.decode(errors="replace") for s in (*attribute.strings, attribute.s))
    for binding in (*info.initialization_binding, *info.update_binding):
        read |= {binding.key, binding.value}
    return read - own - {""}
