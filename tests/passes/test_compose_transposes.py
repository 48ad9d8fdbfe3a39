"""`compose-transposes` beyond its lit file: random graphs, size, weights, reasons, locations of what it makes."""

from __future__ import annotations

import numpy as np
import pytest
from ir_text import Array, evaluate, parse_module, random_arguments, run_passes
from random_graph import RandomGraph
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sardonyx.dialects import locations
from sardonyx.dialects.attributes import WeightAttr, static_shape, tensor_type
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import float32
from sardonyx.dialects.module import create_module, main_function, set_outputs
from sardonyx.dialects.sx.binary import AddOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.transpose import TransposeOp
from sardonyx.dialects.sx.unary import NegOp
from sardonyx.dialects.weights import WeightStore
from sardonyx.passes.base import PassRun
from sardonyx.passes.compose_transposes import ComposeTransposesPass
from sardonyx.passes.constants import constant_of

PASS = "compose-transposes"


def transposes(module: ModuleOp) -> list[TransposeOp]:
    """The transposes of a module, those of constants left out."""
    return [op for op in module.walk() if isinstance(op, TransposeOp) and constant_of(op.data) is None]


@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(seed):
    graph = RandomGraph(seed, 24)
    module = graph.module
    module.verify()
    arguments = random_arguments(main_function(module), seed=seed)
    want = evaluate(module, arguments)
    removed, _ = run_passes(module.clone(), "remove-dead-nodes,simplify")
    before = len(transposes(removed))
    after, report = run_passes(module, f"remove-dead-nodes,{PASS}")
    assert len(transposes(after)) <= before
    for a, b in zip(want, evaluate(after, arguments), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)
    again, report = run_passes(after, PASS)
    assert not report.changed, report.statistics()


def chain(length: int, every: int) -> ModuleOp:
    """A chain of elementwise ops between a transpose and its inverse; after each `every` of them, another such pair."""
    module, block = create_module("g", [("x", tensor_type(float32, ["n", 3, 4]), None)])
    value: SSAValue = block.args[0]
    ops: list[SxOp] = [TransposeOp.make(value, perm=[1, 2, 0])]
    shifted = True
    for i in range(length):
        value = ops[-1].results[0]
        if i % every == every - 1:
            ops.append(TransposeOp.make(value, perm=[2, 0, 1] if shifted else [1, 2, 0]))
            shifted = not shifted
        elif i % 3:
            ops.append(NegOp.make(value))
        else:
            ops.append(AddOp.make(value, value))
    if shifted:
        ops.append(TransposeOp.make(ops[-1].results[0], perm=[2, 0, 1]))
    block.add_ops(ops)
    set_outputs(module, [ops[-1].results[0]], ["y"])
    return module


