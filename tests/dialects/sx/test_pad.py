"""Padding and cropping: modes, negative pads, symbols, errors."""

import numpy as np
import pytest
from op_case import constant, extents, round_trip, run, shape, value
from ort_oracle import run_node
from sized import every, op, sizes

from sardonyx.dialects import dtypes
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.dialects.sx.pad import source_positions
from sardonyx.errors import ExecutionError, InferenceError

PAD = op("pad")
ALL = [t.name for t in dtypes.ALL]


def pad(x, pads, fill=None, axes=None, mode="constant"):
    rest = [np.array(pads, np.int64), fill, None if axes is None else np.array(axes, np.int64)]
    return run(PAD, x, *rest, mode=mode)


@pytest.mark.parametrize("dtype", ALL)
def test_modes(dtype):
    x = np.arange(6).reshape(2, 3).astype(dtypes.DTYPES[dtype].numpy)
    widths = ((1, 0), (2, 2))
    assert pad(x, [1, 2, 0, 2]).tolist() == np.pad(x, widths).tolist()
    assert pad(x, [1, 2, 0, 2], x[1, 1]).tolist() == np.pad(x, widths, constant_values=x[1, 1]).tolist()
    for mode in ("reflect", "edge", "wrap"):
        assert pad(x, [1, 2, 0, 2], mode=mode).tolist() == np.pad(x, widths, mode).tolist()


def test_axes():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert pad(x, [1, 2], axes=[-1]).tolist() == np.pad(x, ((0, 0), (1, 2))).tolist()
    assert pad(x, [1, 0, 2, 3], axes=[1, 0]).tolist() == np.pad(x, ((0, 3), (1, 2))).tolist()
    got = run(PAD, x, np.array([1, 2]), None, np.array([0], np.int32), mode="edge")
    assert got.tolist() == np.pad(x, ((1, 2), (0, 0)), "edge").tolist()
    assert pad(x, [], axes=[]).tolist() == x.tolist()


def test_crops():
    x = np.arange(1, 13).reshape(3, 4)
    assert (
        pad(x, [-1, 2, 2, -2], np.array(9)).tolist() == np.pad(x[1:, :2], ((0, 2), (2, 0)), constant_values=9).tolist()
    )
    assert pad(x, [-1, -1, -1, -2]).tolist() == [[6]]
    assert pad(x, [-1, 0, 1, -1], mode="edge").tolist() == np.pad(x[1:, :3], ((0, 1), (0, 0)), "edge").tolist()
    assert pad(x, [0, -4, 0, 0]).shape == (3, 0)
    assert pad(x, [0, -4, 0, 1]).tolist() == [[0]] * 3
    assert pad(np.arange(6.0), [-5, 5], mode="reflect").tolist() == [5.0] * 6


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_pads_wider_than_the_data_repeat(mode):
    for size in (1, 2, 3, 5):
        for before, after in ((0, 7), (8, 1), (4, 4)):
            x = np.arange(size)
            want = np.pad(x, (before, after), mode) if size > 1 or mode != "reflect" else np.zeros(1 + before + after)
            assert source_positions(mode, size, before, after).tolist() == want.tolist()


def test_no_elements():
    empty = np.zeros((0, 2), np.float32)
    assert pad(empty, [1, 0, 2, 0]).tolist() == [[0, 0]] * 3
    assert pad(empty, [0, 1, 0, 0]).shape == (0, 3)
    assert pad(empty, [0, 1, 0, 1], mode="edge").shape == (0, 4)
    assert pad(np.float32(3), []).tolist() == 3
    for mode in ("reflect", "edge", "wrap"):
        with pytest.raises(InferenceError, match=r"\(C6\)"):
            PAD.make(value("float32", [0, 2]), constant([1, 0, 0, 0]), mode=mode)
        built = PAD.make(value("float32", ["n"]), constant([1, 0]), mode=mode)
        with pytest.raises(ExecutionError, match="empty"):
            built.evaluate(EvalContext(), np.zeros(0, np.float32), np.array([1, 0]), None, None)


