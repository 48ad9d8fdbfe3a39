"""Ops whose extents depend on data, and those that make masks: non_zero, compress, unique, one_hot, eye_like,
non_max_suppression, reverse_sequence."""

from typing import Any

import numpy as np
import pytest
from against_ort import agree
from op_case import constant, extents, known, round_trip, run, run_all, shape, value
from ort_oracle import run_node
from sized import op

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.errors import ExecutionError, InferenceError

NON_ZERO, COMPRESS, UNIQUE, ONE_HOT = op("non_zero"), op("compress"), op("unique"), op("one_hot")
EYE, NMS, REVERSE = op("eye_like"), op("non_max_suppression"), op("reverse_sequence")
ALL = [t.name for t in dtypes.ALL]
RNG = np.random.default_rng(11)


def refuses(cls, constraint, *slots, **properties):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        cls.make(*slots, **properties)


# ---- non_zero


@pytest.mark.parametrize("dtype", ALL)
def test_non_zero(dtype):
    x = np.array([[1, 0, 3], [0, 5, 0]]).astype(dtypes.DTYPES[dtype].numpy)
    assert run(NON_ZERO, x).tolist() == [[0, 0, 1], [0, 2, 1]]


def test_non_zero_of_special_shapes():
    agree(NON_ZERO, np.array([0.0, -0.0, np.nan, -1], "f4"))
    agree(NON_ZERO, RNG.integers(0, 2, (2, 3, 4)).astype(bool))
    assert run(NON_ZERO, np.array(3.0, "f4")).shape == (0, 1) and run(NON_ZERO, np.array(0)).shape == (0, 0)
    assert run(NON_ZERO, np.zeros((2, 0), "f4")).shape == (2, 0)


def test_non_zero_of_symbols_and_contents():
    made = NON_ZERO.make(value("float32", ["b", "n"]))
    assert shape(made) == ["2", "?"] and "sx.non_zero" in round_trip(made)
    assert shape(NON_ZERO.make(value("bool", None))) == ["?", "?"]
    at = NON_ZERO.make(constant([0, 4, 1]))
    assert shape(at) == ["1", "2"] and known(at) == ["1", "2"]
    assert shape(NON_ZERO.make(extents(["n", 2]))) == ["1", "?"]


# ---- compress


@pytest.mark.parametrize("dtype", ALL)
def test_compress(dtype):
    x = np.arange(6).reshape(3, 2).astype(dtypes.DTYPES[dtype].numpy)
    keep = np.array([False, True, True])
    assert run(COMPRESS, x, keep, axis=0).tolist() == x[1:].tolist()
    assert run(COMPRESS, x, keep[:2], axis=-1).tolist() == x[:, 1:].tolist()
    assert run(COMPRESS, x, keep).tolist() == x.reshape(-1)[1:3].tolist()


def test_compress_against_onnxruntime():
    x = RNG.random((3, 4), np.float32)
    agree(COMPRESS, x, RNG.integers(0, 2, 11).astype(bool))
    agree(COMPRESS, x, np.array([True, False]), axis=1)
    assert run(COMPRESS, x, np.zeros(0, bool), axis=0).shape == (0, 4)


def test_compress_of_symbols():
    x = value("float32", ["b", "n"])
    assert shape(COMPRESS.make(x, value("bool", ["n"]), axis=1)) == ["b", "?"]
    assert shape(COMPRESS.make(x, constant([True, False, True]), axis=1)) == ["b", "2"]
    assert shape(COMPRESS.make(value("float32", None), value("bool", ["n"]))) == ["?"]
    assert known(COMPRESS.make(extents(["a", "b", "c"]), constant([True, False, True]))) == ["a", "c"]
    assert "axis = -1" in round_trip(COMPRESS.make(x, value("bool", ["n"]), axis=-1))
    refuses(COMPRESS, "C1", x, value("int64", [2]))
    refuses(COMPRESS, "C1", x, value("bool", [2, 2]))
    refuses(COMPRESS, "C2", x, value("bool", [2]), axis=2)
    refuses(COMPRESS, "C3", value("float32", [2, 2]), value("bool", [5]))
    built = COMPRESS.make(x, value("bool", ["k"]), axis=0)
    with pytest.raises(ExecutionError, match="for 2 elements"):
        built.evaluate(EvalContext(), np.zeros((2, 2), "f4"), np.ones(3, bool))


# ---- unique


