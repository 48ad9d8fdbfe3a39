"""Transposes on both sides of quantisation meet and cancel, and the scales keep their axis."""

from __future__ import annotations

import numpy as np
import pytest

import sardonyx as sx

Q = (np.arange(24, dtype=np.int8) * 5 - 60).astype(np.int8).reshape(2, 3, 4)
PERM, BACK = (2, 0, 1), (1, 2, 0)


def one(fn, array):
    graph = sx.trace(fn, (sx.TensorSpec("x", array.dtype, array.shape),)).graph
    before = graph.evaluate([array])[0]
    graph.optimize()
    after = graph.evaluate([array])[0]
    assert np.asarray(before).tobytes() == np.asarray(after).tobytes()
    return [line.split(" = ")[1].split(" ")[0] for line in str(graph).splitlines() if " = sx." in line]


SCALES = {
    "tensor": (np.float32(0.5), np.int8(3), {}),
    "axis": (np.array([0.5, 2, 8], np.float32), np.array([1, -3, 7], np.int8), {"axis": -1}),
    "blocks": (np.arange(1, 13, dtype=np.float32).reshape(2, 2, 3), np.int8(1) * np.ones((2, 2, 3), np.int8),
               {"axis": 0, "block_size": 2}),
}  # fmt: skip


@pytest.mark.parametrize("kind", SCALES)
def test_dequantize(kind):
    scale, zero, where = SCALES[kind]

    def fn(x):
        turned = sx.permute_dims(x, PERM)
        return sx.permute_dims(sx.dequantize_linear(turned, scale, zero, **where), BACK)

    left = one(fn, Q)
    assert "sx.transpose" not in left and "sx.dequantize_linear" in left


@pytest.mark.parametrize("kind", SCALES)
def test_quantize(kind):
    scale, zero, where = SCALES[kind]

    def fn(x):
        turned = sx.permute_dims(x, PERM)
        return sx.permute_dims(sx.quantize_linear(turned, scale, zero, **where), BACK)

    left = one(fn, Q.astype(np.float32) * 0.7)
    assert "sx.transpose" not in left and "sx.quantize_linear" in left
