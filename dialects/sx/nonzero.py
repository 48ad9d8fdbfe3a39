"""Elements chosen by a condition: `sx.non_zero`, `sx.compress`. How many there are is known in the run only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, fresh_dim, rank_of, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, less_equal
from sardonyx.dialects.dtypes import ALL, ANY, DType, bool_, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import flat, numbers, objects, refuse, run_axis, slots
from sardonyx.dialects.sx.numeric import wide
from sardonyx.dialects.sx.support import check_dtype, is_unranked, normalize_axis
from sardonyx.dialects.values import Contents


@irdl_op_definition
class NonZeroOp(SxOp):
    """The coordinates of all elements that are not 0, one column each, in row-major order: [rank, count].

    NaN is not 0. Of a scalar the result is [0, count].

    (C1) The dtype is one of `DTYPES`.
    """

    name = "sx.non_zero"
    x = operand_def()
    output = result_def()
    ONNX: ClassVar = OnnxForm("NonZero", since=9)
    DTYPES: ClassVar[Sequence[DType]] = ALL

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.x, self.DTYPES, "(C1)")
        known = numbers(self.x)
        rank = fresh_dim() if is_unranked(self.x) else Dim.of(rank_of(self.x))
        return [tensor_type(int64, [rank, fresh_dim() if known is None else int(np.count_nonzero(known))])]

    def infer_values(self) -> Sequence[Contents | None]:
        known = numbers(self.x)
        return [None if known is None else tuple(Dim.of(int(i)) for i in _coordinates(known).reshape(-1))]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        return [_coordinates(wide(slots(arrays)[0]))]


def _coordinates(x: Array) -> Array:
    if not x.ndim:
        return np.zeros((0, int(x != 0)), np.int64)
    return np.stack(np.nonzero(x)).astype(np.int64)


@irdl_op_definition
class CompressOp(SxOp):
    """The slices along `axis` (without it, the elements in row-major order) for which `condition` is true.

    What lies behind the condition's end is left out.

    (C1) The dtype is one of `DTYPES`; `condition` is a vector of bool. (C2) `axis` is in [-rank, rank). (C3) The
    condition is no longer than the axis.
    """

    name = "sx.compress"
    input = operand_def()
    condition = operand_def()
    axis = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("Compress", since=11)
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.input, self.DTYPES, "(C1)")
        check_dtype(self, self.condition, (bool_,), "(C1)", "condition")
        if not is_unranked(self.condition) and rank_of(self.condition) != 1:
            raise self.fail(f"(C1) condition has rank {rank_of(self.condition)}, not 1")
        known, axis = numbers(self.condition), self.attr("axis")
        count = fresh_dim() if known is None else Dim.of(int(np.count_nonzero(known)))
        if is_unranked(self.input):
            return [tensor_type(dtype, [count]) if axis is None else unranked_type(dtype)]
        dims = list(dims_of(self.input))
        if axis is not None:
            axis = normalize_axis(self, axis, len(dims), "(C2)")
        size = Dim.product(dims) if axis is None else dims[axis]
        if not is_unranked(self.condition) and less_equal(dims_of(self.condition)[0], size) is Proof.REFUTED:
            raise self.fail(f"(C3) the condition has {dims_of(self.condition)[0]} elements, the axis {size}")
        if axis is None:
            return [tensor_type(dtype, [count])]
        dims[axis] = count
        return [tensor_type(dtype, dims)]

    def infer_values(self) -> Sequence[Contents | None]:
        data, condition = objects(self.input), numbers(self.condition)
        return [None if data is None or condition is None else flat(self._take(data, condition != 0))]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        return [self._take(*slots(arrays))]

    def _take(self, data: Array, condition: Array) -> Array:
        axis = self.attr("axis")
        if axis is None:
            data, axis = data.reshape(-1), 0
        axis = run_axis(self, axis, data.ndim)
        if condition.ndim != 1 or condition.size > data.shape[axis]:
            raise refuse(self, f"a condition of shape {list(condition.shape)} for {data.shape[axis]} elements")
        return np.take(data, np.flatnonzero(condition), axis)