@pytest.mark.parametrize("dtype", ALL)
def test_unique(dtype):
    x = np.array([2, 1, 1, 3, 0, 3]).astype(dtypes.DTYPES[dtype].numpy)
    y, first, inverse, counts = run_all(UNIQUE, x)
    assert y[inverse].tolist() == x.tolist() and y.tolist() == sorted(set(x.tolist()))
    assert x[first].tolist() == y.tolist() and counts.tolist() == [x.tolist().count(v) for v in y.tolist()]
    y, first, inverse, counts = run_all(UNIQUE, x, sorted=False)
    assert y[inverse].tolist() == x.tolist() and first.tolist() == sorted(first.tolist())
    assert counts.tolist() == [x.tolist().count(v) for v in y.tolist()]


@pytest.mark.parametrize("sorted_", [0, 1])
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_unique_against_onnxruntime(axis, sorted_):
    x = RNG.integers(0, 2, (5, 3, 2)).astype(np.float32)
    agree(UNIQUE, x, axis=axis, sorted=sorted_)


def test_unique_of_nan_and_nothing():
    y, _, inverse, counts = run_all(UNIQUE, np.array([np.nan, 1, np.nan, -0.0, 0.0], "f4"))
    np.testing.assert_array_equal(y, [0, 1, np.nan])
    assert inverse.tolist() == [2, 1, 2, 0, 0] and counts.tolist() == [2, 1, 2]
    assert [a.shape for a in run_all(UNIQUE, np.zeros((0, 3), "f4"))] == [(0,)] * 4
    assert [a.shape for a in run_all(UNIQUE, np.zeros((0, 3), "f4"), axis=0)] == [(0, 3), (0,), (0,), (0,)]
    assert [a.shape for a in run_all(UNIQUE, np.zeros((3, 0), "f4"), axis=0)] == [(1, 0), (1,), (3,), (1,)]
    assert run_all(UNIQUE, np.array(4.0, "f4"))[0].tolist() == [4]


def test_unique_of_symbols():
    made = UNIQUE.make(value("float32", ["b", "n"]), axis=1)
    assert [shape(made, i) for i in range(4)] == [["b", "?"], ["?"], ["n"], ["?"]]
    assert made.y.type.encoding.data[1] == made.counts.type.encoding.data[0]
    assert shape(UNIQUE.make(value("float32", ["b", "n"])), 2) == ["b*n"]
    assert (
        shape(UNIQUE.make(value("float32", None))) == ["?"]
        and shape(UNIQUE.make(value("float32", None), axis=0)) is None
    )
    assert "sorted = false" in round_trip(UNIQUE.make(value("int8", ["n"]), sorted=False))
    refuses(UNIQUE, "C2", value("float32", ["n"]), axis=1)


# ---- one_hot and eye_like


@pytest.mark.parametrize("dtype", ALL)
def test_one_hot_of_all_dtypes(dtype):
    values = np.array([0, 3]).astype(dtypes.DTYPES[dtype].numpy)
    out = run(ONE_HOT, np.array([0, 2, -1, 3, -4]), np.array(3), values)
    on, off = values[1].item(), values[0].item()
    rows = [[0], [2], [2], [], []]
    assert out.tolist() == [[on if i in row else off for i in range(3)] for row in rows]


@pytest.mark.parametrize("axis", [-2, -1, 0, 1])
@pytest.mark.parametrize("index", ["int64", "float32"])
def test_one_hot_against_onnxruntime(axis, index):
    indices = np.array([[1, -1, 7], [0, 3, -9]]).astype(index)
    agree(ONE_HOT, indices, np.array([4], index), np.array([2, 5], "f4"), axis=axis)


def test_one_hot_of_other_sizes():
    assert run(ONE_HOT, np.array(1), np.array(2), np.array([0, 1])).tolist() == [0, 1]
    assert run(ONE_HOT, np.zeros((0, 2), np.int64), np.array(3), np.array([0, 1]), axis=0).shape == (3, 0, 2)
    assert run(ONE_HOT, np.array([2]), np.array(0), np.array([0, 1])).shape == (1, 0)
    assert run(ONE_HOT, np.array([2**64 - 1], np.uint64), np.array(2), np.array([0, 1])).tolist() == [[0, 0]]
    assert run(ONE_HOT, np.array([1.9, -0.5], "f4"), np.array(2.0, "f4"), np.array([0, 1])).tolist() == [[0, 1], [1, 0]]


