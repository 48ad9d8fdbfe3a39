"""Runs exported files in engines that are not ours, for comparison: onnxruntime, or ONNX's reference evaluator."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.errors import ExecutionError, InvalidArgumentError, UnsupportedError

Array = np.ndarray[Any, Any]
Session = Callable[[Mapping[str, Any]], list[Any]]
"""Runs the model on inputs by name; gives its outputs in order."""

PROVIDERS = {
    "cpu": "CPUExecutionProvider",
    "cuda": "CUDAExecutionProvider",
    "tensorrt": "TensorrtExecutionProvider",
    "openvino": "OpenVINOExecutionProvider",
    "coreml": "CoreMLExecutionProvider",
    "dml": "DmlExecutionProvider",
    "rocm": "ROCMExecutionProvider",
    "migraphx": "MIGraphXExecutionProvider",
    "qnn": "QNNExecutionProvider",
    "xnnpack": "XnnpackExecutionProvider",
    "dnnl": "DnnlExecutionProvider",
    "webgpu": "WebGpuExecutionProvider",
}
"""Short names of onnxruntime's execution providers."""


def provider_name(name: str) -> str:
    """onnxruntime's name of an execution provider.

    Raises:
        InvalidArgumentError: The name is none.
    """
    found = PROVIDERS.get(name.lower())
    if found is None and name not in PROVIDERS.values() and not name.endswith("ExecutionProvider"):
        raise InvalidArgumentError(
            f"'{name}' is no execution provider", hint=f"known are {', '.join(PROVIDERS)} and onnxruntime's own names"
        )
    return found or name


def installed_providers() -> list[str]:
    """The execution providers of the onnxruntime that is installed; none where it is not."""
    try:
        import onnxruntime
    except ImportError:
        return []
    return list(onnxruntime.get_available_providers())


def ort_version() -> str | None:
    """The version of the onnxruntime that is installed; None where it is not."""
    try:
        import onnxruntime
    except ImportError:
        return None
    return str(onnxruntime.__version__)


def ort_session(
    path: str | os.PathLike[str],
    providers: Sequence[str] = ("CPUExecutionProvider",),
    optimize: bool = True,
    threads: int | None = None,
) -> Session:
    """The model in onnxruntime.

    Args:
        path: The model's file.
        providers: Execution providers by onnxruntime's names; what the first cannot run, the next ones do.
        optimize: Whether onnxruntime may rewrite the graph.
        threads: How many threads a run may use; None: onnxruntime's choice.

    Raises:
        UnsupportedError: onnxruntime is not installed, or was built without a provider.
        ExecutionError: It refuses the model, or the data of a run.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise UnsupportedError("onnxruntime is not installed", hint="pip install 'sardonyx[ort]'") from error
    missing = [p for p in providers if p not in onnxruntime.get_available_providers()]
    if missing:
        raise UnsupportedError(f"the onnxruntime that is installed has no {missing[0]}")
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4  # warnings about the machine are no news of the model
    if threads is not None:
        settings.intra_op_num_threads = threads
    if not optimize:
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(os.fspath(path), settings, providers=list(providers))
    except Exception as error:
        raise ExecutionError(f"onnxruntime refuses the model: {_first_line(error)}") from error

    def run(feeds: Mapping[str, Any]) -> list[Any]:
        try:
            return [_array(o) for o in session.run(None, dict(feeds))]
        except Exception as error:
            raise ExecutionError(f"onnxruntime: {_first_line(error)}") from error

    return run


def _array(value: Any) -> Any:
    """A result as it is given on: tensors as arrays; sequences, maps and empty optionals as they are."""
    return value if value is None or isinstance(value, list | dict) else np.asarray(value)


def _first_line(error: Exception) -> str:
    text = str(error).strip().split("\n")[0]
    return text[:500] or type(error).__name__


def reference_session(path: str | os.PathLike[str]) -> Session:
    """The model in ONNX's reference evaluator: slow, and always there."""
    import onnx.reference

    evaluator = onnx.reference.ReferenceEvaluator(os.fspath(path))
    return lambda feeds: [np.asarray(o) for o in evaluator.run(None, dict(feeds))]


def refuses(path: str | os.PathLike[str], provider: str) -> str | None:
    """Why onnxruntime cannot run all of a model by one execution provider; None where it can.

    Raises:
        UnsupportedError: onnxruntime is not installed.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise UnsupportedError("onnxruntime is not installed", hint="pip install 'sardonyx[ort]'") from error
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 4
    settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    if provider != "CPUExecutionProvider":
        settings.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    try:
        onnxruntime.InferenceSession(os.fspath(path), settings, providers=[provider])
    except Exception as error:  # noqa: BLE001 -- its exceptions have no base of their own
        return _first_line(error)
    return None
