"""Whatever a model says beside its computation survives a round trip, or a warning names it: field by field."""

from __future__ import annotations

import pickle

import numpy as np
import onnx
import pytest
from google.protobuf.message import Message
from onnx import helper, numpy_helper
from onnx_models import info, model, node, roundtrip
from xdsl.dialects.builtin import ArrayAttr, StringAttr

import sardonyx as sx
from sardonyx.backends.onnx.training import TRAINING


def said(message: Message, text: str) -> None:
    """Give a message a doc string and metadata of its own."""
    message.doc_string = f"doc of {text}"  # pyright: ignore[reportAttributeAccessIssue]
    message.metadata_props.add(key="key", value=f"metadata of {text}")  # pyright: ignore[reportAttributeAccessIssue]


def denoted(value: onnx.ValueInfoProto, *axes: str) -> None:
    value.type.denotation = f"TYPE OF {value.name}"
    for dim, axis in zip(value.type.tensor_type.shape.dim, axes, strict=True):
        if axis:
            dim.denotation = axis


def branch(name: str, op_type: str) -> onnx.GraphProto:
    made = helper.make_graph(
        [node(op_type, "w", f"{name}_t", f"{name}_1"), node("Add", f"{name}_t {name}_k", f"{name}_y", f"{name}_2")],
        name,
        [],
        [info(f"{name}_y", ["n", 3])],
        [numpy_helper.from_array(np.ones(3, np.float32), f"{name}_k")],
        value_info=[info(f"{name}_t", ["n", 3])],
    )
    for part in (made.output[0], made.initializer[0], made.value_info[0]):
        said(part, part.name)
    said(made, name)
    denoted(made.output[0], "ROWS", "")
    return made


def everything() -> onnx.ModelProto:
    """A model of IR version 13 in which every message has every field that a node's computation doesn't need."""
    nodes = [
        node("Relu", "x", "h", name="first"),
        node("NonZero", "h", "z", name="nonzero"),
        node("Add", "h k", "w", name="add"),
        node("If", "c", "y", name="choice", then_branch=branch("then", "Neg"), else_branch=branch("other", "Abs")),
        node("Mul", "w s", "q", name="mul"),
        node("Fancy", "q", "f", name="fancy", domain="acme", table=numpy_helper.from_array(np.ones(2, "f4"), "lut")),
        node(
            "Constant", "", "c0", name="made", value=numpy_helper.from_array(np.array([1, 2, 3], np.float32), "inner")
        ),
        node("Add", "q c0", "o", name="last"),
    ]
    proto = model(nodes, [info("x", ["n", 3]), info("c", [], onnx.TensorProto.BOOL), info("k", [3])],
                  [info("y", ["n", 3]), info("o", ["n", 3]), info("z", [2, "count"], onnx.TensorProto.INT64),
                   info("f", ["n", 3])], {"k": np.array([1, 2, 3], np.float32)}, opset=26, domains={"acme": 3},
                  ir_version=13)  # fmt: skip
    graph = proto.graph
    graph.value_info.extend([info("h", ["n", 3]), info("w", ["n", 3]), info("q", ["n", 3])])
    positions = numpy_helper.from_array(np.array([0, 2], np.int64), "s_indices")
    values = numpy_helper.from_array(np.array([2, -3], np.float32), "s")
    graph.sparse_initializer.add(values=values, indices=positions, dims=[3])
    for part in (*graph.input, *graph.output, *graph.value_info, *graph.initializer, *graph.node):
        said(part, part.name)
    said(graph.sparse_initializer[0].values, "s")
    said(graph, "graph")
    said(proto, "model")
    for value in (graph.input[0], graph.output[0], *graph.value_info):
        denoted(value, "ROWS", "COLUMNS")
    table = graph.node[5].attribute[0]
    table.doc_string = "doc of the table"
    said(table.t, "the table's tensor")
    quantised = graph.quantization_annotation.add(tensor_name="h")
    quantised.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="k")
    proto.domain, proto.model_version, graph.name = "my.models", 7, "all of it"
    proto.configuration.add(name="two", num_devices=2, device=["cpu:0", "cpu:1"])
    devices = graph.node[2].device_configurations.add(configuration_id="two", pipeline_stage=1)
    sharding = devices.sharding_spec.add(tensor_name="w", device=[0, 1])
    sharding.sharded_dim.add(axis=0).simple_sharding.add(num_shards=2, dim_value=4)
    sharding.index_to_device_group_map.add(key=-1, value=[0, 1])
    train(proto)
    return proto


