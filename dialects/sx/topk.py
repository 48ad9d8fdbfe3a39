"""The greatest or smallest elements along an axis: `sx.top_k`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, dtype_of, fresh_dim, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, equal, less_equal
from sardonyx.dialects.dtypes import NUMERIC, DType, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import refuse, run_axis, slots
from sardonyx.dialects.sx.numeric import double, is_float
from sardonyx.dialects.sx.support import check_dtype, is_unranked, normalize_axis
from sardonyx.dialects.values import contents


def order(x: Array, axis: int, descending: bool) -> Array:
    """Positions along the axis from the greatest element on (or the smallest): among equals the first comes first.

    NaN counts as greater than every number.
    """
    keys = double(x) if is_float(x) else x
    if not descending:
        return np.argsort(keys, axis=axis, kind="stable")
    # A stable ascending sort of the reversed elements, read backwards, keeps equals in their order.
    return x.shape[axis] - 1 - np.flip(np.argsort(np.flip(keys, axis), axis=axis, kind="stable"), axis)


@irdl_op_definition
class TopKOp(SxOp):
    """The `k` greatest elements along `axis` (the smallest without `largest`), and where they stand.

    They come in order, also without `sorted`, which leaves it open; of equal ones the first comes first. NaN counts
    as greater than every number.

    (C1) The dtype is one of `DTYPES`; `k` is one element of int64. (C2) The rank is at least 1 and `axis` in
    [-rank, rank). (C3) 0 <= k <= the axis's extent.
    """

    name = "sx.top_k"
    x = operand_def()
    k = operand_def()
    axis = opt_prop_def(IntegerAttr)
    largest = opt_prop_def(IntegerAttr)
    sorted = opt_prop_def(IntegerAttr)
    values = result_def()
    indices = result_def()
    ONNX: ClassVar = OnnxForm("TopK", since=11)
    DEFAULTS: ClassVar = {"axis": -1, "largest": True, "sorted": True}
    DTYPES: ClassVar[Sequence[DType]] = NUMERIC

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.x, self.DTYPES, "(C1)")
        one = is_unranked(self.k) or equal(Dim.product(dims_of(self.k)), 1) is not Proof.REFUTED
        if dtype_of(self.k) != int64 or not one:
            raise self.fail(f"(C1) k is {self.k.type}, not one element of int64")
        if is_unranked(self.x):
            return [unranked_type(dtype), unranked_type(int64)]
        dims = list(dims_of(self.x))
        if not dims:
            raise self.fail("(C2) the operand has rank 0")
        axis = normalize_axis(self, self.attr("axis"), len(dims), "(C2)")
        known = contents(self.k)
        k = known[0] if known else None
        if k is not None and (less_equal(0, k) is Proof.REFUTED or less_equal(k, dims[axis]) is Proof.REFUTED):
            raise self.fail(f"(C3) k is {k}, the axis has {dims[axis]} elements")
        dims[axis] = fresh_dim() if k is None else k
        return [tensor_type(dtype, dims), tensor_type(int64, dims)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, k = slots(arrays)
        axis = run_axis(self, self.attr("axis"), x.ndim)
        if k.size != 1 or not 0 <= int(k.reshape(-1)[0]) <= x.shape[axis]:
            raise refuse(self, f"k is {k.tolist()}, axis {axis} has {x.shape[axis]} elements")
        count = int(k.reshape(-1)[0])
        at = np.take(order(x, axis, bool(self.attr("largest"))), np.arange(count), axis)
        return [np.take_along_axis(x, at, axis), at.astype(np.int64)]
