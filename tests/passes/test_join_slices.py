"""`join-slices` on imported models: the parts keep their names."""

from __future__ import annotations

import numpy as np
from onnx_models import info, model, node, run_ort

import sardonyx as sx
from sardonyx.dialects.locations import value_names


def gates() -> sx.OnnxModel:
    bounds = {"at0": [0], "at2": [2], "at5": [5], "far": [99], "axis": [1]}
    cuts = [("r", "at0 at2"), ("z", "at2 at5"), ("h", "at5 far")]
    nodes = [node("Slice", f"x {bound} axis", f"{name}_part", f"cut_{name}") for name, bound in cuts]
    nodes += [node("Neg", f"{name}_part", f"{name}_out") for name, _ in cuts]
    outputs = [info(f"{name}_out", ["n", size]) for (name, _), size in zip(cuts, (2, 3, 4), strict=True)]
    weights = {name: np.array(value, np.int64) for name, value in bounds.items()}
    return sx.OnnxModel.from_proto(model(nodes, [info("x", ["n", 9])], outputs, weights))


def test_the_parts_of_a_cell_keep_their_names() -> None:
    made = gates()
    made.optimize("join-slices,remove-dead-nodes")
    split = made.to_proto().graph.node[0]
    assert (split.op_type, split.name) == ("Split", "cut_r")
    assert list(split.output) == ["r_part", "z_part", "h_part"]
    x = np.arange(18, dtype=np.float32).reshape(2, 9)
    for found, want in zip(run_ort(made.to_proto(), {"x": x}), np.split(-x, [2, 5], axis=1), strict=True):
        np.testing.assert_array_equal(found, want)


def test_traced_parts_keep_their_lines() -> None:
    graph = sx.trace(lambda x: (x[:, :3] + 1, x[:, 3:] * 2), "x: f32[n, 8]").graph
    graph.optimize("join-slices,remove-dead-nodes")
    (split,) = [op for op in graph.module.walk() if op.name == "sx.split"]
    assert value_names(split.location, 2) == [None, None]
    assert "test_join_slices.py" in str(split.location)


def test_a_merged_op_bears_the_name_of_what_it_computes() -> None:
    """Two reshapes in a row are one: it computes what the second did."""
    shapes = {"s0": np.array([6, -1], np.int64), "s1": np.array([3, -1], np.int64)}
    nodes = [node("Reshape", "x s0", "first"), node("Reshape", "first s1", "second"), node("Neg", "second", "y")]
    made = sx.OnnxModel.from_proto(model(nodes, [info("x", [2, 12])], [info("y", [3, 8])], shapes))
    made.optimize()
    assert [list(n.output) for n in made.to_proto().graph.node] == [["second"], ["y"]]