def train(proto: onnx.ModelProto) -> None:
    """A step that takes a tenth of k's gradient off k, in a training information of a model of `k` and `y`."""
    step = proto.training_info.add()
    step.algorithm.CopyFrom(
        helper.make_graph(
            [
                helper.make_node("Gradient", ["k", "x"], ["dk"], domain="ai.onnx.preview.training", xs=["k"], y="o"),
                helper.make_node("Mul", ["dk", "rate"], ["part"]),
                helper.make_node("Sub", ["k", "part"], ["k_new"]),
            ],
            "step",
            [],
            [info("k_new", [3])],
            [numpy_helper.from_array(np.array(0.1, np.float32), "rate")],
        )
    )
    step.update_binding.add(key="k", value="k_new")
    proto.opset_import.add(domain="ai.onnx.preview.training", version=1)


def expected() -> onnx.ModelProto:
    """`everything()` as an export states it: the constant's node is an initializer, which says what the node said."""
    want = everything()
    made = next(n for n in want.graph.node if n.op_type == "Constant")
    tensor = want.graph.initializer.add()
    tensor.CopyFrom(made.attribute[0].t)
    tensor.name, tensor.doc_string = "c0", made.doc_string
    tensor.metadata_props.extend(made.metadata_props)
    want.graph.node.remove(made)
    return want


def ordered(proto: onnx.ModelProto) -> onnx.ModelProto:
    """A copy without the producer, and with what has no order sorted."""
    copy = onnx.ModelProto.FromString(proto.SerializeToString())
    copy.producer_name = copy.producer_version = ""
    for holder, part in ((copy.graph, "initializer"), (copy.graph, "value_info"), (copy, "opset_import")):
        entries = sorted(getattr(holder, part), key=lambda e: e.domain if part == "opset_import" else e.name)
        del getattr(holder, part)[:]
        getattr(holder, part).extend(entries)
    return copy


def test_every_field_survives() -> None:
    onnx.checker.check_model(everything())
    assert ordered(roundtrip(everything())) == ordered(expected())
    assert ordered(roundtrip(roundtrip(everything()))) == ordered(expected())


NOT_SAID = """
AttributeProto.floats .ints .graphs .tensors .sparse_tensor .sparse_tensors .tp .type_protos .ref_attr_name
.i .f TensorProto.float_data .int32_data .int64_data .string_data .double_data .uint64_data .external_data
.data_location .segment TypeProto.sequence_type .optional_type .map_type .sparse_tensor_type .opaque_type
NodeProto.overload ModelProto.functions .producer_name .producer_version TrainingInfoProto.initialization
.initialization_binding SimpleShardedDimProto.dim_param
"""
"""Fields that the model above leaves out: what a node computes, how a tensor is stored, other types, and functions."""


def test_the_fields_are_all_of_onnx() -> None:
    """What the model above fills in, and what is none of its notes, are all fields that ONNX has."""
    filled: set[tuple[str, str]] = set()
    known: set[tuple[str, str]] = set()
    stack: list[Message] = [everything()]
    while stack:
        message = stack.pop()
        name = message.DESCRIPTOR.name
        known.update((name, field.name) for field in message.DESCRIPTOR.fields)
        for field, value in message.ListFields():
            filled.add((name, field.name))
            if field.message_type is not None:
                stack.extend([value] if isinstance(value, Message) else value)
    left_out: set[tuple[str, str]] = set()
    holder = ""
    for word in NOT_SAID.split():
        holder, field = word.split(".") if word[0] != "." else (holder, word[1:])
        left_out.add((holder, field))
    assert known - filled == left_out