def test_one_hot_of_symbols():
    at, two = value("int64", ["n"]), value("float32", [2])
    assert shape(ONE_HOT.make(at, constant(4), two)) == ["n", "4"]
    assert shape(ONE_HOT.make(at, extents(["d"]), two, axis=0)) == ["d", "n"]
    assert shape(ONE_HOT.make(at, value("float32", []), two)) == ["n", "?"]
    assert "axis = 0" in round_trip(ONE_HOT.make(at, constant(4), two, axis=0))
    refuses(ONE_HOT, "C1", value("bool", [2]), constant(4), two)
    refuses(ONE_HOT, "C2", at, constant(-1), two)
    refuses(ONE_HOT, "C2", at, constant([1, 2]), two)
    refuses(ONE_HOT, "C2", at, constant(2), value("float32", [3]))
    refuses(ONE_HOT, "C3", at, constant(2), two, axis=2)
    built = ONE_HOT.make(at, value("int64", ["k"]), value("float32", ["j"]))
    for depth, values in (([-1], [0, 1]), ([1, 1], [0, 1]), ([2], [0])):
        with pytest.raises(ExecutionError, match="depth"):
            built.evaluate(EvalContext(), np.array([0]), np.array(depth), np.array(values, "f4"))
    with pytest.raises(ExecutionError, match="larger than"):
        built.evaluate(EvalContext(), np.array([0]), np.array([2**62]), np.array([0, 1], "f4"))


@pytest.mark.parametrize("k", [0, 2, -1, 9, -(2**63), 2**63 - 1])
def test_eye_like(k):
    x = np.zeros((3, 4), np.float32)
    assert run(EYE, x, k=k).tolist() == np.eye(3, 4, max(-9, min(9, k))).tolist()
    assert run(EYE, x, k=k, dtype=dtypes.bool_).dtype == bool


def test_eye_like_against_onnxruntime_and_text():
    agree(EYE, np.zeros((4, 3), "f4"), k=1)
    assert run(EYE, np.zeros((0, 3), "i4")).shape == (0, 3)
    assert "dtype = f16" in round_trip(EYE.make(value("float32", ["n", "m"]), dtype=dtypes.float16))
    assert shape(EYE.make(value("float32", None))) == ["?", "?"]
    refuses(EYE, "C1", value("float32", [2, 2]), dtype=dtypes.int4)
    refuses(EYE, "C2", value("float32", [2]))


# ---- non_max_suppression


def boxes(batches, count, centered=False):
    low, size = RNG.random((batches, count, 2)), RNG.random((batches, count, 2)) / 2 + 0.05
    parts = [low + size / 2, size] if centered else [low, low + size]
    return np.concatenate(parts, -1).astype(np.float32)


@pytest.mark.parametrize("centered", [0, 1])
@pytest.mark.parametrize("limit", [0, 2, 100])
def test_suppression_against_onnxruntime(centered, limit):
    scores = RNG.integers(0, 5, (2, 3, 12)).astype(np.float32)  # ties: the first box wins
    for iou, score in ((0.3, None), (0.5, 1.5), (1.0, 0.0), (0.0, None)):
        optional = [np.array([limit]), np.array([iou], "f4"), None if score is None else np.array([score], "f4")]
        agree(NMS, boxes(2, 12, bool(centered)), scores, *optional, center_point_box=centered)


def test_suppression_of_special_boxes():
    flipped = np.array([[[1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 0, 5], [5, 5, 6, 6]]], np.float32)
    scores = np.array([[[0.5, 0.9, 0.4, np.nan]]], np.float32)
    limit = np.array(9)
    assert run(NMS, flipped, scores, limit).tolist() == [[0, 0, 1], [0, 0, 2], [0, 0, 3]]
    assert run(NMS, flipped, scores, limit, None, np.array(0.45, "f4")).tolist() == [[0, 0, 1]]
    assert run(NMS, flipped, scores).shape == (0, 3)
    assert run(NMS, np.zeros((1, 0, 4), "f4"), np.zeros((1, 2, 0), "f4"), limit).shape == (0, 3)


def test_suppression_constraints():
    b, s = value("float32", ["b", "n", 4]), value("float32", ["b", "c", "n"])
    made = NMS.make(b, s, value("int64", []), None, value("float32", [1]))
    assert shape(made) == ["?", "3"] and "_, %x3" in round_trip(made)
    refuses(NMS, "C1", value("float64", [1, 2, 4]), s)
    refuses(NMS, "C1", b, s, value("int32", []))
    refuses(NMS, "C2", value("float32", [1, 2, 5]), s)
    refuses(NMS, "C2", value("float32", [1, 2, 4]), value("float32", [1, 1, 3]))
    refuses(NMS, "C3", b, s, value("int64", [2]))
    built = NMS.make(b, s, value("int64", []), value("float32", []))
    x = np.zeros((1, 2, 4), "f4")
    with pytest.raises(ExecutionError, match="iou_threshold is 1.5"):
        built.evaluate(EvalContext(), x, np.zeros((1, 1, 2), "f4"), np.array(1), np.array(1.5, "f4"), None)
    with pytest.raises(ExecutionError, match="don't fit"):
        built.evaluate(EvalContext(), x, np.zeros((1, 1, 3), "f4"), np.array(1), None, None)


