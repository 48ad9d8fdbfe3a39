"""Attention and rotary embeddings in opsets that have no such operators, or others."""

from __future__ import annotations

from sardonyx.backends.onnx.decompose import Values, decomposes
from sardonyx.backends.onnx.rewrite import Expansion
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.sx.attention import AttentionOp
from sardonyx.dialects.sx.rotary import RotaryEmbeddingOp
from sardonyx.passes.attention_parts import attention_by_parts
from sardonyx.passes.rotary_parts import rotary_by_parts


@decomposes("attention")
def _attention(op: SxOp, b: Expansion, opset: int) -> Values:
    return [attention_by_parts(op, b, b.constant)] if isinstance(op, AttentionOp) else None


@decomposes("rotary_embedding")
def _rotary(op: SxOp, b: Expansion, opset: int) -> Values:
    return [rotary_by_parts(op, b, b.constant)] if isinstance(op, RotaryEmbeddingOp) else None
