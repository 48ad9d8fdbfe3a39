"""onnxruntime on models of one node: an implementation that is not ours to hold ours against."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime
from onnx import helper

Array = np.ndarray[Any, Any]
OPSET = 21


def run_node(
    op_type: str,
    inputs: Sequence[Any],
    outputs: int = 1,
    opset: int = OPSET,
    domain: str = "",
    **attributes: Any,
) -> list[Array]:
    """What onnxruntime computes for one node on these inputs, without graph optimisations.

    An input that is None is left out (an empty name). An attribute that is None is left out too.
    """
    names = ["" if a is None else f"x{i}" for i, a in enumerate(inputs)]
    while names and not names[-1]:
        names.pop()
    made = helper.make_node(
        op_type,
        names,
        [f"y{i}" for i in range(outputs)],
        domain=domain,
        **{k: v for k, v in attributes.items() if v is not None},
    )
    feeds = {name: np.asarray(a) for name, a in zip(names, inputs, strict=False) if name and a is not None}
    graph = helper.make_graph(
        [made],
        "g",
        [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in feeds.items()],
        [helper.make_empty_tensor_value_info(f"y{i}") for i in range(outputs)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid(domain, opset)], ir_version=10)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [np.asarray(a) for a in session.run(None, feeds)]