def test_against_onnxruntime():
    x = np.random.default_rng(8).random((3, 4, 2), np.float32)
    for mode in ("constant", "reflect", "edge", "wrap"):
        pads = np.array([1, 2, 0, 0, 1, 1])
        assert pad(x, pads, mode=mode).tolist() == run_node("Pad", [x, pads], mode=mode)[0].tolist()
    pads = np.array([-1, 2, 0, 2, -1, -1])
    assert pad(x, pads, np.float32(7)).tolist() == run_node("Pad", [x, pads, np.float32(7)])[0].tolist()


def test_symbols():
    x = value("float32", ["b", "n"])
    built = PAD.make(x, constant([0, 1, 0, 2]))
    assert shape(built) == ["b", "n + 3"]
    assert shape(PAD.make(x, extents([0, "p", 0, "q"]))) == ["b", "n + p + q"]
    assert shape(PAD.make(x, constant([-1, 2]), None, constant([-1]))) == ["b", "n + 1"]
    assert shape(PAD.make(x, value("int64", [2]), None, constant([1]))) == ["b", "?"]
    assert shape(PAD.make(x, value("int64", [2]), None, value("int64", [1]))) == ["?", "?"]
    assert shape(PAD.make(x, value("int64", ["k"]))) == ["?", "?"]
    assert shape(PAD.make(value("float32", None), value("int64", ["k"]))) is None
    partly = op("concat").make([constant([0]), value("int64", [1]), constant([0, 0])], axis=0).output
    assert shape(PAD.make(x, partly)) == ["b", "?"]
    for at in every(b=(0, 2), n=(0, 3)):
        assert pad(np.zeros((at["b"], at["n"]), np.float32), [0, 1, 0, 2]).shape == sizes(built, at)


def test_text():
    x, pads = value("float32", ["n"]), value("int64", [2])
    assert 'sx.pad %x0, %x1, _, %x2 {mode = "edge"}' in round_trip(
        PAD.make(x, pads, None, value("int64", [1]), mode="edge")
    )


@pytest.mark.parametrize(
    ("pads", "fill", "axes", "mode", "constraint"),
    [
        (constant([0, 0], "int32"), None, None, "constant", "C1"),
        (constant([[0, 0]]), None, None, "constant", "C1"),
        (constant([0, 0]), constant(0.0, "float64"), None, "constant", "C1"),
        (constant([0, 0]), constant([0.0, 0.0], "float32"), None, "constant", "C1"),
        (constant([0, 0]), None, constant([0], "int16"), "constant", "C1"),
        (constant([0, 0, 0]), None, None, "constant", "C2"),
        (constant([0, 0, 0]), None, value("int64", ["k"]), "constant", "C2"),
        (constant([0, 0]), None, constant([1]), "constant", "C3"),
        (constant([0, 0, 0, 0]), None, constant([0, -1]), "constant", "C3"),
        (constant([0, 0]), None, None, "symmetric", "C4"),
        (constant([-3, -2]), None, None, "constant", "C5"),
        (constant([2**62, 2**62]), None, None, "constant", "C5"),
    ],
)
def test_constraints(pads, fill, axes, mode, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        PAD.make(value("float32", [4]), pads, fill, axes, mode=mode)


def test_runs_that_are_refused():
    x = np.zeros((2, 3), np.float32)
    built = PAD.make(
        value("float32", ["n", "m"]), value("int64", ["k"]), value("float32", ["i"]), value("int64", ["j"])
    )
    for pads, fill, axes in (
        ([0, 0, 0], [0], [0]), ([0, 0], [0, 0], [0]), ([-2, -1], [0], [0]), ([0, 0], [0], [2]), ([2**61, 0], [0], [0]),
    ):  # fmt: skip
        with pytest.raises(ExecutionError):
            built.evaluate(EvalContext(), x, np.array(pads), np.array(fill, np.float32), np.array(axes))


def test_a_bound_size_that_would_be_negative_is_not_refused_early():
    assert shape(PAD.make(value("float32", [Dim.parse("n")]), constant([-3, -2]))) == ["n - 5"]
