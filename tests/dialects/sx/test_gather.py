"""Elements by index: negative and wrong indices, contents, symbols."""

import numpy as np
import pytest
from op_case import constant, extents, known, round_trip, run, shape, value
from ort_oracle import run_node
from sized import op

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.errors import ExecutionError, InferenceError

GATHER, ELEMENTS, ND = op("gather"), op("gather_elements"), op("gather_nd")
ALL = [t.name for t in dtypes.ALL]


def example(dtype, *dims):
    return np.arange(np.prod(dims)).reshape(dims).astype(dtypes.DTYPES[dtype].numpy)


# ---- gather


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ALL)
def test_gather(dtype, index):
    x = example(dtype, 5, 2)
    for at in ([[-5, 4], [0, -1]], -2, [], [[]]):
        indices = np.array(at, index)
        assert run(GATHER, x, indices).tolist() == x[np.array(at, np.int64)].tolist()
    assert run(GATHER, x, np.array([1, 0, -1], index), axis=-1).tolist() == x[:, [1, 0, -1]].tolist()


def test_gather_of_no_elements():
    empty = np.zeros((0, 3), np.float32)
    assert run(GATHER, empty, np.zeros((2, 0), np.int64)).shape == (2, 0, 3)
    assert run(GATHER, empty, np.array([1]), axis=1).shape == (0, 1)


def test_gather_of_symbols():
    x = value("float32", ["b", "n", 4])
    assert shape(GATHER.make(x, value("int64", ["i", "j"]), axis=1)) == ["b", "i", "j", "4"]
    assert shape(GATHER.make(x, value("int64", []), axis=-1)) == ["b", "n"]
    assert shape(GATHER.make(x, value("int64", None))) is None


def test_gather_of_contents():
    x = extents(["b", 3, "n"])
    assert known(GATHER.make(x, constant(-1))) == ["n"]
    assert known(GATHER.make(x, constant([2, 0]))) == ["n", "b"]
    assert known(GATHER.make(x, value("int64", [2]))) is None
    mixed = op("concat").make([constant([1]), value("int64", [1])], axis=0).output
    assert known(GATHER.make(x, mixed)) == ["3", None]
    rows = op("reshape").make(extents(["a", "b", "c", "d"]), constant([2, 2])).output
    assert known(GATHER.make(rows, constant([1, 0]), axis=1)) == ["b", "a", "d", "c"]


@pytest.mark.parametrize("index", [5, -6, 2**63 - 1, -(2**63)])
def test_gather_names_the_index_out_of_range(index):
    x = np.zeros((5, 2), np.float32)
    with pytest.raises(InferenceError, match=rf"\(C3\) index {index} is out of range for axis 0 with 5 elements"):
        GATHER.make(value("float32", [5, 2]), constant([0, index]))
    built = GATHER.make(value("float32", ["n", 2]), constant([0, index]))
    with pytest.raises(ExecutionError, match=rf"index {index} is out of range for axis 0 with 5 elements"):
        built.evaluate(EvalContext(), x, np.array([0, index]))


def test_gather_from_an_empty_axis():
    built = GATHER.make(value("float32", ["n"]), value("int64", [1]))
    with pytest.raises(ExecutionError, match="index 0 is out of range"):
        built.evaluate(EvalContext(), np.zeros(0, np.float32), np.array([0]))


