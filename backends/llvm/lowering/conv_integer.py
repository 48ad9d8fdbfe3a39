"""Lowering of conv_integer: pairs of channels in the contraction of pairs, or exact floats where those are faster.

Data and weights less their zero points fit into 16 bits. Two channels at a time stand in one 32-bit element, in data
and weights alike, so that a convolution of elements is one of pairs (see `pairs` of `kernel.contract`). The padding is
0, as the zero point is once it is taken away. Where a window has few elements every sum is a number that float32 holds
exactly, and there depthwise, grouped and first layers go through the convolution of floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, prop_def, result_def

from sardonyx.backends.llvm.expand import Builder, expands, known
from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.conv import reads_single_elements
from sardonyx.backends.llvm.lowering.conv_shape import Finish, Sliding
from sardonyx.backends.llvm.lowering.conv_tile import convolve
from sardonyx.backends.llvm.lowering.epilogue import Fused, chain, result_of, takes_epilogue
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.backends.llvm.lowering.quantize import ONE, DequantizeOp, view
from sardonyx.dialects.attributes import dims_of, dtype_of, tensor_type
from sardonyx.dialects.base import SEGMENTS, SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import float32, int16, int32, uint16
from sardonyx.dialects.sx.cast import CastOp
from sardonyx.dialects.sx.conv import ConvOp, conv_windows
from sardonyx.dialects.sx.quantize_integer import ConvIntegerOp
from sardonyx.dialects.sx.quantized import per_channel
from sardonyx.dialects.sx.windows import window_extents

Array = np.ndarray[Any, Any]
EXACT_TAPS = (1 << 24) // (255 * 255)
"""Products of two centred bytes of which float32 holds every sum."""
FEW_CHANNELS = 8
"""Channels of a group below which pairs of them are not worth their own order."""
ATTRIBUTES = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


@irdl_op_definition
class PairChannelsOp(SxOp):
    """Bytes [N, C, …] less their zero point as int32 [N, group * ceil(C / group / 2), …].

    Two channels of a group are the halves of an element.

    The zero point is one number, or one for each of the N. `weights`, where given, are checked to have as many channels
    as a group.
    """

    name = "native.pair_channels"
    irdl_options = SEGMENTS
    data = operand_def()
    zero = opt_operand_def()
    weights = opt_operand_def()
    group = prop_def(IntegerAttr)
    output = result_def()

    def infer(self) -> Sequence[Attribute]:
        dims, group = dims_of(self.data), self.attr("group")
        pairs = (dims[1] // group).ceildiv(2) * group
        return [tensor_type(int32, [dims[0], pairs, *dims[2:]])]


@irdl_op_definition
class ConvPairsOp(SxOp):
    """The convolution of pairs of channels, as `PairChannelsOp` makes them, with weights [M, C / group, k1, …] of such
    pairs; sums wrap around in int32. The attributes are those of `sx.conv`."""

    name = "native.conv_pairs"
    x = operand_def()
    w = operand_def()
    auto_pad = opt_prop_def(StringAttr)
    dilations = opt_prop_def(DenseArrayBase)
    group = opt_prop_def(IntegerAttr)
    kernel_shape = opt_prop_def(DenseArrayBase)
    pads = opt_prop_def(DenseArrayBase)
    strides = opt_prop_def(DenseArrayBase)
    output = result_def()
    DEFAULTS: ClassVar = {"auto_pad": "NOTSET", "group": 1}

    def infer(self) -> Sequence[Attribute]:
        x, w = dims_of(self.x), dims_of(self.w)
        windows = conv_windows(self, w[2:])
        return [tensor_type(int32, [x[0], w[0], *window_extents(self, windows, x[2:], "(C6)")])]


@lowers(PairChannelsOp)
def _pair_channels(plan: Plan, op: PairChannelsOp) -> None:
    dims, dtype = dims_of(op.data), dtype_of(op.data)
    group = op.attr("group")
    channels = dims[1] // group
    if op.weights is not None:
        wanted = dims_of(op.weights)[1] * group
        plan.require_equal(dims[1], wanted, "conv: x has {0} channels, w asks for {1}")
    kernel = plan.kernel("pair_channels")
    data, target = kernel.read(op.data), kernel.write(op.output)
    zeros = None if op.zero is None else kernel.read(op.zero)
    step = kernel.outer(_step(plan, op.zero, dims[0]))
    of_group, pairs = kernel.extent(channels), kernel.extent(channels.ceildiv(2))
    plane = kernel.outer(plan.count(dims[2:]))
    bounds = [kernel.extent(dims[0]), kernel.index(group), pairs, plane]
    nothing = kernel.const(int16, 0)

    def centred(b: Body, at: IndexLike, zero: SSAValue | None) -> SSAValue:
        value = b.convert(b.load(data, at), dtype, int16)
        return value if zero is None else b.arithmetic("sub", int16, value, zero)

    def row(b: Body, numbers: Sequence[SSAValue], flat: IndexLike) -> None:
        """All pixels of a pair of channels."""
        image, part, pair = numbers
        zero = None if zeros is None else b.convert(b.load(zeros, b.times(image, step)), dtype, int16)
        channel = b.times(pair, 2)
        first = b.plus(b.times(b.plus(b.times(image, group), part), of_group), channel)
        start, to = b.times(first, plane), b.times(flat, plane)

        def line(outer: Body, second: bool) -> None:
            def element(one: Body, at: SSAValue, _: Sequence[SSAValue]) -> None:
                low = centred(one, one.plus(start, at), zero)
                high = centred(one, one.plus(one.plus(start, plane), at), zero) if second else nothing
                one.store(joined(one, low, high), target, one.plus(to, at))

            outer.loop(plane, element, vector=True)

        if channels.static_value is not None and channels.static_value % 2 == 0:
            line(b, True)
        else:
            more = b.compare("slt", b.plus(channel, 1), of_group)
            b.when(more, lambda t: line(t, True), lambda t: line(t, False))

    _rows(kernel, bounds[:-1], row)
    kernel.launch()


def _step(plan: Plan, zero: SSAValue | None, rows: Dim) -> SSAValue:
    """From row to row in the zero points: 0 where there is one for all."""
    body = plan.body
    if zero is None or Dim.product(dims_of(zero)).static_value == 1:
        return body.index(0)
    count, wanted = plan.count(dims_of(zero)), plan.dim(rows)
    one = body.compare("eq", count, 1)
    fits = body.either(one, body.compare("eq", count, wanted))
    body.require(fits, plan.failure("{0} zero points for {1} channels"), count, wanted)
    return body.select(one, body.index(0), body.index(1))


def _rows(kernel: Body, bounds: Sequence[IndexLike], row: Any) -> None:
    """Loops over rows, the outermost parallel: `row(body, indices, flat number)`."""

    def level(b: Body, depth: int, indices: list[SSAValue], flat: IndexLike) -> None:
        if depth == len(bounds):
            row(b, indices, flat)
            return

        def step(inner: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            level(inner, depth + 1, [*indices, index], inner.plus(inner.times(flat, bounds[depth]), index))

        b.loop(bounds[depth], step, parallel=depth == 0)

    level(kernel, 0, [], 0)


def joined(b: Body, low: SSAValue, high: SSAValue) -> SSAValue:
    """Two int16 as the halves of an int32."""
    upper = b.arithmetic("mul", int32, b.convert(high, int16, int32), b.const(int32, 1 << 16))
    return b.arithmetic("add", int32, b.convert(low, uint16, int32), upper)


@takes_epilogue(ConvPairsOp, columns=lambda op: len(dims_of(op.output)) - 2)
def _conv_pairs(plan: Plan, op: ConvPairsOp, fused: Fused | None) -> None:
    x, w, out = dims_of(op.x), dims_of(op.w), dims_of(op.output)
    group = op.attr("group")
    plan.require_equal(w[0], (w[0] // group) * group, "conv: {0} output channels are no multiple of the group")
    shape = Sliding.of(plan, conv_windows(op, w[2:]), x, out)
    target = plan.new_buffer(result_of(op, fused))
    early = fused is None or reads_single_elements(fused)
    finish = Finish(chain(int32, None, fused), early, dtype_of(result_of(op, fused)))
    convolve(plan, shape, (op.x, op.w), group, target, (False, False), finish, halves=True)


# ---- expansions


def paired(array: Array, group: int) -> Array:
    """int16 [N, C, ...] as int32 with pairs of channels, as `PairChannelsOp` has them."""
    n, channels = array.shape[:2]
    each = channels // group
    padded = np.zeros((n, group, each + each % 2, *array.shape[2:]), np.int16)
    padded[:, :, :each] = array.reshape(n, group, each, *array.shape[2:])
    halves = np.moveaxis(padded.reshape(n, group * (each + each % 2) // 2, 2, *array.shape[2:]), 2, -1)
    return np.ascontiguousarray(halves).view(np.int32)[..., 0]


def _known_weights(op: Any) -> Array | None:
    """Constant weights less their zero points, as int16."""
    array, zero = known(op.w), known(op.w_zero_point)
    if array is None or (op.w_zero_point is not None and zero is None):
        return None
    centred = array.astype(np.int16)
    return centred if zero is None else centred - per_channel(op, zero, len(array), array.ndim, 0, "w_zero_point")


def sums_of(b: Builder, op: Any) -> SSAValue:
    """The int32 sums of an integer convolution with the operands x, w, x_zero_point and w_zero_point."""
    dims, group = dims_of(op.w), op.attr("group")
    attributes = {name: op.attr(name) for name in ATTRIBUTES}
    channels, taps = dims[1].static_value, Dim.product(dims[1:]).static_value
    narrow = group > 1 or (channels is not None and channels < FEW_CHANNELS)
    weights = _known_weights(op)
    x_zero = None if op.x_zero_point is None else view(b, op.x_zero_point, ())
    if taps is not None and taps <= EXACT_TAPS and narrow:
        one = b.constant(np.asarray(1, np.float32))
        x = b.add(DequantizeOp, op.x, one, x_zero, to=float32.ir)
        if weights is None:
            w = b.add(DequantizeOp, op.w, one, _per_filter(b, op), to=float32.ir)
        else:
            w = b.constant(weights.astype(np.float32))
        return b.add(CastOp, b.add(ConvOp, x, w, **attributes), to=int32.ir)
    x = b.add(PairChannelsOp, op.x, x_zero, op.w, group=group)
    if weights is None:
        w = b.add(PairChannelsOp, op.w, op.w_zero_point, None, group=1)
    else:
        w = b.constant(paired(weights, 1))
    return b.add(ConvPairsOp, x, w, **attributes)


def _per_filter(b: Builder, op: Any) -> SSAValue | None:
    zero = op.w_zero_point
    if zero is None or not dims_of(zero):
        return zero
    return view(b, zero, [dims_of(zero)[0], *[ONE] * (len(dims_of(op.w)) - 1)])


@expands(ConvIntegerOp)
def _conv_integer(b: Builder, op: ConvIntegerOp) -> Sequence[SSAValue]:
    return [sums_of(b, op)]
