"""How `sx.resize` finds the places that it samples: extents, coordinates, neighbours and their weights by axis."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sardonyx.dialects.dims import Dim
from sardonyx.dialects.evaluate import Array

TRANSFORMATIONS = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
)  # fmt: skip
MODES = ("nearest", "linear", "cubic")
NEAREST_MODES = ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
POLICIES = ("stretch", "not_larger", "not_smaller")

_DYADIC_BITS, _DYADIC_LIMIT = 10, 1 << 13


def _ratio(scale: float) -> tuple[int, int] | None:
    """A scale as (numerator, bits of the denominator) where it is a small fraction of a power of two."""
    numerator = scale * (1 << _DYADIC_BITS)
    if numerator != int(numerator) or numerator >= _DYADIC_LIMIT << _DYADIC_BITS:
        return None
    whole, bits = int(numerator), _DYADIC_BITS
    while bits and whole % 2 == 0:
        whole, bits = whole // 2, bits - 1
    return (whole, bits) if whole < _DYADIC_LIMIT else None


def scaled(size: Dim, scale: float) -> Dim | None:
    """`floor(size * scale)`, None where it is no expression of the size.

    The product is one of float32, as ONNX's shape inference and onnxruntime have it; with a scale such as 2 or 0.5 it
    is exact.
    """
    fraction = _ratio(scale)
    if fraction is not None:
        return (size * fraction[0]) // (1 << fraction[1])
    number = size.static_value
    return None if number is None else Dim.of(int(np.floor(np.float32(number) * np.float32(scale))))


def fitted(sizes: list[int], wanted: list[int], policy: str) -> tuple[list[int], float]:
    """The extents nearest to the wanted ones that keep the proportions, and the scale; halves are rounded up."""
    ratios = [w / s for w, s in zip(wanted, sizes, strict=True)]
    scale = min(ratios) if policy == "not_larger" else max(ratios)
    return [int(np.floor(scale * s + 0.5)) for s in sizes], scale


@dataclass(frozen=True)
class Sampling:
    """One axis that is resized.

    `scale` is the stated one, or the quotient of the extents; `exact` says that it is that quotient, so that
    coordinates may be computed from the extents themselves and don't suffer from its rounding. `start` and `end` are
    the region of `tf_crop_and_resize`.
    """

    size: int
    count: int
    scale: float
    exact: bool
    start: float = 0.0
    end: float = 1.0

    def coordinates(self, transformation: str) -> Array:
        """Where each element of the result lies in the operand, in float64."""
        x = np.arange(self.count, dtype=np.float64)
        length = float(self.count) if self.exact else self.scale * self.size
        if transformation == "align_corners":
            return x * (self.size - 1) / (length - 1) if length != 1 else 0 * x
        if transformation == "asymmetric":
            return self._unscaled(x)
        if transformation == "tf_crop_and_resize":
            span = (self.end - self.start) * (self.size - 1)
            inside = x * span / (length - 1) if length != 1 else 0 * x + span / 2
            return self.start * (self.size - 1) + inside
        centered = self._unscaled(x + 0.5) - 0.5
        if transformation == "pytorch_half_pixel":
            return centered if length != 1 else 0 * x
        if transformation == "half_pixel_symmetric":
            return self.size / 2 * (1 - self.count / length) + centered
        return centered

    def _unscaled(self, x: Array) -> Array:
        return x * self.size / self.count if self.exact else x / self.scale


def nearest(x: Array, mode: str) -> Array:
    """The element that stands for each coordinate."""
    if mode == "floor":
        return np.floor(x)
    if mode == "ceil":
        return np.ceil(x)
    return np.ceil(x - 0.5) if mode == "round_prefer_floor" else np.floor(x + 0.5)


def _cubic(distance: Array, a: float) -> Array:
    """Keys' kernel."""
    d = np.abs(distance)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


def taps(
    at: Array, size: int, mode: str, scale: float, nearest_mode: str, a: float, antialias: bool, exclude: bool
) -> tuple[Array, Array]:
    """The neighbours of each coordinate and their weights, both [coordinates, neighbours].

    `antialias` stretches the kernel where the axis shrinks; `exclude` leaves out what lies outside of the operand (the
    others' weights grow to a sum of 1), else the outermost element stands there.
    """
    if mode == "nearest":
        found = np.clip(nearest(at, nearest_mode), 0, size - 1).astype(np.int64)
        return found[:, None], np.ones((at.size, 1))
    stretch = min(scale, 1.0) if antialias else 1.0
    reach = (1 if mode == "linear" else 2) / stretch
    # As many elements as can lie within the kernel's reach to both sides.
    first = np.floor(at)[:, None] + np.arange(int(np.floor(-reach)) + 1, int(np.ceil(reach)) + 1)
    distance = (first - at[:, None]) * stretch
    weights = np.maximum(1 - np.abs(distance), 0) if mode == "linear" else _cubic(distance, a)
    if exclude:
        weights = np.where((first < 0) | (first > size - 1), 0.0, weights)
    if exclude or antialias:
        total = weights.sum(1, keepdims=True)
        weights = weights / np.where(total == 0, 1.0, total)
    return np.clip(first, 0, size - 1).astype(np.int64), weights


def resampled(data: Array, axis: int, index: Array, weights: Array) -> Array:
    """The weighted sums of an axis's elements."""
    shape = [-1 if i == axis else 1 for i in range(data.ndim)]
    if index.shape[1] == 1:
        return np.take(data, index[:, 0], axis)
    out = np.zeros((*data.shape[:axis], len(index), *data.shape[axis + 1 :]))
    for i in range(index.shape[1]):
        weight = weights[:, i].reshape(shape)
        # What has no weight doesn't count, not even an infinity.
        out += np.where(weight == 0, 0.0, np.take(data, index[:, i], axis) * weight)
    return out
