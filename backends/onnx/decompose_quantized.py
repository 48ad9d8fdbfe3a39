"""Quantisation in opsets that lack a dtype, an attribute or blocks: by the operators that its definition names."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.backends.onnx.decompose import Values, decomposes
from sardonyx.backends.onnx.nodes import schema_of
from sardonyx.backends.onnx.rewrite import Expansion, rank
from sardonyx.dialects.attributes import dims_of, dtype_of, static_shape
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import DType, float32, float64, int32, int64, uint8
from sardonyx.dialects.sx.constant import dense_attribute
from sardonyx.dialects.sx.quantize_linear import LinearQuantization, integer_limits
from sardonyx.dialects.sx.support import is_unranked


@decomposes("quantize_linear")
def _quantize(op: Any, b: Expansion, opset: int) -> Values:
    """First operands of one dtype and a zero point that states the result's, then the definition."""
    x, scale, zero, target, precision = op.x, op.y_scale, op.y_zero_point, op.target(), op.division_dtype()
    schema = schema_of("", "QuantizeLinear", opset)
    if is_unranked(x) or is_unranked(scale) or schema is None:
        return None
    kept = {name: op.attr(name) for name in ("axis", "block_size", "saturate")}
    whole = {dtype_of(x), dtype_of(scale)} == {int32}
    if not whole and precision != float64 and {dtype_of(x), dtype_of(scale)} != {precision}:
        x, scale = b.cast(x, precision), b.cast(scale, precision)
        return [b("quantize_linear", x, scale, zero, output_dtype=op.attr("output_dtype"), **kept)]
    if zero is None and target != uint8 and "output_dtype" not in schema.attributes:
        return [b("quantize_linear", x, scale, _zeros(b, scale, target), **kept)]
    factor = b.cast(_spread(op, b, x, scale), precision)
    quotient = b("div", b.cast(x, precision), factor)
    added = None if zero is None else _spread(op, b, x, zero)
    if target.is_float:
        total = quotient if added is None else b("add", quotient, b.cast(added, precision))
        return [b("cast", total, to=target, saturate=kept["saturate"])]
    wide = precision if precision == float64 else float32
    total = b.cast(b("round", quotient), wide)
    if added is not None:
        total = b("add", total, b.cast(added, wide))
    low, high = (b.constant(float(v), wide) for v in integer_limits(target))
    return [b.cast(b("clip", total, low, high), target)]


@decomposes("dequantize_linear")
def _dequantize(op: Any, b: Expansion, opset: int) -> Values:
    """First a scale of float32 and a cast of the result, then the definition."""
    x, scale, zero = op.x, op.x_scale, op.x_zero_point
    if is_unranked(x) or is_unranked(scale):
        return None
    target = dtype_of(op.output)
    if dtype_of(scale) != float32 or target != float32:
        wide = b("dequantize_linear", x, b.cast(scale, float32), zero, axis=op.attr("axis"),
                 block_size=op.attr("block_size"))  # fmt: skip
        return [b.cast(wide, target)]
    if op.attr("output_dtype") is not None:
        return [b("dequantize_linear", x, scale, zero, axis=op.attr("axis"), block_size=op.attr("block_size"))]
    centred = b.cast(x, float64 if dtype_of(x) == int32 and zero is not None else float32)
    if zero is not None:
        centred = b("sub", centred, b.cast(_spread(op, b, x, zero), dtype_of(centred)))
    return [b("mul", b.cast(centred, float32), _spread(op, b, x, scale))]


@decomposes("qlinear_matmul")
def _qlinear_matmul(op: Any, b: Expansion, opset: int) -> Values:
    """Scales of 16 bits before opset 21, whose product is float32 anyway."""
    if dtype_of(op.a_scale) == float32:
        return None
    scales = [b.cast(v, float32) for v in (op.a_scale, op.b_scale, op.y_scale)]
    return [
        b("qlinear_matmul", op.a, scales[0], op.a_zero_point, op.b, scales[1], op.b_zero_point, scales[2],
          op.y_zero_point)
    ]  # fmt: skip


def _zeros(b: Expansion, like: SSAValue, dtype: DType) -> SSAValue:
    shape = static_shape(like)
    if shape is not None:
        return b.constant(np.zeros(shape), dtype)
    return b("constant_of_shape", b("shape", like), value=dense_attribute(np.zeros(1, dtype.numpy)))


def _spread(op: LinearQuantization, b: Expansion, x: SSAValue, parameter: SSAValue) -> SSAValue:
    """A scale or zero point, so that it broadcasts to `x`."""
    dims, count = dims_of(parameter), rank(x)
    if all(equal(d, Dim.of(1)) is Proof.PROVED for d in dims):
        return parameter if not dims else b("reshape", parameter, b.constant([], int64))
    axis = op.channel_axis(count)
    block = op.attr("block_size")
    if not block:
        return b("reshape", parameter, b.constant([-1 if i == axis else 1 for i in range(count)], int64))
    size = dims_of(x)[axis].static_value
    if size is not None:
        return b("gather", parameter, b.constant(np.arange(size) // block, int64), axis=axis)
    extent = b("squeeze", b("shape", x, start=axis, end=axis + 1))
    places = b("range", b.constant(0, int64), extent, b.constant(1, int64))
    return b("gather", parameter, b("div", places, b.constant(block, int64)), axis=axis)
