"""What an exported model states: opset, IR version, producer, metadata, types; and that it is checked."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx_models import BOOL, INT64, info, model, node, op_types, roundtrip, run_ort
from xdsl.dialects.builtin import UnrankedTensorType

import sardonyx as sx
from sardonyx.backends.onnx import build as build_module
from sardonyx.backends.onnx.check import ModelCheckError, check_model
from sardonyx.backends.onnx.options import ExportOptions
from sardonyx.backends.onnx.skeleton import ir_version_for
from sardonyx.backends.onnx.types import dim_text, value_info
from sardonyx.dialects.attributes import tensor_type
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import float32


def traced(fn, *specs):
    return sx.trace(fn, list(specs) or [sx.TensorSpec("x", sx.float32, [-1, 3], dim_names=["n", ""])]).graph


def opset_of(proto: onnx.ModelProto) -> int:
    return next(o.version for o in proto.opset_import if o.domain == "")


# ---- opset


def test_a_traced_graph_gets_opset_21():
    proto = sx.OnnxModel.from_graph(traced(lambda xs: [sx.relu(xs[0])])).to_proto()
    assert opset_of(proto) == 21 and proto.ir_version == 10


@pytest.mark.parametrize("own, expected", [(7, 21), (12, 21), (13, 13), (17, 17), (28, 28)])
def test_an_imported_graph_keeps_its_opset(own, expected):
    proto = model([node("Relu", "x", "y")], [info("x", [2])], [info("y", [2])], opset=own, ir_version=7)
    assert opset_of(roundtrip(proto)) == expected


def test_the_default_is_raised_to_the_lowest_that_states_the_graph():
    spec = sx.TensorSpec("x", sx.int8, [2])
    graph = traced(lambda xs: [sx.bitwise_left_shift(xs[0], xs[0])], spec)
    assert opset_of(sx.OnnxModel.from_graph(graph).to_proto()) == 28
    with pytest.raises(sx.UnsupportedError, match="cannot be stated in opset 21"):
        sx.OnnxModel.from_graph(graph, opset_version=21)
    proto = model([node("Pad", "x p", "y", mode="wrap")], [info("x", [4])], [info("y", [6])],
                  {"p": np.array([1, 1])}, opset=19)  # fmt: skip
    assert opset_of(roundtrip(proto)) == 19


@pytest.mark.parametrize("opset", range(13, 29))
def test_ir_versions_are_those_of_onnxs_table(opset):
    table = {row[2]: row[1] for row in onnx.helper.VERSION_TABLE}
    assert ir_version_for(opset) == min(ir for version, ir in table.items() if version == opset)
    graph = traced(lambda xs: [sx.relu(xs[0])])
    proto = sx.OnnxModel.from_graph(graph, opset_version=opset).to_proto()
    assert (opset_of(proto), proto.ir_version) == (opset, ir_version_for(opset))


# ---- options


def test_optimize_composes_transposes_and_drops_unread_nodes():
    def fn(xs):
        sx.exp(xs[0])
        return [sx.transpose(sx.relu(sx.transpose(xs[0], [1, 0])), [1, 0])]

    graph = traced(fn)
    before = str(graph)
    assert op_types(sx.OnnxModel.from_graph(graph).to_proto()) == ["Relu"]
    plain = op_types(sx.OnnxModel.from_graph(graph, optimize=False).to_proto())
    assert sorted(plain) == ["Exp", "Relu", "Transpose", "Transpose"]
    assert str(graph) == before


def test_producer():
    graph = traced(lambda xs: [sx.relu(xs[0])])
    proto = sx.OnnxModel.from_graph(graph).to_proto()
    assert (proto.producer_name, proto.producer_version) == ("sardonyx", sx.__version__)
    assert sx.OnnxModel.from_graph(graph, producer_name="mine").to_proto().producer_name == "mine"


def test_contrib_operators_are_imported_only_where_they_are_used():
    plain = model([node("Relu", "x", "y")], [info("x", [2])], [info("y", [2])], domains={"com.microsoft": 1})
    assert [o.domain for o in roundtrip(plain).opset_import] == [""]
    fancy = model([node("Fancy", "x", "y", domain="com.microsoft")], [info("x", [2])], [info("y", [2])],
                  domains={"com.microsoft": 1})  # fmt: skip
    assert {o.domain: o.version for o in roundtrip(fancy).opset_import} == {"": 21, "com.microsoft": 1}
    with pytest.raises(sx.UnsupportedError, match="node 'y': Fancy is an operator of com.microsoft"):
        roundtrip(fancy, contrib_ops=False)


# ---- what is declared


def test_metadata_and_doc_strings_survive():
    proto = model([node("Relu", "x", "y")], [info("x", [2])], [info("y", [2])], domain="my.models", model_version=7,
                  doc_string="what it does")  # fmt: skip
    proto.graph.doc_string = "the graph"
    proto.graph.name = "a graph/1"
    proto.graph.input[0].doc_string = "an input"
    proto.graph.output[0].doc_string = "an output"
    onnx.helper.set_model_props(proto, {"key with blanks": 'value "quoted"\n', "ünï": "码"})
    proto.graph.metadata_props.add(key="g", value="h")
    back = roundtrip(proto)
    for field in ("domain", "model_version", "doc_string"):
        assert getattr(back, field) == getattr(proto, field)
    assert (back.graph.doc_string, back.graph.name) == ("the graph", "a graph/1")
    assert (back.graph.input[0].doc_string, back.graph.output[0].doc_string) == ("an input", "an output")
    assert {p.key: p.value for p in back.metadata_props} == {"key with blanks": 'value "quoted"\n', "ünï": "码"}
    assert [p.value for p in back.graph.metadata_props] == ["h"]


def test_what_is_said_of_quantised_tensors_survives_where_they_do():
    proto = model([node("Relu", "x", "h"), node("Neg", "h", "y")], [info("x", [2])], [info("y", [2]), info("s", [])],
                  {"s": np.float32(0.5)})  # fmt: skip
    for tensor, parameter in (("x", "s"), ("h", "gone"), ("gone", "s")):
        said = proto.graph.quantization_annotation.add(tensor_name=tensor)
        said.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value=parameter)
    back = roundtrip(proto).graph.quantization_annotation
    assert list(back) == [proto.graph.quantization_annotation[0]]


def test_metadata_survives_text(tmp_path):
    proto = model([node("Relu", "x", "y")], [info("x", ["batch-size", 2])], [info("y", ["a b", 2])], {}, domain="d")
    onnx.helper.set_model_props(proto, {"a/b c": "1"})
    import pickle

    graph = sx.OnnxModel.from_proto(proto).compile()
    direct = sx.OnnxModel.from_graph(graph).to_proto()
    assert sx.OnnxModel.from_graph(pickle.loads(pickle.dumps(graph))).to_proto() == direct


def test_users_lines_end_in_node_metadata():
    graph = traced(lambda xs: [sx.relu(xs[0])])
    (made,) = sx.OnnxModel.from_graph(graph).to_proto().graph.node
    (entry,) = made.metadata_props
    assert entry.key == "sardonyx.location" and "test_build.py:" in entry.value
    (old,) = sx.OnnxModel.from_graph(graph, opset_version=17).to_proto().graph.node
    assert not old.metadata_props  # IR version 8 has none


@pytest.mark.parametrize(
    "dim, text",
    [(3, 3), ("n", "n"), ("batch size", "batch size"), (Dim.parse("2*n + m"), None), (Dim.symbol("?7"), None)],
)
def test_dims_in_onnx(dim, text):
    dim = Dim.of(dim)
    stated = dim_text(dim)
    assert stated == (str(dim) if text is None and "?" not in str(dim) else text)


def test_unranked_values_have_no_shape_and_rank_0_an_empty_one():
    unranked = value_info("x", UnrankedTensorType(float32.ir))
    assert not unranked.type.tensor_type.HasField("shape")
    scalar = value_info("x", tensor_type(float32, []))
    assert scalar.type.tensor_type.HasField("shape") and not scalar.type.tensor_type.shape.dim


def test_expressions_of_dims_come_back():
    def fn(xs):
        return [sx.concat([xs[0], xs[1]], axis=0)]

    graph = traced(fn, sx.TensorSpec("a", sx.float32, [-1, 2], dim_names=["past", ""]),
                   sx.TensorSpec("b", sx.float32, [-1, 2], dim_names=["seq", ""]))  # fmt: skip
    proto = sx.OnnxModel.from_graph(graph).to_proto()
    assert proto.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "past + seq"
    back = sx.OnnxModel.from_proto(proto).compile()
    assert back.output_specs() == graph.output_specs()
    (got,) = run_ort(proto, {"a": np.ones((1, 2), "f4"), "b": np.zeros((2, 2), "f4")})
    assert got.shape == (3, 2)


def test_declared_output_dims_stay_where_inference_knows_nothing():
    proto = model([node("Reshape", "x s", "y")], [info("x", ["n"]), info("s", [2], INT64)], [info("y", ["rows", 4])])
    dims = roundtrip(proto).graph.output[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in dims] == ["rows", 4]


def test_defaults_of_inputs_stay_inputs_and_initializers():
    proto = model(
        [node("Add", "x w", "y")], [info("x", [2]), info("w", [2])], [info("y", [2])], {"w": np.ones(2, "f4")}
    )
    back = roundtrip(proto)
    assert [v.name for v in back.graph.input] == ["x", "w"] and [t.name for t in back.graph.initializer] == ["w"]
    x = np.array([1, 2], "f4")
    np.testing.assert_array_equal(run_ort(back, {"x": x})[0], x + 1)
    np.testing.assert_array_equal(run_ort(back, {"x": x, "w": x})[0], x + x)


# ---- checks


def test_the_result_is_checked(monkeypatch):
    proto = model([node("Relu", "x", "y")], [info("x", [2])], [info("y", [3])])
    with pytest.raises(ModelCheckError, match="fails ONNX's check"):
        check_model(proto, {})
    with pytest.raises(ModelCheckError, match="fails ONNX's check.*Relu"):
        check_model(model([node("Relu", "x x", "y")], [info("x", [2])], [info("y", [2])]), {})
    graph = traced(lambda xs: [sx.relu(xs[0])])
    emit = build_module.emit

    def broken(*args):
        skeleton = emit(*args)
        skeleton.proto.graph.node[0].op_type = "Frobnicate"
        return skeleton

    monkeypatch.setattr(build_module, "emit", broken)
    with pytest.raises(ModelCheckError, match="Frobnicate") as caught:
        graph.export_onnx("/nowhere/m.onnx")
    assert caught.value.code_name == "INTERNAL"
    sx.OnnxModel.from_graph(graph, check=False)


def test_the_check_reads_no_large_weights():
    proto = model([node("Reshape", "x s", "y")], [info("x", [6])], [info("y", [2, 3])], {"s": np.zeros(2, "i8")})
    proto.graph.initializer[0].ClearField("raw_data")
    check_model(proto, {"s": np.array([2, 3])})
    with pytest.raises(ModelCheckError):
        check_model(proto, {"s": np.array([3, 3])})


def test_interfaces_without_rank_pass_the_check():
    proto = model([node("Relu", "x", "y")], [info("x", None)], [info("y", None)])
    back = roundtrip(proto)
    assert not back.graph.output[0].type.tensor_type.HasField("shape")
    np.testing.assert_array_equal(run_ort(back, {"x": np.array([[-1, 2]], "f4")})[0], [[0, 2]])


def test_values_without_rank_next_to_transposes_can_be_optimized():
    proto = model(
        [node("Exp", "x", "e"), node("Reshape", "e s", "r"), node("Transpose", "r", "t"), node("Add", "e z", "a")],
        [info("x", None), info("z", [2, 3])],
        [info("t", [3, 2]), info("a", None)],
        {"s": np.array([2, 3])},
    )
    feeds = {"x": np.ones((2, 3), "f4"), "z": np.ones((2, 3), "f4")}
    for got, expected in zip(run_ort(roundtrip(proto, optimize=True), feeds), run_ort(proto, feeds), strict=True):
        np.testing.assert_array_equal(got, expected)


def test_an_extent_beyond_int64_is_refused():
    proto = model(
        [node("MaxPool", "x", "y", kernel_shape=[1], pads=[2**62, 2**62])],
        [info("x", [1, 1, 2**62])],
        [info("y", [1, 1, "n"])],
    )
    with pytest.raises(sx.InvalidArgumentError):
        roundtrip(proto)


def test_options():
    options = ExportOptions.of("f", {"opset_version": 17, "save_as_external_data": None})
    assert options == ExportOptions(opset_version=17)
    with pytest.raises(TypeError, match=r"f\(\): optimize is a bool, not int"):
        ExportOptions.of("f", {"optimize": 1})
    with pytest.raises(TypeError, match=r"f\(\): save_as_external_data is a bool or None, not str"):
        ExportOptions.of("f", {"save_as_external_data": "yes"})
    with pytest.raises(TypeError, match="unexpected keyword argument 'opset'"):
        ExportOptions.of("f", {"opset": 17})


def test_every_dtype_passes_through():
    for dtype in (sx.bool_, sx.int8, sx.uint64, sx.float16, sx.bfloat16, sx.float64):
        graph = traced(lambda xs: [sx.reshape(xs[0], [3, 2])], sx.TensorSpec("x", dtype, [2, 3]))
        back = sx.OnnxModel.from_graph(graph).compile()
        assert back.outputs() == [(back.output_names()[0], dtype, (3, 2))]


def test_a_bool_output_is_bool():
    proto = model([node("Greater", "x x", "y")], [info("x", [2])], [info("y", [2], BOOL)])
    assert roundtrip(proto).graph.output[0].type.tensor_type.elem_type == BOOL


def test_long_vectors_are_checked_at_once():
    """ONNX's inference would follow the contents of this vector, element by element."""
    length = 1 << 40
    proto = model([node("Add", "x x", "y")], [info("x", [length])], [info("y", [length])])
    graph = sx.OnnxModel.from_proto(proto).compile()
    assert sx.OnnxModel.from_graph(graph).outputs()[0][2] == (length,)
