"""Normalisation over trailing axes: formulas in float64, stash dtypes, onnxruntime, symbols, errors."""

import numpy as np
import pytest
from op_case import round_trip, run, run_all, shape, value
from ort_oracle import run_node
from sized import op

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.errors import ExecutionError, InferenceError

LAYER, RMS, LP = op("layer_norm"), op("rms_norm"), op("lp_normalization")
RNG = np.random.default_rng(7)
FLOATS = [t.name for t in dtypes.FLOATS]
TOLERANCE = {"float16": 2**-11, "bfloat16": 2**-8, "float32": 2**-24, "float64": 1e-14}
EPSILON = float(np.float32(1e-5))


def example(dtype, *dims):
    return RNG.normal(size=dims).astype(dtypes.DTYPES[dtype].numpy)


def close(got, want, dtype):
    atol = 1e-7 if dtype == "float16" else 1e-15
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=1.01 * TOLERANCE[dtype], atol=atol)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_layer_norm(dtype, axis):
    x = example(dtype, 2, 3, 4)
    axes = tuple(range(axis % 3, 3))
    scale, bias = example(dtype, *x.shape[axis % 3 :]), example(dtype, *x.shape[axis % 3 :])
    exact = x.astype(np.float64)
    mean, inverse = exact.mean(axes, keepdims=True), 1 / np.sqrt(exact.var(axes, keepdims=True) + 0.25)
    out, got_mean, got_inverse = run_all(LAYER, x, scale, bias, axis=axis, epsilon=0.25)
    close(out, (exact - mean) * inverse * scale.astype(np.float64) + bias.astype(np.float64), dtype)
    assert got_mean.dtype == got_inverse.dtype == np.float32
    close(got_mean, mean, "float32")
    close(got_inverse, inverse, "float32")


def test_layer_norm_of_halves_does_not_overflow():
    x = np.array([[256, -256], [1024, -1024]], np.float16)
    out, mean, inverse = run_all(LAYER, x, np.array([1, 2], np.float16), np.array([0, 1], np.float16))
    assert out.tolist() == [[1, -1], [1, -1]] and mean.tolist() == [[0], [0]]
    np.testing.assert_allclose(inverse, [[1 / 256], [1 / 1024]], rtol=1e-6)


def test_layer_norm_stash_and_optional_bias():
    x, scale = example("float32", 3, 4), example("float32", 4)
    out, mean, inverse = run_all(LAYER, x, scale, None, stash_type=16)
    assert mean.dtype == inverse.dtype == dtypes.bfloat16.numpy and out.dtype == np.float32
    assert out.tolist() == run_all(LAYER, x, scale, np.zeros(4, np.float32))[0].tolist()


def test_layer_norm_broadcasts_scale():
    x = example("float64", 2, 3, 4)
    plain = run_all(LAYER, x, np.array(1.0), axis=1)[0]
    for dims in ((4,), (3, 1), (2, 1, 1), (1,), ()):
        scale = example("float64", *dims)
        np.testing.assert_allclose(run_all(LAYER, x, scale, axis=1)[0], plain * scale, rtol=1e-14)


