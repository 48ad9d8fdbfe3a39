"""Determinants: `sx.det`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, result_def

from sardonyx.dialects.attributes import dims_of, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dtypes import FLOATS, DType
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import merge, refuse, slots
from sardonyx.dialects.sx.numeric import double, narrow
from sardonyx.dialects.sx.support import check_dtype, is_unranked


@irdl_op_definition
class DetOp(SxOp):
    """The determinant of each matrix of the last two axes, by elimination in float64, rounded once; of an empty one 1.

    (C1) The dtype is one of `DTYPES`. (C2) The rank is at least 2. (C3) The last two extents are equal.
    """

    name = "sx.det"
    x = operand_def()
    output = result_def()
    ONNX: ClassVar = OnnxForm("Det", since=11)
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.x, self.DTYPES, "(C1)")
        if is_unranked(self.x):
            return [unranked_type(dtype)]
        dims = dims_of(self.x)
        if len(dims) < 2:
            raise self.fail(f"(C2) the operand has rank {len(dims)}, less than 2")
        merge(self, dims[-2], dims[-1], "(C3) the matrices are not square")
        return [tensor_type(dtype, dims[:-2])]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = slots(arrays)
        if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
            raise refuse(self, f"matrices of shape {list(x.shape)} are not square")
        return [narrow(np.asarray(np.linalg.det(double(x))), x.dtype)]
