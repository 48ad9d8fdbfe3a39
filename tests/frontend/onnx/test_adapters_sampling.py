"""Older forms of operators that sample, choose and place elements, held against onnxruntime's kernels of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import evaluate, info, model, node, op_types, roundtrip, run_ort

import sardonyx as sx

RNG = np.random.default_rng(71)
IMAGE = RNG.random((1, 2, 4, 6), np.float32)
ROW = np.arange(6, dtype=np.float32).reshape(1, 1, 1, 6)


def floats(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


def number(array: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)


# opset, node, inputs by name (those named in capitals are initializers)
CASES: list[tuple[int, Any, dict[str, Any]]] = [
    (7, node("Upsample", "x", "y", mode="nearest", scales=[1.0, 1.0, 2.0, 3.0]), {"x": IMAGE}),
    (8, node("Upsample", "x", "y", mode="linear", scales=[1.0, 1.0, 2.0, 1.5]), {"x": IMAGE}),
    (9, node("Upsample", "x S", "y"), {"x": IMAGE, "S": floats(1, 1, 2, 2)}),
    (9, node("Upsample", "x s", "y", mode="linear"), {"x": IMAGE, "s": floats(1, 1, 2, 2)}),
    (10, node("Resize", "x S", "y"), {"x": IMAGE, "S": floats(1, 1, 0.5, 0.5)}),
    (10, node("Resize", "x S", "y"), {"x": ROW, "S": floats(1, 1, 3, 0.4)}),
    (10, node("Resize", "x S", "y", mode="linear"), {"x": IMAGE, "S": floats(1, 1, 1.5, 0.5)}),
    (11, node("Resize", "x R S", "y", mode="linear"), {"x": IMAGE, "R": floats(), "S": floats(1, 1, 2, 2)}),
    (11, node("Resize", "x R S N", "y"), {"x": IMAGE, "R": floats(), "S": floats(), "N": np.array([1, 2, 3, 9])}),
    (12, node("Resize", "x R S", "y", nearest_mode="floor", coordinate_transformation_mode="tf_half_pixel_for_nn"),
     {"x": ROW, "R": floats(), "S": floats(1, 1, 1, 2.5)}),
    (13, node("Resize", "x _ S", "y", mode="cubic"), {"x": IMAGE, "S": floats(1, 1, 2, 2)}),
    (16, node("GridSample", "x g", "y", mode="bicubic", align_corners=1),
     {"x": IMAGE, "g": RNG.random((1, 3, 2, 2), np.float32)}),
    (16, node("GridSample", "x g", "y", padding_mode="border"),
     {"x": IMAGE, "g": RNG.random((1, 3, 2, 2), np.float32)}),
    (10, node("RoiAlign", "x r b", "y", output_height=2, output_width=3, spatial_scale=0.5, sampling_ratio=2),
     {"x": IMAGE, "r": floats(0, 0, 7, 6).reshape(1, 4), "b": np.array([0])}),
    (17, node("DFT", "x", "y", axis=1, onesided=1), {"x": RNG.random((2, 6, 1), np.float32)}),
    (17, node("DFT", "x", "y"), {"x": RNG.random((2, 6, 2), np.float32)}),
    (9, node("Scatter", "x i u", "y", axis=1), {"x": ROW[0, 0], "i": np.array([[1, 3]]), "u": floats(7, 8)[None]}),
    (1, node("TopK", "x", "y z", k=2, axis=3), {"x": IMAGE}),
    (10, node("TopK", "x K", "y z", axis=2), {"x": IMAGE, "K": np.array([3])}),
    (2, node("LpPool", "x", "y", kernel_shape=[2, 2], strides=[2, 2]), {"x": IMAGE}),
    (9, node("OneHot", "i D V", "y"), {"i": np.array([1, 0]), "D": np.array(3), "V": floats(0, 1)}),
    (9, node("Compress", "x C", "y", axis=3), {"x": IMAGE, "C": np.array([True, False, True])}),
    (9, node("MaxUnpool", "x i", "y", kernel_shape=[2], strides=[2]),
     {"x": floats(3, 4).reshape(1, 1, 2), "i": np.array([[[1, 2]]])}),
]  # fmt: skip


@pytest.mark.parametrize("opset, made, inputs", CASES, ids=[f"{c[1].op_type}-{c[0]}-{i}" for i, c in enumerate(CASES)])
def test_old_forms_against_onnxruntime(opset, made, inputs):
    feeds = {k: np.asarray(v) for k, v in inputs.items() if k.islower()}
    constants = {k: v for k, v in inputs.items() if k.isupper()}
    outputs = [info(n, None, 7 if n == "z" else 1) for n in made.output]
    proto = model([made], [info(k, v.shape, number(v)) for k, v in feeds.items()], outputs, constants, opset=opset,
                  ir_version=7)  # fmt: skip
    expected = run_ort(proto, feeds)
    for got in (evaluate(proto, feeds), run_ort(roundtrip(proto), feeds)):
        for a, b in zip(got, expected, strict=True):
            assert a.dtype == b.dtype and a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_forms_that_onnxruntime_never_had():
    """Opset 1: factors by name, norms with a float, a pool over the whole image."""
    up = node("Upsample", "x", "y", height_scale=2.0, width_scale=1.0, mode="bilinear")
    by_name = model([up], [info("x", [1, 2, 4, 6])], [info("y", None)], opset=1, ir_version=3)
    linear = node("Upsample", "x", "y", scales=[1.0, 1.0, 2.0, 1.0], mode="linear")
    same = model([linear], [info("x", [1, 2, 4, 6])], [info("y", None)], opset=8, ir_version=7)
    np.testing.assert_allclose(evaluate(by_name, {"x": IMAGE})[0], run_ort(same, {"x": IMAGE})[0], rtol=1e-5)
    for op in ("GlobalLpPool", "LpPool"):
        whole = model([node(op, "x", "y", p=1.0)], [info("x", [1, 2, 4, 6])], [info("y", None)], opset=1, ir_version=3)
        np.testing.assert_allclose(evaluate(whole, {"x": IMAGE})[0], IMAGE.sum((2, 3), keepdims=True), rtol=1e-5)
    odd = model([node("LpPool", "x", "y", p=1.5)], [info("x", [1, 2, 4, 6])], [info("y", None)], opset=1, ir_version=3)
    with pytest.raises(sx.UnsupportedError, match="p = 1.5"):
        evaluate(odd, {"x": IMAGE})


# ---- dropout


def dropout(opset: int, inputs: str, outputs: str, constants: dict[str, Any], **attributes: Any) -> Any:
    kinds = {"x": 1, "r": 1, "t": 9}
    given = [info(n, [2000] if n == "x" else [], kinds[n]) for n in inputs.split() if n in kinds]
    mask = 9 if opset >= 10 else 1
    results = [info(n, [2000], mask if n == "m" else 1) for n in outputs.split()]
    return model([node("Dropout", inputs, outputs, **attributes)], given, results, constants, opset=opset, ir_version=7)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("ratio", [0.0, 0.25])
def test_dropout_with_the_mode_given_in_the_run(training, ratio):
    proto = dropout(13, "x r t", "y m", {}, seed=5)
    feeds = {"x": np.ones(2000, "f4"), "r": np.array(ratio, "f4"), "t": np.array(training)}
    y, mask = evaluate(proto, feeds)
    dropped = training and ratio > 0
    assert mask.mean() == 1 if not dropped else abs(mask.mean() - 0.75) < 0.05
    np.testing.assert_allclose(y, mask / (0.75 if dropped else 1), rtol=1e-6)
    again = roundtrip(proto)
    assert op_types(again) == ["Dropout"] and {a.name for a in again.graph.node[0].attribute} == {"seed"}
    if not dropped:
        assert run_ort(again, feeds)[0].tolist() == y.tolist()


@pytest.mark.parametrize("opset", [1, 6])
def test_dropout_in_training_by_default(opset):
    proto = dropout(opset, "x", "y m", {}, ratio=0.25)
    y, mask = evaluate(proto, {"x": np.ones(2000, "f4")})
    assert mask.dtype == np.float32 and abs(mask.mean() - 0.75) < 0.05
    np.testing.assert_allclose(y, mask / 0.75, rtol=1e-6)


def test_dropout_of_a_constant_mode_needs_no_random_numbers():
    for constants in ({"R": np.float32(0.5), "T": np.array(False)}, {"R": np.float32(0), "T": np.array(True)}):
        proto = dropout(13, "x R T", "y m", constants)
        assert "Dropout" not in op_types(roundtrip(proto))


# ---- random numbers


@pytest.mark.parametrize("opset", [18, 19, 28])
def test_the_function_of_an_operator_serves_later_opsets(opset):
    """ONNX has CenterCropPad's for opset 18 only."""
    made = node("CenterCropPad", "x s", "y", axes=[2, 3])
    proto = model([made], [info("x", [1, 2, 4, 6])], [info("y", None)], {"s": np.array([2, 8])}, opset=opset)
    want = np.pad(IMAGE[:, :, 1:3], ((0, 0), (0, 0), (0, 0), (1, 1)))
    assert evaluate(proto, {"x": IMAGE})[0].tolist() == want.tolist()


