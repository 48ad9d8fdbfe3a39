"""A small net, and what goes wrong in exports: one fault each, with the node that is to be named."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, HALF = TensorProto.FLOAT, TensorProto.FLOAT16


@dataclass(frozen=True)
class Fault:
    """What is wrong, and the node at fault (or the source's node that has no counterpart)."""

    name: str
    node: str


FAULTS = (
    Fault("wrong axis", "softmax"),
    Fault("frozen dim", "freeze"),
    Fault("dropped output", "mean"),
    Fault("shifted weight", "project"),
    Fault("changed epsilon", "normalise"),
    Fault("swapped input", "subtract"),
    Fault("fp16 overflow", "to_half"),
    Fault("reordered concat", "join"),
    Fault("missing node", "relu"),
    Fault("another opset's semantics", "flatten"),
)


def small_net(fault: str = "") -> onnx.ModelProto:
    """`y, z` of `x: float[batch, seq, 8]`, with the fault of that name."""
    node = helper.make_node
    generator = np.random.default_rng(0)
    weights = {
        "w1": generator.standard_normal((8, 16), np.float32),
        "b1": generator.standard_normal(16, np.float32),
        "w2": generator.standard_normal((16, 8), np.float32) / 4,
        "gain": np.ones(8, np.float32),
        "shift": np.zeros(8, np.float32),
        "axes": np.array([-1]),
        "large": np.float32(1e5),
        "shape": np.array([2, 3, 8]),
    }
    if fault == "shifted weight":
        weights["w2"] = np.roll(weights["w2"], 1, 0)
    epsilon = 1e-2 if fault == "changed epsilon" else 1e-5
    hidden = "r1"
    nodes = [node("MatMul", ["x", "w1"], ["m1"], "expand"), node("Add", ["m1", "b1"], ["a1"], "bias")]
    if fault == "missing node":
        hidden = "a1"
    else:
        nodes.append(node("Relu", ["a1"], ["r1"], "relu"))
    if fault == "fp16 overflow":
        nodes += [
            node("Mul", ["r1", "large"], ["scaled"], "scale_up"),
            node("Cast", ["scaled"], ["half"], "to_half", to=HALF),
            node("Cast", ["half"], ["single"], "to_single", to=FLOAT),
            node("Div", ["single", "large"], ["back"], "scale_down"),
        ]
        hidden = "back"
    nodes.append(node("MatMul", [hidden, "w2"], ["m2"], "project"))
    product = "m2"
    if fault == "frozen dim":
        nodes.append(node("Reshape", ["m2", "shape"], ["frozen"], "freeze"))
        product = "frozen"
    pair = [product, "x"] if fault == "swapped input" else ["x", product]
    parts = ["x", "n"] if fault == "reordered concat" else ["n", "x"]
    nodes += [
        node("Sub", pair, ["s"], "subtract"),
        node("LayerNormalization", ["s", "gain", "shift"], ["n"], "normalise", epsilon=epsilon, axis=-1),
        node("Concat", parts, ["c"], "join", axis=-1),
    ]
    if fault == "another opset's semantics":  # before opset 13 Softmax flattened its operand
        nodes += [
            node("Flatten", ["c"], ["flat"], "flatten", axis=1),
            node("Softmax", ["flat"], ["rows"], "softmax", axis=-1),
            node("Shape", ["c"], ["extents"], "extents"),
            node("Reshape", ["rows", "extents"], ["y"], "unflatten"),
        ]
    else:
        nodes.append(node("Softmax", ["c"], ["y"], "softmax", axis=1 if fault == "wrong axis" else -1))
    outputs = [helper.make_tensor_value_info("y", FLOAT, ["batch", "seq", 16])]
    if fault != "dropped output":
        nodes.append(node("ReduceMean", ["c", "axes"], ["z"], "mean", keepdims=0))
        outputs.append(helper.make_tensor_value_info("z", FLOAT, ["batch", "seq"]))
    read = {name for n in nodes for name in n.input}
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("x", FLOAT, ["batch", "seq", 8])],
        outputs,
        [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items() if name in read],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    onnx.checker.check_model(model, full_check=True)
    return model


def numpy_net(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The same net as a function over arrays."""
    from onnx.numpy_helper import to_array

    weights = {t.name: to_array(t) for t in small_net().graph.initializer}
    s = x - np.maximum(x @ weights["w1"] + weights["b1"], 0) @ weights["w2"]
    centred = s - s.mean(-1, keepdims=True)
    n = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
    c = np.concatenate([n, x], -1)
    e = np.exp(c - c.max(-1, keepdims=True))
    return (e / e.sum(-1, keepdims=True)).astype(np.float32), c.mean(-1)
