"""The bits of elements read as another dtype: `sx.bit_cast`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dtypes import ALL, NARROW, DType
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import slots
from sardonyx.dialects.sx.support import broadcast_type, check_dtype
from sardonyx.errors import InvalidArgumentError


def _width(dtype: DType) -> int:
    """The bits of an element; a bool is a byte."""
    return 8 if dtype.kind == "b" else dtype.bits


@irdl_op_definition
class BitCastOp(SxOp):
    """The elements' bits as those of dtype `to`. A bool is a byte 0 or 1; of other bytes, all but 0 become true.

    (C1) The dtypes are in `DTYPES`. (C2) Both have the same width.
    """

    name = "sx.bit_cast"
    input = operand_def()
    to = prop_def(Attribute)
    output = result_def()
    ONNX: ClassVar = OnnxForm("BitCast", since=26)
    ELEMENTWISE: ClassVar = True
    DTYPES: ClassVar[Sequence[DType]] = (*ALL, *NARROW)

    def target(self) -> DType:
        """The dtype as which the bits are read."""
        try:
            return DType.of(self.to)
        except InvalidArgumentError:
            raise self.fail(f"(C1) {self.to} is not a dtype") from None

    def infer(self) -> Sequence[Attribute]:
        source, target = check_dtype(self, self.input, self.DTYPES, "(C1)"), self.target()
        if target not in self.DTYPES:
            raise self.fail(f"(C1) to is {target}; allowed: {', '.join(map(str, self.DTYPES))}")
        if _width(source) != _width(target):
            raise self.fail(f"(C2) {source} has {_width(source)} bits, {target} {_width(target)}")
        return [broadcast_type(self, target, [self.input], "(C1)")]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = slots(arrays)
        if dtype_of(self.output).kind == "b":
            return [x.view(np.uint8) != 0]
        return [np.ascontiguousarray(x).reshape(x.shape).view(self.target().numpy)]