@pytest.mark.parametrize("op", ["RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli"])
def test_random_operators_are_drawn_and_exported(op):
    like = op.endswith("Like") or op == "Bernoulli"
    attributes: Any = {"seed": 3.0, "dtype": 11} if like else {"seed": 3.0, "shape": [50, 60]}
    proto = model(
        [node(op, "x" if like else "", "y", **attributes)], [info("x", ["n", 60])], [info("y", None, 11 if like else 1)]
    )
    feeds = {"x": np.full((50, 60), 0.25, "f4")}
    (got,) = evaluate(proto, feeds)
    assert got.shape == (50, 60) and got.dtype == (np.float64 if like else np.float32)
    mean = {"Bernoulli": 0.25}.get(op, 0.5 if "Uniform" in op else 0.0)
    assert abs(got.mean() - mean) < 0.1 and got.tolist() == evaluate(proto, feeds)[0].tolist()
    theirs = run_ort(roundtrip(proto), feeds)[0]
    assert theirs.dtype == got.dtype and theirs.shape == got.shape
    assert abs(theirs.mean() - mean) < 0.1 or op == "Bernoulli"  # onnxruntime has 0 and 1 the other way round
    assert op in op_types(roundtrip(proto))
    old = roundtrip(proto, opset_version=13)
    assert op in op_types(old) or "RandomUniformLike" in op_types(old)
    assert abs(run_ort(old, feeds)[0].mean() - mean) < 0.1


