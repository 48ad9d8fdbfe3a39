"""Numbers as small integers or floats times a scale: `sx.quantize_linear`, `sx.dequantize_linear`,
`sx.dynamic_quantize_linear`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import ml_dtypes
import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import Shape, dims_of, dtype_of, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import (
    FLOATS_8,
    SMALL_INTEGERS,
    DType,
    bfloat16,
    float4e2m1,
    float6e2m3,
    float6e3m2,
    float8e8m0,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    uint8,
    uint16,
)
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import refuse, slots
from sardonyx.dialects.sx.numeric import convert, double, narrow, to_small_float
from sardonyx.dialects.sx.support import check_dtype, format_dims, is_unranked, normalize_axis, require_equal
from sardonyx.errors import InferenceError, InvalidArgumentError

QUANTIZED = (int8, uint8, int16, uint16, *SMALL_INTEGERS, float4e2m1, float6e2m3, float6e3m2, *FLOATS_8)
"""The dtypes of quantised data."""
REAL = (float32, float16, bfloat16)


def integer_limits(dtype: DType) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype."""
    info = ml_dtypes.iinfo(dtype.numpy) if dtype.bits < 8 else np.iinfo(dtype.numpy)
    return int(info.min), int(info.max)


class LinearQuantization(SxOp):
    """What both directions share: where a scale and a zero point stand.

    A scale of one element is for all of the tensor; a vector has one for each index along `axis`; with a `block_size` B
    a tensor of the data's rank has one for each block of B along `axis` (the last block may be smaller).

    (C2) The zero point has the scale's shape. (C3) The scale is one element, or fits the data as said above. (C4)
    `block_size` is not negative. (C5) `axis` is in [-rank, rank) where it matters.
    """

    axis = opt_prop_def(IntegerAttr)
    block_size = opt_prop_def(IntegerAttr)
    DEFAULTS: ClassVar = {"axis": 1, "block_size": 0}

    def _check(self, data: SSAValue, scale: SSAValue, zero: SSAValue | None) -> None:
        block = self.attr("block_size")
        if block < 0:
            raise self.fail(f"(C4) block_size is {block}")
        if zero is not None and not is_unranked(zero) and not is_unranked(scale):
            ours, theirs = dims_of(zero), dims_of(scale)
            single = _one(ours) is not Proof.REFUTED and _one(theirs) is not Proof.REFUTED
            fits = len(ours) == len(theirs) and all(
                equal(a, b) is not Proof.REFUTED for a, b in zip(ours, theirs, strict=True)
            )
            if not single and not fits:
                raise self.fail(
                    f"(C2) the zero point of shape {format_dims(ours)} goes with a scale of {format_dims(theirs)}"
                )
        if not is_unranked(data) and not is_unranked(scale):
            self._fits(dims_of(data), dims_of(scale))

    def _fits(self, data: Shape, scale: Shape) -> None:
        """Refuse a scale that does not fit the data."""
        if _one(scale) is Proof.PROVED:
            return
        block = self.attr("block_size")
        shown = f"a scale of shape {format_dims(scale)} for data of {format_dims(data)}"
        if not block:
            if len(scale) != 1:
                raise self.fail(f"(C3) {shown}: without block_size it is one element or a vector")
            if _one(scale) is Proof.UNKNOWN and not -len(data) <= self.attr("axis") < len(data):
                return  # one element, or the run refuses it
            axis = self.channel_axis(len(data))
            if _one(scale) is Proof.REFUTED or scale[0].static_value is not None:
                require_equal(self, scale[0], data[axis], f"(C3) {shown} along axis {axis}: the extents differ")
            return
        if len(scale) != len(data):
            raise self.fail(f"(C3) {shown}: with block_size both have one rank")
        axis = self.channel_axis(len(data))
        for i, (have, of) in enumerate(zip(scale, data, strict=True)):
            wanted = of.ceildiv(block) if i == axis else of
            require_equal(self, have, wanted, f"(C3) {shown} in blocks of {block} along axis {axis}: axis {i} differs")

    def channel_axis(self, rank: int) -> int:
        """The axis of the scales, not negative."""
        return normalize_axis(self, self.attr("axis"), rank, "(C5)")

    def spread(self, parameter: Array, shape: tuple[int, ...], what: str) -> Array:
        """A scale or zero point, so that it broadcasts to data of that shape; raises ExecutionError if it cannot."""
        if parameter.size == 1:
            return parameter.reshape(())
        try:
            self._fits(tuple(map(Dim.of, shape)), tuple(map(Dim.of, parameter.shape)))
            axis = self.channel_axis(len(shape))
        except InferenceError as error:
            raise refuse(self, f"{what}: {error.message}") from None
        if self.attr("block_size"):
            return np.take(parameter, np.arange(shape[axis]) // self.attr("block_size"), axis)
        return parameter.reshape([len(parameter) if i == axis else 1 for i in range(len(shape))])

    def stated_dtype(self, name: str, allowed: Sequence[DType], constraint: str) -> DType | None:
        """The dtype that a property states."""
        found = self.properties.get(name)
        if found is None:
            return None
        try:
            dtype = DType.of(found)
        except InvalidArgumentError:
            raise self.fail(f"{constraint} {name} {found} is no dtype") from None
        if dtype not in allowed:
            raise self.fail(f"{constraint} {name} is {dtype}; allowed: {', '.join(map(str, allowed))}")
        return dtype


def _one(dims: Shape) -> Proof:
    """Whether a tensor of these extents has one element."""
    found = [equal(d, Dim.of(1)) for d in dims]
    if Proof.REFUTED in found:
        return Proof.REFUTED
    return Proof.UNKNOWN if Proof.UNKNOWN in found else Proof.PROVED


def _like(value: SSAValue, dtype: DType) -> Attribute:
    return unranked_type(dtype) if is_unranked(value) else tensor_type(dtype, dims_of(value))


@irdl_op_definition
class QuantizeLinearOp(LinearQuantization):
    """`saturate(round(x / y_scale) + y_zero_point)`, rounded to nearest even.

    The result has the dtype of `y_zero_point`, else `output_dtype`, else uint8. The division is done in `precision`,
    else in the dtype of the scale (float8e8m0: in that of `x`; int32: as exact as float64), and rounds once. Integers
    saturate, and NaN becomes the zero point; for floats the quotient plus the zero point is cast as `sx.cast` does,
    which `saturate` is for.

    (C1) `x` is a float of 16 or 32 bits or int32, the scale also float8e8m0, the result one of `QUANTIZED`; `precision`
    is a float of 16 or 32 bits; a zero point and `output_dtype` agree. (C2) to (C5) are those of `LinearQuantization`.
    """

    name = "sx.quantize_linear"
    x = operand_def()
    y_scale = operand_def()
    y_zero_point = opt_operand_def()
    output_dtype = opt_prop_def(Attribute)
    precision = opt_prop_def(Attribute)
    saturate = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("QuantizeLinear", since=13)
    DEFAULTS: ClassVar = {"axis": 1, "block_size": 0, "saturate": True}
    DTYPES: ClassVar[Sequence[DType]] = (*REAL, int32)

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.x, self.DTYPES, "(C1)", "x")
        check_dtype(self, self.y_scale, (*self.DTYPES, float8e8m0), "(C1)", "y_scale")
        self.stated_dtype("precision", REAL, "(C1)")
        self._check(self.x, self.y_scale, self.y_zero_point)
        return [_like(self.x, self.target())]

    def target(self) -> DType:
        """The dtype of the result."""
        stated = self.stated_dtype("output_dtype", QUANTIZED, "(C1)")
        if self.y_zero_point is None:
            return stated or uint8
        found = check_dtype(self, self.y_zero_point, QUANTIZED, "(C1)", "y_zero_point")
        if stated is not None and stated != found:
            raise self.fail(f"(C1) output_dtype is {stated}, but the zero point has dtype {found}")
        return found

    def division_dtype(self) -> DType:
        """The dtype in which the quotient is rounded."""
        stated = self.stated_dtype("precision", REAL, "(C1)")
        if stated is not None:
            return stated
        scale, data = dtype_of(self.y_scale), dtype_of(self.x)
        if scale == int32 or (scale == float8e8m0 and data == int32):
            return float64 if scale == int32 else float32
        return data if scale == float8e8m0 else scale

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, scale, zero = slots(arrays)
        precision, target = self.division_dtype(), self.target()
        factor = double(convert(self.spread(scale, x.shape, "y_scale"), precision))
        # The quotient of two numbers of a 16- or 32-bit float, rounded to float64 and then to that, is rounded right.
        quotient = double(narrow(double(convert(x, precision)) / factor, precision))
        added = np.float64(0) if zero is None else double(self.spread(zero, x.shape, "y_zero_point"))
        if target.is_float:
            return [np.asarray(to_small_float(quotient + added, target, self.attr("saturate")))]
        whole = np.where(np.isnan(quotient), 0.0, np.rint(quotient)) + added
        return [np.asarray(convert(np.clip(whole, *integer_limits(target)), target))]


