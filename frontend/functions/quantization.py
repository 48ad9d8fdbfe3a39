"""Numbers as small integers or floats times a scale, and products of such; the operators' names are ONNX's."""

from __future__ import annotations

from typing import Any

from sardonyx.dialects.dtypes import DType, float32
from sardonyx.frontend.apply import apply, op
from sardonyx.frontend.functions.nn import Window, _spatial, _windows
from sardonyx.frontend.operands import TensorLike, is_scalar, scalar, to_tensor
from sardonyx.frontend.tensor import Tensor


def _scale(value: TensorLike) -> Tensor:
    return scalar(float(value), float32) if is_scalar(value) else to_tensor(value)  # pyright: ignore[reportArgumentType]


def _zero(value: TensorLike | None, dtype: DType | None) -> Tensor | None:
    """A zero point; a Python number has the dtype of the data."""
    if value is None:
        return None
    return scalar(value, dtype) if is_scalar(value) and dtype is not None else to_tensor(value)  # pyright: ignore[reportArgumentType]


def _dtype(value: Any) -> DType | None:
    return None if value is None else DType.of(value)


def quantize_linear(
    x: TensorLike,
    scale: TensorLike,
    zero_point: TensorLike | None = None,
    *,
    dtype: Any = None,
    axis: int = 1,
    block_size: int = 0,
    precision: Any = None,
    saturate: bool = True,
) -> Tensor:
    """`saturate(round(x / scale) + zero_point)`, to nearest even; by default uint8.

    Args:
        x: A tensor of floats of 16 or 32 bits, or of int32.
        scale: One number, a vector with one for each index along `axis`, or, with `block_size`, a tensor with one for
            each block along it.
        zero_point: Of the scale's shape; its dtype is the result's. A Python number takes `dtype`.
        dtype: The dtype of the result.
        axis: What the scales stand along.
        block_size: How many elements along `axis` share a scale; 0: all, or one each.
        precision: The dtype of the division, by default that of the scale.
        saturate: For floats of 8 bits: see `cast`.

    Raises:
        InferenceError: The shapes or dtypes don't go together.
    """
    target = _dtype(dtype)
    return op(
        "sx.quantize_linear", to_tensor(x), _scale(scale), _zero(zero_point, target), axis=int(axis),
        block_size=int(block_size), output_dtype=target, precision=_dtype(precision), saturate=bool(saturate),
    )  # fmt: skip


def dequantize_linear(
    x: TensorLike,
    scale: TensorLike,
    zero_point: TensorLike | None = None,
    *,
    dtype: Any = None,
    axis: int = 1,
    block_size: int = 0,
) -> Tensor:
    """`(x - zero_point) * scale`, in the scale's dtype or `dtype`; the scale stands as for `quantize_linear`."""
    data = to_tensor(x)
    return op(
        "sx.dequantize_linear", data, _scale(scale), _zero(zero_point, data.dtype), axis=int(axis),
        block_size=int(block_size), output_dtype=_dtype(dtype),
    )  # fmt: skip


def dynamic_quantize_linear(x: TensorLike) -> tuple[Tensor, Tensor, Tensor]:
    """`x` (float32) as uint8, and the scale and zero point that its least and greatest elements give."""
    y, scale, zero = apply("sx.dynamic_quantize_linear", to_tensor(x))
    return y, scale, zero


def matmul_integer(
    a: TensorLike, b: TensorLike, a_zero_point: TensorLike | None = None, b_zero_point: TensorLike | None = None
) -> Tensor:
    """`(a - a_zero_point) @ (b - b_zero_point)` of int8 or uint8, as int32.

    A zero point is one number, or one per row of `a` (per column of `b`).
    """
    left, right = to_tensor(a), to_tensor(b)
    zeros = _zero(a_zero_point, left.dtype), _zero(b_zero_point, right.dtype)
    return op("sx.matmul_integer", left, right, *zeros)


def conv_integer(
    x: TensorLike,
    w: TensorLike,
    x_zero_point: TensorLike | None = None,
    w_zero_point: TensorLike | None = None,
    *,
    strides: Window = None,
    pads: Window = None,
    dilations: Window = None,
    group: int = 1,
    auto_pad: str = "NOTSET",
) -> Tensor:
    """`conv` of int8 or uint8 less their zero points, as int32; the padding counts as `x_zero_point`."""
    data, weights = to_tensor(x), to_tensor(w)
    zeros = _zero(x_zero_point, data.dtype), _zero(w_zero_point, weights.dtype)
    windows = _windows(_spatial(data, "conv_integer"), strides, pads, dilations, auto_pad)
    return op("sx.conv_integer", data, weights, *zeros, group=group, **windows)
