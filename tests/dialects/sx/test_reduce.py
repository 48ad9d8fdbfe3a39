"""Reductions: exact values, neutral elements, NaN, axes that are absent, empty, negative or known in a run only."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from op_case import constant, extents, known, op, round_trip, run, shape, value
from ort_oracle import run_node

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext, evaluate_op
from sardonyx.errors import ExecutionError, InferenceError

INF, NAN = math.inf, math.nan
FLOATS = [t.name for t in dtypes.FLOATS]
INTEGERS = ["int32", "int64", "uint32", "uint64"]
ALL = [f"reduce_{n}" for n in ("sum", "mean", "max", "min", "prod", "l1", "l2", "log_sum", "log_sum_exp", "sum_square")]
OF_INTEGERS = [n for n in ALL if "log" not in n]


def axes(*values):
    return np.array(values, np.int64)


def exact(name, values):
    """The reduction of Python's numbers by mpmath, exact but for its 60 digits."""
    v = [mpmath.mpf(float(x)) if isinstance(x, float) else mpmath.mpf(int(x)) for x in values]
    return {
        "reduce_sum": lambda: mpmath.fsum(v),
        "reduce_mean": lambda: mpmath.fsum(v) / len(v),
        "reduce_max": lambda: max(v),
        "reduce_min": lambda: min(v),
        "reduce_prod": lambda: mpmath.fprod(v),
        "reduce_l1": lambda: mpmath.fsum(map(abs, v)),
        "reduce_l2": lambda: mpmath.sqrt(mpmath.fsum(x * x for x in v)),
        "reduce_log_sum": lambda: mpmath.log(mpmath.fsum(v)),
        "reduce_log_sum_exp": lambda: mpmath.log(mpmath.fsum(map(mpmath.exp, v))),
        "reduce_sum_square": lambda: mpmath.fsum(x * x for x in v),
    }[name]()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ALL)
def test_floats_are_rounded_once(name, dtype):
    target = dtypes.DTYPES[dtype].numpy
    rng = np.random.default_rng(11)
    x = (rng.normal(size=(9, 23)) * (1 if name != "reduce_prod" else 1.2)).astype(target)
    if name == "reduce_log_sum":
        x = np.abs(x)
    got = run(op(name), x, axes(1), keepdims=False)
    assert got.dtype == target
    with mpmath.workdps(60):
        for row, r in zip(x, got, strict=True):
            want = exact(name, [float(v) for v in row])
            spacing = abs(float(np.spacing(np.abs(r))))
            assert abs(mpmath.mpf(float(r)) - want) <= spacing * (0.5001 if dtype != "float64" else 32)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", OF_INTEGERS)
def test_integers(name, dtype):
    info = np.iinfo(dtype)
    rows = [[3, 5, 2], [7, 0, 1], [info.max, 1, 1]] + ([[-3, -5, 1], [-7, 2, 2]] if info.min < 0 else [])
    x = np.array(rows, dtype)
    got = run(op(name), x, axes(-1), keepdims=False)
    bits64 = np.iinfo("int64" if info.min < 0 else "uint64")

    def wrap(number, limits):
        return (number - limits.min) % 2**limits.bits + limits.min

    def want(row):
        total = wrap(sum(row), bits64)
        return {
            "reduce_sum": lambda: wrap(sum(row), info),
            "reduce_mean": lambda: abs(total) // 3 * (1 if total >= 0 else -1),
            "reduce_max": lambda: max(row),
            "reduce_min": lambda: min(row),
            "reduce_prod": lambda: wrap(math.prod(row), info),
            "reduce_l1": lambda: wrap(sum(map(abs, row)), info),
            "reduce_l2": lambda: min(info.max, math.isqrt(sum(v * v for v in row))),
            "reduce_sum_square": lambda: wrap(sum(v * v for v in row), info),
        }[name]()

    assert got.dtype == np.dtype(dtype) and got.tolist() == [want(r) for r in rows]


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_extremes_of_small_integers(dtype):
    x = np.array([[3, 7, 1]], dtype)
    assert run(op("reduce_max"), x).tolist() == [[7]] and run(op("reduce_min"), x).tolist() == [[1]]


