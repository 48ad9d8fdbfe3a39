"""GRU of opset 1."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.frontend.onnx.adapters.registry import adapts
from sardonyx.frontend.onnx.generic import import_generically
from sardonyx.frontend.onnx.node import NodeContext


@adapts("GRU", until=2)
def _gru(n: NodeContext) -> Sequence[SSAValue]:
    """The schema's default for `direction` is misspelt ('foward'); the others are the op's own, too."""
    n.schema = None
    found = import_generically(n, "")
    if found is None:
        raise n.unsupported("it has no op")
    return found
