"""Rewrite rules written as two functions: what they match, what they refuse, and that a wrong one is never made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ir_text import parse_module

import sardonyx as sx
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.rules import Match, Rule
from sardonyx.passes.base import PassRun, reassociates
from sardonyx.passes.driver import RewriteDriver
from sardonyx.passes.matching import constant_number, is_constant

SCALES = Rule(
    "merge-scales",
    lambda x, a, b: x * a * b,
    lambda x, a, b: x * (a * b),
    "x: f32[n, m], a: f32[], b: f32[]",
    promise=reassociates(2),
)


def run(rule: Rule, body: str, inputs: str = "%x: tensor<2x3xf32>, %a: tensor<f32>, %b: tensor<f32>") -> Any:
    """The names of the ops after the rule, and its run."""
    lines = "\n".join(f"  {line.strip()}" for line in body.strip().splitlines())
    result = body.rpartition(" : ")[2].strip()
    module = parse_module(f"func.func @main({inputs}) -> {result} {{\n{lines}\n}}")
    report = PassRun(keep_declines=True)
    RewriteDriver([rule], report).rewrite(module)
    module.verify()
    return [op.name for op in module.walk() if op.name.startswith("sx.")], report


MUL = "(tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>"


@pytest.mark.parametrize("operands", ["%0, %b", "%b, %0"])
@pytest.mark.parametrize("inner", ["%x, %a", "%a, %x"])
def test_commutative_ops_match_in_either_order(inner: str, operands: str):
    def ty(order: str) -> str:
        first = "tensor<f32>, tensor<2x3xf32>" if order in ("%b, %0", "%a, %x") else "tensor<2x3xf32>, tensor<f32>"
        return f"({first}) -> tensor<2x3xf32>"

    names, report = run(SCALES, f"""
        %0 = sx.mul {inner} : {ty(inner)}
        %1 = sx.mul {operands} : {ty(operands)}
        func.return %1 : tensor<2x3xf32>""")  # fmt: skip
    assert report.statistics["rewrites:merge-scales"] == 1
    assert names == ["sx.mul", "sx.mul"]


def test_where_it_must_not_fire():
    names, report = run(SCALES, f"""
        %0 = sx.mul %x, %a : {MUL}
        %1 = sx.mul %0, %b : {MUL}
        %2 = sx.add %0, %1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        func.return %2 : tensor<2x3xf32>""")  # fmt: skip
    assert not report.changed
    assert [d.reason for d in report.declines] == ["sx.mul inside of the pattern is read elsewhere, too"]
    shared = Rule(SCALES.name, SCALES.pattern, SCALES.replacement, SCALES.signature, reassociates(2), shared=True)
    names, report = run(shared, f"""
        %0 = sx.mul %x, %a : {MUL}
        %1 = sx.mul %0, %b : {MUL}
        %2 = sx.add %0, %1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        func.return %2 : tensor<2x3xf32>""")  # fmt: skip
    assert report.changed and names.count("sx.mul") == 3
    # Another rank, and another dtype.
    for a, dtype in (("tensor<3xf32>", "f32"), ("tensor<f64>", "f64")):
        x = f"tensor<2x3x{dtype}>"
        _, report = run(SCALES, f"""
            %0 = sx.mul %x, %a : ({x}, {a}) -> {x}
            %1 = sx.mul %0, %a : ({x}, {a}) -> {x}
            func.return %1 : {x}""", f"%x: {x}, %a: {a}")  # fmt: skip
        assert not report.changed


def test_the_same_value_and_equal_dims():
    same = Rule(
        "same", lambda x, y: (x - y) * (x - y), lambda x, y: sx.abs(x - y) * sx.abs(x - y), "x: f32[n, n], y: f32[n, n]"
    )
    text = """
        %0 = sx.sub {0} : (tensor<{1}xf32>, tensor<{1}xf32>) -> tensor<{1}xf32>
        %1 = sx.sub {2} : (tensor<{1}xf32>, tensor<{1}xf32>) -> tensor<{1}xf32>
        %2 = sx.mul %0, %1 : (tensor<{1}xf32>, tensor<{1}xf32>) -> tensor<{1}xf32>
        func.return %2 : tensor<{1}xf32>"""
    for first, shape, second, fires in (
        ("%x, %y", "3x3", "%x, %y", True),
        ("%x, %y", "3x3", "%y, %x", False),
        ("%x, %y", "3x4", "%x, %y", False),
    ):
        body = text.replace("{0}", first).replace("{1}", shape).replace("{2}", second)
        _, report = run(same, body, f"%x: tensor<{shape}xf32>, %y: tensor<{shape}xf32>")
        assert report.changed == fires, (first, shape, second)


def test_numbers_match_constants_and_guards_ask():
    half = Rule("half", lambda x: x * 0.5 + x * 0.5, lambda x: sx.identity(x), "x: f32[n]")
    body = """
        %c = sx.constant {value = dense<VALUE> : tensor<f32>} : () -> tensor<f32>
        %0 = sx.mul %x, %c : (tensor<7xf32>, tensor<f32>) -> tensor<7xf32>
        %1 = sx.mul %x, %c : (tensor<7xf32>, tensor<f32>) -> tensor<7xf32>
        %2 = sx.add %0, %1 : (tensor<7xf32>, tensor<7xf32>) -> tensor<7xf32>
        func.return %2 : tensor<7xf32>"""
    # In the pattern the two products are one value or two; here the text has two.
    for value, fires in (("5.0e-01", True), ("2.5e-01", False)):
        _, report = run(half, body.replace("VALUE", value), "%x: tensor<7xf32>")
        assert report.changed == fires

    def positive(match: Match) -> bool:
        number = constant_number(match["a"])
        return is_constant(match["a"]) and number is not None and number > 0

    root = Rule("abs-of-scaled", lambda x, a: sx.abs(x * a), lambda x, a: sx.abs(x) * a, "x: f32[n], a: f32[]",
                where=positive, sample={"a": lambda rng, shape: rng.uniform(0.5, 2, shape)})  # fmt: skip
    scaled = """
        %c = sx.constant {value = dense<VALUE> : tensor<f32>} : () -> tensor<f32>
        %0 = sx.mul %x, %c : (tensor<7xf32>, tensor<f32>) -> tensor<7xf32>
        %1 = sx.abs %0 : (tensor<7xf32>) -> tensor<7xf32>
        func.return %1 : tensor<7xf32>"""
    for value, fires in (("2.0", True), ("-2.0", False)):
        names, report = run(root, scaled.replace("VALUE", value), "%x: tensor<7xf32>")
        assert report.changed == fires
        assert (names[-1] == "sx.mul") == fires


@pytest.mark.parametrize(
    ("pattern", "replacement", "signature", "message"),
    [
        (lambda x, y: x - y, lambda x, y: y - x, "x: f32[n], y: f32[n]", "changes values"),
        (lambda x, y: x * y / y, lambda x, y: sx.identity(x) + 0 * y, "x: f32[n], y: f32[n]", "changes values"),
        (lambda x: x * 2 * 3, lambda x: x * 7, "x: f32[n, 2]", "changes values"),
        (lambda x: sx.exp(x), lambda x: sx.exp(sx.unsqueeze(x, 0)), "x: f32[n]", "shape"),
        (lambda x: x, lambda x: x, "x: f32[n]", "is no op of one result"),
        (lambda x, y: sx.exp(x), lambda x, y: sx.exp(x), "x: f32[n], y: f32[n]", "does not use y"),
        (lambda x: (x, x), lambda x: x, "x: f32[n]", "several tensors"),
        (lambda x: sx.exp(x), lambda x: sx.exp(sx.reshape(x, (3,))), "x: f32[n]", "is refused where"),
    ],
)  # fmt: skip
def test_wrong_rules_are_not_made(
    pattern: Callable[..., Any], replacement: Callable[..., Any], signature: str, message: str
):
    with pytest.raises(InvalidArgumentError, match=message):
        Rule("wrong", pattern, replacement, signature)


def test_a_promise_is_held_to():
    def rule(promise: Any) -> Rule:
        return Rule("sum", lambda x, y, z: x + y + z, lambda x, y, z: x + (y + z), "x: f32[n], y: f32[n], z: f32[n]",
                    promise=promise)  # fmt: skip

    rule(reassociates(2))
    with pytest.raises(InvalidArgumentError, match="exact"):
        rule(reassociates(0))


def test_values_after_a_rule_by_native_code():
    rng = np.random.default_rng(1)
    x, a, b = (rng.standard_normal(s).astype(np.float32) for s in ((4, 5), (), ()))
    graph = sx.trace(lambda x, a, b: sx.exp(x * a * b), "x: f32[n, 5], a: f32[], b: f32[]").graph
    RewriteDriver([SCALES], PassRun()).rewrite(graph.module)
    assert str(graph.module).index("sx.mul %a, %b")
    graph.finalize()
    (got,) = graph.run([x, a, b])
    np.testing.assert_allclose(np.asarray(got), np.exp(x * a * b), rtol=1e-6)
