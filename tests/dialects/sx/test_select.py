"""where and clip."""

import numpy as np
import pytest
from op_case import constant, extents, known, op, round_trip, run, shape, value
from ort_oracle import run_node

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext, evaluate_op
from sardonyx.errors import ExecutionError, InferenceError

INF, NAN = np.inf, np.nan
WHERE, CLIP = op("where"), op("clip")
NUMERIC = [t.name for t in dtypes.NUMERIC]


# ---- where


@pytest.mark.parametrize("dtype", [*NUMERIC, "bool"])
def test_where_picks_elements_unchanged(dtype):
    target = dtypes.DTYPES[dtype].numpy
    x, y = np.array([0, 1, 0, 1]).astype(target), np.array([1, 1, 0, 0]).astype(target)
    got = run(WHERE, np.array([True, False, False, True]), x, y)
    assert got.dtype == target and got.astype(int).tolist() == [0, 1, 0, 1]


def test_where_broadcasts_all_three():
    c, x, y = np.array([[True], [False]]), np.float32(1), np.array([5, 6, 7], np.float32)
    got = run(WHERE, c, x, y)
    assert got.tolist() == [[1, 1, 1], [5, 6, 7]]
    np.testing.assert_array_equal(got, run_node("Where", [c, x, y])[0])
    assert run(WHERE, np.array(True), np.float32(2), np.float32(3)).shape == ()
    assert run(WHERE, np.zeros(0, bool), np.float32(2), np.ones((2, 1), np.float32)).shape == (2, 0)


def test_where_does_not_compute_with_what_it_drops():
    x, y = np.array([NAN, -0.0, INF], np.float32), np.array([1, NAN, -0.0], np.float32)
    got = run(WHERE, np.array([False, True, False]), x, y)
    assert got.tolist() == [1, 0, 0] and np.signbit(got).tolist() == [False, True, True]


def test_where_types_and_refusals():
    assert shape(WHERE.make(value("bool", ["n", 1]), value("int8", ["m"]), value("int8", []))) == ["n", "m"]
    assert shape(WHERE.make(value("bool", None), value("int8", ["m"]), value("int8", []))) is None
    with pytest.raises(InferenceError, match=r"^\(C1\) the condition has dtype int32; allowed: bool"):
        WHERE.make(value("int32", [2]), value("int8", [2]), value("int8", [2]))
    with pytest.raises(InferenceError, match=r"^\(C2\) the operands have different dtypes: int8, int16"):
        WHERE.make(value("bool", [2]), value("int8", [2]), value("int16", [2]))
    with pytest.raises(InferenceError, match=r"^\(C3\) shapes \[2\] and \[3\] and \[\] do not broadcast"):
        WHERE.make(value("bool", [2]), value("int8", [3]), value("int8", []))
    made = WHERE.make(value("bool", ["n"]), value("int8", ["m"]), value("int8", []))
    arrays = (np.ones(2, bool), np.ones(3, np.int8), np.array(1, np.int8))
    with pytest.raises(ExecutionError, match=r"\(C3\) shapes \[2\] and \[3\] and \[\]"):
        evaluate_op(made, EvalContext(dict(zip(made.operands, arrays, strict=True))))


def test_contents_of_where():
    dims = extents(["n", "m", 3])
    chosen = WHERE.make(constant([True, False, True]), dims, constant([1, 2, 3]))
    assert known(chosen) == ["n", "2", "3"]
    # What PyTorch writes for expand(-1, 4, 3): where(shape == -1, ones, shape).
    sizes = extents(["n", 4, -1])
    ones = constant([1, 1, 1])
    assert known(WHERE.make(op("equal").make(sizes, constant([-1])).output, ones, sizes)) == ["n", "4", "1"]
    unknown = value("bool", [3])
    assert known(WHERE.make(unknown, dims, extents(["n", "k", 3]))) == ["n", None, "3"]
    assert known(WHERE.make(constant([True, False, True]), value("int64", [3]), dims)) == [None, "m", None]


def test_text_of_where():
    line = round_trip(WHERE.make(value("bool", [3]), value("float32", ["n", 3]), value("float32", [3])))
    assert line.startswith("%0 = sx.where %x0, %x1, %x2 : (tensor<3xi1>, ")


