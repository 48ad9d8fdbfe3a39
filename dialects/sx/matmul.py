"""Matrix products: `sx.matmul`, `sx.gemm`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import Shape, dims_of, fresh_dim, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Proof, equal
from sardonyx.dialects.dtypes import FLOATS, DType, int32, int64, uint32, uint64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import refuse, slots
from sardonyx.dialects.sx.numeric import double, narrow
from sardonyx.dialects.sx.support import (
    broadcast_dims,
    check_dtype,
    float_attr,
    format_dims,
    is_unranked,
    require_equal,
    same_dtype,
)

DTYPES = (*FLOATS, int32, int64, uint32, uint64)


def product(a: Array, b: Array) -> Array:
    """NumPy's matmul, floats in float64 (not rounded yet), integers modulo their width."""
    return np.matmul(a, b) if a.dtype.kind in "iu" else np.matmul(double(a), double(b))


@irdl_op_definition
class MatMulOp(SxOp):
    """The matrix product, as NumPy's `matmul`: leading axes broadcast; a vector on the left is a row, on the right a
    column, and that axis is not in the result. Floats sum in float64 and round once; integers wrap around.

    (C1) The operands have the same dtype, one of `DTYPES`. (C2) Neither has rank 0. (C3) The columns of `lhs` are as
    many as the rows of `rhs`. (C4) The leading axes broadcast.
    """

    name = "sx.matmul"
    lhs = operand_def()
    rhs = operand_def()
    output = result_def()
    ONNX: ClassVar = OnnxForm("MatMul", since=1)
    DTYPES: ClassVar[Sequence[DType]] = DTYPES

    def infer(self) -> Sequence[Attribute]:
        dtype = same_dtype(self, [self.lhs, self.rhs], "(C1)")
        check_dtype(self, self.lhs, self.DTYPES, "(C1)")
        if is_unranked(self.lhs) or is_unranked(self.rhs):
            return [unranked_type(dtype)]
        a, b = dims_of(self.lhs), dims_of(self.rhs)
        if not a or not b:
            raise self.fail(f"(C2) shapes {format_dims(a)} and {format_dims(b)}: a scalar is no matrix")
        inner = b[max(len(b) - 2, 0)]
        require_equal(
            self, a[-1], inner, f"(C3) shapes {format_dims(a)} and {format_dims(b)}: the inner extents differ"
        )
        lead = broadcast_dims(self, [a[:-2], b[:-2]], "(C4)")
        rows: Shape = a[-2:-1] if len(a) > 1 else ()
        columns: Shape = b[-1:] if len(b) > 1 else ()
        return [tensor_type(dtype, [*lead, *rows, *columns])]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        a, b = slots(arrays)
        try:
            result = product(a, b)
        except ValueError:
            shown = f"{list(a.shape)} and {list(b.shape)}"
            raise refuse(self, f"shapes {shown} cannot be multiplied") from None
        return [narrow(result, a.dtype)]


@irdl_op_definition
class GemmOp(SxOp):
    """`alpha * A' * B' + beta * C`, where A' and B' are `a` and `b` or their transposes; in float64, rounded once.

    (C1) The operands have the same dtype, one of `DTYPES`. (C2) `a` and `b` are matrices. (C3) The columns of A' are
    as many as the rows of B'. (C4) `c` broadcasts to the result. (C5) For integers alpha and beta are whole numbers.
    """

    name = "sx.gemm"
    a = operand_def()
    b = operand_def()
    c = opt_operand_def()
    alpha = opt_prop_def(FloatAttr)
    beta = opt_prop_def(FloatAttr)
    transA = opt_prop_def(IntegerAttr)
    transB = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("Gemm", since=11)
    DEFAULTS: ClassVar = {"alpha": 1.0, "beta": 1.0, "transA": False, "transB": False}
    DTYPES: ClassVar[Sequence[DType]] = DTYPES

    def infer(self) -> Sequence[Attribute]:
        dtype = same_dtype(self, self.operands, "(C1)")
        check_dtype(self, self.a, self.DTYPES, "(C1)")
        alpha, beta = float_attr(self, "alpha"), float_attr(self, "beta")
        if dtype.is_integer and not (alpha.is_integer() and beta.is_integer()):
            raise self.fail(f"(C5) alpha {alpha} and beta {beta} for dtype {dtype}")
        shapes = [None if is_unranked(v) else dims_of(v) for v in (self.a, self.b)]
        for shape in shapes:
            if shape is not None and len(shape) != 2:
                raise self.fail(f"(C2) an operand of shape {format_dims(shape)} is no matrix")
        a, b = (s if s is not None else (fresh_dim(), fresh_dim()) for s in shapes)
        rows, inner = reversed(a) if self.attr("transA") else a
        other, columns = reversed(b) if self.attr("transB") else b
        require_equal(self, inner, other, "(C3) the inner extents differ")
        out = (rows, columns)
        if self.c is not None and not is_unranked(self.c):
            c = dims_of(self.c)
            fits = len(c) <= 2 and all(
                d.static_value == 1 or equal(d, o) is not Proof.REFUTED
                for d, o in zip(reversed(c), reversed(out), strict=False)
            )
            if not fits:
                raise self.fail(f"(C4) c of shape {format_dims(c)} does not broadcast to {format_dims(out)}")
        return [tensor_type(dtype, out)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        a, b, c = slots(arrays)
        left = a.T if self.attr("transA") else a
        right = b.T if self.attr("transB") else b
        if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[0]:
            raise refuse(self, f"shapes {list(a.shape)} and {list(b.shape)} are no operands of gemm")
        result = product(left, right)
        result = result * _factor(float_attr(self, "alpha"), result.dtype)
        if c is not None:
            try:
                added = np.broadcast_to(c, result.shape)
            except ValueError:
                raise refuse(self, f"c of {list(c.shape)} does not broadcast to {list(result.shape)}") from None
            result = result + added.astype(result.dtype) * _factor(float_attr(self, "beta"), result.dtype)
        return [narrow(result, a.dtype)]


def _factor(value: float, dtype: np.dtype) -> np.ndarray:
    """A factor in the dtype of the product; integers modulo their width."""
    if dtype.kind == "f":
        return np.array(value)
    return np.array(int(value) % (1 << 64), np.uint64).astype(dtype)
