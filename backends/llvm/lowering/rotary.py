"""Rotary embeddings are lowered as their products and sums, which fuse like any others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.expand import Builder, expands
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.sx import BY_NAME
from sardonyx.dialects.sx.rotary import RotaryEmbeddingOp
from sardonyx.passes.rotary_parts import rotary_by_parts


@expands(RotaryEmbeddingOp)
def _rotary(b: Builder, op: RotaryEmbeddingOp) -> Sequence[SSAValue]:
    def make(name: str, *slots: Any, **properties: Any) -> SSAValue:
        return b.add(BY_NAME[f"sx.{name}"], *slots, **properties)

    def constant(values: Any, dtype: DType) -> SSAValue:
        return b.constant(np.asarray(values, dtype.numpy))

    return [rotary_by_parts(op, make, constant)]
