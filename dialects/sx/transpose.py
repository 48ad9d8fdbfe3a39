"""Transposition: `sx.transpose`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, dtype_of, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dtypes import ANY, DType
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import flat, objects, slots
from sardonyx.dialects.sx.support import check_dtype, is_unranked
from sardonyx.dialects.values import Contents


@irdl_op_definition
class TransposeOp(SxOp):
    """Axis i of the result is axis `perm[i]` of the operand; without `perm` the axes are reversed.

    (C1) The dtype is one of `DTYPES`. (C2) `perm` is a permutation of the operand's axes.
    """

    name = "sx.transpose"
    data = operand_def()
    perm = opt_prop_def(DenseArrayBase)
    output = result_def()
    ONNX: ClassVar = OnnxForm("Transpose", since=1)
    DTYPES: ClassVar[Sequence[DType]] = ANY

    def permutation(self, rank: int) -> tuple[int, ...]:
        """The permutation for an operand of that rank."""
        perm = self.attr("perm")
        if perm is None:
            return tuple(reversed(range(rank)))
        if sorted(perm) != list(range(rank)):
            raise self.fail(f"(C2) perm {list(perm)} is no permutation of {rank} axes")
        return tuple(perm)

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.data, self.DTYPES, "(C1)")
        if is_unranked(self.data):
            perm = self.attr("perm")
            if perm is not None:
                self.permutation(len(perm))
            return [unranked_type(dtype_of(self.data))]
        dims = dims_of(self.data)
        return [tensor_type(dtype, [dims[axis] for axis in self.permutation(len(dims))])]

    def infer_values(self) -> Sequence[Contents | None]:
        data = objects(self.data)
        return [None if data is None else flat(data.transpose(self.permutation(data.ndim)))]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (data,) = slots(arrays)
        return [data.transpose(self.permutation(data.ndim))]
