"""Models with branches, loops, scans, sequences and optionals: imported, run, and exported again.

The judge is onnxruntime, on the model as it was and on what comes out of Sardonyx, plain and optimised.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import BOOL, FLOAT, INT64, info, model, node, op_types, roundtrip

import sardonyx as sx

T, F = np.array(True), np.array(False)
X = np.array([1.5, -2], "f4")


def graph(
    nodes: list[onnx.NodeProto], inputs: Any, outputs: Any, name: str = "body", **weights: Any
) -> onnx.GraphProto:
    made = [numpy_helper.from_array(np.asarray(a), n) for n, a in weights.items()]
    return helper.make_graph(nodes, name, inputs, outputs, made)


def sequence(name: str, dtype: int = FLOAT) -> onnx.ValueInfoProto:
    return helper.make_tensor_sequence_value_info(name, dtype, None)


def plain(value: Any) -> Any:
    return [plain(v) for v in value] if isinstance(value, list) else None if value is None else np.asarray(value)


def ort(proto: onnx.ModelProto, feeds: dict[str, Any]) -> list[Any]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return [plain(v) for v in session.run(None, feeds)]


def same(got: Any, want: Any) -> None:
    if isinstance(want, list):
        assert isinstance(got, list) and len(got) == len(want)
        for a, b in zip(got, want):
            same(a, b)
        return
    assert got.dtype == want.dtype and got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=1e-6)


def check(proto: onnx.ModelProto, *runs: dict[str, Any], native: bool = True) -> sx.ModelGraph:
    """Reference, native code, the round trip and the optimised round trip agree with onnxruntime; returns the graph.

    All ops are `native`, or the reference runs some.
    """
    compiled = sx.OnnxModel.from_proto(proto).compile()
    compiled.module.verify()
    optimized = compiled.clone()
    optimized.optimize()
    optimized.module.verify()
    out = [roundtrip(proto), sx.OnnxModel.from_graph(optimized).to_proto()]
    assert roundtrip(out[0]) == out[0], "a second time round changes nothing"
    hybrid = compiled.clone()
    hybrid.finalize(fallback=True)
    refused = [fallback.reason for fallback in getattr(hybrid.compiled, "fallbacks", ())]
    assert bool(refused) != native, refused
    for feeds in runs:
        want = ort(proto, feeds)
        for each in (compiled, optimized):
            for a, b in zip([plain(v) for v in each.evaluate(feeds)], want, strict=True):
                same(a, b)
        for a, b in zip([plain(v) for v in hybrid.run(feeds)], want, strict=True):
            same(a, b)
        for each in out:
            for a, b in zip(ort(each, feeds), want, strict=True):
                same(a, b)
    return compiled


# ---- branches


def test_branches_read_outer_values_at_any_depth_and_may_shadow_names():
    inner_then = graph([node("Mul", "t x", "r")], [], [info("r", [2])])  # t of the branch around
    inner_else = graph([node("Add", "t k", "r")], [], [info("r", [2])])  # k of the model
    then = graph(
        [node("Exp", "x", "t"), node("If", "d", "u", then_branch=inner_then, else_branch=inner_else)],
        [], [info("u", [2])],
    )  # fmt: skip
    other = graph([node("Neg", "t", "u")], [], [info("u", [2])])
    proto = model([node("Mul", "x x", "t0"), node("Add", "t0 k", "t9"), node("If", "c", "y", then_branch=then,
                  else_branch=graph(

        [node("Neg", "t9", "u")], [], [info("u", [2])]))], [info("x", [2]), info("c", [], BOOL), info("d", [], BOOL)],
        [info("y", [2])], {"k": np.array([1, 2], "f4")})  # fmt: skip
    check(proto, *({"x": X, "c": c, "d": d} for c in (T, F) for d in (T, F)))
    # a branch that calls a value of its own like one outside: onnxruntime refuses it, we read each scope by itself
    shadow = model([node("Mul", "x x", "t"), node("If", "c", "y", then_branch=then, else_branch=other)],
                   [info("x", [2]), info("c", [], BOOL), info("d", [], BOOL)], [info("y", [2])],
                   {"k": np.array([1, 2], "f4")})  # fmt: skip
    held = sx.OnnxModel.from_proto(shadow).compile()
    got = held.evaluate({"x": X, "c": T, "d": T})[0]
    np.testing.assert_allclose(np.asarray(got), np.exp(X) * X, rtol=1e-6)
    names = [n for g in all_graphs(roundtrip(shadow).graph) for each in g.node for n in each.output]
    assert len(names) == len(set(names))
    same(ort(roundtrip(shadow), {"x": X, "c": F, "d": T}), [-(X * X)])


def all_graphs(outermost: onnx.GraphProto) -> list[onnx.GraphProto]:
    found, stack = [], [outermost]
    while stack:
        at = stack.pop()
        found.append(at)
        stack.extend(a.g for n in at.node for a in n.attribute if a.type == onnx.AttributeProto.GRAPH)
    return found


def test_branches_that_result_in_outer_values_constants_and_the_same_value_twice():
    then = graph([node("Identity", "x", "a")], [], [info("a", [2]), info("w", [2]), info("a", [2])], w=np.ones(2, "f4"))
    other = graph([node("Constant", "", "k", value=numpy_helper.from_array(np.array([5, 6], "f4")))], [],
                  [info("k", [2]), info("k", [2]), info("k", [2])])  # fmt: skip
    proto = model([node("Neg", "x", "n"), node("If", "c", "p q r", then_branch=then, else_branch=other)],
                  [info("x", [2]), info("c", [], BOOL)],
                      [info("p", [2]), info("q", [2]), info("r", [2]), info("n", [2])])  # fmt: skip
    held = sx.OnnxModel.from_proto(proto).compile()
    for c, want in ((T, [X, np.ones(2), X, -X]), (F, [[5, 6], [5, 6], [5, 6], -X])):
        for got, expected in zip(held.evaluate({"x": X, "c": c}), want, strict=True):
            np.testing.assert_array_equal(np.asarray(got), expected)
        for got, expected in zip(ort(roundtrip(proto), {"x": X, "c": c}), want, strict=True):
            np.testing.assert_array_equal(got, expected)


def test_a_known_condition_takes_the_branch_at_once():
    then, other = (graph([node(op, "x", "r")], [], [info("r", [2])]) for op in ("Neg", "Abs"))
    known = [node("Shape", "x", "s"), node("Size", "s", "z"), node("Equal", "z one", "c")]
    proto = model([*known, node("If", "c", "y", then_branch=then, else_branch=other)], [info("x", [2])],
                  [info("y", [2])], {"one": np.array(1)})  # fmt: skip
    assert "If" not in op_types(roundtrip(proto)) and "Neg" in op_types(roundtrip(proto))
    check(proto, {"x": X})


def test_weights_in_bodies_are_written_once_and_outside(tmp_path):
    w = np.arange(600, dtype="f4")
    branch = graph([node("Add", "x w", "r")], [], [info("r", [600])], w=w)
    proto = model([node("If", "c", "y", then_branch=branch, else_branch=branch)],
                  [info("x", [600]), info("c", [], BOOL)], [info("y", [600])])  # fmt: skip
    check(proto, {"x": w, "c": T})
    sx.OnnxModel.from_proto(proto).compile().export_onnx(tmp_path / "m.onnx", save_as_external_data=True)
    assert (tmp_path / "m_data").stat().st_size == w.nbytes
    same(ort(onnx.load(tmp_path / "m.onnx"), {"x": w, "c": F}), [2 * w])


# ---- loops and scans


def test_loops_with_captures_rows_and_shapes_that_change():
    inner = graph([node("Identity", "g2", "go3"), node("Add", "q x", "q2")],
                  [info("j", [], INT64), info("g2", [], BOOL), info("q", [2])], [info("go3", [], BOOL),
                      info("q2", [2])])  # fmt: skip
    body = graph(
        [node("Identity", "go", "go2"), node("Concat", "v x", "v2", axis=0),
         node("Loop", "i go p", "p2", body=inner), node("Identity", "i", "row")],
        [info("i", [], INT64), info("go", [], BOOL), info("v", None), info("p", [2])],
        [info("go2", [], BOOL), info("v2", None), info("p2", [2]), info("row", [], INT64)],
    )  # fmt: skip
    proto = model([node("Loop", "m c x x", "v9 p9 rows", body=body)],
                  [info("m", [], INT64), info("c", [], BOOL), info("x", [2])],
                  [info("v9", [None]), info("p9", [2]), info("rows", [None], INT64)])  # fmt: skip
    runs = [{"m": np.array(m), "c": c, "x": X} for m, c in ((0, T), (1, T), (4, T), (4, F))]
    compiled = check(proto, *runs)
    assert compiled.outputs() == [("v9", sx.float32, (-1,)), ("p9", sx.float32, (2,)), ("rows", sx.int64, (-1,))]


def test_scan_with_axes_and_directions():
    body = graph([node("Add", "s a", "s2"), node("Mul", "s2 k", "o")], [info("s", [2]), info("a", [2])],
                 [info("s2", [2]), info("o", [2])])  # fmt: skip
    for back_in, back_out, axis in ((0, 0, 0), (1, 0, 1), (0, 1, -1), (1, 1, 1)):
        proto = model(
            [node("Scan", "s0 x", "s9 y", body=body, num_scan_inputs=1, scan_input_axes=[1],
                  scan_input_directions=[back_in], scan_output_axes=[axis], scan_output_directions=[back_out])],
            [info("s0", [2]), info("x", [2, "t"])], [info("s9", [2]), info("y", None)], {"k": np.array(3, "f4")},
        )  # fmt: skip
        check(proto, *({"s0": X, "x": np.arange(2 * t, dtype="f4").reshape(2, t)} for t in (1, 4)))


@pytest.mark.parametrize("lengths", [None, [3, 1]])
def test_scan_of_opset_8_is_a_scan_over_the_batch(lengths):
    body = graph([node("Add", "s a", "s2"), node("Identity", "s2", "o")], [info("s", [2]), info("a", [2])],
                 [info("s2", [2]), info("o", [2])])  # fmt: skip
    proto = model([node("Scan", f"{'_' if lengths is None else 'n'} s0 x", "s9 y", body=body, num_scan_inputs=1)],
                  [*([info("n", [2], INT64)] if lengths else []), info("s0", [2, 2]), info("x", [2, 3, 2])],
                  [info("s9", [2, 2]), info("y", [2, 3, 2])], opset=8, ir_version=3)  # fmt: skip
    x = np.arange(12, dtype="f4").reshape(2, 3, 2)
    s = np.array([[1, 2], [3, 4]], "f4")
    want = s[:, None] + np.cumsum(x, 1)
    feeds = {"s0": s, "x": x}
    if lengths:
        feeds["n"] = np.array(lengths)
        want[1, 1:] = 0
    compiled = sx.OnnxModel.from_proto(proto).compile()
    last = want[:, -1].copy()
    if lengths:
        last[1] = want[1, 0]
    for got in (compiled.evaluate(feeds), ort(roundtrip(proto), feeds)):
        np.testing.assert_allclose(np.asarray(got[0]), last)
        np.testing.assert_allclose(np.asarray(got[1]), want)


@pytest.mark.parametrize("opset", [13, 16, 21, 24, 28])
def test_each_opset_states_control_flow(opset):
    body = graph([node("Identity", "go", "go2"), node("SequenceInsert", "s x", "s2")],
                 [info("i", [], INT64), info("go", [], BOOL), sequence("s")],
                     [info("go2", [], BOOL), sequence("s2")])  # fmt: skip
    proto = model([node("SequenceConstruct", "x", "s0"), node("Loop", "m _ s0", "y", body=body),
                   node("SequenceLength", "y", "n")], [info("x", [2]), info("m", [], INT64)],
                  [sequence("y"), info("n", [], INT64)], opset=13)  # fmt: skip
    made = sx.OnnxModel.from_graph(sx.OnnxModel.from_proto(proto).compile(), opset_version=opset).to_proto()
    assert made.opset_import[0].version == opset and op_types(made)[1] == "Loop"
    if opset <= 26:
        same(ort(made, {"x": X, "m": np.array(2)})[0], [X, X, X])


def test_an_opset_that_cannot_state_it_is_refused_by_name():
    proto = model([node("Optional", "x", "o"), node("OptionalHasElement", "o", "y", name="asks")], [info("x", [2])],
                  [info("y", [], BOOL)], opset=18)  # fmt: skip
    graph_ = sx.OnnxModel.from_proto(proto).compile()
    with pytest.raises(sx.UnsupportedError, match="Optional.*opset 13.*opset 15 is the lowest"):
        sx.OnnxModel.from_graph(graph_, opset_version=13)


# ---- sequences and optionals


def test_sequences_in_and_out_branches_and_joins():
    then = graph([node("SequenceInsert", "s x", "r")], [], [sequence("r")])
    other = graph([node("SequenceErase", "s", "r2")], [], [sequence("r2")])
    proto = model([node("If", "c", "y", then_branch=then, else_branch=other), node("SequenceAt", "y zero", "first"),
                   node("ConcatFromSequence", "y", "z", axis=0)],
                  [sequence("s"), info("x", [2]), info("c", [], BOOL)],
                      [sequence("y"), info("first", None), info("z", None)],
                  {"zero": np.array(0)})  # fmt: skip
    runs = [{"s": [X, X + 1, np.ones(5, "f4")], "x": X, "c": c} for c in (T, F)]
    compiled = check(proto, *runs)
    assert compiled.inputs()[0] == ("s", sx.float32, None)
    for given, text in (
        (X, "is a list of tensors .seq.float32.., not ndarray"),
        ([X, X.astype("f8")], "element 1, has dtype float64, expected float32"),
        (None, "is a list of tensors"),
    ):
        with pytest.raises(sx.InvalidArgumentError, match=f"the input 's'.*{text}"):
            compiled.evaluate({"s": given, "x": X, "c": T})
    compiled.finalize()  # of what rank the elements are, only a run tells
    with pytest.raises(sx.UnsupportedError, match="rank of a tensor that sx.sequence_at takes or gives is not known"):
        compiled.run({"s": [], "x": X, "c": T})


def test_optionals_in_and_out():
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(FLOAT, [2]))
    proto = model([node("OptionalHasElement", "o", "has"), node("If", "has", "y",
                   then_branch=graph([node("OptionalGetElement", "o", "e")], [], [info("e", [2])]),
                   else_branch=graph([node("Identity", "x", "e2")], [], [info("e2", [2])])),
                   node("Identity", "o", "o2")],
                  [helper.make_value_info("o", kind), info("x", [2])],
                  [info("y", [2]), helper.make_value_info("o2", kind)], opset=18)  # fmt: skip
    compiled = sx.OnnxModel.from_proto(proto).compile()
    for each in (compiled, sx.OnnxModel.from_proto(roundtrip(proto)).compile()):
        for given, want in ((X + 1, X + 1), (None, X)):
            got = each.evaluate({"o": given, "x": X})
            same(plain(got[0]), want)
            assert got[1] is None if given is None else plain(got[1]).tolist() == given.tolist()
    with pytest.raises(sx.InvalidArgumentError, match=r"the input 'o' has shape \[3\], expected \[2\]"):
        compiled.evaluate({"o": np.ones(3, "f4"), "x": X})


# ---- malformed


def test_malformed_graphs_are_refused_by_name():
    def loop(body: onnx.GraphProto, inputs: str = "m _ x") -> onnx.ModelProto:
        return model([node("Loop", inputs, "y", body=body, name="turn")], [info("m", [], INT64), info("x", [2])],
                     [info("y", None)])  # fmt: skip

    given = [info("i", [], INT64), info("go", [], BOOL), info("v", [2])]
    passed = [node("Identity", "go", "g2"), node("Neg", "v", "w")]
    results = [info("g2", [], BOOL), info("w", [2])]
    assert sx.OnnxModel.from_proto(loop(graph(passed, given, results))).compile()
    for body, text in (
        (graph(passed, given[:2], results), "its input 'v' is not defined"),
        (graph([node("Identity", "go", "g2"), node("Neg", "x", "w")], given[:2], results),
         "takes 2 inputs, but gets 3"),
        (graph(passed, given, results[:1]), "1 outputs for 1 carried values"),
        (graph(passed, [*given[:2], info("v", [2], INT64)], results),
         "declares its input 'v' as int64, but gets float32"),
        (graph(passed, given, [results[0], info("w", [2], INT64)]),
         "declares its output 'w' as int64, but it is float32"),
        (graph([passed[0], node("Shape", "v", "w")], given, [results[0], info("w", None, INT64)]), "value 0 changes"),
        (graph(passed, given, [info("w", None), info("w", None)]), "C3"),
    ):  # fmt: skip
        with pytest.raises(sx.InvalidArgumentError, match=text) as caught:
            sx.OnnxModel.from_proto(loop(body)).compile()
        assert "turn" in str(caught.value) or "v" in str(caught.value)
    with pytest.raises(sx.InvalidArgumentError, match="never ends"):
        sx.OnnxModel.from_proto(loop(graph(passed, given, results), "_ _ x")).compile()


# ---- functions and unknown operators


def test_a_body_that_onnx_cannot_make_is_refused_by_name():
    """SequenceMap's is made by ONNX's own code, which wants sequences."""
    mapped = helper.make_node("SequenceMap", ["x"], ["y"], name="each", body=graph(
        [node("Neg", "a", "b")], [info("a", [2])], [info("b", [2])]
    ))  # fmt: skip
    made = model([mapped], [info("x", [2])], [info("y", [2])])
    with pytest.raises(sx.SardonyxError, match=r"node 'each' \(SequenceMap\): ONNX has no body of it"):
        sx.OnnxModel.from_proto(made).compile()


def test_functions_with_bodies_attributes_and_opsets_of_their_own():
    opset = [helper.make_opsetid("", 13), helper.make_opsetid("loc", 1)]
    leaf = helper.make_function(
        "loc", "Leaf", ["a"], ["b"], [helper.make_node("Elu", ["a"], ["b"])], opset[:1], ["alpha"]
    )
    leaf.node[0].attribute.append(
        onnx.AttributeProto(name="alpha", ref_attr_name="alpha", type=onnx.AttributeProto.FLOAT)
    )
    then = graph([node("Leaf", "a", "r", domain="loc", alpha=2.0)], [], [info("r", None)])
    other = graph([node("Leaf", "a", "r", domain="loc", alpha=0.5)], [], [info("r", None)])
    outer = helper.make_function("loc", "Outer", ["a", "c"], ["r"], [
        node("If", "c", "r", then_branch=then, else_branch=other)], opset)  # fmt: skip
    proto = model([node("Outer", "x c", "y", domain="loc", name="call")], [info("x", [2]), info("c", [], BOOL)],
                  [info("y", [2])], functions=[leaf, outer], domains={"loc": 1})  # fmt: skip
    check(proto, {"x": X, "c": T}, {"x": X, "c": F})
    assert op_types(roundtrip(proto)) == ["If"]


def test_unknown_operators_keep_their_graphs_and_what_these_read():
    body = graph([node("Mul", "p k", "q"), node("Fancy", "q", "r", domain="my"), node("Add", "r q", "s")],
                 [info("p", [2])], [info("s", [2])])  # fmt: skip
    kind = helper.make_sequence_type_proto(helper.make_tensor_type_proto(FLOAT, [2]))
    run = node("Run", "x c", "a b", domain="my", name="run", body=body, others=[body, body], kind=kind,
               tables=[numpy_helper.from_array(np.arange(3.0), "t")])  # fmt: skip
    proto = model([node("Neg", "x", "k"), node("Exp", "x", "dead"), run, node("Abs", "b", "y"),
                   node("Other", "y", "unread", domain="my"), node("ImageDecoder", "img", "z")],
                  [info("x", [2]), info("c", [], BOOL), info("img", ["n"], onnx.TensorProto.UINT8)],
                  [info("y", [2]), info("z", None, onnx.TensorProto.UINT8)], domains={"my": 3})  # fmt: skip
    compiled = sx.OnnxModel.from_proto(proto).compile()
    compiled.optimize()
    made = sx.OnnxModel.from_graph(compiled)
    assert made.opaque_nodes == {"my.Run": 1, "my.Fancy": 3, "Add": 3, "Abs": 1, "ImageDecoder": 1}
    back = made.to_proto()
    assert op_types(back) == ["Neg", "Run", "Abs", "ImageDecoder"]
    mine = {a.name: a for a in back.graph.node[1].attribute}
    theirs = {a.name: a for a in run.attribute}
    assert mine["kind"] == theirs["kind"] and mine["tables"] == theirs["tables"] and len(mine["others"].graphs) == 2
    for made_body in (mine["body"].g, *mine["others"].graphs):
        assert [n.op_type for n in made_body.node] == ["Mul", "Fancy", "Add"]
        assert made_body.node[0].input[1] == "k" and made_body.node[0].input[0] == made_body.input[0].name
    assert [n.output[0] for n in mine["body"].g.node] == ["q", "r", "s"]
    assert roundtrip(back, optimize=True) == back
    with pytest.raises(sx.UnsupportedError, match="my.Run is unknown"):
        compiled.evaluate([X, T, np.ones(2, "u1")])
    with pytest.raises(sx.UnsupportedError, match="no native form"):
        compiled.finalize()
    with pytest.raises(sx.UnsupportedError, match="Add was imported at version 21, and differs in version 13"):
        sx.OnnxModel.from_graph(compiled, opset_version=13)