# ---- clip


@pytest.mark.parametrize("dtype", NUMERIC)
def test_clip(dtype):
    target = dtypes.DTYPES[dtype].numpy
    x, two, five = np.arange(8).astype(target), target.type(2), target.type(5)

    def clip(*operands):
        got = run(CLIP, *operands)
        assert got.dtype == target
        return got.astype(int).tolist()

    assert clip(x, two, five) == [2, 2, 2, 3, 4, 5, 5, 5]
    assert clip(x, None, five) == [0, 1, 2, 3, 4, 5, 5, 5]
    assert clip(x, two) == [2, 2, 2, 3, 4, 5, 6, 7]
    assert clip(x) == list(range(8))
    assert clip(x, five, two) == [2] * 8  # crossed: max wins


def test_clip_of_special_values():
    x = np.array([NAN, INF, -INF, -0.0], np.float32)
    np.testing.assert_array_equal(run(CLIP, x, np.float32(-1), np.float32(1)), [NAN, 1, -1, -0.0])
    np.testing.assert_array_equal(run(CLIP, x, np.float32(NAN), np.float32(1)), [NAN] * 4)
    np.testing.assert_array_equal(run(CLIP, x, None, np.float32(NAN)), [NAN] * 4)
    assert np.signbit(run(CLIP, x, np.float32(-1), np.float32(1)))[3]
    assert run(CLIP, np.float32(7), None, np.float32(1)).shape == ()
    assert run(CLIP, np.zeros((0, 2), np.float32), np.float32(0)).shape == (0, 2)
    limits = np.array([-(2**63), 2**63 - 1])
    assert run(CLIP, limits, np.int64(-(2**62)), np.int64(2**63 - 2)).tolist() == [-(2**62), 2**63 - 2]


@pytest.mark.parametrize("bounds", [(None, None), (-1, None), (None, 2), (-1, 2), (2, -1)])
def test_clip_against_onnxruntime(bounds):
    x = np.linspace(-4, 4, 9, dtype=np.float32)
    operands = [None if b is None else np.float32(b) for b in bounds]
    np.testing.assert_array_equal(run(CLIP, x, *operands), run_node("Clip", [x, *operands])[0])


def test_clip_types_and_refusals():
    x = value("float32", ["n", 3])
    assert shape(CLIP.make(x, None, value("float32", []))) == ["n", "3"]
    assert shape(CLIP.make(value("float32", None), value("float32", None))) is None
    with pytest.raises(InferenceError, match=r"^\(C1\) .* bool"):
        CLIP.make(value("bool", [2]))
    with pytest.raises(InferenceError, match=r"^\(C2\) the operands have different dtypes: float32, float64"):
        CLIP.make(x, None, value("float64", []))
    with pytest.raises(InferenceError, match=r"^\(C3\) a bound is a scalar, but .* has rank 1"):
        CLIP.make(x, value("float32", [1]))


def test_contents_of_clip():
    dims = extents(["n", 9])
    assert known(CLIP.make(dims, constant(1), constant(5))) == ["min(5, max(1, n))", "5"]
    assert known(CLIP.make(dims, constant(-1))) == ["n", "9"]
    assert known(CLIP.make(dims, None, constant(5))) == ["min(5, n)", "5"]
    assert known(CLIP.make(dims)) == ["n", "9"]


def test_text_of_clip():
    x, bound = value("float32", [3]), value("float32", [])
    types = "(tensor<3xf32>, tensor<f32>) -> tensor<3xf32>"
    assert round_trip(CLIP.make(x, None, bound)) == f"%0 = sx.clip %x0, _, %x1 : {types}"
    assert round_trip(CLIP.make(x, bound)) == f"%0 = sx.clip %x0, %x1 : {types}"
    assert round_trip(CLIP.make(x)) == "%0 = sx.clip %x0 : (tensor<3xf32>) -> tensor<3xf32>"
    assert "sx.clip %x0, %x1, %x2 : (" in round_trip(CLIP.make(x, bound, value("float32", [])))
