"""Layer normalisation with what is fused into it, of com.microsoft, and what onnxruntime has of it in ai.onnx."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.dtypes import float32, int32
from sardonyx.dialects.sx.constant import dense_attribute
from sardonyx.frontend.onnx.contrib import CONTRIB, add, contrib, extent
from sardonyx.frontend.onnx.node import NodeContext, rank_of


@contrib("LayerNormalization", domain=CONTRIB)
def _layer_norm(n: NodeContext) -> Sequence[SSAValue]:
    return n.op(
        "layer_norm", n.required(0), n.required(1), n.input(2), axis=n.attr("axis", -1), epsilon=n.attr("epsilon", 1e-5)
    ).results


@contrib("SimplifiedLayerNormalization", domain="")
@contrib("SimplifiedLayerNormalization")
def _simplified(n: NodeContext) -> Sequence[SSAValue | None]:
    x, axis, epsilon = n.required(0), n.attr("axis", -1), n.attr("epsilon", 1e-5)
    n.ignores("stash_type")  # float32, in which all of it is computed
    out = n("rms_norm", x, n.required(1), axis=axis, epsilon=epsilon)
    return [out, _inverse_deviation(n, x, axis, epsilon) if n.wanted(1) else None]


def _inverse_deviation(n: NodeContext, x: SSAValue, axis: int, epsilon: float) -> SSAValue:
    """1 / sqrt(mean of squares + epsilon), float32."""
    rank = rank_of(x)
    if rank is None and axis >= 0:
        raise n.unsupported("an input has an unknown rank")
    axes = range(axis, 0) if axis < 0 else range(axis, rank or 0)
    wide = n("cast", x, to=float32)
    power = n("reduce_mean", n("mul", wide, wide), n.constant(list(axes)), keepdims=True)
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
    n.ignores("mask_index_type")  # a mask is counted whatever it says
    total = _embedded(n, ids, segments, positions, word, position, segment)
    out = n("layer_norm", total, n.required(5), n.input(6), epsilon=n.attr("epsilon", 1e-12))
    return [out, _counted(n, ids, mask), total]


@contrib("QEmbedLayerNormalization")
def _quantized_embed(n: NodeContext) -> Sequence[SSAValue | None]:
    """The same with tables of 8 bits: five tables, a mask, five scales, five zero points."""

    def real(values: SSAValue, table: int) -> SSAValue:
        return n("dequantize_linear", values, n.required(table + 6), n.input(table + 11))

    ids, segments, segment, bias = n.required(0), n.input(1), n.input(4), n.input(6)
    if segment is None:
        n.ignores(10, 15)
    total = _embedded(n, ids, segments, None, n.required(2), n.required(3), segment, real)
    scale, shift = real(n.required(5), 5), None if bias is None else real(bias, 6)
    out = n("layer_norm", total, scale, shift, epsilon=n.attr("epsilon", 1e-12))
    return [out, _counted(n, ids, n.input(7))]


def _embedded(
    n: NodeContext,
    ids: SSAValue,
    segments: SSAValue | None,
    positions: SSAValue | None,
    word: SSAValue,
    position: SSAValue,
    segment: SSAValue | None,
    real: Callable[[SSAValue, int], SSAValue] = lambda rows, table: rows,
) -> SSAValue:
    """The sum of the rows of the tables; positions count from 0 where none are given.

    Args:
        real: The real values of rows of the table of that input number.
    """
    if positions is None:
        length = extent(n, ids, 1)
        placed = n("slice", position, n.constant([0]), n("unsqueeze", length, n.constant([0])), n.constant([0]))
    else:
        placed = n("gather", position, positions)
    total = n("add", real(n("gather", word, ids), 2), real(placed, 3))
    if segment is not None and segments is not None:
        total = n("add", total, real(n("gather", segment, segments), 4))
    return total


def _counted(n: NodeContext, ids: SSAValue, mask: SSAValue | None) -> SSAValue | None:
    """How many words of each sequence the mask shows, int32; 0 without one."""
    if not n.wanted(1):
        return None
    if mask is not None:
        ones = n("cast", n("equal", mask, n.constant(1, dtype_of(mask))), to=int32)
        return n("reduce_sum", ones, n.constant([1]), keepdims=False)
    batch = n("unsqueeze", extent(n, ids, 0), n.constant([0]))
    return n("constant_of_shape", batch, value=dense_attribute(np.zeros(1, np.int32)))
