"""Resizing by interpolation: `sx.resize`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, OpResult, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, fresh_dim, rank_of, tensor_type, unranked_type
from sardonyx.dialects.base import SEGMENTS, OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, less_equal
from sardonyx.dialects.dtypes import ALL, DType, bool_, float16, float32, float64, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.constant import MAX_DENSE_BYTES, ConstantOp
from sardonyx.dialects.sx.extents import (
    check_allocation,
    check_run_allocation,
    check_vector,
    elements,
    refuse,
    run_axes,
    slots,
)
from sardonyx.dialects.sx.numeric import convert, double
from sardonyx.dialects.sx.resample import (
    MODES,
    NEAREST_MODES,
    POLICIES,
    TRANSFORMATIONS,
    Sampling,
    fitted,
    resampled,
    scaled,
    taps,
)
from sardonyx.dialects.sx.support import check_dtype, float_attr, is_unranked, normalize_axes


def known_floats(value: SSAValue | None) -> tuple[float, ...] | None:
    """The elements of a small constant of floats; None where it is none."""
    if isinstance(value, OpResult) and isinstance(value.op, ConstantOp):
        array = value.op.array()
        return tuple(array.reshape(-1).tolist()) if array.nbytes <= MAX_DENSE_BYTES else None
    return None


@irdl_op_definition
class ResizeOp(SxOp):
    """The operand sampled at as many places as wanted along the axes in `axes` (without it, all axes).

    The extents are `floor(extent * scale)` (a product of float32) for `scales`, or those of `sizes`, which
    `keep_aspect_ratio_policy` may make smaller or larger, so that all axes have one scale. An element is the nearest of
    the operand, or interpolated along each axis, in float64; integers are then truncated. The attributes are those of
    ONNX's Resize, whose formulas `resample` has; `roi` counts for `tf_crop_and_resize`, where a place outside of the
    operand gives `extrapolation_value`.

    (C1) The dtype is one of `DTYPES`, bool for `nearest` only; `scales` is a vector of float32, `sizes` one of int64,
    `roi` one of floats. (C2) One of `scales` and `sizes` is present. (C3) They have an entry per axis, `roi` two.
    (C4) `axes` are in [-rank, rank) and don't repeat. (C5) Scales are positive, sizes not negative, and the result is
    no larger than a tensor can be. (C6) The modes are among those of `resample`. (C7) `antialias` goes with `linear`
    and `cubic`; `tf_crop_and_resize` needs `roi`. (C8) An axis without elements is not enlarged.
    """

    name = "sx.resize"
    x = operand_def()
    roi = opt_operand_def()
    scales = opt_operand_def()
    sizes = opt_operand_def()
    antialias = opt_prop_def(IntegerAttr)
    axes = opt_prop_def(DenseArrayBase)
    coordinate_transformation_mode = opt_prop_def(StringAttr)
    cubic_coeff_a = opt_prop_def(FloatAttr)
    exclude_outside = opt_prop_def(IntegerAttr)
    extrapolation_value = opt_prop_def(FloatAttr)
    keep_aspect_ratio_policy = opt_prop_def(StringAttr)
    mode = opt_prop_def(StringAttr)
    nearest_mode = opt_prop_def(StringAttr)
    output = result_def()
    irdl_options = SEGMENTS
    ONNX: ClassVar = OnnxForm("Resize", since=11)
    DEFAULTS: ClassVar = {
        "antialias": False, "coordinate_transformation_mode": "half_pixel", "cubic_coeff_a": -0.75,
        "exclude_outside": False, "extrapolation_value": 0.0, "keep_aspect_ratio_policy": "stretch",
        "mode": "nearest", "nearest_mode": "round_prefer_floor",
    }  # fmt: skip
    DTYPES: ClassVar[Sequence[DType]] = ALL

    def _check_modes(self, dtype: DType) -> None:
        allowed = {
            "mode": MODES, "coordinate_transformation_mode": TRANSFORMATIONS, "nearest_mode": NEAREST_MODES,
            "keep_aspect_ratio_policy": POLICIES,
        }  # fmt: skip
        for name, values in allowed.items():
            if self.attr(name) not in values:
                raise self.fail(f"(C6) {name} '{self.attr(name)}' is none of {', '.join(values)}")
        mode = self.attr("mode")
        if dtype == bool_ and mode != "nearest":
            raise self.fail(f"(C1) bools cannot be interpolated by mode '{mode}'")
        if self.attr("antialias") and mode == "nearest":
            raise self.fail("(C7) antialias goes with modes linear and cubic only")
        if self.attr("coordinate_transformation_mode") == "tf_crop_and_resize" and self.roi is None:
            raise self.fail("(C7) tf_crop_and_resize needs roi")

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.x, self.DTYPES, "(C1)")
        self._check_modes(dtype)
        given = self.scales if self.scales is not None else self.sizes
        if given is None or (self.scales is not None and self.sizes is not None):
            raise self.fail("(C2) one of scales and sizes is needed, and not both")
        count = check_vector(self, given, "(C1)", "scales or sizes", (float32 if self.sizes is None else int64,))
        regions = None
        if self.roi is not None:
            regions = check_vector(self, self.roi, "(C1)", "roi", (float16, float32, float64))
        axes = self.attr("axes")
        rank = None if is_unranked(self.x) else rank_of(self.x)
        wanted = len(axes) if axes is not None else rank
        needs_roi = self.attr("coordinate_transformation_mode") == "tf_crop_and_resize"
        if wanted is not None and count not in (None, wanted):
            raise self.fail(f"(C3) scales or sizes has {count} entries for {wanted} axes")
        if wanted is not None and needs_roi and regions not in (None, 2 * wanted):
            raise self.fail(f"(C3) roi has {regions} entries for {wanted} axes")
        if rank is None or wanted is None:
            return [unranked_type(dtype)]
        dims = list(dims_of(self.x))
        where = range(rank) if axes is None else normalize_axes(self, axes, rank, "(C4)")
        for axis, extent in zip(where, self._extents([dims[a] for a in where]), strict=True):
            if dims[axis].static_value == 0 and less_equal(1, extent) is Proof.PROVED:
                raise self.fail(f"(C8) axis {axis} has no element to take")
            dims[axis] = extent
        check_allocation(self, dtype, dims, "(C5)")
        return [tensor_type(dtype, dims)]

    def _extents(self, sizes: list[Dim]) -> list[Dim]:
        if self.scales is not None:
            scales = known_floats(self.scales)
            if scales is None or len(scales) != len(sizes):
                return [fresh_dim() for _ in sizes]
            if not all(s > 0 for s in scales):
                raise self.fail(f"(C5) scales {list(scales)} are not all positive")
            found = [scaled(size, scale) for size, scale in zip(sizes, scales, strict=True)]
            return [fresh_dim() if d is None else d for d in found]
        wanted = (None,) * len(sizes) if self.sizes is None else elements(self.sizes, len(sizes))
        if self.attr("keep_aspect_ratio_policy") == "stretch":
            return [fresh_dim() if d is None else d for d in wanted]
        numbers = [d.static_value for d in wanted if d is not None]
        have = [d.static_value for d in sizes]
        if len(numbers) < len(sizes) or None in numbers or None in have or 0 in have:
            return [fresh_dim() for _ in sizes]
        policy = self.attr("keep_aspect_ratio_policy")
        out, _ = fitted([h or 0 for h in have], [n or 0 for n in numbers], policy)
        return [Dim.of(d) for d in out]

    def samplings(
        self, shape: Sequence[int], roi: Array | None, scales: Array | None, sizes: Array | None
    ) -> dict[int, Sampling]:
        """How each axis is sampled in a run.

        Raises:
            ExecutionError: The operands' sizes or contents don't fit.
        """
        axes = self.attr("axes")
        where = tuple(range(len(shape))) if axes is None else run_axes(self, axes, len(shape))
        given = np.zeros(0) if sizes is None else sizes
        given = given if scales is None else scales
        crop = self.attr("coordinate_transformation_mode") == "tf_crop_and_resize"
        if given.size != len(where) or (crop and (roi is None or roi.size != 2 * len(where))):
            raise refuse(self, f"scales, sizes or roi don't have the entries of {len(where)} axes")
        have = [shape[a] for a in where]
        stated: list[float | None] = [None] * len(where)
        if scales is not None:
            factors = [float(s) for s in scales]
            if not all(0 < s < np.inf for s in factors):
                raise refuse(self, f"scales {factors} are not all positive")
            counts = [(scaled(Dim.of(h), s) or Dim.of(0)).evaluate({}) for h, s in zip(have, factors, strict=True)]
            stated = [*factors]
        else:
            counts = [int(s) for s in sizes] if sizes is not None else []
            policy = self.attr("keep_aspect_ratio_policy")
            if any(c < 0 for c in counts) or (policy != "stretch" and 0 in have):
                raise refuse(self, f"{have} cannot be resized to {counts}")
            if policy != "stretch":
                counts, scale = fitted(have, counts, policy)
                stated = [scale] * len(where)
        out: dict[int, Sampling] = {}
        for i, (axis, size, count) in enumerate(zip(where, have, counts, strict=True)):
            if size == 0 and count > 0:
                raise refuse(self, f"axis {axis} has no element to take")
            region = (float(roi[i]), float(roi[len(where) + i])) if crop and roi is not None else (0.0, 1.0)
            scale = stated[i]
            exact = scale is None or (scale == count / size if size else True)
            out[axis] = Sampling(size, count, scale or (count / size if size else 1.0), exact, *region)
        return dict(sorted(out.items()))  # the order of the sums must not depend on that of `axes`

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, roi, scales, sizes = slots(arrays)
        samplings = self.samplings(x.shape, roi, scales, sizes)
        shape = [samplings[i].count if i in samplings else n for i, n in enumerate(x.shape)]
        check_run_allocation(self, x, shape)
        if 0 in shape:
            return [np.zeros(shape, x.dtype)]
        mode, transformation = self.attr("mode"), self.attr("coordinate_transformation_mode")
        data = x if mode == "nearest" else double(x)
        outside = np.zeros([1] * x.ndim, bool)
        for axis, one in samplings.items():
            at = one.coordinates(transformation)
            if transformation == "tf_crop_and_resize":
                beyond = ~((at >= 0) & (at <= one.size - 1))
                outside = outside | beyond.reshape([-1 if i == axis else 1 for i in range(x.ndim)])
                at = np.where(beyond, 0.0, at)
            if one.size == one.count and np.array_equal(at, np.arange(one.size)):
                continue
            index, weights = taps(
                at, one.size, mode, one.scale, self.attr("nearest_mode"), float_attr(self, "cubic_coeff_a"),
                bool(self.attr("antialias")), bool(self.attr("exclude_outside")),
            )  # fmt: skip
            data = resampled(data, axis, index, weights)
        out = data if mode == "nearest" else convert(data, DType.of(x.dtype))
        if outside.any():
            out = np.where(outside, np.float64(float_attr(self, "extrapolation_value")).astype(x.dtype), out)
        return [out]
