"""Scaled dot-product attention: `sx.attention`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import Shape, dims_of, dtype_of, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, divides, equal
from sardonyx.dialects.dtypes import FLOATS, DType, bool_
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import refuse, slots
from sardonyx.dialects.sx.numeric import double, narrow
from sardonyx.dialects.sx.support import check_dtype, format_dims, is_unranked, same_dtype


@irdl_op_definition
class AttentionOp(SxOp):
    """`softmax(query · keyᵀ * scale + mask) · value`, for each head.

    `query` is [B, H, S, D], `key` [B, K, L, D], `value` [B, K, L, E], the result [B, H, S, E]; each head of keys and
    values serves H / K heads of queries that follow one another. With `q_num_heads` and `kv_num_heads` the heads stand
    side by side in the last axis: `query` is [B, S, H * D], `key` [B, L, K * D], `value` [B, L, K * E], the result
    [B, S, H * E]. A `mask` broadcasts to [B, H, S, L]: where it is true, row S sees column L; a float is added. With
    `is_causal` row i sees columns up to i. What is not seen has no part in the softmax; where a row sees nothing (or
    all that is added is -inf), it is 0. `scale` is 1 / sqrt(D), if it is absent. In float64, rounded once.

    ONNX's Attention is imported as the body by which ONNX defines it; `recognize-attention` makes this op. That body
    adds -inf to what is not seen, which is another thing only where a score there is infinite or NaN.

    (C1) `query`, `key` and `value` have the same dtype, one of `DTYPES`; `mask` has it too, or bool. (C2) They have
    rank 4, or rank 3 where the numbers of heads are stated, and `mask` rank 2 to 4. (C3) B, D and L agree; K is
    positive and divides H, and the numbers of heads divide the last axes. (C4) `mask` broadcasts to [B, H, S, L].
    """

    name = "sx.attention"
    query = operand_def()
    key = operand_def()
    value = operand_def()
    mask = opt_operand_def()
    is_causal = opt_prop_def(IntegerAttr)
    kv_num_heads = opt_prop_def(IntegerAttr)
    q_num_heads = opt_prop_def(IntegerAttr)
    scale = opt_prop_def(FloatAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("Attention", since=24)
    IS_IMPORTED: ClassVar = False
    DEFAULTS: ClassVar = {"is_causal": False}
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def infer(self) -> Sequence[Attribute]:
        dtype = same_dtype(self, [self.query, self.key, self.value], "(C1)")
        check_dtype(self, self.query, self.DTYPES, "(C1)")
        if self.mask is not None:
            check_dtype(self, self.mask, (dtype, bool_), "(C1)", "mask")
        heads, groups = self.attr("q_num_heads"), self.attr("kv_num_heads")
        if (heads is None) != (groups is None) or (heads is not None and (heads < 1 or groups < 1 or heads % groups)):
            raise self.fail(f"(C3) {groups} heads of keys and values do not serve {heads} heads of queries")
        if any(is_unranked(v) for v in (self.query, self.key, self.value)):
            return [unranked_type(dtype)]
        shapes = [dims_of(v) for v in (self.query, self.key, self.value)]
        if any(len(shape) != (4 if heads is None else 3) for shape in shapes):
            raise self.fail(
                f"(C2) {', '.join(map(format_dims, shapes))} are not all of rank {4 if heads is None else 3}"
            )
        if heads is not None:
            shapes = [self._split(s, n) for s, n in zip(shapes, (heads, groups, groups), strict=True)]
        query, key, value = shapes
        for own, other, what in (
            (query[0], key[0], "B"), (key[0], value[0], "B"), (query[3], key[3], "D"), (key[2], value[2], "L"),
            (key[1], value[1], "K"),
        ):  # fmt: skip
            if equal(own, other) is Proof.REFUTED:
                raise self.fail(f"(C3) {what} is {own} and {other}")
        if key[1].static_value == 0 or divides(key[1], query[1]) is Proof.REFUTED:
            raise self.fail(f"(C3) {key[1]} heads of keys and values do not serve {query[1]} heads of queries")
        self._check_mask((query[0], query[1], query[2], key[2]))
        if heads is not None:
            return [tensor_type(dtype, [query[0], query[2], value[3] * heads])]
        return [tensor_type(dtype, [*query[:3], value[3]])]

    def _split(self, shape: Shape, heads: int) -> Shape:
        """[B, S, heads * D] as [B, heads, S, D]."""
        if divides(heads, shape[2]) is Proof.REFUTED:
            raise self.fail(f"(C3) {heads} heads do not divide {shape[2]} elements")
        return (shape[0], Dim.of(heads), shape[1], shape[2] // heads)

    def _check_mask(self, scores: Shape) -> None:
        if self.mask is None or is_unranked(self.mask):
            return
        shape = dims_of(self.mask)
        if not 2 <= len(shape) <= 4:
            raise self.fail(f"(C2) mask has rank {len(shape)}")
        ends = zip(reversed(shape), reversed(scores), strict=False)
        if any(m.static_value != 1 and equal(m, s) is Proof.REFUTED for m, s in ends):
            raise self.fail(f"(C4) shape {format_dims(shape)} does not broadcast to {format_dims(scores)}")

    def scale_of(self, width: int) -> float:
        """What scores are multiplied by, where heads have this width."""
        stated = self.attr("scale")
        return float(stated) if stated is not None else 1.0 / math.sqrt(width) if width else 1.0

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        query, key, value = slots(arrays[:3])
        mask = arrays[3] if len(arrays) > 3 else None
        heads, groups = self.attr("q_num_heads"), self.attr("kv_num_heads")
        q, k, v = (double(a) for a in (query, key, value))
        if heads is not None:
            q, k, v = (self._heads(a, n) for a, n in ((q, heads), (k, groups), (v, groups)))
        if q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3] or k.shape[:3] != v.shape[:3]:
            raise refuse(self, f"{list(q.shape)}, {list(k.shape)} and {list(v.shape)} do not go together")
        if not k.shape[1] or q.shape[1] % k.shape[1]:
            raise refuse(self, f"{k.shape[1]} heads of keys and values do not serve {q.shape[1]} heads of queries")
        k, v = (np.repeat(a, q.shape[1] // k.shape[1], axis=1) for a in (k, v))
        scores = q @ k.swapaxes(-2, -1) * self.scale_of(q.shape[3])
        added, seen = self._masks(mask, scores.shape)
        scores = np.where(seen, scores + added, -np.inf)
        nothing = ~(seen & (added != -np.inf)).any(axis=-1, keepdims=True)
        result = _softmax(scores, nothing) @ v if scores.shape[3] else np.zeros((*scores.shape[:3], v.shape[3]))
        if heads is not None:
            result = result.swapaxes(1, 2).reshape(q.shape[0], q.shape[2], heads * v.shape[3])
        return [narrow(result, query.dtype)]

    def _heads(self, x: Array, count: int) -> Array:
        if x.shape[2] % count:
            raise refuse(self, f"{count} heads do not divide {x.shape[2]} elements")
        return x.reshape(*x.shape[:2], count, x.shape[2] // count).swapaxes(1, 2)

    def _masks(self, mask: Array | None, shape: Sequence[int]) -> tuple[Array, Array]:
        """What is added to the scores, and which columns each row sees."""
        added, seen = np.zeros(shape), np.ones(shape, np.bool_)
        if mask is not None:
            try:
                wide = np.broadcast_to(mask, shape)
            except ValueError:
                raise refuse(self, f"the mask's shape {list(mask.shape)} does not go to {list(shape)}") from None
            added, seen = (added, wide) if mask.dtype == np.bool_ else (double(wide), seen)
        if self.attr("is_causal"):
            seen = seen & (np.arange(shape[3]) <= np.arange(shape[2])[:, None])
        return added, seen


def _softmax(scores: Array, nothing: Array) -> Array:
    """Along the last axis; 0 in rows in which nothing is seen."""
    with np.errstate(all="ignore"):
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        result = powers / powers.sum(axis=-1, keepdims=True)
    return np.where(nothing, 0.0, result)


def heads_of(op: AttentionOp) -> tuple[int | None, int | None]:
    """The numbers of heads of queries, and of keys and values, where they are known."""
    stated: tuple[SSAValue, SSAValue] = (op.query, op.key)
    if op.attr("q_num_heads") is not None:
        return op.attr("q_num_heads"), op.attr("kv_num_heads")
    query, key = (dims_of(v)[1].static_value for v in stated)
    return query, key


def width_of(op: AttentionOp) -> int | None:
    """The width of a head of queries; None where it is not known."""
    last, heads = dims_of(op.query)[-1].static_value, op.attr("q_num_heads")
    return None if last is None else last // (heads or 1)


def is_float_mask(op: AttentionOp) -> bool:
    return op.mask is not None and dtype_of(op.mask) != bool_
