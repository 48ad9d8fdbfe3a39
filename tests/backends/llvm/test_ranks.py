"""Graphs in which a rank is not known before a run are compiled when one tells it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from three_ways import Array, sample
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, SSAValue

import sardonyx
from sardonyx.backends.llvm import ranks
from sardonyx.backends.llvm.compile import compile_module
from sardonyx.backends.llvm.ranks import RankedGraph
from sardonyx.backends.llvm.runtime.call import CompiledGraph
from sardonyx.dialects.attributes import tensor_type, unranked_type
from sardonyx.dialects.dtypes import bool_, float32, int64
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.module import create_module, main_function, set_outputs
from sardonyx.dialects.sx import BY_NAME
from sardonyx.errors import ExecutionError, InferenceError, InvalidArgumentError, UnsupportedError

Build = Callable[..., SSAValue]


def graph(types: Sequence[Attribute], build: Callable[[Build, Sequence[SSAValue]], SSAValue]) -> ModuleOp:
    """A graph with one output; `build(add, inputs)` makes ops by `add(name, *operands, **properties)`."""
    module, block = create_module("open", [(f"x{k}", ty, None) for k, ty in enumerate(types)])

    def add(name: str, *operands: Any, **properties: Any) -> SSAValue:
        op = BY_NAME[f"sx.{name}"].make(*operands, **properties)
        block.add_op(op)
        return op.results[0]

    set_outputs(module, [build(add, block.args)], ["y"])
    module.verify()
    return module


def opened(module: ModuleOp) -> RankedGraph:
    compiled = compile_module(module)
    assert isinstance(compiled, RankedGraph)
    return compiled


def agree(module: ModuleOp, native: Any, *feeds: Array) -> None:
    (expected,) = evaluate_function(main_function(module), list(feeds))
    (got,) = native.run(list(feeds))
    assert got.shape == expected.shape and got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-6)


def levels(native: RankedGraph) -> list[str]:
    """The levels of the programs that were compiled."""
    return [key[0] for key, program in native.programs.items() if program is not None]


def test_inputs_of_any_rank_are_compiled_once_a_rank() -> None:
    module = graph([unranked_type(float32)], lambda add, x: add("exp", x[0]))
    native = opened(module)
    assert [o.what for o in native.open] == ["input 'x0'", "sx.exp"] and not native.programs
    for shape in ((3,), (2, 3), (), (7,), (0, 5), (33, 1)):
        agree(module, native, sample("float32", *shape))
    assert levels(native) == ["ranks"] * 3


def test_a_reshape_by_an_input_is_compiled_once_a_length() -> None:
    module = graph(
        [tensor_type(float32, ["n"]), tensor_type(int64, ["k"])],
        lambda add, x: add("neg", add("reshape", x[0], x[1])),
    )
    native = opened(module)
    for shape in ((2, 3), (4, 5), (6, 1, 2), (-1,), (3, 0, 7)):
        agree(module, native, sample("float32", abs(int(np.prod(shape)))), np.array(shape))
    assert levels(native) == ["indices"] * 3


def test_index_tuples_of_any_length() -> None:
    module = graph(
        [tensor_type(float32, ["n", "m"]), tensor_type(int64, ["a", "k"])],
        lambda add, x: add("gather_nd", x[0], x[1], batch_dims=0),
    )
    native = opened(module)
    data = sample("float32", 3, 4)
    for indices in ([[0], [2]], [[0, 1], [-1, 3]], [[1]], [[2, 2]]):
        agree(module, native, data, np.array(indices))
    assert levels(native) == ["indices"] * 2


def test_extents_of_one_that_a_squeeze_drops() -> None:
    module = graph([tensor_type(float32, ["n", "m", 3])], lambda add, x: add("neg", add("squeeze", x[0], None)))
    native = opened(module)
    for shape in ((1, 4, 3), (2, 4, 3), (1, 1, 3), (2, 4, 3)):
        agree(module, native, sample("float32", *shape))
    assert levels(native) == ["shapes"] * 3


def test_what_follows_from_the_types_needs_no_run() -> None:
    # The rank is open where the graph states so, but the operand's tells it.
    module = graph([tensor_type(float32, [2, 3])], lambda add, x: add("exp", x[0]))
    function = main_function(module)
    (op, end) = list(function.body.block.ops)
    op.results[0]._type = unranked_type(float32)
    assert isinstance(compile_module(module), CompiledGraph) and len(end.operands) == 1


def test_a_rank_that_the_contents_decide_is_refused_by_name() -> None:
    module = graph(
        [tensor_type(float32, ["n"]), tensor_type(int64, ["k"]), tensor_type(bool_, ["k"])],
        lambda add, x: add("reshape", x[0], add("compress", x[1], x[2], axis=0)),
    )
    native = opened(module)
    extents = np.array([2, *[9] * ranks.LONGEST_VECTOR, 3])  # too long a vector to compile for what it holds
    feeds = [sample("float32", 6), extents, extents < 9]
    with pytest.raises(UnsupportedError, match="rank of a tensor that sx.reshape takes or gives"):
        native.run(feeds)
    (expected,) = evaluate_function(main_function(module), feeds)
    (got,) = compile_module(module, fallback=True).run(feeds)
    assert np.array_equal(got, expected)


def test_an_op_without_a_native_form_is_refused_before_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    module = graph([unranked_type(float32)], lambda add, x: add("exp", x[0]))
    from sardonyx.backends.llvm.lowering import elementwise

    monkeypatch.delitem(elementwise.SCALARS, BY_NAME["sx.exp"])
    with pytest.raises(UnsupportedError, match="sx.exp has no native form"):
        compile_module(module)


def test_wrong_inputs_are_refused() -> None:
    module = graph([unranked_type(float32)], lambda add, x: add("exp", x[0]))
    native = opened(module)
    with pytest.raises(InvalidArgumentError, match="takes 1 inputs, got 2"):
        native.run([sample("float32", 2)] * 2)
    with pytest.raises(InvalidArgumentError, match="float64"):
        native.run([sample("float64", 2)])


def test_a_bad_run_says_why() -> None:
    module = graph([tensor_type(float32, ["n"]), tensor_type(int64, ["k"])], lambda add, x: add("reshape", x[0], x[1]))
    native = opened(module)
    with pytest.raises(ExecutionError, match="cannot be reshaped"):
        native.run([sample("float32", 5), np.array([2, 3])])


def test_the_oldest_program_goes_when_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "MOST_PROGRAMS", 3)
    module = graph([unranked_type(float32)], lambda add, x: add("exp", x[0]))
    native = opened(module)
    for rank in (1, 2, 3, 4, 1):
        agree(module, native, sample("float32", *([2] * rank)))
    assert len(native.programs) == 3


def test_a_branch_that_is_not_taken_may_not_fit() -> None:
    # As exporters write a squeeze of an axis that may be longer: `if shape[0] == 1: squeeze`, twice, one in the other.
    def branch(name: str, *nodes: onnx.NodeProto, result: str) -> onnx.GraphProto:
        return helper.make_graph(list(nodes), name, [], [onnx.ValueInfoProto(name=result)])

    inner = helper.make_node(
        "If", ["is_one"], ["chosen"],
        then_branch=branch("t2", helper.make_node("Squeeze", ["x", "zero"], ["flat"]), result="flat"),
        else_branch=branch("e2", helper.make_node("Identity", ["x"], ["kept"]), result="kept"),
    )  # fmt: skip
    outer = helper.make_node(
        "If", ["flag"], ["y"],
        then_branch=branch("t1", inner, result="chosen"),
        else_branch=branch("e1", helper.make_node("Neg", ["x"], ["negative"]), result="negative"),
    )  # fmt: skip
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]), helper.make_node("Gather", ["shape", "zero"], ["extent"]),
        helper.make_node("Equal", ["extent", "one"], ["ones"]),
        helper.make_node("Squeeze", ["ones", "zero"], ["is_one"]), outer,
    ]  # fmt: skip
    made = helper.make_graph(
        nodes, "g",
        [helper.make_tensor_value_info("x", 1, ["n", 4]), helper.make_tensor_value_info("flag", 9, [])],
        [onnx.ValueInfoProto(name="y", type=helper.make_tensor_type_proto(1, None))],
        [numpy_helper.from_array(np.array([k]), name) for k, name in enumerate(("zero", "one"))],
    )  # fmt: skip
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    compiled = sardonyx.OnnxModel.from_proto(model).compile()
    compiled.finalize()
    for n, flag in ((1, True), (3, True), (3, False), (1, False), (1, True)):
        x = sample("float32", n, 4)
        expected = np.asarray(compiled.evaluate([x, np.array(flag)])[0])
        got = np.asarray(compiled.run([x, np.array(flag)])[0])
        assert got.shape == expected.shape and np.array_equal(got, expected)


def test_extents_of_one_among_an_input_s_elements() -> None:
    # A squeeze of an axis whose extent an input holds: only its elements tell the rank.
    module = graph(
        [tensor_type(float32, [3]), tensor_type(int64, [3])],
        lambda add, x: add("neg", add("squeeze", add("expand", x[0], x[1]), None)),
    )
    native = opened(module)
    for extents in ((1, 2, 3), (4, 2, 3), (1, 1, 3), (4, 2, 3)):
        agree(module, native, sample("float32", 3), np.array(extents))
    assert levels(native) == ["vectors"] * 3


def one_result(model: onnx.ModelProto, *feeds: Array) -> None:
    """Compiled before any run, with the reference's results."""
    compiled = sardonyx.OnnxModel.from_proto(model).compile()
    compiled.finalize()
    assert isinstance(compiled.compiled, CompiledGraph)
    for expected, got in zip(compiled.evaluate(list(feeds)), compiled.run(list(feeds)), strict=True):
        assert np.asarray(got).shape == np.asarray(expected).shape
        np.testing.assert_array_equal(np.asarray(got), np.asarray(expected))


