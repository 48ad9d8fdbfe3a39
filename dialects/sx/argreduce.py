"""Indices of extremes: arg_max, arg_min."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, rank_of, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import NUMERIC, DType, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx import facts
from sardonyx.dialects.sx.numeric import given, wide
from sardonyx.dialects.sx.support import check_dtype, is_unranked, normalize_axis
from sardonyx.dialects.values import Contents
from sardonyx.errors import ExecutionError


class ArgReduceOp(SxOp):
    """The index along `axis` of an extreme element, int64: the first of several, or the last one.

    (C1) The dtype of `data` is one of `DTYPES`. (C2) `axis` is in [-rank, rank). (C3) The extent of that axis is not 0.
    """

    data = operand_def()
    axis = opt_prop_def(IntegerAttr)
    keepdims = opt_prop_def(IntegerAttr)
    select_last_index = opt_prop_def(IntegerAttr)
    output = result_def()
    DEFAULTS: ClassVar = {"axis": 0, "keepdims": True, "select_last_index": False}
    DTYPES: ClassVar[Sequence[DType]] = NUMERIC

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.data, self.DTYPES, "(C1)")
        if is_unranked(self.data):
            return [unranked_type(int64)]
        axis = normalize_axis(self, self.attr("axis"), rank_of(self.data), "(C2)")
        dims = list(dims_of(self.data))
        if dims[axis] == 0:
            raise self.fail(f"(C3) axis {axis} has extent 0")
        dims[axis : axis + 1] = [Dim.of(1)] if self.attr("keepdims") else []
        return [tensor_type(int64, dims)]

    def find(self, x: Array, axis: int) -> Array:
        """The index of the first extreme, or of the first NaN."""
        raise NotImplementedError(f"{self.name} does not define find()")

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (data,) = given(arrays)
        axis = normalize_axis(self, self.attr("axis"), data.ndim, "(C2)")
        count = data.shape[axis]
        if count == 0:
            raise ExecutionError(f"(C3) axis {axis} has extent 0", op=self.name)
        x = wide(data)
        if self.attr("select_last_index"):
            index = count - 1 - self.find(np.flip(x, axis), axis)
        else:
            index = self.find(x, axis)
        index = np.asarray(index, np.int64)
        return [np.expand_dims(index, axis) if self.attr("keepdims") else index]

    def infer_values(self) -> Sequence[Contents | None]:
        return [facts.folded(self)]


@irdl_op_definition
class ArgMaxOp(ArgReduceOp):
    """The index of the greatest element; a NaN counts as greater than all."""

    name = "sx.arg_max"
    ONNX: ClassVar = OnnxForm("ArgMax", since=12)

    def find(self, x: Array, axis: int) -> Array:
        return np.argmax(x, axis=axis)


@irdl_op_definition
class ArgMinOp(ArgReduceOp):
    """The index of the smallest element; a NaN counts as smaller than all."""

    name = "sx.arg_min"
    ONNX: ClassVar = OnnxForm("ArgMin", since=12)

    def find(self, x: Array, axis: int) -> Array:
        return np.argmin(x, axis=axis)
