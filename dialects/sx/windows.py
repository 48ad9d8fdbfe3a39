"""Sliding windows, as convolutions and pools have them: their attributes, extents and paddings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sardonyx.dialects.attributes import Shape
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.evaluate import Array
from sardonyx.dialects.sx.extents import refuse

AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
LAYOUTS = ("NCHW", "NHWC")
"""Where the channels of the data stand, in the letters of two spatial axes: after the batch, or last."""


@dataclass(frozen=True)
class Windows:
    """Windows of `kernel` cells over the spatial axes.

    `pads` holds (before, after) per axis and counts only where `auto_pad` is NOTSET; with `ceil` a last window may
    reach beyond the padding, but none starts behind the data and the padding before it.
    """

    kernel: tuple[Dim, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]
    auto_pad: str
    ceil: bool

    @property
    def same(self) -> bool:
        return self.auto_pad.startswith("SAME")

    def reach(self, axis: int) -> Dim:
        """How many cells a window spans, dilation counted."""
        return (self.kernel[axis] - 1) * self.dilations[axis] + 1

    def extent(self, axis: int, size: Dim) -> Dim:
        """How many windows there are over `size` cells; negative where not one fits."""
        stride = self.strides[axis]
        if self.same:
            return size.ceildiv(stride)
        before, after = self.pads[axis]
        reach = self.reach(axis)
        room = size + (before + after) - reach
        if not self.ceil:
            return room // stride + 1
        # As many as start before the last cell is reached, but none in the padding behind the data.
        return Dim.min(room + stride, size + before).ceildiv(stride)

    def run_extents(self, op: SxOp, sizes: Sequence[int]) -> tuple[int, ...]:
        """The numbers of windows in a run; raises ExecutionError where none fits."""
        found = tuple(self.extent(i, Dim.of(s)).static_value for i, s in enumerate(sizes))
        if any(e is None or e < 0 for e in found):
            raise refuse(op, f"windows of {[str(k) for k in self.kernel]} don't fit into {list(sizes)}")
        return tuple(e for e in found if e is not None)

    def run_pads(self, axis: int, size: int) -> tuple[int, int]:
        """The padding before and after `size` cells."""
        if not self.same:
            return self.pads[axis]
        count = -(-size // self.strides[axis])
        reach = self.reach(axis).static_value or 0
        return split_padding(max(0, (count - 1) * self.strides[axis] + reach - size), self.auto_pad == "SAME_UPPER")

    def cells(self, axis: int, size: int, count: int) -> Array:
        """The coordinate of each window's each cell, [kernel, count]; those outside [0, size) are padding."""
        start = np.arange(count) * self.strides[axis] - self.run_pads(axis, size)[0]
        offset = np.arange(self.kernel[axis].static_value or 0) * self.dilations[axis]
        return offset[:, None] + start


def read_layout(op: SxOp, allowed: Sequence[str], constraint: str) -> tuple[bool, bool]:
    """Whether the channels are last in the data, and in the result.

    Raises:
        InferenceError: The op's `layout` is none of those allowed.
    """
    layout = op.attr("layout")
    if layout not in allowed:
        raise op.fail(f"{constraint} layout '{layout}' is none of {', '.join(allowed)}")
    return layout.startswith("NHWC"), layout.endswith("NHWC")


def channels_second(dims: Sequence[Dim], last: bool = True) -> Shape:
    """The dims [N, C, D1, …] of data whose channels are last; as they are, where they aren't."""
    return (dims[0], dims[-1], *dims[1:-1]) if last else tuple(dims)


def channels_last(dims: Sequence[Dim], last: bool = True) -> Shape:
    """The reverse of `channels_second`."""
    return (dims[0], *dims[2:], dims[1]) if last else tuple(dims)


def array_channels_second(array: Array, last: bool) -> Array:
    """Data as [N, C, D1, …]."""
    return np.moveaxis(array, -1, 1) if last and array.ndim > 2 else array


def array_channels_last(array: Array, last: bool) -> Array:
    """The reverse of `array_channels_second`, contiguous."""
    return np.ascontiguousarray(np.moveaxis(array, 1, -1)) if last else array


def split_padding(total: int, extra_after: bool) -> tuple[int, int]:
    """Padding split in two halves, an odd cell put behind or in front."""
    small = total // 2
    return (small, total - small) if extra_after else (total - small, small)


def read_windows(op: SxOp, rank: int, kernel: Sequence[Dim | int], constraint: str, ceil: bool = False) -> Windows:
    """The windows that an op's attributes state, for that many spatial axes.

    Raises:
        InferenceError: An attribute has the wrong length or sign, or `auto_pad` is unknown.
    """

    def ints(name: str, count: int, default: int, least: int) -> tuple[int, ...]:
        given = op.attr(name)
        found = (default,) * count if given is None else tuple(given)
        if len(found) != count or any(v < least for v in found):
            raise op.fail(f"{constraint} {name} {list(found)}: {count} integers of at least {least} are needed")
        return found

    auto_pad = op.attr("auto_pad")
    if auto_pad not in AUTO_PADS:
        raise op.fail(f"{constraint} auto_pad '{auto_pad}' is none of {', '.join(AUTO_PADS)}")
    extents = tuple(map(Dim.of, kernel))
    if len(extents) != rank or any(k.static_value is not None and k.static_value < 1 for k in extents):
        raise op.fail(f"{constraint} kernel [{', '.join(map(str, extents))}]: {rank} positive extents are needed")
    strides, dilations = ints("strides", rank, 1, 1), ints("dilations", rank, 1, 1)
    pads = ints("pads", 2 * rank, 0, 0)
    if auto_pad != "NOTSET":
        pads = (0,) * (2 * rank)
    return Windows(extents, strides, dilations, tuple(zip(pads[:rank], pads[rank:], strict=True)), auto_pad, ceil)


def window_extents(op: SxOp, windows: Windows, sizes: Sequence[Dim], constraint: str) -> list[Dim]:
    """The numbers of windows; refuses static sizes in which none fits."""
    out = [windows.extent(i, size) for i, size in enumerate(sizes)]
    for axis, extent in enumerate(out):
        if extent.static_value is not None and extent.static_value < 0:
            reach = windows.reach(axis)
            raise op.fail(
                f"{constraint} a window of {reach} cells doesn't fit into spatial axis {axis} of {sizes[axis]}"
            )
    return out