PARSED = """<ir_version: 10, opset_import: ["": 21]>
"""


@pytest.mark.parametrize("flag", [True, False])
def test_a_single_element_of_either_rank_may_be_a_scalar(flag: bool) -> None:
    model = onnx.parser.parse_model(
        PARSED
        + """
        g (bool flag, float[1] step, float[n] x) => (float[n] y, float[1] z) {
            chosen = If (flag) <
                then_branch = t () => (float scalar) { scalar = Constant <value_float = 2.0> () },
                else_branch = e () => (float[1] vector) { vector = Neg (step) }>
            half = Constant <value_float = 0.5> ()
            less = Mul (chosen, half)
            y = Mul (x, less)
            one = Constant <value_ints = [1]> ()
            z = Reshape (chosen, one)
        }"""
    )
    one_result(model, np.array(flag), sample("float32", 1), sample("float32", 5))


def test_a_single_element_whose_rank_is_seen_keeps_it() -> None:
    model = onnx.parser.parse_model(
        PARSED
        + """
        g (bool flag, float[1] step) => (float y, int64[r] rank) {
            chosen = If (flag) <
                then_branch = t () => (float scalar) { scalar = Constant <value_float = 2.0> () },
                else_branch = e () => (float[1] vector) { vector = Neg (step) }>
            y = ReduceSum (chosen)
            rank = Shape (chosen)
        }"""
    )
    compiled = sardonyx.OnnxModel.from_proto(model).compile()
    compiled.finalize()
    for flag in (True, False):
        feeds = [np.array(flag), np.ones(1, np.float32)]
        assert np.asarray(compiled.run(feeds)[1]).shape == (0 if flag else 1,)


