"""max, min, sum, mean of any number of operands."""

from fractions import Fraction

import numpy as np
import pytest
from op_case import constant, extents, known, op, round_trip, run, shape, value
from ort_oracle import run_node

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext, evaluate_op
from sardonyx.errors import ExecutionError, InferenceError

INF, NAN = np.inf, np.nan
ALL = ["max", "min", "sum", "mean"]


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.NUMERIC])
def test_extremes(dtype):
    target = dtypes.DTYPES[dtype].numpy
    a, b, c = (np.array(v).astype(target) for v in ([1, 5, 3], [4, 2, 3], [[2], [9]]))
    high, low = run(op("max"), [a, b, c]), run(op("min"), [a, b, c])
    assert high.dtype == low.dtype == target
    assert high.astype(float).tolist() == [[4, 5, 3], [9, 9, 9]]
    assert low.astype(float).tolist() == [[1, 2, 2], [1, 2, 3]]


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.INTEGERS])
def test_extremes_of_the_limits(dtype):
    info = np.iinfo(dtype)
    a, b = np.array([info.min, info.max, info.max - 1], dtype), np.array([info.max, info.max - 1, info.max], dtype)
    assert run(op("max"), [a, b]).tolist() == [info.max] * 3
    assert run(op("min"), [a, b]).tolist() == [info.min, info.max - 1, info.max - 1]


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.FLOATS])
@pytest.mark.parametrize("name", ALL)
def test_nan_wins_wherever_it_stands(name, dtype):
    a, b, c = (np.array(v).astype(dtypes.DTYPES[dtype].numpy) for v in ([NAN, 1, 1, 2], [1, NAN, 1, 3], [1, 1, NAN, 4]))
    got = run(op(name), [a, b, c]).astype(float)
    np.testing.assert_array_equal(got, [NAN, NAN, NAN, {"max": 4, "min": 2, "sum": 9, "mean": 3}[name]])


def test_signs_of_zeros_do_not_depend_on_the_order():
    plus, minus = np.float32(0.0), np.float32(-0.0)
    assert not np.signbit(run(op("max"), [plus, minus])) and not np.signbit(run(op("max"), [minus, plus]))
    assert np.signbit(run(op("min"), [plus, minus])) and np.signbit(run(op("min"), [minus, plus]))
    assert np.signbit(run(op("sum"), [minus])) and np.signbit(run(op("max"), [minus]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_sums_round_once(dtype):
    target = dtypes.DTYPES[dtype].numpy
    rng = np.random.default_rng(7)
    parts = [rng.normal(size=64).astype(target) for _ in range(5)]
    total, mean = run(op("sum"), parts), run(op("mean"), parts)
    exact = [sum(Fraction(float(p[i])) for p in parts) for i in range(64)]
    for got, values in ((total, exact), (mean, [e / 5 for e in exact])):
        up, down = np.nextafter(got, target.type(INF)), np.nextafter(got, target.type(-INF))
        for r, above, below, e in zip(got, up, down, values, strict=True):
            error = abs(Fraction(float(r)) - e)
            assert error <= abs(Fraction(float(above)) - e) and error <= abs(Fraction(float(below)) - e)


def test_float16_sums_accumulate_wide():
    big = np.array([60000], np.float16)
    assert run(op("sum"), [big, big, -big]).tolist() == [60000]
    assert run(op("mean"), [big, big, big]).tolist() == [60000]


@pytest.mark.parametrize("name", ALL)
def test_one_operand_scalars_and_nothing(name):
    x = np.array([[1.5, -2]], np.float32)
    assert run(op(name), [x]).tolist() == x.tolist()
    scalar = run(op(name), [np.float32(2), np.float32(2)])
    assert scalar.shape == () and scalar == (4 if name == "sum" else 2)
    assert run(op(name), [np.zeros((0, 3), np.float32), np.ones(3, np.float32)]).shape == (0, 3)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("name", ALL)
def test_against_onnxruntime(name, dtype):
    if (dtype.startswith("int") and name in ("sum", "mean")) or (dtype, name) == ("float64", "mean"):
        return  # not in the op, or not in onnxruntime
    rng = np.random.default_rng(1)
    parts = [rng.integers(-9, 9, s).astype(dtype) for s in ((2, 3), (3,), (2, 1), ())]
    np.testing.assert_allclose(run(op(name), parts), run_node(op(name).ONNX.name, parts)[0], rtol=1e-6)


def test_types():
    found = op("max").make([value("int8", ["n", 1]), value("int8", ["m"]), value("int8", [])])
    assert shape(found) == ["n", "m"]
    assert shape(op("sum").make([value("float32", ["n"]), value("float32", None)])) is None


def test_c1():
    with pytest.raises(InferenceError, match=r"^\(C1\) there is no operand"):
        op("max").make([])
    with pytest.raises(InferenceError, match=r"^\(C1\) the operands have different dtypes"):
        op("max").make([value("int8", [2]), value("int8", [2]), value("int16", [2])])
    for name, dtype in (("max", "bool"), ("sum", "int32"), ("mean", "int64")):
        with pytest.raises(InferenceError, match=r"^\(C1\) .*allowed"):
            op(name).make([value(dtype, [2])])


def test_c2():
    with pytest.raises(InferenceError, match=r"^\(C2\) shapes \[2\] and \[1\] and \[3\] do not broadcast"):
        op("min").make([value("int8", [2]), value("int8", [1]), value("int8", [3])])
    made = op("sum").make([value("float32", ["n"]), value("float32", ["m"])])
    with pytest.raises(ExecutionError, match=r"\(C2\)"):
        evaluate_op(made, EvalContext({v: np.ones(i + 2, np.float32) for i, v in enumerate(made.inputs)}))


def test_contents():
    dims = extents(["n", 3])
    assert known(op("max").make([dims, constant([1, 5])])) == ["max(1, n)", "5"]
    assert known(op("min").make([dims, constant([2, 5]), constant(4)])) == ["min(2, n)", "3"]
    assert known(op("max").make([dims, constant([0, -1])])) == ["n", "3"]
    assert known(op("max").make([dims, value("int64", [2])])) is None


@pytest.mark.parametrize("count", [1, 2, 5])
@pytest.mark.parametrize("name", ALL)
def test_text_round_trip(name, count):
    line = round_trip(
        op(name).make([value("float32", ["n", 3])] * 1 + [value("float32", [3]) for _ in range(count - 1)])
    )
    assert line.startswith(f"%0 = sx.{name} " + ", ".join(f"%x{i}" for i in range(count)) + " : (")
