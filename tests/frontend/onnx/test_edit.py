"""Edits of models in memory, parts of models, summaries, and models written as text."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import info, model, node, op_types, run_ort

import sardonyx as sx
from sardonyx import OnnxModel

X = np.arange(6, dtype="f4").reshape(2, 3)
W = np.array([2, 3, 4], "f4")


def chain() -> OnnxModel:
    """y = -relu(x * w), z = exp(x * w); a branch reads the product from outside."""
    body = helper.make_graph([node("Abs", "m", "inside")], "body", [], [info("inside", ["n", 3])])
    nodes = [
        node("Mul", "x w", "m", name="scale"), node("Relu", "m", "r", name="clip"), node("Neg", "r", "y", name="turn"),
        node("Exp", "m", "e"), node("If", "c", "i", name="if", then_branch=body, else_branch=body),
        node("Add", "e i", "z", name="sum"),
    ]  # fmt: skip
    weights = {"w": W, "c": np.array(True)}
    return OnnxModel.from_proto(
        model(nodes, [info("x", ["n", 3])], [info("y", ["n", 3]), info("z", ["n", 3])], weights, 17, 8)
    )


def values(found: OnnxModel, **feeds: Any) -> list[Any]:
    onnx.checker.check_model(found.to_proto(), full_check=True)
    return run_ort(found.to_proto(), feeds or {"x": X})


def expected() -> list[Any]:
    return [-np.maximum(X * W, 0), np.exp(X * W) + np.abs(X * W)]


def same(found: list[Any], wanted: list[Any]) -> None:
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_values_are_renamed_everywhere() -> None:
    found = chain()
    for old, new in (("x", "the input"), ("w", "weights"), ("m", "product"), ("y", "ÿ")):
        found.rename(old, new)
    same(values(found, **{"the input": X}), expected())
    graph = found.to_proto().graph
    assert [v.name for v in graph.output] == ["ÿ", "z"] and graph.initializer[0].name == "weights"
    branch = next(n for n in graph.node if n.op_type == "If").attribute[0].g
    assert branch.node[0].input == ["product"]
    found.rename_node("clip", "relu")
    assert "relu" in [n.name for n in found.to_proto().graph.node]


def test_names_that_cannot_be() -> None:
    found = chain()
    before = found.to_proto()
    for call, message in (
        (lambda: found.rename("nothing", "a"), "no value 'nothing'"),
        (lambda: found.rename("x", "m"), "already has a value 'm'"),
        (lambda: found.rename("x", "inside"), "already has a value 'inside'"),
        (lambda: found.rename("x", ""), "not empty"),
        (lambda: found.rename_node("clip", "turn"), "taken"),
        (lambda: found.rename_node("nobody", "a"), "no node 'nobody'"),
    ):
        with pytest.raises(sx.InvalidArgumentError, match=message):
            call()
    assert found.to_proto() == before


def test_a_body_keeps_its_own_value_of_that_name() -> None:
    body = helper.make_graph([node("Abs", "x", "m")], "body", [], [info("m", [2])])
    proto = model([node("If", "c", "y", then_branch=body, else_branch=body)], [info("x", [2])], [info("y", [2])],
                  {"c": np.array(True)}, 17, 8)  # fmt: skip
    found = OnnxModel.from_proto(proto)
    found.rename("y", "t")
    assert found.to_proto().graph.node[0].attribute[0].g.output[0].name == "m"


def test_nodes_are_added_between_others() -> None:
    found = chain()
    found.set_initializer("half", np.float32(0.5))
    assert found.add_node("Mul", ["m", "half"], ["h"]) == "h"
    found.reconnect("m", "h")
    product = X * W / 2
    same(values(found), [-np.maximum(product, 0), np.exp(product) + np.abs(product)])
    assert op_types(found.to_proto())[:2] == ["Mul", "Mul"]  # the nodes are in order
    assert found.add_node("Clip", ["h", "", "half"], ["clipped"], name="clip") == "clip_1"
    found.add_output("clipped")
    assert found.outputs()[-1] == ("clipped", sx.float32, (-1, 3))
    np.testing.assert_allclose(values(found)[-1], np.minimum(product, 0.5))
    found.remove_output("clipped")
    found.remove_node("clip_1")
    assert len(found.outputs()) == 2


def test_nodes_that_cannot_be_added() -> None:
    found = chain()
    before = found.to_proto()
    for call, message in (
        (lambda: found.add_node("Relu", ["nothing"], ["a"]), "'nothing' is not defined"),
        (lambda: found.add_node("Relu", ["x"], ["m"]), "already has a value 'm'"),
        (lambda: found.add_node("Split", ["x"], ["a", "a"]), "defined twice"),
        (lambda: found.add_node("Relu", ["x"], ["a"], alpha=2.0), "no attribute 'alpha'"),
        (lambda: found.add_node("Relu", ["x", "x"], ["a"]), "2 inputs"),
        (lambda: found.add_node("Nothing", ["x"], ["a"]), "no operator 'Nothing'"),
        (lambda: found.add_node("Gelu", ["x"], ["a"], domain="com.microsoft"), "does not import"),
        (lambda: found.add_node("Cast", ["x"], ["a"], to="float"), "a string, not an int"),
        (lambda: found.add_node("Concat", ["x"], ["a"], axis=object()), "cannot be the attribute"),
    ):
        with pytest.raises(sx.InvalidArgumentError, match=message):
            call()
    assert found.to_proto() == before


def test_nodes_are_removed() -> None:
    found = chain()
    with pytest.raises(sx.InvalidArgumentError, match="its output 'r' is read by node 'turn'"):
        found.remove_node("clip")
    found.remove_node("clip", bypass=True)
    same(values(found)[:1], [-(X * W)])
    found.remove_node("turn", bypass=True)  # its output is the model's, and keeps its name
    same(values(found)[:1], [X * W])
    assert "Identity" in op_types(found.to_proto())
    found = chain()
    found.remove_node("scale", bypass=True)
    same(values(found), [-np.maximum(X, 0), np.exp(X) + np.abs(X)])


def test_circles_are_refused() -> None:
    found = chain()
    before = found.to_proto()
    with pytest.raises(sx.InvalidArgumentError, match="would read itself"):
        found.reconnect("x", "r")
    with pytest.raises(sx.InvalidArgumentError, match="no value"):
        found.reconnect("x", "nothing")
    assert found.to_proto() == before


def test_initializers_get_other_contents() -> None:
    found = chain()
    found.set_initializer("w", W * 10)
    same(values(found)[:1], [-np.maximum(X * W * 10, 0)])
    with pytest.raises(sx.InvalidArgumentError, match="a node makes it"):
        found.set_initializer("m", W)
    with pytest.raises(sx.InvalidArgumentError, match="declared otherwise"):
        found.set_initializer("x", np.zeros((2, 4), "f4"))
    found.set_initializer("x", X)  # an input with a default
    assert found.inputs() == [] and found.num_initializers == 3
    mine = np.ones(3, "f4")
    found.set_initializer("w", mine)
    mine[:] = 7
    same(values(found)[:1], [-np.maximum(X, 0)])


def test_parts_are_models() -> None:
    found = chain()
    part = found.extract(["m"], ["y", "e"])
    assert op_types(part.to_proto()) == ["Relu", "Neg", "Exp"] and part.num_initializers == 0
    assert part.inputs() == [("m", sx.float32, (-1, 3))] and [n for n, _, _ in part.outputs()] == ["y", "e"]
    same(values(part, m=X), [-np.maximum(X, 0), np.exp(X)])
    whole = found.extract(["x"], ["z"])
    assert op_types(whole.to_proto()) == ["Mul", "Exp", "If", "Add"]
    same(values(whole), expected()[1:])
    weights = found.extract(["x", "w"], ["m"])
    assert weights.num_initializers == 0
    same(values(weights, x=X, w=W), [X * W])


def test_parts_that_cannot_be() -> None:
    found = chain()
    for inputs, outputs, message in (
        ([], ["y"], "need the input 'x'"), (["x"], [], "there is an output"),
        (["x"], ["nothing"], "no value 'nothing'"), (["x", "x"], ["y"], "distinct"),
    ):  # fmt: skip
        with pytest.raises(sx.InvalidArgumentError, match=message):
            found.extract(inputs, outputs)


def test_parts_share_weights_in_files(tmp_path: Any) -> None:
    found = chain()
    found.set_initializer("w", np.arange(3, dtype="f4"))
    found.save(tmp_path / "m.onnx", save_as_external_data=True)
    opened = OnnxModel.open(tmp_path / "m.onnx")
    part = opened.extract(["x"], ["r"])
    assert "in m_data" in str(part.inspect())
    same(values(part), [np.maximum(X * np.arange(3), 0)])


def test_weights_in_several_files_with_offsets(tmp_path: Any) -> None:
    a, b = np.arange(300, dtype="f4"), np.arange(40, dtype="f8")
    (tmp_path / "one.bin").write_bytes(b"\0" * 64 + a.tobytes())
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "two.bin").write_bytes(b.tobytes())
    proto = model([node("Add", "x a", "y"), node("Add", "z b", "t")], [info("x", [300]), info("z", [40], 11)],
                  [info("y", [300]), info("t", [40], 11)], {"a": a, "b": b})  # fmt: skip
    for tensor, (file, offset) in zip(proto.graph.initializer, (("one.bin", 64), ("sub/two.bin", 0)), strict=True):
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=file)
        tensor.external_data.add(key="offset", value=str(offset))
        tensor.external_data.add(key="length", value=str(len(tensor.raw_data)))
        tensor.ClearField("raw_data")
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    found = OnnxModel.open(tmp_path / "m.onnx")
    assert found.inspect().files == {"one.bin": 1200, "two.bin": 320}
    y, t = found.compile().evaluate({"x": a, "z": b})
    np.testing.assert_array_equal(np.asarray(y), 2 * a)
    np.testing.assert_array_equal(np.asarray(t), 2 * b)


def test_optimize_in_place() -> None:
    proto = model(
        [node("Transpose", "x", "t", perm=[1, 0]), node("Transpose", "t", "u", perm=[1, 0]), node("Relu", "u", "y")],
        [info("x", ["n", 3])], [info("y", ["n", 3])], opset=15, ir_version=8,
    )  # fmt: skip
    found = OnnxModel.from_proto(proto)
    report = found.optimize()
    assert report.changed and op_types(found.to_proto()) == ["Relu"] and found.opset == 15
    assert found.optimize("remove-dead-nodes", opset_version=20).changed is False and found.opset == 20


def test_optimize_folds_scales_by_default() -> None:
    c = np.array([1.5, 2.0], "f4")
    weights = {"w": np.arange(6, dtype="f4").reshape(2, 3, 1), "s": c, "b": c - 1, "m": c + 1, "v": c}
    nodes = [node("Conv", "x w", "t"), node("BatchNormalization", "t s b m v", "u"), node("Relu", "u", "y")]
    found = OnnxModel.from_proto(model(nodes, [info("x", ["n", 3, 4])], [info("y", ["n", 2, 4])], weights))
    feeds = {"x": np.linspace(-1, 1, 24, dtype="f4").reshape(2, 3, 4)}
    (want,) = run_ort(found.to_proto(), feeds)
    found.optimize()
    assert op_types(found.to_proto()) == ["Conv", "Relu"]
    np.testing.assert_allclose(run_ort(found.to_proto(), feeds)[0], want, rtol=1e-5, atol=1e-5)


def test_summary() -> None:
    found = chain().inspect()
    assert found.operators == {"Abs": 2, "Add": 1, "Exp": 1, "If": 1, "Mul": 1, "Neg": 1, "Relu": 1}
    assert (found.nodes, found.initializers, found.weight_bytes) == (6, 2, 13)
    assert found.opsets == {"": 17} and found.inputs == ("x: float32[n, 3]",)
    text = str(found)
    assert "6 nodes, 2 initializers of 13 B" in text and "output  z: float32[n, 3]" in text


# ---- models written as text

TEXT = """
<ir_version: 8, opset_import: ["" : 17]>
agraph (float[N, 3] x) => (float[N, 3] y)
<float[3] w = {2.0, 3.0, 4.0}>
{ m = Mul(x, w)
  y = Relu(m) }
