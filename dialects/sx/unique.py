"""The distinct elements or slices of a tensor: `sx.unique`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, fresh_dim, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import ANY, DType, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import run_axis, slots
from sardonyx.dialects.sx.numeric import double, is_float
from sardonyx.dialects.sx.strings import is_string
from sardonyx.dialects.sx.support import check_dtype, is_unranked, normalize_axis


def distinct(rows: Array) -> tuple[Array, Array, Array]:
    """The distinct rows of a matrix in lexicographic order: the first row of each kind, each row's kind, the counts.

    NaNs are equal to each other and come last.
    """
    keys = double(rows) if is_float(rows) and not is_string(rows) else rows
    count = len(rows)
    by_key = np.lexsort(keys.T[::-1]) if keys.shape[1] and count else np.arange(count)
    ordered = keys[by_key]
    before, after = ordered[:-1], ordered[1:]
    same = ((before == after) | ((before != before) & (after != after))).all(1)
    starts = np.concatenate([np.zeros(min(count, 1), np.int64), np.flatnonzero(~same) + 1])
    lengths = np.diff(np.append(starts, count))
    kinds = np.empty(count, np.int64)
    kinds[by_key] = np.repeat(np.arange(starts.size), lengths)
    return by_key[starts], kinds, lengths


@irdl_op_definition
class UniqueOp(SxOp):
    """The distinct elements, or distinct slices along `axis`; where each is found first, which one each element (or
    slice) is, and how often each occurs.

    They come in ascending order (slices in lexicographic order), without `sorted` in that of their first occurrence.
    NaNs are equal to each other and greater than every number. Zeros of both signs are equal.

    (C1) The dtype is one of `DTYPES`. (C2) `axis` is in [-rank, rank).
    """

    name = "sx.unique"
    x = operand_def()
    axis = opt_prop_def(IntegerAttr)
    sorted = opt_prop_def(IntegerAttr)
    y = result_def()
    indices = result_def()
    inverse_indices = result_def()
    counts = result_def()
    ONNX: ClassVar = OnnxForm("Unique", since=11)
    DEFAULTS: ClassVar = {"sorted": True}
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.x, self.DTYPES, "(C1)")
        count, axis = fresh_dim(), self.attr("axis")
        found = tensor_type(int64, [count])
        if is_unranked(self.x):
            y = tensor_type(dtype, [count]) if axis is None else unranked_type(dtype)
            return [y, found, tensor_type(int64, [fresh_dim()]), found]
        dims = list(dims_of(self.x))
        if axis is None:
            return [tensor_type(dtype, [count]), found, tensor_type(int64, [Dim.product(dims)]), found]
        axis = normalize_axis(self, axis, len(dims), "(C2)")
        size, dims[axis] = dims[axis], count
        return [tensor_type(dtype, dims), found, tensor_type(int64, [size]), found]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = slots(arrays)
        axis = self.attr("axis")
        if axis is None:
            x, axis = x.reshape(-1), 0
        axis = run_axis(self, axis, x.ndim)
        moved = np.moveaxis(x, axis, 0)
        # An explicit number of columns: -1 is not defined where there are no rows.
        columns = int(np.prod(moved.shape[1:], dtype=np.int64))
        first, kinds, lengths = distinct(moved.reshape(len(moved), columns))
        if not self.attr("sorted"):
            order = np.argsort(first, kind="stable")
            rank = np.empty_like(order)
            rank[order] = np.arange(order.size)
            first, kinds, lengths = first[order], rank[kinds], lengths[order]
        return [np.take(x, first, axis), first.astype(np.int64), kinds.astype(np.int64), lengths.astype(np.int64)]
