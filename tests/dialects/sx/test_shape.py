"""Extents as data."""

import numpy as np
import pytest
from op_case import known, round_trip, run, shape, value
from sized import op

from sardonyx.dialects import dtypes

SHAPE, SIZE = op("shape"), op("size")


@pytest.mark.parametrize("dtype", [t.name for t in dtypes.ALL])
def test_shape_and_size(dtype):
    x = np.zeros((2, 3, 4), dtypes.DTYPES[dtype].numpy)
    assert run(SHAPE, x).tolist() == [2, 3, 4]
    assert run(SIZE, x).tolist() == 24 and run(SIZE, x).dtype == np.int64


@pytest.mark.parametrize(
    ("start", "end", "want"),
    [
        (0, None, [2, 3, 4]), (1, None, [3, 4]), (-1, None, [4]), (0, -1, [2, 3]), (1, 2, [3]), (2, 1, []),
        (-9, 9, [2, 3, 4]), (3, None, []), (-2, -1, [3]),
    ],
)  # fmt: skip
def test_bounds_are_clamped(start, end, want):
    assert run(SHAPE, np.zeros((2, 3, 4)), start=start, end=end).tolist() == want


def test_scalars_and_no_elements():
    assert run(SHAPE, np.float32(1)).tolist() == [] and run(SIZE, np.float32(1)).tolist() == 1
    assert run(SHAPE, np.zeros((0, 3))).tolist() == [0, 3] and run(SIZE, np.zeros((0, 3))).tolist() == 0


def test_contents_are_the_extents():
    x = value("float32", ["b", 3, "n"])
    assert shape(SHAPE.make(x)) == ["3"] and known(SHAPE.make(x)) == ["b", "3", "n"]
    assert known(SHAPE.make(x, start=-2)) == ["3", "n"]
    assert shape(SIZE.make(x)) == [] and known(SIZE.make(x)) == ["3*b*n"]
    unranked = value("float32", None)
    assert shape(SHAPE.make(unranked)) == ["?"] and known(SHAPE.make(unranked)) is None
    assert known(SIZE.make(unranked)) is None


def test_text():
    x = value("float32", ["b", 3])
    assert round_trip(SHAPE.make(x, end=1)).endswith("-> tensor<1xi64>")
    assert round_trip(SIZE.make(x)).endswith("-> tensor<i64>")
