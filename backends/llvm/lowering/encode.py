"""Lowerings of the encoders of ai.onnx.ml on numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body
from sardonyx.backends.llvm.lowering.number import Number
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dtypes import DType, float32, int64
from sardonyx.dialects.sx.ml_encode import LabelEncoderOp, OneHotEncoderOp
from sardonyx.dialects.sx.ml_support import table_of


def _table(plan: Plan, array: np.ndarray, dtype: DType) -> SSAValue:
    held = np.zeros(max(1, array.size), dtype.numpy)
    held[: array.size] = array.reshape(-1)
    return plan.constant_array(held, dtype)


@lowers(LabelEncoderOp)
def _label_encoder(plan: Plan, op: LabelEncoderOp) -> None:
    """Keys are sorted, and each lane halves the range that its element may be in."""
    keys, values = op._entries("keys")[1], op._entries("values")[1]
    source, dtype = dtype_of(op.data), dtype_of(op.output)
    nan = np.isnan(keys) if source.is_float else np.zeros(len(keys), bool)
    at_nan = int(np.flatnonzero(nan)[0]) if nan.any() else None
    known, first = np.unique(keys[~nan], return_index=True)  # of several equal keys the first one counts
    kept = values[~nan][first]
    default: Any = op.properties.get("default_tensor")
    if default is not None:
        default = table_of(default).reshape(-1)[0]
    else:
        default = op.attr("default_float" if dtype.is_float else "default_int64")
    fill = np.asarray(default).astype(dtype.numpy).reshape(())
    kernel = plan.kernel("label_encoder")
    read, write = kernel.read(op.data), kernel.write(op.output)
    sorted_keys = kernel.read_buffer(_table(plan, known, source))
    found = kernel.read_buffer(_table(plan, np.append(kept, fill), dtype))
    nan_value = kernel.read_buffer(_table(plan, values[at_nan : at_nan + 1], dtype)) if at_nan is not None else None
    count = len(known)

    def element(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        x = Number.load(b, read, i, source)

        def halve(c: Body, _: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            low, high = Number(c, carried[0], None), Number(c, carried[1], None)
            middle = (low + high) // 2
            below = Number.load(c, sorted_keys, middle.min(max(count - 1, 0)), source).lt(x) & low.lt(high)
            return [below.where(middle + 1, low).value, below.where(high, middle.min(high)).value]

        start = [("serial", b.index(0)), ("serial", b.index(count))]
        place = Number(b, b.loop(count.bit_length(), halve, start)[0], None)
        inside = place.lt(count)
        same = inside & Number.load(b, sorted_keys, inside.where(place, 0), source).eq(x)
        value = Number.load(b, found, same.where(place, count), dtype)
        if nan_value is not None:
            value = x.ne(x).where(Number.load(b, nan_value, 0, dtype), value)
        value.store(write, i, dtype, b)

    kernel.loop(kernel.outer(plan.count(dims_of(op.data))), element, vector=True, parallel=True)
    kernel.launch()


@lowers(OneHotEncoderOp)
def _one_hot_encoder(plan: Plan, op: OneHotEncoderOp) -> None:
    source, cats = dtype_of(op.data), np.array(op.attr("cats_int64s"), np.int64)
    kernel = plan.kernel("one_hot_encoder")
    read, write, table = kernel.read(op.data), kernel.write(op.output), kernel.read_buffer(_table(plan, cats, int64))
    failure = plan.failure("(C2) '{0}' is of no category")

    def element(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        x, row = Number.load(b, read, i, source, int64), Number.index(b, i) * len(cats)

        def category(v: Body, k: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            here = Number.load(v, table, k, int64).eq(x)
            here.to(float32).store(write, row + Number.index(v, k), float32, v)
            return [(Number(v, carried[0], int64) + here.to(int64)).value]

        (number,) = b.loop(len(cats), category, [("add", kernel.const(int64, 0))], vector=True)
        if not op.attr("zeros"):
            b.require(Number(b, number, int64).gt(0).value, failure, x.to_index().value)

    kernel.loop(kernel.outer(plan.count(dims_of(op.data))), element, parallel=True)
    kernel.launch()