@irdl_op_definition
class DequantizeLinearOp(LinearQuantization):
    """`(x - x_zero_point) * x_scale` in the dtype `output_dtype`, else that of the scale.

    The difference is rounded to float32 if it is no such number, the product once, to the result's dtype.

    (C1) `x` is one of `QUANTIZED` or int32, the zero point has its dtype, the scale is a float of 16 or 32 bits or
    float8e8m0, the result a float of 16 or 32 bits (with a scale of float8e8m0 it has to be stated). (C2) to (C5) are
    those of `LinearQuantization`.
    """

    name = "sx.dequantize_linear"
    x = operand_def()
    x_scale = operand_def()
    x_zero_point = opt_operand_def()
    output_dtype = opt_prop_def(Attribute)
    output = result_def()
    ONNX: ClassVar = OnnxForm("DequantizeLinear", since=13)
    DTYPES: ClassVar[Sequence[DType]] = (*QUANTIZED, int32)

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.x, self.DTYPES, "(C1)", "x")
        scale = check_dtype(self, self.x_scale, (*REAL, float8e8m0), "(C1)", "x_scale")
        if self.x_zero_point is not None and dtype_of(self.x_zero_point) != dtype:
            raise self.fail(f"(C1) x_zero_point has dtype {dtype_of(self.x_zero_point)}, x {dtype}")
        target = self.stated_dtype("output_dtype", REAL, "(C1)") or scale
        if target == float8e8m0:
            raise self.fail("(C1) with a scale of float8e8m0 output_dtype has to be stated")
        self._check(self.x, self.x_scale, self.x_zero_point)
        return [_like(self.x, target)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, scale, zero = slots(arrays)
        target = self.stated_dtype("output_dtype", REAL, "(C1)") or DType.of(scale.dtype)
        centred = double(x)
        if zero is not None:
            centred = centred - double(self.spread(zero, x.shape, "x_zero_point"))
        factor = double(self.spread(scale, x.shape, "x_scale"))
        return [np.asarray(narrow(double(narrow(centred, np.dtype(np.float32))) * factor, target))]


@irdl_op_definition
class DynamicQuantizeLinearOp(SxOp):
    """`x` as uint8 (`y`), with the `y_scale` and `y_zero_point` that its least and greatest elements give.

    The range is that of `x` and 0; `y_scale = (max - min) / 255`, the zero point `round(clip(-min / y_scale, 0, 255))`,
    `y = clip(round(x / y_scale) + y_zero_point, 0, 255)`, rounded to nearest even, in float32. Where all elements are
    0, or there are none, the scale is 1 and the zero point 0.

    (C1) `x` is float32.
    """

    name = "sx.dynamic_quantize_linear"
    x = operand_def()
    y = result_def()
    y_scale = result_def()
    y_zero_point = result_def()
    ONNX: ClassVar = OnnxForm("DynamicQuantizeLinear", since=11)
    DTYPES: ClassVar[Sequence[DType]] = (float32,)

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.x, self.DTYPES, "(C1)", "x")
        return [_like(self.x, uint8), tensor_type(float32, []), tensor_type(uint8, [])]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = slots(arrays)
        low = np.minimum(np.float32(0), x.min(initial=np.float32(0)))
        high = np.maximum(np.float32(0), x.max(initial=np.float32(0)))
        scale = np.float32((high - low) / np.float32(255))
        if scale == 0:
            scale = np.float32(1)
        zero = np.rint(np.clip(-low / scale, np.float32(0), np.float32(255)))
        zero = np.float32(0) if np.isnan(zero) else zero
        whole = np.where(np.isnan(x), np.float32(0), np.rint(x / scale)) + zero
        y = np.clip(whole, 0, 255).astype(np.uint8)
        return [y, np.asarray(scale), np.asarray(zero.astype(np.uint8))]
