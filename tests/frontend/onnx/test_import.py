"""Models as graphs: names, dims, initializers, functions, branches, unknown operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import FLOAT, INT64, evaluate, info, model, node, op_types, roundtrip, run_ort
from xdsl.dialects.builtin import UnrankedTensorType

import sardonyx as sx
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.module import input_values, output_values
from sardonyx.frontend.onnx.importer import import_model
from sardonyx.frontend.onnx.types import dim_of


def compiled(proto: onnx.ModelProto) -> sx.ModelGraph:
    graph = sx.OnnxModel.from_proto(proto).compile()
    graph.module.verify()
    return graph


# ---- dims


@pytest.mark.parametrize(
    "stated, dim",
    [
        (3, Dim.of(3)),
        (0, Dim.of(0)),
        (-1, None),
        ("batch", Dim.symbol("batch")),
        ("batch size", Dim.symbol("batch size")),
        ("batch-size", Dim.symbol("batch-size")),
        ("s0//2", Dim.symbol("s0//2")),
        ("2*seq", Dim.symbol("seq") * 2),
        ("past + seq", Dim.symbol("past") + Dim.symbol("seq")),
        ("past+1", Dim.symbol("past") + 1),
        ("n - 1", Dim.symbol("n") - 1),
        ("floordiv(", Dim.symbol("floordiv(")),
        ("7", Dim.symbol("7")),
        ("?", None),
        ("", None),
        (None, None),
    ],
)
def test_declared_dims(stated, dim):
    proto = onnx.TensorShapeProto.Dimension()
    if isinstance(stated, int):
        proto.dim_value = stated
    elif stated is not None:
        proto.dim_param = stated
    assert dim_of(proto) == dim


def test_inputs_that_share_a_dim_share_it():
    proto = model([node("Add", "a b", "y")], [info("a", ["n", 2]), info("b", ["n", 2])], [info("y", ["n", 2])])
    graph = compiled(proto)
    assert graph.inputs() == [("a", sx.float32, (-1, 2)), ("b", sx.float32, (-1, 2))]
    assert [s.dim_names for s in (*graph.input_specs(), *graph.output_specs())] == [["n", ""]] * 3
    with pytest.raises(sx.InvalidArgumentError, match="n"):
        graph.evaluate([np.ones((1, 2), "f4"), np.ones((3, 2), "f4")])


def test_question_marks_are_not_one_dim():
    proto = model([node("Neg", "a", "y"), node("Neg", "b", "z")], [info("a", ["?"]), info("b", ["?"])],
                  [info("y", ["?"]), info("z", ["?"])])  # fmt: skip
    got = evaluate(proto, {"a": np.ones(2, "f4"), "b": np.ones(3, "f4")})
    assert [g.shape for g in got] == [(2,), (3,)]
    dims = [v.type.tensor_type.shape.dim[0] for v in roundtrip(proto).graph.input]
    assert all(not d.HasField("dim_param") and not d.HasField("dim_value") for d in dims)


def test_an_input_without_a_shape_has_no_rank():
    proto = model([node("Relu", "x", "y")], [info("x", None)], [info("y", None)])
    graph = compiled(proto)
    assert isinstance(input_values(graph.module)[0].type, UnrankedTensorType)
    assert graph.inputs() == [("x", sx.float32, None)]
    for shape in ((), (2,), (2, 3)):
        assert np.asarray(graph.evaluate([np.ones(shape, "f4")])[0]).shape == shape


def test_shape_computations_keep_their_dims():
    proto = model(
        [
            node("Shape", "x", "s"),
            node("Gather", "s zero", "n"),
            node("Concat", "n minus", "t", axis=0),
            node("Reshape", "x t", "y"),
        ],
        [info("x", ["batch", "seq", 4])],
        [info("y", None)],
        {"zero": np.array([0]), "minus": np.array([-1])},
    )
    assert [str(d) for d in compiled(proto).output_specs()[0].dim_names][0] == "batch"


def test_declared_types_are_held_against_what_follows():
    proto = model([node("Shape", "x", "y")], [info("x", [2])], [info("y", [1], FLOAT)])
    with pytest.raises(sx.InvalidArgumentError, match="output 'y' is declared as float32, but is int64"):
        compiled(proto)
    assert compiled(model([node("Shape", "x", "y")], [info("x", [2])], [info("y", None, INT64)]))


def test_a_default_has_the_shape_of_its_input():
    def proto(*dims):
        return model([node("Neg", "x", "y")], [info("x", dims)], [info("y", None)], {"x": np.ones((2, 3), "f4")})

    assert compiled(proto(2, 3)) and compiled(proto("n", 3))
    for dims in ((3, 2), (6,), ("n", 2)):
        with pytest.raises(sx.InvalidArgumentError, match=r"initializer 'x' has the shape \[2, 3\], but the input"):
            compiled(proto(*dims))


def test_axes_of_a_huge_length_are_refused_at_once():
    proto = model(
        [node("Unsqueeze", "x axes", "y")], [info("x", [3]), info("axes", [2**63 - 1], INT64)], [info("y", None)]
    )
    with pytest.raises(sx.SardonyxError, match="node 'y'.* the result would have the rank"):
        compiled(proto)


@pytest.mark.parametrize("kind", ["sparse_tensor", "complex", "none"])
def test_inputs_that_are_not_supported_yet(kind):
    value = info("x", [2])
    if kind == "sparse_tensor":
        value.type.CopyFrom(helper.make_sparse_tensor_type_proto(FLOAT, [2]))
    elif kind == "complex":
        value = info("x", [2], onnx.TensorProto.COMPLEX64)
    else:
        value.ClearField("type")
    proto = model([node("Identity", "x", "y")], [value], [info("y", None)])
    error = sx.InvalidArgumentError if kind == "none" else sx.UnsupportedError
    with pytest.raises(error, match="input 'x'"):
        sx.OnnxModel.from_proto(proto).compile()


# ---- initializers


def test_initializers_are_small_constants_or_weights():
    big = np.arange(300, dtype="f4")
    proto = model([node("Add", "x small", "t"), node("Add", "t big", "y")], [info("x", [1])], [info("y", [300])],
                  {"small": np.ones(1, "f4"), "big": big})  # fmt: skip
    graph = compiled(proto)
    assert [w.key for w in graph.store] == ["big"] and 'sx.weight<"big">' in str(graph)
    np.testing.assert_array_equal(evaluate(proto, {"x": np.zeros(1, "f4")})[0], big + 1)


def test_an_initializer_that_is_an_input_is_a_default_since_ir_4():
    for ir, names in ((3, ["x"]), (4, ["x", "w"])):
        proto = model([node("Add", "x w", "y")], [info("x", [2]), info("w", [2])], [info("y", [2])],
                      {"w": np.array([1, 2], "f4")}, opset=8, ir_version=ir)  # fmt: skip
        graph = compiled(proto)
        assert [s.name for s in graph.input_specs()] == names and [n for n, *_ in graph.inputs()] == ["x"]
        x = np.ones(2, "f4")
        assert np.asarray(graph.evaluate({"x": x})[0]).tolist() == [2, 3]
        if ir == 4:
            assert np.asarray(graph.evaluate({"x": x, "w": x})[0]).tolist() == [2, 2]


def test_the_default_of_an_input_is_not_taken_for_a_constant():
    proto = model([node("Reshape", "x s", "y")], [info("x", [6]), info("s", [2], INT64)], [info("y", ["a", "b"])],
                  {"s": np.array([2, 3])})  # fmt: skip
    graph = compiled(proto)
    assert graph.outputs()[0][2] == (-1, -1)
    x = np.arange(6, dtype="f4")
    assert np.asarray(graph.evaluate({"x": x})[0]).shape == (2, 3)
    assert np.asarray(graph.evaluate({"x": x, "s": np.array([3, 2])})[0]).shape == (3, 2)


def test_outputs_that_are_inputs_or_initializers():
    proto = model([node("Neg", "x", "y")], [info("x", [2])], [info("y", [2]), info("x", [2]), info("w", [1])],
                  {"w": np.ones(1, "f4")})  # fmt: skip
    got = evaluate(proto, {"x": np.array([1, 2], "f4")})
    assert [g.tolist() for g in got] == [[-1, -2], [1, 2], [1]]


def test_empty_names_are_no_values():
    proto = model([node("Clip", "x _ hi", "y"), node("MaxPool", "p", "q _", kernel_shape=[2])],
                  [info("x", [3]), info("p", [1, 1, 3])], [info("y", [3]), info("q", [1, 1, 2])],
                  {"hi": np.float32(1)})  # fmt: skip
    feeds = {"x": np.array([-5, 0, 5], "f4"), "p": np.array([[[1, 3, 2]]], "f4")}
    assert [g.tolist() for g in evaluate(proto, feeds)] == [[-5, 0, 1], [[[3, 3]]]]
    back = roundtrip(proto)
    assert [list(n.input) for n in back.graph.node][0] == ["x", "", "hi"]
    np.testing.assert_array_equal(run_ort(back, feeds)[0], [-5, 0, 1])


# ---- functions


def scaled() -> onnx.FunctionProto:
    """b = Elu(a * k) with the attribute alpha (default 2), k optional."""
    ops = [helper.make_opsetid("", 18)]
    nodes = [helper.make_node("Mul", ["a", "k"], ["t"], name="mul"), helper.make_node("Elu", ["t"], ["b"], name="elu")]
    nodes[1].attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT))
    made = helper.make_function("loc", "scaled", ["a", "k"], ["b"], nodes, ops)
    made.attribute_proto.append(helper.make_attribute("alpha", 2.0))
    return made


def test_model_functions_are_put_in_place():
    outer = helper.make_function("loc", "twice", ["p", "q"], ["r"],
                                 [node("scaled", "p q", "m", domain="loc", name="one", alpha=1.0),
                                  node("scaled", "m q", "r", domain="loc", name="two")],
                                 [helper.make_opsetid("", 18), helper.make_opsetid("loc", 1)])  # fmt: skip
    proto = model([node("twice", "x w", "y", domain="loc", name="call")], [info("x", [3])], [info("y", [3])],
                  {"w": np.float32(0.5)}, domains={"loc": 1}, functions=[scaled(), outer])  # fmt: skip
    x = np.array([-2, 0, 4], "f4")

    def elu(v, alpha):
        return np.where(v < 0, alpha * (np.exp(v) - 1), v)

    np.testing.assert_allclose(evaluate(proto, {"x": x})[0], elu(elu(x / 2, 1.0) / 2, 2.0), rtol=1e-6)
    back = roundtrip(proto)
    assert op_types(back) == ["Mul", "Elu", "Mul", "Elu"] and not back.functions
    assert [n.name for n in back.graph.node] == ["call/one/mul", "call/one/elu", "call/two/mul", "call/two/elu"]
    assert [n.output[0] for n in back.graph.node] == ["call/one/t", "call/m", "call/two/t", "y"]
    np.testing.assert_allclose(run_ort(back, {"x": x})[0], run_ort(proto, {"x": x})[0], rtol=1e-6)


def test_functions_that_grow_without_bound_are_refused():
    ops = [helper.make_opsetid("", 21), helper.make_opsetid("loc", 1)]
    functions = [helper.make_function("loc", "f0", ["a"], ["b"], [node("Neg", "a", "b")], ops)]
    for level in range(1, 40):
        body = [node(f"f{level - 1}", "a", "t", domain="loc"), node(f"f{level - 1}", "t", "b", domain="loc")]
        functions.append(helper.make_function("loc", f"f{level}", ["a"], ["b"], body, ops))
    proto = model([node("f39", "x", "y", domain="loc")], [info("x", [2])], [info("y", [2])], domains={"loc": 1},
                  functions=functions)  # fmt: skip
    from sardonyx.frontend.onnx import importer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importer, "MAX_NODES", 2000)
        with pytest.raises(sx.UnsupportedError, match="more than 2000 nodes"):
            compiled(proto)


def test_a_deep_chain_of_functions_is_refused():
    ops = [helper.make_opsetid("", 21), helper.make_opsetid("loc", 1)]
    functions = [helper.make_function("loc", "f0", ["a"], ["b"], [node("Neg", "a", "b")], ops)]
    for level in range(1, 3000):
        functions.append(
            helper.make_function("loc", f"f{level}", ["a"], ["b"], [node(f"f{level - 1}", "a", "b", domain="loc")], ops)
        )
    proto = model([node("f2999", "x", "y", domain="loc")], [info("x", [2])], [info("y", [2])], domains={"loc": 1},
                  functions=functions)  # fmt: skip
    with pytest.raises(sx.UnsupportedError, match="nested more than 64 deep"):
        compiled(proto)


def test_operators_that_onnx_defines_by_a_function():
    """RotaryEmbedding and Attention are no ops of ours: their bodies stand in their places."""
    rng = np.random.default_rng(3)
    q, k, v = (rng.normal(size=(1, 2, 3, 4)).astype("f4") for _ in range(3))
    shapes = [info(n, [1, 2, 3, 4]) for n in "qkv"]
    proto = model(
        [node("Attention", "q k v", "y", is_causal=1, name="att")], shapes, [info("y", [1, 2, 3, 4])], opset=23
    )
    scores = q.astype("f8") @ k.transpose(0, 1, 3, 2) / 2 + np.triu(np.full((3, 3), -np.inf), 1)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    expected = weights / weights.sum(-1, keepdims=True) @ v
    np.testing.assert_allclose(evaluate(proto, {"q": q, "k": k, "v": v})[0], expected, rtol=1e-4, atol=1e-5)
    back = roundtrip(proto)
    assert "Attention" not in op_types(back) and all(n.name.startswith("att/") for n in back.graph.node[:-1])
    np.testing.assert_allclose(run_ort(back, {"q": q, "k": k, "v": v})[0], expected, rtol=1e-4, atol=1e-5)


# ---- branches


def test_a_branch_with_a_known_condition_is_put_in_place():
    then = helper.make_graph([node("Mul", "x k", "r")], "then", [], [info("r", None)],
                             [numpy_helper.from_array(np.array(2, np.float32), "k")])  # fmt: skip
    other = helper.make_graph([node("Mul", "x k", "s")], "else", [], [info("s", None)],
                              [numpy_helper.from_array(np.array(3, np.float32), "k")])  # fmt: skip
    proto = model([node("If", "yes", "y", then_branch=then, else_branch=other, name="a"),
                   node("If", "no", "z", then_branch=then, else_branch=other, name="b")],
                  [info("x", [2])], [info("y", None), info("z", None)],
                  {"yes": np.array(True), "no": np.array(False)})  # fmt: skip
    got = evaluate(proto, {"x": np.array([1, 2], "f4")})
    assert [g.tolist() for g in got] == [[2, 4], [3, 6]]
    assert [t.name for t in roundtrip(proto).graph.initializer] == ["yes", "no", "a/k", "b/k"]


# ---- unknown operators


def unknown(**changes: Any) -> onnx.ModelProto:
    attributes: dict[str, Any] = {
        "k": -3, "f": 1.5, "s": "hé", "ints": [1, 2], "floats": [0.5], "strings": ["a", "b c"],
        "t": numpy_helper.from_array(np.arange(3), "t"), "big": numpy_helper.from_array(np.arange(900.0), "big"),
    }  # fmt: skip
    made = node("Foo", "x _ w", "a b", domain="my.dom", name="foo/1", **attributes)
    proto = model([made, node("Relu", "a", "y")], [info("x", ["n", 2])], [info("y", ["n", 2])],
                  {"w": np.arange(400, dtype="f4")}, domains={"my.dom": 4}, **changes)  # fmt: skip
    proto.graph.value_info.extend([info("a", ["n", 2]), info("b", None, INT64)])
    return proto


def test_unknown_operators_come_out_unchanged():
    proto = unknown()
    back = roundtrip(proto)
    mine, theirs = back.graph.node[0], proto.graph.node[0]
    assert (mine.op_type, mine.domain, mine.name) == ("Foo", "my.dom", "foo/1")
    assert list(mine.input) == list(theirs.input) and list(mine.output) == list(theirs.output)
    values = {a.name: helper.get_attribute_value(a) for a in mine.attribute}
    for attribute in theirs.attribute:
        expected = helper.get_attribute_value(attribute)
        if isinstance(expected, onnx.TensorProto):
            np.testing.assert_array_equal(
                numpy_helper.to_array(values[attribute.name]), numpy_helper.to_array(expected)
            )
        else:
            assert values[attribute.name] == expected
    assert {o.domain: o.version for o in back.opset_import} == {"": 21, "my.dom": 4}
    assert roundtrip(back) == back


def test_unknown_operators_live_in_the_ir():
    graph = compiled(unknown())
    text = str(graph)
    assert "sx.opaque %x, _, %" in text and 'op_type = "Foo"' in text and "absent = array<i64: 1>" in text
    with pytest.raises(sx.UnsupportedError, match="node 'foo/1'.*my.dom.Foo is unknown"):
        graph.evaluate([np.ones((1, 2), "f4")])
    with pytest.raises(sx.UnsupportedError):
        graph.finalize()
    graph.optimize()
    assert "sx.opaque" in str(graph)


def test_unread_unknown_operators_are_removed_and_equal_ones_stay_apart():
    made = [node("Draw", "x", name, domain="d") for name in ("a", "b", "c")]
    proto = model([*made, node("Sub", "a b", "y")], [info("x", [2])], [info("y", [2])], domains={"d": 1})
    proto.graph.value_info.extend([info(n, [2]) for n in "abc"])
    graph = compiled(proto)
    graph.optimize()
    assert op_types(sx.OnnxModel.from_graph(graph).to_proto()) == ["Draw", "Draw", "Sub"]


def test_importing_leaves_the_proto_alone_and_shares_no_state():
    proto = model([node("Relu", "t", "y"), node("Neg", "x", "t")], [info("x", [2])], [info("y", [2])])
    loaded = sx.OnnxModel.from_proto(proto)
    first, second = loaded.compile(), loaded.compile()
    first.optimize("remove-dead-nodes")
    assert str(second) and output_values(first.module)[0] is not output_values(second.module)[0]
    module, store = import_model(loaded.to_proto())
    module.verify()
    assert len(store) == 0