"""


@pytest.mark.parametrize("suffix", [".onnxtxt", ".json", ".onnxjson", ".textproto", ".pbtxt"])
def test_texts_are_read(suffix: str, tmp_path: Any) -> None:
    from google.protobuf import json_format, text_format

    proto: onnx.ModelProto = onnx.parser.parse_model(TEXT)
    written = {"j": json_format.MessageToJson, "o": json_format.MessageToJson}.get(
        suffix[1], text_format.MessageToString
    )
    path = tmp_path / f"m{suffix}"
    path.write_text(TEXT if suffix == ".onnxtxt" else written(proto))
    graph = OnnxModel.open(path).compile()
    np.testing.assert_array_equal(np.asarray(graph.evaluate({"x": -X})[0]), np.maximum(-X * W, 0))
    assert graph.input_names() == ["x"] and graph.opset == 17


@pytest.mark.parametrize(
    "name, content",
    [
        ("m.onnxtxt", b"agraph (float"), ("m.onnxtxt", b"<" * 100_000), ("m.onnxtxt", b"\xff\xfe"),
        ("m.onnxtxt", b""), ("m.json", b"{"), ("m.json", b"[" * 100_000), ("m.json", b'{"graph": 3}'),
        ("m.textproto", b"graph {"), ("m.textproto", b"graph { node { attribute " * 3000),
    ],
)  # fmt: skip
def test_texts_that_are_no_models(name: str, content: bytes, tmp_path: Any) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(sx.InvalidArgumentError, match=name):
        OnnxModel.open(tmp_path / name)
