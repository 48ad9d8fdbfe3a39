"""Padding and cropping: `sx.pad`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, dtype_of, fresh_dim, tensor_type, unranked_type
from sardonyx.dialects.base import SEGMENTS, OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import ANY, DType, int32, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import (
    check_allocation,
    check_run_allocation,
    check_vector,
    elements,
    refuse,
    run_axes,
    slots,
)
from sardonyx.dialects.sx.support import check_dtype, is_unranked, normalize_axes
from sardonyx.dialects.values import known_ints

MODES = ("constant", "reflect", "edge", "wrap")


def source_positions(mode: str, size: int, before: int, after: int) -> np.ndarray:
    """Which of `size` elements stands at each position of the padded axis, -1 for the constant.

    Cropping comes first: what a negative pad removes is not seen by the other side's padding. `reflect` and `wrap`
    repeat where they are wider than the data; one element reflects as itself.
    """
    kept = np.arange(max(0, -before), size - max(0, -after))
    at = np.arange(-max(before, 0), kept.size + max(after, 0))
    inside = (at >= 0) & (at < kept.size)
    if mode == "constant" or not kept.size:
        found = np.full(at.shape, -1)
        found[inside] = kept
        return found
    if mode == "edge":
        return kept[np.clip(at, 0, kept.size - 1)]
    if mode == "wrap":
        return kept[at % kept.size]
    period = max(2 * (kept.size - 1), 1)
    folded = at % period
    return kept[np.minimum(folded, period - folded) if kept.size > 1 else 0 * at]


@irdl_op_definition
class PadOp(SxOp):
    """The operand with `pads` more elements before and after each of the axes in `axes` (without it, each axis).

    A negative pad crops. The elements are `constant_value` (0 without it) or come from the operand: `reflect` about
    the outermost element, that `edge` element, or the other end (`wrap`).

    (C1) The dtype is one of `DTYPES`; `pads` is a vector of int64, `axes` one of int64 or int32, `constant_value` a
    scalar (or a single element) of the operand's dtype. (C2) `pads` holds two entries per axis, all befores first.
    (C3) `axes` are in [-rank, rank) and don't repeat. (C4) `mode` is one of `MODES`. (C5) No extent becomes negative.
    (C6) `reflect`, `edge` and `wrap` don't pad an axis that is empty.
    """

    name = "sx.pad"
    data = operand_def()
    pads = operand_def()
    constant_value = opt_operand_def()
    axes = opt_operand_def()
    mode = opt_prop_def(StringAttr)
    output = result_def()
    irdl_options = SEGMENTS
    ONNX: ClassVar = OnnxForm("Pad", since=11)
    DEFAULTS: ClassVar = {"mode": "constant"}
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.data, self.DTYPES, "(C1)")
        length = check_vector(self, self.pads, "(C1)", "pads")
        count = None if self.axes is None else check_vector(self, self.axes, "(C1)", "axes", (int64, int32))
        value = self.constant_value
        if value is not None and dtype_of(value) != dtype:
            raise self.fail(f"(C1) constant_value has dtype {dtype_of(value)}, the operand {dtype}")
        if value is not None and not is_unranked(value) and equal(Dim.product(dims_of(value)), 1) is Proof.REFUTED:
            raise self.fail(f"(C1) constant_value has shape {list(map(str, dims_of(value)))}, not one element")
        if self.attr("mode") not in MODES:
            raise self.fail(f"(C4) mode '{self.attr('mode')}' is none of {', '.join(MODES)}")
        if is_unranked(self.data):
            return [unranked_type(dtype)]
        dims = list(dims_of(self.data))
        if self.axes is None:
            count = len(dims)
        if length is not None and (length % 2 if count is None else length != 2 * count):
            raise self.fail(f"(C2) pads has {length} entries for {'some' if count is None else count} axes")
        count = count if count is not None else None if length is None else length // 2
        axes = tuple(range(len(dims))) if self.axes is None else known_ints(self.axes)
        if count is None or axes is None:
            return [tensor_type(dtype, [fresh_dim() for _ in dims])]
        before_after = elements(self.pads, 2 * count)
        for axis, before, after in zip(
            normalize_axes(self, axes, len(dims), "(C3)"), before_after[:count], before_after[count:], strict=True
        ):
            dims[axis] = self._extent(dims[axis], before, after)
        check_allocation(self, dtype, dims, "(C5)")
        return [tensor_type(dtype, dims)]

    def _extent(self, size: Dim, before: Dim | None, after: Dim | None) -> Dim:
        if before is None or after is None:
            return fresh_dim()
        out = size + before + after
        if self.attr("mode") != "constant" and size.static_value == 0 and (out.static_value or 0) > 0:
            raise self.fail(f"(C6) mode '{self.attr('mode')}' has nothing to take from an empty axis")
        return out

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        data, pads, value, axes = slots(arrays)

        chosen = range(data.ndim) if axes is None else run_axes(self, axes.tolist(), data.ndim)
        if pads.size != 2 * len(chosen):
            raise refuse(self, f"pads has {pads.size} entries for {len(chosen)} axes")
        if value is not None and value.size != 1:
            raise refuse(self, f"constant_value has {value.size} elements, not one")
        fill = np.zeros((), data.dtype) if value is None else value.reshape(())
        mode = self.attr("mode")
        befores, afters = pads.tolist()[: len(chosen)], pads.tolist()[len(chosen) :]
        shape = list(data.shape)
        for axis, before, after in zip(chosen, befores, afters, strict=True):
            shape[axis] += before + after
            if shape[axis] < 0:
                raise refuse(
                    self, f"pads {before} and {after} crop more than the {data.shape[axis]} elements of axis {axis}"
                )
        check_run_allocation(self, data, shape)
        for axis, before, after in zip(chosen, befores, afters, strict=True):
            size = data.shape[axis]
            positions = source_positions(mode, size, before, after)
            if mode != "constant" and positions.size and positions.min() < 0:
                raise refuse(self, f"mode '{mode}' has nothing to take from axis {axis}, which is empty")
            outside = positions < 0
            if size == 0:
                data = np.zeros(data.shape[:axis] + (positions.size,) + data.shape[axis + 1 :], data.dtype)
            else:
                data = np.take(data, np.where(outside, 0, positions), axis)
            if outside.any():
                data[(slice(None),) * axis + (outside,)] = fill
        return [data]
