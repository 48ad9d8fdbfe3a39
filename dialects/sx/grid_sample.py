"""Sampling at stated places: `sx.grid_sample`, and the grids of affine maps: `sx.affine_grid`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, fresh_dim, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import ALL, FLOATS, DType, bool_
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import (
    check_allocation,
    check_run_allocation,
    check_vector,
    elements,
    merge,
    refuse,
    slots,
)
from sardonyx.dialects.sx.numeric import convert, double, narrow
from sardonyx.dialects.sx.support import check_dtype, format_dims, is_unranked

MODES = ("linear", "nearest", "cubic")
PADDING_MODES = ("zeros", "border", "reflection")
_CUBIC = -0.75


def reflected(x: Array, low: float, high: float) -> Array:
    """Coordinates brought into [low, high] by reflection about its ends."""
    span = high - low
    if span <= 0:
        return np.full_like(x, low)
    folded = np.mod(np.where(np.isfinite(x), x, low) - low, 2 * span)
    return np.where((x < low) | (x > high), low + np.where(folded > span, 2 * span - folded, folded), x)


def pixels(x: Array, size: int, padding: str, low: float, high: float) -> tuple[Array, Array]:
    """The element that stands at each integer coordinate, and whether there is one (else 0 stands there)."""
    if padding == "zeros":
        return np.clip(x, 0, size - 1).astype(np.int64), (x >= 0) & (x <= size - 1)
    if padding == "reflection":
        x = np.trunc(reflected(x, low, high))
    return np.clip(x, 0, size - 1).astype(np.int64), np.ones(x.shape, bool)


def weights(t: Array, mode: str) -> list[tuple[int, Array]]:
    """The neighbours of a coordinate whose fraction is t: their offsets and weights."""
    if mode == "nearest":
        return [(0, np.ones_like(t))]
    if mode == "linear":
        return [(0, 1 - t), (1, t)]
    a = _CUBIC

    def near(d: Array) -> Array:
        return ((a + 2) * d - (a + 3)) * d * d + 1

    def far(d: Array) -> Array:
        return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a

    return [(-1, far(t + 1)), (0, near(t)), (1, near(1 - t)), (2, far(2 - t))]


@irdl_op_definition
class GridSampleOp(SxOp):
    """The operand [N, C, D1, …, Dr] sampled at the places of `grid` [N, O1, …, Or, r].

    A place has a coordinate per spatial axis, the last axis first; -1 and 1 are the operand's ends: the centres of the
    outermost elements with `align_corners`, else their outer edges. `nearest` rounds halves to even. What lies outside
    is 0, the outermost element (`border`) or a reflection. Sums are in float64 and rounded once; integers truncate. A
    coordinate that is NaN lies outside.

    (C1) The operand's dtype is one of `DTYPES`, bool for `nearest` only; the grid's is a float. (C2) Both have one
    rank of at least 3, one batch, and the grid's last extent is the number of spatial axes. (C3) `mode` and
    `padding_mode` are among `MODES` and `PADDING_MODES`. (C4) The spatial extents are not 0, unless the result is
    empty.
    """

    name = "sx.grid_sample"
    x = operand_def()
    grid = operand_def()
    align_corners = opt_prop_def(IntegerAttr)
    mode = opt_prop_def(StringAttr)
    padding_mode = opt_prop_def(StringAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("GridSample", since=16)
    DEFAULTS: ClassVar = {"align_corners": False, "mode": "linear", "padding_mode": "zeros"}
    DTYPES: ClassVar[Sequence[DType]] = ALL

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.x, self.DTYPES, "(C1)")
        check_dtype(self, self.grid, FLOATS, "(C1)", "grid")
        for name, allowed in (("mode", MODES), ("padding_mode", PADDING_MODES)):
            if self.attr(name) not in allowed:
                raise self.fail(f"(C3) {name} '{self.attr(name)}' is none of {', '.join(allowed)}")
        if dtype == bool_ and self.attr("mode") != "nearest":
            raise self.fail(f"(C1) bools cannot be interpolated by mode '{self.attr('mode')}'")
        if is_unranked(self.x) or is_unranked(self.grid):
            return [unranked_type(dtype)]
        dims, grid = dims_of(self.x), dims_of(self.grid)
        if len(dims) < 3 or len(dims) != len(grid) or equal(grid[-1], len(dims) - 2) is Proof.REFUTED:
            raise self.fail(
                f"(C2) an operand {format_dims(dims)} and a grid {format_dims(grid)} are not [N, C, D1, …, Dr] and "
                "[N, O1, …, Or, r]"
            )
        batch = merge(self, dims[0], grid[0], "(C2) the batches differ")
        out = [batch, dims[1], *grid[1:-1]]
        if any(d.static_value == 0 for d in dims[2:]) and all((d.static_value or 0) > 0 for d in out):
            raise self.fail(f"(C4) an operand {format_dims(dims)} has nothing to sample")
        return [tensor_type(dtype, out)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, grid = slots(arrays)
        rank = x.ndim - 2
        if rank < 1 or grid.ndim != x.ndim or grid.shape[-1] != rank or grid.shape[0] != x.shape[0]:
            raise refuse(self, f"a grid of shape {list(grid.shape)} doesn't fit an operand of {list(x.shape)}")
        shape = (*x.shape[:2], *grid.shape[1:-1])
        check_run_allocation(self, x, shape)
        if 0 in shape:
            return [np.zeros(shape, x.dtype)]
        if 0 in x.shape:
            raise refuse(self, f"an operand of shape {list(x.shape)} has nothing to sample")
        data, places = double(x), double(grid)
        taps: list[list[tuple[Array, Array, Array]]] = []
        for axis, size in enumerate(x.shape[2:]):
            taps.append(self._taps(places[..., rank - 1 - axis], size))
        total = np.zeros((x.shape[0], *grid.shape[1:-1], x.shape[1]))
        batch = np.arange(x.shape[0]).reshape(-1, *[1] * rank)
        channels_last = np.moveaxis(data, 1, -1)
        for combination in itertools.product(*taps):
            weight = np.ones(grid.shape[:-1])
            inside = np.ones(grid.shape[:-1], bool)
            for _, one, valid in combination:
                weight, inside = weight * one, inside & valid
            inside &= weight != 0
            found = channels_last[(batch, *(index for index, _, _ in combination))]
            total += np.where(inside[..., None], found * weight[..., None], 0.0)
        return [convert(np.moveaxis(total, -1, 1), DType.of(x.dtype))]

    def _taps(self, n: Array, size: int) -> list[tuple[Array, Array, Array]]:
        """Per neighbour along an axis: its index, its weight, and whether it is there."""
        mode, padding = self.attr("mode"), self.attr("padding_mode")
        low, high = (0.0, size - 1.0) if self.attr("align_corners") else (-0.5, size - 0.5)
        at = (n + 1) / 2 * (size - 1) if self.attr("align_corners") else ((n + 1) * size - 1) / 2
        # Far outside a coordinate is as good as just outside; NaN is one that is far away.
        at = np.where(np.isnan(at), -1e9, np.clip(at, -1e9, 1e9))
        if mode == "nearest":
            at = np.rint(at)
        beyond = (at < low) | (at > high)
        if padding == "border" and mode != "cubic":  # a cubic's neighbours are clamped one by one, as in onnxruntime
            at = np.where(beyond, np.clip(at, 0, size - 1), at)
        elif padding == "reflection":
            at = np.where(beyond, reflected(at, low, high), at)
        if mode == "nearest":
            at = np.rint(at)
        base = np.floor(at)
        out: list[tuple[Array, Array, Array]] = []
        for offset, weight in weights(at - base, mode):
            index, valid = pixels(base + offset, size, padding, low, high)
            out.append((index, weight, valid))
        return out


@irdl_op_definition
class AffineGridOp(SxOp):
    """The grid of `sx.grid_sample` that an affine map makes of an image's places: [N, H, W, 2] or [N, D, H, W, 3].

    `theta` [N, 2, 3] (or [N, 3, 4]) maps (x, y, 1) (or (x, y, z, 1)); `size` is the shape (N, C, H, W) (or (N, C, D, H,
    W)). Coordinates go from -1 to 1, between the centres of the outermost elements with `align_corners` (a single
    element is at 0), else between their outer edges. Products are added in float64 and rounded once.

    (C1) The dtype of `theta` is one of `DTYPES`; `size` is a vector of int64 with 4 or 5 entries, none negative.
    (C2) `theta` is [N, r, r + 1] for r spatial axes. (C3) N is `size`'s first entry.
    """

    name = "sx.affine_grid"
    theta = operand_def()
    size = operand_def()
    align_corners = opt_prop_def(IntegerAttr)
    grid = result_def()
    ONNX: ClassVar = OnnxForm("AffineGrid", since=20)
    DEFAULTS: ClassVar = {"align_corners": False}
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.theta, self.DTYPES, "(C1)")
        count = check_vector(self, self.size, "(C1)", "size")
        if count not in (None, 4, 5):
            raise self.fail(f"(C1) size has {count} entries, not 4 or 5")
        theta = None if is_unranked(self.theta) else dims_of(self.theta)
        if theta is not None and len(theta) != 3:
            raise self.fail(f"(C2) theta has rank {len(theta)}, not 3")
        if count is None:
            rows = None if theta is None else theta[1].static_value
            if rows is None:
                return [unranked_type(dtype)]
            count = rows + 2
        rank = count - 2
        if theta is not None and any(equal(d, n) is Proof.REFUTED for d, n in zip(theta[1:], (rank, rank + 1))):
            raise self.fail(f"(C2) theta is {format_dims(theta)}, not [N, {rank}, {rank + 1}]")
        sizes = [fresh_dim() if d is None else d for d in elements(self.size, count)]
        if theta is not None:
            sizes[0] = merge(self, sizes[0], theta[0], "(C3) size and theta differ in the batch")
        out = [sizes[0], *sizes[2:], Dim.of(rank)]
        check_allocation(self, dtype, out, "(C1)")
        return [tensor_type(dtype, out)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        theta, size = slots(arrays)
        entries = size.tolist()
        rank = len(entries) - 2
        if rank not in (2, 3) or theta.shape != (entries[0], rank, rank + 1):
            raise refuse(self, f"theta of shape {list(theta.shape)} doesn't fit size {entries}")
        shape = [entries[0], *entries[2:], rank]
        check_run_allocation(self, theta, shape)
        axes = [self._axis(n) for n in entries[2:]]
        base = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(entries[2:])], -1)
        places = base.reshape(-1, rank + 1) @ double(theta).swapaxes(1, 2)
        return [narrow(places.reshape(shape), theta.dtype)]

    def _axis(self, count: int) -> Array:
        if self.attr("align_corners"):
            return np.linspace(-1.0, 1.0, count) if count > 1 else np.zeros(count)
        return (2 * np.arange(count) + 1) / max(count, 1) - 1
