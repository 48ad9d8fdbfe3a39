"""`OnnxModel`: open, from_proto, from_graph, compile, save, to_proto, inputs, outputs, opset, num_initializers."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_models import FLOAT, info, model, node, run_ort

import sardonyx as sx

W = np.arange(37, dtype="f4") / 8


def graph(weight: np.ndarray = W) -> sx.ModelGraph:
    held = sx.asarray(weight)
    spec = sx.TensorSpec("x", sx.float32, [-1, len(weight)], dim_names=["batch", ""])
    return sx.trace(lambda xs: [sx.relu(xs[0] * held)], [spec], output_names=["y"]).graph


def test_a_graph_in_memory():
    made = sx.OnnxModel.from_graph(graph())
    assert made.inputs() == [("x", sx.float32, (-1, 37))] and made.outputs() == [("y", sx.float32, (-1, 37))]
    assert (made.opset, made.num_initializers) == (21, 1)
    assert repr(made) == "<OnnxModel 'graph', opset 21, 2 nodes, 1 initializers>".replace("graph", made._graph.name)
    back = made.compile()
    x = np.ones((2, 37), "f4")
    np.testing.assert_array_equal(np.asarray(back.evaluate([x])[0]), np.asarray(graph().evaluate([x])[0]))


def test_a_file_and_back(tmp_path):
    for external in (None, True, False):
        path = tmp_path / f"{external}.onnx"
        sx.OnnxModel.from_graph(graph()).save(path, save_as_external_data=external)
        opened = sx.OnnxModel.open(str(path))
        assert opened.inputs() == [("x", sx.float32, (-1, 37))]
        x = np.ones((3, 37), "f4")
        np.testing.assert_array_equal(np.asarray(opened.compile().evaluate([x])[0]), x * W)
        np.testing.assert_array_equal(run_ort(str(path), {"x": x})[0], x * W)
        np.testing.assert_array_equal(run_ort(opened.to_proto(), {"x": x})[0], x * W)


def test_from_graph_remembers_where_the_weights_go(tmp_path):
    made = sx.OnnxModel.from_graph(graph(), save_as_external_data=True)
    made.save(tmp_path / "a.onnx")
    made.save(tmp_path / "b.onnx", save_as_external_data=False)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.onnx", "a_data", "b.onnx"]
    with pytest.raises(TypeError, match="save_as_external_data is a bool or None, not str"):
        made.save(tmp_path / "c.onnx", save_as_external_data="yes")  # pyright: ignore[reportArgumentType]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.onnx", "a_data", "b.onnx"]


def test_from_graph_copies_no_weights():
    weight = np.zeros(8 << 20, "u1").view("f4")
    weight.flags.writeable = False
    traced = graph(weight)
    (held,) = traced.store
    gc.collect()
    tracemalloc.start()
    try:
        made = sx.OnnxModel.from_graph(traced)
        back = made.compile()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < weight.nbytes / 2
    (again,) = back.store
    assert np.shares_memory(again.array(), held.array())
    del traced, held
    assert np.asarray(back.evaluate([np.ones((1, weight.size), "f4")])[0]).sum() == 0


def test_from_graph_is_a_snapshot():
    traced = graph()
    made = sx.OnnxModel.from_graph(traced, optimize=False)
    before = made.to_proto()
    with traced.edit() as module:
        module.attributes.clear()
    assert made.to_proto() == before


def test_protos_are_copies():
    proto = model([node("Add", "x w", "y")], [info("x", [2])], [info("y", [2])], {"w": np.ones(2, "f4")})
    held = sx.OnnxModel.from_proto(proto)
    proto.graph.node[0].op_type = "Mul"
    held.to_proto().graph.node[0].op_type = "Sub"
    assert held.to_proto().graph.node[0].op_type == "Add"


def test_an_opened_model_saves_what_it_was(tmp_path):
    proto = model([node("Relu", "x", "t"), node("If", "c", "y", then_branch=branch(), else_branch=branch())],
                  [info("x", ["n"]), info("c", [], onnx.TensorProto.BOOL)], [info("y", ["n"])])  # fmt: skip
    held = sx.OnnxModel.from_proto(proto)
    held.save(tmp_path / "m.onnx")
    assert onnx.load(tmp_path / "m.onnx") == proto and held.to_proto() == proto


def branch() -> onnx.GraphProto:
    return onnx.helper.make_graph([node("Neg", "t", "r")], "b", [], [info("r", ["n"])])


def test_inputs_with_a_default_are_not_listed():
    proto = model(
        [node("Add", "x w", "y")], [info("x", [2]), info("w", [2])], [info("y", [2])], {"w": np.ones(2, "f4")}
    )
    held = sx.OnnxModel.from_proto(proto)
    assert [n for n, *_ in held.inputs()] == ["x"] == [n for n, *_ in held.compile().inputs()]


def test_slots_of_all_kinds():
    proto = model([node("Neg", "x", "y"), node("Neg", "s", "z")], [info("x", None), info("s", [])],
                  [info("y", None), info("z", [])])  # fmt: skip
    held = sx.OnnxModel.from_proto(proto)
    assert held.inputs() == [("x", sx.float32, None), ("s", sx.float32, ())] == held.compile().inputs()
    sequence = onnx.helper.make_tensor_sequence_value_info("x", FLOAT, [2])
    held = sx.OnnxModel.from_proto(model([node("SequenceLength", "x", "y")], [sequence], [info("y", [], 7)]))
    assert held.inputs() == [("x", sx.float32, None)] == held.compile().inputs()


def test_an_old_model_without_opset():
    proto = model([node("Relu", "x", "y")], [info("x", [2])], [info("y", [2])], ir_version=2)
    del proto.opset_import[:]
    assert sx.OnnxModel.from_proto(proto).opset == 1
    proto = model([node("Relu", "x", "y")], [info("x", [2])], [info("y", [2])])
    proto.opset_import[0].domain = "ai.onnx"
    assert sx.OnnxModel.from_proto(proto).opset == 21


@pytest.mark.parametrize("path", [3, None, b"m.onnx"])
def test_wrong_types_of_paths(path):
    with pytest.raises(TypeError, match=rf"^open\(\): path is a str or an os.PathLike, not {type(path).__name__}$"):
        sx.OnnxModel.open(path)


def test_wrong_types():
    with pytest.raises(TypeError, match=r"^from_proto\(\): proto is an onnx.ModelProto, not bytes$"):
        sx.OnnxModel.from_proto(b"")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"^from_graph\(\): graph is a ModelGraph, not str$"):
        sx.OnnxModel.from_graph("g")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match=r"from_graph\(\): opset_version is an int, not str"):
        sx.OnnxModel.from_graph(graph(), opset_version="17")
    with pytest.raises(TypeError, match=r"^open\(\): path is a str or an os.PathLike, not BytesPath$"):
        sx.OnnxModel.open(BytesPath())  # pyright: ignore[reportArgumentType]


class BytesPath:
    def __fspath__(self) -> bytes:
        return b"m.onnx"


def test_a_path_like_object(tmp_path):
    class Custom:
        def __fspath__(self) -> str:
            return str(tmp_path / "m.onnx")

    graph().export_onnx(Custom())
    assert sx.OnnxModel.open(Custom()).opset == 21 and Path(tmp_path / "m.onnx").exists()


def test_a_graph_that_is_being_worked_on_refuses():
    held, caught = graph(), []

    def inside(g: sx.ModelGraph) -> None:
        for call in (lambda: sx.OnnxModel.from_graph(g), lambda: g.export_onnx("never.onnx")):
            with pytest.raises(sx.FailedPreconditionError) as error:
                call()
            caught.append(str(error.value))

    held.optimize([sx.Transform("inside", inside)])
    assert "from_graph" in caught[0] and "export_onnx" in caught[1] and all("optimize" in c for c in caught)
