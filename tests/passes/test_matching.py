"""What patterns ask of values: each question with a yes, a no, and what only a symbol makes unknown."""

from __future__ import annotations

from typing import Any

from ir_text import parse_module
from xdsl.dialects import func

from sardonyx.dialects.dims import Dim
from sardonyx.dialects.sx.binary import AddOp, MulOp
from sardonyx.dialects.sx.unary import ExpOp
from sardonyx.passes import matching

N = "tensor<?x3xf32, #sx.dims<n, _>>"
M = "tensor<?x3xf32, #sx.dims<m, _>>"
TEXT = f"""\
func.func @main(%x: {N}, %y: {N}, %z: {M}, %row: tensor<1x3xf32>, %s: tensor<f32>) -> {N} {{
  %two = sx.constant {{value = dense<2.0> : tensor<3xf32>}} : () -> tensor<3xf32>
  %mixed = sx.constant {{value = dense<[1.0, 2.0, 3.0]> : tensor<3xf32>}} : () -> tensor<3xf32>
  %nan = sx.constant {{value = dense<"0x0000C07F"> : tensor<f32>}} : () -> tensor<f32>
  %e = sx.exp %x : ({N}) -> {N}
  %a = sx.add %e, %y : ({N}, {N}) -> {N}
  %b = sx.mul %a, %a : ({N}, {N}) -> {N}
  func.return %b : {N}
}}
"""


def values() -> tuple[dict[str, Any], Any]:
    module = parse_module(TEXT)
    function: Any = next(op for op in module.walk() if isinstance(op, func.FuncOp))
    named = {argument.name_hint: argument for argument in function.body.block.args}
    named |= {result.name_hint: result for op in function.body.block.ops for result in op.results}
    return named, module


def test_who_defines_and_who_reads():
    v, _module = values()
    exp = matching.defined_by(v["e"], ExpOp)
    assert exp is not None and exp.operands[0] is v["x"]
    assert matching.defined_by(v["e"], AddOp) is None and matching.defined_by(v["x"], ExpOp) is None
    assert matching.operand_from(v["a"].op, ExpOp) == (exp, 0)
    assert matching.operand_from(v["a"].op, MulOp) is None
    assert matching.has_one_use(v["e"]) and not matching.has_one_use(v["a"])
    assert matching.only_user(v["a"]) is v["b"].op, "both uses are of one op"
    assert matching.only_user(v["z"]) is None


def test_constants():
    v, _module = values()
    assert matching.is_constant(v["two"]) and not matching.is_constant(v["x"]) and not matching.is_constant(None)
    assert matching.constant_number(v["two"]) == 2.0
    assert [matching.constant_number(v[name]) for name in ("mixed", "nan", "x")] == [None, None, None]
    array = matching.constant_array(v["mixed"])
    assert array is not None and array.tolist() == [1.0, 2.0, 3.0]
    assert matching.constant_array(v["x"]) is None


def test_shapes():
    v, _module = values()
    n = Dim.symbol("n")
    assert matching.dims_equal(n + n + n, n * 3) and matching.dims_equal(3, 3)
    assert not matching.dims_equal(n, Dim.symbol("m")) and not matching.dims_equal(n, 3)
    assert matching.same_shape(v["x"], v["y"]) and not matching.same_shape(v["x"], v["z"])
    for name, fits in (("y", True), ("row", True), ("s", True), ("two", True), ("z", False)):
        assert matching.broadcasts_to(v[name], v["x"]) == fits, name
        assert matching.are_broadcastable(v[name], v["x"]) == fits, name
        assert matching.are_broadcastable(v["x"], v[name]) == fits, name
    assert not matching.broadcasts_to(v["x"], v["row"]), "it would grow"
