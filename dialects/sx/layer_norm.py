"""Normalisation over trailing axes: `sx.layer_norm`, `sx.rms_norm`, `sx.lp_normalization`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import Shape, dims_of, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Proof, equal
from sardonyx.dialects.dtypes import BY_ONNX, FLOATS, DType, bfloat16, float32
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import refuse, run_axis, slots
from sardonyx.dialects.sx.norm import EPSILON, mean, moments
from sardonyx.dialects.sx.numeric import double, narrow
from sardonyx.dialects.sx.support import check_dtype, float_attr, format_dims, is_unranked, normalize_axis, same_dtype

STASH_TYPES = (float32, bfloat16)


def stash_dtype(op: SxOp, constraint: str) -> DType:
    """The dtype that `stash_type`, ONNX's number of one, means."""
    dtype = BY_ONNX.get(op.attr("stash_type"))
    if dtype is None or dtype not in STASH_TYPES:
        raise op.fail(f"{constraint} stash_type {op.attr('stash_type')} is neither 1 (float32) nor 16 (bfloat16)")
    return dtype


def check_fits(op: SxOp, operand: SSAValue, dims: Shape, constraint: str) -> None:
    """Refuse an operand that certainly doesn't broadcast to these dims."""
    if is_unranked(operand):
        return
    shape = dims_of(operand)
    ends = zip(reversed(shape), reversed(dims), strict=False)
    if len(shape) > len(dims) or any(s.static_value != 1 and equal(s, d) is Proof.REFUTED for s, d in ends):
        raise op.fail(f"{constraint} shape {format_dims(shape)} does not broadcast to {format_dims(dims)}")


def fitted(op: SxOp, array: Array, shape: Sequence[int]) -> Array:
    """An operand of a run as float64, broadcast to the shape; raises ExecutionError where it doesn't go."""
    try:
        return np.broadcast_to(double(array), shape)
    except ValueError:
        raise refuse(op, f"shape {list(array.shape)} does not broadcast to {list(shape)}") from None


@irdl_op_definition
class LayerNormOp(SxOp):
    """`(x - mean) / sqrt(variance + epsilon) * scale + bias` over the axes from `axis` on, and mean and 1 / sqrt(…).

    Computes in float64 and rounds once: to the dtype of `x`, and for the other two results to that of `stash_type`.

    (C1) The operands have the same dtype, one of `DTYPES`. (C2) `axis` is in [-rank, rank). (C3) `scale` and `bias`
    broadcast to the shape of `x`. (C4) `stash_type` is 1 (float32) or 16 (bfloat16).
    """

    name = "sx.layer_norm"
    x = operand_def()
    scale = operand_def()
    bias = opt_operand_def()
    axis = opt_prop_def(IntegerAttr)
    epsilon = opt_prop_def(FloatAttr)
    stash_type = opt_prop_def(IntegerAttr)
    output = result_def()
    mean = result_def()
    inv_std_dev = result_def()
    ONNX: ClassVar = OnnxForm("LayerNormalization", since=17)
    DEFAULTS: ClassVar = {"axis": -1, "epsilon": EPSILON, "stash_type": 1}
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def infer(self) -> Sequence[Attribute]:
        dtype = same_dtype(self, self.operands, "(C1)")
        check_dtype(self, self.x, self.DTYPES, "(C1)")
        stash = stash_dtype(self, "(C4)")
        if is_unranked(self.x):
            return [unranked_type(dtype), unranked_type(stash), unranked_type(stash)]
        dims = dims_of(self.x)
        axis = normalize_axis(self, self.attr("axis"), len(dims), "(C2)")
        for operand in self.operands[1:]:
            check_fits(self, operand, dims, "(C3)")
        statistics = tensor_type(stash, [*dims[:axis], *[1] * (len(dims) - axis)])
        return [tensor_type(dtype, dims), statistics, statistics]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, scale, bias = slots(arrays)
        exact = double(x)
        axis = run_axis(self, self.attr("axis"), exact.ndim)
        center, spread = moments(exact, range(axis, exact.ndim))
        inverse = 1.0 / np.sqrt(spread + float_attr(self, "epsilon"))
        result = (exact - center) * inverse * fitted(self, scale, exact.shape)
        if bias is not None:
            result = result + fitted(self, bias, exact.shape)
        stash = stash_dtype(self, "(C4)").numpy
        return [narrow(result, x.dtype), narrow(center, stash), narrow(inverse, stash)]


@irdl_op_definition
class RMSNormOp(SxOp):
    """`x / sqrt(mean(x * x) + epsilon) * scale`, the mean over the axes from `axis` on.

    Computes in float64 and rounds once, to the dtype of `scale`, whatever `stash_type` says.

    (C1) The dtypes are some of `DTYPES`. (C2) `axis` is in [-rank, rank). (C3) `scale` broadcasts to the shape of `x`.
    (C4) `stash_type` is 1 (float32) or 16 (bfloat16).
    """

    name = "sx.rms_norm"
    x = operand_def()
    scale = operand_def()
    axis = opt_prop_def(IntegerAttr)
    epsilon = opt_prop_def(FloatAttr)
    stash_type = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("RMSNormalization", since=23)
    DEFAULTS: ClassVar = {"axis": -1, "epsilon": EPSILON, "stash_type": 1}
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.x, self.DTYPES, "(C1)")
        dtype = check_dtype(self, self.scale, self.DTYPES, "(C1)")
        stash_dtype(self, "(C4)")
        if is_unranked(self.x):
            return [unranked_type(dtype)]
        dims = dims_of(self.x)
        normalize_axis(self, self.attr("axis"), len(dims), "(C2)")
        check_fits(self, self.scale, dims, "(C3)")
        return [tensor_type(dtype, dims)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, scale = slots(arrays)
        exact = double(x)
        axis = run_axis(self, self.attr("axis"), exact.ndim)
        power = mean(np.square(exact), range(axis, exact.ndim))
        result = exact / np.sqrt(power + float_attr(self, "epsilon")) * fitted(self, scale, exact.shape)
        return [narrow(result, scale.dtype)]


@irdl_op_definition
class LpNormalizationOp(SxOp):
    """`x / norm`, the norm of order `p` along `axis`; 0 where the norm is 0. In float64, rounded once.

    (C1) The dtype is one of `DTYPES`. (C2) `axis` is in [-rank, rank). (C3) `p` is 1 or 2.
    """

    name = "sx.lp_normalization"
    x = operand_def()
    axis = opt_prop_def(IntegerAttr)
    p = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("LpNormalization", since=1)
    DEFAULTS: ClassVar = {"axis": -1, "p": 2}
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.x, self.DTYPES, "(C1)")
        if not is_unranked(self.x):
            normalize_axis(self, self.attr("axis"), len(dims_of(self.x)), "(C2)")
        if self.attr("p") not in (1, 2):
            raise self.fail(f"(C3) p is {self.attr('p')}, neither 1 nor 2")
        return [self.x.type]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = slots(arrays)
        exact = double(x)
        axis = run_axis(self, self.attr("axis"), exact.ndim)
        magnitude = np.abs(exact)
        if self.attr("p") == 1:
            norm = magnitude.sum(axis, keepdims=True)
        else:
            # Scaled by the largest element, so that no square overflows or vanishes.
            largest = magnitude.max(axis, keepdims=True, initial=0.0)
            safe = np.where((largest > 0) & np.isfinite(largest), largest, 1.0)
            norm = safe * np.sqrt(np.square(exact / safe).sum(axis, keepdims=True))
        return [narrow(np.where(norm == 0, 0.0, exact / norm), x.dtype)]
