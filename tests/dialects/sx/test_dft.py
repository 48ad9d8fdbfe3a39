"""Fourier transforms and filter banks: all forms against NumPy and onnxruntime, lengths, axes, symbols."""

from typing import Any

import numpy as np
import pytest
from against_ort import agree
from op_case import constant, extents, round_trip, run, shape, value
from sized import op

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.errors import ExecutionError, InferenceError

DFT, STFT, MEL = op("dft"), op("stft"), op("mel_weight_matrix")
RNG = np.random.default_rng(51)


def pairs(z):
    return np.stack([z.real, z.imag], -1)


def refuses(cls, constraint, *slots, **properties):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        cls.make(*slots, **properties)


@pytest.mark.parametrize("axis", [0, 1, -2, -3])
@pytest.mark.parametrize("length", [None, 4, 9])
def test_against_numpy(axis, length):
    real = RNG.random((5, 6, 1))
    z = RNG.random((5, 6)) + 1j * RNG.random((5, 6))
    at = axis % 3
    n, given = length, None if length is None else np.array(length)
    where = np.array(axis)
    close: Any = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(run(DFT, real, given, where), pairs(np.fft.fft(real[..., 0], n, at)), **close)
    np.testing.assert_allclose(run(DFT, pairs(z), given, where), pairs(np.fft.fft(z, n, at)), **close)
    np.testing.assert_allclose(run(DFT, pairs(z), given, where, inverse=True), pairs(np.fft.ifft(z, n, at)), **close)
    half = run(DFT, real, given, where, onesided=True)
    np.testing.assert_allclose(half, pairs(np.fft.rfft(real[..., 0], n, at)), **close)
    whole = run(DFT, pairs(z), given, where, onesided=True, inverse=True)
    np.testing.assert_allclose(whole[..., 0], np.fft.irfft(z, n, at), **close)


def test_against_onnxruntime():
    x = RNG.random((2, 6, 5, 1), np.float32)
    close = {"opset": 20, "rtol": 1e-4, "atol": 1e-4}
    agree(DFT, x, np.array(4), np.array(1), onesided=1, **close)
    agree(DFT, x, None, np.array(-2), **close)
    agree(DFT, RNG.random((2, 6, 2), np.float32), np.array([8]), np.array(1), inverse=1, **close)


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.FLOATS])
def test_all_dtypes(dtype):
    x = np.array([[1], [2], [3], [4]]).astype(dtypes.DTYPES[dtype].numpy)
    assert run(DFT, x).tolist() == [[10, 0], [-2, 2], [-2, 0], [-2, -2]]
    assert run(DFT, run(DFT, x), inverse=True).tolist() == [[1, 0], [2, 0], [3, 0], [4, 0]]
    assert run(DFT, run(DFT, x, onesided=True), inverse=True, onesided=True).tolist() == x.tolist()


def test_no_elements():
    assert run(DFT, np.zeros((0, 4, 1), "f4")).shape == (0, 4, 2)
    with pytest.raises(InferenceError, match=r"\(C4\)"):
        DFT.make(value("float32", [0, 1]))


def test_symbols_and_text():
    x = value("float32", ["b", "n", 1])
    assert shape(DFT.make(x)) == ["b", "n", "2"]
    assert shape(DFT.make(x, onesided=True)) == ["b", "n floordiv 2 + 1", "2"]
    assert shape(DFT.make(value("float32", ["b", "n", 2]), onesided=True, inverse=True)) == ["b", "2*n - 2", "1"]
    assert shape(DFT.make(x, constant(8), constant(0))) == ["8", "n", "2"]
    assert shape(DFT.make(x, extents(["k"]), constant(1))) == ["b", "k", "2"]
    assert shape(DFT.make(x, None, value("int64", []))) == ["?", "?", "2"]
    assert shape(DFT.make(value("float32", None))) is None
    assert "sx.dft %x0, _, %x1 {inverse = true}" in round_trip(DFT.make(x, None, value("int64", []), inverse=True))


def test_constraints():
    x, z = value("float32", ["b", 4, 1]), value("float32", ["b", 4, 2])
    refuses(DFT, "C1", value("int32", [4, 1]))
    refuses(DFT, "C1", x, constant([1, 2]))
    refuses(DFT, "C1", x, None, constant(1, "int32"))
    refuses(DFT, "C2", value("float32", [4]))
    refuses(DFT, "C2", value("float32", [4, 3]))
    refuses(DFT, "C3", x, None, constant(3))
    refuses(DFT, "C3", x, None, constant(-1))
    refuses(DFT, "C4", x, constant(0))
    refuses(DFT, "C5", z, onesided=True)
    refuses(DFT, "C5", x, onesided=True, inverse=True)
    built = DFT.make(value("float32", ["b", "n", "m"]), value("int64", []), value("int64", []))
    for dims, length, axis in (
        ((2, 4, 1), 0, 1), ((2, 4, 1), 4, 2), ((2, 4, 3), 4, 1), ((2, 0, 1), 4, 1), ((2, 4, 1), 2**50, 1),
    ):  # fmt: skip
        with pytest.raises(ExecutionError):
            built.evaluate(EvalContext(), np.zeros(dims, "f4"), np.array(length), np.array(axis))


