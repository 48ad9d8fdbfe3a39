"""Triangles of matrices: `sx.trilu`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, dtype_of, rank_of
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import ANY, DType, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import refuse, slots
from sardonyx.dialects.sx.support import check_dtype, is_unranked


@irdl_op_definition
class TriluOp(SxOp):
    """The upper (or lower) triangle of each matrix of the last two axes, 0 elsewhere.

    The diagonal counts in; `k` moves it up (or down, where negative).

    (C1) The dtype is one of `DTYPES`. (C2) The rank is at least 2. (C3) `k` is one element of int64.
    """

    name = "sx.trilu"
    data = operand_def()
    k = opt_operand_def()
    upper = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("Trilu", since=14)
    DEFAULTS: ClassVar = {"upper": True}
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.data, self.DTYPES, "(C1)")
        if not is_unranked(self.data) and rank_of(self.data) < 2:
            raise self.fail(f"(C2) the operand has rank {rank_of(self.data)}, less than 2")
        if self.k is not None:
            one = is_unranked(self.k) or equal(Dim.product(dims_of(self.k)), 1) is not Proof.REFUTED
            if dtype_of(self.k) != int64 or not one:
                raise self.fail(f"(C3) k is {self.k.type}, not one element of int64")
        return [self.data.type]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        data, k = slots(arrays)
        if data.ndim < 2 or (k is not None and k.size != 1):
            raise refuse(self, "trilu needs rank 2 and a single k")
        rows, columns = data.shape[-2:]
        # Beyond the matrix every diagonal is alike; clamping keeps the sum below inside int64.
        offset = 0 if k is None else min(max(int(k.reshape(())), -rows - 1), columns + 1)
        distance = np.arange(columns) - np.arange(rows)[:, None] - offset
        keep = distance >= 0 if self.attr("upper") else distance <= 0
        return [np.where(keep, data, np.zeros((), data.dtype))]
