"""The node at fault by what nodes compute: innocent changes beside it, data that is refused, several faults, bodies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from planted_faults import small_net

from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.verify.locate import Culprit
from sardonyx.frontend.verify.verify import Verification, verify

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
node = helper.make_node


def model(nodes: list[onnx.NodeProto], dims: list[int | str], **weights: np.ndarray) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", FLOAT, dims)],
        [helper.make_tensor_value_info("y", FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.fixture
def hold(tmp_path: Path) -> Callable[..., Verification]:
    def run(good: onnx.ModelProto, bad: onnx.ModelProto, dims: list[str] | None = None) -> Verification:
        onnx.save(good, tmp_path / "good.onnx")
        onnx.save(bad, tmp_path / "bad.onnx")
        return verify(tmp_path / "good.onnx", tmp_path / "bad.onnx", dims=dims, only=["reference"])

    return run


def culprit(found: Verification) -> Culprit:
    assert not found.ok
    (first, *_) = [r.culprit for r in found.failures if r.culprit is not None]
    return first


def changed(fault: str, change: Callable[[onnx.GraphProto], None]) -> onnx.ModelProto:
    made = small_net(fault)
    change(made.graph)
    return made


def test_nodes_put_in_that_change_nothing_are_not_blamed(hold: Callable[..., Verification]) -> None:
    def harmless(graph: onnx.GraphProto) -> None:
        for there_and_back in (("t1", "m1", [1, 0, 2]), ("t2", "t1", [1, 0, 2])):
            name, read, perm = there_and_back
            graph.node.insert(1 if name == "t1" else 2, node("Transpose", [read], [name], name, perm=perm))
        graph.node[3].input[0] = "t2"

    assert hold(small_net(), changed("", harmless)).ok
    found = culprit(hold(small_net(), changed("reordered concat", harmless)))
    assert (found.node, found.missing) == ("join", "join") and "order" in found.why


def test_what_the_source_made_of_constants_is_there_for_other_nodes(hold: Callable[..., Verification]) -> None:
    def net(front: list[onnx.NodeProto]) -> onnx.ModelProto:
        weights = {
            "w": np.ones((8, 8), np.float32),
            "half": np.array(0.5, np.float32),
            "one": np.array(1.0, np.float32),
        }
        nodes = [node("Mul", ["w", "half"], ["m"], "scaled"), *front, node("MatMul", ["z", "m"], ["y"], "product")]
        return model(nodes, ["batch", 8], **weights)

    same = [node("Identity", ["x"], ["z"])]
    assert hold(net(same), net([node("Mul", ["x", "one"], ["z"], "one_times")])).ok


def test_of_two_faults_the_first_is_named(hold: Callable[..., Verification]) -> None:
    def later(graph: onnx.GraphProto) -> None:
        graph.node[-2].attribute[0].i = 1  # softmax

    found = culprit(hold(small_net(), changed("shifted weight", later)))
    assert found.node == "project" and "a weight or constant of it" in found.why


def test_a_small_fault_that_later_nodes_amplify_is_found_where_it_is(hold: Callable[..., Verification]) -> None:
    def net(epsilon: float) -> onnx.ModelProto:
        scale = np.float32(1e3)
        return model(
            [
                node("LayerNormalization", ["x", "gain"], ["n"], "normalise", epsilon=epsilon),
                node("Sub", ["n", "gain"], ["s"], "shift"),
                node("Mul", ["s", "scale"], ["m"], "amplify"),
                node("Sin", ["m"], ["y"], "wave"),
            ],
            ["batch", 8],
            gain=np.ones(8, np.float32),
            scale=np.asarray(scale),
        )

    found = culprit(hold(net(1e-5), net(1.2e-5)))
    assert found.node == "normalise" and found.distance < 1e-5
    assert "epsilon=" in found.why


def quiet_net(weight: np.ndarray, factor: float, folded: bool = False) -> onnx.ModelProto:
    """A product that a small factor all but takes out of the output; `folded`: the weight has the factor in it."""
    end = [node("Add", ["m", "x"], ["y"], "sum")]
    if folded:
        return model([node("MatMul", ["x", "w"], ["m"], "product"), *end], ["batch", 8], w=weight * np.float32(factor))
    middle = [node("MatMul", ["x", "w"], ["p"], "product"), node("Mul", ["p", "factor"], ["m"], "scale")]
    return model([*middle, *end], ["batch", 8], w=weight, factor=np.array(factor, np.float32))


def test_a_fault_that_hardly_reaches_the_outputs_is_caught_by_what_the_node_makes(
    hold: Callable[..., Verification],
) -> None:
    weight = np.random.default_rng(3).standard_normal((8, 8), np.float32)
    found = hold(quiet_net(weight, 3e-6), quiet_net(np.roll(weight, 1, 0), 3e-6))
    assert culprit(found).node == "product" and found.failures[0].execution == "semantics"
    (difference,) = found.failures[0].differences
    assert difference.use < 1 and "computes something else" in difference.reason

    assert hold(quiet_net(weight, 3e-6), quiet_net(weight, 3e-6, folded=True)).ok
    # A mask that is no infinity moves what it makes, and nothing behind it.
    masks = [np.array([low] * 4 + [0.0] * 4, np.float32) for low in (-1e9, -1e6)]
    nets = [
        model([node("Add", ["x", "m"], ["a"], "mask"), node("Softmax", ["a"], ["y"])], ["batch", 8], m=m) for m in masks
    ]
    assert hold(*nets).ok


def test_a_node_that_makes_another_one_unreadable_is_named_beside_it(hold: Callable[..., Verification]) -> None:
    def net(axis: int) -> onnx.ModelProto:
        return model(
            [
                node("Concat", ["x", "x"], ["j"], "join", axis=axis),
                node("Relu", ["j"], ["r"], "relu"),
                node("MatMul", ["r", "w"], ["y"], "product"),
            ],
            ["batch", 8],
            w=np.ones((16, 3), np.float32),
        )

    with pytest.raises(InvalidArgumentError, match="node 'product'") as caught:
        hold(net(1), net(0))
    assert caught.value.notes == (
        "of what it reads, node 'join' (concat) is the first that the source has not in this form",
    )
    with pytest.raises(InvalidArgumentError, match="node 'product'") as caught:  # nothing that it reads is to blame
        hold(quiet_net(np.ones((8, 8), np.float32), 1.0), quiet_net(np.ones((7, 8), np.float32), 1.0))
    assert caught.value.notes == ()


def test_data_that_a_later_node_refuses_is_traced_to_what_made_it(hold: Callable[..., Verification]) -> None:
    def net(parts: list[str]) -> onnx.ModelProto:
        return model(
            [
                node("Shape", ["x"], ["extents"], "extents"),
                node("Gather", ["extents", "zero"], ["rows"], "rows"),
                node("Concat", [*parts], ["shape"], "shape", axis=0),
                node("Reshape", ["x", "shape"], ["flat"], "flatten"),
                node("MatMul", ["flat", "w"], ["y"], "product"),
            ],
            ["batch", 2, 4],
            zero=np.array([0]),
            rest=np.array([8]),
            w=np.random.default_rng(0).standard_normal((8, 3), np.float32),
        )

    found = culprit(hold(net(["rows", "rest"]), net(["rest", "rows"]), dims=["batch=2,5"]))
    assert found.node == "shape" and "then node 'product' refuses the data" in found.why


def test_what_nodes_make_of_constants_is_traced_to_them(hold: Callable[..., Verification]) -> None:
    def net(parts: list[str]) -> onnx.ModelProto:
        return model(
            [
                node("Concat", parts, ["pads"], "pads", axis=0),
                node("Cast", ["pads"], ["wide"], "wide", to=INT64),
                node("Pad", ["x", "wide"], ["p"], "pad", mode="reflect"),
                node("Mul", ["p", "p"], ["y"], "square"),
            ],
            ["batch", 9],
            none=np.array([0], np.int32),
            some=np.array([2], np.int32),
        )

    found = culprit(
        hold(net(["none", "some", "none", "some"]), net(["none", "none", "none", "some"]), dims=["batch=2"])
    )
    assert (found.node, found.missing) == ("pads", "pads") and "node 'pad' reads it" in found.why


def test_an_output_that_is_taken_from_another_node(hold: Callable[..., Verification]) -> None:
    def net(last: bool) -> onnx.ModelProto:
        nodes = [node("Relu", ["x"], ["r" if last else "y"], "relu")]
        return model([*nodes, node("Exp", ["r"], ["y"], "exp")] if last else nodes, ["n"])

    found = culprit(hold(net(True), net(False)))
    assert (found.node, found.missing) == ("relu", "exp")


def test_a_body_that_captures_another_value_is_told_from_its_twin(hold: Callable[..., Verification]) -> None:
    def net(captured: str) -> onnx.ModelProto:
        def branch(name: str, kind: str) -> onnx.GraphProto:
            out = [helper.make_tensor_value_info(f"{name}_y", FLOAT, None)]
            return helper.make_graph([node(kind, [captured], [f"{name}_y"], f"{name}_node")], name, [], out)

        return model(
            [
                node("Abs", ["x"], ["a"], "absolute"),
                node("Neg", ["x"], ["b"], "negative"),
                node("ReduceSum", ["a"], ["s"], "sum", keepdims=0),
                node("Greater", ["s", "zero"], ["c"], "positive"),
                node("If", ["c"], ["y"], "choose", then_branch=branch("t", "Exp"), else_branch=branch("e", "Sin")),
            ],
            ["n"],
            zero=np.float32(0) * np.ones((), np.float32),
        )

    assert hold(net("a"), net("a"), dims=["n=3"]).ok
    assert culprit(hold(net("a"), net("b"), dims=["n=3"])).node == "choose"


def test_a_dim_that_is_dynamic_in_the_source_alone_is_frozen(hold: Callable[..., Verification]) -> None:
    def fixed(graph: onnx.GraphProto) -> None:
        graph.input[0].type.tensor_type.shape.dim[0].dim_value = 2
        for output in graph.output:
            output.type.tensor_type.shape.dim[0].dim_value = 2

    found = hold(small_net(), changed("", fixed))
    assert found.frozen == ("batch",) and not found.ok and not found.failures
    assert hold(small_net(), changed("", fixed), dims=["batch=2"]).ok  # asked for that size alone
    assert hold(small_net(), changed("", fixed), dims=["batch=2,3"]).frozen == ("batch",)
