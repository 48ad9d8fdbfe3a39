"""Products of quantised tensors in native code against the reference: exact, up to a step where a scale rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_case import op
from three_ways import Array, Case, both_refuse, case, check_all, sample

import sardonyx as sx
from sardonyx.dialects.dtypes import DTYPES


def bytes_of(dtype: str, *shape: int, seed: int = 0) -> Array:
    """All values of a byte."""
    limits = np.iinfo(dtype)
    return np.random.default_rng([seed, *shape]).integers(limits.min, limits.max + 1, shape).astype(dtype)


def conv(x: Array, w: Array, x_zero: int | None = None, w_zero: object = None, **attributes: Any) -> Case:
    return case(
        op("conv_integer"), x, w, None if x_zero is None else np.array(x_zero, x.dtype),
        None if w_zero is None else np.asarray(w_zero, w.dtype), **attributes,
    )  # fmt: skip


X = bytes_of("uint8", 2, 10, 9, 7)


def test_convolutions_of_integers() -> None:
    check_all(
        [
            conv(X, bytes_of("int8", 5, 10, 3, 3), 100, 3, pads=[1, 1, 1, 1]),
            conv(X[:, :9].copy(), bytes_of("uint8", 17, 9, 3, 2), 7, bytes_of("uint8", 17), strides=[2, 3]),
            conv(X, bytes_of("int8", 4, 5, 3, 3), 7, group=2, dilations=[2, 1], pads=[2, 0, 1, 3]),
            conv(X[:, :3].copy(), bytes_of("int8", 6, 3, 3, 3), 128, auto_pad="SAME_UPPER", strides=[2, 2]),
            conv(X[:, :, :, 0].copy(), bytes_of("int8", 3, 10, 4), 9, pads=[3, 0]),
            conv(bytes_of("uint8", 1, 8, 3, 4, 5), bytes_of("uint8", 2, 8, 2, 2, 2), 9, 200),
            conv(X[:0].copy(), bytes_of("int8", 5, 10, 3, 3)),
        ],
        ("static",),
    )
    check_all(
        [
            conv(X[:, :9].copy(), bytes_of("uint8", 17, 9, 3, 2), 7, bytes_of("uint8", 17), strides=[2, 3]),
            conv(X, bytes_of("int8", 10, 1, 3, 3), 128, bytes_of("int8", 10), group=10, pads=[1, 1, 1, 1]),
        ],
        ("dynamic",),
    )


def test_weights_that_are_constant_are_paired_before_the_run() -> None:
    rng = np.random.default_rng(3)
    for group, channels in ((1, 11), (2, 9), (12, 1)):
        w = bytes_of("uint8", 12, channels, 3, 3)
        zero = rng.integers(0, 255, 12).astype(np.uint8)
        x = bytes_of("uint8", 2, channels * group, 6, 8)

        def fn(data: sx.Tensor, w: Array = w, zero: Array = zero, group: int = group) -> sx.Tensor:
            return sx.conv_integer(data, sx.asarray(w), np.uint8(77), sx.asarray(zero), group=group, pads=[1, 1, 1, 1])

        for dims in (x.shape, ("n", x.shape[1], "h", "v"))[: 2 if group == 2 else 1]:
            graph = sx.trace(fn, (sx.TensorSpec("x", sx.uint8, dims),)).graph
            want = graph.evaluate([x])[0]
            graph.finalize()
            assert (graph.run([x])[0] == want).all()


def quantized_conv(x: Array, w: Array, w_scale: Array, y: str, bias: Array | None = None, **attributes: Any) -> Case:
    w_zero = np.zeros(w_scale.shape, w.dtype) + w.dtype.type(2)
    return case(
        op("qlinear_conv"), x, np.float32(0.02), np.array(97, x.dtype), w, w_scale, w_zero, np.float32(0.7),
        np.array(5, y), bias, **attributes,
    )  # fmt: skip


def test_quantised_convolutions() -> None:
    each = sample("float32", 10, low=0.01, high=0.3)
    bias = sample("int32", 10, low=-40000, high=40000)
    check_all(
        [
            quantized_conv(X, bytes_of("int8", 10, 10, 3, 3), each, "uint8", bias, pads=[1, 1, 1, 1]),
            quantized_conv(X.view(np.int8), bytes_of("uint8", 10, 10, 1, 1), each[:1], "int8", strides=[2, 2]),
            quantized_conv(X, bytes_of("int8", 10, 1, 3, 3), each, "uint8", bias, group=10),
        ],
        ("static",),
    )
    check_all([quantized_conv(X, bytes_of("uint8", 10, 10, 3, 3), np.array(0.02, "f4"), "int8", bias)], ("dynamic",))


def quantized_matmul(a: Array, b: Array, y: str, a_lines: tuple[int, ...] = (), b_lines: tuple[int, ...] = (),
                     kind: str = "float32") -> Case:  # fmt: skip
    def parameters(data: Array, lines: tuple[int, ...]) -> list[Array]:
        scale = sample("float32", *lines, low=0.01, high=0.1).astype(DTYPES[kind].numpy)
        zero = np.zeros(lines, data.dtype) if data.dtype.kind == "V" else bytes_of(data.dtype.name, *lines, seed=1)
        return [scale, zero]

    wide = np.array(0.9).astype(DTYPES[kind].numpy)
    zero = np.array(3).astype(DTYPES[y].numpy)
    return case(op("qlinear_matmul"), a, *parameters(a, a_lines), b, *parameters(b, b_lines), wide, zero)


def test_quantised_matrix_products() -> None:
    a, b = bytes_of("uint8", 5, 33), bytes_of("int8", 33, 18)
    check_all(
        [
            quantized_matmul(a, b, "uint8"),
            quantized_matmul(a, b, "int8", (5,), (18,)),
            quantized_matmul(a.view(np.int8), b, "int8", (5, 1), (1, 18), "float16"),
            quantized_matmul(a[0].copy(), b, "uint8", (), (18,)),
            quantized_matmul(a, b[:, 0].copy(), "uint8", (5, 1)),
            quantized_matmul(
                bytes_of("uint8", 2, 1, 3, 8), bytes_of("uint8", 4, 8, 5), "uint8", (2, 1, 3, 1), (4, 1, 5)
            ),
            quantized_matmul(a[:, :0].copy(), b[:0].copy(), "uint8"),
        ],
        ("dynamic",),
    )
    check_all([quantized_matmul(a, b, "uint8", (1,), (1,), "bfloat16")], ("static",))


@pytest.mark.parametrize("name", ["float8e4m3fn", "float8e5m2fnuz"])
def test_matrix_products_of_small_floats(name: str) -> None:
    dtype = DTYPES[name].numpy
    a, b = (sample("float32", *shape).astype(dtype) for shape in ((4, 9), (9, 7)))
    check_all(
        [quantized_matmul(a, b, name), quantized_matmul(a, b, "int8", (4,), (7,))],
        ("static",),
    )


def test_what_does_not_fit_ends_with_an_error() -> None:
    x, w = X, bytes_of("int8", 4, 10, 3, 3)
    both_refuse(op("conv_integer"), x, w[:, :9].copy(), np.uint8(1))
    both_refuse(op("conv_integer"), x, w, np.uint8(1), np.zeros(3, np.int8))


def test_a_convolution_that_is_cast_in_its_epilogue() -> None:
    rng = np.random.default_rng(4)
    for kernel, group, half in ((3, 1, sx.float16), (3, 6, sx.uint8), (1, 1, sx.bfloat16)):
        w = rng.normal(size=(6, 6 // group, kernel, kernel)).astype(np.float32)
        x = rng.normal(size=(1, 6, 9, 8)).astype(np.float32)

        def fn(data: sx.Tensor, w: Array = w, group: int = group, half: sx.DType = half) -> sx.Tensor:
            return sx.cast(sx.conv(data, sx.asarray(w), pads=[1] * 4, group=group) * 9.0, half)

        graph = sx.trace(fn, (sx.TensorSpec("x", sx.float32, x.shape),)).graph
        want = np.asarray(graph.evaluate([x])[0], np.float32)
        graph.finalize()
        got = np.asarray(graph.run([x])[0], np.float32)
        assert np.abs(got - want).max() <= max(np.abs(want).max() * 0.01, 1.0)