@pytest.mark.parametrize(
    ("dims", "indices", "axis", "constraint"),
    [
        ([2], "float32", 0, "C1"),
        ([2], "int8", 0, "C1"),
        ([], "int64", 0, "C2"),
        ([2], "int64", 1, "C2"),
        ([2], "int64", -2, "C2"),
    ],
)
def test_gather_constraints(dims, indices, axis, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        GATHER.make(value("float32", dims), value(indices, [1]), axis=axis)


# ---- gather_elements


@pytest.mark.parametrize("dtype", ALL)
def test_gather_elements(dtype):
    x = example(dtype, 2, 3)
    at = np.array([[-1, 0], [1, -3]])
    assert run(ELEMENTS, x, at, axis=1).tolist() == np.take_along_axis(x, at % 3, 1).tolist()
    assert run(ELEMENTS, x, np.array([[1, 0, -1]]), axis=0).tolist() == [[x[1, 0], x[0, 1], x[1, 2]]]
    assert run(ELEMENTS, x, np.zeros((0, 3), np.int32)).shape == (0, 3)


def test_gather_elements_against_onnxruntime():
    rng = np.random.default_rng(1)
    x, at = rng.random((3, 4, 5), np.float32), rng.integers(-4, 4, (2, 7, 3))
    assert run(ELEMENTS, x, at, axis=1).tolist() == run_node("GatherElements", [x, at], axis=1)[0].tolist()


def test_gather_elements_of_symbols():
    assert shape(ELEMENTS.make(value("float32", ["n", 3]), value("int64", ["m", 2]))) == ["m", "2"]
    assert shape(ELEMENTS.make(value("float32", None), value("int64", ["m", 2]))) == ["m", "2"]
    assert known(ELEMENTS.make(extents(["a", "b"]), constant([1, 1, 0]))) == ["b", "b", "a"]


@pytest.mark.parametrize(
    ("dims", "indices", "axis", "constraint"),
    [
        ([2], value("uint8", [1]), 0, "C1"),
        ([2, 3], value("int64", [2]), 0, "C2"),
        ([], value("int64", []), 0, "C2"),
        ([2], value("int64", [2]), 1, "C2"),
        ([2], constant([2]), 0, "C3"),
        ([2, 3], value("int64", [2, 4]), 0, "C4"),
    ],
)
def test_gather_elements_constraints(dims, indices, axis, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        ELEMENTS.make(value("float32", dims), indices, axis=axis)


def test_gather_elements_refuses_a_run():
    built = ELEMENTS.make(value("float32", ["n", "m"]), value("int64", ["i", "j"]), axis=1)
    with pytest.raises(ExecutionError, match="index 3 is out of range for axis 1 with 3 elements"):
        built.evaluate(EvalContext(), np.zeros((2, 3)), np.array([[0, 3], [0, 0]]))
    with pytest.raises(ExecutionError, match="don't fit"):
        built.evaluate(EvalContext(), np.zeros((2, 3)), np.zeros((3, 1), np.int64))


# ---- gather_nd


@pytest.mark.parametrize("dtype", ALL)
def test_gather_nd(dtype):
    x = example(dtype, 2, 3, 4)
    assert run(ND, x, np.array([[-1, -1], [0, -3]])).tolist() == [x[1, 2].tolist(), x[0, 0].tolist()]
    assert run(ND, x, np.array([1, 2, 3])).tolist() == x[1, 2, 3].tolist()
    assert run(ND, x, np.array([[[1]], [[0]]])).tolist() == x[[[1], [0]]].tolist()
    assert run(ND, x, np.array([[[1], [0]], [[2], [-1]]]), batch_dims=1).tolist() == [
        [x[0, 1].tolist(), x[0, 0].tolist()],
        [x[1, 2].tolist(), x[1, 2].tolist()],
    ]
    assert run(ND, x, np.zeros((0, 2), np.int64)).shape == (0, 4)


def test_gather_nd_against_onnxruntime():
    rng = np.random.default_rng(2)
    x, at = rng.random((2, 3, 4, 5), np.float32), rng.integers(-4, 4, (2, 3, 6, 1))
    assert run(ND, x, at, batch_dims=2).tolist() == run_node("GatherND", [x, at], batch_dims=2)[0].tolist()


def test_gather_nd_of_symbols():
    x = value("float32", ["b", "n", 4])
    assert shape(ND.make(x, value("int64", ["i", 2]))) == ["i", "4"]
    assert shape(ND.make(x, value("int64", ["c", "i", 1]), batch_dims=1)) == ["b", "i", "4"]
    assert shape(ND.make(x, value("int64", ["i", "k"]))) is None
    assert known(ND.make(extents(["a", "b"]), constant([[1], [0]]))) == ["b", "a"]


@pytest.mark.parametrize(
    ("dims", "indices", "batch", "constraint"),
    [
        ([2], value("int32", [1]), 0, "C1"),
        ([], value("int64", [1]), 0, "C2"),
        ([2, 2], value("int64", [2]), 1, "C2"),
        ([2, 2], value("int64", [2, 1]), -1, "C2"),
        ([2, 2], value("int64", [3]), 0, "C3"),
        ([2, 2], value("int64", [2, 0]), 0, "C3"),
        ([2, 2], value("int64", [3, 1]), 1, "C4"),
        ([2, 3], constant([[1, 3]]), 0, "C5"),
    ],
)
def test_gather_nd_constraints(dims, indices, batch, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        ND.make(value("float32", dims), indices, batch_dims=batch)


def test_gather_nd_refuses_a_run():
    built = ND.make(value("float32", ["n", "m"]), value("int64", ["i", 2]))
    for bad, axis in (([2, 0], 0), ([0, -4], 1)):
        with pytest.raises(ExecutionError, match=f"out of range for axis {axis}"):
            built.evaluate(EvalContext(), np.zeros((2, 3)), np.array([bad]))
    with pytest.raises(ExecutionError, match="don't fit"):
        built.evaluate(EvalContext(), np.zeros((2, 3)), np.zeros((1, 3), np.int64))


def test_text():
    x, at = value("float32", ["n", 2]), value("int64", ["m", 2])
    assert "axis = 1" in round_trip(GATHER.make(x, at, axis=1))
    assert "sx.gather_elements" in round_trip(ELEMENTS.make(x, at))
    assert "sx.gather_nd" in round_trip(ND.make(x, at))
