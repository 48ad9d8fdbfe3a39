"""Attention by a recurrent state: `sx.linear_attention`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, prop_def, result_def

from sardonyx.dialects.attributes import Shape, dims_of, fresh_dim, tensor_type
from sardonyx.dialects.base import SEGMENTS, OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, divides, equal
from sardonyx.dialects.dtypes import DType, bfloat16, float16, float32
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import merge, refuse, slots
from sardonyx.dialects.sx.numeric import double, narrow
from sardonyx.dialects.sx.support import check_dtype, float_attr, format_dims, is_unranked


def heads(x: Array, count: int) -> Array:
    """[B, T, heads * D] as [B, heads, T, D]."""
    batch, time, width = x.shape
    return double(x).reshape(batch, time, count, width // count if width else 0).swapaxes(1, 2)


@irdl_op_definition
class LinearAttentionOp(SxOp):
    """A state [B, heads, key, value] updated at each step by key and value, and read by the query.

    `query` is [B, T, q_num_heads * d_k], `key` [B, T, kv_num_heads * d_k], `value` [B, T, kv_num_heads * d_v]; each
    head of the state serves `q_num_heads / kv_num_heads` queries. At step t the state S is multiplied by exp(decay_t)
    (`gated`, `gated_delta`; per head, or per key element), and k ⊗ v is added to it, where for `delta` and
    `gated_delta` beta_t * (v - Sᵀk) stands for v. The result is `scale` (0: 1 / sqrt(d_k)) times Sᵀq. In float64,
    rounded once; the state has the dtype of `past_state`, without it that of the query.

    (C1) The dtypes are in `DTYPES`, all but that of `past_state` the same. (C2) `query`, `key` and `value` have rank 3
    and agree in batch and time; their last extents are multiples of the heads. (C3) `kv_num_heads` is positive and
    divides `q_num_heads`. (C4) `update_rule` is one of `RULES`; `decay` is there for the gated ones only, `beta` for
    the delta ones only. (C5) `past_state` is [B, kv_num_heads, d_k, d_v], `decay` [B, T, kv_num_heads (* d_k)], `beta`
    [B, T, kv_num_heads or 1].
    """

    name = "sx.linear_attention"
    query = operand_def()
    key = operand_def()
    value = operand_def()
    past_state = opt_operand_def()
    decay = opt_operand_def()
    beta = opt_operand_def()
    chunk_size = opt_prop_def(IntegerAttr)
    kv_num_heads = prop_def(IntegerAttr)
    q_num_heads = prop_def(IntegerAttr)
    scale = opt_prop_def(FloatAttr)
    update_rule = opt_prop_def(StringAttr)
    output = result_def()
    present_state = result_def()
    irdl_options = SEGMENTS
    ONNX: ClassVar = OnnxForm("LinearAttention", since=27)
    DEFAULTS: ClassVar = {"chunk_size": 64, "scale": 0.0, "update_rule": "gated_delta"}
    DTYPES: ClassVar[Sequence[DType]] = (float16, bfloat16, float32)
    RULES: ClassVar = ("linear", "gated", "delta", "gated_delta")

    @property
    def gated(self) -> bool:
        return self.attr("update_rule") in ("gated", "gated_delta")

    @property
    def corrected(self) -> bool:
        return self.attr("update_rule") in ("delta", "gated_delta")

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.query, self.DTYPES, "(C1)", "query")
        for value, what in ((self.key, "key"), (self.value, "value"), (self.decay, "decay"), (self.beta, "beta")):
            if value is not None:
                check_dtype(self, value, (dtype,), "(C1)", what)
        state_dtype = dtype
        if self.past_state is not None:
            state_dtype = check_dtype(self, self.past_state, self.DTYPES, "(C1)", "past_state")
        q_heads, kv_heads = self.attr("q_num_heads"), self.attr("kv_num_heads")
        if kv_heads < 1 or q_heads < 1 or q_heads % kv_heads:
            raise self.fail(f"(C3) {q_heads} heads of queries and {kv_heads} of keys")
        rule = self.attr("update_rule")
        if rule not in self.RULES:
            raise self.fail(f"(C4) update_rule '{rule}' is none of {', '.join(self.RULES)}")
        for what, present, needed in (("decay", self.decay, self.gated), ("beta", self.beta, self.corrected)):
            if (present is not None) != needed:
                raise self.fail(f"(C4) update_rule '{rule}' {'needs' if needed else 'takes no'} {what}")
        batch, time, widths = self._extents(q_heads, kv_heads)
        d_k, d_v = widths[0] if widths[0] is not None else widths[1], widths[2]
        batch = self._check_others(batch, time, d_k, d_v, kv_heads)
        d_k, d_v = (fresh_dim() if d is None else d for d in (d_k, d_v))
        return [
            tensor_type(dtype, [batch, time, d_v * q_heads]),
            tensor_type(state_dtype, [batch, kv_heads, d_k, d_v]),
        ]

    def _extents(self, q_heads: int, kv_heads: int) -> tuple[Dim, Dim, list[Dim | None]]:
        """Batch, time, and the width of a head of query, key and value, None where one has no known rank."""
        batch: Dim | None = None
        time: Dim | None = None
        widths: list[Dim | None] = []
        for value, count, what in (
            (self.query, q_heads, "query"),
            (self.key, kv_heads, "key"),
            (self.value, kv_heads, "value"),
        ):
            if is_unranked(value):
                widths.append(None)
                continue
            dims = dims_of(value)
            if len(dims) != 3 or divides(count, dims[2]) is Proof.REFUTED:
                raise self.fail(f"(C2) {what} is {format_dims(dims)}, not [batch, time, {count} * width]")
            batch = dims[0] if batch is None else merge(self, batch, dims[0], f"(C2) {what} has another batch")
            time = dims[1] if time is None else merge(self, time, dims[1], f"(C2) {what} has another time")
            widths.append(dims[2] // count)
        if widths[0] is not None and widths[1] is not None:
            merge(self, widths[0], widths[1], "(C2) the heads of query and key differ in width")
        return fresh_dim() if batch is None else batch, fresh_dim() if time is None else time, widths

    def _check_others(self, batch: Dim, time: Dim, d_k: Dim | None, d_v: Dim | None, kv_heads: int) -> Dim:
        def shape(value: object, rank: int, what: str) -> Shape | None:
            if value is None or is_unranked(value):  # pyright: ignore[reportArgumentType]
                return None
            dims = dims_of(value)  # pyright: ignore[reportArgumentType]
            if len(dims) != rank:
                raise self.fail(f"(C5) {what} is {format_dims(dims)}, not of rank {rank}")
            return dims

        state = shape(self.past_state, 4, "past_state")
        if state is not None:
            batch = merge(self, batch, state[0], "(C5) past_state has another batch")
            for found, wanted in zip(state[1:], (Dim.of(kv_heads), d_k, d_v), strict=True):
                if wanted is not None and equal(found, wanted) is Proof.REFUTED:
                    raise self.fail(f"(C5) past_state is {format_dims(state)}, where {wanted} is needed")
        decay, beta = shape(self.decay, 3, "decay"), shape(self.beta, 3, "beta")
        wide = None if d_k is None else d_k * kv_heads
        for dims, last, what in ((decay, (kv_heads, wide), "decay"), (beta, (kv_heads, 1), "beta")):
            if dims is None:
                continue
            merge(self, batch, dims[0], f"(C5) {what} has another batch")
            merge(self, time, dims[1], f"(C5) {what} has another time")
            if all(n is not None and equal(dims[2], n) is Proof.REFUTED for n in last):
                raise self.fail(f"(C5) {what} has a last extent of {dims[2]}, where {last[0]} or {last[1]} is needed")
        return batch

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        query, key, value, past, decay, beta = slots(arrays)
        q_heads, kv_heads = self.attr("q_num_heads"), self.attr("kv_num_heads")
        given = (query, key, value)
        if any(a.ndim != 3 or a.shape[:2] != query.shape[:2] for a in given) or any(
            a.shape[2] % n for a, n in zip(given, (q_heads, kv_heads, kv_heads), strict=True)
        ):
            raise refuse(self, f"operands of shapes {', '.join(str(list(a.shape)) for a in given)} don't fit")
        q, k, v = heads(query, q_heads), heads(key, kv_heads), heads(value, kv_heads)
        batch, time, d_k, d_v = query.shape[0], query.shape[1], k.shape[-1], v.shape[-1]
        state_shape = (batch, kv_heads, d_k, d_v)
        fits = q.shape[-1] == d_k and (past is None or past.shape == state_shape)
        for extra, widths in ((decay, (kv_heads, kv_heads * d_k)), (beta, (kv_heads, 1))):
            fits = fits and (extra is None or (extra.shape[:-1] == (batch, time) and extra.shape[-1] in widths))
        if not fits:
            raise refuse(self, f"state, decay or beta don't fit {kv_heads} heads of {d_k} and {d_v} elements")
        state = np.zeros(state_shape) if past is None else double(past)
        gates = None if decay is None else np.exp(heads(decay, kv_heads))  # [B, heads, T, d_k or 1]
        rates = None if beta is None else heads(beta, beta.shape[-1])
        scale = float_attr(self, "scale") or (1.0 / math.sqrt(d_k) if d_k else 1.0)
        out = np.zeros((batch, q_heads, time, d_v))
        for t in range(time):
            if gates is not None:
                state = state * gates[:, :, t, :, None]
            new = v[:, :, t]
            if rates is not None:
                new = rates[:, :, t] * (new - np.einsum("bhkv,bhk->bhv", state, k[:, :, t]))
            state = state + k[:, :, t, :, None] * new[:, :, None, :]
            shared = np.repeat(state, q_heads // kv_heads, 1)
            out[:, :, t] = scale * np.einsum("bhkv,bhk->bhv", shared, q[:, :, t])
        joined = out.swapaxes(1, 2).reshape(batch, time, q_heads * d_v)
        return [narrow(joined, query.dtype), narrow(state, query.dtype if past is None else past.dtype)]
