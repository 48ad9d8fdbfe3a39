"""Attention by products, a mask and a softmax: what it is lowered to, and what older opsets get."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Proof, equal
from sardonyx.dialects.dtypes import DType, int64
from sardonyx.dialects.sx.attention import AttentionOp, heads_of, is_float_mask, width_of

Make = Callable[..., SSAValue]
"""`make("matmul", a, b, **properties)` puts an op there and returns its first result."""
Constant = Callable[[Any, DType], SSAValue]


def attention_by_parts(op: AttentionOp, make: Make, constant: Constant) -> SSAValue:
    """The value of the op, by other ops."""
    return _Parts(op, make, constant).result()


class _Parts:
    def __init__(self, op: AttentionOp, make: Make, constant: Constant) -> None:
        self.op, self.make, self.constant = op, make, constant
        self.dtype = dtype_of(op.query)
        self.low = constant(-np.inf, self.dtype)

    def result(self) -> SSAValue:
        op, make = self.op, self.make
        query, key, value = op.query, op.key, op.value
        heads, groups = heads_of(op)
        is_flat = op.attr("q_num_heads") is not None
        if is_flat:
            query, key, value = (self._split(v, n) for v, n in ((query, heads), (key, groups), (value, groups)))
        if equal(dims_of(query)[1], dims_of(key)[1]) is not Proof.PROVED:
            key, value = (self._repeated(v, query, heads, groups) for v in (key, value))
        scores = self._scaled(make("matmul", query, make("transpose", key, perm=(0, 1, 3, 2))), query)
        scores, hidden = self._masked(scores, query, key)
        parts = make("softmax", scores, axis=-1)
        if hidden is not None:
            parts = make("where", hidden, self.constant(0.0, self.dtype), parts)
        found = make("matmul", parts, value)
        return self._joined(found) if is_flat else found

    def _scaled(self, scores: SSAValue, query: SSAValue) -> SSAValue:
        width = width_of(self.op)
        if self.op.attr("scale") is None and width is None:
            size = self.make("cast", self.make("shape", query, start=3, end=4), to=self.dtype)
            return self.make("div", scores, self.make("sqrt", size))
        scale = self.op.scale_of(width or 0)
        return scores if scale == 1.0 else self.make("mul", scores, self.constant(scale, self.dtype))

    def _masked(self, scores: SSAValue, query: SSAValue, key: SSAValue) -> tuple[SSAValue, SSAValue | None]:
        """The scores with what is hidden at -inf, and which rows see nothing, where there may be such rows."""
        make, mask = self.make, self.op.mask
        seen: SSAValue | None = None
        if self.op.attr("is_causal"):
            rows, columns = self._range(query), self._range(key)
            axes = [self.constant([axis], int64) for axis in (0, 1)]
            seen = make("less_equal", make("unsqueeze", columns, axes[0]), make("unsqueeze", rows, axes[1]))
        if mask is None:
            return (scores, None) if seen is None else (make("where", seen, scores, self.low), None)
        last = self.constant([-1], int64)
        if is_float_mask(self.op):
            scores, most = make("add", scores, mask), mask
            if seen is not None:
                scores, most = make("where", seen, scores, self.low), make("where", seen, mask, self.low)
            return scores, make("equal", make("reduce_max", most, last), self.low)
        both = mask if seen is None else make("and", mask, seen)
        most = make("reduce_max", make("cast", both, to=self.dtype), last)
        hidden = make("equal", most, self.constant(0.0, self.dtype))
        return make("where", both, scores, self.low), hidden

    def _range(self, value: SSAValue) -> SSAValue:
        """The numbers along the axis before the last."""
        extent = self.make("squeeze", self.make("shape", value, start=2, end=3), self.constant([0], int64))
        return self.make("range", self.constant(0, int64), extent, self.constant(1, int64))

    # ---- heads
    def _split(self, value: SSAValue, heads: int | None) -> SSAValue:
        """[B, S, heads * D] as [B, heads, S, D]."""
        count = heads or 1
        width = dims_of(value)[2].static_value
        if width is not None:
            shape = self.constant([0, 0, count, width // count], int64)
        else:
            each = self.make("div", self.make("shape", value, start=2), self.constant([count], int64))
            front = self.make("shape", value, end=2)
            shape = self.make("concat", [front, self.constant([count], int64), each], axis=0)
        return self.make("transpose", self.make("reshape", value, shape), perm=(0, 2, 1, 3))

    def _joined(self, value: SSAValue) -> SSAValue:
        """[B, heads, S, E] as [B, S, heads * E]."""
        swapped = self.make("transpose", value, perm=(0, 2, 1, 3))
        heads, width = self.op.attr("q_num_heads"), dims_of(value)[3].static_value
        if width is not None:
            shape = self.constant([0, 0, heads * width], int64)
        else:
            whole = self.make("mul", self.make("shape", swapped, start=3), self.constant([heads], int64))
            shape = self.make("concat", [self.make("shape", swapped, end=2), whole], axis=0)
        return self.make("reshape", swapped, shape)

    def _repeated(self, value: SSAValue, query: SSAValue, heads: int | None, groups: int | None) -> SSAValue:
        """Each head for all heads of queries of its group."""
        wide = self.make("unsqueeze", value, self.constant([2], int64))
        if heads is not None and groups is not None:
            ratio = self.constant([1, 1, heads // groups, 1, 1], int64)
        else:
            each = self.make("div", *(self.make("shape", v, start=1, end=2) for v in (query, value)))
            one = self.constant([1, 1], int64)
            ratio = self.make("concat", [one, each, one], axis=0)
        wide = self.make("expand", wide, ratio)
        length, width = (d.static_value for d in dims_of(value)[2:])
        if heads and length and width:
            shape = self.constant([0, heads, length, width], int64)
        else:
            ends = [self.make("shape", value, end=1), self.make("shape", query, start=1, end=2)]
            shape = self.make("concat", [*ends, self.make("shape", value, start=2)], axis=0)
        return self.make("reshape", wide, shape)