def test_extremes_of_bools():
    x = np.array([[True, False], [False, False], [True, True]])
    assert run(op("reduce_max"), x, axes(1), keepdims=False).tolist() == [True, False, True]
    assert run(op("reduce_min"), x, axes(1), keepdims=False).tolist() == [False, False, True]


NEUTRAL = {
    "reduce_sum": 0, "reduce_mean": NAN, "reduce_max": -INF, "reduce_min": INF, "reduce_prod": 1, "reduce_l1": 0,
    "reduce_l2": 0, "reduce_log_sum": -INF, "reduce_log_sum_exp": -INF, "reduce_sum_square": 0,
}  # fmt: skip


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ALL)
def test_of_nothing(name, dtype):
    x = np.zeros((2, 0, 3), dtypes.DTYPES[dtype].numpy)
    got = run(op(name), x, axes(1), keepdims=False)
    np.testing.assert_array_equal(got.astype(float), np.full((2, 3), float(NEUTRAL[name])))
    assert run(op(name), x, axes(0, -1)).shape == (1, 0, 1)
    assert run(op(name), x, keepdims=False).shape == ()


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint64", "bool", "int8"])
def test_of_no_integers(dtype):
    x = np.zeros((0, 2), dtype)
    low, high = (False, True) if dtype == "bool" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    assert run(op("reduce_max"), x, axes(0)).tolist() == [[low, low]]
    assert run(op("reduce_min"), x, axes(0)).tolist() == [[high, high]]
    if dtype not in ("bool", "int8"):
        assert run(op("reduce_mean"), x, axes(0)).tolist() == [[0, 0]]
        assert run(op("reduce_prod"), x, axes(0)).tolist() == [[1, 1]]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ALL)
def test_nan_propagates_from_anywhere(name, dtype):
    x = np.tile(np.arange(1, 20), (5, 1)).astype(dtypes.DTYPES[dtype].numpy)
    x[0, 0] = x[1, 9] = x[2, 18] = NAN
    x[3, :3] = NAN
    got = run(op(name), x, axes(1), keepdims=False).astype(float)
    assert np.isnan(got).tolist() == [True] * 4 + [False]


@pytest.mark.parametrize("name", ALL)
def test_infinities(name):
    x = np.array([[INF, 1, 2], [-INF, 1, 2], [-INF, -INF, -INF]], np.float32)
    want = {
        "reduce_sum": [INF, -INF, -INF], "reduce_mean": [INF, -INF, -INF], "reduce_max": [INF, 2, -INF],
        "reduce_min": [INF, -INF, -INF], "reduce_prod": [INF, -INF, -INF], "reduce_l1": [INF] * 3,
        "reduce_l2": [INF] * 3, "reduce_log_sum": [INF, NAN, NAN], "reduce_sum_square": [INF] * 3,
        "reduce_log_sum_exp": [INF, np.float32(2 + math.log1p(math.exp(-1))), -INF],
    }[name]  # fmt: skip
    want = [1 if (name, i) == ("reduce_min", 0) else w for i, w in enumerate(want)]
    np.testing.assert_array_equal(run(op(name), x, axes(1), keepdims=False), want)


def test_signs_of_zeros():
    x = np.array([[0.0, -0.0], [-0.0, 0.0], [-0.0, -0.0], [-0.0, -1]], np.float32)
    assert np.signbit(run(op("reduce_max"), x, axes(1))).reshape(-1).tolist() == [False, False, True, True]
    assert np.signbit(run(op("reduce_min"), -x, axes(1))).reshape(-1).tolist() == [True, True, False, False]


def test_log_sum_exp_does_not_overflow():
    x = np.array([[1000, 1000], [-1000, -1000], [88, -88]], np.float32)
    want = [1000 + math.log(2), -1000 + math.log(2), 88]
    np.testing.assert_allclose(run(op("reduce_log_sum_exp"), x, axes(1), keepdims=False), want, rtol=1e-7)


def test_float16_accumulates_wide():
    x = np.full(70000, 1, np.float16)
    assert run(op("reduce_mean"), x).tolist() == [1]
    assert run(op("reduce_sum"), x[:4097]).tolist() == [float(np.float16(4097))]
    assert run(op("reduce_l2"), np.array([300, 400], np.float16)).tolist() == [500]
    many = np.full(2**20, 0.1, np.float32)
    assert run(op("reduce_sum"), many).tolist() == [float(np.float32(Fraction(float(np.float32(0.1))) * 2**20))]


