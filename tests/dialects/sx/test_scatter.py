"""Elements put in by index: reductions, repeated and wrong indices, contents, symbols."""

import numpy as np
import pytest
from against_ort import agree
from op_case import constant, extents, known, round_trip, run, shape, value
from sized import op

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.errors import ExecutionError, InferenceError

ELEMENTS, ND, CACHE = op("scatter_elements"), op("scatter_nd"), op("tensor_scatter")
ALL = [t.name for t in dtypes.ALL]
RNG = np.random.default_rng(7)


def example(dtype, *dims, start=0):
    return (np.arange(np.prod(dims)) + start).reshape(dims).astype(dtypes.DTYPES[dtype].numpy)


def placed(x, at, updates, axis, combine):
    """Element by element, as ONNX's definition has it."""
    out = x.copy()
    for place in np.ndindex(at.shape):
        to = list(place)
        to[axis] = at[place]
        out[tuple(to)] = combine(out[tuple(to)], updates[place])
    return out


COMBINE = {
    "none": lambda a, b: b, "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "max": np.maximum, "min": np.minimum,
}  # fmt: skip


@pytest.mark.parametrize("index", ["int32", "int64"])
@pytest.mark.parametrize("dtype", ALL)
def test_elements_of_all_dtypes(dtype, index):
    x, updates = example(dtype, 3, 4), example(dtype, 2, 3, start=2)
    at = np.array([[0, -1, 2], [2, 1, -3]], index)
    assert run(ELEMENTS, x, at, updates).tolist() == placed(x, at, updates, 0, COMBINE["none"]).tolist()
    at = np.array([[0, -1, 2], [3, 1, -3]], index)
    assert run(ELEMENTS, x, at, updates, axis=-1).tolist() == placed(x, at, updates, 1, COMBINE["none"]).tolist()


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64", "uint8", "int8"])
def test_reductions_of_repeated_indices_against_onnxruntime(dtype, reduction):
    x, updates = example(dtype, 4, 3), example(dtype, 5, 2, start=1)
    at = np.array([[0, 1], [0, -1], [0, 1], [3, 2], [3, 1]])
    agree(ELEMENTS, x, at, updates, reduction=reduction)
    rows = np.array([[[1], [1], [0]], [[-1], [2], [1]]])
    agree(ND, x, rows, example(dtype, 2, 3, 3, start=1), reduction=reduction)


def test_floats_add_up_before_they_are_rounded():
    updates = np.full(4096, 1 / 4096, np.float16)
    assert run(ELEMENTS, np.ones(1, np.float16), np.zeros(4096, np.int64), updates, reduction="add") == 2
    nan = run(ELEMENTS, np.ones(2, np.float32), np.array([0]), np.array([np.nan], "f4"), reduction="max")
    np.testing.assert_array_equal(nan, [np.nan, 1])
    bools = np.array([True, False, True])
    assert run(ELEMENTS, bools, np.array([0, 1]), np.array([False, True]), reduction="add").tolist() == [True] * 3
    assert run(ELEMENTS, bools, np.array([0]), np.array([False]), reduction="mul").tolist() == [False, False, True]


def test_nd_against_onnxruntime_and_numpy():
    x = RNG.random((3, 4, 5), np.float32)
    agree(ND, x, RNG.permutation(12)[:6].reshape(2, 3, 1) % 3, RNG.random((2, 3, 4, 5), np.float32), reduction="max")
    at = np.array([[0, -1], [2, 3]])
    updates = RNG.random((2, 5), np.float32)
    want = x.copy()
    want[[0, 2], [-1, 3]] = updates
    assert agree(ND, x, at, updates)[0].tolist() == want.tolist()
    assert agree(ND, x, np.array([2, 0, -5]), np.array(7, "f4"))[0][2, 0, 0] == 7


@pytest.mark.parametrize("dtype", ALL)
def test_nd_of_all_dtypes(dtype):
    x = example(dtype, 2, 2)
    assert run(ND, x, np.array([[1], [0]]), x).tolist() == x[::-1].tolist()


def test_no_elements():
    x = np.ones((0, 3), np.float32)
    assert run(ELEMENTS, x, np.zeros((0, 2), np.int64), np.zeros((0, 2), "f4")).shape == (0, 3)
    assert run(ELEMENTS, x.T, np.zeros((0, 0), np.int64), np.zeros((0, 0), "f4")).shape == (3, 0)
    assert run(ND, x, np.zeros((0, 1), np.int64), np.zeros((0, 3), "f4")).shape == (0, 3)
    whole = run(ND, np.zeros((2,), "f4"), np.zeros((3, 0), np.int64), example("float32", 3, 2), reduction="add")
    assert whole.tolist() == [6, 9]


def test_contents_of_shapes():
    x = extents(["b", 3, "n"])
    assert known(ELEMENTS.make(x, constant([1]), extents(["m"]))) == ["b", "m", "n"]
    assert known(ND.make(x, constant([[0], [-1]]), constant([1, 2]))) == ["1", "3", "2"]
    assert known(ELEMENTS.make(x, constant([1]), extents(["m"]), reduction="add")) is None


def test_cache_is_written():
    cache, update = example("float32", 2, 1, 4, 3), example("float32", 2, 1, 2, 3, start=100)
    out = run(CACHE, cache, update, np.array([1, 2]))
    assert out[0, 0, :, 0].tolist() == [0, 100, 103, 9] and out[1, 0, :, 0].tolist() == [12, 15, 106, 109]
    round_ = run(CACHE, cache, update, np.array([3, 4]), mode="circular")
    assert round_[0, 0, :, 0].tolist() == [103, 3, 6, 100] and round_[1, 0, :, 0].tolist() == [106, 109, 18, 21]
    assert run(CACHE, cache, update)[:, 0, :2].tolist() == update[:, 0].tolist()
    assert run(CACHE, cache[:, 0], update[:, 0], axis=1)[:, :2].tolist() == update[:, 0].tolist()
    assert run(CACHE, cache, update[:, :, :0], np.array([9, 9])).tolist() == cache.tolist()
    big = run(CACHE, cache, update, np.array([2**63 - 1, 0]), mode="circular")
    assert big[0, 0, :, 0].tolist() == [103, 3, 6, 100]


