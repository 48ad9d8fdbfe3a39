"""Regions brought to one size: `sx.roi_align`, `sx.max_roi_pool`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from sardonyx.dialects.attributes import dims_of, dtype_of, fresh_dim, tensor_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import FLOATS, DType, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import check_allocation, check_run_allocation, merge, refuse, slots
from sardonyx.dialects.sx.numeric import double, narrow
from sardonyx.dialects.sx.support import check_dtype, float_attr, format_dims, is_unranked

MAX_SAMPLES = 1 << 24
"""How many places a region may be sampled at: more than an image of 4096 x 4096 has elements."""


def _check_rank(op: SxOp, value: SSAValue, rank: int, constraint: str, what: str) -> tuple[Dim, ...] | None:
    """The dims, None where the rank is unknown; another rank breaks the constraint."""
    if is_unranked(value):
        return None
    dims = dims_of(value)
    if len(dims) != rank:
        raise op.fail(f"{constraint} {what} has shape {format_dims(dims)}, not rank {rank}")
    return dims


def _bilinear(at: Array, size: int) -> tuple[Array, Array, Array, Array]:
    """The two neighbours of each coordinate, the second one's weight, and whether it is near the image at all."""
    valid = (at >= -1.0) & (at <= size)
    inside = np.where(valid, np.maximum(at, 0.0), 0.0)
    low = np.minimum(inside.astype(np.int64), size - 1)
    high = np.minimum(low + 1, size - 1)
    return low, high, np.where(low >= size - 1, 0.0, inside - low), valid


