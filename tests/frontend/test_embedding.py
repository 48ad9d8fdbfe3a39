"""The embedding API: text in, passes, values; and what whoever registers an evaluator gets on other dialects' IR."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, ModuleOp, f32
from xdsl.ir import Dialect, Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def, traits_def
from xdsl.passes import ModulePass
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)
from xdsl.traits import Pure

import sardonyx
from sardonyx.passes.base import PassRun, SxPass
from sardonyx.passes.checked import MismatchError
from sardonyx.passes.driver import RewriteDriver
from sardonyx.tools import cli, reduce

ADD = """func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %0 = sx.neg %x : (tensor<3xf32>) -> tensor<3xf32>
  %1 = sx.neg %0 : (tensor<3xf32>) -> tensor<3xf32>
  func.return %1 : tensor<3xf32>
}"""


def test_three_lines():
    module = sardonyx.parse(ADD)
    sardonyx.run_pipeline(module, "simplify")
    np.testing.assert_array_equal(module.evaluate([[1, 2, 3]])[0], np.array([1, 2, 3], np.float32))
    assert "sx.neg" not in str(module)


def test_what_modules_take_and_refuse():
    module = sardonyx.parse(ADD, "add.mlir")
    copy = module.clone()
    report = sardonyx.run_pipeline(copy, "simplify", check=2)
    assert report.changed and "sx.neg" in str(module) and "@main" in repr(module)
    assert module.evaluate({"x": [1.0, 2.0, 3.0]})[0].dtype == np.float32
    with pytest.raises(sardonyx.InvalidArgumentError, match="the function takes 1"):
        module.evaluate([])
    with pytest.raises(sardonyx.InvalidArgumentError, match=r"the function takes \['x'\]"):
        module.evaluate({"y": [1.0]})
    with pytest.raises(sardonyx.InvalidArgumentError, match="an input is float64"):
        module.evaluate([np.zeros(3)])
    with pytest.raises(sardonyx.InvalidArgumentError, match="no function @other"):
        module.evaluate([], "other")
    with pytest.raises(sardonyx.InvalidArgumentError, match=r"add\.mlir:2:"):
        sardonyx.parse(ADD.replace("sx.neg %x", "sx.ngg %x"), "add.mlir")
    with pytest.raises(sardonyx.InvalidArgumentError, match="there is no pass 'simplfy'"):
        sardonyx.run_pipeline(module, "simplfy")
    module.verify()


# ---- upstream's dialects


def value(body: str, *inputs: Any, types: str, result: str) -> Any:
    """What a function of that body gives."""
    text = f"func.func @main({types}) -> {result} {{\n{body}\n  func.return %r : {result}\n}}"
    (out,) = sardonyx.parse(text).evaluate(list(inputs))
    return out


def binary(op: str, a: Any, b: Any, ty: str = "i8", result: str | None = None, kind: str = "") -> Any:
    return value(
        f"  %r = arith.{op} {kind}%a, %b : {ty}", a, b, types=f"%a: {ty}, %b: {ty}", result=result or ty
    ).item()


@pytest.mark.parametrize(
    ("op", "a", "b", "want"),
    [("addi", 127, 1, -128), ("subi", -128, 1, 127), ("muli", 64, 2, -128), ("divsi", -7, 2, -3), ("remsi", -7, 2, -1),
     ("floordivsi", -7, 2, -4), ("ceildivsi", 7, 2, 4), ("ceildivsi", -7, 2, -3), ("divui", -1, 2, 127),
     ("remui", -1, 16, 15), ("ceildivui", 5, 2, 3), ("minsi", -1, 1, -1), ("minui", -1, 1, 1), ("maxui", -1, 1, -1),
     ("maxsi", -1, 1, 1), ("andi", 6, 3, 2), ("ori", 6, 3, 7), ("xori", 6, 3, 5), ("shli", 65, 1, -126),
     ("shrsi", -8, 1, -4), ("shrui", -8, 1, 124)],
)  # fmt: skip
def test_integers(op, a, b, want):
    assert binary(op, a, b) == want


@pytest.mark.parametrize(
    ("op", "a", "b"), [("divsi", 1, 0), ("divsi", -128, -1), ("remui", 1, 0), ("shli", 1, 8), ("shrui", 1, -1)]
)
def test_what_mlir_leaves_undefined_is_refused(op, a, b):
    with pytest.raises(sardonyx.ExecutionError, match="undefined: "):
        binary(op, a, b)


def test_floats_and_comparisons():
    nan = float("nan")
    assert binary("addf", 1.5, 2.0, "f32") == 3.5 and binary("divf", 1.0, 4.0, "f32") == 0.25
    assert np.isnan(binary("maximumf", nan, 1.0, "f32")) and binary("maxnumf", nan, 1.0, "f32") == 1.0
    assert str(binary("minimumf", 0.0, -0.0, "f32")) == "-0.0" and str(binary("maximumf", -0.0, 0.0, "f32")) == "0.0"
    for predicate, want in (("olt", True), ("ult", True), ("oeq", False), ("uno", False), ("ord", True), ("une", True)):
        assert binary("cmpf", 1.0, 2.0, "f32", "i1", f"{predicate}, ") is want
    for predicate, want in (
        ("olt", False),
        ("ult", True),
        ("one", False),
        ("une", True),
        ("uno", True),
        ("ord", False),
    ):
        assert binary("cmpf", 1.0, nan, "f32", "i1", f"{predicate}, ") is want
    for predicate, want in (("slt", True), ("ult", False), ("ne", True), ("uge", True), ("sgt", False)):
        assert binary("cmpi", -1, 1, "i8", "i1", f"{predicate}, ") is want


@pytest.mark.parametrize(
    ("op", "source", "target", "x", "want"),
    [("extsi", "i8", "i32", -1, -1), ("extui", "i8", "i32", -1, 255), ("trunci", "i32", "i8", 511, -1),
     ("sitofp", "i8", "f32", -3, -3.0), ("uitofp", "i8", "f32", -1, 255.0), ("fptosi", "f32", "i8", -3.7, -3),
     ("fptoui", "f32", "i8", 200.5, -56), ("truncf", "f64", "f32", 0.1, float(np.float32(0.1))),
     ("extf", "f32", "f64", 0.5, 0.5), ("index_cast", "i32", "index", -5, -5),
     ("bitcast", "f32", "i32", 1.0, 0x3F800000), ("extsi", "i1", "i8", True, -1), ("extui", "i1", "i8", True, 1)],
)  # fmt: skip
def test_conversions(op, source, target, x, want):
    got = value(f"  %r = arith.{op} %a : {source} to {target}", x, types=f"%a: {source}", result=target)
    assert got.item() == want
    if op == "fptosi":
        with pytest.raises(sardonyx.ExecutionError, match="undefined: a float beyond i8"):
            value(f"  %r = arith.{op} %a : {source} to {target}", 1e9, types=f"%a: {source}", result=target)


CALLS = """func.func @square(%x: f32) -> f32 {
  %0 = arith.mulf %x, %x : f32
  func.return %0 : f32
}
func.func @main(%x: f32, %n: index) -> f32 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %half = arith.constant 0.5 : f32
  %0 = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (f32) {
    %big = arith.cmpf ogt, %a, %half : f32
    %1 = scf.if %big -> (f32) {
      %2 = func.call @square(%a) : (f32) -> f32
      scf.yield %2 : f32
    } else {
      scf.yield %half : f32
    }
    scf.yield %1 : f32
  }
  func.return %0 : f32
}"""


def test_calls_loops_and_branches():
    module = sardonyx.parse(CALLS)
    assert module.evaluate([3.0, 2])[0] == 81.0 and module.evaluate([0.25, 1])[0] == 0.5
    assert module.evaluate([3.0, 0])[0] == 3.0
    endless = CALLS.replace("%0 = arith.mulf %x, %x : f32", "%0 = func.call @square(%x) : (f32) -> f32")
    with pytest.raises(sardonyx.ExecutionError, match="nested more than"):
        sardonyx.parse(endless).evaluate([3.0, 1])


GENERIC = """#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
func.func @main(%x: tensor<?x3xf32>, %y: tensor<3x4xf32>) -> (tensor<?x4xf32>, tensor<4x?xf32>) {
  %zero = arith.constant 0 : index
  %cst = arith.constant 0.0 : f32
  %n = tensor.dim %x, %zero : tensor<?x3xf32>
  %e = tensor.empty(%n) : tensor<?x4xf32>
  %f = linalg.fill ins(%cst : f32) outs(%e : tensor<?x4xf32>) -> tensor<?x4xf32>
  %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<?x3xf32>, tensor<3x4xf32>) outs(%f : tensor<?x4xf32>) {
  ^bb0(%p: f32, %q: f32, %acc: f32):
    %0 = arith.mulf %p, %q : f32
    %1 = arith.addf %acc, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<?x4xf32>
  %g = tensor.empty(%n) : tensor<4x?xf32>
  %t = linalg.transpose ins(%r : tensor<?x4xf32>) outs(%g : tensor<4x?xf32>) permutation = [1, 0]
  func.return %r, %t : tensor<?x4xf32>, tensor<4x?xf32>
}"""


def test_linalg_and_tensor():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 3)).astype(np.float32), rng.normal(size=(3, 4)).astype(np.float32)
    product, turned = sardonyx.parse(GENERIC).evaluate([x, y])
    np.testing.assert_allclose(product, x @ y, rtol=1e-5)
    np.testing.assert_array_equal(turned, product.T)
    sliced = value(
        "  %s = tensor.extract_slice %x[1, 0] [2, 2] [1, 2] : tensor<4x5xf32> to tensor<2x2xf32>\n"
        "  %r = tensor.collapse_shape %s [[0, 1]] : tensor<2x2xf32> into tensor<4xf32>",
        np.arange(20, dtype=np.float32).reshape(4, 5), types="%x: tensor<4x5xf32>", result="tensor<4xf32>",
    )  # fmt: skip
    assert sliced.tolist() == [5, 7, 10, 12]


NAMED = """func.func @main(%x: !T, %y: !T) -> (!T, tensor<2xf32>, tensor<4x3xf32>, !T) {
  %c = arith.constant 1.5 : f32
  %e = tensor.empty() : !T
  %0 = linalg.mul ins(%x, %y : !T, !T) outs(%e : !T) -> !T
  %1 = linalg.max ins(%0, %y : !T, !T) outs(%e : !T) -> !T
  %i = tensor.splat %c : tensor<2xf32>
  %2 = linalg.reduce ins(%1 : !T) outs(%i : tensor<2xf32>) dimensions = [1]
    (%a: f32, %acc: f32) {
      %s = arith.addf %a, %acc : f32
      linalg.yield %s : f32
    }
  %3 = tensor.concat dim(0) %x, %y : (!T, !T) -> tensor<4x3xf32>
  %g = tensor.empty() : !T
  %4 = linalg.broadcast ins(%2 : tensor<2xf32>) outs(%g : !T) dimensions = [1]
  func.return %1, %2, %3, %4 : !T, tensor<2xf32>, tensor<4x3xf32>, !T
}""".replace("!T", "tensor<2x3xf32>")


def test_named_ops_of_linalg():
    rng = np.random.default_rng(1)
    x, y = (rng.normal(size=(2, 3)).astype(np.float32) for _ in range(2))
    largest, sums, joined, spread = sardonyx.parse(NAMED).evaluate([x, y])
    np.testing.assert_array_equal(largest, np.maximum(x * y, y))
    np.testing.assert_allclose(sums, largest.sum(1) + 1.5, rtol=1e-5)
    np.testing.assert_array_equal(joined, np.concatenate([x, y]))
    np.testing.assert_array_equal(spread, np.broadcast_to(sums[:, None], (2, 3)))


def test_what_has_no_semantics_says_so():
    with pytest.raises(sardonyx.UnsupportedError, match=r"math\.exp has no reference semantics"):
        value("  %r = math.exp %a : f32", 1.0, types="%a: f32", result="f32")


# ---- somebody else's dialect and passes


@irdl_op_definition
class TwiceOp(IRDLOperation):
    name = "toy.twice"
    x = operand_def(f32)
    out = result_def(f32)
    traits = traits_def(Pure())
    assembly_format = "$x attr-dict"


TOY = Dialect("toy", [TwiceOp])


@sardonyx.register_evaluator(TwiceOp)
def _twice(ctx: Any, op: Operation, x: Any) -> Sequence[Any]:
    return [x * 2]


class FoldTwice(RewritePattern):
    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: TwiceOp, rewriter: PatternRewriter, /) -> None:
        if isinstance(op.x.owner, TwiceOp):
            three = arith.ConstantOp(FloatAttr(3.0, f32))
            rewriter.replace(op, [three, arith.MulfOp(op.x.owner.x, three.result)])


@dataclass(frozen=True)
class UpstreamPass(ModulePass):
    """A pass of xDSL's kind, and wrong: twice twice is four times, not three."""

    name = "toy-fold"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        PatternRewriteWalker(GreedyRewritePatternApplier([FoldTwice()])).rewrite_module(op)


