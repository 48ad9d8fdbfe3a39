"""Products of 8-bit integers that stay integers: `sx.matmul_integer`, `sx.conv_integer`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import Shape, dims_of, tensor_type, unranked_type
from sardonyx.dialects.base import SEGMENTS, OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, divides
from sardonyx.dialects.dtypes import DType, int8, int32, uint8
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.conv import conv_windows, correlate
from sardonyx.dialects.sx.extents import refuse, slots
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
from sardonyx.dialects.sx.support import broadcast_dims, check_dtype, format_dims, is_unranked, require_equal
from sardonyx.dialects.sx.windows import window_extents

BYTES = (int8, uint8)


def product_dims(op: SxOp, a: SSAValue, b: SSAValue) -> Shape | None:
    """The extents of NumPy's `matmul`, None where a rank is unknown; (C2) to (C4) are those of `sx.matmul`."""
    if is_unranked(a) or is_unranked(b):
        return None
    left, right = dims_of(a), dims_of(b)
    shown = f"shapes {format_dims(left)} and {format_dims(right)}"
    if not left or not right:
        raise op.fail(f"(C2) {shown}: a scalar is no matrix")
    require_equal(op, left[-1], right[max(len(right) - 2, 0)], f"(C3) {shown}: the inner extents differ")
    lead = broadcast_dims(op, [left[:-2], right[:-2]], "(C4)")
    rows: Shape = left[-2:-1] if len(left) > 1 else ()
    columns: Shape = right[-1:] if len(right) > 1 else ()
    return (*lead, *rows, *columns)


def exact_product(op: SxOp, a: Array, b: Array) -> Array:
    """The matrix product of float64 that hold integers; raises ExecutionError where the shapes don't fit."""
    try:
        return np.matmul(a, b)
    except ValueError:
        raise refuse(op, f"shapes {list(a.shape)} and {list(b.shape)} cannot be multiplied") from None


