"""Quantisation, products of integers, recurrent layers and casts to small dtypes as users call them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from eager_and_traced import check

import sardonyx as sx
from sardonyx.errors import InferenceError

X = np.array([[0.5, 1.5, -2.5], [300, -300, 0.26]], np.float32)


def test_quantize_and_back():
    want = np.array([[0, 2, -2], [127, -128, 0]], np.int8)
    check(lambda x: sx.quantize_linear(x, 1.0, dtype=sx.int8), X, want=want, native=False)
    check(lambda x: sx.quantize_linear(x, 1.0, 0, dtype="int8"), X, want=want, native=False)
    assert sx.quantize_linear(X, 1.0).numpy().tolist() == [[0, 2, 0], [255, 0, 0]]
    rows = np.array([0.5, 2], np.float32)
    got = sx.quantize_linear(X, rows, np.array([1, 0], np.int16), axis=0)
    assert got.dtype == sx.int16 and got.numpy().tolist() == [[2, 4, -4], [150, -150, 0]]
    check(lambda q: sx.dequantize_linear(q, 0.5, 3), want, want=(want.astype("f4") - 3) * 0.5, native=False)
    blocks = np.array([[1, 2], [4, 8]], np.float32)
    q = np.array([[1, 2, 3], [1, 2, 3]], np.uint8)
    check(lambda q, s: sx.dequantize_linear(q, s, axis=-1, block_size=2, dtype=sx.float16), q, blocks,
          want=np.array([[1, 2, 6], [4, 8, 24]], np.float16), native=False)  # fmt: skip
    y, scale, zero = sx.dynamic_quantize_linear(np.array([0, 2, -3, -2.5, 1.34, 0.5], np.float32))
    assert y.numpy().tolist() == [153, 255, 0, 26, 221, 179] and int(zero) == 153
    assert float(scale) == pytest.approx(5 / 255)


def test_products_of_integers():
    a, b = np.arange(6, dtype=np.uint8).reshape(2, 3), np.arange(12, dtype=np.int8).reshape(3, 4)
    want = (a.astype(np.int32) - 2) @ (b.astype(np.int32) - 5)
    check(lambda a, b: sx.matmul_integer(a, b, 2, 5), a, b, want=want, native=False)
    x, w = np.arange(6, dtype=np.uint8).reshape(1, 1, 6), np.array([[[1, -1]]], np.int8)
    check(lambda x, w: sx.conv_integer(x, w, strides=2), x, w, want=np.full((1, 1, 3), -1, np.int32), native=False)
    with pytest.raises(InferenceError, match=r"\(C1\) a has dtype float32"):
        sx.matmul_integer(X, b)


def test_casts_say_how_they_saturate():
    x = np.array([1000.0, 17], np.float32)
    e4m3 = ml_dtypes.float8_e4m3fn
    check(lambda x: sx.astype(x, sx.float8e4m3fn).astype(sx.float32), x, want=np.array([448, 16], "f4"), native=False)
    assert np.isnan(float(sx.cast(x, sx.float8e4m3fn, saturate=False)[0]))
    assert sx.cast(x, "float8e4m3fn").numpy().dtype == e4m3
    assert sx.cast(np.float32(5), sx.float8e8m0, round_mode="down").tolist() == 4
    assert sx.astype(np.array([-3, 9]), sx.int4).tolist() == [-3, -7]


@pytest.mark.parametrize("call", [sx.rnn, sx.gru, sx.lstm])
def test_recurrent_layers(call):
    gates = {sx.rnn: 1, sx.gru: 3, sx.lstm: 4}[call]
    rng = np.random.default_rng(0)
    x, w, r = (rng.uniform(-1, 1, d).astype("f4") for d in ((5, 3, 4), (2, gates * 2, 4), (2, gates * 2, 2)))
    lens = np.array([5, 1, 2])
    want = call(x, w, r, sequence_lens=lens, direction="bidirectional", clip=1.0)
    assert [t.shape for t in want][:2] == [(5, 2, 3, 2), (2, 3, 2)] and not np.asarray(want[0])[1:, :, 1].any()
    made = [np.asarray(t) for t in want]
    check(lambda x, w, r: call(x, w, r, sequence_lens=lens, direction="bidirectional", clip=1.0), x, w, r,
          want=made, native=False)  # fmt: skip
    first = call(x.swapaxes(0, 1), w, r, sequence_lens=lens, direction="bidirectional", clip=1.0, layout=1)
    np.testing.assert_array_equal(np.asarray(first[0]), made[0].transpose(2, 0, 1, 3))