# ---- axes


@pytest.mark.parametrize("name", ALL)
def test_absent_and_empty_axes(name):
    x = np.array([[1, 2], [3, 4]], np.float32)
    whole = run(op(name), x)
    assert whole.shape == (1, 1)
    assert run(op(name), x, axes()).tolist() == whole.tolist()
    assert run(op(name), x, axes(), keepdims=False).shape == ()
    assert run(op(name), x, axes(1, 0)).tolist() == whole.tolist()
    each = {
        "reduce_log_sum": np.log(x), "reduce_sum_square": x * x, "reduce_l1": np.abs(x), "reduce_l2": np.abs(x),
    }.get(name, x)  # fmt: skip
    for operands in ((x,), (x, axes())):
        for keepdims in (True, False):
            got = run(op(name), *operands, noop_with_empty_axes=True, keepdims=keepdims)
            np.testing.assert_allclose(got, each, rtol=1e-6)
    assert run(op(name), x, axes(0), noop_with_empty_axes=True).shape == (1, 2)


@pytest.mark.parametrize("name", ALL)
def test_scalars(name):
    x = np.float32(2)
    want = {"reduce_log_sum": math.log(2), "reduce_sum_square": 4}.get(name, 2)
    for operands in ((x,), (x, axes())):
        for keepdims in (True, False):
            got = run(op(name), *operands, keepdims=keepdims)
            assert got.shape == () and got == np.float32(want)


@pytest.mark.parametrize("keepdims", [True, False])
@pytest.mark.parametrize("which", [(0,), (2,), (-1,), (0, 2), (-1, -3), (0, 1, 2), ()])
@pytest.mark.parametrize("name", ALL)
def test_against_onnxruntime(name, which, keepdims):
    x = np.random.default_rng(4).uniform(0.5, 2, (2, 3, 4)).astype(np.float32)
    (want,) = run_node(op(name).ONNX.name, [x, axes(*which)], keepdims=int(keepdims), opset=18)
    got = run(op(name), x, axes(*which), keepdims=keepdims)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_operands_with_strides():
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4).transpose(2, 0, 1)[::-1]
    np.testing.assert_array_equal(run(op("reduce_sum"), x, axes(1)), x.sum(1, keepdims=True))


# ---- inference


def test_types_with_known_axes():
    x = value("float32", ["n", 3, "m"])
    reduce = op("reduce_sum")
    assert shape(reduce.make(x, constant([1]))) == ["n", "1", "m"]
    assert shape(reduce.make(x, constant([-1, 0]), keepdims=False)) == ["3"]
    assert shape(reduce.make(x)) == ["1", "1", "1"]
    assert shape(reduce.make(x, keepdims=False)) == []
    assert shape(reduce.make(x, noop_with_empty_axes=True, keepdims=False)) == ["n", "3", "m"]
    assert shape(reduce.make(x, value("int64", [0]), keepdims=False)) == []
    assert shape(reduce.make(x, value("int64", [0]), noop_with_empty_axes=True)) == ["n", "3", "m"]


def test_types_with_axes_of_the_run():
    x = value("float32", ["n", 1, "m"])
    reduce = op("reduce_max")
    assert shape(reduce.make(x, value("int64", ["k"]))) == ["?", "1", "?"]
    assert shape(reduce.make(x, value("int64", [2]))) == ["?", "1", "?"]
    assert shape(reduce.make(x, value("int64", [2]), keepdims=False)) == ["?"]
    assert shape(reduce.make(x, value("int64", [3]), keepdims=False)) == []
    assert shape(reduce.make(x, value("int64", ["k"]), keepdims=False)) is None
    assert shape(reduce.make(value("float32", []), value("int64", ["k"]), keepdims=False)) == []
    assert shape(reduce.make(value("float32", None), keepdims=False)) == []
    assert shape(reduce.make(value("float32", None))) is None
    assert shape(reduce.make(value("float32", None), noop_with_empty_axes=True, keepdims=False)) is None
    assert shape(reduce.make(value("float32", None), constant([0]))) is None


