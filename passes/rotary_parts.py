"""Rotary embeddings by products and sums: what they are lowered to, and what older opsets get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of
from sardonyx.dialects.dtypes import DType, int64
from sardonyx.dialects.sx.rotary import RotaryEmbeddingOp

Make = Callable[..., SSAValue]
"""`make("mul", a, b, **properties)` puts an op there and returns its first result."""
Constant = Callable[[Any, DType], SSAValue]


INT64_MAX = 2**63 - 1


def rotary_by_parts(op: RotaryEmbeddingOp, make: Make, constant: Constant) -> SSAValue:
    """The value of the op, by other ops."""
    x, width = op.x, dims_of(op.x)[3].static_value
    count = op.attr("rotary_embedding_dim") or width
    one, two, last, start = (constant([number], int64) for number in (1, 2, 3, 0))
    if count is None:
        half = make("div", make("shape", x, start=3, end=4), two)
    else:
        half = constant([count // 2], int64)
    end = constant([INT64_MAX if count is None else count], int64)
    cos, sin = (make("unsqueeze", table, one) for table in (op.cos, op.sin))
    turned = x if count is None or count == width else make("slice", x, start, end, last)
    if op.attr("interleaved"):
        kept = make("shape", turned)
        shape = make("concat", [make("shape", x, end=3), half, two], axis=0)
        pairs = make("reshape", turned, shape)
        a, b = (make("gather", pairs, constant(i, int64), axis=4) for i in (0, 1))
    else:
        a, b = make("slice", turned, start, half, last), make("slice", turned, half, end, last)
    first = make("sub", make("mul", a, cos), make("mul", b, sin))
    second = make("add", make("mul", b, cos), make("mul", a, sin))
    if op.attr("interleaved"):
        at = constant([4], int64)
        both = make("concat", [make("unsqueeze", v, at) for v in (first, second)], axis=4)
        out = make("reshape", both, kept)
    else:
        out = make("concat", [first, second], axis=3)
    if turned is x:
        return out
    return make("concat", [out, make("slice", x, end, constant([INT64_MAX], int64), last)], axis=3)
