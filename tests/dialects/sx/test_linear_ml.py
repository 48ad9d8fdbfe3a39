"""Linear models, support vector machines, features and labels of ai.onnx.ml, held against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import evaluate, info, model, roundtrip, run_onnx, run_ort

import sardonyx as sx
from sardonyx import OnnxModel

RNG = np.random.default_rng(5)
X = np.round(RNG.normal(size=(9, 4)), 2)
TRANSFORMS = ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"]
PARAMS = [0.3, 0.5, 3.0]
COEFFICIENTS = np.round(RNG.normal(size=12) / 4, 3).tolist()


def number(array: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(np.asarray(array).dtype)


def one(op: str, feeds: dict[str, Any], outputs: str = "y", types: str = "float", version: int = 3, **attributes: Any):
    """A model of one node whose batch is a symbol; the outputs' types by name."""
    made = helper.make_node(op, list(feeds), outputs.split(), domain="ai.onnx.ml", name="it")
    for name, value in attributes.items():
        given = numpy_helper.from_array(value, "") if isinstance(value, np.ndarray) else value
        if given is not None:
            made.attribute.append(helper.make_attribute(name, given))
    known = {"float": 1, "int64": 7, "double": 11, "int32": 6, "string": 8}
    outs = [info(n, None, known[t]) for n, t in zip(outputs.split(), types.split())]
    ins = [info(k, ["n" if a.ndim > 1 else len(a), *a.shape[1:]], number(a)) for k, a in feeds.items()]
    return model([made], ins, outs, domains={"ai.onnx.ml": version}, ir_version=8)


def agree(op: str, feeds: dict[str, Any], rtol: float = 1e-5, **options: Any) -> list[Any]:
    """Ours and ours exported again (by onnxruntime) are what onnxruntime computes; natively where we can."""
    proto = one(op, feeds, **options)
    wanted = run_ort(proto, feeds)
    ours = evaluate(proto, feeds)
    for a, b, c in zip(ours, wanted, run_ort(roundtrip(proto), feeds), strict=True):
        assert a.dtype == b.dtype == c.dtype and a.shape == b.shape == c.shape
        np.testing.assert_allclose(a, b, rtol=rtol, atol=max(1e-5, rtol / 10))
        np.testing.assert_allclose(c, b, rtol=rtol, atol=max(1e-5, rtol / 10))
    return ours


