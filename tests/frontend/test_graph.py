"""`ModelGraph`: what it tells, optimize, finalize, run and evaluate, inputs that don't fit, pickling, guards."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr

import sardonyx as sx
from sardonyx.dialects.attributes import WeightAttr, WeightRef
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.module import main_function
from sardonyx.dialects.weights import FileSlice
from sardonyx.errors import FailedPreconditionError, InvalidArgumentError
from sardonyx.frontend import serialize
from sardonyx.frontend.binding import DEFAULT
from sardonyx.passes.base import PassRun, SxPass
from sardonyx.passes.remove_dead_nodes import RemoveDeadNodesPass

WIDTH = 37
WEIGHT = sx.div(sx.sub(sx.arange(0, WIDTH, dtype=sx.float32), 18), 8)
BIAS = sx.full((WIDTH,), 0.5, dtype=sx.float32)


def elementwise() -> sx.ModelGraph:
    signature = [sx.TensorSpec("x", sx.float32, [-1, WIDTH], dim_names=["batch", ""])]
    result = sx.trace(lambda inputs: [sx.relu(sx.add(sx.mul(inputs[0], WEIGHT), BIAS))], signature, output_names=["y"])
    return result.graph


def rows(batch: int) -> sx.Tensor:
    return sx.cumsum(sx.ones(batch, WIDTH), 0)


def with_dead_nodes() -> sx.ModelGraph:
    def fn(x: sx.Tensor) -> sx.Tensor:
        sx.exp(x)
        return x + 1

    return sx.trace(fn, "x: f32[n]").graph


# ---- what it tells


def test_inputs_outputs_and_nodes():
    graph = elementwise()
    assert graph.inputs() == [("x", sx.float32, (-1, WIDTH))] and graph.outputs() == [("y", sx.float32, (-1, WIDTH))]
    assert isinstance(graph.inputs()[0][1], DType) and graph.output_names() == ["y"] and graph.input_names() == ["x"]
    spec = graph.node("x").output(0).spec()
    assert spec == sx.TensorSpec("x", sx.float32, ["batch", WIDTH]) and spec.dim_names == ["batch", ""]
    assert graph.output_specs()[0].dim_names == ["batch", ""] and graph.opset is None
    assert [n.name for n in graph.nodes()] == ["x", "constant_0", "Mul_0", "constant_1", "Add_0", "Relu_0"]
    add = graph.node("Add_0")
    assert add.operator == "Add" and add.inputs() == ["Mul_0_output", "constant_1"] and not add.is_input
    assert graph.node("y").name == "Relu_0", "a value's name finds the node that makes it"
    assert graph.node("constant_0").is_constant and graph.node("x").is_input and graph.node("x").inputs() == []
    assert [o.name for o in add.outputs()] == ["Add_0_output"]
    with pytest.raises(InvalidArgumentError, match="the node 'Add_0' has 1 outputs, not one number 1"):
        add.output(1)
    with pytest.raises(InvalidArgumentError, match="has no node 'Add_1'") as caught:
        graph.node("Add_1")
    assert caught.value.hint == "did you mean 'Add_0'?"


def test_attributes_of_nodes():
    graph = sx.trace(lambda x: sx.softmax(x, axis=0), "x: f32[3,n]").graph
    assert graph.node("Softmax_0").attributes == {"axis": 0} and graph.node("x").attributes == {}


def test_several_outputs_of_a_node():
    graph = sx.trace(lambda x: sx.split(x, [1, 2]), "x: f32[3,n]", output_names=["a", "b"]).graph
    (node,) = [n for n in graph.nodes() if n.operator == "Split"]
    assert [o.name for o in node.outputs()] == ["a", "b"] and node.output(1).spec().dims == (2, -1)
    assert node.output(1).spec().dim_names == ["", "n"] and node.inputs()[0] == "x"


def test_dims_that_nobody_named_have_no_name():
    graph = sx.trace(lambda x: x[x.shape[0] // 2 :], (sx.TensorSpec("x", sx.float32, [-1, 2]),)).graph
    assert graph.inputs()[0][2] == (-1, 2) and graph.node("x").output(0).spec().dim_names == ["", ""]
    assert graph.output_specs()[0].dim_names == ["", ""]


def test_text(capsys: pytest.CaptureFixture[str]):
    graph = elementwise()
    graph.print()
    assert capsys.readouterr().out == str(graph) == graph.text()
    assert "sx.relu" in str(graph) and "loc(" not in str(graph) and "test_graph.py" in graph.text(locations=True)
    assert repr(graph) == (
        f"<ModelGraph 'graph' (x: float32[batch, {WIDTH}]) -> (y: float32[batch, {WIDTH}]), not finalized>"
    )
    with pytest.raises(InvalidArgumentError, match="is made of a module, not str"):
        sx.ModelGraph("module")  # pyright: ignore[reportArgumentType]


# ---- running


def test_run_needs_finalize():
    graph = elementwise()
    for inputs in ([rows(2)], {"x": rows(2)}):
        with pytest.raises(
            FailedPreconditionError, match=r"run: the graph is not finalized; call finalize\(\) first"
        ) as caught:
            graph.run(inputs)
        assert caught.value.code_name == "FAILED_PRECONDITION"
    assert not graph.is_finalized and graph.compiled is None
    assert sx.sum(graph.evaluate([rows(2)])[0], [1]).tolist() == [31.625, 52.5]
    graph.finalize()
    assert graph.is_finalized
    compiled = graph.compiled
    graph.finalize()
    assert graph.compiled is compiled, "finalize() does nothing the second time"
    for inputs in ([rows(3)], (rows(3),), {"x": rows(3)}, [rows(3).numpy()], [Exported(rows(3).numpy())]):
        (y,) = graph.run(inputs)
        assert isinstance(y, sx.Tensor) and sx.sum(y, [1]).tolist() == [31.625, 52.5, 73.75]
    assert graph(rows(0))[0].shape == (0, WIDTH)


class Exported:
    """An object that has nothing but DLPack, as other libraries' tensors."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def test_results_are_the_users():
    graph = sx.trace(lambda x: (x, sx.asarray(np.ones(2, np.float32)), x + 1), "x: f32[n]").graph
    x = np.zeros(3, np.float32)
    graph.finalize()
    for results in (graph.evaluate([x]), graph.run([x])):
        for result in results:
            result.numpy()[:] = 7
    assert x.tolist() == [0, 0, 0]
    assert (
        [r.tolist() for r in graph.run([x])] == [r.tolist() for r in graph.evaluate([x])] == [[0] * 3, [1] * 2, [1] * 3]
    )


