"""Convolution whose places are moved: `sx.deform_conv`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import Shape, dims_of, tensor_type, unranked_type
from sardonyx.dialects.base import SEGMENTS, OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import FLOATS, DType
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import merge, refuse, slots
from sardonyx.dialects.sx.numeric import double, narrow
from sardonyx.dialects.sx.support import check_dtype, format_dims, is_unranked, same_dtype
from sardonyx.dialects.sx.windows import Windows, read_windows, window_extents


def interpolated(planes: Array, y: Array, x: Array) -> Array:
    """Planes [C, H, W] at places y, x, bilinear; what lies outside is 0: [C, *places]."""
    height, width = planes.shape[1:]
    # Beyond the neighbourhood of the image all places are alike.
    y, x = (np.where(np.isnan(v), -2.0, np.clip(v, -2.0, n + 1.0)) for v, n in ((y, height), (x, width)))
    top, left = np.floor(y), np.floor(x)
    total = np.zeros((planes.shape[0], *y.shape))
    for row, wy in ((top, 1 - (y - top)), (top + 1, y - top)):
        for column, wx in ((left, 1 - (x - left)), (left + 1, x - left)):
            inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
            weight = np.where(inside, wy * wx, 0.0)
            at = np.clip(row, 0, height - 1).astype(np.int64), np.clip(column, 0, width - 1).astype(np.int64)
            total += np.where(weight != 0, planes[(slice(None), *at)] * weight, 0.0)
    return total


@irdl_op_definition
class DeformConvOp(SxOp):
    """The convolution of `x` [N, C, H, W] with `w` [M, C / group, kH, kW] at places that `offset` moves.

    `offset` [N, offset_group * kH * kW * 2, oH, oW] has a y and an x for each cell of the kernel and each place of the
    result; the channels of an offset group share them. The element there is interpolated bilinearly, 0 outside of the
    image, and multiplied by `mask` [N, offset_group * kH * kW, oH, oW]. `b` [M] is added. In float64, rounded once.

    (C1) All dtypes are the same one of `DTYPES`. (C2) The ranks of `x`, `w`, `offset` and `mask` are 4, that of `b` 1.
    (C3) `group` and `offset_group` are positive and divide C, `group` also M; `w` has C / group channels. (C4) Strides
    and dilations are positive, pads not negative, and `kernel_shape` is that of `w`. (C5) The shapes of `offset`,
    `mask` and `b` are as above; a window fits into the padded image.
    """

    name = "sx.deform_conv"
    x = operand_def()
    w = operand_def()
    offset = operand_def()
    b = opt_operand_def()
    mask = opt_operand_def()
    dilations = opt_prop_def(DenseArrayBase)
    group = opt_prop_def(IntegerAttr)
    kernel_shape = opt_prop_def(DenseArrayBase)
    offset_group = opt_prop_def(IntegerAttr)
    pads = opt_prop_def(DenseArrayBase)
    strides = opt_prop_def(DenseArrayBase)
    output = result_def()
    irdl_options = SEGMENTS
    ONNX: ClassVar = OnnxForm("DeformConv", since=19)
    DEFAULTS: ClassVar = {"auto_pad": "NOTSET", "group": 1, "offset_group": 1}
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def windows(self, kernel: Sequence[Dim | int]) -> Windows:
        return read_windows(self, 2, kernel, "(C4)")

    def infer(self) -> Sequence[Attribute]:
        dtype = same_dtype(self, self.operands, "(C1)")
        check_dtype(self, self.x, self.DTYPES, "(C1)")
        for value, rank in ((self.x, 4), (self.w, 4), (self.offset, 4), (self.mask, 4), (self.b, 1)):
            if value is not None and not is_unranked(value) and len(dims_of(value)) != rank:
                raise self.fail(f"(C2) an operand is {format_dims(dims_of(value))}, not of rank {rank}")
        group, offset_group = self.attr("group"), self.attr("offset_group")
        if group < 1 or offset_group < 1:
            raise self.fail(f"(C3) group is {group}, offset_group {offset_group}")
        if is_unranked(self.x) or is_unranked(self.w):
            return [unranked_type(dtype)]
        x, w = dims_of(self.x), dims_of(self.w)
        for size, parts in ((x[1], group), (x[1], offset_group), (w[0], group)):
            if size.static_value is not None and size.static_value % parts:
                raise self.fail(f"(C3) {size} channels don't make {parts} groups")
        if equal(w[1] * group, x[1]) is Proof.REFUTED:
            raise self.fail(f"(C3) w has {w[1]} channels a group, the operand {x[1]} in {group} groups")
        kernel = self.attr("kernel_shape")
        if kernel is not None and (
            len(kernel) != 2 or any(equal(a, b) is Proof.REFUTED for a, b in zip(kernel, w[2:]))
        ):
            raise self.fail(f"(C4) kernel_shape is {list(kernel)}, w {format_dims(w)}")
        windows = self.windows(w[2:] if kernel is None else kernel)
        sizes = window_extents(self, windows, x[2:], "(C5)")
        out = self._check_offset([x[0], w[0], *sizes], (w[2], w[3]), offset_group)
        return [tensor_type(dtype, out)]

    def _check_offset(self, out: list[Dim], kernel: tuple[Dim, Dim], groups: int) -> Shape:
        cells = kernel[0] * kernel[1] * groups
        for value, count, what in ((self.offset, cells * 2, "offset"), (self.mask, cells, "mask")):
            if value is None or is_unranked(value):
                continue
            dims = dims_of(value)
            wanted = [out[0], count, out[2], out[3]]
            merged = [
                merge(self, a, b, f"(C5) {what} is {format_dims(dims)}, not {format_dims(wanted)}; axis {i}")
                for i, (a, b) in enumerate(zip(wanted, dims, strict=True))
            ]
            out = [merged[0], out[1], merged[2], merged[3]]
        if self.b is not None and not is_unranked(self.b):
            out[1] = merge(self, out[1], dims_of(self.b)[0], "(C5) b and w differ in channels")
        return tuple(out)

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, w, offset, bias, mask = slots(arrays)
        group, groups = self.attr("group"), self.attr("offset_group")
        if x.ndim != 4 or w.ndim != 4 or x.shape[1] % group or x.shape[1] % groups or w.shape[0] % group:
            raise refuse(self, f"shapes {list(x.shape)} and {list(w.shape)} don't fit {group} and {groups} groups")
        if w.shape[1] * group != x.shape[1] or min(w.shape[2:]) < 1:
            raise refuse(self, f"weights of shape {list(w.shape)} don't fit an operand of {list(x.shape)}")
        windows = self.windows(w.shape[2:])
        counts = windows.run_extents(self, x.shape[2:])
        batch, kernel, cells = x.shape[0], w.shape[2:], w.shape[2] * w.shape[3]
        if offset.shape != (batch, groups * cells * 2, *counts) or (
            mask is not None and mask.shape != (batch, groups * cells, *counts)
        ):
            raise refuse(self, f"offset or mask don't fit {groups} groups of {cells} cells at {list(counts)} places")
        if bias is not None and bias.shape != (w.shape[0],):
            raise refuse(self, f"b has shape {list(bias.shape)}, not [{w.shape[0]}]")
        out = np.zeros((batch, w.shape[0], *counts))
        if out.size and x.size:
            moved = double(offset).reshape(batch, groups, *kernel, 2, *counts)
            weights = None if mask is None else double(mask).reshape(batch, groups, *kernel, *counts)
            rows, columns = (windows.cells(i, x.shape[2 + i], counts[i]) for i in (0, 1))
            y = moved[..., 0, :, :] + rows[:, None, :, None]
            z = moved[..., 1, :, :] + columns[None, :, None, :]
            for b in range(batch):
                planes = double(x[b]).reshape(groups, -1, *x.shape[2:])
                sampled = np.stack([interpolated(p, y[b, g], z[b, g]) for g, p in enumerate(planes)])
                if weights is not None:
                    sampled = sampled * weights[b][:, None]
                patches = sampled.reshape(group, -1, *kernel, *counts)
                kernels = double(w).reshape(group, -1, *w.shape[1:])
                out[b] = np.einsum("gmckl,gcklij->gmij", kernels, patches, optimize=True).reshape(-1, *counts)
        if bias is not None:
            out += double(bias).reshape(1, -1, 1, 1)
        return [narrow(out, x.dtype)]
