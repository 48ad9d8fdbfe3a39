"""Quantised operators of com.microsoft, as integer products, or as ops on the real values between two quantisations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dtypes import float32
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.adapters.contrib_matmul import transposed
from sardonyx.frontend.onnx.contrib import contrib
from sardonyx.frontend.onnx.node import NodeContext, rank_of


def real(n: NodeContext, x: int) -> SSAValue:
    """The real values of the input `x`, whose scale and zero point follow it."""
    return n("dequantize_linear", n.required(x), n.required(x + 1), n.input(x + 2))


def quantized(n: NodeContext, y: SSAValue, scale: int, like: SSAValue) -> SSAValue:
    """Real values by the scale and zero point of these inputs; without the latter 0 of another value's dtype."""
    zero = n.input(scale + 1)
    return n("quantize_linear", y, n.required(scale), n.constant(0, dtype_of(like)) if zero is None else zero)


@contrib("QLinearAdd", "QLinearMul")
def _binary(n: NodeContext) -> Sequence[SSAValue]:
    op = n.node.op_type.removeprefix("QLinear").lower()
    return [quantized(n, n(op, real(n, 0), real(n, 3)), 6, n.required(0))]


@contrib("QLinearSigmoid")
def _sigmoid(n: NodeContext) -> Sequence[SSAValue]:
    return [quantized(n, n("sigmoid", real(n, 0)), 3, n.required(0))]


@contrib("QLinearLeakyRelu")
def _leaky_relu(n: NodeContext) -> Sequence[SSAValue]:
    return [quantized(n, n("leaky_relu", real(n, 0), alpha=n.attr("alpha", 0.01)), 3, n.required(0))]


@contrib("QLinearSoftmax")
def _softmax(n: NodeContext) -> Sequence[SSAValue]:
    """Before opset 13 the operand was taken as a matrix, cut in two at `axis`."""
    x, axis = real(n, 0), n.attr("axis", -1)
    rank = rank_of(x)
    if n.attr("opset", 13) < 13 and (rank is None or axis not in (-1, rank - 1)):
        flat = n("softmax", n("flatten", x, axis=axis), axis=-1)
        return [quantized(n, n("reshape", flat, n("shape", x)), 3, n.required(0))]
    return [quantized(n, n("softmax", x, axis=axis), 3, n.required(0))]


@contrib("QLinearWhere")
def _where(n: NodeContext) -> Sequence[SSAValue]:
    return [quantized(n, n("where", n.required(0), real(n, 1), real(n, 4)), 7, n.required(1))]


@contrib("QLinearConcat")
def _concat(n: NodeContext) -> Sequence[SSAValue]:
    """The result's scale and zero point, then each operand with its own."""
    if len(n.inputs) < 5 or len(n.inputs) % 3 != 2:
        raise InvalidArgumentError(f"it has {len(n.inputs)} inputs, not two and three for each operand")
    parts = [real(n, i) for i in range(2, len(n.inputs), 3)]
    return [quantized(n, n("concat", parts, axis=n.attr("axis")), 0, n.required(2))]


@contrib("QLinearReduceMean")
def _reduce_mean(n: NodeContext) -> Sequence[SSAValue]:
    axes = n.attr("axes")
    at = None if axes is None else n.constant(axes)
    out = n("reduce_mean", real(n, 0), at, keepdims=bool(n.attr("keepdims", 1)))
    return [quantized(n, out, 3, n.required(0))]


def _channels(n: NodeContext, x: SSAValue, last: bool) -> SSAValue:
    """An image whose channels are last, with them second; or (`last`) back."""
    rank = rank_of(x)
    if rank is None or rank < 3:
        raise n.unsupported("an image has an unknown rank, or one below 3")
    order = (0, *range(2, rank), 1) if last else (0, rank - 1, *range(1, rank - 1))
    return n("transpose", x, perm=order)


_POOL = ("auto_pad", "ceil_mode", "count_include_pad", "dilations", "kernel_shape", "pads", "strides")


def _pool_attributes(n: NodeContext) -> dict[str, Any]:
    flags = ("ceil_mode", "count_include_pad")
    return {a: bool(n.attr(a)) if a in flags else n.attr(a) for a in _POOL if n.has(a)}


@contrib("QLinearAveragePool")
def _average_pool(n: NodeContext) -> Sequence[SSAValue]:
    x, moved = real(n, 0), bool(n.attr("channels_last", 0))
    out = n("average_pool", _channels(n, x, False) if moved else x, **_pool_attributes(n))
    return [quantized(n, _channels(n, out, True) if moved else out, 3, n.required(0))]


