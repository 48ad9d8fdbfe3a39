"""cumsum."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from op_case import constant, extents, known, op, round_trip, run, shape, value
from ort_oracle import run_node

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext, evaluate_op
from sardonyx.errors import ExecutionError, InferenceError

CUMSUM = op("cumsum")
FLAGS = list(itertools.product([False, True], repeat=2))
NUMBERS = ["int32", "int64", "uint32", "uint64", "float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("exclusive, reverse", FLAGS)
@pytest.mark.parametrize("dtype", NUMBERS)
def test_the_four_combinations(dtype, exclusive, reverse):
    x = np.array([[1, 2, 3, 4]]).astype(dtypes.DTYPES[dtype].numpy)
    got = run(CUMSUM, x, np.int64(1), exclusive=exclusive, reverse=reverse)
    want = {
        (False, False): [1, 3, 6, 10],
        (True, False): [0, 1, 3, 6],
        (False, True): [10, 9, 7, 4],
        (True, True): [9, 7, 4, 0],
    }[exclusive, reverse]
    assert got.dtype == x.dtype and got.astype(int).tolist() == [want]


@pytest.mark.parametrize("exclusive, reverse", FLAGS)
@pytest.mark.parametrize("dims", [(2, 1), (2, 0), (0, 3), (1,), (0,)])
def test_small_axes(dims, exclusive, reverse):
    got = run(CUMSUM, np.ones(dims, np.float32), np.int64(-1), exclusive=exclusive, reverse=reverse)
    assert got.shape == dims
    if dims[-1] == 1:
        assert (got == (0 if exclusive else 1)).all()


@pytest.mark.parametrize("exclusive, reverse", FLAGS)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_against_onnxruntime(dtype, axis, exclusive, reverse):
    x = np.random.default_rng(3).integers(-9, 9, (2, 3, 4)).astype(dtype)
    got = run(CUMSUM, x, np.int32(axis), exclusive=exclusive, reverse=reverse)
    (want,) = run_node("CumSum", [x, np.int32(axis)], exclusive=int(exclusive), reverse=int(reverse))
    np.testing.assert_array_equal(got, want)


def test_integers_wrap_and_floats_round_each_sum_once():
    assert run(CUMSUM, np.array([2**31 - 1, 1, 1], np.int32), np.int64(0)).tolist() == [2**31 - 1, -(2**31), 1 - 2**31]
    x = np.random.default_rng(1).normal(size=500).astype(np.float32)
    exact = np.array([float(f) for f in itertools.accumulate(Fraction(float(v)) for v in x)])
    np.testing.assert_array_equal(run(CUMSUM, x, np.int64(0)), exact.astype(np.float32))
    ones = np.ones(3000, np.float16)
    assert run(CUMSUM, ones, np.int64(0))[-1] == 3000


def test_nan_and_infinities_stay_where_they_are_summed():
    x = np.array([1, np.inf, 1, -np.inf, 1], np.float32)
    np.testing.assert_array_equal(run(CUMSUM, x, np.int64(0)), [1, np.inf, np.inf, np.nan, np.nan])
    got = run(CUMSUM, x, np.int64(0), exclusive=True)
    np.testing.assert_array_equal(got, [0, 1, np.inf, np.inf, np.nan])  # not inf - inf


def test_an_axis_of_one_element():
    assert run(CUMSUM, np.array([[1, 2]], np.float32), np.array([1])).tolist() == [[1, 3]]


def test_types_and_refusals():
    x = value("float32", ["n", 3])
    assert shape(CUMSUM.make(x, value("int64", []))) == ["n", "3"]
    assert shape(CUMSUM.make(value("float32", None), constant(7))) is None
    with pytest.raises(InferenceError, match=r"^\(C1\) .* int8"):
        CUMSUM.make(value("int8", [2]), constant(0))
    with pytest.raises(InferenceError, match=r"^\(C2\) axis has dtype float32; allowed: int32, int64"):
        CUMSUM.make(x, value("float32", []))
    with pytest.raises(InferenceError, match=r"^\(C2\) axis is one number, but its shape is \[2\]"):
        CUMSUM.make(x, value("int64", [2]))
    for axis in (2, -3):
        with pytest.raises(InferenceError, match=rf"^\(C3\) axis {axis} is out of range for rank 2"):
            CUMSUM.make(x, constant(axis))
    with pytest.raises(InferenceError, match=r"^\(C3\) axis 0 is out of range for rank 0"):
        CUMSUM.make(value("float32", []), constant(0))


@pytest.mark.parametrize(
    "axis, message", [(np.int64(2), r"\(C3\) axis 2 is out"), (np.array([0, 1]), r"\(C2\) axis has 2")]
)
def test_the_axis_is_checked_in_a_run(axis, message):
    made = CUMSUM.make(value("float32", ["n", 3]), value("int64", ["k"] * axis.ndim))
    with pytest.raises(ExecutionError, match=message):
        evaluate_op(made, EvalContext({made.x: np.ones((2, 3), np.float32), made.axis: axis}))


def test_contents():
    dims = extents(["n", 3, "m"])
    assert known(CUMSUM.make(dims, constant(0))) == ["n", "n + 3", "m + n + 3"]
    assert known(CUMSUM.make(dims, constant(0), exclusive=True)) == ["0", "n", "n + 3"]
    assert known(CUMSUM.make(dims, constant(-1), reverse=True)) == ["m + n + 3", "m + 3", "m"]
    assert known(CUMSUM.make(dims, constant(0), reverse=True, exclusive=True)) == ["m + 3", "m", "0"]
    assert known(CUMSUM.make(constant([[1, 2], [3, 4]]), constant(1))) == ["1", "3", "3", "7"]
    assert known(CUMSUM.make(dims, value("int64", []))) is None
    top = constant([2**31 - 1, 1], "int32")
    assert known(CUMSUM.make(top, constant(0))) == [str(2**31 - 1), str(-(2**31))]


def test_text_round_trip():
    x, axis = value("float32", ["n", 3]), value("int64", [])
    assert round_trip(CUMSUM.make(x, axis)).startswith("%0 = sx.cumsum %x0, %x1 : (")
    line = round_trip(CUMSUM.make(x, axis, exclusive=True, reverse=True))
    assert line.startswith("%0 = sx.cumsum %x0, %x1 {exclusive = true, reverse = true} : (")