@irdl_op_definition
class RoiAlignOp(SxOp):
    """Regions of images [N, C, H, W], each sampled in a grid of `output_height` by `output_width` cells.

    `rois` [R, 4] are corners x1, y1, x2, y2, times `spatial_scale`, of the images `batch_indices` [R]. A cell is the
    mean (`avg`) or the greatest (`max`) of `sampling_ratio` places a side (0: as many as the cell spans elements), each
    interpolated bilinearly; `max` takes the four weighted neighbours one by one, as ONNX and onnxruntime do. With
    `half_pixel` regions are moved by half an element and may be of any size; with `output_half_pixel` they are at least
    one element wide. In float64, rounded once.

    (C1) The dtype is one of `DTYPES`, that of `rois` the same, of `batch_indices` int64. (C2) The ranks are 4, 2 and 1;
    a region has 4 numbers. (C3) There is an index per region. (C4) Extents of the result are positive, `sampling_ratio`
    not negative. (C5) `mode` and `coordinate_transformation_mode` are among `MODES` and `TRANSFORMATIONS`. (C6) The
    indices are in [0, N), and the images are not empty.
    """

    name = "sx.roi_align"
    x = operand_def()
    rois = operand_def()
    batch_indices = operand_def()
    coordinate_transformation_mode = opt_prop_def(StringAttr)
    mode = opt_prop_def(StringAttr)
    output_height = opt_prop_def(IntegerAttr)
    output_width = opt_prop_def(IntegerAttr)
    sampling_ratio = opt_prop_def(IntegerAttr)
    spatial_scale = opt_prop_def(FloatAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("RoiAlign", since=10)
    DEFAULTS: ClassVar = {
        "coordinate_transformation_mode": "half_pixel", "mode": "avg", "output_height": 1, "output_width": 1,
        "sampling_ratio": 0, "spatial_scale": 1.0,
    }  # fmt: skip
    DTYPES: ClassVar[Sequence[DType]] = FLOATS
    MODES: ClassVar = ("avg", "max")
    TRANSFORMATIONS: ClassVar = ("half_pixel", "output_half_pixel")

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.x, self.DTYPES, "(C1)")
        check_dtype(self, self.rois, (dtype,), "(C1)", "rois")
        check_dtype(self, self.batch_indices, (int64,), "(C1)", "batch_indices")
        height, width = self.attr("output_height"), self.attr("output_width")
        if height < 1 or width < 1 or self.attr("sampling_ratio") < 0:
            raise self.fail(f"(C4) {height} by {width} cells, sampled {self.attr('sampling_ratio')} times a side")
        if self.attr("mode") not in self.MODES:
            raise self.fail(f"(C5) mode '{self.attr('mode')}' is none of {', '.join(self.MODES)}")
        if self.attr("coordinate_transformation_mode") not in self.TRANSFORMATIONS:
            shown = self.attr("coordinate_transformation_mode")
            raise self.fail(
                f"(C5) coordinate_transformation_mode '{shown}' is none of {', '.join(self.TRANSFORMATIONS)}"
            )
        x = _check_rank(self, self.x, 4, "(C2)", "the operand")
        rois = _check_rank(self, self.rois, 2, "(C2)", "rois")
        indices = _check_rank(self, self.batch_indices, 1, "(C2)", "batch_indices")
        if rois is not None and equal(rois[1], 4) is Proof.REFUTED:
            raise self.fail(f"(C2) rois has shape {format_dims(rois)}, not [regions, 4]")
        count = rois[0] if rois is not None else indices[0] if indices is not None else fresh_dim()
        if rois is not None and indices is not None:
            count = merge(self, rois[0], indices[0], "(C3) rois and batch_indices differ")
        out = [count, fresh_dim() if x is None else x[1], height, width]
        check_allocation(self, dtype, out, "(C4)")
        return [tensor_type(dtype, out)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, rois, indices = slots(arrays)
        if x.ndim != 4 or rois.shape != (indices.size, 4) or indices.ndim != 1:
            raise refuse(self, f"rois of shape {list(rois.shape)} and {indices.size} indices don't fit")
        shape = (len(rois), x.shape[1], self.attr("output_height"), self.attr("output_width"))
        check_run_allocation(self, x, shape)
        if 0 in shape:
            return [np.zeros(shape, x.dtype)]
        bad = (indices < 0) | (indices >= x.shape[0])
        if bad.any() or 0 in x.shape:
            raise refuse(self, f"batch index {int(indices[bad][0]) if bad.any() else 0} for images {list(x.shape)}")
        data, regions = double(x), double(rois) * float_attr(self, "spatial_scale")
        return [narrow(np.stack([self._region(data[i], r) for i, r in zip(indices, regions)]), x.dtype)]

    def _region(self, image: Array, roi: Array) -> Array:
        half = self.attr("coordinate_transformation_mode") == "half_pixel"
        if not np.isfinite(roi).all():
            raise refuse(self, f"the region {roi.tolist()} is not finite")
        x1, y1, x2, y2 = roi - (0.5 if half else 0.0)
        least = -math.inf if half else 1.0
        cells = self.attr("output_height"), self.attr("output_width")
        sides = max(y2 - y1, least), max(x2 - x1, least)
        ratio = self.attr("sampling_ratio")
        samples = [ratio or max(math.ceil(side / n), 0) for side, n in zip(sides, cells)]
        if cells[0] * samples[0] * cells[1] * samples[1] > MAX_SAMPLES:
            raise refuse(self, f"the region {roi.tolist()} would be sampled at more than {MAX_SAMPLES} places")
        channels = image.shape[0]
        if 0 in samples:
            return np.zeros((channels, *cells))
        axes = [
            _bilinear(start + (np.arange(n * s) + 0.5) * (side / n / s), size)
            for start, side, n, s, size in zip((y1, x1), sides, cells, samples, image.shape[1:])
        ]
        (y_low, y_high, y_part, y_valid), (x_low, x_high, x_part, x_valid) = axes
        valid = y_valid[:, None] & x_valid
        terms = [
            np.where(valid, image[:, ys[:, None], xs] * (wy[:, None] * wx), 0.0)
            for ys, wy in ((y_low, 1 - y_part), (y_high, y_part))
            for xs, wx in ((x_low, 1 - x_part), (x_high, x_part))
        ]
        split = (channels, cells[0], samples[0], cells[1], samples[1])
        if self.attr("mode") == "avg":
            return sum(terms[1:], terms[0]).reshape(split).mean((2, 4))
        return np.maximum.reduce(terms).reshape(split).max((2, 4))


@irdl_op_definition
class MaxRoiPoolOp(SxOp):
    """The greatest elements of regions of images [N, C, H, W], in `pooled_shape` cells each.

    `rois` [R, 5] are an image's number and corners x1, y1, x2, y2, which are multiplied by `spatial_scale` and rounded
    (halves away from 0); both corners are inside, and a region is at least one element wide. Cells overlap where they
    don't divide the region; an empty one gives 0. NaN wins.

    (C1) The dtype is one of `DTYPES`, that of `rois` the same. (C2) The ranks are 4 and 2; a region has 5 numbers.
    (C3) `pooled_shape` has two positive entries. (C4) The image numbers are in [0, N).
    """

    name = "sx.max_roi_pool"
    x = operand_def()
    rois = operand_def()
    pooled_shape = prop_def(DenseArrayBase)
    spatial_scale = opt_prop_def(FloatAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("MaxRoiPool", since=1)
    DEFAULTS: ClassVar = {"spatial_scale": 1.0}
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.x, self.DTYPES, "(C1)")
        if dtype_of(self.rois) != dtype:
            raise self.fail(f"(C1) rois has dtype {dtype_of(self.rois)}, the operand {dtype}")
        pooled = self.attr("pooled_shape")
        if len(pooled) != 2 or min(pooled) < 1:
            raise self.fail(f"(C3) pooled_shape is {list(pooled)}: two positive entries are needed")
        x = _check_rank(self, self.x, 4, "(C2)", "the operand")
        rois = _check_rank(self, self.rois, 2, "(C2)", "rois")
        if rois is not None and equal(rois[1], 5) is Proof.REFUTED:
            raise self.fail(f"(C2) rois has shape {format_dims(rois)}, not [regions, 5]")
        count, channels = fresh_dim() if rois is None else rois[0], fresh_dim() if x is None else x[1]
        check_allocation(self, dtype, [count, channels, *pooled], "(C3)")
        return [tensor_type(dtype, [count, channels, *pooled])]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, rois = slots(arrays)
        if x.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 5:
            raise refuse(self, f"rois of shape {list(rois.shape)} don't fit images of {list(x.shape)}")
        rows, columns = self.attr("pooled_shape")
        shape = (len(rois), x.shape[1], rows, columns)
        check_run_allocation(self, x, shape)
        data, regions = double(x), double(rois)
        scale = float_attr(self, "spatial_scale")
        out = np.zeros(shape)
        for number, roi in enumerate(regions):
            if not np.isfinite(roi).all() or not 0 <= int(roi[0]) < x.shape[0]:
                raise refuse(self, f"the region {roi.tolist()} is not finite or of no image of {x.shape[0]}")
            corners = [math.floor(abs(v) + 0.5) * (1 if v >= 0 else -1) for v in roi[1:] * scale]
            spans = [
                self._cells(start, max(end - start + 1, 1), cells, size)
                for start, end, cells, size in zip(corners[1::-1], corners[:1:-1], (rows, columns), x.shape[2:])
            ]
            for i, (top, bottom) in enumerate(spans[0]):
                for j, (left, right) in enumerate(spans[1]):
                    if top < bottom and left < right:
                        out[number, :, i, j] = data[int(roi[0]), :, top:bottom, left:right].max((1, 2))
        return [out.astype(x.dtype)]

    @staticmethod
    def _cells(start: int, span: int, cells: int, size: int) -> list[tuple[int, int]]:
        """Where each cell starts and ends, within the image."""
        found: list[tuple[int, int]] = []
        for cell in range(cells):
            low, high = start + cell * span // cells, start - (-(cell + 1) * span // cells)
            found.append((min(max(low, 0), size), min(max(high, 0), size)))
        return found
