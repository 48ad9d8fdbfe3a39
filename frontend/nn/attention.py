"""Attention with several heads and a cache of keys and values."""

from __future__ import annotations

from typing import Any

import numpy as np

from sardonyx.dialects.dtypes import int64
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.functions.activation import softmax
from sardonyx.frontend.functions.creation import arange
from sardonyx.frontend.functions.elementwise import where
from sardonyx.frontend.functions.joining import concat
from sardonyx.frontend.functions.linalg import matmul
from sardonyx.frontend.functions.shape import reshape, transpose
from sardonyx.frontend.nn.layers import Linear
from sardonyx.frontend.nn.module import Module
from sardonyx.frontend.tensor import Tensor

Cache = tuple[Tensor, Tensor]
"""Keys and values [batch, heads, rows, size] of the rows that came before."""


def scaled_dot_product_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Any = None, causal: bool = False, scale: float | None = None
) -> Tensor:
    """`softmax(q k' scale + mask) v` for q [..., m, size], k [..., n, size], v [..., n, size].

    Args:
        q: What asks; with four axes it may have more heads than k and v, several to each of theirs.
        k: What is asked.
        v: What is answered.
        mask: Added to the scores; or a tensor of bools, false where nothing is to be seen.
        causal: Whether row i of q sees no row of k behind `i + n - m`: its own, where the rows of q are k's last ones.
        scale: By default 1 / sqrt(size).

    Raises:
        InvalidArgumentError: The size is dynamic, and no scale is given.
    """
    size = q.shape[-1]
    if scale is None and not isinstance(size, int):
        raise InvalidArgumentError("attention: the last extent is dynamic; give a scale")
    factor = float(size) ** -0.5 if scale is None else scale
    scores = _product(q, transpose(k, [*range(k.ndim - 2), k.ndim - 1, k.ndim - 2])) * factor
    if causal:
        rows, columns = q.shape[-2], k.shape[-2]
        last = reshape(arange(0, rows, dtype=int64), (-1, 1)) + (columns - rows)
        seen = reshape(arange(0, columns, dtype=int64), (1, -1)) <= last
        scores = where(seen, scores, np.array(-np.inf, scores.dtype.numpy))
    if mask is not None:
        is_bool = getattr(mask, "dtype", None) is not None and str(mask.dtype) == "bool"
        scores = where(mask, scores, np.array(-np.inf, scores.dtype.numpy)) if is_bool else scores + mask
    return _product(softmax(scores, axis=-1), v)


def _product(a: Tensor, b: Tensor) -> Tensor:
    """`a b` for a [batch, heads, m, k] and b [batch, fewer heads, k, n]: neighbouring heads share one of b, of which no
    copy is made."""
    if a.ndim != 4 or b.ndim != 4 or a.shape[1] == b.shape[1]:
        return matmul(a, b)
    batch, heads, rows, inner = a.shape
    few = b.shape[1]
    joined = reshape(a, (batch, few, (heads // few) * rows, inner))
    return reshape(matmul(joined, b), (batch, heads, rows, b.shape[3]))


class MultiheadAttention(Module):
    """Attention of x [batch, rows, size] to itself, or to `context`, with a cache for steps of decoding.

    Args:
        size: The size of a row.
        heads: How many heads there are.
        kv_heads: How many of keys and values; fewer of them serve several heads each.
        bias: Whether the linear layers have a bias.
        causal: Whether a row sees only those before it, and itself.

    Raises:
        InvalidArgumentError: The heads do not divide the size, or each other.
    """

    def __init__(
        self, size: int, heads: int, kv_heads: int | None = None, bias: bool = True, causal: bool = False
    ) -> None:
        few = heads if kv_heads is None else kv_heads
        if heads < 1 or size % heads or few < 1 or heads % few:
            raise InvalidArgumentError(f"attention: {heads} heads ({few} of keys) do not go into rows of {size}")
        self.heads, self.kv_heads, self.causal = heads, few, causal
        self.q = Linear(size, size, bias)
        self.k, self.v = (Linear(size, size // heads * few, bias) for _ in range(2))
        self.out = Linear(size, size, bias)

    def forward(
        self, x: Any, context: Any = None, *, past: Cache | None = None, mask: Any = None, with_cache: bool = False
    ) -> Any:
        """The attended rows; with `past` or `with_cache` also the keys and values that a next step takes as `past`."""
        other = x if context is None else context
        q, k, v = self._split(self.q(x), self.heads), *(self._split(f(other), self.kv_heads) for f in (self.k, self.v))
        if past is not None:
            k, v = concat([past[0], k], axis=2), concat([past[1], v], axis=2)
        present = (k, v)
        y = scaled_dot_product_attention(q, k, v, mask, self.causal)
        merged = reshape(transpose(y, (0, 2, 1, 3)), (x.shape[0], x.shape[1], -1))
        return (self.out(merged), present) if past is not None or with_cache else self.out(merged)

    def _split(self, x: Tensor, heads: int) -> Tensor:
        return transpose(reshape(x, (x.shape[0], x.shape[1], heads, -1)), (0, 2, 1, 3))

    def extra(self) -> str:
        return f"heads={self.heads}, kv_heads={self.kv_heads}, causal={self.causal}"
