"""Rotary embeddings are lowered as their products and sums, which fuse like any others."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.expand import Builder, expands
from sardonyx.dialects.sx.rotary import RotaryEmbeddingOp
from sardonyx.passes.rotary_parts import rotary_by_parts


@expands(RotaryEmbeddingOp)
def _rotary(b: Builder, op: RotaryEmbeddingOp) -> Sequence[SSAValue]:
    return [rotary_by_parts(op, b.by_name, b.constant_of)]
