"""Small ONNX models for tests, and what onnxruntime or ONNX's reference evaluator compute for a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from sardonyx import OnnxModel

Array = np.ndarray[Any, Any]
FLOAT, INT64, BOOL = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64, onnx.TensorProto.BOOL


def node(op: str, inputs: str, outputs: str, name: str = "", domain: str = "", **attributes: Any) -> onnx.NodeProto:
    """A node; names are separated by spaces, `_` stands for one that is left out."""
    given, made = ([("" if n == "_" else n) for n in text.split()] for text in (inputs, outputs))
    return helper.make_node(op, given, made, name=name or None, domain=domain or None, **attributes)


def info(name: str, shape: Sequence[Any] | None, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, dtype, shape)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    weights: Mapping[str, Any] | None = None,
    opset: int = 21,
    ir_version: int = 10,
    domains: Mapping[str, int] | None = None,
    functions: Sequence[onnx.FunctionProto] = (),
    **fields: Any,
) -> onnx.ModelProto:
    """A model; `weights` are its initializers by name."""
    made = [numpy_helper.from_array(np.asarray(a), n) for n, a in (weights or {}).items()]
    graph = helper.make_graph(list(nodes), "g", list(inputs), list(outputs), made)
    imports = [helper.make_opsetid("", opset)] + [helper.make_opsetid(d, v) for d, v in (domains or {}).items()]
    return helper.make_model(graph, opset_imports=imports, ir_version=ir_version, functions=list(functions), **fields)


def roundtrip(proto: onnx.ModelProto, **options: Any) -> onnx.ModelProto:
    """Through the dialect and back."""
    options.setdefault("optimize", False)
    return OnnxModel.from_graph(OnnxModel.from_proto(proto).compile(), **options).to_proto()


def evaluate(proto: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    """By our reference evaluator."""
    return [np.asarray(t) for t in OnnxModel.from_proto(proto).compile().evaluate(dict(feeds))]


def run_ort(proto: onnx.ModelProto | str, feeds: Mapping[str, Array]) -> list[Array]:
    """By onnxruntime, without graph optimisations."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    source = proto if isinstance(proto, str) else proto.SerializeToString()
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return [np.asarray(a) for a in session.run(None, dict(feeds))]


def run_onnx(proto: onnx.ModelProto, feeds: Mapping[str, Array]) -> list[Array]:
    """By ONNX's reference evaluator."""
    from onnx.reference import ReferenceEvaluator

    return [np.asarray(a) for a in ReferenceEvaluator(proto).run(None, dict(feeds))]


def op_types(proto: onnx.ModelProto) -> list[str]:
    return [n.op_type for n in proto.graph.node]
