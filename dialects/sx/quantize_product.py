"""Products of quantised tensors that give quantised ones: `sx.qlinear_matmul`, `sx.qlinear_conv`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, result_def

from sardonyx.dialects.attributes import dims_of, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dtypes import FLOATS_8, DType, bfloat16, float16, float32, int8, int32, uint8
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import refuse, slots
from sardonyx.dialects.sx.numeric import convert, double, to_small_float
from sardonyx.dialects.sx.quantize_integer import IntegerConvolution, exact_product, product_dims
from sardonyx.dialects.sx.quantize_linear import integer_limits
from sardonyx.dialects.sx.quantized import (
    COLUMNS,
    ROWS,
    centred,
    check_channels,
    check_dtype_of,
    check_lines,
    check_scalar,
    per_channel,
    per_line,
    scalar,
    wrapped_int32,
)
from sardonyx.dialects.sx.support import check_dtype, is_unranked, require_equal

BYTES = (int8, uint8)


def requantized(sums: Array, scale: Array, zero: Array, target: DType) -> Array:
    """`round(sums * scale) + zero`, saturated: the product in float32, rounded to nearest even (floats: cast)."""
    scaled = np.asarray(sums, np.float32) * np.asarray(scale, np.float32)
    if target.is_float:
        return np.asarray(to_small_float(double(scaled) + double(zero), target))
    whole = np.where(np.isnan(scaled), 0.0, np.rint(double(scaled))) + double(zero)
    return np.asarray(convert(np.clip(whole, *integer_limits(target)), target))


@irdl_op_definition
class QLinearMatMulOp(SxOp):
    """The matrix product of quantised tensors, quantised.

    The sums of `(a - a_zero_point) (b - b_zero_point)`, of integers modulo 2^32, times `a_scale b_scale / y_scale`,
    rounded to nearest even, plus `y_zero_point`, saturated; scales and their product with the sums are float32. Shapes
    are those of NumPy's `matmul`; the parameters of `a` (`b`) are one number, or one per row (column), shaped as
    `sx.matmul_integer` has them.

    (C1) `a`, `b` and `y_zero_point`, whose dtype is the result's, are int8, uint8 or floats of 8 bits; a zero point has
    its operand's dtype. The scales have one dtype, float32, float16 or bfloat16. (C2) Neither operand has rank 0. (C3)
    The columns of `a` are as many as the rows of `b`. (C4) The leading axes broadcast. (C5) The parameters have the
    shapes above, those of the result are one number.
    """

    name = "sx.qlinear_matmul"
    a = operand_def()
    a_scale = operand_def()
    a_zero_point = operand_def()
    b = operand_def()
    b_scale = operand_def()
    b_zero_point = operand_def()
    y_scale = operand_def()
    y_zero_point = operand_def()
    output = result_def()
    ONNX: ClassVar = OnnxForm("QLinearMatMul", since=10)
    DTYPES: ClassVar[Sequence[DType]] = (*BYTES, *FLOATS_8)

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.a, self.DTYPES, "(C1)", "a")
        check_dtype(self, self.b, self.DTYPES, "(C1)", "b")
        target = check_dtype(self, self.y_zero_point, self.DTYPES, "(C1)", "y_zero_point")
        check_dtype_of(self, self.a_zero_point, self.a, "(C1)", "a_zero_point")
        check_dtype_of(self, self.b_zero_point, self.b, "(C1)", "b_zero_point")
        kind = check_dtype(self, self.a_scale, (float32, float16, bfloat16), "(C1)", "a_scale")
        for name in ("b_scale", "y_scale"):
            check_dtype(self, getattr(self, name), (kind,), "(C1)", name)
        dims = product_dims(self, self.a, self.b)
        for data, axis, names in (
            (self.a, ROWS, ("a_scale", "a_zero_point")),
            (self.b, COLUMNS, ("b_scale", "b_zero_point")),
        ):
            for name in names:
                check_lines(self, getattr(self, name), data, axis, "(C5)", name)
        for name in ("y_scale", "y_zero_point"):
            check_scalar(self, getattr(self, name), "(C5)", name)
        return [unranked_type(target) if dims is None else tensor_type(target, dims)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero = slots(arrays)
        left = centred(a, per_line(self, a_zero, a, ROWS, "a_zero_point"))
        right = centred(b, per_line(self, b_zero, b, COLUMNS, "b_zero_point"))
        sums = np.asarray(exact_product(self, left, right))
        if a.dtype.kind in "iu" and b.dtype.kind in "iu":
            sums = wrapped_int32(sums)
        rows = per_line(self, a_scale, a, ROWS, "a_scale").astype(np.float32)
        columns = per_line(self, b_scale, b, COLUMNS, "b_scale").astype(np.float32)
        if b.ndim == 1 and rows.ndim:
            rows = rows[..., 0]
        if a.ndim == 1 and columns.ndim > 1:
            columns = columns[..., 0, :]
        scale = rows * columns / scalar(self, y_scale, "y_scale").astype(np.float32)
        return [requantized(sums, scale, scalar(self, y_zero, "y_zero_point"), DType.of(y_zero.dtype))]


@irdl_op_definition
class QLinearConvOp(IntegerConvolution):
    """The convolution of quantised tensors, quantised.

    The sums of `(x - x_zero_point) (w - w_zero_point)` plus `b`, modulo 2^32, times `x_scale w_scale / y_scale`,
    rounded to nearest even, plus `y_zero_point`, saturated; scales and their product with the sums are float32.

    (C1) `x`, `w` and `y_zero_point`, whose dtype is the result's, are int8 or uint8; a zero point has its operand's
    dtype; the scales are float32, `b` is int32. (C2) to (C4) and (C6) are those of `IntegerConvolution`. (C5) The
    parameters of `w` are one number, or one for each of the M channels, the others one number; `b` has M elements.
    """

    name = "sx.qlinear_conv"
    x = operand_def()
    x_scale = operand_def()
    x_zero_point = operand_def()
    w = operand_def()
    w_scale = operand_def()
    w_zero_point = operand_def()
    y_scale = operand_def()
    y_zero_point = operand_def()
    b = opt_operand_def()
    output = result_def()
    ONNX: ClassVar = OnnxForm("QLinearConv", since=10)

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.x, self.DTYPES, "(C1)", "x")
        check_dtype(self, self.w, self.DTYPES, "(C1)", "w")
        target = check_dtype(self, self.y_zero_point, self.DTYPES, "(C1)", "y_zero_point")
        check_dtype_of(self, self.x_zero_point, self.x, "(C1)", "x_zero_point")
        check_dtype_of(self, self.w_zero_point, self.w, "(C1)", "w_zero_point")
        for name in ("x_scale", "w_scale", "y_scale"):
            check_dtype(self, getattr(self, name), (float32,), "(C1)", name)
        if self.b is not None:
            check_dtype(self, self.b, (int32,), "(C1)", "b")
        dims, channels = self._dims(self.x, self.w)
        for name in ("x_scale", "x_zero_point", "y_scale", "y_zero_point"):
            check_scalar(self, getattr(self, name), "(C5)", name)
        for name in ("w_scale", "w_zero_point"):
            check_channels(self, getattr(self, name), channels, "(C5)", name)
        self._check_bias(self.b)
        return [unranked_type(target) if dims is None else tensor_type(target, dims)]

    def _check_bias(self, bias: SSAValue | None) -> None:
        if bias is None or is_unranked(bias):
            return
        dims = dims_of(bias)
        if len(dims) != 1:
            raise self.fail(f"(C5) b has rank {len(dims)}, not 1")
        weights = None if is_unranked(self.w) else dims_of(self.w)[0]
        if weights is not None:
            require_equal(self, dims[0], weights, "(C5) b has another length than there are channels")

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, b = slots(arrays)
        sums = self._sums(x, x_zero, w, w_zero)
        if b is not None:
            if b.shape != (w.shape[0],):
                raise refuse(self, f"b of shape {list(b.shape)} for {w.shape[0]} channels")
            sums = sums + double(b).reshape(1, -1, *[1] * (sums.ndim - 2))
        weights = per_channel(self, w_scale, w.shape[0], w.ndim, 1, "w_scale")
        scale = scalar(self, x_scale, "x_scale") * weights / scalar(self, y_scale, "y_scale")
        zero = scalar(self, y_zero, "y_zero_point")
        return [requantized(wrapped_int32(sums), scale, zero, DType.of(y_zero.dtype))]
