"""Depthwise convolutions: each channel has a window of weights of its own.

With channels last the lanes are channels (see `conv_slide`), with channels second they are the pixels of a row.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype
from sardonyx.backends.llvm.lowering.conv_shape import Finish, Sliding, channels_put_last, channels_put_second
from sardonyx.backends.llvm.lowering.conv_slide import Place, Slide, Steps
from sardonyx.backends.llvm.lowering.plan import Plan
from sardonyx.backends.llvm.lowering.region import axis, copy_region
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, float32
from sardonyx.dialects.sx.constant import ConstantOp


def multiply_add(b: Body, wide: DType, x: SSAValue, y: SSAValue, total: SSAValue) -> SSAValue:
    """x * y + total of a float dtype in which values are computed."""
    return b.math("fma", total.type, x, y, total)


def _by_tap(plan: Plan, value: SSAValue, dtype: DType) -> tuple[SSAValue, DType]:
    """Weights [C, 1, k1, …] as [taps, C], and their dtype: in the compute dtype where they are constant."""
    dims = dims_of(value)
    taps = Dim.product(dims[2:])
    owner = value.owner
    if isinstance(owner, ConstantOp):
        wide = float32 if dtype.bits == 16 else dtype
        array: Any = owner.array().astype(wide.numpy)
        return plan.constant_array(np.ascontiguousarray(array.reshape(array.shape[0], -1).T), wide), wide
    buffer = plan.workspace(dtype, [plan.dim(taps), plan.dim(dims[0])])
    copy_region(plan, "weights", [axis(taps, 1, dims[0]), axis(dims[0], taps, 1)], plan.buffer(value), buffer)
    return buffer, dtype


def depthwise(
    plan: Plan,
    shape: Sliding,
    operands: tuple[SSAValue, SSAValue],
    target: SSAValue,
    last: tuple[bool, bool],
    finish: Finish,
) -> None:
    """Launch the convolution of data [N, D1, …, C] with weights [C, 1, k1, …] into the buffer `target`.

    `last` says whether the channels are last in the data and in the result; they are put there where they aren't.
    `finish` is what sums go through.
    """
    x, w = operands
    dtype = dtype_of(x)
    wide = compute_dtype(dtype)
    by_tap, own = _by_tap(plan, w, dtype)
    source = channels_put_last(plan, dtype, plan.buffer(x), [shape.batch, shape.channels, *shape.sizes], last[0])
    dims = [shape.batch, shape.channels, *shape.counts]
    held = finish.held(dtype)
    sums = target if last[1] else plan.workspace(held, [plan.count(dims)])
    kernel = plan.kernel("depthwise")
    data, weights, result = kernel.read_buffer(source), kernel.read_buffer(by_tap), kernel.write_buffer(sums)
    point = None if finish.at_once is None else finish.at_once(kernel)
    zero, channels = kernel.const(wide, 0), kernel.extent(shape.channels)

    def weight(b: Body, tap: IndexLike, channel: SSAValue) -> SSAValue:
        return b.convert(b.load(weights, b.plus(b.times(tap, channels), channel)), own, wide)

    def add(b: Body, state: SSAValue, at: SSAValue, factor: SSAValue | None) -> SSAValue:
        value = b.convert(b.load(data, at), dtype, wide)
        return state if factor is None else multiply_add(b, wide, value, factor, state)

    def store(b: Body, state: SSAValue, place: Place, channel: SSAValue, window: IndexLike) -> None:
        value = b.convert(state, wide, held) if point is None else point(b, state, window, channel)
        b.store(value, result, b.plus(b.times(window, channels), channel))

    Slide(plan, kernel, shape, Steps(lambda b, c: zero, weight, add, store)).emit()
    kernel.launch()
    if not last[1]:
        channels_put_second(plan, (held, finish.result), sums, target, dims, finish.later)
