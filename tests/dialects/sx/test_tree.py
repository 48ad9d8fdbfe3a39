"""Tree ensembles: against onnxruntime, in text, with tables as weights, and what they refuse."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T, helper
from onnx_models import evaluate, info, model, roundtrip, run_ort

import sardonyx as sx
from sardonyx import OnnxModel

MODES = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
DTYPES: dict[int, str] = {T.FLOAT: "f4", T.DOUBLE: "f8", T.INT64: "i8", T.INT32: "i4"}
F = 3


def tables(
    seed: int, targets: int, prefix: str, single: bool = False, positive: bool = False, whole: bool = False
) -> dict[str, Any]:
    """The attributes of a random forest; leaves speak of target 0 alone (`single`), of all (`whole`) or of some."""
    rng = np.random.default_rng(seed)
    nodes: list[tuple[Any, ...]] = []
    weights: list[tuple[Any, ...]] = []

    def grow(tree: int, depth: int, count: list[int]) -> int:
        number = count[0]
        count[0] += 1
        at = len(nodes)
        nodes.append(())
        if depth == 0 or rng.random() < 0.2:
            nodes[at] = (tree, number, 0, 0.0, "LEAF", 0, 0, 0)
            some = rng.choice(targets, targets if whole else rng.integers(1, targets + 1), replace=False)
            chosen = [0] if single else some
            for t in chosen:
                value = rng.random() / 3 if positive else rng.normal()
                weights.append((tree, number, int(t), float(np.round(value, 3))))
            return number
        feature, split, mode = int(rng.integers(F)), float(np.round(rng.normal(), 1)), str(rng.choice(MODES))
        true, false = grow(tree, depth - 1, count), grow(tree, depth - 1, count)
        nodes[at] = (tree, number, feature, split, mode, true, false, int(rng.integers(2)))
        return number

    for tree in range(4):
        grow(tree * 7, 3, [tree])
    columns = list(zip(*nodes))
    names = ["treeids", "nodeids", "featureids", "values", "modes", "truenodeids", "falsenodeids",
             "missing_value_tracks_true"]  # fmt: skip
    out: dict[str, Any] = {f"nodes_{n}": list(c) for n, c in zip(names, columns)}
    return out | {f"{prefix}_{n}": list(c) for n, c in zip(["treeids", "nodeids", "ids", "weights"], zip(*weights))}


def regressor(seed: int, targets: int, dtype: int = T.FLOAT, **attributes: Any) -> onnx.ModelProto:
    made = helper.make_node(
        "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=targets,
        **(tables(seed, targets, "target") | attributes),
    )  # fmt: skip
    return model([made], [info("x", ["n", F], dtype)], [info("y", None)], domains={"ai.onnx.ml": 3}, ir_version=8)


def classifier(seed: int, classes: int, dtype: int = T.FLOAT, given: Any = None, **attributes: Any) -> onnx.ModelProto:
    made = helper.make_node(
        "TreeEnsembleClassifier", ["x"], ["l", "y"], domain="ai.onnx.ml",
        classlabels_int64s=[10 * i + 5 for i in range(classes)],
        **((given or tables(seed, classes, "class")) | attributes),
    )  # fmt: skip
    outputs = [info("l", None, T.INT64), info("y", None)]
    return model([made], [info("x", ["n", F], dtype)], outputs, domains={"ai.onnx.ml": 3}, ir_version=8)


def samples(dtype: int = T.FLOAT, count: int = 40) -> Any:
    rng = np.random.default_rng(3)
    x = np.round(rng.normal(size=(count, F)), 1)
    if DTYPES[dtype][0] == "f":
        x[rng.random(x.shape) < 0.1] = np.nan
    return x.astype(DTYPES[dtype])


def agree(proto: onnx.ModelProto, x: Any) -> None:
    """We, onnxruntime, and onnxruntime on what we write again."""
    wanted = run_ort(proto, {"x": x})
    for a, b, c in zip(evaluate(proto, {"x": x}), wanted, run_ort(roundtrip(proto), {"x": x}), strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(c, b)


@pytest.mark.parametrize("dtype", [T.FLOAT, T.DOUBLE])
@pytest.mark.parametrize("function", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_regressor(function: str, dtype: int) -> None:
    for targets in (1, 3):
        agree(regressor(targets, targets, dtype, aggregate_function=function), samples(dtype))
        # Where no leaf speaks of a target, onnxruntime leaves the base out, which ONNX doesn't say.
        given = tables(targets, targets, "target", whole=True) | {"base_values": [0.5] * targets}
        agree(regressor(targets, targets, dtype, aggregate_function=function, **given), samples(dtype))


@pytest.mark.parametrize("transform", ["SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"])
def test_regressor_transforms(transform: str) -> None:
    proto = regressor(5, 3, post_transform=transform)
    for a, b in zip(evaluate(proto, {"x": samples()}), run_ort(proto, {"x": samples()}), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("transform", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
def test_classifier(transform: str, dtype: int) -> None:
    agree(classifier(1, 4, dtype, post_transform=transform), samples(dtype))
    agree(classifier(2, 4, dtype, post_transform=transform, base_values=[0.1, 0.2, -0.3, 1.0]), samples(dtype))


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("transform", ["NONE", "LOGISTIC"])
def test_two_classes_of_one_score(transform: str, positive: bool) -> None:
    given = tables(7, 2, "class", single=True, positive=positive)
    agree(classifier(0, 2, given=given, post_transform=transform), samples())


def test_two_classes_with_a_score_each_have_the_label_of_the_greater() -> None:
    """onnxruntime gives the label 1 or 0 there, whatever the labels are."""
    proto = classifier(3, 2)
    label, scores = evaluate(proto, {"x": samples()})
    np.testing.assert_allclose(scores, run_ort(proto, {"x": samples()})[1], rtol=1e-5, atol=1e-5)
    assert (label == np.where(scores[:, 1] > scores[:, 0], 15, 5)).all()


def newest(**changed: Any) -> onnx.ModelProto:
    """TreeEnsemble: two trees, the second a single leaf, with a set, doubles and targets."""
    attributes: dict[str, Any] = {
        "tree_roots": [0, 3],
        "nodes_modes": np.array([0, 6, 2, 0], np.uint8),
        "nodes_splits": np.array([0.5, 0, -1, 0], np.float64),
        "nodes_featureids": [0, 1, 2, 0],
        "nodes_truenodeids": [1, 0, 2, 4],
        "nodes_trueleafs": [0, 1, 1, 1],
        "nodes_falsenodeids": [2, 1, 3, 4],
        "nodes_falseleafs": [0, 1, 1, 1],
        "nodes_missing_value_tracks_true": [1, 0, 1, 0],
        "leaf_targetids": [0, 1, 0, 1, 1],
        "leaf_weights": np.array([1.5, -2, 3.25, 4, 0.125], np.float64),
        "membership_values": np.array([0.5, 1.5, np.nan], np.float64),
        "n_targets": 2,
    } | changed
    made = helper.make_node("TreeEnsemble", ["x"], ["y"], domain="ai.onnx.ml")
    for name, value in attributes.items():
        tensor = onnx.numpy_helper.from_array(value, "") if isinstance(value, np.ndarray) else value
        made.attribute.append(helper.make_attribute(name, tensor))
    return model(
        [made], [info("x", ["n", F], T.DOUBLE)], [info("y", None, T.DOUBLE)], domains={"ai.onnx.ml": 5}, ir_version=10
    )


def test_newest_form() -> None:
    x = np.array([[0, 0.5, 0], [0, 1, 0], [1, 0, -1], [1, 0, np.nan], [np.nan, 1.5, 0], [1, 0, -2]])
    sums = np.array([[1.5, 0.125], [0, -1.875], [3.25, 0.125], [3.25, 0.125], [1.5, 0.125], [0, 4.125]])
    np.testing.assert_array_equal(evaluate(newest(), {"x": x})[0], sums)
    np.testing.assert_array_equal(evaluate(newest(aggregate_function=0), {"x": x})[0], sums / 2)
    smallest = evaluate(newest(aggregate_function=2), {"x": x})[0]
    np.testing.assert_array_equal(smallest[:, 1], [0.125, -2, 0.125, 0.125, 0.125, 0.125])
    again = roundtrip(newest())
    assert again.graph.node[0].op_type == "TreeEnsemble" and again.opset_import[-1].version == 5
    np.testing.assert_array_equal(run_ort(again, {"x": x})[0], sums)
    assert evaluate(newest(), {"x": x[:0]})[0].shape == (0, 2)


def test_large_tables_are_weights(tmp_path: Any) -> None:
    """They are not in the text, survive pickling and a file beside the text, and are exported again."""
    values = np.random.default_rng(0).normal(size=300)
    n = len(values)
    proto = model(
        [
            helper.make_node(
                "TreeEnsembleRegressor", ["x"], ["y"], domain="ai.onnx.ml", n_targets=1, nodes_treeids=list(range(n)),
                nodes_nodeids=[0] * n, nodes_featureids=[0] * n, nodes_values=[0.0] * n, nodes_modes=["LEAF"] * n,
                nodes_truenodeids=[0] * n, nodes_falsenodeids=[0] * n, target_treeids=list(range(n)),
                target_nodeids=[0] * n, target_ids=[0] * n, target_weights=values.tolist(),
            )
        ],
        [info("x", ["n", 1])], [info("y", None)], domains={"ai.onnx.ml": 1}, ir_version=8,
    )  # fmt: skip
    graph = OnnxModel.from_proto(proto).compile()
    assert "sx.weight" in graph.text() and len(graph.text()) < 4000
    x = np.zeros((2, 1), "f4")
    wanted = np.full((2, 1), values.astype("f4").sum(dtype="f8"), "f4")
    for one in (graph, pickle.loads(pickle.dumps(graph)), graph.clone()):
        np.testing.assert_allclose(np.asarray(one.evaluate([x])[0]), wanted, rtol=1e-6)
    np.testing.assert_allclose(run_ort(roundtrip(proto), {"x": x})[0], wanted, rtol=1e-5)
    from op_case import _context
    from xdsl.parser import Parser

    from sardonyx.dialects.weights import WeightStore
    from sardonyx.dialects.weights_file import bind_weights, save_weights
    from sardonyx.frontend.graph import ModelGraph

    save_weights(graph.module, tmp_path / "g.weights.safetensors")
    again, store = Parser(_context(), graph.text()).parse_module(), WeightStore()
    bind_weights(again, store, str(tmp_path / "g.mlir"))
    np.testing.assert_allclose(np.asarray(ModelGraph(again, store).evaluate([x])[0]), wanted, rtol=1e-6)


BAD = [
    ({"nodes_truenodeids": lambda v: [99, *v[1:]]}, "has no node 99"),
    ({"nodes_falsenodeids": lambda v: [1, *v[1:]]}, "two ways|has no root, or several"),
    ({"nodes_falsenodeids": lambda v: v[:-1]}, "entries"),
    ({"nodes_modes": lambda v: ["BRANCH_XX", *v[1:]]}, "BRANCH_XX"),
    ({"target_ids": lambda v: [9, *v[1:]]}, "target is out of range"),
    ({"target_weights": lambda v: v[1:]}, "differ in length"),
    ({"nodes_nodeids": lambda v: [v[1], *v[1:]]}, "same id|no root"),
    ({"nodes_featureids": lambda v: [-1, *v[1:]]}, "feature"),
]


@pytest.mark.parametrize("changes, message", BAD, ids=[next(iter(c)) + str(i) for i, (c, _) in enumerate(BAD)])
def test_tables_that_make_no_trees(changes: Any, message: str) -> None:
    given = tables(4, 2, "target")
    given |= {name: change(given[name]) for name, change in changes.items()}
    with pytest.raises(sx.SardonyxError, match=message):
        OnnxModel.from_proto(regressor(0, 2, **given)).compile()


def test_a_circle_is_refused() -> None:
    with pytest.raises(sx.SardonyxError, match="two ways, or from itself"):
        OnnxModel.from_proto(newest(nodes_truenodeids=[0, 0, 2, 4])).compile()
    with pytest.raises(sx.SardonyxError, match="sets"):
        OnnxModel.from_proto(newest(membership_values=np.array([np.nan, np.nan]))).compile()


def test_too_few_features_are_refused_when_it_runs() -> None:
    graph = OnnxModel.from_proto(regressor(0, 1)).compile()
    found = str(graph)
    assert "sx.tree_ensemble_regressor" in found
    proto = regressor(0, 1)
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "f"
    with pytest.raises(sx.SardonyxError, match=r"\(C4\)"):
        evaluate(proto, {"x": np.zeros((2, 1), "f4")})


def natively(proto: onnx.ModelProto, x: Any) -> None:
    graph = OnnxModel.from_proto(proto).compile()
    wanted = graph.evaluate([x])
    graph.finalize()
    for a, b in zip(graph.run([x]), wanted, strict=True):
        a, b = np.asarray(a), np.asarray(b)
        assert a.dtype == b.dtype and a.shape == b.shape
        np.testing.assert_allclose(a, b, rtol=2e-6, atol=1e-7)


@pytest.mark.parametrize("function", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_native_regressors(function: str) -> None:
    targets, transform = {"SUM": (1, "NONE"), "MIN": (3, "SOFTMAX_ZERO"), "MAX": (2, "PROBIT")}.get(
        function, (3, "NONE")
    )
    given = tables(targets, targets, "target") | {"base_values": [0.5] * targets, "post_transform": transform}
    dtype = T.DOUBLE if function == "MIN" else T.FLOAT
    natively(regressor(targets, targets, dtype, aggregate_function=function, **given), samples(dtype))


def test_native_classifiers() -> None:
    natively(classifier(1, 4, T.INT64, post_transform="SOFTMAX"), samples(T.INT64))
    natively(classifier(2, 4, post_transform="LOGISTIC", base_values=[0.1, 0.2, -0.3, 1.0]), samples())
    natively(classifier(3, 2), samples())
    for positive in (True, False):
        given = tables(7, 2, "class", single=True, positive=positive)
        natively(classifier(0, 2, given=given, post_transform="LOGISTIC" if positive else "NONE"), samples(count=9))


def test_native_newest_form() -> None:
    x = np.array([[0, 0.5, 0], [0, 1, 0], [1, 0, -1], [1, 0, np.nan], [np.nan, 1.5, 0], [1, 0, -2]])
    natively(newest(), x)
    graph = OnnxModel.from_proto(regressor(0, 1)).compile()
    graph.finalize()
    assert np.asarray(graph.run([samples()[:0]])[0]).shape == (0, 1)


def test_labels_are_texts() -> None:
    names = ["low", "mid", "hïgh"]
    proto = classifier(6, 3)
    made = proto.graph.node[0]
    made.attribute.remove(next(a for a in made.attribute if a.name == "classlabels_int64s"))
    made.attribute.append(helper.make_attribute("classlabels_strings", names))
    proto.graph.output[0].type.tensor_type.elem_type = T.STRING
    numbers = evaluate(classifier(6, 3), {"x": samples()})[0]
    label = evaluate(proto, {"x": samples()})[0]
    assert label.tolist() == [names[(k - 5) // 10] for k in numbers] and len(set(numbers.tolist())) > 1
    for again in (proto, roundtrip(proto)):
        assert label.tolist() == run_ort(again, {"x": samples()})[0].tolist()
