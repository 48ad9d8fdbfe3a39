"""Convolutions: `sx.conv`, `sx.conv_transpose`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import Shape, dims_of, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, divides
from sardonyx.dialects.dtypes import FLOATS, DType
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import refuse, slots
from sardonyx.dialects.sx.numeric import double, narrow
from sardonyx.dialects.sx.support import check_dtype, format_dims, is_unranked, require_equal, same_dtype
from sardonyx.dialects.sx.windows import (
    LAYOUTS,
    Windows,
    array_channels_last,
    array_channels_second,
    channels_last,
    channels_second,
    read_layout,
    read_windows,
    split_padding,
    window_extents,
)


def conv_windows(op: SxOp, kernel: Sequence[Dim | int]) -> Windows:
    """The windows of a convolution with a `w` of these spatial extents; its constraint on them is (C3)."""
    stated = op.attr("kernel_shape")
    if stated is not None:
        if len(stated) != len(kernel):
            raise op.fail(f"(C3) kernel_shape {list(stated)} for {len(kernel)} spatial axes")
        for given, found in zip(stated, kernel, strict=True):
            require_equal(op, Dim.of(given), Dim.of(found), "(C3) kernel_shape differs from w's")
        kernel = stated
    return read_windows(op, len(kernel), kernel, "(C3)")


class ConvolutionOp(SxOp):
    """What both convolutions share.

    (C1) The operands have the same dtype, one of `DTYPES`. (C2) `x` and `w` have the same rank, at least 3, `b` has
    rank 1. (C3) `kernel_shape`, where given, is that of `w`; strides and dilations are positive, pads not negative, one
    (for pads two) per spatial axis; `auto_pad` is one of `AUTO_PADS`, and pads count only where it is NOTSET.
    """

    x = operand_def()
    w = operand_def()
    b = opt_operand_def()
    auto_pad = opt_prop_def(StringAttr)
    dilations = opt_prop_def(DenseArrayBase)
    group = opt_prop_def(IntegerAttr)
    kernel_shape = opt_prop_def(DenseArrayBase)
    pads = opt_prop_def(DenseArrayBase)
    strides = opt_prop_def(DenseArrayBase)
    DEFAULTS: ClassVar = {"auto_pad": "NOTSET", "group": 1}
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def _check(self) -> tuple[DType, Shape, Shape] | DType:
        """The dtype and the shapes of `x` and `w`; only the dtype where a rank is unknown."""
        dtype = same_dtype(self, self.operands, "(C1)")
        check_dtype(self, self.x, self.DTYPES, "(C1)")
        if self.attr("group") < 1:
            raise self.fail(f"(C4) group is {self.attr('group')}")
        if is_unranked(self.x) or is_unranked(self.w):
            return dtype
        x, w = dims_of(self.x), dims_of(self.w)
        if len(x) < 3 or len(x) != len(w):
            raise self.fail(f"(C2) shapes {format_dims(x)} and {format_dims(w)} need one rank, at least 3")
        if self.b is not None and not is_unranked(self.b) and len(dims_of(self.b)) != 1:
            raise self.fail(f"(C2) b has shape {format_dims(dims_of(self.b))}, not rank 1")
        return dtype, x, w

    def windows(self, kernel: Sequence[Dim | int]) -> Windows:
        """The windows for a `w` of these spatial extents."""
        return conv_windows(self, kernel)

    def _check_bias(self, channels: Dim) -> None:
        if self.b is not None and not is_unranked(self.b):
            require_equal(self, dims_of(self.b)[0], channels, "(C5) b has another length than there are channels")

    def _check_run(self, x: Array, w: Array, b: Array | None, channels: int) -> Windows:
        if x.ndim < 3 or x.ndim != w.ndim or (b is not None and b.shape != (channels,)):
            shown = [list(a.shape) for a in (x, w, b) if a is not None]
            raise refuse(self, f"shapes {', '.join(map(str, shown))} are no operands of a convolution")
        return self.windows(w.shape[2:])


def _with_bias(result: Array, b: Array | None, dtype: np.dtype) -> Array:
    if b is not None:
        result = result + double(b).reshape(1, -1, *[1] * (result.ndim - 2))
    return narrow(result, dtype)


def correlate(op: SxOp, x: Array, w: Array, windows: Windows) -> Array:
    """The sums over the windows of `x` times `w`, both in float64, not rounded yet; `op` has the attribute `group`."""
    group, (n, channels), m = op.attr("group"), x.shape[:2], w.shape[0]
    if channels != w.shape[1] * group or m % group:
        raise refuse(op, f"x of {list(x.shape)} and w of {list(w.shape)} don't fit group {group}")
    sizes = x.shape[2:]
    out = windows.run_extents(op, sizes)
    result = np.zeros((n, group, m // group, math.prod(out)))
    if not result.size:
        return result.reshape(n, m, *out)
    margins: list[tuple[int, int]] = []
    for axis, size in enumerate(sizes):
        before, after = windows.run_pads(axis, size)
        margins.append((before, after))
    padded = np.pad(x.reshape(n, group, channels // group, *sizes), [(0, 0)] * 3 + margins)
    kernels = w.reshape(group, m // group, channels // group, *w.shape[2:])
    for offset in np.ndindex(w.shape[2:]):
        cells = tuple(
            slice(o * d, o * d + (count - 1) * s + 1, s)
            for o, d, s, count in zip(offset, windows.dilations, windows.strides, out, strict=True)
        )
        patch = padded[(slice(None),) * 3 + cells].reshape(n, group, channels // group, math.prod(out))
        result += np.matmul(kernels[(slice(None),) * 3 + offset], patch)
    return result.reshape(n, m, *out)


@irdl_op_definition
class ConvOp(ConvolutionOp):
    """Correlation of `x` [N, C, D1, …] with `w` [M, C/group, k1, …], plus `b` [M]; sums in float64, rounded once.

    `layout` says where the channels of the data and of the result stand: NCHW as above, NHWC last in both
    ([N, D1, …, C]), and "NCHW->NHWC" or "NHWC->NCHW". `w` is always as above. ONNX has only NCHW.

    (C1) to (C3) are those of `ConvolutionOp`. (C4) `group` is positive, `x` has `group` times the channels of `w`, and
    M is a multiple of `group`. (C5) `b` has M elements. (C6) A window fits into the padded data. (C7) `layout` is one
    of `LAYOUTS`.
    """

    name = "sx.conv"
    layout = opt_prop_def(StringAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("Conv", since=1, attributes={"layout": None})
    DEFAULTS: ClassVar = {**ConvolutionOp.DEFAULTS, "layout": "NCHW"}
    LAYOUTS: ClassVar = (*LAYOUTS, "NCHW->NHWC", "NHWC->NCHW")

    @property
    def channels_are_last(self) -> tuple[bool, bool]:
        """Whether the channels are last in the data, and in the result."""
        return read_layout(self, self.LAYOUTS, "(C7)")

    def infer(self) -> Sequence[Attribute]:
        checked = self._check()
        if isinstance(checked, DType):
            return [unranked_type(checked)]
        dtype, given, w = checked
        x_last, out_last = self.channels_are_last
        x = channels_second(given, x_last)
        group = self.attr("group")
        windows = self.windows(w[2:])
        require_equal(self, x[1], w[1] * group, f"(C4) the channels of x and of w times group {group} differ")
        if divides(group, w[0]) is Proof.REFUTED:
            raise self.fail(f"(C4) {w[0]} output channels are no multiple of group {group}")
        self._check_bias(w[0])
        out = (x[0], w[0], *window_extents(self, windows, x[2:], "(C6)"))
        return [tensor_type(dtype, channels_last(out, out_last))]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, w, b = slots(arrays)
        windows = self._check_run(x, w, b, w.shape[0])
        x_last, out_last = self.channels_are_last
        x = array_channels_second(x, x_last)
        return [array_channels_last(_with_bias(correlate(self, double(x), double(w), windows), b, x.dtype), out_last)]


@irdl_op_definition
class ConvTransposeOp(ConvolutionOp):
    """The gradient of a convolution: each element of `x` [N, C, D1, …] adds `w` [C, M/group, k1, …] times itself.

    An axis of n elements gives `stride * (n - 1) + output_padding + reach` minus its pads. `output_shape` states the
    spatial extents instead, and SAME_UPPER and SAME_LOWER make them `n * stride`; the pads follow then.

    (C1) to (C3) are those of `ConvolutionOp`. (C4) `group` is positive, `x` has as many channels as `w` has rows, a
    multiple of `group`. (C5) `b` has M elements. (C6) `output_padding` and `output_shape` have one entry per spatial
    axis, none negative, and no extent of the result is negative.
    """

    name = "sx.conv_transpose"
    output_padding = opt_prop_def(DenseArrayBase)
    output_shape = opt_prop_def(DenseArrayBase)
    output = result_def()
    ONNX: ClassVar = OnnxForm("ConvTranspose", since=1)

    def infer(self) -> Sequence[Attribute]:
        checked = self._check()
        if isinstance(checked, DType):
            return [unranked_type(checked)]
        dtype, x, w = checked
        group = self.attr("group")
        windows = self.windows(w[2:])
        require_equal(self, x[1], w[0], "(C4) the channels of x and the rows of w differ")
        if divides(group, w[0]) is Proof.REFUTED:
            raise self.fail(f"(C4) {w[0]} channels are no multiple of group {group}")
        self._check_bias(w[1] * group)
        extents = [self._extent(windows, axis, size) for axis, size in enumerate(x[2:])]
        for axis, extent in enumerate(extents):
            if extent.static_value is not None and extent.static_value < 0:
                raise self.fail(f"(C6) spatial axis {axis} of the result has extent {extent}")
        return [tensor_type(dtype, [x[0], w[1] * group, *extents])]

    def _entries(self, name: str, count: int) -> tuple[int, ...] | None:
        given = self.attr(name)
        if given is not None and (len(given) != count or any(v < 0 for v in given)):
            raise self.fail(f"(C6) {name} {list(given)} for {count} spatial axes")
        return given

    def _full(self, windows: Windows, axis: int, size: Dim) -> Dim:
        """The extent without pads."""
        extra = self._entries("output_padding", len(windows.kernel))
        return (size - 1) * windows.strides[axis] + windows.reach(axis) + (0 if extra is None else extra[axis])

    def _extent(self, windows: Windows, axis: int, size: Dim) -> Dim:
        full = self._full(windows, axis, size)
        stated = self._entries("output_shape", len(windows.kernel))
        if stated is not None:
            return Dim.of(stated[axis])
        if windows.same:
            return size * windows.strides[axis]
        return full - sum(windows.pads[axis])

    def _before(self, windows: Windows, axis: int, full: int, extent: int) -> int:
        """The padding cropped in front."""
        if self.attr("output_shape") is None and not windows.same:
            return windows.pads[axis][0]
        return split_padding(max(0, full - extent), windows.auto_pad == "SAME_UPPER")[0]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, w, b = slots(arrays)
        channels = w.shape[1] * self.attr("group")
        windows = self._check_run(x, w, b, channels)
        return [_with_bias(self._spread(double(x), double(w), windows), b, x.dtype)]

    def _spread(self, x: Array, w: Array, windows: Windows) -> Array:
        group, (n, channels), m = self.attr("group"), x.shape[:2], w.shape[1] * self.attr("group")
        if channels != w.shape[0] or channels % group:
            raise refuse(self, f"x of {list(x.shape)} and w of {list(w.shape)} don't fit group {group}")
        sizes = x.shape[2:]
        fulls = [self._full(windows, i, Dim.of(s)).static_value or 0 for i, s in enumerate(sizes)]
        extents = [self._extent(windows, i, Dim.of(s)).static_value or 0 for i, s in enumerate(sizes)]
        befores = [self._before(windows, i, f, e) for i, (f, e) in enumerate(zip(fulls, extents, strict=True))]
        if any(e < 0 for e in extents):
            raise refuse(self, f"x of {list(x.shape)} gives a result of negative extent: {extents}")
        # What the result shows beyond the full extent stays 0.
        room = [max(f, b + e) for f, b, e in zip(fulls, befores, extents, strict=True)]
        result = np.zeros((n, group, m // group, *room))
        columns = x.reshape(n, group, channels // group, math.prod(sizes))
        kernels = np.moveaxis(w.reshape(group, channels // group, m // group, *w.shape[2:]), 1, 2)
        for offset in np.ndindex(w.shape[2:]) if x.size else ():
            cells = tuple(
                slice(o * d, o * d + (size - 1) * s + 1, s)
                for o, d, s, size in zip(offset, windows.dilations, windows.strides, sizes, strict=True)
            )
            part = np.matmul(kernels[(slice(None),) * 3 + offset], columns)
            result[(slice(None),) * 3 + cells] += part.reshape(n, group, m // group, *sizes)
        crop = tuple(slice(b, b + e) for b, e in zip(befores, extents, strict=True))
        return result[(slice(None),) * 3 + crop].reshape(n, m, *extents)