@pytest.mark.parametrize(
    ("every", "length"),
    [pytest.param(10**9, 5_000, id="one pair"), pytest.param(7, 20_000, id="many pairs", marks=pytest.mark.slow)],
)
def test_work_is_linear_in_the_number_of_ops(every, length):
    visits: dict[int, int] = {}
    for size in (length // 4, length):
        module = chain(size, every)
        run = ComposeTransposesPass().execute(module, PassRun())
        assert not transposes(module)
        visits[size] = run.statistics["visits"]
    assert visits[length] <= 4.2 * visits[length // 4]
    assert visits[length] <= 16 * length


def test_a_far_pair_is_found_through_all_kinds_of_ops():
    text = """func.func @main(%x: tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<?x3x4xf32, #sx.dims<n, _, _>> {
      %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<?x3x4xf32, #sx.dims<n, _, _>>) -> tensor<3x4x?xf32, #sx.dims<_, _, n>>
      %1 = sx.softmax %0 {axis = 1 : i64} : (tensor<3x4x?xf32, #sx.dims<_, _, n>>) -> tensor<3x4x?xf32, #sx.dims<_, _, n>>
      %2 = sx.constant {value = dense<-3> : tensor<1xi64>} : () -> tensor<1xi64>
      %3 = sx.reduce_max %1, %2 : (tensor<3x4x?xf32, #sx.dims<_, _, n>>, tensor<1xi64>) -> tensor<1x4x?xf32, #sx.dims<_, _, n>>
      %4 = sx.sub %1, %3 : (tensor<3x4x?xf32, #sx.dims<_, _, n>>, tensor<1x4x?xf32, #sx.dims<_, _, n>>) -> tensor<3x4x?xf32, #sx.dims<_, _, n>>
      %5 = sx.transpose %4 {perm = array<i64: 2, 0, 1>} : (tensor<3x4x?xf32, #sx.dims<_, _, n>>) -> tensor<?x3x4xf32, #sx.dims<n, _, _>>
      func.return %5 : tensor<?x3x4xf32, #sx.dims<n, _, _>>
    }"""  # noqa: E501
    module, report = run_passes(text, PASS)
    assert not transposes(module)
    assert report.statistics()[f"{PASS}.moved:softmax"] == 1
    assert report.statistics()[f"{PASS}.moved:reduce"] == 1


def test_a_weight_is_transposed_for_fold_constants_to_fold():
    """A large constant is not touched when axes are lined up: the transpose of it is left to folding."""
    store = WeightStore()
    weight = ConstantOp.of(np.arange(32 * 48, dtype=np.float32).reshape(32, 48), store)
    module, block = create_module("g", [("x", tensor_type(float32, [48, 32]), None)])
    up = TransposeOp.make(block.args[0])
    total = AddOp.make(up.output, weight.output)
    down = TransposeOp.make(total.output)
    block.add_ops([weight, up, total, down])
    set_outputs(module, [down.output], ["y"])
    arguments: list[Array] = [np.random.default_rng(0).normal(size=(48, 32)).astype(np.float32)]
    want = evaluate(module, arguments)
    composed, _ = run_passes(module, PASS)
    assert not transposes(composed)
    assert [op for op in composed.walk() if isinstance(op, TransposeOp)]
    folded, _ = run_passes(composed, "fold-constants")
    (constant,) = [op for op in folded.walk() if isinstance(op, ConstantOp)]
    assert isinstance(constant.value, WeightAttr) and static_shape(constant.output) == (48, 32)
    np.testing.assert_array_equal(want[0], evaluate(folded, arguments)[0])


def reasons(text: str) -> set[str]:
    _, report = run_passes(text, PASS)
    return {d.reason for d in report.passes[0].declines}


def test_reasons_why_nothing_moved():
    reshape = """func.func @main(%x: tensor<2x3x4xf32>, %s: tensor<1xi64>) -> tensor<24xf32> {
      %0 = sx.transpose %x : (tensor<2x3x4xf32>) -> tensor<4x3x2xf32>
      %1 = sx.constant {value = dense<24> : tensor<1xi64>} : () -> tensor<1xi64>
      %2 = sx.reshape %0, %1 : (tensor<4x3x2xf32>, tensor<1xi64>) -> tensor<24xf32>
      func.return %2 : tensor<24xf32>
    }"""
    assert "transposes do not move through sx.reshape" in reasons(reshape)
    axes = """func.func @main(%x: tensor<2x3xf32>, %a: tensor<1xi64>) -> tensor<?xf32> {
      %0 = sx.transpose %x : (tensor<2x3xf32>) -> tensor<3x2xf32>
      %1 = sx.reduce_max %0, %a {keepdims = false} : (tensor<3x2xf32>, tensor<1xi64>) -> tensor<?xf32>
      func.return %1 : tensor<?xf32>
    }"""
    assert "its axes are not known" in reasons(axes)
    alone = """func.func @main(%x: tensor<2x3xf32>, %y: tensor<3x2xf32>) -> tensor<3x2xf32> {
      %0 = sx.transpose %x : (tensor<2x3xf32>) -> tensor<3x2xf32>
      %1 = sx.add %0, %y : (tensor<3x2xf32>, tensor<3x2xf32>) -> tensor<3x2xf32>
      func.return %1 : tensor<3x2xf32>
    }"""
    assert "not enough of its operands are transposed alike" in reasons(alone)


def test_a_transpose_that_is_made_comes_from_those_that_it_stands_for():
    text = """func.func @main(%x: tensor<2x3x4xf32>) -> (tensor<4x3x2xf32>, tensor<3x4x2xf32>) {
      %0 = sx.transpose %x {perm = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32> loc("m.py":1:0)
      %1 = sx.relu %0 : (tensor<3x4x2xf32>) -> tensor<3x4x2xf32> loc("m.py":2:0)
      %2 = sx.transpose %1 {perm = array<i64: 1, 0, 2>} : (tensor<3x4x2xf32>) -> tensor<4x3x2xf32> loc("m.py":3:0)
      %3 = sx.transpose %2 {perm = array<i64: 1, 0, 2>} : (tensor<4x3x2xf32>) -> tensor<3x4x2xf32> loc("m.py":4:0)
      func.return %2, %3 : tensor<4x3x2xf32>, tensor<3x4x2xf32>
    }"""
    module, _ = run_passes(text, PASS)
    for op in module.walk():
        lines = {str(leaf) for leaf in locations.leaves(op.location)}
        if isinstance(op, TransposeOp):
            assert lines and not lines & {'loc("m.py":2:0)'}, op
        elif op.name == "sx.relu":
            assert lines == {'loc("m.py":2:0)'}


def test_an_unranked_value_is_left_alone():
    text = """func.func @main(%x: tensor<*xf32>) -> tensor<*xf32> {
      %0 = sx.transpose %x {perm = array<i64: 1, 0>} : (tensor<*xf32>) -> tensor<*xf32>
      %1 = sx.relu %0 : (tensor<*xf32>) -> tensor<*xf32>
      %2 = sx.transpose %1 {perm = array<i64: 1, 0>} : (tensor<*xf32>) -> tensor<*xf32>
      func.return %2 : tensor<*xf32>
    }"""
    module = parse_module(text)
    before = str(module)
    after, report = run_passes(module, PASS)
    assert str(after) == before and not report.changed
