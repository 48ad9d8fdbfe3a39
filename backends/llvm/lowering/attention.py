"""Attention is lowered as its products, mask and softmax, which fuse like any others."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.expand import Builder, expands
from sardonyx.dialects.sx.attention import AttentionOp
from sardonyx.passes.attention_parts import attention_by_parts


@expands(AttentionOp)
def _attention(b: Builder, op: AttentionOp) -> Sequence[SSAValue]:
    return [attention_by_parts(op, b.by_name, b.constant_of)]
