"""What lit cannot show of cse, fold-constants, remove-dead-nodes and simplify: weights, sizes, locations, orders."""

from __future__ import annotations

import random
from typing import ClassVar

import numpy as np
import pytest
from ir_text import evaluate, parse_module, random_arguments, run_passes
from random_graph import RandomGraph
from xdsl.dialects.builtin import ModuleOp
from xdsl.irdl import irdl_op_definition

from sardonyx.dialects import locations
from sardonyx.dialects.attributes import WeightAttr, WeightRef, tensor_type
from sardonyx.dialects.dtypes import ALL, DType, float32
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.module import create_module, main_function, set_outputs
from sardonyx.dialects.sx.binary import AddOp
from sardonyx.dialects.sx.cast import CastOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.numeric import convert
from sardonyx.dialects.sx.unary import NegOp, UnaryOp
from sardonyx.dialects.weights import WeightStore
from sardonyx.passes.base import PassRun
from sardonyx.passes.cse import CsePass
from sardonyx.passes.fold_constants import FoldConstantsPass
from sardonyx.passes.remove_dead_nodes import RemoveDeadNodesPass
from sardonyx.passes.simplify import SimplifyPass
from sardonyx.passes.simplify_arith import composes


@irdl_op_definition
class NoiseOp(UnaryOp):
    """Something random."""

    name = "test.noise"
    DETERMINISTIC: ClassVar = False

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> list[Array]:
        raise AssertionError("a random op must not be evaluated")


def constants(module: ModuleOp) -> list[ConstantOp]:
    return [op for op in module.walk() if isinstance(op, ConstantOp)]


def two_noises(operand_is_constant: bool) -> ModuleOp:
    module, block = create_module("g", [("x", tensor_type(float32, [4]), None)])
    constant = ConstantOp.dense(np.ones(4, np.float32))
    source = constant.output if operand_is_constant else block.args[0]
    a, b = NoiseOp.make(source), NoiseOp.make(source)
    block.add_ops([constant, a, b])
    set_outputs(module, [a.output, b.output], ["a", "b"])
    return module


def test_random_ops_are_neither_merged_nor_folded():
    module = two_noises(False)
    CsePass().execute(module)
    FoldConstantsPass().execute(two := two_noises(True))
    for each in (module, two):
        assert len([op for op in each.walk() if isinstance(op, NoiseOp)]) == 2


def big(store: WeightStore, value: float, name: str = "w") -> ConstantOp:
    return ConstantOp.of(np.full(1000, value, np.float32), store, name)


def test_weights_are_merged_by_key_and_folded_to_new_ones():
    store = WeightStore()
    module, block = create_module("g", [])
    w, same, other = big(store, 1.0), big(store, 1.0), big(store, 2.0)
    total = AddOp.make(w.output, same.output)
    second = AddOp.make(total.output, other.output)
    block.add_ops([w, same, other, total, second])
    set_outputs(module, [second.output], ["y"])
    CsePass().execute(module)
    assert len(constants(module)) == 2
    run = FoldConstantsPass(max_bytes=0).execute(module)
    (folded,) = constants(module)
    assert isinstance(folded.value, WeightAttr) and run.statistics["folded"] == 2
    assert folded.value.data.key.startswith("folded_") and folded.value.data.key not in store
    np.testing.assert_array_equal(folded.array(), np.full(1000, 4.0, np.float32))
    with pytest.raises(ValueError, match="read-only"):
        folded.array()[0] = 1


def test_equal_results_get_equal_keys():
    keys = set()
    for _ in range(2):
        module, block = create_module("g", [])
        w = big(WeightStore(), 1.0, "other_name")
        neg = NegOp.make(w.output)
        block.add_ops([w, neg])
        set_outputs(module, [neg.output], ["y"])
        FoldConstantsPass().execute(module)
        keys.add(constants(module)[0].value)
    assert len(keys) == 1