def test_out():
    graph = elementwise()
    graph.finalize()
    buffer = np.zeros((2, WIDTH), np.float32)
    (y,) = graph.run([rows(2)], out=[buffer])
    assert y.numpy() is buffer and sx.sum(sx.asarray(buffer), [1]).tolist() == [31.625, 52.5]
    with pytest.raises(InvalidArgumentError, match="1 outputs, got 0"):
        graph.run([rows(2)], out=[])


def test_threads_run_at_once():
    graph = elementwise()
    graph.finalize()
    failures: list[object] = []

    def work(batch: int) -> None:
        wanted = graph.evaluate([rows(batch)])[0].numpy()
        for _ in range(50):
            if not np.array_equal(graph.run([rows(batch)])[0], wanted):
                failures.append(batch)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


# ---- inputs that don't fit

TWO = "x: f32[batch,4], y: f32[2*seq,batch]"
MISFITS = [
    ([np.ones((2, 4))] * 2, "the input 'x' has dtype float64, expected float32"),
    ([np.ones(4, np.float32)] * 2, r"the input 'x' has rank 1 \(shape \[4\]\), expected 2 \(\[batch, 4\]\)"),
    ([np.ones((2, 5), np.float32)] * 2, r"the input 'x' has 5 elements along axis 1, expected 4 \(\[batch, 4\]\)"),
    ([np.ones((2, 4), np.float32), np.ones((2, 3), np.float32)],
     "the input 'y' has 3 elements along axis 1, expected 2: that dim is 'batch', which axis 0 of 'x' states as 2"),
    ([np.ones((2, 4), np.float32), np.ones((3, 2), np.float32)],
     r"the input 'y' has 3 elements along axis 0: dim '2\*seq' cannot be 3"),
    ([np.ones((2, 4), np.float32)], r"the graph takes 2 inputs \('x', 'y'\), got 1"),
    ([], ".*takes 2 inputs"),
    ({"x": np.ones((2, 4), np.float32)}, "the input 'y' is missing"),
    ({"x": 0, "y": 0, "z": 0}, "there is no input 'z'; the inputs are 'x', 'y'"),
    ([np.ones((2, 4), np.float32), "text"], "the input 'y' is no tensor, but str"),
    ([np.ones((2, 4), np.float32), None], "the input 'y' is missing"),
    (np.ones((2, 4), np.float32), "inputs is a list, or a dict by name, not ndarray; put it into a list"),
    (sx.ones(2, 4), ".*not Tensor; put it into a list"),
    ("xy", ".*not str"),
]  # fmt: skip


