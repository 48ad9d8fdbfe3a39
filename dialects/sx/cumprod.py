"""Running products along one axis: `sx.cumprod`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import rank_of, static_shape
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dtypes import FLOATS, DType, int32, int64, uint32, uint64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import refuse, run_axis, slots
from sardonyx.dialects.sx.numeric import is_float, narrow
from sardonyx.dialects.sx.support import check_dtype, is_unranked, normalize_axis
from sardonyx.dialects.values import known_ints


@irdl_op_definition
class CumProdOp(SxOp):
    """Each element the product of those up to it along `axis`; with `exclusive` without itself, with `reverse` of
    those from it on. Integers wrap around; floats multiply in float64 and round each product once.

    (C1) The dtype of `x` is one of `DTYPES`. (C2) `axis` is one int32 or int64 number (0-d, or a vector of one).
    (C3) It is in [-rank, rank).
    """

    name = "sx.cumprod"
    x = operand_def()
    axis = operand_def()
    exclusive = opt_prop_def(IntegerAttr)
    reverse = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("CumProd", since=26)
    DEFAULTS: ClassVar = {"exclusive": False, "reverse": False}
    DTYPES: ClassVar[Sequence[DType]] = (int32, int64, uint32, uint64, *FLOATS)

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.x, self.DTYPES, "(C1)")
        check_dtype(self, self.axis, (int32, int64), "(C2)", "axis")
        shape = static_shape(self.axis)
        if shape is not None and shape not in ((), (1,)):
            raise self.fail(f"(C2) axis is one number, but its shape is {list(shape)}")
        known = known_ints(self.axis)
        if known is not None and not is_unranked(self.x):
            normalize_axis(self, known[0], rank_of(self.x), "(C3)")
        return [self.x.type]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, stated = slots(arrays)
        if stated.size != 1:
            raise refuse(self, f"axis has {stated.size} elements, not one")
        axis = run_axis(self, int(stated.reshape(-1)[0]), x.ndim)
        dtype = np.dtype(np.float64) if is_float(x) else x.dtype
        factors = np.moveaxis(x.astype(dtype), axis, 0)
        if self.attr("reverse"):
            factors = factors[::-1]
        products = np.cumprod(factors, axis=0, dtype=dtype)
        if self.attr("exclusive"):
            products = np.concatenate([np.ones_like(products[:1]), products[:-1]])
        if self.attr("reverse"):
            products = products[::-1]
        return [narrow(np.ascontiguousarray(np.moveaxis(products, 0, axis)), x.dtype)]
