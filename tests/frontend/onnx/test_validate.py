"""Malformed models: each is refused by an error that says what is wrong, and where."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import BOOL, info, model, node

import sardonyx as sx
from sardonyx.frontend.onnx.validate import captures, validate

X, Y = [info("x", [2])], [info("y", [2])]


def relu(**changes: object) -> onnx.ModelProto:
    return model([node("Relu", "x", "y")], X, Y, **changes)  # pyright: ignore[reportArgumentType]


def refused(proto: onnx.ModelProto, text: str) -> None:
    with pytest.raises(sx.InvalidArgumentError, match=text):
        sx.OnnxModel.from_proto(proto)


def test_a_sound_model_passes():
    validate(relu())


@pytest.mark.parametrize("ir", [0, 15, 999])
def test_ir_versions(ir):
    refused(relu(ir_version=ir), f"IR version {ir}")


@pytest.mark.parametrize("opset", [0, 29, 999])
def test_opsets(opset):
    refused(relu(opset=opset), f"opset {opset} of ai.onnx is unknown")


def test_opset_imports():
    proto = relu()
    del proto.opset_import[:]
    refused(proto, "imports no opset")
    proto.ir_version = 2  # opsets came with IR version 3
    assert sx.OnnxModel.from_proto(proto).opset == 1
    proto = relu()
    proto.opset_import.append(helper.make_opsetid("ai.onnx", 17))
    refused(proto, "imports 'ai.onnx' in two versions")
    proto = relu()
    proto.opset_import[0].domain = "ai.onnx"
    assert sx.OnnxModel.from_proto(proto).compile().opset == 21


@pytest.mark.parametrize(
    "nodes, text",
    [
        ([node("Frobnicate", "x", "y")], "ai.onnx 21 has no operator 'Frobnicate'"),
        ([node("Neg", "x", "y", domain="no.such")], "does not import the domain 'no.such'"),
        ([node("Neg", "x", "y", colour=3)], "Neg has no attribute 'colour'"),
        ([node("Elu", "x", "y", alpha="red")], "attribute 'alpha' is a string, not a float"),
        ([node("Elu", "x", "y", alpha=[1.0])], "attribute 'alpha' is floats, not a float"),
        ([node("Cast", "x", "y")], "attribute 'to' is missing"),
        ([node("Neg", "x x x", "y")], "it has 3 inputs, but takes 1"),
        ([node("Add", "x", "y")], "it has 1 inputs, but takes 2"),
        ([node("Neg", "x", "y z")], "it has 2 outputs, but takes 1"),
        ([node("Upsample", "x x", "y")], "Upsample is deprecated"),
        ([node("Add", "x ghost", "y")], "input 'ghost' is not defined"),
        ([node("Neg", "x", "t")], "nothing computes the output 'y'"),
        ([node("Neg", "x", "y"), node("Relu", "x", "y")], "output 'y' is defined twice"),
        ([node("Split", "x", "y y", num_outputs=2)], "output 'y' is defined twice"),
        ([node("Neg", "x", "x"), node("Relu", "x", "y")], "output 'x' is already defined"),
        ([node("Add", "x b", "y"), node("Relu", "y", "b")], "part of a cycle"),
        ([node("Add", "x y", "y")], "part of a cycle"),
    ],
)
def test_nodes(nodes, text):
    nodes[0].name = "mine"
    proto = model(nodes, X, Y)
    refused(proto, text)


def test_the_error_names_the_node():
    proto = model([node("Neg", "x", "y", name="mine", colour=3)], X, Y)
    with pytest.raises(sx.InvalidArgumentError) as caught:
        sx.OnnxModel.from_proto(proto)
    assert str(caught.value) == "node 'mine' (Neg): Neg has no attribute 'colour'"
    proto = model([node("Neg", "x ", "y", colour=3)], X, Y)
    with pytest.raises(sx.InvalidArgumentError, match="^node 'y'"):
        sx.OnnxModel.from_proto(proto)


def test_an_attribute_twice():
    proto = model([node("Elu", "x", "y", alpha=1.0)], X, Y)
    proto.graph.node[0].attribute.append(helper.make_attribute("alpha", 2.0))
    refused(proto, "given twice")


def test_names_of_inputs_and_initializers():
    refused(model([node("Relu", "x", "y")], [*X, *X], Y), "two inputs are called 'x'")
    refused(model([node("Relu", "x", "y")], [*X, info("", [2])], Y), "has no name")
    proto = model([node("Add", "x w", "y")], X, Y, {"w": np.ones(2, "f4")})
    proto.graph.initializer.append(proto.graph.initializer[0])
    refused(proto, "two initializers are called 'w'")


def test_unsorted_nodes_are_sorted_and_the_others_keep_their_order():
    nodes = [node("Relu", "t", "y"), node("Exp", "x", "a"), node("Neg", "x", "t"), node("Abs", "x", "b")]
    proto = model(nodes, X, [*Y, info("a", [2]), info("b", [2])])
    before = proto.SerializeToString()
    graph = sx.OnnxModel.from_proto(proto).compile()
    assert proto.SerializeToString() == before  # the caller's is left alone
    names = [n.name for n in graph.nodes()]
    assert names == ["x", "a", "t", "y", "b"]
    got = np.asarray(graph.evaluate([np.array([1, -2], "f4")])[0])
    np.testing.assert_array_equal(got, [0, 2])


def test_a_long_unsorted_chain_is_sorted_in_no_time():
    count = 5000
    nodes = [node("Neg", f"v{i}", f"v{i + 1}") for i in reversed(range(count))]
    proto = model(nodes, [info("v0", [2])], [info(f"v{count}", [2])])
    validate(proto)
    assert proto.graph.node[0].input[0] == "v0"


def test_captures_count_as_uses():
    then = helper.make_graph([node("Neg", "t", "r")], "then", [], [info("r", [2])])
    other = helper.make_graph([node("Abs", "x", "s")], "else", [], [info("s", [2])])
    assert captures(then) == ["t"]
    nodes = [node("If", "c", "y", then_branch=then, else_branch=other), node("Exp", "x", "t")]
    proto = model(nodes, [*X, info("c", [], BOOL)], Y)
    validate(proto)
    assert [n.op_type for n in proto.graph.node] == ["Exp", "If"]
    then.node[0].input[0] = "ghost"
    nodes = [node("If", "c", "y", then_branch=then, else_branch=other)]
    refused(model(nodes, [*X, info("c", [], BOOL)], Y), "'ghost' is not defined")


# ---- functions

OPS = [helper.make_opsetid("", 21), helper.make_opsetid("loc", 1)]


def function(name: str, nodes: list[onnx.NodeProto], **changes: object) -> onnx.FunctionProto:
    return helper.make_function("loc", name, ["a"], ["b"], nodes, OPS, **changes)  # pyright: ignore[reportArgumentType]


def call(*functions: onnx.FunctionProto) -> onnx.ModelProto:
    return model([node("f", "x", "y", domain="loc")], X, Y, domains={"loc": 1}, functions=functions)


def test_functions_that_call_themselves():
    refused(call(function("f", [node("f", "a", "b", domain="loc")])), "function 'f' calls itself")
    f, g = (function(n, [node(m, "a", "b", domain="loc")]) for n, m in (("f", "g"), ("g", "f")))
    refused(call(f, g), "calls itself")
    sound = function("g", [node("Neg", "a", "b")])
    validate(call(f, sound))


def test_functions_are_validated():
    refused(call(function("f", [node("Neg", "ghost", "b")])), "'ghost' is not defined")
    refused(call(function("f", [node("Neg", "a", "c")])), "function 'f': nothing computes the output 'b'")
    refused(call(function("f", [node("Neg", "a", "b", colour=3)])), "no attribute 'colour'")
    neg = function("f", [node("Neg", "a", "b")])
    refused(call(neg, neg), "function 'f' is defined twice")


def test_initializers_whose_dims_and_data_disagree():
    proto = model([node("Add", "x w", "y")], X, Y, {"w": np.ones(2, "f4")})
    proto.graph.initializer[0].dims[0] = 1000000
    with pytest.raises(sx.InvalidArgumentError, match="initializer 'w': dims .* take 4000000 bytes, but it holds 8"):
        sx.OnnxModel.from_proto(proto).compile()
