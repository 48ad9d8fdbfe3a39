"""Scaled dot-product attention, kept whole until here: products, a mask, a softmax."""

from __future__ import annotations

import math
from typing import Any

from sardonyx.dialects.dtypes import bool_, int64
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.functions import creation as c, elementwise as e, linalg, reductions as r, shape as s
from sardonyx.frontend.functions.activation import softmax
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.registry import Call, aten, constant


@aten("scaled_dot_product_attention.default")
def attention(
    n: Call,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    if dropout_p:
        raise n.refuse(f"dropout_p={dropout_p} draws at random", "call model.eval() before exporting")
    return attend(n, query, key, value, attn_mask, is_causal, scale, enable_gqa)


@aten(
    "_scaled_dot_product_flash_attention_for_cpu.default", "_scaled_dot_product_flash_attention.default",
    "_scaled_dot_product_efficient_attention.default", "_scaled_dot_product_attention_math.default",
)  # fmt: skip
def fused(
    n: Call, query: Tensor, key: Tensor, value: Tensor, *rest: Any, scale: float | None = None, **options: Any
) -> tuple[Tensor, ...]:
    mask = options.get("attn_mask")
    causal = bool(options.get("is_causal", False))
    for given in rest:
        if isinstance(given, Tensor):
            mask = given
        elif given is True:
            causal = True
    return (attend(n, query, key, value, mask, causal, scale, False),)


def attend(
    n: Call,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None,
    causal: bool,
    scale: float | None,
    grouped: bool,
) -> Tensor:
    """softmax(query · keyᵀ · scale + mask) · value; a row that sees nothing gives 0, as in torch."""
    if grouped:
        key, value = _repeated(n, key, query), _repeated(n, value, query)
    width = query.shape[-1]
    if scale is None:
        if not isinstance(width, int):
            raise n.refuse("the head's size is dynamic", "give scale")
        scale = 1 / math.sqrt(width) if width else 1.0
    scores = linalg.matmul(e.multiply(query, constant(scale, query.dtype)), s.swapaxes(key, -2, -1))
    if causal:
        mask = causal_mask(query.shape[-2], key.shape[-2])
    hidden: Tensor | None = None
    if mask is not None:
        if mask.dtype == bool_:
            hidden = mask
            scores = e.where(mask, scores, constant(-math.inf, scores.dtype))
        else:
            scores = e.add(scores, e.cast(mask, scores.dtype))
    found = linalg.matmul(softmax(scores, -1), value)
    if hidden is None or causal or (not hidden.is_traced and bool(hidden.numpy().any(-1).all())):
        return found
    seen = r.any(hidden, -1, keepdims=True)
    return e.where(seen, found, constant(0.0, found.dtype))


def causal_mask(rows: Any, columns: Any) -> Tensor:
    """Whether row i sees column j: j <= i."""
    down, across = _range(rows), _range(columns)
    return e.less_equal(s.unsqueeze(across, 0), s.unsqueeze(down, 1))


def _range(extent: Any) -> Tensor:
    if isinstance(extent, Extent):
        from sardonyx.frontend.apply import op

        return op("sx.range", constant(0, int64), extent.scalar(), constant(1, int64))
    return c.arange(extent, dtype="int64")


def _repeated(n: Call, x: Tensor, query: Tensor) -> Tensor:
    """Each head of keys or values for all query heads of its group."""
    heads, wanted = n.ints([x.shape[-3], query.shape[-3]], "the number of heads")
    if heads == wanted:
        return x
    *lead, _, length, width = x.shape
    wide = s.broadcast_to(s.unsqueeze(x, -3), [*lead, heads, wanted // heads, length, width])
    return s.reshape(wide, [*lead, wanted, length, width])