@pytest.mark.parametrize("trips", [1, 3])
def test_states_of_a_loop_that_begin_as_placeholders(trips: int) -> None:
    # `last` begins as a scalar that nobody reads; `found`, a flag, is now of rank 0 and now of rank 1.
    model = onnx.parser.parse_model(
        PARSED
        + f"""
        g (float[n, 4] x) => (float[n, 4] y, float[n, 4] total) {{
            trips = Constant <value_int = {trips}> ()
            true = Constant <value = bool {{1}}> ()
            no = Constant <value = bool {{0}}> ()
            scalar = Constant <value_float = 7.0> ()
            y, total, found = Loop (trips, true, scalar, x, no) <
                body = b (int64 i, bool going, float[?] last_in, float[n, 4] total_in, bool found_in)
                    => (bool goes_on, float[n, 4] last_out, float[n, 4] total_out, bool found_out) {{
                    last_out = Neg (total_in)
                    total_out = Add (total_in, last_out)
                    ones = Constant <value_ints = [1]> ()
                    vector = Reshape (found_in, ones)
                    found_out = If (found_in) <
                        then_branch = t () => (bool[1] vector_out) {{ vector_out = Not (vector) }},
                        else_branch = e () => (bool scalar_out) {{ scalar_out = Not (found_in) }}>
                    goes_on = Identity (going)
                }}>
        }}"""
    )
    one_result(model, sample("float32", 3, 4))


def test_along_how_many_axes_a_run_tells() -> None:
    x, counts = tensor_type(float32, ["n", "m"]), tensor_type(int64, ["k"])
    sliced = graph([x, counts, counts, counts], lambda add, v: add("slice", *v, None))
    native = opened(sliced)
    assert native.open[0].what == "sx.slice"
    data = sample("float32", 5, 7)
    agree(sliced, native, data, np.array([1]), np.array([9]), np.array([-1]))
    agree(sliced, native, data, np.array([1, -2]), np.array([3, 9]), np.array([1, 0]))
    agree(sliced, native, sample("float32", 3, 4), np.array([0, 1]), np.array([2, 2]), np.array([0, 1]))
    assert levels(native) == ["indices", "indices"]
    padded = graph([x, tensor_type(int64, ["p"])], lambda add, v: add("pad", v[0], v[1], None, None))
    agree(padded, opened(padded), data, np.array([1, 0, 2, 3]))
    with pytest.raises((InferenceError, InvalidArgumentError, ExecutionError), match="pads"):
        opened(padded).run([data, np.array([1, 0, 2])])
