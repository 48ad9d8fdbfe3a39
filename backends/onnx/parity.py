"""Runs exported files in engines that are not ours, for comparison: onnxruntime, or ONNX's reference evaluator."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from sardonyx.errors import UnsupportedError

Array = np.ndarray[Any, Any]
Session = Callable[[Mapping[str, Array]], list[Array]]
"""Runs the model on inputs by name; gives its outputs in order."""


def ort_session(path: str | os.PathLike[str]) -> Session:
    """The model in onnxruntime on the CPU.

    Raises:
        UnsupportedError: onnxruntime is not installed.
    """
    try:
        import onnxruntime
    except ImportError as error:
        raise UnsupportedError("onnxruntime is not installed", hint="pip install 'sardonyx[ort]'") from error
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3  # warnings about the machine are no news of the model
    session = onnxruntime.InferenceSession(os.fspath(path), settings, providers=["CPUExecutionProvider"])
    return lambda feeds: [np.asarray(o) for o in session.run(None, dict(feeds))]


def reference_session(path: str | os.PathLike[str]) -> Session:
    """The model in ONNX's reference evaluator: slow, and always there."""
    import onnx.reference

    evaluator = onnx.reference.ReferenceEvaluator(os.fspath(path))
    return lambda feeds: [np.asarray(o) for o in evaluator.run(None, dict(feeds))]
