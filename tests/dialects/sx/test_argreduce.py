"""arg_max and arg_min."""

import numpy as np
import pytest
from op_case import constant, known, op, round_trip, run, shape, value
from ort_oracle import run_node

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext, evaluate_op
from sardonyx.errors import ExecutionError, InferenceError

NAN = np.nan
BOTH = ["arg_max", "arg_min"]


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.NUMERIC])
def test_first_and_last_of_equals(dtype):
    x = np.array([[2, 5, 5, 1, 1], [7, 7, 7, 7, 7]]).astype(dtypes.DTYPES[dtype].numpy)
    for name, first, last in (("arg_max", [1, 0], [2, 4]), ("arg_min", [3, 0], [4, 4])):
        got = run(op(name), x, axis=1, keepdims=False)
        assert got.dtype == np.int64 and got.tolist() == first
        assert run(op(name), x, axis=-1, keepdims=False, select_last_index=True).tolist() == last


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("name", BOTH)
def test_a_nan_wins(name, dtype):
    x = np.array([[1, NAN, 9, NAN, 0], [0, 1, np.inf, -np.inf, NAN]]).astype(dtypes.DTYPES[dtype].numpy)
    assert run(op(name), x, axis=1, keepdims=False).tolist() == [1, 4]
    assert run(op(name), x, axis=1, keepdims=False, select_last_index=True).tolist() == [3, 4]


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint64"])
def test_limits_of_integers(dtype):
    info = np.iinfo(dtype)
    x = np.array([info.max - 1, info.max, info.min, info.max], dtype)
    assert run(op("arg_max"), x).tolist() == [1] and run(op("arg_min"), x).tolist() == [2]


def test_zeros_of_both_signs_are_equal():
    x = np.array([-0.0, 0.0, -0.0], np.float32)
    assert run(op("arg_max"), x).tolist() == [0] and run(op("arg_min"), x).tolist() == [0]


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
@pytest.mark.parametrize("name", BOTH)
def test_against_onnxruntime(name, axis, keepdims, last):
    x = np.random.default_rng(6).integers(0, 3, (3, 4, 5)).astype(np.float32)
    got = run(op(name), x, axis=axis, keepdims=keepdims, select_last_index=last)
    attributes = {"axis": axis, "keepdims": int(keepdims), "select_last_index": int(last)}
    np.testing.assert_array_equal(got, run_node(op(name).ONNX.name, [x], **attributes)[0])


@pytest.mark.parametrize("name", BOTH)
def test_empty_tensors(name):
    assert run(op(name), np.zeros((0, 3), np.float32), axis=1).shape == (0, 1)
    assert run(op(name), np.zeros((0, 3), np.float32), axis=1, keepdims=False).shape == (0,)
    with pytest.raises(InferenceError, match=r"^\(C3\) axis 1 has extent 0"):
        op(name).make(value("float32", [2, 0]), axis=-1)
    made = op(name).make(value("float32", [2, "n"]), axis=1)
    with pytest.raises(ExecutionError, match=r"\(C3\) axis 1 has extent 0"):
        evaluate_op(made, EvalContext({made.data: np.zeros((2, 0), np.float32)}))


@pytest.mark.parametrize("name", BOTH)
def test_types_and_refusals(name):
    x = value("float32", ["n", 3])
    assert shape(op(name).make(x)) == ["1", "3"]
    assert shape(op(name).make(x, axis=1)) == ["n", "1"]
    assert shape(op(name).make(x, axis=-1, keepdims=False)) == ["n"]
    assert shape(op(name).make(value("float32", None))) is None
    assert "i64" in str(op(name).make(x).output.type)
    with pytest.raises(InferenceError, match=r"^\(C1\) .* bool"):
        op(name).make(value("bool", [2]))
    for axis in (2, -3):
        with pytest.raises(InferenceError, match=rf"^\(C2\) axis {axis} is out of range for rank 2"):
            op(name).make(x, axis=axis)
    with pytest.raises(InferenceError, match=r"^\(C2\) axis 0 is out of range for rank 0"):
        op(name).make(value("float32", []))


def test_contents():
    assert known(op("arg_max").make(constant([3, 9, 2]))) == ["1"]
    assert known(op("arg_max").make(value("int64", [3]))) is None


@pytest.mark.parametrize("name", BOTH)
def test_text_round_trip(name):
    x = value("float32", ["n", 3])
    assert round_trip(op(name).make(x)).startswith(f"%0 = sx.{name} %x0 : (")
    line = round_trip(op(name).make(x, axis=-1, keepdims=False, select_last_index=True))
    assert line.startswith(f"%0 = sx.{name} %x0 {{axis = -1 : i64, keepdims = false, select_last_index = true}} : (")
