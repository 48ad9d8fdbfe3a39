"""The greatest and smallest elements: ties, NaN, both directions, all axes."""

import numpy as np
import pytest
from against_ort import agree
from op_case import constant, extents, round_trip, run_all, shape, value
from sized import op

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.errors import ExecutionError, InferenceError

TOP = op("top_k")
RNG = np.random.default_rng(3)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", [t.name for t in dtypes.NUMERIC])
def test_all_dtypes_and_ties(dtype, largest):
    x = np.array([[3, 1, 3, 0, 2], [5, 5, 5, 5, 5]]).astype(dtypes.DTYPES[dtype].numpy)
    values, at = run_all(TOP, x, np.array([3]), largest=largest)
    assert at.tolist() == ([[0, 2, 4], [0, 1, 2]] if largest else [[3, 1, 4], [0, 1, 2]])
    assert values.tolist() == np.take_along_axis(x, at, 1).tolist()


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64"])
def test_limits_of_integers(dtype):
    limits = np.iinfo(dtype)
    x = np.array([limits.min, limits.max, limits.min, 1], dtype)
    assert run_all(TOP, x, np.array(4))[1].tolist() == [1, 3, 0, 2]
    assert run_all(TOP, x, np.array(4), largest=False)[1].tolist() == [0, 2, 3, 1]


@pytest.mark.parametrize("axis", [-3, 0, 1, 2])
def test_against_onnxruntime(axis):
    x = RNG.integers(0, 4, (4, 5, 3)).astype(np.float32)
    for largest in (0, 1):
        agree(TOP, x, np.array([3]), axis=axis, largest=largest)


def test_nan_is_greatest_and_zeros_are_equal():
    x = np.array([1, np.nan, -np.inf, np.nan, np.inf, -0.0, 0.0], np.float32)
    assert run_all(TOP, x, np.array([7]))[1].tolist() == [1, 3, 4, 0, 5, 6, 2]
    assert run_all(TOP, x, np.array([7]), largest=False)[1].tolist() == [2, 5, 6, 0, 4, 1, 3]


def test_none_and_no_elements():
    assert [a.shape for a in run_all(TOP, np.ones((2, 3), "f4"), np.array([0]))] == [(2, 0)] * 2
    assert [a.shape for a in run_all(TOP, np.ones((0, 3), "f4"), np.array([2]))] == [(0, 2)] * 2
    assert [a.shape for a in run_all(TOP, np.ones((3, 0), "f4"), np.array([2]), axis=0)] == [(2, 0)] * 2


def test_symbols_and_text():
    x = value("float32", ["b", "n"])
    assert shape(TOP.make(x, constant([2]))) == ["b", "2"]
    assert shape(TOP.make(x, extents(["k"])), 1) == ["b", "k"]
    assert shape(TOP.make(x, value("int64", [1]), axis=0)) == ["?", "n"]
    assert shape(TOP.make(value("float32", None), constant([2]))) is None
    assert "largest = false" in round_trip(TOP.make(x, constant([2]), largest=False))


@pytest.mark.parametrize(
    ("dtype", "dims", "k", "axis", "constraint"),
    [
        ("bool", [3], constant([1]), 0, "C1"),
        ("float32", [3], constant([1], "int32"), 0, "C1"),
        ("float32", [3], constant([1, 1]), 0, "C1"),
        ("float32", [], constant([1]), 0, "C2"),
        ("float32", [3], constant([1]), 1, "C2"),
        ("float32", [3], constant([4]), 0, "C3"),
        ("float32", [3], constant([-1]), 0, "C3"),
    ],
)
def test_constraints(dtype, dims, k, axis, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        TOP.make(value(dtype, dims), k, axis=axis)


@pytest.mark.parametrize("k", [[4], [-1], [1, 1], []])
def test_a_run_is_refused(k):
    built = TOP.make(value("float32", ["n"]), value("int64", ["k"]))
    with pytest.raises(ExecutionError, match="axis 0 has 3 elements"):
        built.evaluate(EvalContext(), np.zeros(3, "f4"), np.array(k, np.int64))
