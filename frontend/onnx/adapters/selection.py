"""Operators that choose or place elements: Scatter (before opset 11), TopK with `k` as an attribute."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.adapters.registry import adapts
from sardonyx.frontend.onnx.node import NodeContext


@adapts("Scatter")
def _scatter(n: NodeContext) -> Sequence[SSAValue]:
    """ScatterElements by its old name."""
    return [n("scatter_elements", n.required(0), n.required(1), n.required(2), axis=n.attr("axis", 0))]


@adapts("TopK", until=9)
def _top_k(n: NodeContext) -> Sequence[SSAValue]:
    k = n.attr("k")
    if not isinstance(k, int) or k < 0:
        raise InvalidArgumentError(f"its attribute 'k' is {k}, not a number of elements")
    return n.op("top_k", n.required(0), n.constant([k]), axis=n.attr("axis", -1)).results
