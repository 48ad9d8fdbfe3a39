"""Transposition: permutations, symbols, contents, errors."""

import numpy as np
import pytest
from op_case import constant, extents, known, round_trip, run, shape, value
from sized import op

from sardonyx.dialects import dtypes
from sardonyx.errors import InferenceError

TRANSPOSE = op("transpose")


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.ALL])
def test_permutes_axes(dtype):
    x = np.arange(24).reshape(2, 3, 4).astype(dtypes.DTYPES[dtype].numpy)
    assert run(TRANSPOSE, x, perm=[1, 2, 0]).tolist() == np.moveaxis(x, 0, 2).tolist()
    assert run(TRANSPOSE, x).tolist() == x.T.tolist()


@pytest.mark.parametrize("dims", [(), (5,), (0, 3), (2, 0, 4)])
def test_small_ranks_and_no_elements(dims):
    x = np.zeros(dims, np.float32)
    assert run(TRANSPOSE, x).shape == dims[::-1]


def test_symbols_move():
    x = value("float32", ["b", 3, "n"])
    assert shape(TRANSPOSE.make(x, perm=[2, 0, 1])) == ["n", "b", "3"]
    assert shape(TRANSPOSE.make(x)) == ["n", "3", "b"]
    assert shape(TRANSPOSE.make(value("float32", None))) is None


def test_contents_move():
    pads = op("reshape").make(extents(["a", "b", "c", "d"]), constant([2, 2]))
    assert known(TRANSPOSE.make(pads.output)) == ["a", "c", "b", "d"]


def test_text():
    assert "sx.transpose" in round_trip(TRANSPOSE.make(value("float32", ["b", 3]), perm=[1, 0]))
    assert round_trip(TRANSPOSE.make(value("int8", [2]))).endswith("(tensor<2xi8>) -> tensor<2xi8>")


@pytest.mark.parametrize("perm", [[0, 0], [0], [0, 1, 2], [0, 2], [-1, 0]])
def test_c2_no_permutation(perm):
    with pytest.raises(InferenceError, match=r"\(C2\)"):
        TRANSPOSE.make(value("float32", [2, 3]), perm=perm)
    if sorted(perm) != list(range(len(perm))):
        with pytest.raises(InferenceError, match=r"\(C2\)"):
            TRANSPOSE.make(value("float32", None), perm=perm)
