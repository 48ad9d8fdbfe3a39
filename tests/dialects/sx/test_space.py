"""Blocks of space and channels: both orders, the way back, symbols, errors."""

import itertools

import numpy as np
import pytest
from op_case import round_trip, run, shape, value
from ort_oracle import run_node
from sized import op

from sardonyx.dialects import dtypes
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.errors import ExecutionError, InferenceError

TO_SPACE, TO_DEPTH = op("depth_to_space"), op("space_to_depth")


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_each_element(mode):
    x = np.arange(2 * 12 * 2 * 3, dtype=np.float32).reshape(2, 12, 2, 3)
    got = run(TO_SPACE, x, blocksize=2, mode=mode)
    assert got.shape == (2, 3, 4, 6)
    for n, c, h, w in itertools.product(range(2), range(3), range(4), range(6)):
        block = h % 2 * 2 + w % 2
        channel = block * 3 + c if mode == "DCR" else c * 4 + block
        assert got[n, c, h, w] == x[n, channel, h // 2, w // 2]
    assert run(TO_DEPTH, got, blocksize=2, mode=mode).tolist() == x.tolist()


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.ALL])
def test_dtypes_and_no_elements(dtype):
    numpy = dtypes.DTYPES[dtype].numpy
    x = (np.arange(16) % 7).astype(numpy).reshape(1, 4, 2, 2)
    assert run(TO_DEPTH, run(TO_SPACE, x, blocksize=2), blocksize=2).tolist() == x.tolist()
    assert run(TO_SPACE, np.zeros((0, 4, 2, 2), numpy), blocksize=2).shape == (0, 1, 4, 4)
    assert run(TO_DEPTH, np.zeros((1, 4, 0, 2), numpy), blocksize=2).shape == (1, 16, 0, 1)


def test_against_onnxruntime():
    x = np.random.default_rng(9).random((1, 8, 4, 6), np.float32)
    for mode in ("DCR", "CRD"):
        want = run_node("DepthToSpace", [x], blocksize=2, mode=mode)[0]
        assert run(TO_SPACE, x, blocksize=2, mode=mode).tolist() == want.tolist()
    assert run(TO_DEPTH, x, blocksize=2).tolist() == run_node("SpaceToDepth", [x], blocksize=2)[0].tolist()


def test_symbols():
    x = value("float32", ["b", 8, "h", "w"])
    assert shape(TO_SPACE.make(x, blocksize=2)) == ["b", "2", "2*h", "2*w"]
    assert shape(TO_DEPTH.make(TO_SPACE.make(x, blocksize=2).output, blocksize=2)) == ["b", "8", "h", "w"]
    assert shape(TO_DEPTH.make(x, blocksize=2)) == ["b", "32", "h floordiv 2", "w floordiv 2"]
    assert shape(TO_SPACE.make(value("float32", None), blocksize=2)) == ["?", "?", "?", "?"]


@pytest.mark.parametrize("cls", [TO_SPACE, TO_DEPTH])
@pytest.mark.parametrize(
    ("dims", "properties", "constraint"),
    [
        ([1, 4, 4], {"blocksize": 2}, "C2"),
        ([1, 4, 4, 4], {"blocksize": 0}, "C3"),
        ([1, 4, 4, 4], {"blocksize": 2, "mode": "DCX"}, "C3"),
        ([1, 5, 5, 4], {"blocksize": 2}, "C4"),
    ],
)
def test_constraints(cls, dims, properties, constraint):
    with pytest.raises(InferenceError, match=rf"\({constraint}\)"):
        cls.make(value("float32", dims), **properties)


def test_runs_that_are_refused():
    x = value("float32", ["n", "c", "h", "w"])
    for cls, dims in ((TO_SPACE, (1, 3, 2, 2)), (TO_DEPTH, (1, 1, 3, 2)), (TO_DEPTH, (1, 1, 2, 3))):
        with pytest.raises(ExecutionError, match="no blocks"):
            cls.make(x, blocksize=2).evaluate(EvalContext(), np.zeros(dims, np.float32))


def test_text():
    x = value("float32", ["n", 8, 2, 2])
    assert 'blocksize = 2 : i64, mode = "CRD"' in round_trip(TO_SPACE.make(x, blocksize=2, mode="CRD"))
    assert "sx.space_to_depth" in round_trip(TO_DEPTH.make(x, blocksize=2))
