"""The forms of ops that sample or place elements, where opsets differ in what `nodes.generic_form` cannot see."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from onnx import defs
from xdsl.ir import SSAValue

from sardonyx.backends.onnx.nodes import AttrType, NodeForm, Unstatable, generic_form, make_attribute
from sardonyx.dialects.attributes import rank_of, static_shape
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.sx.lp_pool import LpPoolOp
from sardonyx.dialects.sx.support import is_unranked
from sardonyx.dialects.values import known_ints

_OLD_MODES = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}


def _resize(op: SxOp, form: OnnxForm, schema: defs.OpSchema, opset: int) -> NodeForm:
    """`half_pixel_symmetric` came with opset 19."""
    if opset < 19 and op.attr("coordinate_transformation_mode") == "half_pixel_symmetric":
        raise Unstatable("Resize has no coordinate_transformation_mode 'half_pixel_symmetric' in it")
    return generic_form(op, form, schema, opset)


def _grid_sample(op: SxOp, form: OnnxForm, schema: defs.OpSchema, opset: int) -> NodeForm:
    """Before opset 20 there were two spatial axes, after which the modes were named."""
    node = generic_form(op, form, schema, opset)
    if opset < 20:
        data = op.operands[0]
        if is_unranked(data) or rank_of(data) != 4:
            raise Unstatable("GridSample takes two spatial axes only in it")
        node.attributes["mode"] = make_attribute("mode", _OLD_MODES[op.attr("mode")], AttrType.STRING)
    return node


def _roi_align(op: SxOp, form: OnnxForm, schema: defs.OpSchema, opset: int) -> NodeForm:
    """Before opset 16 regions were not moved by half an element."""
    if opset >= 16:
        return generic_form(op, form, schema, opset)
    if op.attr("coordinate_transformation_mode") != "output_half_pixel":
        raise Unstatable("RoiAlign does not move regions by half an element in it")
    bare = OnnxForm(form.name, form.domain, form.since, {"coordinate_transformation_mode": None})
    return generic_form(op, bare, schema, opset)


def _dft(op: SxOp, form: OnnxForm, schema: defs.OpSchema, opset: int) -> NodeForm:
    """Before opset 20 the axis was an attribute."""
    if opset >= 20:
        return generic_form(op, form, schema, opset)
    slots: list[SSAValue | None] = [*op.slots, None, None]
    axis = (-2,) if slots[2] is None else known_ints(slots[2])
    if axis is None:
        raise Unstatable("the axis of DFT is an attribute in it, and is not known before a run")
    inputs = slots[:2] if slots[1] is not None else slots[:1]
    node = NodeForm(form.name, form.domain, inputs, list(op.results))
    node.attributes["axis"] = make_attribute("axis", axis[0], AttrType.INT)
    for name in ("inverse", "onesided"):
        if op.attr(name):
            node.attributes[name] = make_attribute(name, 1, AttrType.INT)
    return node


def _stft(op: SxOp, form: OnnxForm, schema: defs.OpSchema, opset: int) -> NodeForm:
    """ONNX's shape inference takes a missing `onesided` for 0, although its schema says 1."""
    node = generic_form(op, form, schema, opset)
    node.attributes["onesided"] = make_attribute("onesided", int(op.attr("onesided")), AttrType.INT)
    return node


def _scatter(op: SxOp, form: OnnxForm, schema: defs.OpSchema, opset: int) -> NodeForm:
    """The reductions `max` and `min` came with opset 18."""
    if opset < 18 and op.attr("reduction") in ("max", "min"):
        raise Unstatable(f"{form.name} has no reduction '{op.attr('reduction')}' in it")
    return generic_form(op, form, schema, opset)


def _lp_pool(op: SxOp, form: OnnxForm, schema: defs.OpSchema, opset: int) -> NodeForm:
    """Before opset 22 `ceil_mode` did not say that a window which starts behind the data is dropped."""
    if opset < 22 and op.attr("ceil_mode") and isinstance(op, LpPoolOp) and op.attr("auto_pad") == "NOTSET":
        sizes = static_shape(op.x)
        windows = None if sizes is None else op.windows(len(sizes) - 2)
        for axis, size in enumerate(sizes[2:] if sizes is not None else ()):
            if windows is None:
                continue
            room = Dim.of(size + sum(windows.pads[axis])) - windows.reach(axis)
            if room.ceildiv(windows.strides[axis]) + 1 != windows.extent(axis, Dim.of(size)):
                raise Unstatable("a last window that starts behind the data has another meaning in it")
    return generic_form(op, form, schema, opset)


FORMS: dict[str, Callable[[SxOp, OnnxForm, Any, int], NodeForm]] = {
    "sx.resize": _resize,
    "sx.grid_sample": _grid_sample,
    "sx.roi_align": _roi_align,
    "sx.dft": _dft,
    "sx.stft": _stft,
    "sx.scatter_elements": _scatter,
    "sx.scatter_nd": _scatter,
    "sx.lp_pool": _lp_pool,
}