def test_weights_whose_bytes_are_not_here_stay():
    module, block = create_module("g", [])
    lost = ConstantOp.make(value=WeightAttr(WeightRef("lost")), result_types=[tensor_type(float32, [1000])])
    neg = NegOp.make(lost.output)
    block.add_ops([lost, neg])
    set_outputs(module, [neg.output], ["y"])
    run = PassRun(keep_declines=True)
    FoldConstantsPass().execute(module, run)
    assert not run.changed
    assert [d.reason for d in run.declines] == ["it cannot be evaluated: the bytes of weight 'lost' are not here"]


def test_the_budget_counts_operands():
    module, block = create_module("g", [])
    w = big(WeightStore(), 1.0)
    double = CastOp.make(w.output, to=DType.of(np.dtype(np.float64)))
    block.add_ops([w, double])
    set_outputs(module, [double.output], ["y"])
    run = PassRun(keep_declines=True)
    FoldConstantsPass(max_bytes=7999).execute(module, run)
    assert run.declines[0].reason == "it has 8000 bytes; the budget is 7999 bytes"
    assert FoldConstantsPass(max_bytes=8000).execute(module).changed


def test_a_folded_constant_comes_from_all_lines_that_it_stands_for():
    text = """func.func @main() -> tensor<2xf32> {
      %0 = sx.constant {value = dense<1.0> : tensor<2xf32>} : () -> tensor<2xf32> loc("m.py":1:0)
      %1 = sx.neg %0 : (tensor<2xf32>) -> tensor<2xf32> loc("m.py":2:0)
      %2 = sx.exp %1 : (tensor<2xf32>) -> tensor<2xf32> loc("m.py":3:0)
      func.return %2 : tensor<2xf32>
    }"""
    module, _ = run_passes(text, "fold-constants")
    (constant,) = constants(module)
    assert {str(leaf) for leaf in locations.leaves(constant.location)} == {f'loc("m.py":{i}:0)' for i in (1, 2, 3)}


def test_merged_ops_come_from_both_lines():
    text = """func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
      %0 = sx.neg %x : (tensor<2xf32>) -> tensor<2xf32> loc("m.py":1:0)
      %1 = sx.neg %x : (tensor<2xf32>) -> tensor<2xf32> loc("m.py":2:0)
      func.return %0, %1 : tensor<2xf32>, tensor<2xf32>
    }"""
    module, _ = run_passes(text, "cse")
    (neg,) = [op for op in module.walk() if isinstance(op, NegOp)]
    assert [locations.describe(leaf) for leaf in locations.leaves(neg.location)] == ["m.py:1", "m.py:2"]


def test_cse_keeps_what_either_type_tells():
    text = """func.func @f(%x: tensor<?xf32>, %s: tensor<2xi64>) -> (tensor<?x?xf32>, tensor<?x4xf32, #sx.dims<m, _>>) {
      %0 = sx.reshape %x, %s : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
      %1 = sx.reshape %x, %s : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x4xf32, #sx.dims<m, _>>
      %2 = sx.neg %0 : (tensor<?x?xf32>) -> tensor<?x?xf32>
      func.return %2, %1 : tensor<?x?xf32>, tensor<?x4xf32, #sx.dims<m, _>>
    }"""
    module, _ = run_passes(text, "cse")
    (neg,) = [op for op in module.walk() if isinstance(op, NegOp)]
    assert neg.output.type == tensor_type(float32, ["m", 4])


