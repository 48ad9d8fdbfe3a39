"""Images sampled anew: upsampling, grids."""

from __future__ import annotations

from typing import Any

from sardonyx.frontend.functions import elementwise as e, sampling
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.torch.registry import Call, aten

_MODES = {
    "upsample_nearest": "nearest", "_upsample_nearest_exact": "nearest-exact", "upsample_linear": "linear",
    "upsample_bilinear": "bilinear", "upsample_trilinear": "trilinear", "upsample_bicubic": "bicubic",
    "_upsample_bilinear": "bilinear", "_upsample_bicubic": "bicubic",
}  # fmt: skip


def _mode(name: str) -> str:
    stem = name.removeprefix("aten.").partition(".")[0].rstrip("_a")
    return _MODES[stem[:-2] if stem[-1] == "d" else stem]


def _resized(n: Call, x: Tensor, size: Any, scales: Any, align: bool, antialias: bool = False) -> Tensor:
    mode = _mode(n.name)
    if size is None:
        given = [float(v) for v in scales]
        return _interpolate(n, x, None, given, mode, align, antialias)
    return _interpolate(n, x, list(size), None, mode, align, antialias)


def _interpolate(n: Call, x: Tensor, size: Any, scales: Any, mode: str, align: bool, antialias: bool) -> Tensor:
    found = sampling.interpolate(x, size, scales, mode, align, antialias=antialias)
    return e.cast(found, x.dtype)


@aten("upsample_nearest1d.vec", "upsample_nearest2d.vec", "upsample_nearest3d.vec",
      "_upsample_nearest_exact1d.vec", "_upsample_nearest_exact2d.vec", "_upsample_nearest_exact3d.vec")  # fmt: skip
def nearest(n: Call, x: Tensor, size: Any, scales: Any) -> Tensor:
    return _resized(n, x, size, scales, False)


@aten("upsample_linear1d.vec", "upsample_bilinear2d.vec", "upsample_trilinear3d.vec", "upsample_bicubic2d.vec")
def linear(n: Call, x: Tensor, size: Any, align_corners: bool, scales: Any) -> Tensor:
    return _resized(n, x, size, scales, align_corners)


@aten("_upsample_bilinear2d_aa.vec", "_upsample_bicubic2d_aa.vec")
def antialiased(n: Call, x: Tensor, size: Any, align_corners: bool, scales: Any) -> Tensor:
    return _resized(n, x, size, scales, align_corners, antialias=True)


@aten("upsample_nearest1d.default", "upsample_nearest2d.default", "upsample_nearest3d.default",
      "_upsample_nearest_exact1d.default", "_upsample_nearest_exact2d.default")  # fmt: skip
def nearest_sized(n: Call, x: Tensor, size: Any, *scales: Any) -> Tensor:
    return _by_size(n, x, size, scales, False)


@aten("upsample_linear1d.default", "upsample_bilinear2d.default", "upsample_trilinear3d.default",
      "upsample_bicubic2d.default")  # fmt: skip
def linear_sized(n: Call, x: Tensor, size: Any, align_corners: bool, *scales: Any) -> Tensor:
    return _by_size(n, x, size, scales, align_corners)


@aten("_upsample_bilinear2d_aa.default", "_upsample_bicubic2d_aa.default")
def antialiased_sized(n: Call, x: Tensor, size: Any, align_corners: bool, *scales: Any) -> Tensor:
    return _by_size(n, x, size, scales, align_corners, True)


def _by_size(n: Call, x: Tensor, size: Any, scales: Any, align: bool, antialias: bool = False) -> Tensor:
    # Scales beside a size only place the samples; where they agree with the sizes, the sizes say it all.
    given = [v for v in scales if v is not None]
    if given and not align:
        extents = x.shape[2:]
        for have, want, scale in zip(extents, size, given):
            if isinstance(have, int) and isinstance(want, int) and have * scale != want:
                return _resized(n, x, None, given, align, antialias)
    return _resized(n, x, size, None, align, antialias)


@aten("grid_sampler_2d.default", "grid_sampler.default", "grid_sampler_3d.default")
def grid_sampler(n: Call, x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Tensor:
    return sampling.grid_sample(
        x, grid, ("linear", "nearest", "cubic")[mode], ("zeros", "border", "reflection")[padding], align_corners
    )


@aten("affine_grid_generator.default")
def affine_grid(n: Call, theta: Tensor, size: Any, align_corners: bool) -> Tensor:
    return sampling.affine_grid(theta, list(size), align_corners)
