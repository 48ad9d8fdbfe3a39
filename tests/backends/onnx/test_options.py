"""Weights as inputs, versions of domains, and what nodes say of themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_models import info, model, node, op_types, roundtrip, run_ort

import sardonyx as sx
from sardonyx import OnnxModel

X = np.arange(6, dtype="f4").reshape(2, 3)
WEIGHTS = {"w": np.array([2, 3, 4], "f4"), "at": np.array([0]), "c": np.array(2, "f4")}


def graph_of_weights() -> Any:
    nodes = [node("Mul", "x w", "m"), node("Mul", "m c", "s"), node("Unsqueeze", "s at", "y")]
    return model(nodes, [info("x", ["n", 3])], [info("y", [1, "n", 3])], WEIGHTS)


def names(values: Any) -> list[str]:
    return [v.name for v in values]


def test_by_default_weights_are_initializers_only() -> None:
    proto = roundtrip(graph_of_weights())
    assert names(proto.graph.input) == ["x"] and sorted(names(proto.graph.initializer)) == ["at", "c", "w"]


def test_weights_may_be_inputs_with_defaults() -> None:
    """What shape computations and scalars need stays inside."""
    proto = roundtrip(graph_of_weights(), keep_initializers_as_inputs=True)
    assert names(proto.graph.input) == ["x", "w"] and sorted(names(proto.graph.initializer)) == ["at", "c", "w"]
    plain, given = run_ort(proto, {"x": X}), run_ort(proto, {"x": X, "w": np.ones(3, "f4")})
    np.testing.assert_array_equal(plain[0], (X * WEIGHTS["w"] * 2)[None])
    np.testing.assert_array_equal(given[0], (X * 2)[None])
    again = roundtrip(proto)
    assert names(again.graph.input) == ["x", "w"] and "w" in names(again.graph.initializer)


def test_weights_may_be_inputs_alone(tmp_path: Any) -> None:
    graph = OnnxModel.from_proto(graph_of_weights()).compile()
    path = tmp_path / "m.onnx"
    graph.export_onnx(path, export_params=False)
    found = OnnxModel.open(path)
    assert [(n, dims) for n, _, dims in found.inputs()] == [("x", (-1, 3)), ("w", (3,))]
    assert sorted(names(found.to_proto().graph.initializer)) == ["at", "c"]
    feeds = {"x": X, "w": WEIGHTS["w"]}
    np.testing.assert_array_equal(run_ort(str(path), feeds)[0], (X * WEIGHTS["w"] * 2)[None])
    graph.export_onnx(path, export_params=False, save_as_external_data=True)
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]


def test_a_default_of_an_input_is_dropped_with_the_weights() -> None:
    proto = model([node("Mul", "x w", "y")], [info("x", [3]), info("w", [3])], [info("y", [3])], {"w": WEIGHTS["w"]})
    assert not roundtrip(proto, export_params=False).graph.initializer


def test_versions_of_domains() -> None:
    fancy = model([node("Fancy", "x", "y", domain="acme")], [info("x", [2])], [info("y", [2])], domains={"acme": 3})
    versions = {o.domain: o.version for o in roundtrip(fancy).opset_import}
    assert versions == {"": 21, "acme": 3}
    given = roundtrip(fancy, custom_opsets={"acme": 7, "unused": 2})
    assert {o.domain: o.version for o in given.opset_import} == {"": 21, "acme": 7}
    with pytest.raises(sx.InvalidArgumentError, match="opset_version"):
        roundtrip(fancy, custom_opsets={"": 17})
    with pytest.raises(sx.InvalidArgumentError, match="no version"):
        roundtrip(fancy, custom_opsets={"acme": 0})
    with pytest.raises(TypeError, match="custom_opsets"):
        roundtrip(fancy, custom_opsets={"acme": "7"})
    with pytest.raises(TypeError, match="mapping or None, not list"):
        roundtrip(fancy, custom_opsets=[("acme", 7)])


@pytest.mark.parametrize("option", ["keep_initializers_as_inputs", "export_params"])
def test_flags_are_bools(option: str) -> None:
    with pytest.raises(TypeError, match=f"{option} is a bool, not int"):
        roundtrip(graph_of_weights(), **{option: 1})


def noted() -> Any:
    made = [node("Relu", "x", "r", name="a"), node("Relu", "x", "q", name="b"), node("Add", "r q", "y", name="c")]
    made[0].doc_string, made[2].doc_string = "the first", "their sum: ünïcode"
    made[2].metadata_props.add(key="layer", value="7")
    return model(made, [info("x", [2])], [info("y", [2])])


def test_what_nodes_say_of_themselves_survives() -> None:
    proto = roundtrip(noted())
    assert [n.doc_string for n in proto.graph.node] == ["the first", "", "their sum: ünïcode"]
    assert [(p.key, p.value) for p in proto.graph.node[2].metadata_props] == [("layer", "7")]
    again = roundtrip(proto)
    assert again.graph.node[2].metadata_props == proto.graph.node[2].metadata_props
    with pytest.warns(sx.OnnxLossWarning, match="metadata of 1 nodes"):  # IR version 9 has none
        assert not roundtrip(noted(), opset_version=20).graph.node[2].metadata_props


def test_notes_are_in_the_text_and_hinder_no_pass() -> None:
    graph = OnnxModel.from_proto(noted()).compile()
    assert 'sx.doc = "the first"' in graph.text()
    graph.optimize("cse")
    assert op_types(OnnxModel.from_graph(graph).to_proto()).count("Relu") == 1


def test_names_of_nodes_and_values() -> None:
    """Nodes may share a name or have none, and any text is a name; values' names are kept."""
    made = [node("Relu", "x", "ä b", name="same"), node("Neg", "_", "z", name="same")]
    made[1].input[:] = ["ä b"]
    made[0].output[:] = ["ä b"]
    made.append(node("Exp", "z", "y"))
    proto = model(made, [info("x", [2])], [info("y", [2])])
    again = roundtrip(proto)
    assert [list(n.output) for n in again.graph.node] == [["ä b"], ["z"], ["y"]]
    assert len({n.name for n in again.graph.node}) == 3  # onnxruntime refuses two of one name
    np.testing.assert_allclose(run_ort(again, {"x": X[0, :2]})[0], np.exp(-X[0, :2]), rtol=1e-6)


def test_an_initializer_may_be_an_output_and_an_input_too() -> None:
    proto = model([node("Neg", "x", "y")], [info("x", [3])], [info("y", [3]), info("w", [3]), info("x", [3])],
                  {"w": WEIGHTS["w"]})  # fmt: skip
    graph = OnnxModel.from_proto(proto).compile()
    y, w, x = graph.evaluate({"x": X[0]})
    np.testing.assert_array_equal(np.asarray(w), WEIGHTS["w"])
    np.testing.assert_array_equal(np.asarray(x), X[0])
    assert graph.output_names() == ["y", "w", "x"] and np.asarray(y)[1] == -1


def test_declared_dims_stand_where_inference_knows_no_rank() -> None:
    proto = model([node("Reshape", "x s", "y")], [info("x", ["n"]), info("s", ["k"], 7)], [info("y", ["a", 3])])
    again = roundtrip(proto).graph.output[0].type.tensor_type
    assert [d.dim_param or d.dim_value for d in again.shape.dim] == ["a", 3]
