"""Tensors made from extents and bounds: values, contents, counts at the edges, errors."""

import numpy as np
import pytest
from op_case import constant, extents, known, round_trip, run, shape, value
from ort_oracle import run_node
from sized import every, op, sizes

from sardonyx.dialects import dtypes
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.dialects.sx.constant import dense_attribute
from sardonyx.errors import ExecutionError, InferenceError

FILL, RANGE = op("constant_of_shape"), op("range")
RANGES = [t.name for t in RANGE.DTYPES]


# ---- constant_of_shape


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.ALL])
def test_constant_of_shape(dtype):
    element = np.array([1], dtypes.DTYPES[dtype].numpy)
    got = run(FILL, np.array([2, 3]), value=dense_attribute(element))
    assert got.dtype == element.dtype and got.tolist() == [[element[0].item()] * 3] * 2


def test_constant_of_shape_edges():
    assert run(FILL, np.array([0, 3])).shape == (0, 3)
    assert run(FILL, np.zeros(0, np.int64), value=dense_attribute(np.array([7]))).tolist() == 7
    assert run(FILL, np.array([2])).dtype == np.float32
    made = FILL.of(value("int64", [2]), np.array(3, np.int8))
    assert made.evaluate(EvalContext(), np.array([1, 2]))[0].tolist() == [[3, 3]]


def test_constant_of_shape_of_symbols():
    assert shape(FILL.make(extents(["b", 3, Dim.parse("n + 1")]))) == ["b", "3", "n + 1"]
    assert shape(FILL.make(value("int64", [2]))) == ["?", "?"]
    assert shape(FILL.make(value("int64", ["k"]))) is None
    assert known(FILL.make(constant([3]), value=dense_attribute(np.array([5])))) == ["5", "5", "5"]


@pytest.mark.parametrize(
    ("target", "element", "constraint"),
    [
        (constant([2], "int32"), None, "C1"),
        (constant([-1]), None, "C1"),
        (constant([2]), np.array([1, 2]), "C2"),
        (constant([2**21, 2**22]), None, "C3"),
        (constant([2**33, 2**33]), None, "C3"),
    ],
)
def test_constant_of_shape_constraints(target, element, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        FILL.make(target, value=None if element is None else dense_attribute(element))


@pytest.mark.parametrize("target", [[-1], [2**21, 2**22], [2**63 - 1, 2**63 - 1]])
def test_constant_of_shape_refuses_a_run(target):
    with pytest.raises(ExecutionError):
        FILL.make(value("int64", [len(target)])).evaluate(EvalContext(), np.array(target))


# ---- range


@pytest.mark.parametrize("dtype", RANGES)
def test_range(dtype):
    numpy = dtypes.DTYPES[dtype].numpy
    for start, limit, delta, want in (
        (-2, 9, 3, [-2, 1, 4, 7]), (9, -2, -4, [9, 5, 1]), (9, -2, 3, []), (1, 1, 1, []), (0, 4, 2, [0, 2]),
        (0, 5, 2, [0, 2, 4]),
    ):  # fmt: skip
        got = run(RANGE, *(np.array(v).astype(numpy) for v in (start, limit, delta)))
        assert got.dtype == numpy and got.tolist() == want


def test_range_of_floats():
    got = run(RANGE, np.float32(0), np.float32(1), np.float32(0.3))
    assert got.tolist() == [np.float32(i * float(np.float32(0.3))) for i in range(4)]
    # Steps don't accumulate errors.
    half = run(RANGE, np.float16(2048), np.float16(2056), np.float16(1))
    assert half.tolist() == [2048, 2048, 2050, 2052, 2052, 2052, 2054, 2056]
    x = [np.float32(v) for v in (1, 7, 0.7)]
    np.testing.assert_allclose(run(RANGE, *x), run_node("Range", x)[0], rtol=1e-6)


def test_range_at_the_ends_of_int64():
    top, bottom = 2**63 - 1, -(2**63)
    assert run(RANGE, np.array(top - 2), np.array(top), np.array(1)).tolist() == [top - 2, top - 1]
    assert run(RANGE, np.array(bottom), np.array(top), np.array(top)).tolist() == [bottom, -1, top - 1]


def test_range_of_symbols():
    n = extents(["n"])
    n = op("squeeze").make(n, constant([0])).output
    assert shape(RANGE.make(constant(0), n, constant(1))) == ["n"]
    assert shape(RANGE.make(n, constant(0), constant(-1))) == ["n"]
    built = RANGE.make(constant(2), n, constant(3))
    for at in every(n=range(12)):
        assert sizes(built, at) == (len(range(2, at["n"], 3)),)
    assert shape(RANGE.make(constant(0), n, value("int64", []))) == ["?"]
    assert shape(RANGE.make(constant(0), value("int64", []), constant(1))) == ["?"]
    assert shape(RANGE.make(*(constant(v, "float32") for v in (0, 1, 0.3)))) == ["4"]
    assert shape(RANGE.make(*[value("float32", [])] * 3)) == ["?"]


def test_range_of_contents():
    assert known(RANGE.make(constant(1), constant(7), constant(2))) == ["1", "3", "5"]
    n = op("squeeze").make(extents(["n"]), constant([0])).output
    end = op("squeeze").make(extents([Dim.parse("n + 3")]), constant([0])).output
    assert known(RANGE.make(n, end, constant(1))) == ["n", "n + 1", "n + 2"]
    assert known(RANGE.make(constant(0), n, constant(1))) is None


@pytest.mark.parametrize(
    ("operands", "constraint"),
    [
        ([constant(0), constant(1), constant(1, "int32")], "C1"),
        ([constant(0, "uint8"), constant(1, "uint8"), constant(1, "uint8")], "C1"),
        ([constant([0, 1]), constant(1), constant(1)], "C1"),
        ([constant(0), value("int64", []), constant(0)], "C2"),
        ([constant(0), constant(2**60), constant(1)], "C3"),
        ([constant(0.0), constant(float("inf")), constant(1.0)], "C3"),
        ([constant(float("nan")), constant(1.0), constant(1.0)], "C3"),
    ],
)
def test_range_constraints(operands, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        RANGE.make(*operands)


@pytest.mark.parametrize(
    ("dtype", "bounds"),
    [
        ("int64", (0, 5, 0)), ("int64", (0, 2**60, 1)), ("float64", (0, 1, 0)), ("float64", (0, np.inf, 1)),
        ("float64", (np.nan, 1, 1)), ("float64", (0, 1e300, 1e-300)),
    ],
)  # fmt: skip
def test_range_refuses_a_run(dtype, bounds):
    with pytest.raises(ExecutionError):
        RANGE.make(*[value(dtype, [])] * 3).evaluate(EvalContext(), *(np.array(v, dtype) for v in bounds))


def test_text():
    assert "value = dense<1> : tensor<1xi8>" in round_trip(FILL.of(value("int64", [2]), np.array(1, np.int8)))
    assert "sx.range %x0, %x1, %x2" in round_trip(RANGE.make(*(value("int64", []) for _ in range(3))))
