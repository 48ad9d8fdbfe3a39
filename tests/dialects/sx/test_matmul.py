"""Matrix products: NumPy's rules, one rounding, integers that wrap, no elements, symbols, errors."""

import numpy as np
import pytest
from op_case import round_trip, run, shape, value
from ort_oracle import run_node
from sized import op

from sardonyx.dialects import dtypes
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.errors import ExecutionError, InferenceError

MATMUL, GEMM = op("matmul"), op("gemm")
DTYPES = [t.name for t in MATMUL.DTYPES]
RNG = np.random.default_rng(3)


def example(dtype, *dims):
    return RNG.integers(-4 if dtype[0] != "u" else 0, 5, dims).astype(dtypes.DTYPES[dtype].numpy)


@pytest.mark.parametrize("dtype", DTYPES)
def test_small_whole_numbers_are_exact(dtype):
    a, b = example(dtype, 3, 4), example(dtype, 4, 5)
    want = a.astype(np.int64) @ b.astype(np.int64)
    assert run(MATMUL, a, b).astype(np.int64).tolist() == want.tolist()
    c = example(dtype, 5)
    got = run(GEMM, a, b, c, alpha=2.0, beta=3.0).astype(np.int64)
    assert got.tolist() == (2 * want + 3 * c.astype(np.int64)).tolist()


@pytest.mark.parametrize(
    ("a", "b", "want"),
    [
        ((4,), (4,), ()), ((4,), (4, 5), (5,)), ((3, 4), (4,), (3,)), ((2, 3, 4), (4,), (2, 3)),
        ((4,), (2, 4, 5), (2, 5)), ((2, 1, 3, 4), (7, 4, 5), (2, 7, 3, 5)), ((2, 0), (0, 3), (2, 3)),
        ((0, 2), (2,), (0,)), ((0, 2, 3), (1, 3, 4), (0, 2, 4)), ((0,), (0,), ()), ((1, 1), (1, 1), (1, 1)),
    ],
)  # fmt: skip
def test_ranks_and_sizes(a, b, want):
    x, y = RNG.random(a), RNG.random(b)
    got = run(MATMUL, x, y)
    assert got.shape == want
    np.testing.assert_allclose(got, np.matmul(x, y), rtol=1e-14)
    if 0 in a and 0 not in want:
        assert not got.any()


@pytest.mark.parametrize("dtype", ["int32", "int64", "uint32", "uint64"])
def test_integers_wrap(dtype):
    top = int(np.iinfo(dtype).max)
    got = run(MATMUL, np.array([[top, 1]], dtype), np.array([[2], [5]], dtype))
    assert int(got[0, 0]) == int(
        np.array([(top * 2 + 5) % 2 ** (8 * got.itemsize)], f"u{got.itemsize}").astype(dtype)[0]
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_sums_are_rounded_once(dtype):
    numpy = dtypes.DTYPES[dtype].numpy
    # 1 is lost against the large term in the narrow dtype, not in float64.
    large = 2.0 ** (12 if dtype != "float32" else 26)
    a, b = np.array([[large, 1, -large]], numpy), np.ones((3, 1), numpy)
    assert run(MATMUL, a, b).astype(np.float64).tolist() == [[1.0]]
    assert run(GEMM, a, b).astype(np.float64).tolist() == [[1.0]]


def test_infinities_and_nan():
    inf, nan = np.inf, np.nan
    got = run(MATMUL, np.array([[inf, 1], [inf, 0], [nan, 1]]), np.array([[1.0, -1.0], [inf, 0.0]]))
    np.testing.assert_array_equal(got, [[inf, -inf], [nan, -inf], [nan, nan]])


def test_against_onnxruntime():
    a, b = RNG.random((2, 3, 4), np.float32), RNG.random((4, 5), np.float32)
    np.testing.assert_allclose(run(MATMUL, a, b), run_node("MatMul", [a, b])[0], rtol=1e-5)
    w, c = RNG.random((5, 3), np.float32), RNG.random((4, 1), np.float32)
    attributes = {"alpha": 0.3, "beta": -1.7, "transA": 1, "transB": 1}
    want = run_node("Gemm", [a[0, :, :].copy(), w, c], **attributes)[0]
    got = run(GEMM, a[0], w, c, alpha=0.3, beta=-1.7, transA=True, transB=True)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("c", [None, (), (1,), (5,), (3, 1), (1, 5), (3, 5)])
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True), (True, True)])
def test_gemm(c, transposed):
    a, b = RNG.random((4, 3) if transposed[0] else (3, 4)), RNG.random((5, 4) if transposed[1] else (4, 5))
    added = None if c is None else RNG.random(c)
    got = run(GEMM, a, b, added, transA=transposed[0], transB=transposed[1], alpha=0.5, beta=2.0)
    want = 0.5 * (a.T if transposed[0] else a) @ (b.T if transposed[1] else b)
    np.testing.assert_allclose(got, want if added is None else want + 2 * added, rtol=1e-14)