@contrib("QLinearGlobalAveragePool")
def _global_average_pool(n: NodeContext) -> Sequence[SSAValue]:
    x, moved = real(n, 0), bool(n.attr("channels_last", 0))
    out = n("global_average_pool", _channels(n, x, False) if moved else x)
    return [quantized(n, _channels(n, out, True) if moved else out, 3, n.required(0))]


@contrib("QLinearConv")
def _conv(n: NodeContext) -> Sequence[SSAValue]:
    """That of ai.onnx, where channels may be last (those of the weights are not); zero points may be left out."""
    x, w, moved = n.required(0), n.required(3), bool(n.attr("channels_last", 0))
    zeros = {i: n.input(i) for i in (2, 5, 7)}
    for index, like in ((2, x), (5, w), (7, x)):
        zeros[index] = n.constant(0, dtype_of(like)) if zeros[index] is None else zeros[index]
    names = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")
    out = n(
        "qlinear_conv", _channels(n, x, False) if moved else x, n.required(1), zeros[2], w, n.required(4), zeros[5],
        n.required(6), zeros[7], n.input(8), **{name: n.attr(name) for name in names if n.has(name)},
    )  # fmt: skip
    return [_channels(n, out, True) if moved else out]


@contrib("NhwcMaxPool")
def _nhwc_max_pool(n: NodeContext) -> Sequence[SSAValue]:
    out = n("max_pool", _channels(n, n.required(0), False), **_pool_attributes(n))
    return [_channels(n, out, True)]


@contrib("QuantizeLinear")
def _quantize(n: NodeContext) -> Sequence[SSAValue]:
    zero = n.input(2)
    axis = n.attr("axis", 1)
    return [n("quantize_linear", n.required(0), n.required(1), zero, axis=axis)]


@contrib("DequantizeLinear")
def _dequantize(n: NodeContext) -> Sequence[SSAValue]:
    return [n("dequantize_linear", n.required(0), n.required(1), n.input(2), axis=n.attr("axis", 1))]


# ---- products


def product(
    n: NodeContext,
    a: SSAValue,
    b: SSAValue,
    scales: Sequence[SSAValue],
    zeros: tuple[SSAValue | None, SSAValue | None],
    bias: SSAValue | None = None,
) -> SSAValue:
    """The real values of an integer product, and a bias."""
    whole = n("matmul_integer", a, b, *zeros)
    out = n("mul", n("cast", whole, to=dtype_of(scales[0])), n("mul", *scales))
    return out if bias is None else n("add", out, bias)


def vector(n: NodeContext, x: SSAValue | None) -> SSAValue | None:
    """A parameter of one element without axes."""
    if x is None or rank_of(x) != 1 or dims_of(x)[0].static_value != 1:
        return x
    return n("squeeze", x, n.constant([0]))


@contrib("MatMulIntegerToFloat")
def _matmul_integer_to_float(n: NodeContext) -> Sequence[SSAValue]:
    a, b, a_scale, b_scale = (n.required(i) for i in range(4))
    zeros = vector(n, n.input(4)), vector(n, n.input(5))
    return [product(n, a, b, [vector(n, a_scale) or a_scale, b_scale], zeros, n.input(6))]


@contrib("DynamicQuantizeMatMul")
def _dynamic_quantize_matmul(n: NodeContext) -> Sequence[SSAValue]:
    """The left operand is quantised by its own range when it runs."""
    a, a_scale, a_zero = n.op("dynamic_quantize_linear", n.required(0)).results
    b_scale = n.required(2)
    return [product(n, a, n.required(1), [a_scale, b_scale], (a_zero, vector(n, n.input(3))), n.input(4))]


@contrib("QGemm")
def _qgemm(n: NodeContext) -> Sequence[SSAValue]:
    """alpha * A B + C, where C is int32 of the scale alpha * a_scale * b_scale; quantised if it has a scale."""
    a, a_scale, a_zero, b, b_scale, b_zero = (n.required(i) for i in range(6))
    bias, y_scale = n.input(6), n.input(7)
    a = transposed(n, a) if n.attr("transA", 0) else a
    b = transposed(n, b) if n.attr("transB", 0) else b
    whole = n("matmul_integer", a, b, vector(n, a_zero), vector(n, b_zero))
    if bias is not None:
        whole = n("add", whole, bias)
    scale = n("mul", vector(n, a_scale) or a_scale, b_scale)
    alpha = n.attr("alpha", 1.0)
    if alpha != 1.0:
        scale = n("mul", scale, n.constant(alpha, float32))
    out = n("mul", n("cast", whole, to=float32), scale)
    return [out if y_scale is None else quantized(n, out, 7, n.required(0))]
