"""Lowering of linear attention: one kernel, over the heads of all batches in parallel.

Columns of the state (elements of the value) depend on no other column, so a step goes over vectors of columns: down a
column once to let it decay and multiply it with the key, and once to add what is new and to multiply it with the
queries that share the head. The state is kept in the compute dtype.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.backends.llvm.lowering.region import fill_buffer
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.sx.linear_attention import LinearAttentionOp
from sardonyx.dialects.sx.support import float_attr


@lowers(LinearAttentionOp)
def _linear_attention(plan: Plan, op: LinearAttentionOp) -> None:
    _Attention(plan, op).lower()


class _Attention:
    """One op that is being lowered."""

    def __init__(self, plan: Plan, op: Any) -> None:
        self.plan, self.op = plan, op
        self.dtype = dtype_of(op.query)
        self.wide = compute_dtype(self.dtype)
        self.q_heads, self.heads = op.attr("q_num_heads"), op.attr("kv_num_heads")
        query, key, value = (dims_of(v) for v in (op.query, op.key, op.value))
        self.batch, self.time = query[0], query[1]
        self.d_k, self.d_v = query[2] // self.q_heads, value[2] // self.heads
        for dims, name, width, count in (
            (query, "query", self.d_k, self.q_heads),
            (key, "key", self.d_k, self.heads),
            (value, "value", self.d_v, self.heads),
        ):
            self._require(dims, (self.batch, self.time, width * count), name)
        if op.past_state is not None:
            self._require(dims_of(op.past_state), (self.batch, Dim.of(self.heads), self.d_k, self.d_v), "past_state")
        self.decay_width = self._width(op.decay, self.d_k)
        self.beta_width = self._width(op.beta, None)

    def _require(self, dims: Sequence[Dim], wanted: Sequence[Dim], name: str) -> None:
        for axis, (own, want) in enumerate(zip(dims, wanted, strict=True)):
            self.plan.require_equal(own, want, f"{name} has {{0}} elements along axis {axis}, where {{1}} are needed")

    def _width(self, value: SSAValue | None, wide: Dim | None) -> SSAValue:
        """The last extent of decay ([heads] or [heads * d_k]) or of beta ([heads] or [1])."""
        if value is None:
            return self.plan.body.index(0)
        plan, body, dims = self.plan, self.plan.body, dims_of(value)
        self._require(dims[:2], (self.batch, self.time), "decay or beta")
        width = plan.dim(dims[2])
        other = 1 if wide is None else plan.dim(wide * self.heads)
        fits = body.either(body.compare("eq", width, self.heads), body.compare("eq", width, other))
        failure = plan.failure("(C5) decay or beta has a last extent of {0}, which is neither {1} nor {2}")
        body.require(fits, failure, width, self.heads, other)
        return width

    def lower(self) -> None:
        plan, op = self.plan, self.op
        present = plan.new_buffer(op.present_state)
        output = plan.new_buffer(op.output)
        kept = dtype_of(op.present_state)
        count = plan.count(dims_of(op.present_state))
        state = present if kept == self.wide else plan.workspace(self.wide, [count])
        if op.past_state is None:
            fill_buffer(plan, self.wide, state, count, 0)
        else:
            self._convert(plan.buffer(op.past_state), dtype_of(op.past_state), state, self.wide, count)
        self._run(state, output)
        if state is not present:
            self._convert(state, self.wide, present, kept, count)

    def _convert(self, source: SSAValue, dtype: DType, target: SSAValue, to: DType, count: SSAValue) -> None:
        kernel = self.plan.kernel("state")
        read, write = kernel.read_buffer(source), kernel.write_buffer(target)

        def element(b: Body, at: SSAValue, _: Sequence[SSAValue]) -> None:
            b.store(b.convert(b.load(read, at), dtype, to), write, at)

        kernel.loop(kernel.outer(count), element, vector=True, parallel=True)
        kernel.launch()

    def _run(self, state: SSAValue, output: SSAValue) -> None:
        plan, op = self.plan, self.op
        units = plan.product(plan.dim(self.batch), self.heads)
        kernel = plan.kernel("linear_attention")
        self.d = {name: kernel.extent(d) for name, d in (("time", self.time), ("k", self.d_k), ("v", self.d_v))}
        reads = {name: kernel.read(value) for name, value in (
            ("query", op.query), ("key", op.key), ("value", op.value), ("decay", op.decay), ("beta", op.beta),
        ) if value is not None}  # fmt: skip
        gates = kernel.write_buffer(plan.workspace(self.wide, [plan.product(units, plan.dim(self.d_k))]))
        write, s = kernel.write_buffer(output), kernel.write_buffer(state)
        self.widths = kernel.outer(self.decay_width), kernel.outer(self.beta_width)

        def unit(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
            batch = b.index_math("floordiv", number, self.heads)
            head = b.minus(number, b.times(batch, self.heads))
            here = b.times(number, b.times(self.d["k"], self.d["v"]))

            def step(c: Body, t: SSAValue, _: Sequence[SSAValue]) -> None:
                row = c.plus(c.times(batch, self.d["time"]), t)
                self._step(c, kernel, reads, (s, here), (gates, c.times(number, self.d["k"])), write, row, head)

            b.loop(self.d["time"], step)

        kernel.loop(kernel.outer(units), unit, parallel=True)
        kernel.launch()

    def _step(
        self,
        b: Body,
        kernel: Kernel,
        reads: dict[str, SSAValue],
        state: tuple[SSAValue, SSAValue],
        gates: tuple[SSAValue, SSAValue],
        write: SSAValue,
        row: SSAValue,
        head: SSAValue,
    ) -> None:
        """One step of one head; `row` counts steps of all batches."""
        d, wide, dtype, op = self.d, self.wide, self.dtype, self.op
        group = self.q_heads // self.heads

        def load(c: Body, name: str, offset: IndexLike) -> SSAValue:
            return c.convert(c.load(reads[name], offset), dtype, wide)

        def at_head(count: int, width: SSAValue, number: IndexLike) -> SSAValue:
            return b.plus(b.times(b.times(row, count), width), b.times(number, width))

        key_at, value_at = at_head(self.heads, d["k"], head), at_head(self.heads, d["v"], head)
        first = b.times(head, group)
        query_at = [at_head(self.q_heads, d["k"], b.plus(first, k)) for k in range(group)]
        out_at = [at_head(self.q_heads, d["v"], b.plus(first, k)) for k in range(group)]
        if op.gated:
            wide_decay = b.compare("ne", self.widths[0], self.heads)  # one for each element of the key
            own = b.select(wide_decay, b.times(head, d["k"]), head)
            decay_at, decay_step = (
                b.plus(b.times(row, self.widths[0]), own),
                b.select(wide_decay, b.index(1), b.index(0)),
            )

            def gate(c: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
                value = load(c, "decay", c.plus(decay_at, c.times(k, decay_step)))
                c.store(c.math("exp", value.type, value), gates[0], c.plus(gates[1], k))

            b.loop(d["k"], gate)
        rate = None
        if op.corrected:
            single = b.compare("eq", self.widths[1], 1)
            own = b.select(single, b.index(0), head)
            rate = load(b, "beta", b.plus(b.times(row, self.widths[1]), own))
        stated = float_attr(op, "scale")
        scale = b.const(wide, stated) if stated else self._scale(b)

        def column(c: Body, v: SSAValue, _: Sequence[SSAValue]) -> None:
            def place(e: Body, k: SSAValue) -> SSAValue:
                return e.plus(e.plus(state[1], e.times(k, d["v"])), v)

            zero = c.const(wide, 0)

            def down(e: Body, k: SSAValue, sums: Sequence[SSAValue]) -> Sequence[SSAValue]:
                element = e.load(state[0], place(e, k))
                if op.gated:
                    element = e.arithmetic("mul", wide, element, e.load(gates[0], e.plus(gates[1], k)))
                    e.store(element, state[0], place(e, k))
                product = e.arithmetic("mul", wide, element, load(e, "key", e.plus(key_at, k)))
                return [e.arithmetic("add", wide, sums[0], product)]

            new = load(c, "value", c.plus(value_at, v))
            if op.gated or op.corrected:
                (told,) = c.loop(d["k"], down, [("serial", zero)])
                if rate is not None:
                    new = c.arithmetic("mul", wide, rate, c.arithmetic("sub", wide, new, told))

            def again(e: Body, k: SSAValue, sums: Sequence[SSAValue]) -> Sequence[SSAValue]:
                added = e.arithmetic("mul", wide, load(e, "key", e.plus(key_at, k)), new)
                element = e.arithmetic("add", wide, e.load(state[0], place(e, k)), added)
                e.store(element, state[0], place(e, k))
                products = (e.arithmetic("mul", wide, element, load(e, "query", e.plus(at, k))) for at in query_at)
                return [e.arithmetic("add", wide, total, p) for total, p in zip(sums, products, strict=True)]

            totals = c.loop(d["k"], again, [("serial", zero)] * group)
            for total, at in zip(totals, out_at, strict=True):
                c.store(c.convert(c.arithmetic("mul", wide, total, scale), wide, dtype), write, c.plus(at, v))

        b.loop(d["v"], column, vector=True)

    def _scale(self, b: Body) -> SSAValue:
        """1 / sqrt(d_k); 1 where that is 0."""
        width = self.d_k.static_value
        if width is not None:
            return b.const(self.wide, 1 / math.sqrt(width) if width else 1.0)
        extent = b.from_index(b.index_math("max", self.d["k"], 1), self.wide)
        root = b.math("sqrt", extent.type, extent)
        return b.arithmetic("div", self.wide, b.const(self.wide, 1), root)
