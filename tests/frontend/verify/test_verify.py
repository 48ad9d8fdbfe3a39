"""`verify`: planted faults are found and the node is named; sizes, inputs, sources and executions of all kinds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from planted_faults import FAULTS, Fault, numpy_net, small_net

import sardonyx as sx
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.verify.verify import verify


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("good") / "good.onnx"
    onnx.save(small_net(), path)
    return path


@pytest.mark.parametrize("fault", FAULTS, ids=lambda f: f.name)
def test_a_planted_fault_is_caught_and_its_node_named(fault: Fault, good: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.onnx"
    onnx.save(small_net(fault.name), bad)
    found = verify(good, bad, only=["reference", "onnxruntime"])
    assert not found.ok
    culprits = [r.culprit for r in found.failures if r.culprit is not None]
    assert fault.node in (culprits[0].node, culprits[0].missing), str(culprits[0])


def test_a_model_agrees_with_itself_in_all_executions_at_three_sizes(good: Path) -> None:
    found = verify(good, good)
    assert found.ok and found.dims == ("batch", "seq") and not found.untested
    executions = {r.execution for r in found.results}
    assert executions == {"reference", "native", "onnxruntime:cpu", "semantics"}
    assert len({tuple(r.binding.items()) for r in found.results}) == 3
    assert all(d.max_abs < 1e-5 and d.flips == 0 for r in found.results for d in r.differences if d.name == "y")


def test_a_function_over_arrays_is_a_source(good: Path) -> None:
    found = verify(numpy_net, good, dims=["batch=1,8", "seq=1,5"], only=["native"])
    assert found.ok and len(found.results) == 4
    assert {tuple(r.binding.values()) for r in found.results} == {(1, 1), (1, 5), (8, 1), (8, 5)}

    wrong = verify(lambda x: [numpy_net(x)[0] * 1.01, numpy_net(x)[1]], good, only=["native"])
    failed = wrong.failures[0]
    assert [d.ok for d in failed.differences] == [False, True]
    assert failed.differences[0].max_rel == pytest.approx(0.01, rel=0.1)


def test_recorded_outputs_are_a_source(good: Path, tmp_path: Path) -> None:
    x = np.random.default_rng(1).standard_normal((4, 2, 8), np.float32)
    y, z = numpy_net(x)
    np.savez(tmp_path / "in.npz", x=x)
    np.savez(tmp_path / "out.npz", z=z, y=y)
    assert verify(tmp_path / "out.npz", good, inputs=tmp_path / "in.npz").ok
    np.savez(tmp_path / "out.npz", z=z + 1, y=y)
    assert not verify(tmp_path / "out.npz", good, inputs=tmp_path / "in.npz").ok


def test_a_generator_gets_the_sizes_and_several_cases_may_come_of_it(good: Path) -> None:
    seen: list[int] = []

    def make(batch: int, seed: int):
        for scale in (1.0, 100.0):
            seen.append(batch)
            yield {"x": np.full((batch, 2, 8), scale * (seed + 1), np.float32) * np.arange(8, dtype=np.float32)}

    found = verify(None, good, inputs=make, dims={"batch": (1, 6), "seq": (2,)}, only=["native"])
    assert found.ok and len(found.results) == 4 and seen == [1, 1, 6, 6]


def test_a_dim_that_the_model_has_not_is_frozen(good: Path) -> None:
    found = verify(good, good, dims=["tokens=1,2"], only=["reference"])
    assert found.frozen == ("tokens",) and not found.ok and not found.failures


def test_an_execution_that_is_not_there_is_untested_not_passed(good: Path) -> None:
    found = verify(None, good, providers=["cpu", "tensorrt"], dims=["batch=1", "seq=1"])
    assert found.ok and list(found.untested) == ["onnxruntime:tensorrt"]
    assert "no TensorrtExecutionProvider" in found.untested["onnxruntime:tensorrt"]
    with pytest.raises(InvalidArgumentError, match="'gpu' is no execution provider"):
        verify(None, good, providers=["gpu"])


def test_native_code_that_leaves_the_reference_is_traced_to_its_node(
    good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An execution that is wrong from one node on: here the reference itself, from the concatenation on."""
    from sardonyx.dialects.sx.concat import ConcatOp

    honest = ConcatOp.evaluate
    monkeypatch.setattr(ConcatOp, "evaluate", lambda self, ctx, *a: [honest(self, ctx, *a)[0] * np.float32(1.1)])
    found = verify(numpy_net, good, dims=["batch=2", "seq=3"], only=["native"])
    assert found.ok  # native code is right
    from sardonyx.frontend.graph import ModelGraph
    from sardonyx.frontend.verify.observe import Plan, observe
    from sardonyx.frontend.verify.probe import locate_execution

    graph: ModelGraph = sx.OnnxModel.open(good).compile()
    feeds = {"x": np.random.default_rng(0).standard_normal((2, 3, 8), np.float32)}
    trace = observe(Plan.of(graph.module, graph.output_names()), graph.bind_inputs("test", feeds))
    culprit = locate_execution(graph, "native", [], feeds, trace, ["y"])
    assert culprit is not None and culprit.node == "join"


def test_a_source_that_refuses_everything_verifies_nothing(good: Path) -> None:
    def broken(x: np.ndarray) -> np.ndarray:
        raise RuntimeError("no")

    found = verify(broken, good, only=["reference"])
    assert not found.ok and {r.status for r in found.results} == {"refused"}
    assert "the source" in found.results[0].error and "RuntimeError: no" in found.results[0].error


def test_metrics_of_the_user_are_reported(good: Path) -> None:
    agree = {"top-1": lambda e, a: float((e["y"].argmax(-1) == a["y"].argmax(-1)).mean())}
    found = verify(numpy_net, good, metrics=agree, only=["native"])
    assert [dict(r.metrics) for r in found.results] == [{"top-1": 1.0}] * 3


def test_integer_inputs_stay_in_the_range_of_what_they_index(tmp_path: Path) -> None:
    from onnx import TensorProto, helper, numpy_helper

    graph = helper.make_graph(
        [
            helper.make_node("Cast", ["ids"], ["wide"], "cast", to=TensorProto.INT64),
            helper.make_node("Gather", ["table", "wide"], ["y"], "embed"),
        ],
        "g",
        [helper.make_tensor_value_info("ids", TensorProto.INT32, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
        [numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(3, 4), "table")],
    )
    path = tmp_path / "embed.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    found = verify(None, path, dims=["n=50"])
    assert found.ok and all(r.status == "passed" for r in found.results)