@irdl_op_definition
class MatMulIntegerOp(SxOp):
    """The matrix product of 8-bit integers less their zero points, as int32: `(a - a_zero_point) (b - b_zero_point)`.

    Shapes are those of NumPy's `matmul`. A zero point that is absent is 0; it is one number, or one per row of `a` (per
    column of `b`): a vector, or a tensor of its operand's rank with extent 1 along the other of the last two axes.
    Sums wrap around in int32.

    (C1) `a` and `b` are int8 or uint8; a zero point has its operand's dtype. (C2) Neither operand has rank 0. (C3) The
    columns of `a` are as many as the rows of `b`. (C4) The leading axes broadcast. (C5) A zero point has one of the
    shapes above.
    """

    name = "sx.matmul_integer"
    irdl_options = SEGMENTS
    a = operand_def()
    b = operand_def()
    a_zero_point = opt_operand_def()
    b_zero_point = opt_operand_def()
    output = result_def()
    ONNX: ClassVar = OnnxForm("MatMulInteger", since=10)
    DTYPES: ClassVar[Sequence[DType]] = BYTES

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.a, self.DTYPES, "(C1)", "a")
        check_dtype(self, self.b, self.DTYPES, "(C1)", "b")
        check_dtype_of(self, self.a_zero_point, self.a, "(C1)", "a_zero_point")
        check_dtype_of(self, self.b_zero_point, self.b, "(C1)", "b_zero_point")
        dims = product_dims(self, self.a, self.b)
        check_lines(self, self.a_zero_point, self.a, ROWS, "(C5)", "a_zero_point")
        check_lines(self, self.b_zero_point, self.b, COLUMNS, "(C5)", "b_zero_point")
        return [unranked_type(int32) if dims is None else tensor_type(int32, dims)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        a, b, a_zero, b_zero = slots(arrays)
        left = centred(a, None if a_zero is None else per_line(self, a_zero, a, ROWS, "a_zero_point"))
        right = centred(b, None if b_zero is None else per_line(self, b_zero, b, COLUMNS, "b_zero_point"))
        return [wrapped_int32(np.asarray(exact_product(self, left, right)))]


class IntegerConvolution(SxOp):
    """What the convolutions of integers share: the attributes of `sx.conv`, with the same meaning.

    (C2) `x` and `w` have the same rank, at least 3. (C3) As for `sx.conv`. (C4) `group` is positive, `x` has `group`
    times the channels of `w`, and M, the extent of `w`'s first axis, is a multiple of `group`. (C6) A window fits into
    the padded data. The padding counts as the zero point of `x`.
    """

    auto_pad = opt_prop_def(StringAttr)
    dilations = opt_prop_def(DenseArrayBase)
    group = opt_prop_def(IntegerAttr)
    kernel_shape = opt_prop_def(DenseArrayBase)
    pads = opt_prop_def(DenseArrayBase)
    strides = opt_prop_def(DenseArrayBase)
    DEFAULTS: ClassVar = {"auto_pad": "NOTSET", "group": 1}
    DTYPES: ClassVar[Sequence[DType]] = BYTES

    def _dims(self, x: SSAValue, w: SSAValue) -> tuple[Shape | None, Dim | None]:
        """The result's extents and M, None where they are not known."""
        group = self.attr("group")
        if group < 1:
            raise self.fail(f"(C4) group is {group}")
        if is_unranked(x) or is_unranked(w):
            return None, None if is_unranked(w) or not dims_of(w) else dims_of(w)[0]
        data, kernel = dims_of(x), dims_of(w)
        if len(data) < 3 or len(data) != len(kernel):
            raise self.fail(f"(C2) shapes {format_dims(data)} and {format_dims(kernel)} need one rank, at least 3")
        windows = conv_windows(self, kernel[2:])
        require_equal(self, data[1], kernel[1] * group, f"(C4) the channels of x and of w times group {group} differ")
        if divides(group, kernel[0]) is Proof.REFUTED:
            raise self.fail(f"(C4) {kernel[0]} output channels are no multiple of group {group}")
        return (data[0], kernel[0], *window_extents(self, windows, data[2:], "(C6)")), kernel[0]

    def _sums(self, x: Array, x_zero: Array | None, w: Array, w_zero: Array | None) -> Array:
        """The sums of products, whole numbers in float64."""
        if x.ndim < 3 or x.ndim != w.ndim:
            raise refuse(self, f"shapes {list(x.shape)} and {list(w.shape)} are no operands of a convolution")
        windows = conv_windows(self, w.shape[2:])
        if x_zero is not None:
            x_zero = scalar(self, x_zero, "x_zero_point")
        if w_zero is not None:
            w_zero = per_channel(self, w_zero, w.shape[0], w.ndim, 0, "w_zero_point")
        return correlate(self, centred(x, x_zero), centred(w, w_zero), windows)


@irdl_op_definition
class ConvIntegerOp(IntegerConvolution):
    """The convolution of 8-bit integers less their zero points, as int32; sums wrap around.

    A zero point that is absent is 0.

    (C1) `x` and `w` are int8 or uint8; a zero point has its operand's dtype. (C2) to (C4) and (C6) are those of
    `IntegerConvolution`. (C5) `x_zero_point` is one number, `w_zero_point` one, or one for each of the M channels.
    """

    name = "sx.conv_integer"
    irdl_options = SEGMENTS
    x = operand_def()
    w = operand_def()
    x_zero_point = opt_operand_def()
    w_zero_point = opt_operand_def()
    output = result_def()
    ONNX: ClassVar = OnnxForm("ConvInteger", since=10)

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.x, self.DTYPES, "(C1)", "x")
        check_dtype(self, self.w, self.DTYPES, "(C1)", "w")
        check_dtype_of(self, self.x_zero_point, self.x, "(C1)", "x_zero_point")
        check_dtype_of(self, self.w_zero_point, self.w, "(C1)", "w_zero_point")
        dims, channels = self._dims(self.x, self.w)
        check_scalar(self, self.x_zero_point, "(C5)", "x_zero_point")
        check_channels(self, self.w_zero_point, channels, "(C5)", "w_zero_point")
        return [unranked_type(int32) if dims is None else tensor_type(int32, dims)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, w, x_zero, w_zero = slots(arrays)
        return [wrapped_int32(self._sums(x, x_zero, w, w_zero))]