@dataclass(frozen=True)
class OurPass(SxPass):
    """The same by our driver, which knows patterns."""

    name = "toy-fold-ours"

    def run(self, module: ModuleOp, run: PassRun) -> None:
        RewriteDriver([FoldTwice()], run).rewrite(module)


TWICE = """func.func @main(%x: f32, %y: f32) -> f32 {
  %0 = arith.addf %x, %y : f32
  %1 = toy.twice %0
  %2 = toy.twice %1
  %3 = arith.subf %2, %y : f32
  func.return %3 : f32
}"""


@pytest.mark.parametrize("wrong", [UpstreamPass(), OurPass()], ids=["upstream's", "ours"])
def test_passes_on_other_dialects_are_checked(wrong):
    module = sardonyx.parse(TWICE, "twice.mlir", dialects=[TOY])
    assert module.evaluate([1.0, 2.0])[0] == 10.0
    sardonyx.run_pipeline(module.clone(), "canonicalize,xdsl-cse", check=3)
    with pytest.raises(MismatchError, match="changes values") as caught:
        sardonyx.run_pipeline(module, [wrong], check=3)
    ops = re.findall(r"(\w+\.\w+) %", caught.value.reproducer)
    assert ops[:2] == ["toy.twice", "toy.twice"] and "arith" not in " ".join(ops)
    if isinstance(wrong, OurPass):
        assert caught.value.pattern == "fold-twice" and caught.value.location == "twice.mlir:4"


