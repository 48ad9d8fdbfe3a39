"""Ops and dtypes that have no native form are refused by name, wherever they stand."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import sardonyx as sx
from sardonyx.errors import UnsupportedError


def test_refused_by_name():
    model = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["": 21, "org.example": 1]>
        g (float[2] x) => (float[2] y) { [turned] y = org.example.Twist (x) }""")
    graph = sx.OnnxModel.from_proto(model).compile()
    with pytest.raises(UnsupportedError, match="node 'turned': .*Twist.* has no native form"):
        graph.finalize()


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
