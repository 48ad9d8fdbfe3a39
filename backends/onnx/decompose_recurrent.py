"""Recurrent layers whose batch comes first, before opset 14."""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.onnx.decompose import Values, decomposes
from sardonyx.backends.onnx.rewrite import Expansion

STATES = (1, 0, 2)


@decomposes("rnn", "gru", "lstm")
def _batch_first(op: Any, b: Expansion, opset: int) -> Values:
    """The same layer on transposed sequences and states, and its results transposed back."""
    if not op.attr("layout"):
        return None
    name = op.name.removeprefix("sx.")
    operands: list[SSAValue | None] = [op.x, op.w, op.r, op.b, op.sequence_lens, op.initial_h]
    if name == "lstm":
        operands += [op.initial_c, op.p]
    for at in (0, 5, 6):
        value = operands[at] if at < len(operands) else None
        if value is not None:
            operands[at] = b("transpose", value, perm=STATES)
    layer = b.ops(name, *operands, **{k: v for k, v in op.python_properties().items() if k != "layout"})
    turned: list[SSAValue | None] = [b("transpose", layer.results[0], perm=(2, 0, 1, 3))]
    turned += [b("transpose", state, perm=STATES) for state in layer.results[1:]]
    return turned
