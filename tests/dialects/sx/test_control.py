"""if, loop, scan: values, honest types, text, and one case per constraint."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from ir_text import parse_module
from xdsl.utils.exceptions import ParseError, VerifyException

from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.module import main_function
from sardonyx.errors import ExecutionError, InferenceError


def run(text: str, *arrays: Any) -> list[Any]:
    """Evaluate a module's function; its text parses back to the same."""
    module = parse_module(text)
    module.verify()
    printed = str(module)
    assert str(parse_module(printed)) == printed
    return evaluate_function(main_function(module), [np.asarray(a) for a in arrays])


def types(text: str) -> list[str]:
    """The result types of the first region op of a text whose results are all unknown."""
    module = parse_module(text)
    op = next(op for op in module.walk() if op.regions and op.name.startswith("sx."))
    return [str(ty) for ty in op.infer()]  # pyright: ignore[reportAttributeAccessIssue]


LOOP = """
func.func @main(%m: tensor<i64>, %go: tensor<i1>, %x: tensor<2xf32>, %k: tensor<2xf32>)
    -> (tensor<2xf32>, tensor<?x2xf32>) {{
  %a, %r = sx.loop {operands} ({{
  ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2xf32>):
    %w = sx.add %v, %k : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %first = sx.reduce_max %w {{keepdims = false}} : (tensor<2xf32>) -> tensor<f32>
    %limit = sx.constant {{value = dense<5.0> : tensor<f32>}} : () -> tensor<f32>
    %next = sx.less %first, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
    sx.yield %next, %w, %v : tensor<i1>, tensor<2xf32>, tensor<2xf32>
  }}) : {types} -> (tensor<2xf32>, tensor<?x2xf32>)
  func.return %a, %r : tensor<2xf32>, tensor<?x2xf32>
}}
"""


@pytest.mark.parametrize("trips, go, count", [(0, True, 0), (-4, True, 0), (2, True, 2), (2, False, 0), (99, True, 4)])
def test_loop_stops_by_its_count_or_its_condition(trips, go, count):
    text = LOOP.format(operands="%m, %go, %x", types="(tensor<i64>, tensor<i1>, tensor<2xf32>)")
    x, k = np.array([1, 0.5], "f4"), np.array([1, -1], "f4")
    last, rows = run(text, trips, go, x, k)
    assert rows.shape == (count, 2) and rows.dtype == np.float32
    np.testing.assert_array_equal(last, x + count * k)
    np.testing.assert_array_equal(rows, [x + i * k for i in range(count)] or np.zeros((0, 2)))


def test_loop_without_count_or_without_condition():
    x, k = np.array([1, 0.5], "f4"), np.array([1, -1], "f4")
    for operands, types_ in (("_, %go, %x", "(tensor<i1>, tensor<2xf32>)"), ("_, _, %x", "(tensor<2xf32>)")):
        last, rows = run(LOOP.format(operands=operands, types=types_), 0, True, x, k)
        assert last.tolist() == [5.0, -3.5] and len(rows) == 4
    last, rows = run(LOOP.format(operands="%m, _, %x", types="(tensor<i64>, tensor<2xf32>)"), 2, False, x, k)
    assert len(rows) == 2


def test_a_carried_value_may_change_its_shape():
    text = """
    func.func @main(%m: tensor<i64>, %x: tensor<1xf32>) -> tensor<?xf32> {
      %a = sx.loop %m, _, %x ({
      ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<?xf32>):
        %w = sx.concat %v, %x {axis = 0 : i64} : (tensor<?xf32>, tensor<1xf32>) -> tensor<?xf32>
        sx.yield %c, %w : tensor<i1>, tensor<?xf32>
      }) : (tensor<i64>, tensor<1xf32>) -> tensor<?xf32>
      func.return %a : tensor<?xf32>
    }
    """
    (out,) = run(text, 3, np.ones(1, "f4"))
    assert out.shape == (4,)
    fixed = text.replace("%v: tensor<?xf32>", "%v: tensor<1xf32>").replace("(tensor<?xf32>, t", "(tensor<1xf32>, t")
    fixed = fixed.replace("-> tensor<?xf32>\n        s", "-> tensor<2xf32>\n        s").replace(
        "i1>, tensor<?xf32>", "i1>, tensor<2xf32>"
    )
    with pytest.raises(VerifyException, match=r"\(C4\) carried value 0 after an iteration has type tensor<2xf32>"):
        parse_module(fixed).verify()