@pytest.mark.parametrize("start", [[3, 0], [-1, 0], [0, 2**63 - 1]])
def test_a_cache_has_no_room(start):
    built = CACHE.make(value("float32", ["b", 4, 3]), value("float32", ["b", 2, 3]), value("int64", ["b"]))
    with pytest.raises(ExecutionError, match="don't fit the 4 of axis 1"):
        built.evaluate(EvalContext(), example("float32", 2, 4, 3), example("float32", 2, 2, 3), np.array(start))


def test_symbols_and_text():
    x, at = value("float32", ["n", 3]), value("int64", ["m", 2])
    made = ELEMENTS.make(x, at, value("float32", ["m", 2]), reduction="add", axis=1)
    assert shape(made) == ["n", "3"] and 'reduction = "add"' in round_trip(made)
    assert shape(ND.make(x, value("int64", ["m", 1]), value("float32", ["m", 3]))) == ["n", "3"]
    assert shape(ELEMENTS.make(value("float32", None), at, value("float32", None))) is None
    cache = CACHE.make(value("int4", ["b", "s", 8]), value("int4", [2, 1, 8]))
    assert shape(cache) == ["2", "s", "8"] and "sx.tensor_scatter" in round_trip(cache)


@pytest.mark.parametrize(
    ("dims", "at", "updates", "properties", "constraint"),
    [
        ([2], value("int8", [1]), value("float32", [1]), {}, "C1"),
        ([2], value("int64", [1]), value("float64", [1]), {}, "C1"),
        ([2], value("int64", [1]), value("float32", [1]), {"reduction": "sub"}, "C2"),
        ([], value("int64", []), value("float32", []), {}, "C3"),
        ([2, 3], value("int64", [2]), value("float32", [2]), {}, "C3"),
        ([2], value("int64", [1]), value("float32", [1]), {"axis": 1}, "C3"),
        ([2], value("int64", [1]), value("float32", [2]), {}, "C4"),
        ([2, 3], value("int64", [1, 4]), value("float32", [1, 4]), {}, "C4"),
        ([2], constant([2]), value("float32", [1]), {}, "C5"),
    ],
)
def test_elements_constraints(dims, at, updates, properties, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        ELEMENTS.make(value("float32", dims), at, updates, **properties)


@pytest.mark.parametrize(
    ("dims", "at", "updates", "constraint"),
    [
        ([2], value("int32", [1, 1]), value("float32", [1]), "C1"),
        ([2], value("int64", []), value("float32", []), "C3"),
        ([2], value("int64", [3, 2]), value("float32", [3]), "C3"),
        ([2, 4], value("int64", [3, 1]), value("float32", [3]), "C4"),
        ([2, 4], value("int64", [3, 1]), value("float32", [3, 5]), "C4"),
        ([2], constant([[-3]]), value("float32", [1]), "C5"),
    ],
)
def test_nd_constraints(dims, at, updates, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        ND.make(value("float32", dims), at, updates)


@pytest.mark.parametrize(
    ("dims", "update", "at", "properties", "constraint"),
    [
        ([2, 3, 4], value("float64", [2, 1, 4]), None, {}, "C1"),
        ([2, 3, 4], value("float32", [2, 1, 4]), value("int32", [2]), {}, "C1"),
        ([2], value("float32", [2]), None, {}, "C2"),
        ([2, 3], value("float32", [2, 3]), None, {}, "C2"),
        ([2, 3, 4], value("float32", [2, 1, 5]), None, {}, "C3"),
        ([2, 3, 4], value("float32", [2, 4, 4]), None, {}, "C3"),
        ([2, 3, 4], value("float32", [2, 1, 4]), value("int64", [3]), {}, "C4"),
        ([2, 3, 4], value("float32", [2, 1, 4]), None, {"mode": "round"}, "C5"),
    ],
)
def test_cache_constraints(dims, update, at, properties, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        CACHE.make(value("float32", dims), update, at, **properties)


def test_runs_are_refused():
    built = ELEMENTS.make(value("float32", ["n", "m"]), value("int64", ["i", "j"]), value("float32", ["i", "j"]))
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(ExecutionError, match="index 2 is out of range for axis 0 with 2 elements"):
        built.evaluate(EvalContext(), x, np.array([[0, 2]]), np.zeros((1, 2), "f4"))
    for at, updates in (((1, 4), (1, 4)), ((1, 2), (2, 2))):
        with pytest.raises(ExecutionError, match="don't fit"):
            built.evaluate(EvalContext(), x, np.zeros(at, np.int64), np.zeros(updates, "f4"))
    nd = ND.make(value("float32", ["n", "m"]), value("int64", ["i", 2]), value("float32", ["i"]))
    with pytest.raises(ExecutionError, match="index -4 is out of range for axis 1"):
        nd.evaluate(EvalContext(), x, np.array([[0, -4]]), np.zeros(1, "f4"))
    with pytest.raises(ExecutionError, match="index 5 is out of range for axis 0"):
        nd.evaluate(EvalContext(), np.zeros((2, 0), "f4"), np.array([[5]]), np.zeros((1, 0), "f4"))
    with pytest.raises(ExecutionError, match="don't fit"):
        nd.evaluate(EvalContext(), x, np.zeros((3, 2), np.int64), np.zeros(2, "f4"))
