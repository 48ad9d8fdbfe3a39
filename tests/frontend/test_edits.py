"""Edits on a graph, `to`, and the guard of a graph that is being worked on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.errors import FailedPreconditionError, InvalidArgumentError

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(4, 3)).astype(np.float32), RNG.normal(size=(3, 5)).astype(np.float32)


def model() -> sx.ModelGraph:
    def fn(x: Any, y: Any) -> dict[str, Any]:
        return {"z": sx.relu(x @ y) + 1, "s": sx.split(x, 2, axis=0)[0]}

    return sx.trace(fn, "x: f32[4,n], y: f32[n,5]").graph


def check(graph: sx.ModelGraph, want: np.ndarray, inputs: Any = (X, Y)) -> None:
    graph.module.verify()
    graph.finalize()
    for got in (graph.evaluate(list(inputs)), graph.run(list(inputs))):
        np.testing.assert_allclose(got[0], want, rtol=1e-5, atol=1e-6)


def test_insert_replace_remove_rename():
    graph = model()
    graph.insert("MatMul_0", lambda t: t * 2)
    check(graph, np.maximum(X @ Y * 2, 0) + 1)
    graph.replace("Relu_0", sx.abs)
    assert not graph.is_finalized
    graph.insert("x", lambda t: t - np.full(1, 0.5, np.float32))
    check(graph, abs((X - 0.5) @ Y * 2) + 1)
    graph.replace("MatMul_0", sx.gemm)
    graph.remove("Abs_0")
    for old, new in (("x", "input"), ("z", "output"), ("Gemm_0", "product")):
        graph.rename(old, new)
    check(graph, (X - 0.5) @ Y * 2 + 1)
    assert graph.input_names() == ["input", "y"] and graph.output_names() == ["output", "s"]
    assert graph.node("product").operator == "Gemm" and graph.node("input").is_input


def test_the_signature_follows():
    graph = model()
    graph.insert("z", lambda t: sx.sum(t, [1]).astype(sx.float64))
    assert graph.outputs()[0] == ("z", sx.float64, (4,))
    graph.replace("Split_0", lambda t: (t[:1], t[1:]))
    assert graph.outputs()[1] == ("s", sx.float32, (1, -1))
    graph.remove_output("s")
    graph.replace("MatMul_0", lambda a, b: a @ np.ones((3, 5), np.float32))
    assert graph.input_names() == ["x", "y"]
    graph.remove("y")
    assert graph.input_names() == ["x"] and graph.output_names() == ["z"]
    check(graph, (np.maximum(X.sum(1), 0) + 1) * 5, [X])


def bad(*_: Any) -> Any:
    return "text"


@pytest.mark.parametrize(("edit", "error", "message"), [
    (lambda g: g.insert("MatMul_0", lambda t: t.T[:3].astype(sx.int32)), InvalidArgumentError, "dtypes"),
    (lambda g: g.insert("y", bad), InvalidArgumentError, "the function returns one tensor, not str"),
    (lambda g: g.insert("Split_0", sx.exp), InvalidArgumentError, "the node 'Split_0' has 2 outputs; name one of"),
    (lambda g: g.replace("Split_0", sx.exp), InvalidArgumentError, "returns 2 tensors, not 1 values"),
    (lambda g: g.replace("x", sx.exp), InvalidArgumentError, "'x' is an input"),
    (lambda g: g.replace("MatMul_0", lambda a, b: 1 / 0), ZeroDivisionError, "division"),
    (lambda g: g.remove("x"), InvalidArgumentError, "the input 'x' is read"),
    (lambda g: g.remove("constant_0"), InvalidArgumentError, "others read the node without inputs"),
    (lambda g: g.remove("no"), InvalidArgumentError, "has no node 'no'"),
    (lambda g: g.remove_output("no"), InvalidArgumentError, "has no output 'no'"),
    (lambda g: g.rename("x", "z"), InvalidArgumentError, "has an input or output 'z' already"),
    (lambda g: g.rename("x", ""), InvalidArgumentError, "isn't empty"),
])  # fmt: skip
def test_an_edit_that_fails_leaves_the_graph_as_it_was(
    edit: Callable[[sx.ModelGraph], None], error: type[Exception], message: str
):
    graph = model()
    before = graph.text(locations=True)
    with pytest.raises(error, match=message):
        edit(graph)
    assert graph.text(locations=True) == before
    graph.module.verify()
    np.testing.assert_allclose(graph.evaluate([X, Y])[0], np.maximum(X @ Y, 0) + 1, rtol=1e-5)


def test_to():
    graph = model()
    assert graph.to("cpu") is graph
    with pytest.raises(InvalidArgumentError, match=r"to\(\): there is no device 'cuda'"):
        graph.to("cuda")


def test_calls_on_a_graph_that_is_worked_on(tmp_path: Path):
    graph = model()
    calls: dict[str, Callable[[], Any]] = {
        "export_onnx": lambda: graph.export_onnx(tmp_path / "m.onnx"),
        "from_graph": lambda: sx.OnnxModel.from_graph(graph),
        "run": lambda: graph.run([X, Y]),
        "evaluate": lambda: graph.evaluate([X, Y]),
        "finalize": graph.finalize,
        "optimize": graph.optimize,
        "clone": graph.clone,
        "to": lambda: graph.to("cpu"),
        "attach_kv_cache": graph.attach_kv_cache,
    }

    def refused(running: str) -> None:
        for call, function in calls.items():
            with pytest.raises(FailedPreconditionError, match=f"^{call}: {running}\\(\\) is running .* call {call}"):
                function()

    def transform(held: sx.ModelGraph) -> None:
        refused("optimize")
        held.insert("z", lambda t: t * 1)  # editing is what a transform is for

    graph.optimize([sx.Transform("t", transform)])
    check(graph, np.maximum(X @ Y, 0) + 1)
    graph.insert("z", lambda t: (refused("insert"), t)[1])
    with graph.edit("my_edit"):
        refused("my_edit")
        with pytest.raises(FailedPreconditionError, match=r"rename: my_edit\(\) is running"):
            graph.rename("x", "w")
    assert not list(tmp_path.iterdir())