def test_a_carried_value_that_does_not_fit_is_refused_by_the_run():
    text = """
    func.func @main(%m: tensor<i64>, %x: tensor<2xf32>, %p: tensor<1xi64>) -> tensor<?xf32> {
      %a = sx.loop %m, _, %x ({
      ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<2xf32>):
        %w = sx.tile %v, %p : (tensor<2xf32>, tensor<1xi64>) -> tensor<?xf32>
        sx.yield %c, %w : tensor<i1>, tensor<?xf32>
      }) : (tensor<i64>, tensor<2xf32>) -> tensor<?xf32>
      func.return %a : tensor<?xf32>
    }
    """
    assert run(text, 5, np.ones(2, "f4"), [1])[0].shape == (2,)
    with pytest.raises(ExecutionError, match=r"\(C4\) carried value 0, in iteration 1, has shape \[4\].*takes 2"):
        run(text, 5, np.ones(2, "f4"), [2])


def test_rows_of_a_loop_that_never_ran_have_the_extents_that_follow_from_outside():
    text = """
    func.func @main(%m: tensor<i64>, %x: tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x?x3xf32> {
      %r = sx.loop %m, _ ({
      ^bb0(%i: tensor<i64>, %c: tensor<i1>):
        %w = sx.neg %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
        sx.yield %c, %w : tensor<i1>, tensor<?x3xf32, #sx.dims<n, _>>
      }) : (tensor<i64>) -> tensor<?x?x3xf32>
      func.return %r : tensor<?x?x3xf32>
    }
    """
    assert run(text, 0, np.ones((5, 3), "f4"))[0].shape == (0, 5, 3)
    assert run(text, 2, np.ones((5, 3), "f4"))[0].shape == (2, 5, 3)
    (ty,) = types(text)
    assert ", n, _>" in ty


def test_rows_of_different_shapes_are_refused():
    text = """
    func.func @main(%m: tensor<i64>) -> tensor<?x?xi64> {
      %r = sx.loop %m, _ ({
      ^bb0(%i: tensor<i64>, %c: tensor<i1>):
        %zero = sx.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
        %one = sx.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
        %w = sx.range %zero, %i, %one : (tensor<i64>, tensor<i64>, tensor<i64>) -> tensor<?xi64>
        sx.yield %c, %w : tensor<i1>, tensor<?xi64>
      }) : (tensor<i64>) -> tensor<?x?xi64>
      func.return %r : tensor<?x?xi64>
    }
    """
    assert run(text, 1)[0].shape == (1, 0)
    with pytest.raises(ExecutionError, match=r"\(C5\) rows of different shapes"):
        run(text, 3)


def test_the_number_of_rows_is_known_where_nothing_stops_the_loop():
    text = """
    func.func @main(%go: tensor<i1>) -> tensor<?xi64> {
      %m = sx.constant {value = dense<7> : tensor<i64>} : () -> tensor<i64>
      %r = sx.loop %m, COND ({
      ^bb0(%i: tensor<i64>, %c: tensor<i1>):
        %d = sx.identity %c : (tensor<i1>) -> tensor<i1>
        sx.yield %d, %i : tensor<i1>, tensor<i64>
      }) : (TYPES) -> tensor<?xi64>
      func.return %r : tensor<?xi64>
    }
    """
    assert types(text.replace("COND", "_").replace("TYPES", "tensor<i64>")) == ["tensor<7xi64>"]
    unknown = types(text.replace("COND", "%go").replace("TYPES", "tensor<i64>, tensor<i1>"))
    assert unknown[0].startswith("tensor<?xi64")


IF = """
func.func @main(%c: tensor<CSHAPEi1>, %x: tensor<?x3xf32, #sx.dims<n, _>>, %y: tensor<4x3xf32>) -> TYPE {
  %z = sx.if %c ({
    %a = sx.neg %x : (tensor<?x3xf32, #sx.dims<n, _>>) -> tensor<?x3xf32, #sx.dims<n, _>>
    sx.yield %a : tensor<?x3xf32, #sx.dims<n, _>>
  }, {
    sx.yield %y : tensor<4x3xf32>
  }) : (tensor<CSHAPEi1>) -> TYPE
  func.return %z : TYPE
}
"""


