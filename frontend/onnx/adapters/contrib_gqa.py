"""GroupQueryAttention of com.microsoft: attention with a cache, fewer heads of keys than of queries, and rotation."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of
from sardonyx.dialects.dtypes import int64
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.adapters.contrib_attention import rotate
from sardonyx.frontend.onnx.contrib import attention, contrib, extent, known_rank, scalar, split_heads
from sardonyx.frontend.onnx.node import NodeContext


@contrib("GroupQueryAttention")
def _group_query(n: NodeContext) -> Sequence[SSAValue | None]:
    """Each sequence's new keys stand behind its own past ones: `seqlens_k` + 1 of all are there.

    Where the cache has room (its length is that of the present), they are written into it; what lies behind the last
    key of a sequence is 0 or what was there, and nobody sees it. `query_seqlens` says how many of the new ones count.
    Caches of integers and those of a sliding window stay opaque.
    """
    query, key, value, past_key, past_value, lengths, total = (n.input(i) for i in range(7))
    if query is None or lengths is None or total is None:
        raise InvalidArgumentError("its query, seqlens_k or total_sequence_length is missing")
    if n.attr("k_quant_type", "NONE") != "NONE" or n.attr("v_quant_type", "NONE") != "NONE":
        raise n.unsupported("quantised caches are not supported")
    n.ignores("kv_cache_bit_width")  # of those
    if n.attr("sliding_window_cache", 0):
        raise n.unsupported("a cache of a sliding window is not supported")
    heads, kv_heads = n.attr("num_heads", 0), n.attr("kv_num_heads", 0)
    if heads < 1 or kv_heads < 1 or heads % kv_heads:
        raise InvalidArgumentError(f"{heads} heads of queries do not divide into {kv_heads} of keys")
    known_rank(n, query, 3)
    if key is None or value is None:
        width = dims_of(query)[-1].static_value
        if width is None or width % (heads + 2 * kv_heads):
            raise n.unsupported("the width of its packed projections is not known")
        size = width // (heads + 2 * kv_heads)
        sizes = n.constant([heads * size, kv_heads * size, kv_heads * size])
        query, key, value = n.op("split", query, sizes, axis=-1, results=3).results
    q, k, v = split_heads(n, query, heads), split_heads(n, key, kv_heads), split_heads(n, value, kv_heads)
    q, k = _normed(n, q, 14, "q_norm_epsilon"), _normed(n, k, 15, "k_norm_epsilon")
    new, valid = extent(n, q, 2), n.input(16)
    whole = n("reshape", n("cast", total, to=int64), n.constant([]))
    # How many keys each sequence had before, [B, 1]: none at the first call, where `total` is what is given now.
    counts = n("add", n("reshape", n("cast", lengths, to=int64), n.constant([-1, 1])), n.constant(1))
    one, zero = n.constant(1), n.constant(0)
    first = n("equal", whole, new)
    if valid is None:
        count = new
        before = n("where", first, zero, n("sub", counts, new))
    else:
        count = n("reshape", n("cast", valid, to=int64), n.constant([-1, 1]))
        before = n("sub", counts, count)
    if n.attr("do_rotary", 0):
        cos, sin, positions = n.input(7), n.input(8), n.input(9)
        if cos is None or sin is None:
            raise InvalidArgumentError("it rotates, but has no cos_cache or sin_cache")
        steps = n("range", zero, new, one)
        if positions is None:
            positions = n("add", before, steps)
        else:  # of a first call only the first one is looked at
            start = n("slice", n("reshape", positions, n.constant([-1])), n.constant([0]), n.constant([1]))
            positions = n("where", first, n("add", start, steps), positions)
        turned = bool(n.attr("rotary_interleaved", 0))
        q, k = rotate(n, q, positions, cos, sin, turned), rotate(n, k, positions, cos, sin, turned)
    else:
        n.ignores(7, 8, 9, "rotary_interleaved")
    if past_key is not None and past_value is not None:
        k, v = (_cached(n, old, t, before, count, whole) for old, t in ((past_key, k), (past_value, v)))
    present = k, v
    hidden = _hidden(n, extent(n, k, 2), new, before, counts)
    if heads != kv_heads:
        k, v = (_repeated(n, t, heads // kv_heads) for t in (k, v))
    out, scores, shares = attention(
        n, q, k, v, [n.input(10)], hidden, cap=n.attr("softcap", 0.0) or 0.0, sink=_sink(n, q)
    )
    which = n.attr("qk_output", 0)
    if which == 1 and n.wanted(3):  # what is hidden is 0 there
        shares = n("where", hidden, scalar(n, 0.0, scores), scores)
    return [
        out,
        present[0] if n.wanted(1) else None,
        present[1] if n.wanted(2) else None,
        shares if which in (1, 2) else None,
    ]


def _normed(n: NodeContext, x: SSAValue, weight: int, epsilon: str) -> SSAValue:
    """Each head divided by the root of its mean square, times a weight, where that input is there."""
    own, both, scale = n.attr(epsilon), n.attr("qk_norm_epsilon", 1e-6), n.input(weight)
    return x if scale is None else n("rms_norm", x, scale, axis=-1, epsilon=both if own is None else own)


def _sink(n: NodeContext, like: SSAValue) -> SSAValue | None:
    """The score by which rows may turn to nothing: one of each head, or 0."""
    sink, smooth = n.input(11), n.attr("smooth_softmax", 0) == 1
    if sink is not None:
        return n("reshape", sink, n.constant([1, -1, 1, 1]))
    return n("reshape", scalar(n, 0.0, like), n.constant([1, 1, 1, 1])) if smooth else None


def _hidden(n: NodeContext, keys: SSAValue, new: SSAValue, before: SSAValue, counts: SSAValue) -> SSAValue:
    """Which keys each query may not see, [B, 1, S, T]: those behind it and those before its window.

    Where it may see all, those that a sequence has not.
    """
    zero, one, window = n.constant(0), n.constant(1), n.attr("local_window_size", -1)
    columns = n("range", zero, keys, one)
    if not n.attr("causal", 1):
        return n("greater_equal", columns, n("unsqueeze", counts, n.constant([1, 3])))
    rows = n("unsqueeze", n("add", before, n("range", zero, new, one)), n.constant([1, 3]))
    hidden = n("greater", columns, rows)
    if window > 0:
        hidden = n("or", hidden, n("less_equal", columns, n("sub", rows, n.constant(window))))
    return hidden


def _cached(
    n: NodeContext, old: SSAValue, new: SSAValue, before: SSAValue, valid: SSAValue, total: SSAValue
) -> SSAValue:
    """The cache with `valid` new elements behind the first `before` of each sequence, as long as it was or `total`."""
    room, zero, one = extent(n, old, 2), n.constant(0), n.constant(1)
    length = n("max", [room, total])
    at = n("unsqueeze", n("range", zero, length, one), n.constant([0]))  # [1, T]
    offset = n("sub", at, before)  # [B, T]: which of the new elements is meant
    last = n("sub", n("add", room, extent(n, new, 2)), one)
    inside = n("and", n("greater_equal", offset, zero), n("less", offset, valid))
    index = n("where", inside, n("add", room, offset), n("min", [at, n("max", [n("sub", room, one), zero])]))
    index = n("min", [index, last])
    shape = n(
        "concat",
        [n("slice", n("shape", new), n.constant([0]), n.constant([2])), _vector(n, length),
         n("slice", n("shape", new), n.constant([3]), n.constant([4]))],
        axis=0,
    )  # fmt: skip
    wide = n("expand", n("unsqueeze", index, n.constant([1, 3])), shape)
    return n("gather_elements", n("concat", [old, new], axis=2), wide, axis=2)


def _vector(n: NodeContext, value: SSAValue) -> SSAValue:
    return n("unsqueeze", value, n.constant([0]))


def _repeated(n: NodeContext, x: SSAValue, times: int) -> SSAValue:
    """Each head of [B, N, T, D] several times: [B, N * times, T, D]."""
    wide = n("unsqueeze", x, n.constant([2]))
    wide = n("expand", wide, n.constant([1, 1, times, 1, 1]))
    shape = n("shape", x)
    parts = [n("slice", shape, n.constant([i]), n.constant([i + 1])) for i in (0, 2, 3)]
    return n("reshape", wide, n("concat", [parts[0], n.constant([-1]), parts[1], parts[2]], axis=0))