def test_against_onnxruntime():
    x, scale, bias = example("float32", 2, 3, 4), example("float32", 4), example("float32", 4)
    want = run_node("LayerNormalization", [x, scale, bias], outputs=3, epsilon=0.01)
    for got, expected in zip(run_all(LAYER, x, scale, bias, epsilon=0.01), want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(run(RMS, x, scale), run_node("RMSNormalization", [x, scale], opset=23)[0], rtol=1e-5)
    for p in (1, 2):
        want = run_node("LpNormalization", [x], axis=1, p=p)[0]
        np.testing.assert_allclose(run(LP, x, axis=1, p=p), want, rtol=1e-5)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_rms_norm(dtype, axis):
    x = example(dtype, 2, 3)
    scale = example(dtype, *x.shape[axis % 2 :])
    exact = x.astype(np.float64)
    power = np.square(exact).mean(tuple(range(axis % 2, 2)), keepdims=True)
    close(run(RMS, x, scale, axis=axis), exact / np.sqrt(power + EPSILON) * scale.astype(np.float64), dtype)


def test_rms_norm_has_the_dtype_of_its_scale():
    assert run(RMS, example("float16", 2, 3), example("float32", 3)).dtype == np.float32


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalization(dtype, p):
    x = example(dtype, 2, 3, 4)
    exact = x.astype(np.float64)
    norm = np.abs(exact).sum(1, keepdims=True) if p == 1 else np.sqrt(np.square(exact).sum(1, keepdims=True))
    close(run(LP, x, axis=1, p=p), exact / norm, dtype)
    assert run(LP, np.zeros((2, 3), np.float32), p=p).tolist() == [[0] * 3] * 2


def test_lp_norm_neither_overflows_nor_vanishes():
    for scale in (1e300, 1e-300):
        np.testing.assert_allclose(run(LP, np.array([3.0, 4.0]) * scale), [0.6, 0.8], rtol=1e-14)
    assert np.isnan(run(LP, np.array([np.nan, 1.0]))).all()
    np.testing.assert_array_equal(run(LP, np.array([np.inf, 1.0])), [np.nan, 0.0])


def test_no_elements():
    ones = np.ones(0, np.float32)
    out, mean, _ = run_all(LAYER, np.zeros((2, 0), np.float32), ones, ones)
    assert out.shape == (2, 0) and mean.shape == (2, 1) and np.isnan(mean).all()
    assert run_all(LAYER, np.zeros((0, 2), np.float32), np.ones(2, np.float32))[0].shape == (0, 2)
    assert run(RMS, np.zeros((2, 0), np.float32), ones).shape == (2, 0)
    assert run(LP, np.zeros((2, 0), np.float32)).shape == (2, 0)


def test_symbols():
    x, c = value("float32", ["b", "n", 64]), value("float32", [64])
    made = LAYER.make(x, c, c)
    assert [shape(made, i) for i in range(3)] == [["b", "n", "64"], ["b", "n", "1"], ["b", "n", "1"]]
    made = LAYER.make(value("float32", None), c)
    assert [shape(made, i) for i in range(3)] == [None] * 3
    assert shape(RMS.make(x, c, axis=1)) == ["b", "n", "64"]
    assert shape(LP.make(x, axis=0)) == ["b", "n", "64"]


@pytest.mark.parametrize(
    ("cls", "x", "scale", "properties", "constraint"),
    [
        (LAYER, ("float32", [2, 3]), ("float64", [3]), {}, "C1"),
        (LAYER, ("int32", [2, 3]), ("int32", [3]), {}, "C1"),
        (LAYER, ("float32", [2, 3]), ("float32", [3]), {"axis": 2}, "C2"),
        (LAYER, ("float32", []), ("float32", []), {}, "C2"),
        (LAYER, ("float32", [2, 3]), ("float32", [2]), {}, "C3"),
        (LAYER, ("float32", [3]), ("float32", [1, 3]), {}, "C3"),
        (LAYER, ("float32", [1, 3]), ("float32", [2, 3]), {}, "C3"),
        (LAYER, ("float32", [2, 3]), ("float32", [3]), {"stash_type": 10}, "C4"),
        (RMS, ("int32", [2, 3]), ("float32", [3]), {}, "C1"),
        (RMS, ("float32", [2, 3]), ("float32", [3]), {"axis": -3}, "C2"),
        (RMS, ("float32", [2, 3]), ("float32", [2]), {}, "C3"),
        (RMS, ("float32", [2, 3]), ("float32", [3]), {"stash_type": 0}, "C4"),
    ],
)
def test_constraints(cls, x, scale, properties, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        cls.make(value(*x), value(*scale), **properties)


@pytest.mark.parametrize(
    ("x", "properties", "constraint"),
    [(("int32", [2]), {}, "C1"), (("float32", [2]), {"axis": 1}, "C2"), (("float32", [2]), {"p": 3}, "C3")],
)
def test_lp_constraints(x, properties, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        LP.make(value(*x), **properties)


def test_runs_that_are_refused():
    built = LAYER.make(value("float64", ["n", "m"]), value("float64", ["k"]))
    with pytest.raises(ExecutionError, match="does not broadcast"):
        built.evaluate(EvalContext(), np.ones((2, 3)), np.ones(2), None)


def test_text():
    x, c = value("float32", ["n", 4]), value("float32", [4])
    assert "sx.layer_norm %x0, %x1 {axis = 0" in round_trip(LAYER.make(x, c, axis=0))
    assert "sx.rms_norm" in round_trip(RMS.make(x, c))
    assert "p = 1" in round_trip(LP.make(x, p=1))
