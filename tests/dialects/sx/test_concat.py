"""Joining and parting along an axis."""

import numpy as np
import pytest
from op_case import constant, extents, known, round_trip, run, run_all, shape, value
from ort_oracle import run_node
from sized import every, follows, op, sizes

from sardonyx.dialects import dtypes
from sardonyx.dialects.attributes import fresh_dim
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.dialects.values import contents
from sardonyx.errors import ExecutionError, InferenceError

CONCAT, SPLIT = op("concat"), op("split")


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.ALL])
def test_concat(dtype):
    a = np.arange(6).reshape(2, 3).astype(dtypes.DTYPES[dtype].numpy)
    b = a[:, ::-1]
    assert run(CONCAT, [a, b], axis=0).tolist() == a.tolist() + b.tolist()
    assert run(CONCAT, [a, b, a], axis=-1).tolist() == [list(x) + list(y) + list(x) for x, y in zip(a, b, strict=True)]
    assert run(CONCAT, [a], axis=1).tolist() == a.tolist()


def test_concat_of_nothing():
    empty, x = np.zeros((2, 0), np.float32), np.ones((2, 3), np.float32)
    assert run(CONCAT, [empty, x], axis=1).tolist() == x.tolist()
    assert run(CONCAT, [empty, empty], axis=0).shape == (4, 0)


def test_concat_against_onnxruntime():
    parts = [np.random.default_rng(0).random((2, n, 3), np.float32) for n in (1, 4, 2)]
    assert run(CONCAT, parts, axis=-2).tolist() == run_node("Concat", parts, axis=-2)[0].tolist()


def test_concat_sums_symbols_and_keeps_the_better_name():
    past, step = value("float32", ["b", "past", 4]), value("float32", ["b", "seq", 4])
    assert shape(CONCAT.make([past, step], axis=1)) == ["b", "past + seq", "4"]
    unnamed = value("float32", [fresh_dim(), 2, fresh_dim()])
    assert shape(CONCAT.make([unnamed, past], axis=-2)) == ["b", "past + 2", "4"]
    assert shape(CONCAT.make([past, value("float32", None)], axis=1)) == ["b", "?", "4"]
    assert shape(CONCAT.make([value("float32", None)], axis=1)) is None


def test_concat_of_contents():
    parts = [extents(["b", 3]), value("int64", [1]), constant([7])]
    assert known(CONCAT.make(parts, axis=0)) == ["b", "3", None, "7"]
    rows = op("unsqueeze").make(extents(["b", "n"]), constant([1])).output
    assert known(CONCAT.make([rows, rows], axis=1)) == ["b", "b", "n", "n"]


def test_concat_text():
    line = round_trip(CONCAT.make([value("float32", ["n", 2]), value("float32", ["m", 2])], axis=0))
    assert line.startswith("%y0 = sx.concat %x0, %x1") or "sx.concat %x0, %x1" in line


@pytest.mark.parametrize(
    ("parts", "axis", "constraint"),
    [
        ([], 0, "C1"),
        ([("float32", [2]), ("float64", [2])], 0, "C1"),
        ([("float32", [])], 0, "C2"),
        ([("float32", [2]), ("float32", [2, 1])], 0, "C2"),
        ([("float32", [2])], 1, "C3"),
        ([("float32", [2])], -2, "C3"),
        ([("float32", [2, 3]), ("float32", [2, 4])], 0, "C4"),
        ([("float32", [2, "n"]), ("float32", [2, Dim.parse("n + 1")])], 0, "C4"),
    ],
)
def test_concat_constraints(parts, axis, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        CONCAT.make([value(*p) for p in parts], axis=axis)


def test_concat_refuses_a_run_whose_sizes_disagree():
    built = CONCAT.make([value("float32", ["p", "n"]), value("float32", [2, 3])], axis=0)
    assert shape(built) == ["p + 2", "3"]
    with pytest.raises(ExecutionError, match=r"\[2, 4\] and \[2, 3\]"):
        built.evaluate(EvalContext(), np.ones((2, 4), np.float32), np.ones((2, 3), np.float32))


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.ALL])
def test_split_by_sizes(dtype):
    x = np.arange(10).reshape(2, 5).astype(dtypes.DTYPES[dtype].numpy)
    parts = run_all(SPLIT, x, np.array([2, 0, 3]), axis=-1, results=3)
    assert [p.tolist() for p in parts] == [x[:, :2].tolist(), x[:, :0].tolist(), x[:, 2:].tolist()]


