"""Attention in opsets that have no such operator, or another one."""

from __future__ import annotations

from sardonyx.backends.onnx.decompose import Values, decomposes
from sardonyx.backends.onnx.rewrite import Expansion
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.sx.attention import AttentionOp
from sardonyx.passes.attention_parts import attention_by_parts


@decomposes("attention")
def _attention(op: SxOp, b: Expansion, opset: int) -> Values:
    return [attention_by_parts(op, b, b.constant)] if isinstance(op, AttentionOp) else None
