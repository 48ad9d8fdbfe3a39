"""Quantised recurrent operators of com.microsoft."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.frontend.onnx.contrib import contrib
from sardonyx.frontend.onnx.node import NodeContext

_ACTIVATIONS = ("sigmoid", "tanh", "tanh")


@contrib("DynamicQuantizeLSTM")
def _dynamic_quantize_lstm(n: NodeContext) -> Sequence[SSAValue]:
    """Other activations than the default ones stay opaque."""
    activations = tuple(a.lower() for a in n.attr("activations") or _ACTIVATIONS)
    if activations not in (_ACTIVATIONS, _ACTIVATIONS * 2) or any(n.attr(f"activation_{p}") for p in ("alpha", "beta")):
        raise n.unsupported(f"its activations are {', '.join(activations)}")
    names = ("hidden_size", "direction", "clip", "input_forget")
    operands = [n.input(i) for i in range(12)]
    for index in (0, 1, 2, 8, 9, 10, 11):
        n.required(index)
    op = n.op("dynamic_quantize_lstm", *operands, **{name: n.attr(name) for name in names if n.has(name)})
    return op.results