def long_chain(length: int) -> ModuleOp:
    """A dead chain, a live one, and twice each op of the live one."""
    module, block = create_module("g", [("x", tensor_type(float32, [4]), None)])
    ty = [tensor_type(float32, [4])]
    live = dead = block.args[0]
    ops = []
    for _ in range(length // 4):
        first = NegOp.create(operands=[live], result_types=ty)
        second = NegOp.create(operands=[live], result_types=ty)
        both = AddOp.create(operands=[first.output, second.output], result_types=ty)
        gone = NegOp.create(operands=[dead], result_types=ty)
        ops += [first, second, both, gone]
        live, dead = both.output, gone.output
    block.add_ops(ops)
    set_outputs(module, [live], ["y"])
    return module


def test_20_000_ops_go_through():
    """Counts, not seconds: each pass does one rewrite per op that it has to, and visits a few times as many."""
    module = long_chain(20_000)
    # The first op of the dead chain is equal to the first of the live one.
    assert CsePass().execute(module).statistics["merged"] == 5_000 + 1
    assert RemoveDeadNodesPass().execute(module).statistics["removed"] == 5_000 - 1
    run = SimplifyPass().execute(module)
    assert run.statistics["visits"] <= 2 * 20_000
    module.verify()


@pytest.mark.parametrize("seed", range(12))
def test_random_orders_of_passes_keep_values(seed):
    rng = random.Random(seed)
    names = ["infer-types", "simplify", "fold-constants", "cse", "compose-transposes", "remove-dead-nodes"]
    module = RandomGraph(seed + 1000, 20).module
    arguments = random_arguments(main_function(module), seed=seed)
    want = evaluate(module, arguments)
    order = ",".join(rng.sample(names, len(names)) + rng.sample(names, 3))
    run_passes(module, order)
    for a, b in zip(want, evaluate(module, arguments), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, err_msg=order)


SAMPLES = {
    "b": [0, 1], "i": [0, 1, -1, 2**7, -(2**7), 300, -300, 2**31, -(2**31), 2**53 + 1, -(2**63), 2**63 - 1],
    "u": [0, 1, 127, 255, 256, 65535, 2**31, 2**53 + 1, 2**64 - 1],
}  # fmt: skip


def samples(dtype: DType) -> Array:
    """Values at the edges of all dtypes, as far as this one has them."""
    if dtype.is_float:
        wide = np.array([0.0, -0.0, 1.5, -2.5, 127.9, 255.5, 300, 65504, 70000, 1e10, -1e10, 3e38, 1e300, np.inf,
                         -np.inf, np.nan, 1e-8, 1 + 2**-11, 1 + 2**-24 + 2**-40])  # fmt: skip
        with np.errstate(over="ignore"):
            return wide.astype(dtype.numpy)
    low = -(1 << (dtype.bits - 1)) if dtype.kind == "i" else 0
    high = low + (1 << dtype.bits) - 1
    return np.array([v for v in SAMPLES[dtype.kind] if low <= v <= high], dtype.numpy)


def test_casts_are_joined_only_where_all_values_agree():
    """Every triple of dtypes: where `composes` says so, casting in two steps is casting in one, at all edges."""
    joined = 0
    for first in ALL:
        for middle in ALL:
            for last in ALL:
                if not composes(first, middle, last):
                    continue
                joined += 1
                values = samples(first)
                with np.errstate(all="ignore"):
                    two, one = convert(convert(values, middle), last), convert(values, last)
                if last.is_float:  # NumPy does not take a NaN of bfloat16 for equal to itself
                    two, one = two.astype(np.float64), one.astype(np.float64)
                np.testing.assert_array_equal(two, one, err_msg=f"{first} -> {middle} -> {last}")
    assert joined > 500


def test_remove_dead_nodes_takes_a_long_chain_without_recursion():
    module, block = create_module("g", [("x", tensor_type(float32, [4]), None)])
    value, ty = block.args[0], [tensor_type(float32, [4])]
    for _ in range(5_000):
        op = NegOp.create(operands=[value], result_types=ty)
        block.add_op(op)
        value = op.output
    set_outputs(module, [block.args[0]], ["y"])
    assert RemoveDeadNodesPass().execute(module).statistics["removed"] == 5_000
    assert parse_module(str(module)).is_structurally_equivalent(module)