PLAIN = """func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %e = tensor.empty() : tensor<8xf32>
  %0 = linalg.add ins(%x, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %1 = linalg.sub ins(%0, %y : tensor<8xf32>, tensor<8xf32>) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %2 = arith.mulf %1, %y : tensor<8xf32>
  func.return %2 : tensor<8xf32>
}"""
WRONG = '''
from dataclasses import dataclass
from xdsl.dialects.linalg.ops import SubOp
from xdsl.passes import ModulePass

@dataclass(frozen=True)
class SwapPass(ModulePass):
    """Swaps what a subtraction reads."""
    name = "swap-operands"

    def apply(self, ctx, op):
        for sub in op.walk():
            if isinstance(sub, SubOp):
                a, b = sub.operands[0], sub.operands[1]
                sub.operands[0], sub.operands[1] = b, a
'''


def test_plain_linalg_is_reduced_and_blamed(tmp_path: Path):
    source, passes = tmp_path / "plain.mlir", tmp_path / "wrong.py"
    source.write_text(PLAIN)
    passes.write_text(WRONG)
    out, err = io.StringIO(), io.StringIO()
    words = [str(source), "--load", str(passes), "--oracle", "numeric", "-p", "xdsl-cse,swap-operands"]
    assert reduce.command(words, io.StringIO(), out, err) == 0, err.getvalue()
    ops = re.findall(r"(?:linalg|arith)\.(\w+) ", out.getvalue())
    assert ops == ["sub"] and "-p 'swap-operands'" in out.getvalue() and re.search("tensor<[12]xf32>", out.getvalue())
    blamed = io.StringIO()
    assert cli.run(["blame", str(source), "arith.mulf"], blamed, err) == 0
    assert "plain.mlir:5" in blamed.getvalue() and "arith.mulf %1, %y" in blamed.getvalue()
