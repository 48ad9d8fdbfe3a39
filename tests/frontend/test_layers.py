"""Layer networks: prediction, export as ONNX with the documented names, and what is refused before a file is opened."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from sardonyx import layers
from sardonyx.errors import FailedPreconditionError, InvalidArgumentError, SardonyxError, UnsupportedError

W1 = np.array([[0.5, -1.0], [2.0, 0.25], [-0.5, 1.5]])
B1 = np.array([0.1, -0.2, 0.3])
X = np.array([[1.0, 2.0], [-3.0, 0.5], [0.0, 0.0]])


def net(dtype: Any = np.float64, kind: type = layers.SeriesNetwork, **fc: Any) -> layers.Network:
    learned = {"weights": W1.astype(dtype), "bias": B1.astype(dtype)} | fc
    return kind(
        [
            layers.feature_input_layer(2, name="features"),
            layers.fully_connected_layer(3, name="fc", **learned),
            layers.relu_layer(name="relu"),
            layers.elu_layer(0.5, name="elu"),
            layers.softmax_layer(name="prob"),
            layers.classification_layer(name="class"),
        ]
    )


def expected(x: np.ndarray) -> np.ndarray:
    hidden = np.maximum(x @ W1.T + B1, 0)
    e = np.exp(hidden - hidden.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 1e-6)])
def test_a_network_predicts_natively_in_the_dtype_of_its_learnables(dtype: Any, tolerance: float) -> None:
    network = net(dtype)
    found = np.asarray(network.predict(X.astype(dtype)))
    assert found.dtype == dtype
    np.testing.assert_allclose(found, expected(X), rtol=tolerance)
    assert network.predict(np.zeros((0, 2), dtype)).shape == (0, 3)
    fc = network.layers[1]
    assert isinstance(fc, layers.FullyConnectedLayer)
    fc.bias[0] += dtype(1)  # learnables may be changed in place
    assert not np.allclose(np.asarray(network.predict(X.astype(dtype))), expected(X))


@pytest.mark.parametrize("opset", range(13, 21))
def test_the_export_has_the_documented_operators_names_and_dtypes(opset: int, tmp_path: Path) -> None:
    path = tmp_path / "network.onnx"
    layers.export_onnx_network(net(), path, OpsetVersion=opset)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert [o.version for o in model.opset_import] == [opset]
    assert [(n.op_type, n.name) for n in model.graph.node] == [
        ("Gemm", "fc"), ("Relu", "relu"), ("Elu", "elu"), ("Softmax", "prob")
    ]  # fmt: skip
    weights = {t.name: onnx.numpy_helper.to_array(t) for t in model.graph.initializer}
    assert list(weights) == ["fc_Weights", "fc_Bias"]
    np.testing.assert_array_equal(weights["fc_Weights"], W1)
    np.testing.assert_array_equal(weights["fc_Bias"], B1)
    assert {v.type.tensor_type.elem_type for v in (*model.graph.input, *model.graph.output)} == {
        onnx.TensorProto.DOUBLE
    }
    (given,) = model.graph.input
    assert given.name == "features" and [d.dim_param or d.dim_value for d in given.type.tensor_type.shape.dim] == [
        "batch",
        2,
    ]
    assert model.graph.output[0].name == "prob"


def test_the_exported_file_computes_the_same(tmp_path: Path) -> None:
    import onnxruntime

    path = tmp_path / "network.onnx"
    layers.export_onnx_network(net(np.float32), path)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    for rows in (1, 3):
        (found,) = session.run(None, {"features": X[:rows].astype(np.float32)})
        np.testing.assert_allclose(np.asarray(found), expected(X[:rows]), rtol=1e-5)


def test_options_in_both_spellings_and_the_same_bytes_each_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "1.onnx", tmp_path / "2.onnx"
    options = {"batch_size": 4, "input_names": ["in"], "output_names": "out"}
    layers.export_onnx_network(net(), one, **options)
    layers.export_onnx_network(net(), two, BatchSize=4, InputNames="in", OutputNames=["out"], Verbose=True)
    assert one.read_bytes() == two.read_bytes()
    assert "layers features, fc, relu, elu, prob, class" in capsys.readouterr().err
    graph = onnx.load(one).graph
    assert [v.name for v in (*graph.input, *graph.output)] == ["in", "out"]
    assert [d.dim_value for d in graph.output[0].type.tensor_type.shape.dim] == [4, 3]


def test_equal_learnables_of_two_layers_stay_two_initializers(tmp_path: Path) -> None:
    square = np.eye(2)
    network = layers.SeriesNetwork(
        [layers.feature_input_layer(2)]
        + [layers.fully_connected_layer(2, weights=square, bias=np.zeros(2)) for _ in range(2)]
    )
    layers.export_onnx_network(network, tmp_path / "n.onnx")
    names = [t.name for t in onnx.load(tmp_path / "n.onnx").graph.initializer]
    assert names == ["fc_Weights", "fc_Bias", "fc_1_Weights", "fc_1_Bias"]


def test_a_dlnetwork_initialises_what_is_missing_the_same_way_each_time() -> None:
    made = [layers.dlnetwork([layers.feature_input_layer(4), layers.fully_connected_layer(3)]) for _ in range(2)]
    a, b = (np.asarray(n.predict(np.ones((2, 4)))) for n in made)
    np.testing.assert_array_equal(a, b)
    assert np.abs(a).max() > 0


def test_a_dag_that_is_a_sequence_in_any_order_and_one_that_is_not(tmp_path: Path) -> None:
    parts = net().layers
    chain = [(a.name, b.name) for a, b in zip(parts, parts[1:])]
    shuffled = layers.DAGNetwork(parts[::-1], chain[::-1])
    np.testing.assert_allclose(np.asarray(shuffled.predict(X)), expected(X), rtol=1e-12)
    layers.export_onnx_network(shuffled, tmp_path / "dag.onnx")
    branched = layers.DAGNetwork(net().layers, [*chain, ("fc", "prob")])
    with pytest.raises(UnsupportedError, match="'fc' has several successors"):
        layers.export_onnx_network(branched, tmp_path / "x.onnx")
    circle = [("features", "fc"), ("relu", "elu"), ("elu", "relu"), ("prob", "class")]
    with pytest.raises(UnsupportedError, match="2 of them have no predecessor"):
        layers.DAGNetwork(net().layers, circle).check()
    with pytest.raises(UnsupportedError, match="some lie on a circle"):
        layers.DAGNetwork(net().layers, [*circle[:3], ("fc", "prob"), ("prob", "class")]).check()
    with pytest.raises(InvalidArgumentError, match="which the network has not"):
        layers.DAGNetwork(net().layers, [("fc", "nobody")])


class Dropout(layers.Layer):
    """A layer of somebody else."""


def series(*parts: layers.Layer) -> layers.Network:
    return layers.SeriesNetwork(parts)


INVALID, MISSING = InvalidArgumentError, FailedPreconditionError
FEATURES = layers.feature_input_layer
REFUSED: dict[str, tuple[Any, dict[str, Any], type[SardonyxError], str]] = {
    "unknown option": (net(), {"Opset": 13}, INVALID, "no option 'Opset'"),
    "given twice": (net(), {"OpsetVersion": 13, "opset_version": 13}, INVALID, "given twice"),
    "opset": (net(), {"opset_version": 12}, INVALID, "13 to 20, not 12"),
    "type of the opset": (net(), {"opset_version": "13"}, INVALID, "whole number"),
    "batch size": (net(), {"batch_size": 0}, INVALID, "at least 1, not 0"),
    "two inputs": (net(), {"InputNames": ["a", "b"]}, INVALID, "has 2 names"),
    "two outputs": (net(), {"output_names": ["a", "b"]}, INVALID, "has 2 names"),
    "no name": (net(), {"input_names": [3]}, INVALID, "a name, or a list of one"),
    "no network": ([layers.relu_layer()], {}, INVALID, "net is a network"),
    "weights' shape": (net(weights=W1.T), {}, INVALID, r"Weights have shape \[2, 3\], expected \[3, 2\]"),
    "bias' shape": (net(bias=np.zeros(2)), {}, INVALID, r"Bias have shape \[2\]"),
    "integers": (net(weights=W1.astype(int)), {}, INVALID, "Weights are int64"),
    "complex": (net(weights=W1 + 0j), {}, INVALID, "Weights are complex128"),
    "half": (net(np.float16), {}, INVALID, "Weights are float16"),
    "mixed dtypes": (net(bias=B1.astype(np.float32)), {}, INVALID, "Bias are float32, but"),
    "no array": (net(weights="heavy"), {}, INVALID, "Weights are str"),
    "missing": (net(weights=None), {}, MISSING, "Weights are missing"),
    "unsupported": (series(FEATURES(2), Dropout("d")), {}, UnsupportedError, "layer 'd': Dropout is no layer"),
    "no end": (series(FEATURES(2), layers.regression_layer(), layers.relu_layer()), {}, INVALID, "ends a network"),
    "no input": (series(layers.relu_layer()), {}, INVALID, "begins with a feature_input_layer"),
    "empty": (series(), {}, INVALID, "begins with a feature_input_layer"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_exported_is_refused_and_leaves_no_file(what: str, tmp_path: Path) -> None:
    network, options, kind, text = REFUSED[what]
    with pytest.raises(kind, match=text) as first:
        layers.export_onnx_network(network, tmp_path / "x.onnx", **options)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(kind) as second:
        layers.export_onnx_network(network, tmp_path / "x.onnx", **options)
    assert str(first.value) == str(second.value)  # errors are deterministic, too


def test_wrong_layers_and_networks() -> None:
    with pytest.raises(InvalidArgumentError, match="input_size is at least 1, not 0"):
        layers.feature_input_layer(0)
    with pytest.raises(InvalidArgumentError, match="output_size is an int, not float"):
        layers.fully_connected_layer(1.5)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidArgumentError, match=r"relu_layer\(\) has no option 'alpha'"):
        layers.relu_layer(alpha=1)
    with pytest.raises(InvalidArgumentError, match="two layers are called 'a'"):
        layers.SeriesNetwork([layers.relu_layer(name="a"), layers.elu_layer(Name="a")])
    with pytest.raises(InvalidArgumentError, match="entry 1 is no layer"):
        layers.SeriesNetwork([layers.relu_layer(), "relu"])  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidArgumentError, match="rank 1"):
        net().predict(np.ones(2))


def test_the_input_alone_and_a_regression(tmp_path: Path) -> None:
    network = layers.SeriesNetwork([layers.feature_input_layer(2, name="in"), layers.regression_layer()])
    np.testing.assert_array_equal(np.asarray(network.predict(X)), X)
    layers.export_onnx_network(network, tmp_path / "x.onnx")
    graph = onnx.load(tmp_path / "x.onnx").graph
    assert [n.op_type for n in graph.node] == ["Identity"] and graph.output[0].name == "output"
