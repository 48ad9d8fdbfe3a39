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
    """Register an adapter of com.microsoft.

    What it refuses as unsupported stays opaque, and so does a node that states an input or an attribute that it does
    not look at, or wants an output that it does not make: a form that came after it was written.
    """

    def register(function: Adapter) -> Adapter:
        def adapter(n: NodeContext) -> Sequence[SSAValue | None]:
            block = n.importer.block
            before = block.last_op
            try:
                values = function(n)
                if (unread := n.unread()) is not None:
                    raise n.unsupported(unread)
                for index, name in enumerate(n.node.output):
                    if name and (index >= len(values) or values[index] is None):
                        raise n.unsupported(f"its output {index} is not supported")
                return values
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
    cap: float = 0.0,
    sink: SSAValue | None = None,
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """softmax(q k' * scale + bias) v of [B, N, S, D].

    Args:
        bias: Terms that are added to the scores, each broadcastable to [B, N, S, T].
        hidden: Which scores count for nothing, bool.
        cap: If it is not 0, scores are cap * tanh(scores / cap) first.
        sink: A further score that every row has, broadcastable to [B, N, S, 1], and that stands for no value.

    Returns:
        The result, joined to [B, S, N * Dv]; the scores as they go into the softmax; and as they come out of it.
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
        scores = n("where", hidden, scalar(n, float("-inf"), scores), scores)
    if sink is None:
        shares = n("softmax", scores, axis=-1)
    else:
        one = n.constant([1])
        shape = n("concat", [n("slice", n("shape", scores), n.constant([0]), n.constant([3])), one], axis=0)
        whole = n("softmax", n("concat", [scores, n("expand", sink, shape)], axis=3), axis=-1)
        shares = n("slice", whole, n.constant([0]), n.constant([-1]), n.constant([3]))
    return join_heads(n, n("matmul", shares, v)), scores, shares


def key_mask(
    n: NodeContext, mask: SSAValue, queries: SSAValue, keys: SSAValue, filter_value: float, like: SSAValue
) -> SSAValue:
    """What a mask of keys adds to the scores.

    Where each sequence ends, [B], or ends and then starts, [2 * B], or ends and what only other kernels read,
    [3 * B + 2]; else 0 (hidden) and 1: [B, T], [B, S, T], or the first T columns of some T rows of which the last S
    are meant, [B, 1, M, M].

    Args:
        queries, keys: Their numbers S and T, int64 scalars.
        like: A value of the dtype of the scores, whose first dim is B.
    """
    rank = known_rank(n, mask, 1, 2, 3, 4)
    zero, low = scalar(n, 0.0, like), scalar(n, filter_value, like)
    if rank == 1:
        return n("where", _between(n, mask, keys, like), zero, low)
    shown = n("greater", mask, n.constant(0, dtype_of(mask)))
    if rank == 2:
        shown = n("unsqueeze", shown, n.constant([1, 2]))
    elif rank == 3:
        shown = n("unsqueeze", shown, n.constant([1]))
    else:
        first, end = (n("unsqueeze", t, n.constant([0])) for t in (n("sub", keys, queries), keys))
        shown = slice_axis(n, slice_axis(n, shown, 2, first, end), 3, 0, end)
    return n("where", shown, zero, low)


def _between(n: NodeContext, mask: SSAValue, keys: SSAValue, like: SSAValue) -> SSAValue:
    """Which keys stand before the end and not before the start of a sequence, [B, 1, 1, T]."""
    columns = n("range", n.constant(0), keys, n.constant(1))
    count, batch = dims_of(mask)[0], dims_of(like)[0]
    places = n("cast", mask, to=int64)
    if count == batch:
        return n("less", columns, n("unsqueeze", places, n.constant([1, 2, 3])))
    given, size = (n("slice", n("shape", t), n.constant([0]), n.constant([1])) for t in (mask, like))
    ends = n("unsqueeze", slice_axis(n, places, 0, 0, size), n.constant([1, 2, 3]))
    shown = n("less", columns, ends)
    if None not in (count.static_value, batch.static_value) and count.static_value != 2 * (batch.static_value or 0):
        return shown
    two = n("equal", given, n("mul", size, n.constant([2])))
    starts = n("where", two, slice_axis(n, places, 0, n("sub", given, size), given), n.constant([0]))
    return n("and", shown, n("greater_equal", columns, n("unsqueeze", starts, n.constant([1, 2, 3]))))


def slice_axis(n: NodeContext, x: SSAValue, axis: int, start: Any, end: Any) -> SSAValue:
    """Elements `start` to `end` along an axis; both are numbers or int64 vectors of one element."""
    bounds = [n.constant([b]) if isinstance(b, int) else b for b in (start, end)]
    return n("slice", x, *bounds, n.constant([axis]))
