"""What only moves elements moves those of 8 bits and fewer like bytes."""

import numpy as np
import pytest
from op_case import op, run_all

from sardonyx.dialects.dtypes import NARROW, float6e3m2, float8e4m3fnuz, int4, uint2

PADS, AXES = np.array([0, 1, 1, 0]), np.array([0])
CASES = [
    ("identity", (2, 3), (), {}), ("reshape", (2, 3), (np.array([3, -1]),), {}), ("transpose", (2, 3), (), {}),
    ("squeeze", (1, 3), (AXES,), {}), ("unsqueeze", (3,), (AXES,), {}), ("flatten", (2, 3), (), {}),
    ("expand", (1, 3), (np.array([2, 3]),), {}), ("tile", (2, 3), (np.array([2, 1]),), {}),
    ("slice", (4, 3), (np.array([3]), np.array([0]), AXES, np.array([-2])), {}),
    ("gather", (4, 3), (np.array([[3, 0], [1, 1]]),), {}), ("gather_nd", (2, 3), (np.array([[1, 2]]),), {}),
    ("gather_elements", (2, 3), (np.array([[0, 1, 1]]),), {}), ("pad", (2, 2), (PADS,), {}),
    ("pad", (2, 3), (PADS,), {"mode": "edge"}), ("depth_to_space", (1, 4, 1, 2), (), {"blocksize": 2}),
    ("space_to_depth", (1, 1, 2, 2), (), {"blocksize": 2}), ("trilu", (3, 3), (), {}),
    ("split", (2, 4), (np.array([1, 3]),), {"axis": 1}), ("tile", (0, 3), (np.array([2, 1]),), {}),
]  # fmt: skip


@pytest.mark.parametrize("dtype", [int4, uint2, float6e3m2, float8e4m3fnuz], ids=str)
def test_bits_are_kept(dtype):
    for name, dims, rest, properties in CASES:
        codes = (np.arange(int(np.prod(dims))) * 7 % (1 << dtype.bits)).astype(np.uint8).reshape(dims)
        results = 2 if name == "split" else None
        want = run_all(op(name), codes, *rest, results=results, **properties)
        got = run_all(op(name), codes.view(dtype.numpy), *rest, results=results, **properties)
        for a, b in zip(got, want, strict=True):
            assert a.dtype == dtype.numpy and a.shape == b.shape and a.tobytes() == b.tobytes(), name


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_of_several_operands(dtype):
    codes = (np.arange(6) % (1 << dtype.bits)).astype(np.uint8)
    a, b = codes.view(dtype.numpy), codes[::-1].copy().view(dtype.numpy)
    (joined,) = run_all(op("concat"), [a, b], axis=0)
    assert joined.tobytes() == codes.tobytes() + codes[::-1].tobytes()
    where = codes % 2 == 0
    (chosen,) = run_all(op("where"), where, a, b)
    assert chosen.tobytes() == np.where(where, codes, codes[::-1]).tobytes()
    assert run_all(op("shape"), a)[0].tolist() == [6] and run_all(op("size"), a)[0].item() == 6


@pytest.mark.parametrize("dtype", [t for t in NARROW if t.is_float], ids=str)
def test_nan_and_infinity(dtype):
    x = np.arange(1 << dtype.bits, dtype=np.uint8).view(dtype.numpy)
    wide = x.astype(np.float32)
    assert run_all(op("is_nan"), x)[0].tolist() == np.isnan(wide).tolist()
    assert run_all(op("is_inf"), x)[0].tolist() == np.isinf(wide).tolist()
