"""Repetition: values, symbols, limits of size, errors."""

import numpy as np
import pytest
from op_case import constant, extents, known, round_trip, run, shape, value
from ort_oracle import run_node
from sized import op

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.errors import ExecutionError, InferenceError

TILE = op("tile")


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.ALL])
def test_tile(dtype):
    x = np.arange(6).reshape(2, 3).astype(dtypes.DTYPES[dtype].numpy)
    assert run(TILE, x, np.array([2, 3])).tolist() == np.tile(x, (2, 3)).tolist()
    assert run(TILE, x, np.array([1, 1])).tolist() == x.tolist()
    assert run(TILE, x, np.array([0, 2])).shape == (0, 6)
    assert run(TILE, x[0, 0], np.zeros(0, np.int64)).tolist() == x[0, 0].tolist()


def test_against_onnxruntime():
    x, repeats = np.arange(6, dtype=np.float32).reshape(1, 3, 2), np.array([2, 1, 3])
    assert run(TILE, x, repeats).tolist() == run_node("Tile", [x, repeats])[0].tolist()


def test_symbols():
    x = value("float32", ["b", "n"])
    assert shape(TILE.make(x, extents(["k", 3]))) == ["b*k", "3*n"]
    assert shape(TILE.make(x, value("int64", [2]))) == ["?", "?"]
    assert shape(TILE.make(value("float32", [0, 3]), value("int64", [2]))) == ["0", "?"]
    assert shape(TILE.make(value("float32", None), extents([2, 2]))) == ["?", "?"]
    assert shape(TILE.make(value("float32", None), value("int64", ["k"]))) is None
    assert known(TILE.make(extents(["b", "n"]), constant([2]))) == ["b", "n", "b", "n"]


def test_text():
    assert "sx.tile %x0, %x1" in round_trip(TILE.make(value("float32", ["n"]), value("int64", [1])))


@pytest.mark.parametrize(
    ("repeats", "constraint"),
    [
        (constant([1, 1], "int32"), "C1"),
        (constant([1]), "C2"),
        (constant([1, 1, 1]), "C2"),
        (constant([1, -1]), "C2"),
        (constant([2**62, 2]), "C3"),
        (constant([2**40, 1]), "C3"),
    ],
)
def test_constraints(repeats, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        TILE.make(value("float32", [2, 3]), repeats)


def test_runs_that_are_refused():
    built = TILE.make(value("float32", ["n"]), value("int64", ["k"]))
    for repeats in ([-1], [1, 1], [2**62], [2**40]):
        with pytest.raises(ExecutionError):
            built.evaluate(EvalContext(), np.ones(2, np.float32), np.array(repeats))