def natively(op: str, feeds: dict[str, Any], **options: Any) -> None:
    graph = OnnxModel.from_proto(one(op, feeds, **options)).compile()
    wanted = graph.evaluate(dict(feeds))
    graph.finalize()
    for a, b in zip(graph.run(dict(feeds)), wanted, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8", "i8", "i4"])
def test_scaler(dtype: str) -> None:
    feeds = {"x": (X * 3).astype(dtype)}
    agree("Scaler", feeds, offset=[0.5], scale=[2.0])
    agree("Scaler", feeds, offset=[0.5, -1.0, 0.0, 2.0], scale=[2.0, 0.1, 1.0, -3.0])


@pytest.mark.parametrize("norm", ["MAX", "L1", "L2"])
@pytest.mark.parametrize("dtype", ["f4", "f8", "i8"])
def test_normalizer(norm: str, dtype: str) -> None:
    x = (X * 3).astype(dtype)
    x[2] = 0
    agree("Normalizer", {"x": x}, norm=norm)


def test_binarizer_and_imputer() -> None:
    agree("Binarizer", {"x": X.astype("f4")}, threshold=0.25)
    x = X.astype("f4")
    x[::3] = np.nan
    agree("Imputer", {"x": x}, imputed_value_floats=[9.0], replaced_value_float=float("nan"))
    agree("Imputer", {"x": x}, imputed_value_floats=[9.0, 8, 7, 6], replaced_value_float=float("nan"))
    whole = (X * 2).astype("i8")
    agree("Imputer", {"x": whole}, types="int64", imputed_value_int64s=[9, 8, 7, 6], replaced_value_int64=1)


def test_columns() -> None:
    agree("ArrayFeatureExtractor", {"x": X.astype("f4"), "at": np.array([3, 0, 3])})
    agree("ArrayFeatureExtractor", {"x": X[0].astype("f4"), "at": np.array([1])})
    agree("ArrayFeatureExtractor", {"x": X.astype("i8"), "at": np.array([2, 1])}, types="int64")
    feeds = {"a": X.astype("f4"), "b": X[:, :2].astype("f4")}
    agree("FeatureVectorizer", feeds, inputdimensions=[4, 2])
    cut = evaluate(one("FeatureVectorizer", feeds, inputdimensions=[3, 4]), feeds)[0]
    np.testing.assert_array_equal(cut, np.concatenate([feeds["a"][:, :3], feeds["b"], np.zeros((9, 2), "f4")], 1))


def test_one_hot() -> None:
    agree("OneHotEncoder", {"x": np.array([[1, 5], [9, 3]])}, cats_int64s=[9, 1, 3], zeros=1)
    agree("OneHotEncoder", {"x": np.array([1.7, 9.0, 2.0], "f4")}, cats_int64s=[9, 1, 3], zeros=1)
    agree("OneHotEncoder", {"x": np.array([1, 9, 3])}, cats_int64s=[9, 1, 3], zeros=0)
    with pytest.raises(sx.SardonyxError, match=r"\(C2\) .7. is of no category"):
        evaluate(one("OneHotEncoder", {"x": np.array([1, 7])}, cats_int64s=[9, 1, 3], zeros=0), {"x": np.array([1, 7])})


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_linear_regressor(transform: str) -> None:
    scale = {"PROBIT": 0.1}.get(transform, 1)
    x = (X * scale).astype("f4")
    middle = [0.5] if transform == "PROBIT" else [0.25]
    agree("LinearRegressor", {"x": x}, rtol=1e-3, coefficients=COEFFICIENTS[:4], intercepts=middle,
          post_transform=transform)  # fmt: skip
    agree("LinearRegressor", {"x": x}, rtol=1e-3, coefficients=COEFFICIENTS, intercepts=middle * 3, targets=3,
          post_transform=transform)  # fmt: skip


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_linear_classifier(transform: str) -> None:
    scale = 0.1 if transform == "PROBIT" else 1
    options = {"outputs": "l y", "types": "int64 float", "post_transform": transform, "rtol": 1e-3}
    middle = 0.5 if transform == "PROBIT" else 0.25
    for dtype in ("f4", "f8"):
        x = {"x": (X * scale).astype(dtype)}
        agree("LinearClassifier", x, coefficients=COEFFICIENTS, intercepts=[middle] * 3, classlabels_ints=[7, 8, 9],
              **options)  # fmt: skip
        if transform != "PROBIT":
            agree("LinearClassifier", x, coefficients=COEFFICIENTS[:4], intercepts=[middle], classlabels_ints=[7, 8],
                  **options)  # fmt: skip


def svm(kernel: str, classes: int, proba: bool, transform: str = "NONE") -> dict[str, Any]:
    rng = np.random.default_rng(classes)
    per_class = [2, 3, 1][:classes]
    total, pairs = sum(per_class), classes * (classes - 1) // 2
    out: dict[str, Any] = {
        "coefficients": rng.normal(size=(classes - 1) * total).round(2).tolist(),
        "support_vectors": rng.normal(size=total * 4).round(2).tolist(),
        "vectors_per_class": per_class, "rho": rng.normal(size=pairs).round(2).tolist(), "kernel_type": kernel,
        "kernel_params": PARAMS, "classlabels_ints": [11, 12, 13][:classes], "post_transform": transform,
    }  # fmt: skip
    if proba:
        out |= {"prob_a": (-rng.random(pairs) - 0.5).tolist(), "prob_b": rng.normal(size=pairs).round(2).tolist()}
    return out


@pytest.mark.parametrize("proba", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_svm_classifier(kernel: str, classes: int, proba: bool) -> None:
    agree("SVMClassifier", {"x": X.astype("f4")}, rtol=2e-3, outputs="l y", types="int64 float",
          **svm(kernel, classes, proba))  # fmt: skip


@pytest.mark.parametrize("transform", ["SOFTMAX", "LOGISTIC"])
def test_svm_transforms(transform: str) -> None:
    for classes in (2, 3):
        for proba in (False, True):
            agree("SVMClassifier", {"x": X.astype("f8")}, rtol=2e-3, outputs="l y", types="int64 float",
                  **svm("RBF", classes, proba, transform))  # fmt: skip
    agree("SVMClassifier", {"x": X.astype("f4")}, outputs="l y", types="int64 float", rho=[0.25], kernel_params=PARAMS,
          coefficients=COEFFICIENTS, classlabels_ints=[4, 5, 6], post_transform=transform)  # fmt: skip


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_svm_regressor(kernel: str) -> None:
    vectors = RNG.normal(size=12).round(2).tolist()
    for one_class in (0, 1):
        agree("SVMRegressor", {"x": X.astype("f4")}, rtol=1e-4, coefficients=[0.5, -1.5, 2.0], support_vectors=vectors,
              rho=[0.3], kernel_type=kernel, kernel_params=PARAMS, n_supports=3, one_class=one_class)  # fmt: skip
    agree("SVMRegressor", {"x": X.astype("f4")}, coefficients=[0.5, -1.5, 2.0, 1.0], rho=[0.3], n_supports=0,
          kernel_params=PARAMS)  # fmt: skip


def test_label_encoder() -> None:
    x = np.array([[3, 1], [7, -4]])
    agree("LabelEncoder", {"x": x}, types="int64", keys_int64s=[1, 3, -4], values_int64s=[10, 30, 40])
    agree("LabelEncoder", {"x": x}, keys_int64s=[1, 3], values_floats=[0.5, 1.5], default_float=9.25)
    floats = np.array([np.nan, 1.5, -0.0, 7], "f4")
    proto = one("LabelEncoder", {"x": floats}, keys_floats=[1.5, float("nan"), 0.0], values_floats=[1.0, 2.0, 3.0])
    np.testing.assert_array_equal(evaluate(proto, {"x": floats})[0], [2, 1, 3, 0])  # NaN is a key like others
    proto = one("LabelEncoder", {"x": x.astype("i4")}, types="double", version=4,
                keys_tensor=np.array([1, 7], "i4"), values_tensor=np.array([0.1, 0.7]),
                default_tensor=np.array([-1.0]))  # fmt: skip
    wanted = [[-1, 0.1], [0.7, -1]]
    np.testing.assert_array_equal(evaluate(proto, {"x": x.astype("i4")})[0], wanted)
    again = roundtrip(proto)
    assert again.opset_import[-1] == helper.make_opsetid("ai.onnx.ml", 4)
    np.testing.assert_array_equal(run_onnx(again, {"x": x.astype("i4")})[0], wanted)


def test_compositions_run_natively() -> None:
    x = {"x": X.astype("f4")}
    natively("Scaler", x, offset=[0.5, -1.0, 0.0, 2.0], scale=[2.0, 0.1, 1.0, -3.0])
    natively("Normalizer", x, norm="L2")
    natively("LinearClassifier", x, outputs="l y", types="int64 float", coefficients=COEFFICIENTS,
             intercepts=[0.1, 0.2, 0.3], classlabels_ints=[7, 8, 9], post_transform="SOFTMAX_ZERO")  # fmt: skip
    natively("OneHotEncoder", {"x": np.array([[1, 5], [9, 3]])}, cats_int64s=[9, 1, 3], zeros=1)


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_svms_run_natively(kernel: str) -> None:
    x, two = {"x": X.astype("f4")}, {"outputs": "l y", "types": "int64 float"}
    vectors = RNG.normal(size=12).round(2).tolist()
    natively("SVMRegressor", x, coefficients=[0.5, -1.5, 2.0], support_vectors=vectors, rho=[0.3], kernel_type=kernel,
             kernel_params=PARAMS, n_supports=3, one_class=int(kernel == "POLY"))  # fmt: skip
    classes, transform = (2, "LOGISTIC") if kernel in ("LINEAR", "RBF") else (3, "SOFTMAX")
    natively("SVMClassifier", x, **two, **svm(kernel, classes, kernel in ("RBF", "SIGMOID"), transform))


def test_encoders_run_natively() -> None:
    x = np.array([[3, 1], [7, -4]])
    natively("LabelEncoder", {"x": x}, types="int64", keys_int64s=[1, 3, -4, 3], values_int64s=[10, 30, 40, 50])
    floats = np.array([np.nan, 1.5, -0.0, 7], "f4")
    natively("LabelEncoder", {"x": floats}, keys_floats=[1.5, float("nan"), 0.0], values_floats=[1.0, 2.0, 3.0])
    natively("OneHotEncoder", {"x": np.array([[1.0, 5], [9, 3]])}, cats_int64s=[9, 1, 3], zeros=1)
    with pytest.raises(sx.SardonyxError, match="'5' is of no category"):
        natively("OneHotEncoder", {"x": np.array([[1.0, 5], [9, 3]])}, cats_int64s=[9, 1, 3], zeros=0)


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("LinearRegressor", {"coefficients": [1.0, 2, 3]}, "features"),
    ("LinearRegressor", {"coefficients": [1.0, 2, 3, 4], "intercepts": [1.0, 2]}, "intercepts"),
    ("LinearRegressor", {"coefficients": [1.0, 2, 3, 4], "post_transform": "TANH"}, "TANH"),
    ("LinearClassifier", {"coefficients": [1.0, 2, 3, 4]}, "one of 'classlabels_ints'"),
    ("LinearClassifier", {"coefficients": [1.0] * 12, "intercepts": [0.0] * 3, "classlabels_ints": [1, 2]}, "labels"),
    ("Scaler", {"scale": [1.0, 2.0]}, "2 values for 4 features"),
    ("Normalizer", {"norm": "L7"}, "L7"),
    ("SVMRegressor", {"coefficients": [1.0], "n_supports": 3, "support_vectors": [1.0] * 4, "rho": [0.1]}, "C3"),
    ("SVMClassifier", {"coefficients": [1.0] * 4, "rho": [0.1], "classlabels_ints": [1, 2, 3]}, "C3"),
    ("SVMClassifier", {"coefficients": [1.0] * 4, "rho": [0.1], "classlabels_ints": [1, 2], "kernel_type": "X"}, "C3"),
]  # fmt: skip


@pytest.mark.parametrize("op, attributes, message", BAD, ids=[f"{op}-{m}" for op, _, m in BAD])
def test_refusals(op: str, attributes: dict[str, Any], message: str) -> None:
    two = op.endswith("Classifier")
    proto = one(op, {"x": X.astype("f4")}, "l y" if two else "y", "int64 float" if two else "float", **attributes)
    with pytest.raises(sx.SardonyxError, match=message) as caught:
        OnnxModel.from_proto(proto).compile()
    assert "it" in str(caught.value)


def test_label_encoder_refusals() -> None:
    x = {"x": np.array([1, 2])}
    bad: list[dict[str, Any]] = [
        {"keys_int64s": [1, 2], "values_int64s": [1]},
        {"keys_int64s": [1, 2]},
        {"keys_int64s": [1, 2], "values_int64s": [1, 2], "values_floats": [1.0, 2.0]},
        {"keys_floats": [1.0], "values_floats": [2.0]},
    ]
    for attributes in bad:
        with pytest.raises(sx.SardonyxError, match=r"\(C[12]\)"):
            OnnxModel.from_proto(one("LabelEncoder", x, **attributes)).compile()


def test_declared_types(tmp_path: Any) -> None:
    """What is exported has the declared types, and ONNX's checker takes it."""
    proto = one("SVMClassifier", {"x": X.astype("f4")}, "l y", "int64 float", **svm("RBF", 3, True))
    OnnxModel.from_graph(OnnxModel.from_proto(proto).compile()).save(tmp_path / "m.onnx")
    onnx.checker.check_model(str(tmp_path / "m.onnx"), full_check=True)


# ---- strings


def texts(*values: str) -> Any:
    return np.array(values, object)


def in_ort(proto: Any, feeds: dict[str, Any]) -> list[Any]:
    import onnxruntime

    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return list(session.run(None, feeds))


def same_texts(op: str, x: Any, types: str, outputs: str = "y", judged: bool = True, **options: Any) -> list[Any]:
    """Ours, and onnxruntime on the model and on what we write again, give the same."""
    made = helper.make_node(op, ["x"], outputs.split(), domain="ai.onnx.ml", name="it")
    version = options.pop("version", 3)
    for name, value in options.items():
        made.attribute.append(helper.make_attribute(name, value))
    known = {"float": 1, "int64": 7, "string": 8}
    kind = onnx.TensorProto.STRING if x.dtype == object else number(x)
    outs = [info(n, None, known[t]) for n, t in zip(outputs.split(), types.split())]
    proto = model([made], [info("x", ["n", *x.shape[1:]], kind)], outs, domains={"ai.onnx.ml": version}, ir_version=8)
    ours = [np.asarray(t) for t in OnnxModel.from_proto(proto).compile().evaluate({"x": x})]
    for runner in (lambda: in_ort(proto, {"x": x}), lambda: in_ort(roundtrip(proto), {"x": x})):
        for a, b in zip(ours, runner() if judged else run_onnx(roundtrip(proto), {"x": x}), strict=True):
            assert a.shape == b.shape
            if a.dtype == object:
                assert a.tolist() == b.tolist()
            else:
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)
    return ours


