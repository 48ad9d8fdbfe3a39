"""`extract`: parts of graphs and of ONNX models compute what the whole did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from ir_text import parse_module
from onnx import TensorProto, helper, numpy_helper
from onnx_models import run_ort
from run_opt import run_opt

import sardonyx as sx
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.module import input_names, main_function, output_names
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.onnx.model import OnnxModel
from sardonyx.passes.extract import ExtractPass, bound_symbols
from sardonyx.passes.pipeline import PassManager
from sardonyx.testing import three_executions

RNG = np.random.default_rng(3)
W = RNG.normal(size=(4, 400)).astype(np.float32)
"""Large enough to be a weight, and no dense constant."""


def net(x: Any, y: Any) -> Any:
    hidden = sx.tanh(x @ W)
    rows = sx.concat([hidden, sx.exp(y)], axis=0)
    return sx.mean(rows, axis=0), rows * 2


def evaluate(module: Any, *arrays: Any) -> list[Any]:
    return evaluate_function(main_function(module), list(arrays))


def test_two_halves_are_the_whole():
    whole = sx.trace(net, "x: f32[n, 4], y: f32[m, 400]").graph.module
    x, y = (RNG.normal(size=s).astype(np.float32) for s in ((3, 4), (2, 400)))
    want = evaluate(whole, x, y)
    concat = next(op for op in whole.walk() if op.name == "sx.concat")
    concat.results[0].name_hint = "rows"
    front, back = whole.clone(), whole.clone()
    PassManager([ExtractPass(outputs=("rows",))], verify_each=True).run(front)
    PassManager([ExtractPass(inputs=("rows",))], verify_each=True).run(back)
    assert input_names(front) == ["x", "y"] and output_names(front) == ["rows"]
    assert input_names(back) == ["rows"] and output_names(back) == output_names(whole)
    assert sum(len(list(m.walk())) for m in (front, back)) < len(list(whole.walk())) + 6
    (middle,) = evaluate(front, x, y)
    for a, b in zip(want, evaluate(back, middle), strict=True):
        np.testing.assert_array_equal(a, b)
    three_executions(front, [x, y])
    three_executions(back, [middle])
    # The extent of the rows was n + m; nobody tells n now, and it may be anything.
    assert evaluate(back, middle[:1])[1].shape == (1, 400)


def test_what_a_run_can_tell_from_shapes():
    x, y = "tensor<?x?x?xf32, #sx.dims<2*n, n + m, k floordiv 2>>", "tensor<?xf32, #sx.dims<p*q>>"
    text = f"func.func @main(%x: {x}, %y: {y}) {{\n  func.return\n}}"
    types = [a.type for a in main_function(parse_module(text)).body.block.args]
    assert bound_symbols(types) == {"n", "m"}


def test_the_promise_is_not_held_against_another_function():
    module = sx.trace(net, "x: f32[n, 4], y: f32[m, 400]").graph.module
    name = main_function(module).body.block.last_op.operands[1]  # pyright: ignore[reportOptionalMemberAccess]
    name.name_hint = "doubled"
    report = PassManager([ExtractPass(outputs=("doubled", "output_0"))], check=2).run(module).passes[0]
    assert report.changed and report.check is not None
    assert report.check.compared == 0 and list(report.check.skipped) == ["main"]


def model() -> onnx.ModelProto:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a/b:0"], "first"),
        helper.make_node("Split", ["a/b:0"], ["s0", "s1"], "cut", axis=1, num_outputs=2),
        helper.make_node("Add", ["s0", "s1"], ["sum"], "plus"),
        helper.make_node("Relu", ["sum"], ["y"], "last"),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 200])],
        [numpy_helper.from_array(W, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_parts_of_a_model_by_the_names_of_its_values_and_nodes(tmp_path: Path):
    whole, part = tmp_path / "whole.onnx", tmp_path / "part.onnx"
    onnx.save(model(), whole)
    x = RNG.normal(size=(3, 4)).astype(np.float32)
    product = x @ W
    for inputs, outputs, want in (
        ('"a/b:0"', '"s1","sum"', [product[:, 200:], product[:, :200] + product[:, 200:]]),
        ('"first"', '"plus"', [product[:, :200] + product[:, 200:]]),
    ):
        done = run_opt(str(whole), "-p", f"extract{{inputs={inputs} outputs={outputs}}}", "-t", "onnx", "-o", str(part))
        assert done.status == 0, done.err
        cut = OnnxModel.open(part)
        assert [v.name for v in cut.to_proto().graph.input] == [inputs.strip('"')]
        assert [v.name for v in cut.to_proto().graph.output] == [o.strip('"') for o in outputs.split(",")]
        assert cut.num_initializers <= 1 and part.stat().st_size < 2000
        for got, a in zip(run_ort(cut.to_proto(), {inputs.strip('"'): product}), want, strict=True):
            np.testing.assert_allclose(got, a, rtol=1e-6)
    same = OnnxModel.open(whole).extract(["a/b:0"], ["s1", "sum"])
    assert [n.op_type for n in same.to_proto().graph.node] == ["Split", "Add"]


def test_what_is_refused():
    module = sx.trace(net, "x: f32[n, 4], y: f32[m, 400]").graph.module
    before = str(module)
    for options, message in (
        ({"inputs": ("x",)}, "the outputs need the input 'y'"),
        ({"outputs": ("nothing",)}, "no value 'nothing'"),
        ({"inputs": ("x", "%x")}, "the same value"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            ExtractPass(**options).execute(module)
    assert str(module) == before
    assert not ExtractPass().execute(module).changed
