"""Older forms of operators: imported, evaluated, and held against NumPy, then exported again and run elsewhere."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from onnx_models import evaluate, info, model, node, roundtrip, run_onnx, run_ort

import sardonyx as sx
from sardonyx.frontend.onnx.adapters import find

X = (np.arange(24, dtype="f4").reshape(2, 3, 4) - 11) / 3
V3 = np.array([1, 2, 4], "f4")


def softmax(x: np.ndarray[Any, Any], axes: tuple[int, ...]) -> np.ndarray[Any, Any]:
    e = np.exp(x.astype("f8") - x.max(axes, keepdims=True))
    return (e / e.sum(axes, keepdims=True)).astype("f4")


# name, opset, node, further inputs (None: constant initializers below), expected outputs
CASES: list[tuple[str, int, Any, dict[str, Any], list[Any]]] = [
    ("axis", 6, node("Add", "x b", "y", broadcast=1, axis=1), {"b": V3}, [X + V3[:, None]]),
    ("axis", 6, node("Sub", "x b", "y", broadcast=1, axis=0), {"b": X[:, :, 0].copy()}, [X - X[:, :, :1]]),
    ("axis", 6, node("Sub", "x b", "y", broadcast=1, axis=-2), {"b": V3}, [X - V3[:, None]]),
    ("suffix", 6, node("Mul", "x b", "y", broadcast=1), {"b": X[0].copy()}, [X * X[0]]),
    ("scalar", 1, node("Div", "x b", "y", broadcast=1, axis=0), {"b": np.array(2, "f4")}, [X / 2]),
    ("same shape", 1, node("Pow", "x b", "y"), {"b": np.full_like(X, 2)}, [X * X]),
    ("compare", 6, node("Less", "x b", "y", broadcast=1, axis=1), {"b": V3}, [V3[:, None] > X]),
    ("slope per channel", 6, node("PRelu", "x b", "y"), {"b": V3}, [np.where(X < 0, X * V3[:, None], X)]),
    ("slope of one", 6, node("PRelu", "x b", "y"), {"b": V3[:1]}, [np.where(X < 0, X, X)]),
    ("attributes", 6, node("Clip", "x", "y", min=-1.0, max=2.0), {}, [np.clip(X, -1, 2)]),
    ("max only", 10, node("Clip", "x", "y", max=0.5), {}, [np.minimum(X, np.float32(0.5))]),
    ("neither", 1, node("Clip", "x", "y"), {}, [X]),
    ("bounds of one", 13, node("Clip", "x b", "y"), {"b": np.array([0.5], "f4")}, [np.maximum(X, np.float32(0.5))]),
    ("by name", 1, node("Cast", "x", "y", to="INT32"), {}, [X.astype("i4")]),
    ("by number", 6, node("Cast", "x", "y", to=11), {}, [X.astype("f8")]),
    ("is_test", 6, node("Dropout", "x", "y", is_test=1, ratio=0.5), {}, [X]),
    ("mask", 7, node("Dropout", "x", "y m"), {}, [X, np.ones_like(X)]),
    ("bool mask", 10, node("Dropout", "x", "y m"), {}, [X, np.ones(X.shape, bool)]),
    ("inputs", 13, node("Dropout", "x r t", "y m"), {"r": np.float32(0.5), "t": np.array(False)},
     [X, np.ones(X.shape, bool)]),
    ("ratio zero", 13, node("Dropout", "x r t", "y"), {"r": np.float32(0), "t": np.array(True)}, [X]),
    ("axes", 12, node("ReduceSum", "x", "y", axes=[-1, 0], keepdims=0), {}, [X.sum((0, 2))]),
    ("axes", 1, node("ReduceSum", "x", "y", axes=[1]), {}, [X.sum(1, keepdims=True)]),
    ("all axes", 17, node("ReduceMax", "x", "y", keepdims=0), {}, [X.max()]),
    ("axes", 17, node("ReduceMean", "x", "y", axes=[1]), {}, [X.mean(1, keepdims=True)]),
    ("axes", 13, node("ReduceL2", "x", "y", axes=[2]), {}, [np.sqrt((X * X).sum(2, keepdims=True))]),
    ("default axis", 11, node("Softmax", "x", "y"), {}, [softmax(X, (1, 2))]),
    ("axis 0", 9, node("Softmax", "x", "y", axis=0), {}, [softmax(X, (0, 1, 2))]),
    ("last axis", 11, node("Softmax", "x", "y", axis=-1), {}, [softmax(X, (2,))]),
    ("flat", 12, node("LogSoftmax", "x", "y", axis=1), {}, [np.log(softmax(X, (1, 2)))]),
    ("flat", 11, node("Hardmax", "x", "y"), {}, [np.eye(12, dtype="f4")[[11, 11]].reshape(X.shape)]),
    ("attribute", 1, node("Reshape", "x", "y", shape=[4, -1]), {}, [X.reshape(4, 6)]),
    ("zero copies", 1, node("Reshape", "x", "y", shape=[0, -1]), {}, [X.reshape(2, 12)]),
    ("axes", 1, node("Unsqueeze", "x", "y", axes=[0, 4]), {}, [X[None, ..., None]]),
    ("axes", 11, node("Squeeze", "b", "y", axes=[-1]), {"b": X[..., :1].copy()}, [X[..., 0]]),
    ("all", 1, node("Squeeze", "b", "y"), {"b": X[:1, :, :1].copy()}, [X[0, :, 0]]),
    ("attributes", 9, node("Slice", "x", "y", starts=[0, -3], ends=[1, 99], axes=[0, 2]), {}, [X[:1, :, -3:]]),
    ("no axes", 1, node("Slice", "x", "y", starts=[1], ends=[2]), {}, [X[1:2]]),
    ("pads", 2, node("Pad", "x", "y", pads=[0, 1, 0, 0, 0, 2], value=3.0), {},
     [np.pad(X, ((0, 0), (1, 0), (0, 2)), constant_values=3)]),
    ("paddings", 1, node("Pad", "x", "y", paddings=[0, 0, 1, 0, 0, 0], mode="edge"), {},
     [np.pad(X, ((0, 0), (0, 0), (1, 0)), mode="edge")]),
    ("sizes", 2, node("Split", "x", "y z", axis=2, split=[1, 3]), {}, [X[..., :1], X[..., 1:]]),
    ("equal parts", 11, node("Split", "x", "y z", axis=-1), {}, [X[..., :2], X[..., 2:]]),
    ("sizes as input", 13, node("Split", "x b", "y z", axis=2), {"b": np.array([3, 1])}, [X[..., :3], X[..., 3:]]),
    ("an axis", 1, node("Tile", "x t a", "y"), {"t": np.float32(2), "a": np.float32(1)}, [np.tile(X, (1, 2, 1))]),
    ("default axis 1", 1, node("Concat", "x x", "y"), {}, [np.concatenate([X, X], 1)]),
    ("old constants", 1, node("Selu", "x", "y"), {}, [1.0507 * np.where(X > 0, X, 1.6732 * np.expm1(X))]),
    ("consumed_inputs", 1, node("Relu", "x", "y", consumed_inputs=[0]), {}, [np.maximum(X, 0)]),
    ("same rank", 1, node("Max", "x b", "y"), {"b": X[::-1].copy()}, [np.maximum(X, X[::-1])]),
    ("same rank", 6, node("Min", "x b", "y"), {"b": X[::-1].copy()}, [np.minimum(X, X[::-1])]),
    ("same rank", 1, node("Sum", "x x x", "y"), {}, [3 * X]),
    ("same rank", 6, node("Mean", "x b", "y"), {"b": X[::-1].copy()}, [(X + X[::-1]) / 2]),
    ("axis", 4, node("Concat", "x x", "y", axis=2), {}, [np.concatenate([X, X], 2)]),
    ("axis", 1, node("Flatten", "x", "y", axis=2), {}, [X.reshape(6, 4)]),
    ("axis 0", 9, node("Flatten", "x", "y", axis=0), {}, [X.reshape(1, 24)]),
    ("axis", 1, node("Gather", "x i", "y", axis=1), {"i": np.array([2, 0])}, [X[:, [2, 0]]]),
    ("pairs", 11, node("GatherND", "x i", "y"), {"i": np.array([[1, 2], [0, 0]])}, [X[[1, 0], [2, 0]]]),
    ("axis", 1, node("ArgMax", "x", "y", axis=1, keepdims=0), {}, [X.argmax(1)]),
    ("axis", 11, node("ArgMin", "x", "y", axis=-1), {}, [X.argmin(-1, keepdims=True)]),
    ("consumed_inputs", 1, node("HardSigmoid", "x", "y", consumed_inputs=[0]), {}, [np.clip(X * 0.2 + 0.5, 0, 1)]),
    ("consumed_inputs", 1, node("Elu", "x", "y", alpha=0.5, consumed_inputs=[0]), {},
     [np.where(X > 0, X, 0.5 * np.expm1(X))]),
    ("consumed_inputs", 1, node("LeakyRelu", "x", "y", consumed_inputs=[0]), {}, [np.where(X > 0, X, X * 0.01)]),
    ("per channel", 7, node("PRelu", "x b", "y"), {"b": V3[:, None].copy()}, [np.where(X < 0, X * V3[:, None], X)]),
    ("broadcast", 7, node("Pow", "x b", "y"), {"b": np.array([2, 1, 2, 3], "f4")},
     [X ** np.array([2, 1, 2, 3], "f4")]),
    ("windows", 1, node("AveragePool", "x", "y", kernel_shape=[2], strides=[2]), {}, [X.reshape(2, 3, 2, 2).mean(-1)]),
    ("padding", 7, node("AveragePool", "x", "y", kernel_shape=[2], strides=[4], pads=[1, 0], count_include_pad=1), {},
     [X[..., :1] / 2]),
    ("windows", 1, node("MaxPool", "x", "y", kernel_shape=[2], strides=[2]), {}, [X.reshape(2, 3, 2, 2).max(-1)]),
    ("indices", 8, node("MaxPool", "b", "y i", kernel_shape=[4]), {"b": X[:1, :1].copy()},
     [X[:1, :1, 3:], np.full((1, 1, 1), 3)]),
    ("statistics", 1, node("InstanceNormalization", "x s b", "y", consumed_inputs=[0, 0, 0]),
     {"s": V3, "b": -V3}, [(X - X.mean(-1, keepdims=True)) / np.sqrt(X.var(-1, keepdims=True) + 1e-5) * V3[:, None]
                           - V3[:, None]]),
    ("k as attribute", 1, node("TopK", "x", "y i", k=2, axis=2), {},
     [X[..., :1:-1], np.broadcast_to(np.array([3, 2]), (2, 3, 2))]),
    ("k as input", 10, node("TopK", "x k", "y i"), {"k": np.array([1])}, [X[..., 3:], np.full((2, 3, 1), 3)]),
    ("axis", 9, node("Compress", "x c", "y", axis=1), {"c": np.array([True, False, True])}, [X[:, [0, 2]]]),
    ("depth", 9, node("OneHot", "i d v", "y"),
     {"i": np.array([1, 0, 5]), "d": np.array(3), "v": np.array([2, 7], "f4")},
     [np.where(np.arange(3) == np.array([[1], [0], [5]]), 7, 2).astype("f4")]),
    ("blocks", 1, node("DepthToSpace", "b", "y", blocksize=2), {"b": np.arange(8, dtype="f4").reshape(1, 4, 1, 2)},
     [np.array([0, 2, 1, 3, 4, 6, 5, 7], "f4").reshape(1, 1, 2, 4)]),
    ("order as float", 1, node("LpPool", "x", "y", kernel_shape=[4], p=2.0), {},
     [np.sqrt((X * X).sum(-1, keepdims=True))]),
    ("bias of a row", 7, node("Gemm", "a b c", "y", alpha=0.5), {"a": X[0].copy(), "b": X[1].T.copy(), "c": V3},
     [X[0] @ X[1].T / 2 + V3]),
    ("broadcast", 6, node("Gemm", "a b c", "y", broadcast=1, transB=1),
     {"a": X[0].copy(), "b": X[1].copy(), "c": V3}, [X[0] @ X[1].T + V3]),
]  # fmt: skip


@pytest.mark.parametrize(
    "title, opset, made, extra, expected", CASES, ids=[f"{c[2].op_type}-{c[1]}-{c[0]}" for c in CASES]
)
def test_old_forms(title, opset, made, extra, expected):
    expected = [np.asarray(e) for e in expected]
    names = [n for n in made.input if n]
    given = {"x": X} if "x" in names else {}
    # Small integers and scalars are constants, as models have them; the rest is fed.
    constant = {k: v for k, v in extra.items() if np.ndim(v) == 0 or np.asarray(v).dtype.kind == "i"}
    fed = {**given, **{k: np.asarray(v) for k, v in extra.items() if k not in constant}}
    from onnx import helper

    def number(array: Any) -> int:
        return helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)

    proto = model(
        [made],
        [info(k, v.shape, number(v)) for k, v in fed.items()],
        [
            info(n, e.shape, number(e) if e.dtype != np.float64 or title == "by number" else 1)
            for n, e in zip(made.output, expected)
        ],
        constant,
        opset=opset,
        ir_version=7,
    )
    results = [evaluate(proto, fed), run_ort(roundtrip(proto), fed), run_onnx(roundtrip(proto, opset_version=28), fed)]
    for got in results:
        for a, e in zip(got, expected, strict=True):
            assert a.shape == e.shape and a.dtype == (
                e.dtype if e.dtype != np.float64 or title == "by number" else "f4"
            )
            np.testing.assert_allclose(a, e, rtol=2e-6, atol=1e-6)


# ---- normalisation

P = [np.array(v, "f4") for v in ([2, -1, 1], [0.5, 3, 0], [1, -1, 0], [4, 0.5, 1])]
FEEDS = {"x": X, **dict(zip("sbmv", P))}
INPUTS = [info("x", [2, 3, 4]), *(info(n, [3]) for n in "sbmv")]


def normalized(mean, var, eps=1e-5):
    s, b, m, v = (np.reshape(a, (1, 3, 1)).astype("f8") for a in (P[0], P[1], mean, var))
    return ((X - m) / np.sqrt(v + eps) * s + b).astype("f4")


@pytest.mark.parametrize(
    "opset, attributes", [(1, {"is_test": 1}), (6, {"is_test": 1}), (7, {}), (9, {}), (13, {}), (15, {})]
)
def test_batch_normalization_at_inference(opset, attributes):
    if opset == 1:
        attributes = {**attributes, "consumed_inputs": [0, 0, 0, 1, 1]}
    made = node("BatchNormalization", "x s b m v", "y", **attributes)
    proto = model([made], INPUTS, [info("y", [2, 3, 4])], opset=opset, ir_version=7)
    np.testing.assert_allclose(evaluate(proto, FEEDS)[0], normalized(P[2], P[3]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("opset, outputs", [(9, "y a w"), (14, "y a w"), (6, "y")])
def test_batch_normalization_in_training(opset, outputs):
    attributes: Any = {"training_mode": 1} if opset == 14 else {}
    made = node("BatchNormalization", "x s b m v", outputs, momentum=0.75, **attributes)
    if opset == 9:
        made.output.extend(["", ""])
    outs = [info("y", [2, 3, 4]), *(info(n, [3]) for n in outputs.split()[1:])]
    proto = model([made], INPUTS, outs, opset=opset, ir_version=7)
    mean, var = X.mean((0, 2)), X.var((0, 2))
    got = evaluate(proto, FEEDS)
    np.testing.assert_allclose(got[0], normalized(mean, var), rtol=1e-5, atol=1e-5)
    for a, old, new in zip(got[1:], P[2:], (mean, var)):
        np.testing.assert_allclose(a, old * 0.75 + new * 0.25, rtol=1e-5, atol=1e-6)


def test_batch_normalization_per_activation():
    stats = [np.abs(X[i % 2]) + 1 for i in range(4)]
    made = node("BatchNormalization", "x s b m v", "y", spatial=0)
    ins = [info("x", [2, 3, 4]), *(info(n, [3, 4]) for n in "sbmv")]
    proto = model([made], ins, [info("y", [2, 3, 4])], opset=7, ir_version=7)
    s, b, m, v = stats
    got = evaluate(proto, {"x": X, **dict(zip("sbmv", stats))})
    np.testing.assert_allclose(got[0], (X - m) / np.sqrt(v + 1e-5) * s + b, rtol=1e-5)


def test_group_normalization_with_a_scale_per_group():
    x = np.arange(32, dtype="f4").reshape(1, 4, 8) ** 1.5
    made = node("GroupNormalization", "x s b", "y", num_groups=2)
    feeds = {"x": x, "s": np.array([1, -2], "f4"), "b": np.array([0, 3], "f4")}
    proto = model([made], [info("x", [1, 4, 8]), info("s", [2]), info("b", [2])], [info("y", [1, 4, 8])], opset=18)
    g = x.reshape(1, 2, 16).astype("f8")
    g = (g - g.mean(2, keepdims=True)) / np.sqrt(g.var(2, keepdims=True) + 1e-5)
    expected = g * feeds["s"].reshape(1, 2, 1) + feeds["b"].reshape(1, 2, 1)
    np.testing.assert_allclose(evaluate(proto, feeds)[0], expected.reshape(x.shape), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(run_ort(roundtrip(proto), feeds)[0], expected.reshape(x.shape), rtol=1e-4, atol=1e-4)


# ---- constants


@pytest.mark.parametrize(
    "attributes, expected",
    [
        ({"value_int": 3}, np.array(3)),
        ({"value_ints": [3, 4]}, np.array([3, 4])),
        ({"value_float": 0.5}, np.array(0.5, "f4")),
        ({"value_floats": [0.5, 2.0]}, np.array([0.5, 2], "f4")),
    ],
)
def test_plain_constants(attributes, expected):
    from onnx import helper

    number = helper.np_dtype_to_tensor_dtype(expected.dtype)
    proto = model([node("Constant", "", "y", **attributes)], [info("x", [1])], [info("y", expected.shape, number)])
    (got,) = evaluate(proto, {"x": np.zeros(1, "f4")})
    assert got.dtype == expected.dtype and got.tolist() == expected.tolist()


@pytest.mark.parametrize("indices", [np.array([1, 5]), np.array([[0, 1], [1, 2]])])
def test_sparse_constants(indices):
    from onnx import helper, numpy_helper

    values = numpy_helper.from_array(np.array([5, 7], "f4"), "s")
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(indices, "i"), [2, 3])
    proto = model([node("Add", "x s", "y")], [info("x", [1])], [info("y", [2, 3])])
    proto.graph.sparse_initializer.append(sparse)
    (got,) = evaluate(proto, {"x": np.zeros(1, "f4")})
    assert got.tolist() == [[0, 5, 0], [0, 0, 7]]
    sparse.indices.CopyFrom(numpy_helper.from_array(indices + 9, "i"))
    del proto.graph.sparse_initializer[:]
    proto.graph.sparse_initializer.append(sparse)
    with pytest.raises(sx.InvalidArgumentError, match="do not fit"):
        evaluate(proto, {"x": np.zeros(1, "f4")})


# ---- refusals


@pytest.mark.parametrize(
    "opset, made, error, text",
    [
        (6, node("Add", "x b", "y", broadcast=1, axis=3), sx.InvalidArgumentError, "does not fit ranks 3 and 1"),
        (11, node("Softmax", "x", "y", axis=7), sx.InvalidArgumentError, "axis 7 is out of range for rank 3"),
        (13, node("Cast", "x", "y", to=99), sx.InvalidArgumentError, "99 is no element type"),
        (21, node("ConstantOfShape", "x", "y"), sx.InvalidArgumentError, "sx.constant_of_shape|C1"),
        (9, node("BatchNormalization", "x b b b b", "y q r s t"), sx.UnsupportedError, "saved_mean"),
    ],
)
def test_refusals_name_the_node(opset, made, error, text):
    made.name = "the node"
    proto = model([made], [info("x", [2, 3, 4]), info("b", [3])], [info("y", None)], opset=opset, ir_version=7)
    with pytest.raises(error, match=text) as caught:
        sx.OnnxModel.from_proto(proto).compile()
    assert str(caught.value).startswith(f"node 'the node' ({made.op_type}): ")


def test_adapters_are_found_by_opset():
    assert find("", "Softmax", 12) is not None and find("", "Softmax", 13) is None
    assert find("", "Dropout", 6) is not find("", "Dropout", 7) is not find("", "Dropout", 12)
    assert find("other", "Softmax", 1) is None


def test_adapters_of_other_domains_wait_for_a_node_of_theirs() -> None:
    code = """
from sardonyx.frontend.onnx.adapters import PREFIXES, STRAYS, find, load, registry
assert find("", "SimplifiedLayerNormalization", 20) is not None
for domain, prefix in {**PREFIXES, "": ""}.items():
    load(prefix)
    found = {(d, n) for d, n in registry._ADAPTERS if d or n not in STRAYS}
    assert {d for d, _ in found} == {domain}, found
    registry._ADAPTERS.clear()
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