def test_optimisation_leaves_random_numbers_alone():
    nodes = [node("RandomUniform", "", n, shape=[4]) for n in "ab"]
    proto = model([*nodes, node("Sub", "a b", "y")], [info("x", [1])], [info("y", [4])])
    graph = sx.OnnxModel.from_proto(proto).compile()
    graph.optimize()
    out = [np.asarray(t) for t in graph.evaluate({"x": np.zeros(1, "f4")})][0]
    assert (out != 0).all()


# ---- what is refused


@pytest.mark.parametrize(
    "opset, made, text",
    [
        (11, node("Resize", "x r s", "y", coordinate_transformation_mode="tf_half_pixel_for_nn"), "floor only"),
        (1, node("Upsample", "x", "y", height_scale=2.0), "'width_scale' is missing"),
        (1, node("TopK", "x", "y z", k=-1), "'k' is -1"),
        (13, node("Resize", "x", "y"), "one of scales and sizes"),
        (20, node("DFT", "x", "y"), "the last extent is 6"),
        (13, node("EyeLike", "x", "y"), "rank 4"),
        (13, node("EyeLike", "x", "y", dtype=99), "99 is no element type"),
        (26, node("BitCast", "x", "y", to=0), "0 is no element type"),
    ],
)
def test_refusals_name_the_node(opset, made, text):
    made.name = "the node"
    inputs = [info("x", [1, 2, 4, 6]), info("r", [8]), info("s", [4])]
    outputs = [info(n, None, 7 if n == "z" else 1) for n in made.output]
    with pytest.raises(sx.SardonyxError, match=text) as caught:
        sx.OnnxModel.from_proto(model([made], inputs, outputs, opset=opset, ir_version=7)).compile()
    assert str(caught.value).startswith(f"node 'the node' ({made.op_type}): ")
