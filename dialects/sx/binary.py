"""Elementwise arithmetic of two operands: add, sub, mul, div, mod, pow, and the variadic max, min, sum, mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def, var_operand_def
from xdsl.dialects.builtin import IntegerAttr

from sardonyx.dialects.attributes import dims_of, dtype_of, static_shape
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import FLOATS, NUMERIC, DType
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.support import broadcast_type, check_dtype, same_dtype
from sardonyx.dialects.values import Contents, contents

_ = (dims_of, dtype_of)


class BinaryOp(SxOp):
    """Two operands of one dtype, broadcast together.

    (C1) The operands have the same dtype, one of `DTYPES`. (C2) Their shapes broadcast.
    """

    lhs = operand_def()
    rhs = operand_def()
    output = result_def()
    ELEMENTWISE: ClassVar = True
    DTYPES: ClassVar[Sequence[DType]] = NUMERIC

    def infer(self) -> Sequence[Attribute]:
        dtype = same_dtype(self, [self.lhs, self.rhs], "(C1)")
        check_dtype(self, self.lhs, self.DTYPES, "(C1)")
        return [broadcast_type(self, dtype, [self.lhs, self.rhs], "(C2)")]

    def _dims(self) -> list[tuple[Dim | None, Dim | None]] | None:
        """The operands' known elements paired as they broadcast; None where shapes are no vectors or scalars."""
        a, b = contents(self.lhs), contents(self.rhs)
        shape = static_shape(self.output)
        if (a is None and b is None) or shape is None or len(shape) > 1:
            return None
        count = shape[0] if shape else 1

        def spread(known: Contents | None) -> Contents:
            if known is None:
                return (None,) * count
            return known * count if len(known) == 1 else known

        return list(zip(spread(a), spread(b), strict=True))


def _wide(array: Array) -> Array:
    """16-bit floats compute in float32 and round once."""
    return array.astype(np.float32) if array.dtype.itemsize == 2 and array.dtype.kind not in "iub" else array


@irdl_op_definition
class AddOp(BinaryOp):
    """`lhs + rhs`; integers wrap around."""

    name = "sx.add"
    COMMUTATIVE: ClassVar = True
    ONNX: ClassVar = OnnxForm("Add", since=7)

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        a, b = arrays
        return [np.add(_wide(a), _wide(b)).astype(a.dtype)]  # pyright: ignore

    def infer_values(self) -> Sequence[Contents | None]:
        pairs = self._dims()
        return [pairs and tuple(a + b if a is not None and b is not None else None for a, b in pairs)]