@pytest.mark.parametrize(("inputs", "message"), MISFITS)
def test_inputs_that_do_not_fit(inputs: Any, message: str):
    graph = sx.trace(lambda x, y: y @ x, TWO).graph
    with pytest.raises(InvalidArgumentError, match=r"evaluate\(\): " + message) as reference:
        graph.evaluate(inputs)
    graph.finalize()
    with pytest.raises(InvalidArgumentError, match=r"run\(\): " + message) as native:
        graph.run(inputs)
    assert str(native.value) == str(reference.value).replace("evaluate():", "run():")
    assert "\n" not in str(native.value)
    good = [np.ones((2, 4), np.float32), np.ones((6, 2), np.float32)]
    np.testing.assert_array_equal(graph.run(good)[0], graph.evaluate(good)[0])


def test_lists_of_numbers_are_inputs():
    graph = sx.trace(lambda x: x * 2, "x: f32[n]").graph
    assert graph.evaluate([[1.0, 2.0]])[0].tolist() == [2, 4]
    graph.finalize()
    assert graph.run([[1.0, 2.0]])[0].tolist() == [2, 4]


def test_chains_of_expressions_are_solved():
    graph = sx.trace(lambda x, y, z: (x, y, z), "x: f32[a + b], y: f32[2*b], z: f32[b*c, a]").graph
    sizes = {"x": (5,), "y": (4,), "z": (6, 3)}
    assert graph.evaluate({n: np.ones(s, np.float32) for n, s in sizes.items()})[0].shape == (5,)
    for name, shape, message in [
        ("z", (5, 3), r"dim 'b\*c' cannot be 5"),
        ("z", (6, 4), r"the input .* has 4 elements along axis"),
    ]:
        with pytest.raises(InvalidArgumentError, match=message):
            graph.evaluate({n: np.ones(shape if n == name else s, np.float32) for n, s in sizes.items()})
    several = sx.trace(lambda x: x, "x: f32[p*q]").graph
    assert several.evaluate([np.ones(7, np.float32)])[0].shape == (7,), "nothing contradicts"


def graph_with_a_default() -> sx.ModelGraph:
    graph = sx.trace(lambda x, w, y: x * w + y, "x: f32[n], w: f32[n], y: f32[n]").graph
    weight = graph.store.add(np.array([2, 3], np.float32), "w")
    with graph.edit() as module:
        function = main_function(module)
        entries = list(function.properties["arg_attrs"].data)  # pyright: ignore[reportAttributeAccessIssue]
        entries[1] = type(entries[1])({**entries[1].data, DEFAULT: WeightAttr(WeightRef(weight.key, weight))})
        function.properties["arg_attrs"] = type(function.properties["arg_attrs"])(entries)  # pyright: ignore[reportCallIssue]
    return graph


def test_inputs_that_may_be_left_out():
    graph = graph_with_a_default()
    ones = np.ones(2, np.float32)
    assert graph.input_names() == ["x", "y"] and [s.optional for s in graph.input_specs()] == [False, True, False]

    def check(call: Any) -> None:
        assert call([ones, ones])[0].tolist() == [3, 4]
        assert call({"y": ones, "x": ones})[0].tolist() == [3, 4]
        assert call([ones, ones * 5, ones])[0].tolist() == [6, 6]
        assert call({"x": ones, "w": ones * 5, "y": ones})[0].tolist() == [6, 6]
        assert call([ones, None, ones])[0].tolist() == [3, 4]
        with pytest.raises(InvalidArgumentError, match=r"takes 2 to 3 inputs \('x', 'w', 'y'\), got 1"):
            call([ones])
        with pytest.raises(InvalidArgumentError, match="the input 'x' is missing"):
            call({"y": ones})

    check(graph.evaluate)
    graph.finalize()
    check(graph.run)
    check(pickle.loads(pickle.dumps(graph)).evaluate)


