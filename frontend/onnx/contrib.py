"""What the adapters of com.microsoft share: registration, and pieces of attention.

An operator of that domain becomes the ops of its formula (as onnxruntime's CPU kernels compute it). A form of it that
its adapter does not know stays as it is, an opaque op, and is exported unchanged.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dtypes import int64
from sardonyx.errors import UnsupportedError
from sardonyx.frontend.onnx.adapters.registry import Adapter, adapts
from sardonyx.frontend.onnx.node import NodeContext, rank_of
from sardonyx.frontend.onnx.opaque import import_opaquely

CONTRIB = "com.microsoft"


def contrib(*names: str, domain: str = CONTRIB) -> Callable[[Adapter], Adapter]:
    """Register an adapter of com.microsoft; what it refuses as unsupported stays opaque."""

    def register(function: Adapter) -> Adapter:
        def adapter(n: NodeContext) -> Sequence[SSAValue | None]:
            block = n.importer.block
            before = block.last_op
            try:
                return function(n)
            except UnsupportedError:
                while block.last_op is not None and block.last_op is not before:
                    last = block.last_op
                    last.detach()
                    last.erase()
                return import_opaquely(n, n.node.domain)

        adapts(*names, domain=domain)(adapter)
        return function

    return register


def known_rank(n: NodeContext, value: SSAValue, *ranks: int) -> int:
    """The rank of a value, which has to be one of these."""
    rank = rank_of(value)
    if rank not in ranks:
        raise n.unsupported(f"an input has {'an unknown rank' if rank is None else f'rank {rank}'}")
    return rank


def extent(n: NodeContext, value: SSAValue, axis: int) -> SSAValue:
    """An extent as an int64 scalar."""
    return n("gather", n("shape", value), n.constant(axis))


def scalar(n: NodeContext, value: float, like: SSAValue) -> SSAValue:
    """A constant of the dtype of another value."""
    return n.constant(value, dtype_of(like))


def add(n: NodeContext, a: SSAValue, b: SSAValue | None) -> SSAValue:
    return a if b is None else n("add", a, b)


def split_heads(n: NodeContext, x: SSAValue, heads: int) -> SSAValue:
    """[B, S, N * D] as [B, N, S, D]; what has the latter form stays."""
    if known_rank(n, x, 3, 4) == 4:
        return x
    return n("transpose", n("reshape", x, n.constant([0, 0, heads, -1])), perm=(0, 2, 1, 3))


def join_heads(n: NodeContext, x: SSAValue) -> SSAValue:
    """[B, N, S, D] as [B, S, N * D]."""
    moved = n("transpose", x, perm=(0, 2, 1, 3))
    return n("reshape", moved, n.constant([0, 0, -1]))


def causal(n: NodeContext, queries: SSAValue, keys: SSAValue, past: SSAValue | None = None) -> SSAValue:
    """Which key each query may not see, [S, T]: those behind it; `past` keys come before the first query.

    Args:
        queries, keys: Their numbers, int64 scalars.
        past: How many keys precede the first query; by default all but the queries themselves.
    """
    zero, one = n.constant(0), n.constant(1)
    rows = n("unsqueeze", n("range", zero, queries, one), n.constant([1]))
    columns = n("range", zero, keys, one)
    return n("greater", columns, n("add", rows, past if past is not None else n("sub", keys, queries)))


def attention(
    n: NodeContext,
    q: SSAValue,
    k: SSAValue,
    v: SSAValue,
    bias: Sequence[SSAValue | None],
    hidden: SSAValue | None = None,
    filter_value: float = -10000.0,
    cap: float = 0.0,
) -> SSAValue:
    """softmax(q k' * scale + bias) v of [B, N, S, D], joined to [B, S, N * Dv].

    Args:
        bias: Terms that are added to the scores, each broadcastable to [B, N, S, T].
        hidden: Where `filter_value` is added, bool.
        cap: If it is not 0, scores are cap * tanh(scores / cap) first.
    """
    scores = n("matmul", q, n("transpose", k, perm=(0, 1, 3, 2)))
    scale = n.attr("scale") or 0.0
    if scale:
        scores = n("mul", scores, scalar(n, scale, scores))
    else:
        width = dims_of(q)[-1].static_value
        if width is not None:
            scores = n("mul", scores, scalar(n, 1 / math.sqrt(width), scores))
        else:
            size = n("cast", n("gather", n("shape", q), n.constant(3)), to=dtype_of(q))
            scores = n("div", scores, n("sqrt", size))
    if cap:
        scores = n("mul", n("tanh", n("div", scores, scalar(n, cap, scores))), scalar(n, cap, scores))
    for term in bias:
        scores = add(n, scores, term)
    if hidden is not None:
        scores = n("where", hidden, n("add", scores, scalar(n, filter_value, scores)), scores)
    return join_heads(n, n("matmul", n("softmax", scores, axis=-1), v))


def key_mask(n: NodeContext, mask: SSAValue, keys: SSAValue, filter_value: float, like: SSAValue) -> SSAValue:
    """What a mask of keys adds to the scores.

    Lengths [B], or [B, T] / [B, S, T] / [B, 1, S, T] of 0 (hidden) and 1.
    """
    rank = known_rank(n, mask, 1, 2, 3, 4)
    zero = scalar(n, 0.0, like)
    if rank == 1:
        columns = n("range", n.constant(0), keys, n.constant(1))
        lengths = n("unsqueeze", n("cast", mask, to=int64), n.constant([1, 2, 3]))
        return n("where", n("less", columns, lengths), zero, scalar(n, filter_value, like))
    shown = n("greater", mask, n.constant(0, dtype_of(mask)))
    if rank == 2:
        shown = n("unsqueeze", shown, n.constant([1, 2]))
    elif rank == 3:
        shown = n("unsqueeze", shown, n.constant([1]))
    return n("where", shown, zero, scalar(n, filter_value, like))


def slice_axis(n: NodeContext, x: SSAValue, axis: int, start: Any, end: Any) -> SSAValue:
    """Elements `start` to `end` along an axis; both are numbers or int64 vectors of one element."""
    bounds = [n.constant([b]) if isinstance(b, int) else b for b in (start, end)]
    return n("slice", x, *bounds, n.constant([axis]))
