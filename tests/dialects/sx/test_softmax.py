"""softmax, log_softmax and hardmax."""

import mpmath
import numpy as np
import pytest
from op_case import op, round_trip, run, shape, value
from ort_oracle import run_node

from sardonyx.dialects import dtypes
from sardonyx.errors import InferenceError

INF, NAN = np.inf, np.nan
ALL = ["softmax", "log_softmax", "hardmax"]
FLOATS = [t.name for t in dtypes.FLOATS]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_rounded_once(name, dtype):
    target = dtypes.DTYPES[dtype].numpy
    x = (np.random.default_rng(8).normal(size=(5, 17)) * 4).astype(target)
    got = run(op(name), x)
    assert got.dtype == target
    with mpmath.workdps(50):
        for row, found in zip(x, got, strict=True):
            v = [mpmath.mpf(float(a)) for a in row]
            total = mpmath.log(mpmath.fsum(map(mpmath.exp, v)))
            for a, r in zip(v, found, strict=True):
                want = mpmath.exp(a - total) if name == "softmax" else a - total
                spacing = abs(float(np.spacing(np.abs(r))))
                assert abs(mpmath.mpf(float(r)) - want) <= spacing * (0.5001 if dtype != "float64" else 32)


@pytest.mark.parametrize("dtype", FLOATS)
def test_hardmax_marks_the_first_greatest(dtype):
    x = np.array([[1, 3, 3, 2], [0, 0, 0, 0], [NAN, 5, NAN, 1], [-INF, -INF, -INF, -1]]).astype(
        dtypes.DTYPES[dtype].numpy
    )
    got = run(op("hardmax"), x)
    assert got.dtype == dtypes.DTYPES[dtype].numpy
    assert got.astype(int).argmax(1).tolist() == [1, 0, 0, 3] and got.astype(int).sum() == 4


@pytest.mark.parametrize("axis", [None, 0, 1, 2, -1, -3])
@pytest.mark.parametrize("name", ALL)
def test_against_onnxruntime(name, axis):
    x = (np.random.default_rng(9).normal(size=(3, 4, 5)) * 3).astype(np.float32)
    properties = {} if axis is None else {"axis": axis}
    got, (want,) = run(op(name), x, **properties), run_node(op(name).ONNX.name, [x], **properties)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_large_numbers_do_not_overflow():
    x = np.array([[1e4, 1e4 + 1], [-1e4, -1e4 + 1], [3e38, -3e38]], np.float32)
    low, high = 1 / (1 + np.e), np.e / (1 + np.e)
    np.testing.assert_allclose(run(op("softmax"), x), [[low, high], [low, high], [1, 0]], rtol=1e-6)
    np.testing.assert_allclose(run(op("log_softmax"), x[:2]), np.log([[low, high], [low, high]]), rtol=1e-6)
    assert run(op("log_softmax"), np.array([0, -200], np.float32)).tolist() == [0, -200]


def test_infinities_and_nan():
    x = np.array([[0, -INF, 0], [INF, 0, 1], [-INF, -INF, -INF], [NAN, 0, 1]], np.float32)
    want = [[0.5, 0, 0.5], [NAN] * 3, [NAN] * 3, [NAN] * 3]
    np.testing.assert_array_equal(run(op("softmax"), x), want)
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(run(op("log_softmax"), x), np.log(np.array(want, np.float32)))


@pytest.mark.parametrize("name", ALL)
def test_empty_and_single(name):
    for dims in ((0, 3), (2, 0), (0,)):
        got = run(op(name), np.zeros(dims, np.float32))
        assert got.shape == dims and got.dtype == np.float32
        assert run(op(name), np.zeros(dims, np.float32), axis=0).shape == dims
    assert run(op(name), np.array([[7]], np.float32)).tolist() == [[0 if name == "log_softmax" else 1]]


@pytest.mark.parametrize("name", ALL)
def test_types_and_refusals(name):
    assert shape(op(name).make(value("float16", ["n", 3]), axis=0)) == ["n", "3"]
    assert shape(op(name).make(value("float16", None), axis=5)) is None
    with pytest.raises(InferenceError, match=r"^\(C1\) .* int32"):
        op(name).make(value("int32", [2]))
    for axis in (2, -3):
        with pytest.raises(InferenceError, match=rf"^\(C2\) axis {axis} is out of range for rank 2"):
            op(name).make(value("float32", [2, 3]), axis=axis)
    with pytest.raises(InferenceError, match=r"^\(C2\) axis -1 is out of range for rank 0"):
        op(name).make(value("float32", []))


@pytest.mark.parametrize("name", ALL)
def test_text_round_trip(name):
    x = value("float32", ["n", 3])
    assert round_trip(op(name).make(x)).startswith(f"%0 = sx.{name} %x0 : (")
    assert round_trip(op(name).make(x, axis=0)).startswith(f"%0 = sx.{name} %x0 {{axis = 0 : i64}} : (")
    assert "{" not in round_trip(op(name).make(value("float32", [3]), axis=-1))
