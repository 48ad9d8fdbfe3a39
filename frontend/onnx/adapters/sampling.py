"""Operators that sample: Upsample and the first Resize, GridSample's old modes, RoiAlign, DFT with its axis as an
attribute, pools by p-norms of opset 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of, static_shape
from sardonyx.dialects.dtypes import float32, int64
from sardonyx.dialects.sx.resize import known_floats
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.adapters.registry import adapts
from sardonyx.frontend.onnx.generic import import_generically
from sardonyx.frontend.onnx.node import NodeContext, rank_of

_MODES = {"bilinear": "linear", "linear": "linear", "nearest": "nearest", "bicubic": "cubic", "cubic": "cubic"}


@adapts("Upsample", until=6)
def _upsample_1(n: NodeContext) -> Sequence[SSAValue]:
    """One factor for the height, one for the width; opset 1 called the linear mode bilinear."""
    scales = [1.0, 1.0, n.attr("height_scale"), n.attr("width_scale")]
    if None in scales:
        raise InvalidArgumentError("its attribute 'height_scale' or 'width_scale' is missing")
    return [_resize_10(n, n.constant(scales, float32))]


@adapts("Upsample", until=8)
def _upsample_7(n: NodeContext) -> Sequence[SSAValue]:
    return [_resize_10(n, n.constant(n.attr("scales"), float32))]


@adapts("Upsample")
@adapts("Resize", until=10)
def _upsample_9(n: NodeContext) -> Sequence[SSAValue]:
    return [_resize_10(n, n.required(1))]


def _resize_10(n: NodeContext, scales: SSAValue) -> SSAValue:
    """Coordinates are divided by the scale. The nearest element is the one before, where an axis shrinks the one
    behind, as onnxruntime has it (ONNX leaves it open)."""
    x = n.required(0)
    mode = _MODES.get(n.attr("mode"), n.attr("mode"))
    common: dict[str, Any] = {"coordinate_transformation_mode": "asymmetric", "mode": mode}
    if mode != "nearest":
        return n("resize", x, None, scales, **common)
    known = known_floats(scales)
    smaller = () if known is None else [s for s in known if s < 1]
    if not smaller or known is None:
        return n("resize", x, None, scales, nearest_mode="floor", **common)
    if len(smaller) < len([s for s in known if s != 1]):
        x = n("resize", x, None, n.constant(np.maximum(known, 1), float32), nearest_mode="floor", **common)
        scales = n.constant(np.minimum(known, 1), float32)
    return n("resize", x, None, scales, nearest_mode="ceil", **common)


@adapts("Resize")
def _resize(n: NodeContext) -> Sequence[SSAValue]:
    """Inputs that don't count may be empty: they had to be there before opset 13.

    `tf_half_pixel_for_nn` (before opset 13) takes (x + 0.5) / scale; with the nearest element before, that is
    `half_pixel` and the nearest element with halves rounded up.
    """
    inputs = list(n.inputs) + [None] * (4 - len(n.inputs))
    for index in range(1, 4):
        value = inputs[index]
        if value is not None and static_shape(value) == (0,) and rank_of(n.required(0)) != 0:
            inputs[index] = None
    n.inputs = inputs
    if n.attr("coordinate_transformation_mode") == "tf_half_pixel_for_nn":
        if n.attr("mode") != "nearest" or n.attr("nearest_mode") != "floor":
            raise n.unsupported("tf_half_pixel_for_nn goes with mode nearest and nearest_mode floor only")
        attributes = {"coordinate_transformation_mode": "half_pixel", "nearest_mode": "round_prefer_ceil"}
        return [n("resize", *inputs, **attributes)]
    return import_generically(n, "") or ()


@adapts("GridSample", until=19)
def _grid_sample(n: NodeContext) -> Sequence[SSAValue]:
    """The modes were named after two axes."""
    mode = _MODES.get(n.attr("mode"), n.attr("mode"))
    properties = {"align_corners": bool(n.attr("align_corners", 0)), "padding_mode": n.attr("padding_mode")}
    return [n("grid_sample", n.required(0), n.required(1), mode=mode, **properties)]


@adapts("RoiAlign", until=15)
def _roi_align(n: NodeContext) -> Sequence[SSAValue]:
    """Regions were not moved by half an element."""
    names = ("mode", "output_height", "output_width", "sampling_ratio", "spatial_scale")
    properties = {name: n.attr(name) for name in names if n.attr(name) is not None}
    operands = [n.required(i) for i in range(3)]
    return [n("roi_align", *operands, coordinate_transformation_mode="output_half_pixel", **properties)]


@adapts("DFT", until=19)
def _dft(n: NodeContext) -> Sequence[SSAValue]:
    """The axis was an attribute, by default 1."""
    axis = n.constant(n.attr("axis", 1), int64)
    flags = {name: bool(n.attr(name, 0)) for name in ("inverse", "onesided")}
    return [n("dft", n.required(0), n.input(1), axis, **flags)]


@adapts("LpPool", "GlobalLpPool", until=1)
def _lp_pool(n: NodeContext) -> Sequence[SSAValue]:
    """`p` was a float, and the kernel of a pool might be left out."""
    p = n.attr("p", 2.0)
    if p != int(p) or p < 1:
        raise n.unsupported(f"a norm with p = {p} is not supported; integers from 1 on are")
    if n.node.op_type == "GlobalLpPool":
        return [n("global_lp_pool", n.required(0), p=int(p))]
    x, kernel = n.required(0), n.attr("kernel_shape")
    if kernel is None:
        sizes = [d.static_value for d in dims_of(x)[2:]] if rank_of(x) is not None else [None]
        if None in sizes:
            raise n.unsupported("without kernel_shape the extents of its operand have to be known")
        kernel = tuple(s for s in sizes if s is not None)
    properties = {name: n.attr(name) for name in ("auto_pad", "pads", "strides") if n.attr(name) is not None}
    return [n("lp_pool", x, kernel_shape=kernel, p=int(p), **properties)]
