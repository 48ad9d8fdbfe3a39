"""The name authority: unique, stable, and the user's names kept."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import info, model, node, op_types, roundtrip
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr, UnknownLoc

import sardonyx as sx
from sardonyx.backends.onnx.names import NameSpace, node_location, node_name, value_names
from sardonyx.dialects import locations


def test_a_name_space_hands_out_each_name_once():
    space = NameSpace(["x"])
    assert [space.claim(n) for n in ("y", "x", "x", "y", "x_1")] == ["y", "x_1", "x_2", "y_1", "x_1_1"]
    assert [space.claim_numbered("Relu") for _ in range(2)] == ["Relu_0", "Relu_1"]
    space.claim("Add_0")
    assert space.claim_numbered("Add") == "Add_1"


def test_a_name_space_stays_linear_for_many_equal_names():
    space = NameSpace()
    names = [space.claim("v") for _ in range(20_000)]
    assert len(set(names)) == 20_000 and names[-1] == "v_19999"


@pytest.mark.parametrize(
    "node_, outputs, names",
    [
        ("conv/1", ["conv/1:0"], ["conv/1:0"]),
        ("n", ["n"], ["n"]),
        ("", ["y"], ["y"]),
        ("split", ["a", "b", "c"], ["a", "b", "c"]),
        ("pool", ["y", ""], ["y", None]),
        ("ln", ["y", "", "inv"], ["y", None, "inv"]),
        ("n", [], ["n"]),
    ],
)
def test_a_location_holds_the_names_of_node_and_outputs(node_, outputs, names):
    location = node_location(node_, outputs)
    assert node_name(location) == (node_ or outputs[0])
    assert value_names(location, len(names)) == names
    wrapped = locations.wrap(location, "some-pass:pattern")
    assert value_names(wrapped, len(names)) == names and node_name(wrapped) == node_name(location)


def test_a_fused_location_names_the_value_that_its_first_part_computes():
    """So passes merge them: what the new op computes, then what it takes up."""
    fused = locations.fuse([node_location("bn", ["b"]), node_location("conv", ["c"])])
    assert (node_name(fused), value_names(fused, 1)) == ("bn", ["b"])


@pytest.mark.parametrize("location", [UnknownLoc(), FileLineColLoc(StringAttr("m.py"), IntAttr(3), IntAttr(0)), None])
def test_a_location_without_names_gives_none(location):
    assert node_name(location) is None and value_names(location, 2) == [None, None]


def test_names_of_nodes_and_values_survive_the_round_trip():
    proto = model(
        [
            node("Mul", "x w", "/mul/out:0", name="/mul"),
            node("Split", "/mul/out:0 sizes", "a b_7", name="cut"),
            node("MaxPool", "p", "pool idx", name="pool", kernel_shape=[2]),
            node("Add", "a b_7", "y"),
        ],
        [info("x", ["n", 4]), info("p", [1, 1, 4])],
        [info("y", ["n", 2]), info("pool", [1, 1, 3])],
        {"w": np.ones(4, "f4"), "sizes": np.array([2, 2])},
    )
    back = roundtrip(proto)
    assert [n.name for n in back.graph.node] == ["/mul", "cut", "pool", "y"]
    assert [list(n.output) for n in back.graph.node] == [["/mul/out:0"], ["a", "b_7"], ["pool"], ["y"]]
    assert [t.name for t in back.graph.initializer] == ["w", "sizes"]


def test_traced_ops_are_called_after_their_operator_and_a_counter():
    spec = sx.TensorSpec("x", sx.float32, [2])
    graph = sx.trace(lambda xs: [sx.relu(sx.relu(xs[0]) + sx.exp(xs[0]))], [spec], output_names=["y"]).graph
    proto = sx.OnnxModel.from_graph(graph).to_proto()
    assert [n.name for n in proto.graph.node] == ["Relu_0", "Exp_0", "Add_0", "Relu_1"]
    assert proto.graph.node[-1].output[0] == "y"


def test_an_output_that_is_an_input_or_another_output_is_a_copy():
    proto = model(
        [node("Neg", "x", "y")],
        [info("x", [2])],
        [info("y", [2]), info("x", [2]), info("k", [1])],
        {"k": np.ones(1, "f4")},
    )
    back = roundtrip(proto)
    assert op_types(back) == ["Neg"] and [v.name for v in back.graph.output] == ["y", "x", "k"]

    def twice(xs):
        y = sx.relu(xs[0])
        return [y, y, xs[0]]

    graph = sx.trace(twice, [sx.TensorSpec("x", sx.float32, [2])], output_names=["a", "b", "c"]).graph
    proto = sx.OnnxModel.from_graph(graph).to_proto()
    assert op_types(proto) == ["Relu", "Identity", "Identity"]
    assert [list(n.input) + list(n.output) for n in proto.graph.node] == [["x", "a"], ["a", "b"], ["x", "c"]]


def test_equal_unnamed_constants_are_one_initializer():
    spec = sx.TensorSpec("x", sx.float32, [2])
    graph = sx.trace(lambda xs: [(xs[0] + 1.0) * (xs[0] - 1.0)], [spec], output_names=["y"]).graph
    proto = sx.OnnxModel.from_graph(graph, optimize=False).to_proto()
    assert len(proto.graph.initializer) == 1
