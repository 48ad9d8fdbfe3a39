"""Choosing between elements: where, clip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, result_def

from sardonyx.dialects.attributes import rank_of
from sardonyx.dialects.base import SEGMENTS, OnnxForm, SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import ANY, NUMERIC, DType, bool_
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx import facts
from sardonyx.dialects.sx.numeric import broadcast, given, maximum, minimum, wide
from sardonyx.dialects.sx.support import broadcast_type, check_dtype, is_unranked, same_dtype
from sardonyx.dialects.values import Contents


@irdl_op_definition
class WhereOp(SxOp):
    """`on_true` where the condition holds, else `on_false`.

    (C1) `condition` is bool. (C2) `on_true` and `on_false` have the same dtype. (C3) All three shapes broadcast.
    """

    name = "sx.where"
    ONNX: ClassVar = OnnxForm("Where", since=9)
    condition = operand_def()
    on_true = operand_def()
    on_false = operand_def()
    output = result_def()
    ELEMENTWISE: ClassVar = True
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.condition, (bool_,), "(C1)", "the condition")
        dtype = same_dtype(self, [self.on_true, self.on_false], "(C2)")
        return [broadcast_type(self, dtype, [self.condition, self.on_true, self.on_false], "(C3)")]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        condition, on_true, on_false = broadcast(self, arrays, "(C3)")
        return [np.where(condition, on_true, on_false)]

    def infer_values(self) -> Sequence[Contents | None]:
        def choose(condition: Dim | None, on_true: Dim | None, on_false: Dim | None) -> Dim | None:
            if condition is None:
                return on_true if on_true == on_false else None
            return on_true if condition == 1 else on_false

        return [facts.elementwise(self, choose, partial=True)]


@irdl_op_definition
class ClipOp(SxOp):
    """`min(max, max(min, input))`: `max` where the bounds are crossed; NaN where any operand is NaN.

    (C1) `input` is numeric. (C2) A bound that is given has the dtype of `input` and (C3) is a scalar (0-d).
    """

    name = "sx.clip"
    irdl_options = SEGMENTS
    ONNX: ClassVar = OnnxForm("Clip", since=11)
    input = operand_def()
    min = opt_operand_def()
    max = opt_operand_def()
    output = result_def()
    ELEMENTWISE: ClassVar = True
    DTYPES: ClassVar[Sequence[DType]] = NUMERIC

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.input, self.DTYPES, "(C1)")
        for bound in (self.min, self.max):
            if bound is None:
                continue
            same_dtype(self, [self.input, bound], "(C2)")
            if not is_unranked(bound) and rank_of(bound) != 0:
                raise self.fail(f"(C3) a bound is a scalar, but {bound.type} has rank {rank_of(bound)}")
        return [broadcast_type(self, dtype, [self.input], "(C1)")]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = given(arrays[:1])
        low, high = arrays[1], arrays[2]
        out = wide(x)
        if low is not None:
            out = maximum(out, wide(low))
        if high is not None:
            out = minimum(out, wide(high))
        return [np.asarray(out).astype(x.dtype)]

    def infer_values(self) -> Sequence[Contents | None]:
        def limit(x: Dim, *bounds: Dim) -> Dim:
            rest = list(bounds)
            if self.min is not None:
                x = Dim.max(x, rest.pop(0))
            return Dim.min(x, rest.pop(0)) if self.max is not None else x

        return [facts.elementwise(self, limit)]