def test_notes_survive_text_and_pickles() -> None:
    graph = sx.OnnxModel.from_proto(everything()).compile()
    again = pickle.loads(pickle.dumps(graph))
    assert ordered(sx.OnnxModel.from_graph(again, optimize=False).to_proto()) == ordered(expected())


def small(opset: int = 21, ir_version: int = 13) -> onnx.ModelProto:
    """relu(x * k + k)"""
    made = [node("Mul", "x k", "h", "mul"), node("Add", "h k", "w", "add"), node("Relu", "w", "y", "relu")]
    return model(
        made, [info("x", ["n", 3])], [info("y", ["n", 3])], {"k": np.array([1, 2, 3], np.float32)}, opset, ir_version
    )


@pytest.mark.parametrize("opset", [17, 21])
def test_what_an_old_ir_version_cannot_say(opset: int) -> None:
    """A model's own IR version is kept where it says more than its opset's; a named opset has its own."""
    proto = small(opset)
    said(proto.graph.initializer[0], "k")
    said(proto.graph.node[0], "mul")
    again = roundtrip(proto)
    assert (again.ir_version, again.graph.initializer[0]) == (10, proto.graph.initializer[0])
    assert again.graph.node[0] == proto.graph.node[0]
    with pytest.warns(sx.OnnxLossWarning, match="metadata of 2 nodes, values and tensors is left out: IR version 9"):
        old = roundtrip(proto, opset_version=20)
    assert old.ir_version == 9 and old.graph.node[0].doc_string == "doc of mul"
    assert not old.graph.node[0].metadata_props and not old.graph.initializer[0].metadata_props


def test_devices_that_an_old_ir_version_has_not() -> None:
    proto = small(opset=26)
    proto.configuration.add(name="two", num_devices=2)
    proto.graph.node[1].device_configurations.add(configuration_id="two").sharding_spec.add(tensor_name="w")
    with pytest.warns(sx.OnnxLossWarning) as found:
        old = roundtrip(proto, opset_version=21)
    assert [str(w.message)[:60] for w in found] == [
        "node 'add': IR version 10 has no devices of nodes; they are ",
        "IR version 10 has no configurations of devices; the model's ",
    ]
    assert not old.configuration and not old.graph.node[1].device_configurations


def step(proto: onnx.ModelProto, read: str) -> onnx.ModelProto:
    """The model with a training step that takes the value `read` off `k`."""
    training = proto.training_info.add()
    training.algorithm.CopyFrom(
        helper.make_graph([node("Sub", f"k {read}", "k_new")], "step", [], [info("k_new", [3])])
    )
    training.update_binding.add(key="k", value="k_new")
    return proto


def test_training_information_is_kept_where_it_fits() -> None:
    proto = step(small(), "h")
    assert list(roundtrip(proto).training_info) == list(proto.training_info)
    assert list(roundtrip(proto, optimize=True).training_info) == list(proto.training_info)


def test_training_information_of_another_opset() -> None:
    with pytest.warns(sx.OnnxLossWarning, match="training information is left out: it is of opset 21, .* opset 18"):
        assert not roundtrip(step(small(), "h"), opset_version=18).training_info


def test_training_information_that_names_what_is_gone() -> None:
    graph = sx.OnnxModel.from_proto(step(small(), "unread")).compile()
    with pytest.warns(sx.OnnxLossWarning, match="it names 'unread', which the model has no more"):
        assert not sx.OnnxModel.from_graph(graph).to_proto().training_info