@pytest.mark.parametrize(
    ("size", "count", "want"), [(10, 3, [4, 4, 2]), (6, 3, [2, 2, 2]), (7, 2, [4, 3]), (3, 1, [3]), (0, 2, [0, 0])]
)
def test_split_by_number(size, count, want):
    x = np.arange(size, dtype=np.float32)
    parts = run_all(SPLIT, x, num_outputs=count, results=count)
    assert [p.size for p in parts] == want
    assert np.concatenate(parts).tolist() == x.tolist()


def test_split_of_symbols():
    x = value("float32", ["b", "n"])
    parts = SPLIT.make(x, axis=1, num_outputs=3, results=3)
    assert [shape(parts, i) for i in range(3)] == [
        ["b", "(n + 2) floordiv 3"],
        ["b", "(n + 2) floordiv 3"],
        ["b", "-2*((n + 2) floordiv 3) + n"],
    ]
    # What was cut fits together again.
    assert shape(CONCAT.make(parts.results, axis=1)) == ["b", "n"]
    even = SPLIT.make(value("float32", [Dim.parse("3*n")]), num_outputs=3, results=3)
    assert [shape(even, i) for i in range(3)] == [["n"]] * 3
    by_contents = SPLIT.make(x, extents(["k", Dim.parse("n - k")]), axis=1, results=2)
    assert [shape(by_contents, i) for i in range(2)] == [["b", "k"], ["b", "-k + n"]]
    unknown = SPLIT.make(x, value("int64", [2]), axis=1, results=2)
    assert [shape(unknown, i) for i in range(2)] == [["b", "?"], ["b", "?"]]
    partly = op("concat").make([constant([4]), value("int64", [1])], axis=0).output
    assert [shape(SPLIT.make(x, partly, axis=1, results=2), i) for i in range(2)] == [["b", "4"], ["b", "n - 4"]]
    for n in every(n=range(13)):
        if -(-n["n"] // 3) * 2 <= n["n"]:
            assert sum(sizes(parts, n | {"b": 1}, i)[1] for i in range(3)) == n["n"]
            follows("split", ["n"], n, num_outputs=3, results=3)


def test_split_of_contents():
    parts = SPLIT.make(extents(["b", "h", "w"]), constant([1, 2]), results=2)
    assert [[str(d) for d in contents(r) or ()] for r in parts.results] == [["b"], ["h", "w"]]


def test_split_text():
    x = value("float32", ["n"])
    assert "sx.split" in round_trip(SPLIT.make(x, num_outputs=2, results=2))
    assert "sx.split %x0, %x1" in round_trip(SPLIT.make(x, value("int64", [3]), results=3))


@pytest.mark.parametrize(
    ("dims", "split", "properties", "constraint"),
    [
        ([4], value("int32", [2]), {"results": 2}, "C1"),
        ([4], value("int64", [2, 1]), {"results": 2}, "C1"),
        ([4], None, {"num_outputs": 2, "results": 2, "axis": 1}, "C2"),
        ([], None, {"num_outputs": 2, "results": 2}, "C2"),
        ([4], None, {"results": 2}, "C3"),
        ([4], constant([2, 2]), {"num_outputs": 2, "results": 2}, "C3"),
        ([4], constant([2, 2]), {"results": 3}, "C3"),
        ([4], None, {"num_outputs": 3, "results": 2}, "C3"),
        ([4], None, {"num_outputs": 0, "results": 0}, "C3"),
        ([10], constant([4, 5]), {"results": 2}, "C4"),
        ([4], constant([5, -1]), {"results": 2}, "C4"),
        (["n"], constant([5, -1]), {"results": 2}, "C4"),
        ([5], None, {"num_outputs": 4, "results": 4}, "C5"),
    ],
)
def test_split_constraints(dims, split, properties, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        SPLIT.make(value("float32", dims), split, **properties)


def test_split_refuses_a_run_that_does_not_add_up():
    built = SPLIT.make(value("float32", ["n"]), value("int64", [2]), results=2)
    for split in ([4, 5], [11, -1]):
        with pytest.raises(ExecutionError, match="cannot be split"):
            built.evaluate(EvalContext(), np.zeros(10, np.float32), np.array(split))
    built = SPLIT.make(value("float32", ["n"]), num_outputs=4, results=4)
    with pytest.raises(ExecutionError, match="cannot be split"):
        built.evaluate(EvalContext(), np.zeros(5, np.float32), None)
