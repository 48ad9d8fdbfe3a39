"""Images and signals sampled anew: resize, interpolate, grids, regions, Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.dialects.dtypes import float32, int64
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.apply import ints, op
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.functions.gathering import indices_tensor
from sardonyx.frontend.functions.reductions import normalized_axes
from sardonyx.frontend.functions.shape import shape_tensor
from sardonyx.frontend.operands import TensorLike, cast, floating, promoted, scalar, to_tensor
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor

Sizes = Sequence[int | Extent | Tensor] | Tensor


def resize(
    x: TensorLike,
    sizes: Sizes | None = None,
    scales: Sequence[float] | Tensor | None = None,
    *,
    axes: Sequence[int] | None = None,
    mode: str = "nearest",
    coordinate_transformation_mode: str = "half_pixel",
    nearest_mode: str = "round_prefer_floor",
    antialias: bool = False,
    cubic_coeff_a: float = -0.75,
    exclude_outside: bool = False,
    keep_aspect_ratio_policy: str = "stretch",
    roi: TensorLike | None = None,
    extrapolation_value: float = 0.0,
) -> Tensor:
    """The tensor sampled at as many places as wanted along `axes` (without them, along all), as ONNX's Resize has it.

    Args:
        x: The tensor.
        sizes: The wanted extents: ints, extents or tensors.
        scales: By how much each axis grows, where `sizes` are not given.
        axes: The axes that sizes, scales and `roi` are of.
        mode: nearest, linear or cubic.
        coordinate_transformation_mode: half_pixel, half_pixel_symmetric, pytorch_half_pixel, align_corners, asymmetric
            or tf_crop_and_resize.
        nearest_mode: round_prefer_floor, round_prefer_ceil, floor or ceil.
        antialias: Whether linear and cubic kernels are stretched where an axis shrinks.
        cubic_coeff_a: The cubic kernel's coefficient.
        exclude_outside: Whether what lies outside of the tensor has no weight.
        keep_aspect_ratio_policy: stretch, not_larger or not_smaller: how `sizes` are taken.
        roi: The starts, then the ends of the region for tf_crop_and_resize, in parts of the extents.
        extrapolation_value: What stands outside of the tensor there.

    Raises:
        InvalidArgumentError: Both or neither of sizes and scales are given.
        InferenceError: A mode is unknown, or there is not an entry per axis.
    """
    x = to_tensor(x)
    if (sizes is None) == (scales is None):
        raise InvalidArgumentError("resize() takes either sizes or scales", location=user_line())
    wanted = None if sizes is None else cast(sizes, int64) if isinstance(sizes, Tensor) else shape_tensor(list(sizes))
    return op(
        "sx.resize",
        x,
        None if roi is None else floating(roi),
        None if scales is None else _scales(scales),
        wanted,
        axes=None if axes is None else normalized_axes(list(axes), x.ndim),
        mode=mode,
        coordinate_transformation_mode=coordinate_transformation_mode,
        nearest_mode=nearest_mode,
        antialias=bool(antialias),
        cubic_coeff_a=float(cubic_coeff_a),
        exclude_outside=bool(exclude_outside),
        keep_aspect_ratio_policy=keep_aspect_ratio_policy,
        extrapolation_value=float(extrapolation_value),
    )


def _scales(scales: Sequence[float] | Tensor) -> Tensor:
    if isinstance(scales, Tensor):
        return cast(scales, float32)
    return Tensor.of_array(np.array(list(scales), np.float32))


_MODES: dict[str, tuple[str, int | None]] = {
    "nearest": ("nearest", None), "nearest-exact": ("nearest", None), "linear": ("linear", 1),
    "bilinear": ("linear", 2), "trilinear": ("linear", 3), "bicubic": ("cubic", 2),
}  # fmt: skip


def interpolate(
    x: TensorLike,
    size: int | Sizes | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool = False,
    *,
    antialias: bool = False,
) -> Tensor:
    """PyTorch's `interpolate`: the spatial axes of [N, C, D1, …] resized.

    `size` and `scale_factor` are one number for all spatial axes or one per axis; `mode` is nearest, nearest-exact,
    linear, bilinear, trilinear or bicubic.

    Raises:
        InvalidArgumentError: The mode is unknown or not one of that rank, or size and scale are both or neither given.
    """
    x = to_tensor(x)
    rank = x.ndim - 2
    kind, wanted = _MODES.get(mode, ("", None))
    if not kind or rank < 1 or wanted not in (None, rank):
        raise InvalidArgumentError(
            f"interpolate() has no mode '{mode}' for a tensor of rank {x.ndim}",
            location=user_line(),
            hint=f"modes: {', '.join(_MODES)}",
        )
    properties: dict[str, Any] = {"mode": kind, "axes": range(2, x.ndim)}
    if kind == "nearest":
        if mode == "nearest":
            properties |= {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        else:
            properties["nearest_mode"] = "round_prefer_ceil"
    else:
        corners = "align_corners" if align_corners else "pytorch_half_pixel" if kind == "linear" else "half_pixel"
        properties["coordinate_transformation_mode"] = corners
        if antialias:  # PyTorch's filters end at the border, and its cubic one is another
            properties |= {"antialias": True, "exclude_outside": True, "cubic_coeff_a": -0.5}
    scales = scale_factor
    if scales is not None:
        scales = [float(scales)] * rank if isinstance(scales, int | float) else list(scales)
    sizes = [size] * rank if isinstance(size, int | Extent) else size
    return resize(x, sizes, scales, **properties)


def grid_sample(
    x: TensorLike,
    grid: TensorLike,
    mode: str = "linear",
    padding_mode: str = "zeros",
    align_corners: bool = False,
) -> Tensor:
    """The tensor [N, C, D1, …, Dr] sampled at the places of `grid` [N, O1, …, Or, r].

    Coordinates go from -1 to 1, the last axis first. `mode` is linear (or bilinear), nearest or cubic (or bicubic),
    `padding_mode` zeros, border or reflection.
    """
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    properties = {"mode": mode, "padding_mode": padding_mode, "align_corners": bool(align_corners)}
    return op("sx.grid_sample", to_tensor(x), floating(grid), **properties)


def affine_grid(theta: TensorLike, size: Sizes, align_corners: bool = False) -> Tensor:
    """The grid of `grid_sample` that affine maps [N, r, r + 1] make of an image of shape `size`, (N, C, D1, …, Dr)."""
    wanted = cast(size, int64) if isinstance(size, Tensor) else shape_tensor(list(size))
    return op("sx.affine_grid", floating(theta), wanted, align_corners=bool(align_corners))


def roi_align(
    x: TensorLike,
    rois: TensorLike,
    batch_indices: TensorLike,
    output_height: int = 1,
    output_width: int = 1,
    *,
    spatial_scale: float = 1.0,
    sampling_ratio: int = 0,
    mode: str = "avg",
    aligned: bool = True,
) -> Tensor:
    """Regions (x1, y1, x2, y2) of images [N, C, H, W], each as `output_height` by `output_width` cells.

    `batch_indices` says which image each region is of; `aligned` moves regions by half an element.
    """
    image, regions = promoted(x, rois, floating=True)
    return op(
        "sx.roi_align",
        image,
        regions,
        cast(indices_tensor(batch_indices), int64),
        output_height=output_height,
        output_width=output_width,
        spatial_scale=float(spatial_scale),
        sampling_ratio=sampling_ratio,
        mode=mode,
        coordinate_transformation_mode="half_pixel" if aligned else "output_half_pixel",
    )


# ---- signals


def dft(
    x: TensorLike,
    dft_length: int | Extent | Tensor | None = None,
    axis: int = -2,
    *,
    inverse: bool = False,
    onesided: bool = False,
) -> Tensor:
    """The discrete Fourier transform of real [..., 1] or complex [..., 2] numbers, as ONNX has it."""
    length = None if dft_length is None else shape_tensor([dft_length])
    where = scalar(axis, int64)
    return op("sx.dft", floating(x), length, where, inverse=bool(inverse), onesided=bool(onesided))


def stft(
    x: TensorLike,
    frame_step: int,
    window: TensorLike | None = None,
    frame_length: int | None = None,
    *,
    onesided: bool = True,
) -> Tensor:
    """The Fourier transforms of frames of signals [N, length, 1 or 2]: [N, frames, bins, 2]."""
    tensors = promoted(*(v for v in (x, window) if v is not None), floating=True)
    length = None if frame_length is None else ints([frame_length])
    shaped = tensors[1] if window is not None else None
    return op("sx.stft", tensors[0], ints([frame_step]), shaped, length, onesided=bool(onesided))
