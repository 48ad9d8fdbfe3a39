"""Strings: constants, text, casts, ops that only move elements, and models that hold them."""

from typing import Any

import numpy as np
import onnx
import pytest
from ir_text import parse_module
from onnx import helper
from onnx_models import BOOL, FLOAT, INT64, evaluate, info, model, node, roundtrip, run_ort
from op_case import op, round_trip, value

import sardonyx as sx
from sardonyx.dialects.attributes import StringsAttr
from sardonyx.dialects.dtypes import DTYPES, DType
from sardonyx.dialects.evaluate import EvalContext, evaluate_op
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.strings import string_array

STRING = onnx.TensorProto.STRING
TEXTS = ["", "a", 'é"\\\n', "日本\x00", "%s {}"]


def cast(texts, to):
    made = op("cast").make(value("string", [len(texts)]), to=DTYPES[to])
    ctx = EvalContext({made.input: string_array(texts, (len(texts),))})
    evaluate_op(made, ctx)
    return ctx.values[made.output]


def test_constants_and_their_text():
    made = ConstantOp.dense(string_array(TEXTS, (5, 1)))
    assert str(made.output.type) == "tensor<5x1x!sx.string>" and made.array().tolist() == [[t] for t in TEXTS]
    module = parse_module("func.func @f() -> tensor<5x!sx.string> {\n" + str(ConstantOp.dense(
        string_array(TEXTS, (5,)))) + "\n func.return %0 : tensor<5x!sx.string> }")  # fmt: skip
    again = next(o for o in module.walk() if isinstance(o, ConstantOp))
    module.verify()
    assert again.value == StringsAttr(tuple(TEXTS)) and again.array().tolist() == TEXTS
    for text in ("tensor<4x!sx.string>", "tensor<5xf32>", "tensor<?x!sx.string>"):
        with pytest.raises(Exception, match=r"\(C1\)"):
            parse_module(str(module).replace("tensor<5x!sx.string>", text)).verify()


def test_strings_as_numbers_and_back():
    assert cast(["1.5", " -2e3 ", "INF", "-inf", "+Inf"], "float32").tolist() == [1.5, -2000, np.inf, -np.inf, np.inf]
    assert np.isnan(cast(["nan", "NaN"], "float64")).all()
    assert cast(["7", "-8", "1e3", "2.9"], "int64").tolist() == [7, -8, 1000, 2]
    assert cast(["0", "2", "True", "false"], "bool").tolist() == [False, True, True, False]
    assert cast(["255"], "uint8").dtype == np.uint8 and cast([], "int32").shape == (0,)
    assert cast(["0.1"], "bfloat16").dtype == DTYPES["bfloat16"].numpy
    refused = (("x", "float32"), ("", "int64"), ("256", "uint8"), ("-1", "uint64"), ("inf", "int32"), ("1_", "int8"))
    for text, to in refused:
        with pytest.raises(sx.SardonyxError, match=f"the string '{text}' is no {to}"):
            cast([text], to)
    for array, want in (
        (np.array([0.1, -0.0, np.nan, np.inf, -np.inf], "f4"), ["0.1", "-0.0", "NaN", "INF", "-INF"]),
        (np.array([-3, 2**62]), ["-3", str(2**62)]),
        (np.array([True, False]), ["True", "False"]),
    ):
        made = op("cast").make(value(DType.of(array.dtype), array.shape), to=DTYPES["string"])
        assert made.evaluate(EvalContext(), array)[0].tolist() == want and "!sx.string" in round_trip(made)


def texts_of(name: str, contents: Any) -> onnx.TensorProto:
    """A vector of strings, given as bytes."""
    return helper.make_tensor(name, STRING, [len(contents)], contents)


def text_model() -> onnx.ModelProto:
    made = [texts_of("k", [b"7", "ü".encode()])]
    then = helper.make_graph([node("Concat", "a k", "t", axis=0)], "then", [], [info("t", None, STRING)])
    other = helper.make_graph([node("Identity", "a", "e")], "else", [], [info("e", None, STRING)])
    body = helper.make_graph(
        [node("Identity", "go", "go2"), node("Concat", "v k", "v2", axis=0)],
        "body", [info("i", [], INT64), info("go", [], BOOL), info("v", None, STRING)],
        [info("go2", [], BOOL), info("v2", None, STRING)],
    )  # fmt: skip
    proto = model(
        [node("Identity", "x", "a"), node("If", "c", "b", then_branch=then, else_branch=other),
         node("Loop", "m _ b", "y", body=body), node("Gather", "k zero", "z"), node("Shape", "y", "n"),
         node("Cast", "s", "f", to=FLOAT)],
        [info("x", ["n"], STRING), info("c", [], BOOL), info("m", [], INT64), info("s", [2], STRING)],
        [info("y", None, STRING), info("z", [], STRING), info("n", [1], INT64), info("f", [2])], {"zero": np.array(0)},
    )  # fmt: skip
    proto.graph.initializer.extend(made)
    return proto


def test_models_with_strings():
    proto = text_model()
    x, s = np.array(["p", "q"], object), np.array(["1", "2.5"], object)
    feeds = {"x": x, "c": np.array(True), "m": np.array(2), "s": s}
    want = [["p", "q", "7", "ü", "7", "ü", "7", "ü"], "7", [8], [1, 2.5]]
    graph = sx.OnnxModel.from_proto(proto).compile()
    optimized = graph.clone()
    optimized.optimize()
    back = [roundtrip(proto), sx.OnnxModel.from_graph(optimized).to_proto()]
    assert [a.tolist() for a in evaluate(proto, feeds)] == want == [a.tolist() for a in run_ort(proto, feeds)]
    for each in back:
        assert [a.tolist() for a in run_ort(each, feeds)] == want
    assert [np.asarray(t).tolist() for t in optimized.evaluate(feeds)] == want
    assert optimized.evaluate(feeds)[0].dtype == "string"
    assert str(parse_module(str(graph))) + "\n" == str(graph)
    with pytest.raises(sx.UnsupportedError, match="the input 'x' is a string, which has no native form yet"):
        graph.finalize()
    graph.finalize(fallback=True)
    assert [np.asarray(t).tolist() for t in graph.run(feeds)] == want


def test_what_is_no_string_is_refused():
    graph = sx.OnnxModel.from_proto(text_model()).compile()
    given = {"x": np.array(["p"]), "c": np.array(True), "m": np.array(0), "s": ["1", "2"]}
    assert np.asarray(graph.evaluate(given)[0]).tolist() == ["p", "7", "ü"]
    for wrong in (np.array([1, 2]), np.array(["a", None], object)):
        with pytest.raises(sx.InvalidArgumentError, match="the input 'x' holds strings, but an element is of type"):
            graph.evaluate({**given, "x": wrong})
    with pytest.raises(sx.InvalidArgumentError, match="not a dtype"):
        sx.asarray(np.array(["a"], object))
    tensor = texts_of("k", [b"\xff"])
    proto = model([node("Identity", "k", "y")], [], [info("y", [1], STRING)])
    proto.graph.initializer.append(tensor)
    with pytest.raises(sx.InvalidArgumentError, match="initializer 'k': a string is no valid UTF-8"):
        sx.OnnxModel.from_proto(proto).compile()
    proto.graph.initializer[0].CopyFrom(texts_of("k", [b"a"]))
    proto.graph.initializer[0].string_data.append(b"b")
    with pytest.raises(sx.InvalidArgumentError, match="take 1 strings, but it holds 2"):
        sx.OnnxModel.from_proto(proto).compile()