def test_gemm_without_inner_elements_is_the_bias():
    got = run(
        GEMM, np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32), np.array([1, 2, 3], np.float32), beta=2.0
    )
    assert got.tolist() == [[2, 4, 6], [2, 4, 6]]


def test_symbols():
    a = value("float32", ["b", "n", 64])
    assert shape(MATMUL.make(a, value("float32", [64, "m"]))) == ["b", "n", "m"]
    assert shape(MATMUL.make(a, value("float32", [1, 64, 3]))) == ["b", "n", "3"]
    assert shape(MATMUL.make(a, value("float32", ["c", "k", 3]))) == ["broadcast(b, c)", "n", "3"]
    assert shape(MATMUL.make(value("float32", ["n"]), value("float32", ["b", "n", "m"]))) == ["b", "m"]
    assert shape(MATMUL.make(a, value("float32", None))) is None
    x, w = value("float32", ["b", 3]), value("float32", ["m", 3])
    assert shape(GEMM.make(x, w, transB=True)) == ["b", "m"]
    assert shape(GEMM.make(x, w, transA=True, transB=False)) == ["3", "3"]
    assert shape(GEMM.make(value("float32", None), w, transB=True)) == ["?", "m"]


def test_text():
    a, b = value("float32", ["n", 2]), value("float32", [2, 3])
    assert "sx.matmul %x0, %x1" in round_trip(MATMUL.make(a, b))
    line = round_trip(GEMM.make(a, b, alpha=0.5))
    assert "alpha = 5.000000e-01" in line


@pytest.mark.parametrize(
    ("a", "b", "constraint"),
    [
        (("float32", [2, 2]), ("float64", [2, 2]), "C1"),
        (("int8", [2, 2]), ("int8", [2, 2]), "C1"),
        (("float32", []), ("float32", [2, 2]), "C2"),
        (("float32", [2, 3]), ("float32", [4, 2]), "C3"),
        (("float32", [2, "n"]), ("float32", [Dim.parse("n + 1"), 2]), "C3"),
        (("float32", [2, 2, 3]), ("float32", [3, 3, 2]), "C4"),
    ],
)
def test_matmul_constraints(a, b, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        MATMUL.make(value(*a), value(*b))


@pytest.mark.parametrize(
    ("a", "b", "c", "properties", "constraint"),
    [
        (("float32", [2, 2]), ("float32", [2, 2]), ("float64", [2]), {}, "C1"),
        (("bool", [2, 2]), ("bool", [2, 2]), None, {}, "C1"),
        (("float32", [2, 2, 2]), ("float32", [2, 2]), None, {}, "C2"),
        (("float32", [2]), ("float32", [2, 2]), None, {}, "C2"),
        (("float32", [2, 3]), ("float32", [2, 3]), None, {}, "C3"),
        (("float32", [2, 3]), ("float32", [3, 4]), ("float32", [3]), {}, "C4"),
        (("float32", [2, 3]), ("float32", [3, 4]), ("float32", [1, 2, 4]), {}, "C4"),
        (("int32", [2, 3]), ("int32", [3, 4]), None, {"alpha": 0.5}, "C5"),
    ],
)
def test_gemm_constraints(a, b, c, properties, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        GEMM.make(value(*a), value(*b), None if c is None else value(*c), **properties)


def test_runs_that_are_refused():
    ctx, a = EvalContext(), np.ones((2, 3))
    with pytest.raises(ExecutionError, match=r"\[2, 3\] and \[2, 3\]"):
        MATMUL.make(value("float64", ["n", "m"]), value("float64", ["k", "j"])).evaluate(ctx, a, a)
    built = GEMM.make(value("float64", ["n", "m"]), value("float64", ["k", "j"]), value("float64", ["i"]))
    with pytest.raises(ExecutionError, match="no operands of gemm"):
        built.evaluate(ctx, a, a, None)
    with pytest.raises(ExecutionError, match="does not broadcast"):
        built.evaluate(ctx, a, a.T, np.ones(3))