@pytest.mark.parametrize("shape", ["", "1x", "?x"])
def test_if(shape):
    text = IF.replace("CSHAPE", shape).replace("TYPE", "tensor<?x3xf32>")
    x, y = np.ones((2, 3), "f4"), np.zeros((4, 3), "f4")
    flags = (True, False) if not shape else ([True], [False])
    np.testing.assert_array_equal(run(text, flags[0], x, y)[0], -x)
    np.testing.assert_array_equal(run(text, flags[1], x, y)[0], y)
    (ty,) = types(text)
    assert ty.startswith("tensor<?x3xf32") and "<n" not in ty, "neither branch's extent is certain"
    if shape == "?x":
        with pytest.raises(ExecutionError, match=r"\(C1\) a condition has 2 elements"):
            run(text, [True, False], x, y)


def test_if_of_other_ranks_has_none():
    text = IF.replace("CSHAPE", "").replace("TYPE", "tensor<*xf32>").replace("4x3xf32", "5xf32")
    assert types(text) == ["tensor<*xf32>"]
    assert run(text, False, np.ones((2, 3), "f4"), np.ones(5, "f4"))[0].shape == (5,)


SCAN = """
func.func @main(%s: tensor<2xf32>, %x: tensor<2x?xf32, #sx.dims<_, t>>, %y: tensor<?xf32, #sx.dims<t>>)
    -> (tensor<2xf32>, tensor<2x?xf32, #sx.dims<_, t>>) {
  %a, %r = sx.scan %s, %x, %y {num_scan_inputs = 2 : i64, PROPS} ({
  ^bb0(%v: tensor<2xf32>, %p: tensor<2xf32>, %q: tensor<f32>):
    %w = sx.mul %p, %q : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
    %u = sx.add %v, %w : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    sx.yield %u, %u : tensor<2xf32>, tensor<2xf32>
  }) : (tensor<2xf32>, tensor<2x?xf32, #sx.dims<_, t>>, tensor<?xf32, #sx.dims<t>>)
      -> (tensor<2xf32>, tensor<2x?xf32, #sx.dims<_, t>>)
  func.return %a, %r : tensor<2xf32>, tensor<2x?xf32, #sx.dims<_, t>>
}
"""


@pytest.mark.parametrize("axis", [1, -1])
@pytest.mark.parametrize("backward_x", [0, 1])
@pytest.mark.parametrize("backward_out", [0, 1])
@pytest.mark.parametrize("t", [0, 1, 3])
def test_scan(axis, backward_x, backward_out, t):
    props = (
        f"scan_input_axes = array<i64: {axis}, 0>, scan_input_directions = array<i64: {backward_x}, 1>, "
        f"scan_output_axes = array<i64: {axis}>, scan_output_directions = array<i64: {backward_out}>"
    )
    rng = np.random.default_rng(t)
    s, x, y = rng.random(2, "f4"), rng.random((2, t), "f4"), rng.random(t, "f4")
    last, rows = run(SCAN.replace("PROPS", props), s, x, y)
    forward = x[:, ::-1] if backward_x else x
    want, state = [], s.astype("f4")
    for i in range(t):
        state = state + forward[:, i] * y[::-1][i]
        want.append(state)
    stacked = np.stack(want[::-1] if backward_out else want, 1) if want else np.zeros((2, 0), "f4")
    np.testing.assert_allclose(last, state, rtol=1e-6)
    np.testing.assert_allclose(rows, stacked, rtol=1e-6)
    assert types(SCAN.replace("PROPS", props))[1] == "tensor<2x?xf32, #sx.dims<_, t>>"


def test_scan_refuses_lengths_that_differ():
    text = SCAN.replace("PROPS", "scan_input_axes = array<i64: 1, 0>, scan_output_axes = array<i64: 1>")
    with pytest.raises(ExecutionError, match=r"\(C4\) the scanned axes have \[2, 3\] elements"):
        run(text, np.ones(2, "f4"), np.ones((2, 3), "f4"), np.ones(2, "f4"))