# ---- optimize, transforms, edits


def test_optimize_runs_the_default_pipeline_and_unfinalizes_where_it_changed_something():
    graph = with_dead_nodes()
    graph.finalize()
    report = graph.optimize()
    assert report.changed and "sx.exp" not in str(graph) and not graph.is_finalized
    with pytest.raises(FailedPreconditionError, match=r"was edited after finalize\(\)"):
        graph.run([np.ones(2, np.float32)])
    graph.finalize()
    assert not graph.optimize().changed and graph.is_finalized
    assert graph.run([np.ones(2, np.float32)])[0].tolist() == [2, 2]


@dataclass(frozen=True)
class RenamePass(SxPass):
    """Renames the graph."""

    name = "rename-graph"
    to: str = "renamed"

    def run(self, module: ModuleOp, run: PassRun) -> None:
        module.attributes["sx.graph"] = StringAttr(self.to)
        run.changed = True


@pytest.mark.parametrize(
    "passes",
    [
        "remove-dead-nodes", ["remove-dead-nodes"], ["infer-types,remove-dead-nodes"], [RemoveDeadNodesPass()],
        RemoveDeadNodesPass(), ("remove-dead-nodes", RenamePass("other")),
    ],
)  # fmt: skip
def test_what_optimize_takes(passes: Any):
    graph = with_dead_nodes()
    assert graph.optimize(passes).changed and "sx.exp" not in str(graph)
    if isinstance(passes, tuple):
        assert graph.name == "other"


def test_what_optimize_does_not_take():
    graph = with_dead_nodes()
    with pytest.raises(TypeError, match=r"optimize\(\): passes holds Transform, passes and pipelines as text, not int"):
        graph.optimize([3])  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidArgumentError, match="there is no pass 'remove-dead-node'"):
        graph.optimize("remove-dead-node")
    assert graph.optimize([]).passes == () and "sx.exp" in str(graph)


def test_a_transform_is_a_pass():
    graph = with_dead_nodes()
    seen: list[sx.ModelGraph] = []

    def rename(held: sx.ModelGraph) -> None:
        """Renames the graph."""
        seen.append(held)
        with held.edit() as module:
            module.attributes["sx.graph"] = StringAttr("by_hand")

    transform = sx.Transform("rename", rename)
    report = graph.optimize([transform, "remove-dead-nodes", sx.Transform("look", lambda held: held.nodes())])
    assert seen == [graph] and graph.name == "by_hand" and not graph.is_finalized
    assert [p.name for p in report.passes] == ["rename", "remove-dead-nodes", "look"] and not report.passes[2].changed
    other = with_dead_nodes()
    transform.to_pass().execute(other.module)
    assert other.name == "by_hand" and seen[1] is not other, "a pass works on a module, too"
    for arguments in [("", rename), (3, rename), ("name", 3)]:
        with pytest.raises(InvalidArgumentError):
            sx.Transform(*arguments)


def test_a_failing_transform():
    graph = elementwise()
    graph.finalize()

    def fails(held: sx.ModelGraph) -> None:
        raise ZeroDivisionError("mine")

    with pytest.raises(sx.SardonyxError, match="pass 'fails' failed: ZeroDivisionError: mine"):
        graph.optimize([sx.Transform("fails", fails)])
    assert not graph.is_finalized
    graph.finalize()
    assert graph.run([rows(1)])[0].shape == (1, WIDTH), "the graph is free again"


