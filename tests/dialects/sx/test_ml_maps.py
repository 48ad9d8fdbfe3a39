"""Maps of ai.onnx.ml in the reference, held against onnxruntime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T, helper
from onnx_models import info, model, roundtrip

import sardonyx as sx
from sardonyx import OnnxModel

X = np.arange(6, dtype="f4").reshape(2, 3) / 8


def map_info(name: str, key: int, value: int, many: bool = False) -> onnx.ValueInfoProto:
    made = helper.make_map_type_proto(key, helper.make_tensor_type_proto(value, []))
    return onnx.ValueInfoProto(name=name, type=helper.make_sequence_type_proto(made) if many else made)


def one(op: str, given: onnx.ValueInfoProto, made: onnx.ValueInfoProto, **attributes: Any) -> onnx.ModelProto:
    made_node = helper.make_node(op, ["x"], ["y"], domain="ai.onnx.ml", name="it", **attributes)
    return model([made_node], [given], [made], domains={"ai.onnx.ml": 1}, ir_version=8, opset=15)


def run(proto: onnx.ModelProto, x: Any) -> Any:
    import onnxruntime

    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x})[0]


def test_zip_map() -> None:
    proto = one("ZipMap", info("x", ["n", 3]), map_info("y", T.INT64, T.FLOAT, True), classlabels_int64s=[5, 7, 9])
    wanted = run(proto, X)
    (found,) = OnnxModel.from_proto(proto).compile().evaluate([X])
    assert found == wanted == run(roundtrip(proto), X)
    assert found[1] == {5: 0.375, 7: 0.5, 9: 0.625}
    assert OnnxModel.from_proto(proto).compile().evaluate([X[:0]]) == [[]]
    single = one("ZipMap", info("x", [3]), map_info("y", T.INT64, T.FLOAT, True), classlabels_int64s=[5, 7, 9])
    assert OnnxModel.from_proto(single).compile().evaluate([X[0]])[0] == run(single, X[0])


def test_zip_map_refusals() -> None:
    made = map_info("y", T.INT64, T.FLOAT, True)
    for given, attributes, message in (
        (info("x", ["n", 4]), {"classlabels_int64s": [1, 2, 3]}, "C3"),
        (info("x", ["n", 3]), {}, "C2"),
        (info("x", ["n", 3], T.DOUBLE), {"classlabels_int64s": [1, 2, 3]}, "C1"),
    ):
        with pytest.raises(sx.SardonyxError, match=message):
            OnnxModel.from_proto(one("ZipMap", given, made, **attributes)).compile()
    proto = one("ZipMap", info("x", ["n", "c"]), made, classlabels_int64s=[1, 2, 3])
    with pytest.raises(sx.SardonyxError, match="C3"):
        OnnxModel.from_proto(proto).compile().evaluate([X[:, :2]])


def test_dict_vectorizer() -> None:
    given, made = map_info("x", T.INT64, T.FLOAT), info("y", [1, 4])
    proto = one("DictVectorizer", given, made, int64_vocabulary=[3, 1, 8, 2])
    x = {1: 0.5, 3: -2.0, 99: 7.0}
    (found,) = OnnxModel.from_proto(proto).compile().evaluate([x])
    np.testing.assert_array_equal(np.asarray(found), [[-2, 0.5, 0, 0]])
    np.testing.assert_array_equal(np.asarray(found), run(proto, x))
    np.testing.assert_array_equal(np.asarray(found), run(roundtrip(proto), x))


@pytest.mark.parametrize("cast, dtype", [("TO_FLOAT", T.FLOAT), ("TO_INT64", T.INT64)])
def test_cast_map(cast: str, dtype: int) -> None:
    x = {4: 1.0, 1: 2.0, 2: 5.0}
    for attributes, wanted in (({}, [[2, 5, 1]]), ({"map_form": "SPARSE", "max_map": 6}, [[0, 2, 5, 0, 1, 0]])):
        proto = one("CastMap", map_info("x", T.INT64, T.FLOAT), info("y", None, dtype), cast_to=cast, **attributes)
        (found,) = OnnxModel.from_proto(proto).compile().evaluate([x])
        np.testing.assert_array_equal(np.asarray(found), wanted)
    with pytest.raises(sx.SardonyxError, match="the key 4 is outside"):
        proto = one("CastMap", map_info("x", T.INT64, T.FLOAT), info("y", None), map_form="SPARSE", max_map=3)
        OnnxModel.from_proto(proto).compile().evaluate([x])


def test_maps_are_made_and_read_at_the_edges_of_native_code(tmp_path: Path) -> None:
    """`finalize()` takes them without being asked for the reference: only what makes and reads dicts is Python's."""
    scaled = helper.make_node("Mul", ["x", "x"], ["s"], name="square")
    zipped = helper.make_node("ZipMap", ["s"], ["y"], domain="ai.onnx.ml", name="zip", classlabels_int64s=[5, 7, 9])
    made = map_info("y", T.INT64, T.FLOAT, True)
    proto = model([scaled, zipped], [info("x", ["n", 3])], [made], domains={"ai.onnx.ml": 1}, ir_version=8, opset=15)
    graph = OnnxModel.from_proto(proto).compile()
    graph.finalize()
    assert [(f.op, f.location) for f in graph.fallbacks] == [("sx.zip_map", "node 'zip'")]
    assert graph.run([X])[0] == run(proto, X) == graph.run({"x": X})[0]
    assert graph.run([X[:0]]) == [[]]
    with pytest.raises(sx.UnsupportedError, match="zip") as refused:
        graph.profile([X])
    assert "OnnxModel.extract" in str(refused.value.hint)
    with pytest.raises(sx.UnsupportedError, match="C has no maps") as refused:
        sx.compile_to(graph, tmp_path / "net.o")
    assert "OnnxModel.extract" in str(refused.value.hint)
    before = OnnxModel.from_proto(proto).extract(["x"], ["s"]).compile()
    assert before.profile([X], runs=1).kernels and sx.compile_to(before, tmp_path / "net.o")

    read = helper.make_node("DictVectorizer", ["x"], ["v"], domain="ai.onnx.ml", name="read", int64_vocabulary=[3, 1])
    squared = helper.make_node("Mul", ["v", "v"], ["y"], name="square")
    given, out = map_info("x", T.INT64, T.FLOAT), info("y", [1, 2])
    proto = model([read, squared], [given], [out], domains={"ai.onnx.ml": 1}, ir_version=8, opset=15)
    graph = OnnxModel.from_proto(proto).compile()
    graph.finalize()
    assert [f.op for f in graph.fallbacks] == ["sx.dict_vectorizer"]
    np.testing.assert_array_equal(np.asarray(graph.run([{3: -2.0, 9: 1.0}])[0]), [[4, 0]])
    with pytest.raises(sx.InvalidArgumentError, match="is a dict"):
        graph.run([[1, 2]])


def test_maps_in_text_and_as_inputs() -> None:
    given, made = map_info("x", T.INT64, T.FLOAT), info("y", [1, 1])
    graph = OnnxModel.from_proto(one("DictVectorizer", given, made, int64_vocabulary=[3])).compile()
    assert "!sx.map<i64, tensor<f32>>" in graph.text()
    from op_case import _context
    from xdsl.parser import Parser

    again = Parser(_context(), graph.text()).parse_module()
    again.verify()
    with pytest.raises(sx.InvalidArgumentError, match=r"is a dict \(map\(int64, float32\)\), not list"):
        graph.evaluate([[1, 2]])