def test_training_information_that_is_damaged() -> None:
    graph = sx.OnnxModel.from_proto(step(small(), "h")).compile()
    with graph.edit() as module:
        module.attributes[TRAINING] = ArrayAttr([StringAttr("?")])
    with pytest.raises(sx.InvalidArgumentError, match="training information is damaged"):
        sx.OnnxModel.from_graph(graph)


def test_what_has_no_place_is_named() -> None:
    proto = small()
    proto.graph.node[0].op_type, proto.graph.node[0].domain = "f", "mine"
    function = helper.make_function("mine", "f", ["a", "b"], ["c"], [node("Mul", "a b", "c")], list(proto.opset_import))
    proto.functions.append(function)
    proto.opset_import.add(domain="mine", version=1)
    roundtrip(proto)  # nothing is said of it
    proto.functions[0].doc_string = "twice"
    with pytest.warns(sx.OnnxLossWarning, match="function 'f' is put in the place of its calls"):
        roundtrip(proto)
    unknown = small()
    unknown.graph.node[0].MergeFromString(b"\xa2\x06\x03abc")  # field 100
    with pytest.warns(sx.OnnxLossWarning, match="a NodeProto has the field 100, which ONNX") as found:
        roundtrip(unknown)
    assert found[0].filename.endswith("onnx_models.py")  # the line of the call, not one of ours


def test_one_name_in_two_graphs() -> None:
    """What is said of a name that two branches have is not given to either."""
    branches = [helper.make_graph([node(op, "x", "r")], op, [], [info("r", [2])]) for op in ("Neg", "Abs")]
    branches[1].output[0].doc_string = "of the second"
    proto = model([node("If", "c", "y", then_branch=branches[0], else_branch=branches[1])],
                  [info("c", [], onnx.TensorProto.BOOL), info("x", [2])], [info("y", [2])])  # fmt: skip
    with pytest.warns(sx.OnnxLossWarning, match="what is said of 'r' is left out"):
        again = roundtrip(proto)
    assert [a.g.name for a in again.graph.node[0].attribute] == ["Abs", "Neg"]


@pytest.mark.parametrize("linear", [True, False])
def test_sparse_initializers(linear: bool) -> None:
    at = np.array([1, 5], np.int64) if linear else np.array([[0, 1], [1, 2]], np.int64)
    proto = model([node("Add", "x s", "y")], [info("x", [2, 3])], [info("y", [2, 3])])
    values, where = (
        numpy_helper.from_array(a, n) for a, n in ((np.array([4, -0.0], np.float32), "s"), (at, "s_indices"))
    )
    proto.graph.sparse_initializer.add(values=values, indices=where, dims=[2, 3])
    again = roundtrip(proto)
    assert again.graph.sparse_initializer == proto.graph.sparse_initializer and not again.graph.initializer


def test_types_of_values_are_stated_where_the_model_states_them() -> None:
    proto = small()
    assert not roundtrip(proto).graph.value_info
    proto.graph.value_info.extend([info("h", ["n", 3]), info("w", ["n", 3])])
    assert list(roundtrip(proto).graph.value_info) == list(proto.graph.value_info)
    chain = [node("NonZero", "x", "z"), node("Cast", "z", "f", to=1), node("Neg", "f", "g"), node("Abs", "g", "y")]
    proto = model(chain, [info("x", ["n", 3])], [info("y", None)])
    proto.graph.value_info.append(info("z", [2, "found"], onnx.TensorProto.INT64))
    assert list(roundtrip(proto).graph.value_info) == list(proto.graph.value_info)  # one of three: no others


@pytest.mark.parametrize("opset", range(1, 13))
def test_old_opsets_say_things_too(opset: int) -> None:
    """ONNX's table of IR versions lacks some of them; the export is of a newer opset, whose IR version has metadata."""
    proto = model([node("Neg", "x", "y")], [info("x", [2])], [info("y", [2])], opset=opset)
    said(proto.graph.node[0], "neg")
    assert roundtrip(proto).graph.node[0].metadata_props == proto.graph.node[0].metadata_props
