"""Ops and dtypes that have no native form are refused by name, wherever they stand."""

from __future__ import annotations

import numpy as np
import pytest
from three_ways import build, case

import sardonyx as sx
from sardonyx.backends.llvm.compile import compile_module
from sardonyx.dialects.sx import BY_NAME
from sardonyx.errors import UnsupportedError


def test_refused_by_name():
    x, weights = np.zeros((2, 1, 3), "f4"), np.zeros((1, 3, 8), "i1")
    scale, zero = np.ones(1, "f4"), np.zeros(1, "i1")
    slots = (x, weights, np.zeros((1, 2, 8), "i1"), *[None] * 5, scale, zero, scale, zero)
    graph = build([case(BY_NAME["sx.dynamic_quantize_lstm"], *slots, hidden_size=2, results=3)], "static")
    with pytest.raises(UnsupportedError, match="sx.dynamic_quantize_lstm has no native form yet"):
        compile_module(graph.module)


def test_weights_of_few_bits_need_no_reference():
    weights = sx.asarray([[1, -3], [7, -8]], dtype=sx.int4)

    def fn(x):
        return x @ sx.dequantize_linear(weights, 0.5)

    graph = sx.trace(fn, (sx.TensorSpec("x", sx.float32, ("n", 2)),)).graph
    x = np.array([[1, 2]], np.float32)
    want = [[7.5, -9.5]]
    assert graph.evaluate([x])[0].tolist() == want
    graph.finalize()
    assert graph.run([x])[0].tolist() == want
