"""Attention of com.microsoft: Attention, MultiHeadAttention, RotaryEmbedding."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of
from sardonyx.dialects.dtypes import int64
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.adapters.contrib_quantized import product, vector
from sardonyx.frontend.onnx.contrib import (
    attention,
    causal,
    contrib,
    extent,
    key_mask,
    known_rank,
    slice_axis,
    split_heads,
)
from sardonyx.frontend.onnx.node import NodeContext, rank_of


def _heads(n: NodeContext, name: str = "num_heads") -> int:
    heads = n.attr(name)
    if not isinstance(heads, int) or heads < 1:
        raise InvalidArgumentError(f"its {name} is {heads}")
    return heads


@contrib("Attention")
def _attention(n: NodeContext) -> Sequence[SSAValue | None]:
    """Self-attention whose three projections are one matrix; past keys and values are one tensor [2, B, N, P, D]."""
    x, weights, bias, mask, past, extra = (n.input(i) for i in range(6))
    if x is None or weights is None:
        raise InvalidArgumentError("its input or weights are missing")
    if n.attr("do_rotary", 0) or n.attr("past_present_share_buffer", 0) or n.input(6) is not None:
        raise n.unsupported("rotary embedding and shared buffers are not supported")
    known_rank(n, x, 3)
    projected = n("matmul", x, weights)
    if bias is not None:
        projected = n("add", projected, bias)
    return _self_attention(n, projected, weights, mask, past, extra)


def _self_attention(
    n: NodeContext,
    projected: SSAValue,
    weights: SSAValue,
    mask: SSAValue | None,
    past: SSAValue | None,
    extra: SSAValue | None,
) -> Sequence[SSAValue | None]:
    heads, sizes = _heads(n), n.attr("qkv_hidden_sizes")
    width = dims_of(weights)[1].static_value if rank_of(weights) == 2 else None
    if sizes:
        parts = n.op("split", projected, n.constant(list(sizes)), axis=-1, results=3).results
    elif width is not None and width % 3:
        raise InvalidArgumentError(f"its weights are for {width} elements, which are not three equal parts")
    else:
        parts = n.op("split", projected, axis=-1, num_outputs=3, results=3).results
    q, k, v = (split_heads(n, part, heads) for part in parts)
    present: SSAValue | None = None
    if past is not None:
        old = n.op("split", past, axis=0, num_outputs=2, results=2).results
        k, v = (n("concat", [n("squeeze", o, n.constant([0])), new], axis=2) for o, new in zip(old, (k, v)))
    if n.wanted(1):
        present = n("concat", [n("unsqueeze", t, n.constant([0])) for t in (k, v)], axis=0)
    queries, keys, low = extent(n, q, 2), extent(n, k, 2), n.attr("mask_filter_value", -10000.0)
    terms = [None if mask is None else key_mask(n, mask, queries, keys, low, q), extra]
    hidden = causal(n, queries, keys) if n.attr("unidirectional", 0) else None
    return [attention(n, q, k, v, terms, hidden)[0], present]


@contrib("QAttention")
def _quantized_attention(n: NodeContext) -> Sequence[SSAValue | None]:
    """Attention whose projections are an integer product."""
    x, weights, bias, x_scale, w_scale = (n.required(i) for i in range(5))
    known_rank(n, x, 3)
    if n.attr("do_rotary", 0):
        raise n.unsupported("rotary embedding is not supported")
    zeros = vector(n, n.input(6)), vector(n, n.input(7))
    projected = product(n, x, weights, [vector(n, x_scale) or x_scale, w_scale], zeros, bias)
    return _self_attention(n, projected, weights, n.input(5), n.input(8), None)


@contrib("MultiHeadAttention")
def _multi_head(n: NodeContext) -> Sequence[SSAValue | None]:
    """Attention whose projections were computed before, with a bias of their own.

    Keys and values of four axes are those of another sequence, projected and split already: no bias is for them.
    """
    query, key, value, bias, mask, extra, past_key, past_value = (n.input(i) for i in range(8))
    if query is None:
        raise InvalidArgumentError("its query is missing")
    heads = _heads(n)
    packed = _packed(n, query, key, value, heads)
    if packed is not None:
        query, key, value = packed
    if key is None or value is None:
        raise InvalidArgumentError("its key or its value is missing")
    if bias is not None:
        query, key, value = _biased(n, query, key, value, bias)
    q, k, v = (split_heads(n, t, heads) for t in (query, key, value))
    if past_key is not None and past_value is not None:
        k, v = n("concat", [past_key, k], axis=2), n("concat", [past_value, v], axis=2)
    queries, keys, low = extent(n, q, 2), extent(n, k, 2), n.attr("mask_filter_value", -10000.0)
    terms = [None if mask is None else key_mask(n, mask, queries, keys, low, q), extra]
    hidden = causal(n, queries, keys) if n.attr("unidirectional", 0) else None
    out, scores, _ = attention(n, q, k, v, terms, hidden)
    return [out, k if n.wanted(1) else None, v if n.wanted(2) else None, scores]


def _packed(
    n: NodeContext, query: SSAValue, key: SSAValue | None, value: SSAValue | None, heads: int
) -> tuple[SSAValue, SSAValue, SSAValue] | None:
    """The three projections out of the query, [B, S, N, 3, D], or the last two out of the key, [B, T, N, 2, D]."""
    source, count = (query, 3) if rank_of(query) == 5 else (key, 2)
    if source is None or rank_of(source) != 5:
        return None
    if value is not None or (count == 3 and key is not None):
        raise InvalidArgumentError("its projections are packed, and given once more")
    if dims_of(source)[3].static_value not in (None, count) or dims_of(source)[2].static_value not in (None, heads):
        raise InvalidArgumentError(f"its packed projections are not of {heads} heads and {count} parts")
    parts = [n("gather", source, n.constant(i), axis=3) for i in range(count)]
    joined = [n("reshape", part, n.constant([0, 0, -1])) for part in parts]
    return (query, joined[0], joined[1]) if count == 2 else (joined[0], joined[1], joined[2])


def _biased(n: NodeContext, q: SSAValue, k: SSAValue, v: SSAValue, bias: SSAValue) -> tuple[SSAValue, ...]:
    """The projections with their parts of one bias; those that are split into heads have had theirs."""
    sizes = [dims_of(t)[-1] for t in (q, k, v)]
    if rank_of(k) == 4:
        size = n("slice", n("shape", q), n.constant([2]), n.constant([3]))
        return n("add", q, slice_axis(n, bias, 0, 0, size)), k, v
    if sizes[0] == sizes[1] == sizes[2]:
        parts = n.op("split", bias, axis=0, num_outputs=3, results=3).results
    else:
        ends = [n("slice", n("shape", t), n.constant([2]), n.constant([3])) for t in (q, k, v)]
        parts = n.op("split", bias, n("concat", ends, axis=0), axis=0, results=3).results
    return tuple(n("add", t, part) for t, part in zip((q, k, v), parts))


@contrib("RotaryEmbedding")
def _rotary(n: NodeContext) -> Sequence[SSAValue]:
    """`scale` and `is_packed_batching` are looked at by no kernel."""
    n.ignores("scale", "is_packed_batching")
    x, positions, cos, sin = (n.required(i) for i in range(4))
    rank = known_rank(n, x, 3, 4)
    heads, rotated = n.attr("num_heads", 0) or 0, n.attr("rotary_embedding_dim", 0) or 0
    if rank == 3 and not heads:
        width = dims_of(cos)[-1].static_value
        hidden = dims_of(x)[-1].static_value
        if width is None or hidden is None or hidden % (2 * width):
            raise n.unsupported("its number of heads is not known")
        heads = hidden // (2 * width)
    given = x if rank == 4 else split_heads(n, x, heads)
    if known_rank(n, positions, 1, 2) == 1:  # where the first element is
        length = extent(n, given, 2)
        steps = n("range", n.constant(0), length, n.constant(1))
        positions = n("unsqueeze", n("add", steps, n("cast", positions, to=int64)), n.constant([0]))
    out = rotate(n, given, positions, cos, sin, bool(n.attr("interleaved", 0)), rotated)
    if rank == 4:
        return [out]
    return [n("reshape", n("transpose", out, perm=(0, 2, 1, 3)), n.constant([0, 0, -1]))]


def rotate(
    n: NodeContext,
    x: SSAValue,
    positions: SSAValue,
    cos: SSAValue,
    sin: SSAValue,
    interleaved: bool,
    rotated: int = 0,
) -> SSAValue:
    """Pairs of elements of [B, N, S, D] turned by the angles of their positions, [B, S] or [1, S].

    A pair are the elements i and i + R/2 of the first R, or neighbours if `interleaved`; `cos` and `sin` have R/2
    columns, and what follows the first R stays. Where the tables do not say what R is, it is `rotated`, or all.
    """
    half, width = dims_of(cos)[-1].static_value, dims_of(x)[-1].static_value
    if half is None and (rotated or width is not None):
        half = (rotated or width or 0) // 2
    if half is None or width is None:
        raise n.unsupported("the width of its heads or of its table is not known")
    if 2 * half > width:
        raise InvalidArgumentError(f"its table is for {2 * half} elements, its heads have {width}")
    c, s = (n("unsqueeze", n("gather", table, positions), n.constant([1])) for table in (cos, sin))
    turned = slice_axis(n, x, 3, 0, 2 * half) if 2 * half < width else x
    if interleaved:
        pairs = n("reshape", turned, n.constant([0, 0, 0, half, 2]))
        a, b = (n("gather", pairs, n.constant(i), axis=-1) for i in (0, 1))
    else:
        a, b = n.op("split", turned, axis=-1, num_outputs=2, results=2).results
    first = n("sub", n("mul", a, c), n("mul", b, s))
    second = n("add", n("mul", b, c), n("mul", a, s))
    if interleaved:
        stacked = n("concat", [n("unsqueeze", t, n.constant([-1])) for t in (first, second)], axis=-1)
        out = n("reshape", stacked, n.constant([0, 0, 0, 2 * half]))
    else:
        out = n("concat", [first, second], axis=-1)
    return n("concat", [out, slice_axis(n, x, 3, 2 * half, width)], axis=-1) if 2 * half < width else out
