"""A test's model imported and exported again, executed by somebody else, and held against the expected outputs.

Who judges is decided by the model as it was: onnxruntime where it passes the test, else ONNX's reference evaluator, so
that a broken export is not forgiven by the more lenient of the two. Types that onnxruntime's Python API does not know
are handed to it as bytes, where the evaluator cannot judge.
"""

from __future__ import annotations

import copy
import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx_cases import Case, difference, formed, live_inputs

from sardonyx import OnnxModel

OURS = frozenset({"", "ai.onnx.ml", "ai.onnx.preview"})
"""Domains none of whose operators may pass as one that nobody knows."""
EXECUTIONS = {"round-trip": False, "round-trip-optimized": True}
"""Whether the graph is optimised in between, by the name of the execution."""

Engine = Callable[[onnx.ModelProto, Sequence[Any]], list[Any]]


class NotForThisEngine(Exception):
    """onnxruntime has no kernel, or its Python API no such type."""


def by_onnxruntime(model: onnx.ModelProto, inputs: Sequence[Any]) -> list[Any]:
    """By onnxruntime's kernels, at the types that its Python API knows."""

    if any(_exotic(value) for value in inputs):
        raise NotForThisEngine
    return _in_session(model, lambda session: list(session.run(None, _feeds(model, inputs))))


def by_onnxruntime_as_bytes(model: onnx.ModelProto, inputs: Sequence[Any]) -> list[Any]:
    """By onnxruntime's kernels, at any types of tensors."""
    from onnxruntime import OrtValue

    def value(array: Any, number: int) -> Any:
        raw = onnx.numpy_helper.from_array(np.asarray(array, order="C")).raw_data
        made = OrtValue.ortvalue_from_shape_and_type(list(array.shape), number)
        ctypes.memmove(made.data_ptr(), raw, len(raw))
        return made

    def array(made: Any) -> Any:
        proto = onnx.TensorProto(data_type=made.element_type(), dims=made.shape())
        empty = onnx.numpy_helper.from_array(np.zeros(made.shape(), helper.tensor_dtype_to_np_dtype(proto.data_type)))
        proto.raw_data = ctypes.string_at(made.data_ptr(), len(empty.raw_data))
        return onnx.numpy_helper.to_array(proto)

    given = {v.name: v.type for v in live_inputs(model)}
    feeds = _feeds(model, inputs)
    if not all(isinstance(x, np.ndarray) and x.dtype.kind not in "OUST" for x in feeds.values()):
        raise NotForThisEngine
    values = {name: value(x, given[name].tensor_type.elem_type) for name, x in feeds.items()}
    return _in_session(model, lambda session: [array(x) for x in session.run_with_ort_values(None, values)])


def _in_session(model: onnx.ModelProto, run: Callable[[Any], list[Any]]) -> list[Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.add_session_config_entry("session.allow_released_opsets_only", "0")
    stated = onnx.ModelProto()
    stated.CopyFrom(model)
    stated.ir_version = min(stated.ir_version, 13)  # the newest that it reads; operators stay as they are
    try:
        session = onnxruntime.InferenceSession(stated.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return run(session)
    except Exception as error:  # its errors share no base
        text = str(error)
        if "NOT_IMPLEMENTED" in text or "Unexpected input data type" in text or "not supported" in text.lower():
            raise NotForThisEngine(text) from error
        raise


def by_onnx(model: onnx.ModelProto, inputs: Sequence[Any]) -> list[Any]:
    """By ONNX's reference evaluator."""
    from onnx.reference import ReferenceEvaluator

    return list(ReferenceEvaluator(model).run(None, _feeds(model, inputs)))


def _feeds(model: onnx.ModelProto, inputs: Sequence[Any]) -> dict[str, Any]:
    return {v.name: copy.deepcopy(x) for v, x in zip(live_inputs(model), inputs, strict=True)}


def _exotic(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_exotic, value))
    return isinstance(value, np.ndarray) and value.dtype.type.__module__.startswith("ml_dtypes")


def _passes(engine: Engine, model: onnx.ModelProto, inputs: Sequence[Any], expected: Any, case: Case) -> bool:
    try:
        return difference(list(expected), engine(model, inputs), case.rtol, case.atol) is None
    except Exception:  # noqa: BLE001  an engine's errors are of any kind: it is no judge of this test
        return False


def run_case(case: Case, optimized: bool, form: str) -> str | None:
    """What is wrong with the exported model or its outputs, or None. Errors of Sardonyx are raised as they come."""
    for inputs, expected in case.data:
        model, left = formed(case, form, inputs)
        graph = OnnxModel.from_proto(model).compile()
        if optimized:
            graph.optimize()
        exported = OnnxModel.from_graph(graph, optimize=optimized)
        unknown = [name for name in exported.opaque_nodes if name.rpartition(".")[0] in OURS]
        if unknown:
            return f"operators that nobody knows: {', '.join(unknown)}"
        made = exported.to_proto()
        problem = _interface(model, made)
        judge = next(
            (e for e in (by_onnxruntime, by_onnx, by_onnxruntime_as_bytes) if _passes(e, model, left, expected, case)),
            None,
        )
        if judge is None and problem is None:
            problem = "neither onnxruntime nor ONNX's reference evaluator passes the test as it is"
        if judge is not None and problem is None:
            try:
                found = judge(made, left)
            except NotForThisEngine:  # an opset of which onnxruntime lacks a kernel
                found = by_onnx(made, left)
            problem = difference(list(expected), found, case.rtol, case.atol)
        if problem is not None:
            return problem
    return None


def _interface(before: onnx.ModelProto, after: onnx.ModelProto) -> str | None:
    """Whether names and element types of inputs and outputs are as they were."""
    for what, old, new in (
        ("inputs", live_inputs(before), live_inputs(after)),
        ("outputs", before.graph.output, after.graph.output),
    ):
        if [v.name for v in old] != [v.name for v in new]:
            return f"the {what} are {[v.name for v in new]}, not {[v.name for v in old]}"
        for a, b in zip(old, new, strict=True):
            if a.type.WhichOneof("value") != b.type.WhichOneof("value") or (
                a.type.tensor_type.elem_type != b.type.tensor_type.elem_type
            ):
                return f"the type of '{a.name}' has changed"
    return None
