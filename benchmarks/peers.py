"""Who runs the workloads: Sardonyx, and whichever of its peers is installed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from typing import Any

import numpy as np
from workloads import Workload

from sardonyx import OnnxModel

Array = np.ndarray[Any, Any]
Run = Callable[[], list[Array]]
Maker = Callable[[Workload, bytes, list[Array], int], Run]


def _sardonyx(workload: Workload, model: bytes, inputs: list[Array], threads: int) -> Run:
    graph = workload.graph()
    graph.optimize()
    graph.finalize(**workload.options)
    graph.compiled.use_threads(threads)
    return lambda: [np.asarray(r) for r in graph.run(inputs)]


def _onnxruntime(workload: Workload, model: bytes, inputs: list[Array], threads: int) -> Run:
    import onnxruntime as ort

    ort.set_default_logger_severity(3)
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    feed = dict(zip((i.name for i in session.get_inputs()), inputs, strict=True))
    return lambda: [np.asarray(r) for r in session.run(None, feed)]


def _openvino(workload: Workload, model: bytes, inputs: list[Array], threads: int) -> Run:
    openvino: Any = importlib.import_module("openvino")

    core = openvino.Core()
    config = {"INFERENCE_NUM_THREADS": threads, "PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(core.read_model(model, b""), "CPU", config).create_infer_request()
    return lambda: list(request.infer(inputs, share_inputs=True, share_outputs=True).to_tuple())


PEERS: dict[str, Maker] = {"sardonyx": _sardonyx, "onnxruntime": _onnxruntime, "openvino": _openvino}


def installed() -> list[str]:
    """The peers that can take part."""
    return [name for name in PEERS if importlib.util.find_spec(name) is not None]


def onnx_bytes(workload: Workload) -> bytes:
    """The workload as an ONNX model, as traced: each peer optimizes for itself."""
    return OnnxModel.from_graph(workload.graph(), optimize=False).to_proto().SerializeToString()