def test_unknown_extents_differ_from_each_other():
    x = value("float32", ["n", "m"])
    found = op("reduce_sum").make(x, value("int64", [1])).output.type
    first, second = found.encoding.data
    assert first != second
    again = op("reduce_sum").make(x, value("int64", [1])).output.type
    assert again.encoding.data[0] != first


@pytest.mark.parametrize("name", ALL)
def test_c1(name):
    wrong = "int16" if name in OF_INTEGERS else "int32"
    with pytest.raises(InferenceError, match=r"^\(C1\) .*allowed"):
        op(name).make(value(wrong, [2]))


@pytest.mark.parametrize("name", ALL)
def test_c2(name):
    x = value("float32", [2, 3])
    with pytest.raises(InferenceError, match=r"^\(C2\) axes has dtype int32; allowed: int64"):
        op(name).make(x, value("int32", [1]))
    with pytest.raises(InferenceError, match=r"^\(C2\) axes is a vector, but .* has rank 0"):
        op(name).make(x, constant(1))


@pytest.mark.parametrize("name", ALL)
def test_c3(name):
    x = value("float32", [2, 3])
    with pytest.raises(InferenceError, match=r"^\(C3\) axis 2 is out of range for rank 2"):
        op(name).make(x, constant([2]))
    with pytest.raises(InferenceError, match=r"^\(C3\) axes \[1, 1\] repeat one"):
        op(name).make(x, constant([1, -1]))
    with pytest.raises(InferenceError, match=r"^\(C3\) axis 0 is out of range for rank 0"):
        op(name).make(value("float32", []), constant([0]))
    with pytest.raises(InferenceError, match=r"^\(C3\) 3 axes of a tensor of rank 2"):
        op(name).make(x, value("int64", [3]), keepdims=False)


@pytest.mark.parametrize("wrong", [(2,), (-3,), (0, 0), (1, -1)])
def test_c3_is_checked_in_a_run(wrong):
    made = op("reduce_sum").make(value("float32", [2, 3]), value("int64", ["k"]))
    ctx = EvalContext({made.data: np.ones((2, 3), np.float32), made.axes: axes(*wrong)})
    with pytest.raises(ExecutionError, match=r"\(C3\) axes \[.*\] repeat one or are out of range for rank 2"):
        evaluate_op(made, ctx)


# ---- contents


def test_contents():
    dims = extents(["n", 3, "m"])
    assert known(op("reduce_prod").make(dims, keepdims=False)) == ["3*m*n"]
    assert known(op("reduce_sum").make(dims, constant([0]))) == ["m + n + 3"]
    assert known(op("reduce_max").make(dims)) == ["max(3, m, n)"]
    assert known(op("reduce_min").make(dims)) == ["min(3, m, n)"]
    assert known(op("reduce_prod").make(dims, noop_with_empty_axes=True)) == ["n", "3", "m"]
    assert known(op("reduce_mean").make(dims)) is None
    assert known(op("reduce_mean").make(constant([7, -2]))) == ["2"]
    assert known(op("reduce_prod").make(extents([]), keepdims=False)) == ["1"]
    assert known(op("reduce_sum").make(constant([[1, 2], [3, 4]]), constant([0]), keepdims=False)) == ["4", "6"]
    assert known(op("reduce_prod").make(dims, value("int64", ["k"]))) is None
    assert known(op("reduce_max").make(constant([True, False]))) == ["1"]


def test_contents_of_matrices():
    row = extents(["n", 2, 2**40])
    matrix = op("mul").make(row, constant([[1], [2**24]])).output
    found = op("reduce_prod").make(matrix, constant([0]), keepdims=False)
    assert known(found) == [f"{2**24}*n*n", str(2**26), "0"]


def test_large_operands_are_not_followed():
    big = value("int64", [2**40])
    assert known(op("reduce_sum").make(big)) is None


# ---- text


@pytest.mark.parametrize("name", ALL)
def test_text_round_trip(name):
    x = value("float32", ["n", 3])
    types = "(tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<1x1xf32>"
    assert round_trip(op(name).make(x)) == f"%0 = sx.{name} %x0 : {types}"
    line = round_trip(op(name).make(x, value("int64", [1]), keepdims=False, noop_with_empty_axes=True))
    assert line.startswith(f"%0 = sx.{name} %x0, %x1 {{keepdims = false, noop_with_empty_axes = true}} : (")
