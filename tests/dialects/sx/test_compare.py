"""Comparisons and logic."""

import itertools
import operator

import numpy as np
import pytest
from op_case import constant, extents, known, op, round_trip, run, shape, value
from ort_oracle import run_node

from sardonyx.dialects import dtypes
from sardonyx.errors import InferenceError

COMPARE = {
    "equal": operator.eq,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}
LOGIC = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.NUMERIC])
@pytest.mark.parametrize("name", COMPARE)
def test_comparisons_are_pythons(name, dtype):
    target = dtypes.DTYPES[dtype]
    values = [0, 1, 2, 100] if target.kind == "u" else [0, 1, -1, 2, -100]
    if target.is_integer:
        info = np.iinfo(dtype)
        values += [info.min, info.max, info.max - 1]  # neighbours that float64 would not tell apart
    else:
        values += [np.nan, np.inf, -np.inf, -0.0]
    x = np.array(values, target.numpy)
    got = run(op(name), x[:, None], x[None, :])
    exact = x.tolist() if target.is_integer else x.astype(float).tolist()
    assert got.dtype == np.bool_
    assert got.tolist() == [[COMPARE[name](a, b) for b in exact] for a in exact]


def test_bools_are_equal_or_not():
    a, b = np.array([True, True, False, False]), np.array([True, False, True, False])
    assert run(op("equal"), a, b).tolist() == [True, False, False, True]


@pytest.mark.parametrize("name", LOGIC)
def test_logic(name):
    pairs = list(itertools.product([True, False], repeat=2))
    a, b = (np.array(v) for v in zip(*pairs, strict=True))
    assert run(op(name), a, b).tolist() == [LOGIC[name](x, y) for x, y in pairs]
    assert run(op(name), np.array(True), np.zeros((0, 2), bool)).shape == (0, 2)
    np.testing.assert_array_equal(run(op(name), a[:, None], b), run_node(op(name).ONNX.name, [a[:, None], b])[0])


@pytest.mark.parametrize("name", COMPARE)
def test_against_onnxruntime(name):
    for dtype in ("int32", "int64", "float32", "float64"):
        a, b = np.arange(6).reshape(2, 3).astype(dtype), np.array([1, 1, 4]).astype(dtype)
        np.testing.assert_array_equal(run(op(name), a, b), run_node(op(name).ONNX.name, [a, b])[0])


@pytest.mark.parametrize("name", COMPARE)
def test_shapes(name):
    assert run(op(name), np.float32(1), np.float32(2)).shape == ()
    assert run(op(name), np.zeros((0, 3), np.int8), np.zeros(3, np.int8)).shape == (0, 3)
    found = op(name).make(value("float16", ["n", 1]), value("float16", [3]))
    assert shape(found) == ["n", "3"] and "xi1" in str(found.output.type)
    assert shape(op(name).make(value("float16", None), value("float16", [3]))) is None


@pytest.mark.parametrize("name", [*COMPARE, *LOGIC])
def test_refusals(name):
    dtype = "float32" if name in COMPARE else "bool"
    with pytest.raises(InferenceError, match=r"^\(C1\) the operands have different dtypes"):
        op(name).make(value(dtype, [2]), value("int8", [2]))
    with pytest.raises(InferenceError, match=r"^\(C2\) "):
        op(name).make(value(dtype, [2]), value(dtype, [3]))
    if name != "equal":
        wrong = "bool" if name in COMPARE else "int8"
        with pytest.raises(InferenceError, match=r"^\(C1\) .*allowed"):
            op(name).make(value(wrong, [2]), value(wrong, [2]))


def facts(name, a, b):
    return known(op(name).make(a, b))


def test_contents():
    dims = extents(["n", "n", 3, "n"])
    other = op("add").make(dims, constant([0, 1, 0, 2])).output
    assert facts("equal", dims, constant([-1, 2, 3, 4])) == ["0", None, "1", None]
    assert facts("equal", dims, other) == ["1", "0", "1", "0"]
    assert facts("less", dims, other) == ["0", "1", "0", "1"]
    assert facts("less_equal", dims, constant([-1, 0, 3, 5])) == ["0", None, "1", None]
    assert facts("greater", dims, constant([-1, 0, 2, 5])) == ["1", None, "1", None]
    assert facts("greater_equal", dims, other) == ["1", "0", "1", "0"]
    flags = op("equal").make(dims, other).output
    assert facts("and", flags, constant([True, True, False, True])) == ["1", "0", "0", "0"]
    assert facts("or", flags, constant(True)) == ["1"] * 4
    assert facts("xor", flags, flags) == ["0"] * 4
    assert known(op("not").make(flags)) == ["0", "1", "0", "1"]


@pytest.mark.parametrize("name", [*COMPARE, *LOGIC])
def test_text_round_trip(name):
    dtype = "float32" if name in COMPARE else "bool"
    line = round_trip(op(name).make(value(dtype, ["n", 3]), value(dtype, [3])))
    assert line.startswith(f"%0 = sx.{name} %x0, %x1 : (") and line.endswith("-> tensor<?x3xi1, #sx.dims<n, _>>")
