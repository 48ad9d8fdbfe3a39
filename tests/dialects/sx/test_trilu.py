"""Triangles of matrices."""

import numpy as np
import pytest
from op_case import constant, round_trip, run, shape, value
from ort_oracle import run_node
from sized import op

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.errors import ExecutionError, InferenceError

TRILU = op("trilu")


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.ALL])
@pytest.mark.parametrize("k", [None, 0, 1, -1, 3, -5, 2**63 - 1, -(2**63)])
def test_triangles(dtype, k):
    x = np.arange(1, 25).reshape(2, 3, 4).astype(dtypes.DTYPES[dtype].numpy)
    offset = max(-9, min(9, k or 0))
    given = None if k is None else np.array(k)
    assert run(TRILU, x, given).tolist() == np.triu(x.astype(np.float64), offset).tolist()
    assert run(TRILU, x, given, upper=False).tolist() == np.tril(x.astype(np.float64), offset).tolist()


def test_nan_outside_is_0_and_no_elements():
    x = np.full((2, 2), np.nan, np.float32)
    np.testing.assert_array_equal(run(TRILU, x), [[np.nan, np.nan], [0, np.nan]])
    assert run(TRILU, np.zeros((0, 3), np.float32)).shape == (0, 3)
    assert run(TRILU, np.zeros((2, 3, 0), np.float32), np.array([1])).shape == (2, 3, 0)


def test_against_onnxruntime():
    x = np.random.default_rng(10).random((3, 4), np.float32)
    for k in (-2, 0, 1, 6):
        want = run_node("Trilu", [x, np.array(k)], upper=0)[0]
        assert run(TRILU, x, np.array(k), upper=False).tolist() == want.tolist()


def test_symbols_and_text():
    x = value("float32", ["b", "n", "m"])
    assert shape(TRILU.make(x, value("int64", []))) == ["b", "n", "m"]
    assert shape(TRILU.make(value("float32", None))) is None
    assert "upper = false" in round_trip(TRILU.make(x, upper=False))


def test_constraints():
    for dims, k, constraint in (
        ([3], None, "C2"),
        ([2, 2], constant([1, 2]), "C3"),
        ([2, 2], constant(1, "int32"), "C3"),
    ):
        with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
            TRILU.make(value("float32", dims), k)
    with pytest.raises(ExecutionError):
        TRILU.make(value("float32", None)).evaluate(EvalContext(), np.zeros(3, np.float32), None)