def test_labels_are_texts() -> None:
    x = X.astype("f4")
    names: dict[str, Any] = {"classlabels_strings": ["a", "bé", "c"]}
    scores: dict[str, Any] = {"coefficients": COEFFICIENTS, "intercepts": [0.1, 0.2, 0.3]}
    same_texts("LinearClassifier", x, "string float", "l y", **scores, **names)
    two: dict[str, Any] = {"coefficients": COEFFICIENTS[:4], "intercepts": [0.1], "classlabels_strings": ["no", "yes"]}
    same_texts("LinearClassifier", x, "string float", "l y", **two)
    machine = svm("RBF", 3, False)
    del machine["classlabels_ints"]
    same_texts("SVMClassifier", x, "string float", "l y", **machine, **names)


def test_texts_are_encoded() -> None:
    x = texts("b", "a", "zz", "b")
    same_texts("LabelEncoder", x, "int64", keys_strings=["a", "b"], values_int64s=[7, 9], default_int64=-3)
    same_texts("LabelEncoder", x, "string", keys_strings=["a", "b"], values_strings=["B", "A"], default_string="?")
    same_texts("LabelEncoder", np.array([1, 2, 5]), "string", keys_int64s=[1, 2], values_strings=["x", "y"])
    same_texts("CategoryMapper", x, "int64", cats_strings=["a", "b"], cats_int64s=[7, 9], default_int64=-3)
    same_texts("CategoryMapper", np.array([7, 8]), "string", cats_strings=["a", "b"], cats_int64s=[7, 9])
    same_texts("OneHotEncoder", x, "float", cats_strings=["a", "b"], zeros=1)
    tensor = onnx.TensorProto(data_type=onnx.TensorProto.STRING, dims=[2], string_data=[b"a", b"b"])
    default = onnx.TensorProto(data_type=onnx.TensorProto.STRING, dims=[1], string_data=[b"?"])
    made = same_texts("LabelEncoder", np.array([1, 2, 5]), "string", version=4, judged=False, values_tensor=tensor,
                      keys_int64s=[1, 2], default_tensor=default)  # fmt: skip
    assert made[0].tolist() == ["a", "b", "?"]


def test_columns_of_texts() -> None:
    proto = one("ArrayFeatureExtractor", {"x": np.zeros((2, 3), "f4"), "at": np.array([2, 0])})
    for value in (proto.graph.input[0], proto.graph.output[0]):
        value.type.tensor_type.elem_type = onnx.TensorProto.STRING
    x = texts(*"abcdef").reshape(2, 3)
    found = OnnxModel.from_proto(proto).compile().evaluate({"x": x, "at": np.array([2, 0])})
    assert np.asarray(found[0]).tolist() == [["c", "a"], ["f", "d"]]
