"""Extents as data: `sx.shape`, `sx.size`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, fresh_dim, rank_of, tensor_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import ANY, DType, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import slots
from sardonyx.dialects.sx.support import check_dtype, is_unranked
from sardonyx.dialects.values import Contents


@irdl_op_definition
class ShapeOp(SxOp):
    """The extents of axes `start` to `end` (exclusive; without it the last) as a vector of int64.

    Negative bounds count from the end; what lies outside [0, rank] is clamped.

    (C1) The dtype is one of `DTYPES`.
    """

    name = "sx.shape"
    data = operand_def()
    start = opt_prop_def(IntegerAttr)
    end = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("Shape", since=1)
    DEFAULTS: ClassVar = {"start": 0}
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def axes(self, rank: int) -> range:
        """The axes whose extents are taken."""
        return range(rank)[slice(self.attr("start"), self.attr("end"))]

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.data, self.DTYPES, "(C1)")
        length = fresh_dim() if is_unranked(self.data) else len(self.axes(rank_of(self.data)))
        return [tensor_type(int64, [length])]

    def infer_values(self) -> Sequence[Contents | None]:
        if is_unranked(self.data):
            return [None]
        dims = dims_of(self.data)
        return [tuple(dims[axis] for axis in self.axes(len(dims)))]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        shape = slots(arrays)[0].shape
        return [np.array([shape[axis] for axis in self.axes(len(shape))], np.int64)]


@irdl_op_definition
class SizeOp(SxOp):
    """The number of elements, as a scalar of int64.

    (C1) The dtype is one of `DTYPES`.
    """

    name = "sx.size"
    data = operand_def()
    output = result_def()
    ONNX: ClassVar = OnnxForm("Size", since=1)
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.data, self.DTYPES, "(C1)")
        return [tensor_type(int64, [])]

    def infer_values(self) -> Sequence[Contents | None]:
        return [None if is_unranked(self.data) else (Dim.product(dims_of(self.data)),)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        return [np.array(slots(arrays)[0].size, np.int64)]
