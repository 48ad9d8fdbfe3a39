"""One graph, three executions: the reference, native code, and the exported model in onnxruntime."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from sardonyx.dialects.weights import WeightStore
from sardonyx.errors import UnsupportedError
from sardonyx.frontend.graph import ModelGraph


@dataclass
class Executions:
    """The outputs by execution (`reference`, `native`, `onnx`), and why one did not run, where one did not."""

    outputs: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    skipped: dict[str, str] = field(default_factory=dict[str, str])


def three_executions(
    graph: ModelGraph | ModuleOp | str,
    inputs: Sequence[Any],
    *,
    rtol: float = 1e-5,
    atol: float = 1e-6,
    require: Sequence[str] = ("reference", "native"),
) -> Executions:
    """Run a graph in all three ways and compare; integers and bools have to be equal.

    Args:
        graph: A graph, a module, or MLIR text. It is not changed.
        inputs: One array an input.
        rtol: How much floats may differ from the reference, relative to it.
        atol: How much they may differ at least.
        require: The executions that have to take place. Without onnxruntime, or where the graph has no native or ONNX
            form, the others are skipped, and `skipped` says why.

    Raises:
        AssertionError: Results differ, or an execution that is required cannot take place.
    """
    if isinstance(graph, str):
        from sardonyx.passes.context import make_context
        from sardonyx.tools.text import Text, parse_text

        graph = parse_text(make_context(), Text(graph, "<text>"))
    if isinstance(graph, ModuleOp):
        graph = ModelGraph(graph.clone(), WeightStore())
    out = Executions()
    arrays = [np.asarray(one) for one in inputs]
    out.outputs["reference"] = [np.asarray(o) for o in graph.evaluate(arrays)]
    for name, run in (("native", _native), ("onnx", _onnx)):
        try:
            out.outputs[name] = run(graph, arrays)
        except (UnsupportedError, ImportError) as error:
            out.skipped[name] = str(error)
    missing = [f"{name}: {out.skipped[name]}" for name in require if name in out.skipped]
    if missing:
        raise AssertionError("; ".join(missing))
    wanted = out.outputs["reference"]
    for name, got in out.outputs.items():
        assert len(got) == len(wanted), f"{name} gives {len(got)} outputs, the reference {len(wanted)}"
        for number, (a, b) in enumerate(zip(got, wanted, strict=True)):
            what = f"output {number} of {name} against the reference"
            assert a.dtype == b.dtype and a.shape == b.shape, f"{what}: {a.dtype}{a.shape}, {b.dtype}{b.shape}"
            if b.dtype.kind in "biuOU":
                np.testing.assert_array_equal(a, b, err_msg=what)
            else:
                x, y = a.astype(np.float64), b.astype(np.float64)
                np.testing.assert_allclose(x, y, rtol, atol, err_msg=what)
    return out


def _native(graph: ModelGraph, arrays: Sequence[Any]) -> list[Any]:
    compiled = graph.clone()
    compiled.finalize()
    return [np.asarray(o) for o in compiled.run(list(arrays))]


def _onnx(graph: ModelGraph, arrays: Sequence[Any]) -> list[Any]:
    from sardonyx.backends.onnx.parity import ort_session, ort_version

    if ort_version() is None:
        raise ImportError("onnxruntime is not installed")
    with tempfile.TemporaryDirectory(prefix="sardonyx-test-") as folder:
        path = Path(folder, "model.onnx")
        graph.export_onnx(path)
        feeds = dict(zip(graph.input_names(), arrays, strict=True))
        return [np.asarray(o) for o in ort_session(path)(feeds)]