# ---- stft


@pytest.mark.parametrize("onesided", [0, 1])
def test_frames_against_onnxruntime(onesided):
    x, window = RNG.random((2, 20, 1), np.float32), np.hanning(8).astype(np.float32)
    close = {"rtol": 1e-4, "atol": 1e-4, "onesided": onesided}
    agree(STFT, x, np.array(3), window, None, **close)
    agree(STFT, x, np.array(5), None, np.array(7), **close)
    agree(STFT, x, np.array(4), window, np.array(8), **close)


def test_frames_of_complex_signals_and_whole_ones():
    x = RNG.random((1, 9, 2))
    z = x[0, :, 0] + 1j * x[0, :, 1]
    out = run(STFT, x, np.array(2), None, np.array(4), onesided=False)
    want = np.stack([pairs(np.fft.fft(z[i : i + 4])) for i in (0, 2, 4)])
    np.testing.assert_allclose(out[0], want, rtol=1e-12, atol=1e-12)
    assert run(STFT, x[..., :1], np.array(1)).shape == (1, 1, 5, 2)
    assert run(STFT, np.zeros((0, 9, 1), "f4"), np.array(2), None, np.array(4)).shape == (0, 3, 3, 2)


def test_frame_symbols_and_constraints():
    x, step = value("float32", ["b", "n", 1]), constant(4)
    made = STFT.make(x, step, value("float32", [16]))
    assert shape(made) == ["b", "n floordiv 4 - 3", "9", "2"] and "sx.stft" in round_trip(made)
    assert shape(STFT.make(x, value("int32", []), None, extents(["k"]))) == ["b", "?", "k floordiv 2 + 1", "2"]
    assert shape(STFT.make(x, step, None, value("int64", []), onesided=False)) == ["b", "?", "?", "2"]
    refuses(STFT, "C1", x, value("float32", []))
    refuses(STFT, "C1", x, step, value("float64", [4]))
    refuses(STFT, "C2", value("float32", [4, 1]), step)
    refuses(STFT, "C2", value("float32", [1, 4, 3]), step)
    refuses(STFT, "C2", x, step, value("float32", [4, 4]))
    refuses(STFT, "C3", x, constant(0))
    refuses(STFT, "C4", x, step, value("float32", [8]), constant(9))
    refuses(STFT, "C5", value("float32", [1, 4, 1]), step, None, constant(5))
    refuses(STFT, "C6", value("float32", [1, 4, 2]), step)
    built = STFT.make(value("float32", ["b", "n", "m"]), value("int64", []), None, value("int64", []))
    for hop, length in ((0, 2), (1, 0), (1, 9), (-1, 2)):
        with pytest.raises(ExecutionError, match="don't fit"):
            built.evaluate(EvalContext(), np.zeros((1, 4, 1), "f4"), np.array(hop), None, np.array(length))


# ---- mel_weight_matrix


@pytest.mark.parametrize(
    "numbers", [(8, 16, 8192, 0.0, 4096.0), (20, 512, 16000, 20.0, 7600.0), (4, 9, 100, 0.0, 20.0)]
)
def test_bands_against_onnxruntime(numbers):
    inputs = [np.array(n, np.int64) for n in numbers[:3]] + [np.array(f, np.float32) for f in numbers[3:]]
    agree(MEL, *inputs)
    half = run(MEL, *inputs, output_datatype=dtypes.float16)
    assert half.dtype == np.float16 and half.max() == 1


def test_band_symbols_and_constraints():
    ints, edge = value("int64", []), value("float32", [])
    made = MEL.make(extents(["k"]), extents(["n"]), ints, edge, edge, output_datatype=dtypes.float64)
    assert shape(made) == ["n floordiv 2 + 1", "k"] and "output_datatype = f64" in round_trip(made)
    refuses(MEL, "C1", edge, ints, ints, edge, edge)
    refuses(MEL, "C1", ints, ints, ints, ints, edge)
    refuses(MEL, "C1", ints, ints, ints, edge, edge, output_datatype=dtypes.bool_)
    refuses(MEL, "C2", constant(-1), ints, ints, edge, edge)
    refuses(MEL, "C2", ints, constant(0), ints, edge, edge)
    numbers = [np.array(n) for n in (4, 16, 100)]
    for low, high, text in ((0, 200, "the spectrum has 9"), (np.nan, 10, "no matrix"), (-800, 10, "no matrix")):
        with pytest.raises(ExecutionError, match=text):
            made.evaluate(EvalContext(), *numbers, np.array(low, "f4"), np.array(high, "f4"))
