"""Checked passes: planted mistakes in every family are caught, with pattern, place and a reproducer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from ir_text import parse_module
from xdsl.dialects.builtin import ModuleOp

from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx.activation import ReluOp
from sardonyx.dialects.sx.binary import AddOp, MulOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.gather import GatherOp
from sardonyx.errors import SardonyxError
from sardonyx.passes import check_inputs, cse, fold_affine, layout_rules, permutations, simplify_arith, simplify_moves
from sardonyx.passes.base import EXACT, PassRun, Promise, SxPass, approximates, reassociates
from sardonyx.passes.check_values import compare, run_function
from sardonyx.passes.checked import CheckOptions, MismatchError, PassChecker
from sardonyx.passes.context import make_context
from sardonyx.passes.driver import RewriteDriver, SxPattern, SxRewriter
from sardonyx.passes.matching import forward
from sardonyx.passes.pipeline import PassManager


def mismatch(text: str, pipeline: Any, **options: Any) -> MismatchError:
    module = parse_module(text) if isinstance(text, str) else text
    with pytest.raises(MismatchError) as caught:
        PassManager(pipeline, check=CheckOptions(**{"inputs": 3, "reduce": False, **options})).run(module)
    return caught.value


def fine(text: str, pipeline: Any, inputs: int = 5) -> Any:
    return PassManager(pipeline, check=inputs).run(parse_module(text)).passes[0].check


# ---- a mistake in each family of passes


SUB = """func.func @main(%x: tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>> {
  %0 = sx.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %1 = sx.neg %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
  %2 = sx.sub %1, %0 : (tensor<?x3xf32, #sx.dims<n, _>>, tensor<f32>) -> tensor<?x3xf32, #sx.dims<n, _>>
  func.return %2 : tensor<?x3xf32, #sx.dims<n, _>>
}"""
ZERO = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = sx.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %1 = sx.add %x, %0 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  func.return %1 : tensor<4xf32>
}"""
CUBE = "tensor<4x4x4xf32>"
TRANSPOSES = f"""func.func @main(%x: {CUBE}) -> {CUBE} {{
  %0 = sx.transpose %x {{perm = array<i64: 2, 0, 1>}} : ({CUBE}) -> {CUBE}
  %1 = sx.softmax %0 {{axis = 0 : i64}} : ({CUBE}) -> {CUBE}
  %2 = sx.transpose %1 {{perm = array<i64: 1, 2, 0>}} : ({CUBE}) -> {CUBE}
  func.return %2 : {CUBE}
}}"""
ADJACENT = f"""func.func @main(%x: {CUBE}) -> {CUBE} {{
  %0 = sx.transpose %x {{perm = array<i64: 1, 2, 0>}} : ({CUBE}) -> {CUBE}
  %1 = sx.transpose %0 {{perm = array<i64: 1, 0, 2>}} : ({CUBE}) -> {CUBE}
  func.return %1 : {CUBE}
}}"""
CSE = """func.func @main(%x: tensor<3xf32>, %y: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %0 = sx.sub %x, %y : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  %1 = sx.sub %y, %x : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %0, %1 : tensor<3xf32>, tensor<3xf32>
}"""
CONV = """func.func @main(%x: tensor<1x2x4x4xf32>) -> tensor<1x3x4x4xf32> {
  %w = sx.constant {value = dense<2.5> : tensor<3x2x1x1xf32>} : () -> tensor<3x2x1x1xf32>
  %s = sx.constant {value = dense<[[[1.5]], [[2.5]], [[3.5]]]> : tensor<3x1x1xf32>} : () -> tensor<3x1x1xf32>
  %0 = sx.conv %x, %w : (tensor<1x2x4x4xf32>, tensor<3x2x1x1xf32>) -> tensor<1x3x4x4xf32>
  %1 = sx.mul %0, %s : (tensor<1x3x4x4xf32>, tensor<3x1x1xf32>) -> tensor<1x3x4x4xf32>
  func.return %1 : tensor<1x3x4x4xf32>
}"""
FOLD = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = sx.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %1 = sx.add %0, %0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  %2 = sx.add %x, %1 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %2 : tensor<2xf32>
}"""
SLICES = """func.func @main(%x: tensor<6x6xf32>) -> tensor<2x3xf32> {
  %a = sx.constant {value = dense<[1]> : tensor<1xi64>} : () -> tensor<1xi64>
  %b = sx.constant {value = dense<[3]> : tensor<1xi64>} : () -> tensor<1xi64>
  %c = sx.constant {value = dense<[0]> : tensor<1xi64>} : () -> tensor<1xi64>
  %d = sx.constant {value = dense<[4]> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = sx.slice %x, %a, %b, %c : (tensor<6x6xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x6xf32>
  %1 = sx.slice %0, %a, %d, %a : (tensor<2x6xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<2x3xf32>
  func.return %1 : tensor<2x3xf32>
}"""
NORM = """func.func @main(%x: tensor<2x2x3xf32>) -> tensor<2x2x3xf32> {
  %s = sx.constant {value = dense<[1.5, 2.5]> : !V} : () -> !V
  %v = sx.constant {value = dense<[0.5, 4.0]> : !V} : () -> !V
  %y, %m, %n = sx.batch_norm %x, %s, %s, %s, %v : (tensor<2x2x3xf32>, !V, !V, !V, !V) -> (tensor<2x2x3xf32>, !V, !V)
  func.return %y : tensor<2x2x3xf32>
}""".replace("!V", "tensor<2xf32>")


def plant_neutral(patch: pytest.MonkeyPatch) -> None:
    table = {**simplify_arith.NeutralElementPattern.RIGHT, simplify_arith.binary.SubOp: (1, False)}
    patch.setattr(simplify_arith.NeutralElementPattern, "RIGHT", table)


def plant_signed_zero(patch: pytest.MonkeyPatch) -> None:
    table = {**simplify_arith.NeutralElementPattern.RIGHT, AddOp: (0, False)}
    patch.setattr(simplify_arith.NeutralElementPattern, "RIGHT", table)


def plant_axis(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(layout_rules, "axis_of", lambda op, rank, name="axis": (op.attr(name) + 1) % rank)


def plant_commutative(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cse, "op_key", lambda op: (op.name, tuple(sorted(id(o) for o in op.operands))))


def plant_scale(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fold_affine, "_scale_weights", lambda producer, w, scale: w * scale[0])


def plant_fold(patch: pytest.MonkeyPatch) -> None:
    from sardonyx.passes import fold_constants

    real = fold_constants.make_constant
    patch.setattr(fold_constants, "make_constant", lambda array, **more: real(array[::-1].copy(), **more))


def plant_slice(patch: pytest.MonkeyPatch) -> None:
    real = simplify_moves.ranges_of
    patch.setattr(
        simplify_moves, "ranges_of", lambda op: {a: (s - 1, e - 1, t) for a, (s, e, t) in (real(op) or {}).items()}
    )


def plant_norm(patch: pytest.MonkeyPatch) -> None:
    from sardonyx.passes import decompose_batch_norm

    patch.setattr(decompose_batch_norm, "float_attr", lambda op, name: 0.5)


def plant_compose(patch: pytest.MonkeyPatch) -> None:
    from sardonyx.passes import layout

    patch.setattr(layout, "compose", lambda first, second: permutations.compose(second, first))


PLANTED = [
    (plant_neutral, SUB, "simplify", "neutral-element"),
    (plant_signed_zero, ZERO, "simplify", "neutral-element"),
    (plant_axis, TRANSPOSES, "compose-transposes", None),
    (plant_compose, ADJACENT, "compose-transposes", None),
    (plant_commutative, CSE, "cse", "merge"),
    (plant_scale, CONV, "fold-affine", "fold-affine"),
    (plant_fold, FOLD, "fold-constants", "fold"),
    (plant_slice, SLICES, "simplify", "slice-of-slice"),
    (plant_norm, NORM, "decompose-batch-norm", "decompose-batch-norm"),
]


@pytest.mark.parametrize(("plant", "text", "name", "pattern"), PLANTED, ids=[p[0].__name__ for p in PLANTED])
def test_a_planted_mistake_is_caught(plant, text, name, pattern, monkeypatch):
    PassManager(name, check=3).run(parse_module(text))
    plant(monkeypatch)
    error = mismatch(text, name)
    assert error.pass_name == name and error.code_name == "CHECK_FAILED"
    if pattern is not None:
        assert error.pattern == pattern and error.rewrite is not None
        assert f"pattern '{pattern}'" in error.message


# ---- passes that are wrong on purpose


@dataclass(frozen=True)
class SwitchPass(SxPass):
    """Lets readers of each relu read its operand."""

    name = "drop-relu"

    def run(self, module: ModuleOp, run: PassRun) -> None:
        class Drop(SxPattern[ReluOp]):
            OPS = (ReluOp,)

            def rewrite(self, op: ReluOp, rewriter: SxRewriter) -> None:
                forward(op, op.operands[0], rewriter)

        RewriteDriver([Drop()], run).rewrite(module)


CHAIN = """func.func @main(%x: !D, %y: !V) -> (!D, !V) {
  %0 = sx.exp %x : (!D) -> !D loc("net.py":3:0)
  %1 = sx.relu %0 : (!D) -> !D loc("net.py":4:0)
  %2 = sx.sub %1, %y : (!D, !V) -> !D loc("net.py":5:0)
  %3 = sx.relu %2 : (!D) -> !D loc("net.py":6:0)
  %4 = sx.neg %3 : (!D) -> !D loc("net.py":7:0)
  func.return %4, %y : !D, !V
}""".replace("!D", "tensor<?x64xf32, #sx.dims<n, _>>").replace("!V", "tensor<64xf32>")


def test_the_guilty_rewrite_and_the_first_value_are_named(tmp_path):
    error = mismatch(CHAIN, [SwitchPass()], reproducer=tmp_path, reduce=True)
    # The first relu stands behind an exp and changes nothing: the second rewrite is to blame.
    assert error.rewrite == 2 and error.location == "net.py:6" and error.pattern == "drop"
    assert error.difference is not None and error.difference.output == 0 and len(error.difference.index) == 2
    assert any("comes from sx.neg <- net.py:7" in note for note in error.notes)
    written = (tmp_path / "drop-relu-mismatch.mlir").read_text()
    assert written == error.reproducer and "--check-passes=3" in written and "-p 'drop-relu'" in written
    body = [line for line in written.splitlines() if " = sx." in line]
    assert len(body) == 1 and "sx.relu" in body[0] and "tensor<1x1xf32>" in body[0]
    # The reproducer reproduces.
    assert mismatch(written, [SwitchPass()]).difference is not None


def test_a_pipeline_stops_at_the_guilty_pass():
    module = parse_module(CHAIN)
    with pytest.raises(MismatchError) as caught:
        PassManager([*PassManager("cse,simplify")._passes, SwitchPass(), *PassManager("cse")._passes], check=2).run(
            module
        )
    assert caught.value.pass_name == "drop-relu"


def test_control_flow_and_state_are_compared():
    looped = """func.func @main(%x: tensor<4xf32>, %n: tensor<i64>) -> tensor<4xf32> {
      %go = sx.constant {value = dense<true> : tensor<i1>} : () -> tensor<i1>
      %0 = sx.loop %n, %go, %x ({
      ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<4xf32>):
        %1 = sx.relu %v : (tensor<4xf32>) -> tensor<4xf32>
        %2 = sx.neg %1 : (tensor<4xf32>) -> tensor<4xf32>
        sx.yield %c, %2 : tensor<i1>, tensor<4xf32>
      }) : (tensor<i64>, tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
      func.return %0 : tensor<4xf32>
    }"""
    assert mismatch(looped, [SwitchPass()]).pattern == "drop"
    state = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = sx.state_read {state = "s"} : () -> tensor<4xf32>
      %1 = sx.sub %0, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      %2 = sx.relu %1 : (tensor<4xf32>) -> tensor<4xf32>
      sx.state_write %2 {state = "s"} : (tensor<4xf32>) -> ()
      func.return %x : tensor<4xf32>
    }"""
    assert "a buffer holds afterwards" in mismatch(state, [SwitchPass()]).message


def test_refusals_on_both_sides_say_nothing_one_only_after_is_a_mismatch():
    refused = """func.func @main(%x: tensor<?xf32, #sx.dims<n>>) -> tensor<2xf32> {
      %0 = sx.constant {value = dense<[7, 0]> : tensor<2xi64>} : () -> tensor<2xi64>
      %1 = sx.relu %x : (tensor<?xf32, #sx.dims<n>>) -> tensor<?xf32, #sx.dims<n>>
      %2 = sx.gather %1, %0 : (tensor<?xf32, #sx.dims<n>>, tensor<2xi64>) -> tensor<2xf32>
      func.return %2 : tensor<2xf32>
    }"""
    report = fine(refused, [SwitchPass()], 2)
    assert report.refused == 2 and report.compared == 0

    @dataclass(frozen=True)
    class Beyond(SxPass):
        name = "beyond"

        def run(self, module: ModuleOp, run: PassRun) -> None:
            for op in list(module.walk()):
                if isinstance(op, GatherOp):
                    made = ConstantOp.dense(np.array([7, 0], np.int64))
                    assert op.parent is not None
                    op.parent.insert_op_before(made, op)
                    op.operands[1] = made.output
                    run.rewritten("beyond", op.name, op.location)

    error = mismatch(refused.replace("[7, 0]", "[1, 0]"), [Beyond()])
    assert "the reference runs it before, and refuses it after" in error.message


def test_random_numbers_and_what_is_too_large_are_left_out():
    drawn = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
      %0 = sx.relu %x : (tensor<3xf32>) -> tensor<3xf32>
      %1 = sx.random_normal_like %0 : (tensor<3xf32>) -> tensor<3xf32>
      %2 = sx.add %0, %1 : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
      func.return %2 : tensor<3xf32>
    }"""
    assert fine(drawn, [SwitchPass()]) is None
    module = parse_module(CHAIN)
    assert PassManager([SwitchPass()], check=CheckOptions(max_elements=100)).run(module).passes[0].check is None


def test_the_environment_switches_it_on(monkeypatch):
    monkeypatch.setenv("SARDONYX_CHECK_PASSES", "2")
    with pytest.raises(MismatchError):
        PassManager([SwitchPass()]).run(parse_module(CHAIN))
    monkeypatch.setenv("SARDONYX_CHECK_PASSES", "0")
    PassManager([SwitchPass()]).run(parse_module(CHAIN))
    monkeypatch.setenv("SARDONYX_CHECK_PASSES", "2:10")
    PassManager([SwitchPass()]).run(parse_module(CHAIN))


# ---- promises


@dataclass(frozen=True)
class ScalePass(SxPass):
    """Multiplies by 1 + `by`."""

    name = "scale"
    by: float = 0.0

    def run(self, module: ModuleOp, run: PassRun) -> None:
        (relu,) = (op for op in module.walk() if isinstance(op, ReluOp))
        factor = ConstantOp.dense(np.array(1 + self.by, np.float32))
        product = MulOp.make(relu.results[0], factor.output)
        assert relu.parent is not None
        relu.parent.insert_ops_after([factor, product], relu)
        relu.results[0].replace_all_uses_with(product.results[0])
        product.operands[0] = relu.results[0]
        run.rewritten("scale", relu.name, relu.location)


ONE_RELU = """func.func @main(%x: tensor<3x5xf32>, %y: tensor<5x7xf32>) -> tensor<3x7xf32> {
  %0 = sx.relu %x : (tensor<3x5xf32>) -> tensor<3x5xf32>
  %1 = sx.matmul %0, %y : (tensor<3x5xf32>, tensor<5x7xf32>) -> tensor<3x7xf32>
  func.return %1 : tensor<3x7xf32>
}"""


@pytest.mark.parametrize(
    ("promise", "by", "kept"),
    [(EXACT, 1.2e-7, False), (reassociates(1), 1.2e-7, True), (approximates(1), 1.2e-7, True),
     (reassociates(1), 1e-3, False), (approximates(4), 1e-3, False)],
)  # fmt: skip
def test_what_a_promise_allows(promise: Promise, by: float, kept: bool):
    cls = type("PromisedPass", (ScalePass,), {"PROMISE": promise})
    if kept:
        assert fine(ONE_RELU, [cls(by=by)]).compared == 5
    else:
        assert "reassociates" in mismatch(ONE_RELU, [cls(by=by)]).message or promise != reassociates(1)


def test_zeros_have_signs_and_nans_have_none():
    a = [np.array([0.0, np.nan, 1.0], np.float32)]
    payload = np.array([0x7FC00001], np.uint32).view(np.float32)[0]
    assert compare(a, [np.array([0.0, payload, 1.0], np.float32)], EXACT) is None
    found = compare(a, [np.array([-0.0, np.nan, 1.0], np.float32)], EXACT)
    assert found is not None and found.index == (0,) and "0.0 before, -0.0 after" in str(found)
    assert compare(a, [np.array([0.0, 2.0, 1.0], np.float32)], reassociates(1), lambda rng: a) is not None
    assert "dtype" in str(compare(a, [a[0].astype(np.float64)], EXACT))
    assert "shape" in str(compare(a, [a[0][:2]], EXACT))
    assert "1 elements before, 0 after" in str(compare([a], [[]], EXACT))


# ---- inputs

N3 = "tensor<?x3xf32, #sx.dims<n, _>>"
N6 = "tensor<?x6xf32, #sx.dims<n, _>>"
INPUTS: dict[str, tuple[list[str], str, str]] = {
    "gather": ([N3, "tensor<4xi64>"], "gather %x, %i {axis = 0 : i64}", "tensor<4x3xf32>"),
    "gather_nd": (["tensor<3x4xf32>", "tensor<2x2xi64>"], "gather_nd %x, %i", "tensor<2xf32>"),
    "scatter_nd": (["tensor<3x4xf32>", "tensor<5x2xi64>", "tensor<5xf32>"], "scatter_nd %x, %i, %u", "tensor<3x4xf32>"),
    "reshape": ([N6, "tensor<3xi64>"], "reshape %x, %i", "tensor<?x?x?xf32>"),
    "expand": (["tensor<1x3xf32>", "tensor<3xi64>"], "expand %x, %i", "tensor<?x?x3xf32>"),
    "tile": (["tensor<2x3xf32>", "tensor<2xi64>"], "tile %x, %i", "tensor<?x?xf32>"),
    "unsqueeze": (["tensor<2x3xf32>", "tensor<2xi64>"], "unsqueeze %x, %i", "tensor<?x?x?x?xf32>"),
    "reduce": (["tensor<2x3x4xf32>", "tensor<2xi64>"], "reduce_sum %x, %i {keepdims = false}", "tensor<?xf32>"),
    "slice": (["tensor<7xf32>", "tensor<1xi64>", "tensor<1xi64>"], "slice %x, %i, %u", "tensor<?xf32>"),
    "through a cast": (["tensor<5xf32>", "tensor<3x1xi64>"], "gather %x, %c", "tensor<3x1xf32>"),
}


@pytest.mark.parametrize("name", INPUTS)
def test_integers_are_what_their_readers_take(name):
    types, op, result = INPUTS[name]
    arguments = ", ".join(f"%{n}: {ty}" for n, ty in zip("xiu", types, strict=False))
    cast = "%c = sx.cast %i {to = i64} : (tensor<3x1xi32>) -> tensor<3x1xi64>" if "cast" in name else ""
    body = f"{cast}\n  %0 = sx.{op} : ({', '.join(types)}) -> {result}\n  func.return %0 : {result}"
    text = f"func.func @main({arguments.replace('3x1xi64', '3x1xi32')}) -> {result} {{\n  {body}\n}}"
    function = main_function(parse_module(text))
    for kind in ("ordinary", "special", "larger"):
        made = check_inputs.inputs_for(function, kind)
        run_function(function, made)  # at the first attempt
        if name == "gather":
            assert made.values[1].min() >= -made.values[0].shape[0] and len(np.unique(made.values[1])) > 1


def test_inputs_have_special_values_odd_and_empty_extents():
    function = main_function(parse_module(CHAIN))
    sizes = [check_inputs.inputs_for(function, kind).values[0].shape[0] for kind in check_inputs.KINDS]
    assert sizes[:2] == [3, 3] and 1 in sizes and 0 in sizes
    special = check_inputs.inputs_for(function, "special").values[0]
    assert np.isnan(special).any() and np.isinf(special).any() and (np.signbit(special) & (special == 0)).any()
    ordinary = check_inputs.inputs_for(function, "ordinary").values[0]
    assert np.isfinite(ordinary).all() and (np.signbit(ordinary) & (ordinary == 0)).any()
    again = check_inputs.inputs_for(function, "ordinary").values[0]
    np.testing.assert_array_equal(ordinary, again)


def test_loops_that_made_up_inputs_make_endless_end():
    endless = """func.func @main(%x: tensor<f32>, %go: tensor<i1>) -> tensor<f32> {
      %0 = sx.loop _, %go, %x ({
      ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<f32>):
        sx.yield %c, %v : tensor<i1>, tensor<f32>
      }) : (tensor<i1>, tensor<f32>) -> tensor<f32>
      func.return %0 : tensor<f32>
    }"""
    function = main_function(parse_module(endless))
    with pytest.raises(SardonyxError, match="more than 10000 times"):
        run_function(function, check_inputs.Inputs((np.float32(1), np.bool_(True)), "ordinary", {}, 0))


def test_graphs_check_what_they_are_optimized_with():
    from sardonyx.frontend.graph import ModelGraph
    from sardonyx.frontend.transform import Transform

    graph = ModelGraph(parse_module(CHAIN))
    assert graph.optimize(check=2).changed is False
    with pytest.raises(MismatchError, match="pass 'drop-relu' changes values"):
        graph.optimize([SwitchPass()], check=2)

    def drop(graph: ModelGraph) -> None:
        for op in list(graph.module.walk()):
            if isinstance(op, ReluOp):
                op.results[0].replace_all_uses_with(op.operands[0])

    with pytest.raises(MismatchError, match="pass 'mine' changes values"):
        ModelGraph(parse_module(CHAIN)).optimize([Transform("mine", drop)], check=2)


def test_a_module_is_evaluated_once_per_state(monkeypatch):
    from sardonyx.passes import checked

    runs = 0
    real = checked.run_function

    def counted(*arguments: Any) -> Any:
        nonlocal runs
        runs += 1
        return real(*arguments)

    monkeypatch.setattr(checked, "run_function", counted)
    report = PassManager("simplify,cse,remove-dead-nodes", check=2).run(parse_module(FOLD))
    states = 1 + sum(p.changed for p in report.passes)
    assert runs == (2 * states if states > 1 else 0)
    assert PassChecker(CheckOptions(), make_context()).wants(parse_module(FOLD))