@pytest.mark.parametrize(
    "change, constraint",
    [
        (("num_scan_inputs = 2", "num_scan_inputs = 0"), "C1"),
        (("num_scan_inputs = 2", "num_scan_inputs = 4"), "C1"),
        (("sx.yield %u, %u : tensor<2xf32>, tensor<2xf32>", "sx.yield %u : tensor<2xf32>"), "C2"),
        (("PROPS", "scan_input_axes = array<i64: 1>"), "C3"),
        (("PROPS", "scan_input_axes = array<i64: 2, 0>"), "C3"),
        (("PROPS", "scan_input_axes = array<i64: 1, 0>, scan_input_directions = array<i64: 2, 0>"), "C3"),
        (("PROPS", "scan_input_axes = array<i64: 1, 0>, scan_output_axes = array<i64: 2>"), "C3"),
        (("tensor<2x?xf32", "tensor<3x?xf32"), "C5"),
    ],
)
def test_constraints_of_scan(change, constraint):
    plain = "scan_input_axes = array<i64: 1, 0>, scan_output_axes = array<i64: 1>"
    with pytest.raises((VerifyException, InferenceError), match=rf"\({constraint}\)"):
        parse_module(SCAN.replace(*change).replace("PROPS", plain)).verify()


@pytest.mark.parametrize(
    "change, constraint",
    [
        (("%m: tensor<i64>", "%m: tensor<2xi64>"), "C1"),
        (("%go: tensor<i1>", "%go: tensor<i64>"), "C1"),
        (("%c: tensor<i1>, %v: tensor<2xf32>", "%c: tensor<i1>, %v: tensor<2xf32>, %no: tensor<f32>"), "C2"),
        (("sx.yield %next, %w, %v : tensor<i1>, tensor<2xf32>, tensor<2xf32>",
          "sx.yield %next, %w : tensor<i1>, tensor<2xf32>"), "C3"),
        (("sx.yield %next, %w, %v : tensor<i1>,", "sx.yield %i, %w, %v : tensor<i64>,"), "C3"),
        (("sx.yield %next, %w, %v : tensor<i1>, tensor<2xf32>, tensor<2xf32>",
          "sx.yield %next, %first, %v : tensor<i1>, tensor<f32>, tensor<2xf32>"), "C4"),
    ],
)  # fmt: skip
def test_constraints_of_loop(change, constraint):
    operand = f"({change[1].split(': ')[1] if 'm:' in change[1] else 'tensor<i64>'}, tensor<i1>, tensor<2xf32>)"
    if "go:" in change[1]:
        operand = "(tensor<i64>, tensor<i64>, tensor<2xf32>)"
    text = LOOP.format(operands="%m, %go, %x", types=operand).replace(change[0], change[1], 1)
    with pytest.raises((VerifyException, InferenceError), match=rf"\({constraint}\)"):
        parse_module(text).verify()


def test_a_loop_that_cannot_end_is_refused():
    text = """
    func.func @main(%x: tensor<f32>) -> tensor<f32> {
      %a = sx.loop _, _, %x ({
      ^bb0(%i: tensor<i64>, %c: tensor<i1>, %v: tensor<f32>):
        sx.yield %c, %v : tensor<i1>, tensor<f32>
      }) : (tensor<f32>) -> tensor<f32>
      func.return %a : tensor<f32>
    }
    """
    with pytest.raises(VerifyException, match=r"\(C6\) the loop never ends"):
        parse_module(text).verify()


@pytest.mark.parametrize(
    "change, constraint",
    [
        (("tensor<CSHAPEi1>", "tensor<i64>"), "C1"),
        (("    sx.yield %y : tensor<4x3xf32>", "    sx.yield"), "C3"),
        (("    sx.yield %y : tensor<4x3xf32>", "    sx.yield %c : tensor<i1>"), "C3"),
    ],
)
def test_constraints_of_if(change, constraint):
    text = IF.replace(*change).replace("CSHAPE", "").replace("TYPE", "tensor<?x3xf32>")
    with pytest.raises((VerifyException, InferenceError), match=rf"\({constraint}\)"):
        parse_module(text).verify()


def test_a_region_needs_its_end():
    text = (
        IF.replace("    sx.yield %y : tensor<4x3xf32>\n", "").replace("CSHAPE", "").replace("TYPE", "tensor<?x3xf32>")
    )
    with pytest.raises((VerifyException, InferenceError, ParseError)):
        parse_module(text).verify()
