"""Running sums along one axis: cumsum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dtype_of, rank_of, static_shape
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import FLOATS, DType, int32, int64, uint32, uint64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx import facts
from sardonyx.dialects.sx.numeric import given, is_float, narrow
from sardonyx.dialects.sx.support import broadcast_type, check_dtype, is_unranked, normalize_axis
from sardonyx.dialects.values import Contents, known_ints
from sardonyx.errors import ExecutionError


@irdl_op_definition
class CumSumOp(SxOp):
    """Each element the sum of those up to it along `axis`; with `exclusive` without itself, with `reverse` of those
    from it on. Integers wrap around; floats accumulate in float64 and round each sum once.

    (C1) The dtype of `x` is one of `DTYPES`. (C2) `axis` is one int32 or int64 number (0-d, or a vector of one).
    (C3) It is in [-rank, rank).
    """

    name = "sx.cumsum"
    ONNX: ClassVar = OnnxForm("CumSum", since=11)
    x = operand_def()
    axis = operand_def()
    exclusive = opt_prop_def(IntegerAttr)
    reverse = opt_prop_def(IntegerAttr)
    output = result_def()
    DEFAULTS: ClassVar = {"exclusive": False, "reverse": False}
    DTYPES: ClassVar[Sequence[DType]] = (int32, int64, uint32, uint64, *FLOATS)

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.x, self.DTYPES, "(C1)")
        check_dtype(self, self.axis, (int32, int64), "(C2)", "axis")
        shape = static_shape(self.axis)
        if shape is not None and shape not in ((), (1,)):
            raise self.fail(f"(C2) axis is one number, but its shape is {list(shape)}")
        if not is_unranked(self.x):
            self.known_axis()
        return [broadcast_type(self, dtype, [self.x], "(C1)")]

    def known_axis(self) -> int | None:
        """The axis, non-negative; None where it or the rank is not known."""
        known = known_ints(self.axis)
        if known is None or len(known) != 1 or is_unranked(self.x):
            return None
        return normalize_axis(self, known[0], rank_of(self.x), "(C3)")

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, stated = given(arrays)
        if stated.size != 1:
            raise ExecutionError(f"(C2) axis has {stated.size} elements, not one", op=self.name)
        axis = int(stated.reshape(())[()])
        if not -x.ndim <= axis < x.ndim:
            raise ExecutionError(f"(C3) axis {axis} is out of range for rank {x.ndim}", op=self.name)
        dtype = np.dtype(np.float64) if is_float(x) else x.dtype
        terms = np.moveaxis(x.astype(dtype), axis, 0)
        if self.attr("reverse"):
            terms = terms[::-1]
        sums = np.cumsum(terms, axis=0, dtype=dtype)
        if self.attr("exclusive"):
            sums = np.concatenate([np.zeros_like(sums[:1]), sums[:-1]])
        if self.attr("reverse"):
            sums = sums[::-1]
        return [narrow(np.ascontiguousarray(np.moveaxis(sums, 0, axis)), x.dtype)]

    def infer_values(self) -> Sequence[Contents | None]:
        known, axis = facts.grid(self.x), self.known_axis()
        if known is None or axis is None:
            return [None]
        out = np.empty(known.shape, object)
        source, target = np.moveaxis(known, axis, 0), np.moveaxis(out, axis, 0)
        count = len(source)
        for rest in np.ndindex(source.shape[1:]):
            total: Dim | None = Dim.of(0)
            for step in range(count):
                at = count - 1 - step if self.attr("reverse") else step
                term = source[(at, *rest)]
                following = None if total is None or term is None else total + term
                target[(at, *rest)] = total if self.attr("exclusive") else following
                total = following
        dtype = dtype_of(self.output)
        return [tuple(facts.wrapped(d, dtype) for d in out.reshape(-1))]
