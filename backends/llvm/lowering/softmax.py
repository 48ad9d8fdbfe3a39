"""Lowerings of softmax, log_softmax and hardmax: stages over rows along one axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.argreduce import place_of_extreme
from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.backends.llvm.lowering.rows import Row, max_of, rows_of, sum_of
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dtypes import DType, int64
from sardonyx.dialects.sx.softmax import HardmaxOp, LogSoftmaxOp, SoftmaxOp


class _Stages:
    """What the stages over a row work on: `load` gives an element in `wide`, `store` rounds one to the result."""

    def __init__(self, source: SSAValue, target: SSAValue, dtype: DType) -> None:
        self.source, self.target, self.dtype = source, target, dtype
        self.wide = compute_dtype(dtype)

    def load(self, b: Body, offset: IndexLike) -> SSAValue:
        return b.convert(b.load(self.source, offset), self.dtype, self.wide)

    def store(self, b: Body, value: SSAValue, offset: IndexLike) -> None:
        b.store(b.convert(value, self.wide, self.dtype), self.target, offset)

    def greatest(self, b: Body, row: Row) -> SSAValue:
        return row.fold(b, [max_of(b, self.wide)], lambda inner, at, _: [self.load(inner, at)])[0]


def _lower(plan: Plan, op: Any, stages: Callable[[_Stages, Body, Row], None]) -> None:
    dims = dims_of(op.input)
    axis = op.attr("axis") % len(dims) if dims else 0
    kernel = plan.kernel(op.name.removeprefix("sx."))
    made = _Stages(kernel.read(op.input), kernel.write(op.output), dtype_of(op.input))
    rows_of(plan, kernel, dims, [axis])[0].each(kernel, lambda b, row: stages(made, b, row))
    kernel.launch()


@lowers(SoftmaxOp)
def _softmax(plan: Plan, op: SoftmaxOp) -> None:
    _lower(plan, op, _softmax_stages)


def _softmax_stages(s: _Stages, b: Body, row: Row) -> None:
    """exp(x - max) and its sum; then the quotients. The powers wait in the result, unless it is too narrow for them."""
    wide = s.wide
    greatest = s.greatest(b, row)
    waits = s.dtype == wide

    def power(inner: Body, at: SSAValue) -> SSAValue:
        x = s.load(inner, at)
        return inner.math("exp", x.type, inner.arithmetic("sub", wide, x, greatest))

    def term(inner: Body, at: SSAValue, _: Sequence[SSAValue]) -> list[SSAValue]:
        value = power(inner, at)
        if waits:
            inner.store(value, s.target, at)
        return [value]

    total = row.fold(b, [sum_of(b, wide)], term)[0]
    inverse = b.arithmetic("div", wide, b.const(wide, 1), total)

    def quotient(inner: Body, at: SSAValue, _: Sequence[SSAValue]) -> None:
        value = inner.load(s.target, at) if waits else power(inner, at)
        s.store(inner, inner.arithmetic("mul", wide, value, inverse), at)

    row.map(b, quotient)


@lowers(LogSoftmaxOp)
def _log_softmax(plan: Plan, op: LogSoftmaxOp) -> None:
    _lower(plan, op, _log_softmax_stages)


def _log_softmax_stages(s: _Stages, b: Body, row: Row) -> None:
    wide = s.wide
    greatest = s.greatest(b, row)

    def shifted(inner: Body, at: SSAValue) -> SSAValue:
        return inner.arithmetic("sub", wide, s.load(inner, at), greatest)

    def term(inner: Body, at: SSAValue, _: Sequence[SSAValue]) -> list[SSAValue]:
        x = shifted(inner, at)
        return [inner.math("exp", x.type, x)]

    total = row.fold(b, [sum_of(b, wide)], term)[0]
    logarithm = b.math("log", total.type, total)

    def difference(inner: Body, at: SSAValue, _: Sequence[SSAValue]) -> None:
        s.store(inner, inner.arithmetic("sub", wide, shifted(inner, at), logarithm), at)

    row.map(b, difference)


@lowers(HardmaxOp)
def _hardmax(plan: Plan, op: HardmaxOp) -> None:
    _lower(plan, op, _hardmax_stages)


def _hardmax_stages(s: _Stages, b: Body, row: Row) -> None:
    wide = s.wide
    chosen = place_of_extreme(b, row, wide, s.load)

    def mark(inner: Body, at: SSAValue, indices: Sequence[SSAValue]) -> None:
        index = inner.from_index(indices[0] if indices else inner.index(0), int64)
        hit = inner.compare_scalars("eq", int64, index, chosen)
        s.store(inner, inner.select(hit, inner.const(wide, 1), inner.const(wide, 0)), at)

    row.map(b, mark)