CALLS = {
    "optimize": lambda g: g.optimize(), "finalize": lambda g: g.finalize(), "run": lambda g: g.run([rows(1)]),
    "evaluate": lambda g: g.evaluate([rows(1)]), "export_onnx": lambda g: g.export_onnx("never.onnx"),
    "clone": lambda g: g.clone(), "pickle": lambda g: pickle.dumps(g), "run by name": lambda g: g.run({"x": rows(1)}),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("finalized", [False, True])
def test_a_busy_graph_refuses_other_calls(name: str, finalized: bool):
    graph, call = elementwise(), name.split()[0]
    if finalized:
        graph.finalize()
    caught: list[FailedPreconditionError] = []

    def calls(held: sx.ModelGraph) -> None:
        try:
            CALLS[name](held)
        except FailedPreconditionError as error:
            caught.append(error)

    graph.optimize([sx.Transform("calls", calls)])
    wanted = f"{call}: optimize() is running on this graph; call {call}() after it returns"
    assert str(caught[0]) == wanted and caught[0].code_name == "FAILED_PRECONDITION"
    assert not Path("never.onnx").exists()
    assert graph.is_finalized == finalized
    if finalized:
        assert graph.run([rows(1)])[0].shape == (1, WIDTH)


def test_an_edit_holds_the_graph_against_other_threads():
    graph = elementwise()
    caught: list[str] = []

    def work() -> None:
        for call in (graph.finalize, lambda: graph.evaluate([rows(1)]), lambda: graph.edit().__enter__()):
            try:
                call()
            except FailedPreconditionError as error:
                caught.append(str(error).partition(";")[0])

    with graph.edit("rename"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert caught == [f"{call}: rename() is running on this graph" for call in ("finalize", "evaluate", "edit")]


def test_an_edit_unfinalizes():
    graph = elementwise()
    graph.finalize()
    with graph.edit() as module:
        module.attributes["sx.graph"] = StringAttr("other")
    assert not graph.is_finalized and graph.name == "other"
    with pytest.raises(RuntimeError, match="mine"), graph.edit():
        raise RuntimeError("mine")
    graph.finalize()


# ---- copies and pickles


def deep_graph(length: int) -> sx.ModelGraph:
    def fn(x: sx.Tensor) -> sx.Tensor:
        for _ in range(length):
            x = sx.relu(x)
        return x

    return sx.trace(fn, "x: f32[batch,4]", output_names=["y"]).graph


def test_a_chain_of_5000_ops_pickles():
    graph = deep_graph(5000)
    limit = sys.getrecursionlimit()
    again = pickle.loads(pickle.dumps(graph))
    assert sys.getrecursionlimit() == limit
    assert serialize.flatten(again.module) == serialize.flatten(graph.module), "types and locations included"
    assert again.inputs() == graph.inputs() and len(again.nodes()) == 5001
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(again.evaluate([x])[0], graph.evaluate([x])[0])


def test_pickles_keep_bits_locations_and_sharing():
    special = np.array([np.nan, np.inf, -np.inf, -0.0, 1e-45, 0.1], np.float32)
    large = np.arange(1000, dtype=np.float32)

    def fn(x: sx.Tensor) -> list[sx.Tensor]:
        return [x, sx.asarray(special), x * large.sum(), sx.asarray(large), sx.clip(x, min=np.float32("-inf"))]

    graph = sx.trace(fn, "x: f32[n]").graph
    graph.finalize()
    again = pickle.loads(pickle.dumps(graph))
    assert again.is_finalized
    x = np.ones(2, np.float32)
    for a, b in zip(graph.evaluate([x]), again.evaluate([x]), strict=True):
        assert a.numpy().tobytes() == b.numpy().tobytes()
    (weight,) = again.store
    (value,) = [v for op in again.module.walk() if isinstance(v := op.properties.get("value"), WeightAttr)]
    assert value.data.source is weight and not weight.array().flags.writeable
    again.finalize()
    assert again.run([x])[2].tolist() == graph.run([x])[2].tolist()


def test_unnamed_dims_are_new_ones_after_unpickling():
    graph = sx.trace(lambda x, y: x, (sx.TensorSpec("x", sx.float32, [-1]), sx.TensorSpec("y", sx.float32, [-1]))).graph
    again = pickle.loads(pickle.dumps(graph))
    old = {d for s in graph.input_specs() for d in s.extents or ()}
    new = {d for s in again.input_specs() for d in s.extents or ()}
    assert len(old) == len(new) == 2 and not old & new
    assert again.output_specs()[0].extents == again.input_specs()[0].extents


def test_weights_in_files_pickle_as_the_place(tmp_path: Path):
    path = tmp_path / "weights.bin"
    content = np.arange(1000, dtype=np.float32)
    path.write_bytes(b"head" + content.tobytes())
    graph = sx.trace(lambda x: x * sx.asarray(np.ones(1000, np.float32)), "x: f32[1000]").graph
    (weight,) = graph.store
    placed = graph.store.add_file(FileSlice(path, 4, 4000), sx.float32, (1000,), "placed")
    with graph.edit() as module:
        for op in module.walk():
            if op.name == "sx.constant":
                op.properties["value"] = WeightAttr(WeightRef(placed.key, placed))
    data = pickle.dumps(graph)
    graph.store._weights.pop(weight.key)
    small = pickle.dumps(graph)
    assert len(small) < len(data) - 4000 and b"weights.bin" in small
    ones = np.ones(1000, np.float32)
    np.testing.assert_array_equal(pickle.loads(small).evaluate([ones])[0], content)
    path.unlink()
    with pytest.raises(sx.MissingWeightError, match="weight 'placed' cannot be read"):
        pickle.loads(small).evaluate([ones])


def test_clones_are_apart():
    graph = with_dead_nodes()
    for other in (graph.clone(), copy.copy(graph), copy.deepcopy(graph)):
        assert str(other) == str(graph) and other.text(locations=True) == graph.text(locations=True)
        other.optimize("remove-dead-nodes")
        assert "sx.exp" in str(graph) and "sx.exp" not in str(other)
    weights = sx.trace(lambda x: x * np.arange(1000.0, dtype=np.float32), "x: f32[1000]").graph
    other = weights.clone()
    assert next(iter(other.store)) is next(iter(weights.store)), "bytes are shared"
    other.store.add(np.ones(500), "new")
    assert len(weights.store) == 1


def test_weights_are_bound_by_key():
    graph = sx.trace(lambda x: x * np.arange(1000.0, dtype=np.float32), "x: f32[1000]").graph
    flat = serialize.flatten(graph.module)
    module = serialize.rebuild(flat)
    assert serialize.weight_keys(module) == ["w"]
    for op in module.walk():
        if op.name == "sx.constant":
            op.properties["value"] = WeightAttr(WeightRef("w"))
    with pytest.raises(sx.MissingWeightError, match="weight 'w' are not here"):
        sx.ModelGraph(module).evaluate([np.ones(1000, np.float32)])
    serialize.bind_weights(module, graph.store)
    assert sx.ModelGraph(module, graph.store).evaluate([np.ones(1000, np.float32)])[0].tolist()[3] == 3


def test_unknown_ops_are_named():
    flat = serialize.FlatOp("nonsense.op", (), (), {}, {}, main_function(elementwise().module).location)
    with pytest.raises(InvalidArgumentError, match="the op 'nonsense.op' is not known here"):
        serialize.rebuild(flat)


# ---- ONNX


@pytest.mark.parametrize("path", [3, None, b"model.onnx", ["model.onnx"]])
def test_a_path_of_another_type(path: Any):
    with pytest.raises(TypeError) as caught:
        elementwise().export_onnx(path)
    assert str(caught.value) == f"export_onnx(): path is a str or an os.PathLike, not {type(path).__name__}"


def test_export_and_read_back(tmp_path: Path):
    graph = elementwise()
    for path in (tmp_path / "a.onnx", str(tmp_path / "b.onnx")):
        graph.export_onnx(path)
        back = sx.OnnxModel.open(str(path)).compile()
        assert back.inputs() == graph.inputs() and back.outputs() == graph.outputs()
        assert back.node("x").output(0).spec().dim_names == ["batch", ""]
        np.testing.assert_array_equal(back.evaluate([rows(3)])[0], graph.evaluate([rows(3)])[0])
    with pytest.raises(InvalidArgumentError, match="99"):
        graph.export_onnx(tmp_path / "c.onnx", opset_version=99)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.onnx", "b.onnx"]


def test_node_names_are_those_of_the_exported_model():
    def fn(x: sx.Tensor) -> sx.Tensor:
        return sx.relu(x + 1) + sx.relu(x * 2)

    graph = sx.trace(fn, "x: f32[n]", output_names=["y"]).graph
    model = sx.OnnxModel.from_graph(graph, optimize=False).to_proto()
    ours = [n for n in graph.nodes() if not n.is_input and not n.is_constant]
    assert [n.name for n in ours] == [n.name for n in model.graph.node]
    assert [n.inputs() for n in ours] == [list(n.input) for n in model.graph.node]


def test_dims_stay_symbols():
    graph = sx.trace(lambda x, p: sx.concat([p, x], 1), "x: f32[batch,seq,4], p: f32[batch,past,4]").graph
    assert graph.output_specs()[0].extents == (Dim.of("batch"), Dim.of("past") + Dim.of("seq"), Dim.of(4))
