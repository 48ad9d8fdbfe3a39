"""Models written in ONNX's text form, run by the reference, native code, and onnxruntime on what is exported again."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import parser

import sardonyx as sx


def parse(text: str, opset: int = 21) -> onnx.ModelProto:
    """The model of a graph's text."""
    return parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> {text}')


def compiled(text: str) -> sx.ModelGraph:
    """The graph, finalized."""
    graph = sx.OnnxModel.from_proto(parse(text)).compile()
    graph.finalize()
    return graph


def plain(value: Any) -> Any:
    return [plain(v) for v in value] if isinstance(value, list) else None if value is None else np.asarray(value)


def same(got: Any, want: Any) -> None:
    """Hold a value, an array or a list of them, against another."""
    if isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want), (got, want)
        for a, b in zip(got, want, strict=True):
            same(a, b)
    elif want is None:
        assert got is None
    else:
        assert got.shape == want.shape and got.dtype == want.dtype, (got, want)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def three(text: str, *runs: list[Any], exported: bool = True) -> sx.ModelGraph:
    """Run a model three ways, twice natively; returns the finalized graph. Without `exported` onnxruntime, which
    differs for what the runs hold, is left out."""
    import onnxruntime

    graph = compiled(text)
    session = None
    if exported:
        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 3, 1
        session = onnxruntime.InferenceSession(sx.OnnxModel.from_graph(graph).to_proto().SerializeToString(), options)
    for feeds in runs:
        want = plain(graph.evaluate(feeds))
        for _ in range(2):
            same(plain(graph.run(feeds)), want)
        if session is not None:
            names = [name for name, *_ in graph.inputs()]
            same(plain(session.run(None, dict(zip(names, feeds, strict=True)))), want)
    return graph
