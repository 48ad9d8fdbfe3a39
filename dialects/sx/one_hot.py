"""Indices as rows of a unit matrix: `sx.one_hot`; ones on a diagonal: `sx.eye_like`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, dtype_of, fresh_dim, rank_of, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, equal, less_equal
from sardonyx.dialects.dtypes import ALL, ANY, NUMERIC, DType, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import check_run_allocation, refuse, run_axis, slots
from sardonyx.dialects.sx.numeric import convert
from sardonyx.dialects.sx.support import check_dtype, is_unranked, normalize_axis
from sardonyx.dialects.values import contents
from sardonyx.errors import InvalidArgumentError


@irdl_op_definition
class OneHotOp(SxOp):
    """For each index a vector of `depth` elements along a new `axis`: `values[1]` where the index says, else
    `values[0]`.

    An index in [-depth, 0) counts from the end; one outside of [-depth, depth) gives only `values[0]`. Floats are taken
    as integers by truncation.

    (C1) The dtypes of `indices` and `depth` are in `INDEX_DTYPES`, that of `values` in `DTYPES`. (C2) `depth` is one
    element and not negative, `values` a vector of two. (C3) `axis` is in [-r, r), r being the result's rank.
    """

    name = "sx.one_hot"
    indices = operand_def()
    depth = operand_def()
    values = operand_def()
    axis = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("OneHot", since=11)
    DEFAULTS: ClassVar = {"axis": -1}
    DTYPES: ClassVar[Sequence[DType]] = ANY
    INDEX_DTYPES: ClassVar[Sequence[DType]] = NUMERIC

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.indices, self.INDEX_DTYPES, "(C1)", "indices")
        check_dtype(self, self.depth, self.INDEX_DTYPES, "(C1)", "depth")
        dtype = check_dtype(self, self.values, self.DTYPES, "(C1)", "values")
        if not is_unranked(self.depth) and equal(Dim.product(dims_of(self.depth)), 1) is Proof.REFUTED:
            raise self.fail(f"(C2) depth is {self.depth.type}, not one element")
        if not is_unranked(self.values):
            if rank_of(self.values) != 1 or equal(dims_of(self.values)[0], 2) is Proof.REFUTED:
                raise self.fail(f"(C2) values is {self.values.type}, not a vector of two")
        if is_unranked(self.indices):
            return [unranked_type(dtype)]
        dims = list(dims_of(self.indices))
        axis = normalize_axis(self, self.attr("axis"), len(dims) + 1, "(C3)")
        known = contents(self.depth)
        depth = known[0] if known else None
        if depth is not None and less_equal(0, depth) is Proof.REFUTED:
            raise self.fail(f"(C2) depth is {depth}")
        return [tensor_type(dtype, [*dims[:axis], fresh_dim() if depth is None else depth, *dims[axis:]])]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        indices, depth, values = slots(arrays)
        if depth.size != 1 or values.shape != (2,):
            raise refuse(self, f"depth has {depth.size} elements, not one, or values {values.size}, not two")
        count = int(convert(depth.reshape(()), int64))
        if count < 0:
            raise refuse(self, f"depth is {count}")
        axis = run_axis(self, self.attr("axis"), indices.ndim + 1)
        shape = indices.shape[:axis] + (count,) + indices.shape[axis:]
        check_run_allocation(self, values, shape)
        at = np.expand_dims(indices if indices.dtype == np.uint64 else convert(indices, int64), axis)
        steps = np.arange(count).reshape([-1 if i == axis else 1 for i in range(len(shape))])
        hit = (at == steps) | (at == steps - count)
        return [np.take(values, hit.astype(np.intp)).reshape(shape)]


@irdl_op_definition
class EyeLikeOp(SxOp):
    """Ones on the `k`-th diagonal (above the main one where positive), else zeros, in the shape of a matrix.

    (C1) The operand's dtype and the result's (`dtype`, by default the operand's) are in `DTYPES`. (C2) The operand has
    rank 2.
    """

    name = "sx.eye_like"
    input = operand_def()
    dtype = opt_prop_def(Attribute)
    k = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("EyeLike", since=9)
    DEFAULTS: ClassVar = {"k": 0}
    DTYPES: ClassVar[Sequence[DType]] = ALL

    def target(self) -> DType:
        try:
            return dtype_of(self.input) if self.dtype is None else DType.of(self.dtype)
        except InvalidArgumentError:
            raise self.fail(f"(C1) {self.dtype} is not a dtype") from None

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.input, self.DTYPES, "(C1)")
        dtype = self.target()
        if dtype not in self.DTYPES:
            raise self.fail(f"(C1) the result's dtype is {dtype}; allowed: {', '.join(map(str, self.DTYPES))}")
        if is_unranked(self.input):
            return [tensor_type(dtype, [fresh_dim(), fresh_dim()])]
        if rank_of(self.input) != 2:
            raise self.fail(f"(C2) the operand has rank {rank_of(self.input)}, not 2")
        return [tensor_type(dtype, dims_of(self.input))]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = slots(arrays)
        if x.ndim != 2:
            raise refuse(self, f"the operand has rank {x.ndim}, not 2")
        rows, columns = x.shape
        # Beyond the matrix every diagonal is alike; clamping keeps the sum inside int64.
        k = min(max(self.attr("k"), -rows - 1), columns + 1)
        return [(np.arange(rows)[:, None] + k == np.arange(columns)).astype(self.target().numpy)]
