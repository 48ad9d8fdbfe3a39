"""Layer normalisation with what is fused into it, of com.microsoft, and what onnxruntime has of it in ai.onnx."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.dtypes import float32, int32
from sardonyx.dialects.sx.constant import dense_attribute
from sardonyx.frontend.onnx.contrib import CONTRIB, add, contrib, extent
from sardonyx.frontend.onnx.node import NodeContext


@contrib("LayerNormalization", domain=CONTRIB)
def _layer_norm(n: NodeContext) -> Sequence[SSAValue]:
    return n.op(
        "layer_norm", n.required(0), n.required(1), n.input(2), axis=n.attr("axis", -1), epsilon=n.attr("epsilon", 1e-5)
    ).results


@contrib("SimplifiedLayerNormalization", domain="")
@contrib("SimplifiedLayerNormalization")
def _simplified(n: NodeContext) -> Sequence[SSAValue | None]:
    x, axis, epsilon = n.required(0), n.attr("axis", -1), n.attr("epsilon", 1e-5)
    out = n("rms_norm", x, n.required(1), axis=axis, epsilon=epsilon)
    return [out, _inverse_deviation(n, x, axis, epsilon) if n.wanted(1) else None]


def _inverse_deviation(n: NodeContext, x: SSAValue, axis: int, epsilon: float) -> SSAValue:
    """1 / sqrt(mean of squares + epsilon), float32."""
    if axis != -1:
        raise n.unsupported("its output inv_std_var is only supported over the last axis")
    wide = n("cast", x, to=float32)
    power = n("reduce_mean", n("mul", wide, wide), n.constant([-1]), keepdims=True)
    return n("reciprocal", n("sqrt", n("add", power, n.constant(epsilon, float32))))


@contrib("SkipLayerNormalization")
def _skip(n: NodeContext) -> Sequence[SSAValue | None]:
    """The layer normalisation of input + skip + bias; that sum is the fourth output."""
    total = add(n, n("add", n.required(0), n.required(1)), n.input(4))
    out, mean, deviation = n.op(
        "layer_norm", total, n.required(2), n.input(3), epsilon=n.attr("epsilon", 1e-12)
    ).results  # fmt: skip
    return [out, mean, deviation, total]


@contrib("SkipSimplifiedLayerNormalization")
def _skip_simplified(n: NodeContext) -> Sequence[SSAValue | None]:
    epsilon = n.attr("epsilon", 1e-12)
    total = add(n, n("add", n.required(0), n.required(1)), n.input(3))
    deviation = _inverse_deviation(n, total, -1, epsilon) if n.wanted(2) else None
    return [n("rms_norm", total, n.required(2), epsilon=epsilon), None, deviation, total]


@contrib("EmbedLayerNormalization")
def _embed(n: NodeContext) -> Sequence[SSAValue | None]:
    """The layer normalisation of the sum of embeddings by word, position and segment; and how many words there are."""
    ids, segments, mask, positions = n.required(0), n.input(1), n.input(7), n.input(8)
    word, position, segment = n.required(2), n.required(3), n.input(4)
    if positions is None:
        length = extent(n, ids, 1)
        placed = n("slice", position, n.constant([0]), n("unsqueeze", length, n.constant([0])), n.constant([0]))
    else:
        placed = n("gather", position, positions)
    total = n("add", n("gather", word, ids), placed)
    if segment is not None and segments is not None:
        total = n("add", total, n("gather", segment, segments))
    out = n("layer_norm", total, n.required(5), n.input(6), epsilon=n.attr("epsilon", 1e-12))
    counted: SSAValue | None = None
    if n.wanted(1):
        if mask is not None and n.attr("mask_index_type", 1):
            ones = n("cast", n("equal", mask, n.constant(1, dtype_of(mask))), to=int32)
            counted = n("reduce_sum", ones, n.constant([1]), keepdims=False)
        else:
            batch = n("unsqueeze", extent(n, ids, 0), n.constant([0]))
            counted = n("constant_of_shape", batch, value=dense_attribute(np.zeros(1, np.int32)))
    return [out, counted, total]