# ---- reverse_sequence


@pytest.mark.parametrize("dtype", ALL)
def test_reverse_sequence(dtype):
    x = np.arange(12).reshape(3, 4).astype(dtypes.DTYPES[dtype].numpy)
    out = run(REVERSE, x, np.array([0, 1, 2, 3]))
    assert out.T.tolist() == [x[:, 0].tolist(), x[:, 1].tolist(), x[[1, 0, 2], 2].tolist(), x[::-1, 3].tolist()]


def test_reverse_sequence_against_onnxruntime():
    x = RNG.random((3, 4, 2), np.float32)
    agree(REVERSE, x, np.array([1, 3, 2, 3]))
    agree(REVERSE, x, np.array([4, 2, 1]), batch_axis=0, time_axis=1)
    assert run(REVERSE, np.zeros((0, 2, 3), "f4"), np.array([0, 0])).shape == (0, 2, 3)


def test_reverse_sequence_constraints():
    x, lengths = value("float32", ["t", "b", 3]), value("int64", ["b"])
    made = REVERSE.make(x, lengths)
    assert shape(made) == ["t", "b", "3"] and "sx.reverse_sequence" in round_trip(made)
    refuses(REVERSE, "C1", x, value("int32", ["b"]))
    refuses(REVERSE, "C2", x, lengths, batch_axis=2)
    refuses(REVERSE, "C2", x, lengths, batch_axis=0)
    refuses(REVERSE, "C2", value("float32", [3]), lengths)
    refuses(REVERSE, "C3", value("float32", [3, 2]), value("int64", [3]))
    refuses(REVERSE, "C3", value("float32", [3, 2]), constant([1, 4]))
    for bad in ([4, 0], [-1, 0], [1]):
        with pytest.raises(ExecutionError, match=r"time axis 3|doesn't fit"):
            made.evaluate(EvalContext(), np.zeros((3, 2, 3), "f4"), np.array(bad))


# ---- strings


def of_strings(cls, *arrays, **properties):
    """The results on arrays of which some hold strings, and onnxruntime's."""
    slots = [value("string" if a.dtype == object else dtypes.DType.of(a.dtype), a.shape) for a in arrays]
    made = cls.make(*slots, **properties)
    assert "!sx.string" in round_trip(made)
    results = made.evaluate(EvalContext(), *arrays)
    flags: Any = {k: int(v) if isinstance(v, bool) else v for k, v in properties.items()}
    for ours, theirs in zip(results, run_node(cls.ONNX.name, arrays, len(results), **flags), strict=True):
        assert ours.tolist() == theirs.tolist()
    return results[0].tolist()


def test_strings_are_chosen_and_placed():
    x = np.array([["b", ""], ["a", "c"], ["b", ""]], object)
    assert of_strings(COMPRESS, x, np.array([False, True, True]), axis=0) == [["a", "c"], ["b", ""]]
    assert of_strings(UNIQUE, x, axis=0) == [["a", "c"], ["b", ""]] and of_strings(UNIQUE, x) == ["", "a", "b", "c"]
    assert of_strings(ONE_HOT, np.array([1, 0]), np.array(2), np.array(["no", "yes"], object))[0] == ["no", "yes"]
    places, new = np.array([[1, 1]]), np.array([["x", "y"]], object)
    assert of_strings(op("scatter_elements"), x, places, new)[1] == ["x", "y"]
    assert of_strings(op("scatter_nd"), x, places, np.array(["z"], object))[1] == ["a", "z"]
    refuses(
        op("scatter_nd"), "C2", *(value(d, [1, 1]) for d in ("string", "int64")), value("string", [1]), reduction="add"
    )


def test_rare_numbers_are_chosen_and_placed():
    x = np.array([3, -8, 3], dtypes.int4.numpy)
    assert run_all(UNIQUE, x)[0].astype(int).tolist() == [-8, 3]
    assert run(op("scatter_elements"), x, np.array([1]), x[:1]).astype(int).tolist() == [3, 3, 3]
    assert run(COMPRESS, x, np.array([True])).astype(int).tolist() == [3]
