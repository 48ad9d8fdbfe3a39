"""Pipelines as text, and the manager that runs them."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from ir_text import parse_module
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from sardonyx.errors import InvalidArgumentError
from sardonyx.passes import pipeline, registry
from sardonyx.passes.base import EXACT, PassError, PassRun, Promise, SxPass, approximates, reassociates, sum_promises
from sardonyx.passes.pipeline import DEFAULT_PIPELINE, Instrumentation, PassManager, PassReport
from sardonyx.passes.pipeline_text import format_spec, parse_specs

TEXT = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = sx.neg %x : (tensor<2xf32>) -> tensor<2xf32>
  func.return %x : tensor<2xf32>
}"""


@dataclass(frozen=True)
class OptionsPass(SxPass):
    """A pass with an option of each kind."""

    name = "test-options"
    max_bytes: int = 7
    ratio: float = 0.5
    deep: bool = False
    mode: str = "fast"
    axes: tuple[int, ...] = ()
    limit: int | None = None

    def run(self, module: ModuleOp, run: PassRun) -> None:
        run.statistics.count("seen", self.max_bytes)
        run.remark("test", "was here", module)


class MarkPass(ModulePass):
    """A pass as upstream writes them: it says nothing about what it did."""

    name = "test-mark"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        op.attributes["mark"] = StringAttr("here")


class BreakPass(ModulePass):
    name = "test-break"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in op.walk():
            if inner.name == "sx.neg":
                inner.operands = []


@pytest.fixture(autouse=True)
def passes(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    registry.register("test-options", OptionsPass)
    registry.register("test-mark", MarkPass)
    registry.register("test-break", lambda: BreakPass)


def test_options_of_all_kinds():
    text = 'test-options{max-bytes=1024 ratio=2.5 deep=true mode="a b" axes=0,-1 limit=3}'
    (found,) = pipeline.parse(text)
    assert found == OptionsPass(1024, 2.5, True, "a b", (0, -1), 3)
    assert pipeline.format([found]) == text


def test_flags_underscores_and_blanks():
    (found,) = pipeline.parse("  test-options { deep   max_bytes = 3 } ")
    assert found == OptionsPass(max_bytes=3, deep=True)
    assert pipeline.format([found]) == "test-options{max-bytes=3 deep=true}"


def test_defaults_are_left_out_of_the_text():
    assert pipeline.format(pipeline.parse("cse,test-options{max-bytes=7},cse")) == "cse,test-options,cse"


@pytest.mark.parametrize(
    "text", ["builtin.module(cse,simplify)", "builtin.module(func.func(cse),any(simplify))", "cse,func.func(simplify)"]
)
def test_the_nested_form_of_mlir(text):
    assert [p.name for p in pipeline.parse(text)] == ["cse", "simplify"]


def test_the_empty_pipeline():
    assert pipeline.parse("") == [] and pipeline.parse("builtin.module()") == []


def test_the_default_pipeline_round_trips():
    assert pipeline.format(pipeline.parse(DEFAULT_PIPELINE)) == DEFAULT_PIPELINE


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("compose-transpose", "there is no pass 'compose-transpose'", "did you mean 'compose-transposes'?"),
        ("zzz", "there is no pass 'zzz'", "see sardonyx-opt --list-passes"),
        ("cse{max=1}", "there is no option of pass 'cse' 'max'", "it has no options"),
        (
            "test-options{max-byte=1}",
            "there is no option of pass 'test-options' 'max-byte'",
            "did you mean 'max-bytes'?",
        ),
        (
            "test-options{max-bytes=x}",
            "pass 'test-options': option 'max-bytes' cannot be 'x'",
            "its options: max-bytes: int = 7",
        ),
        ("test-options{deep=1 deep=2}", "column 21: option 'deep' is given twice", None),
        ("cse,,cse", "column 5: expected the name of a pass, found ','", None),
        ("cse;cse", "column 4: unexpected ';'", None),
        ("cse{a", "expected an option or '}', found the end", None),
        ("cse cse", "column 5: expected ',' or the end, found 'cse'", None),
        ("cse(simplify)", "'cse' cannot hold passes; builtin.module", None),
        ("builtin.module(cse", "expected ')', found the end", None),
        ("test-options{max-bytes=}", "expected a value, found '}'", None),
    ],
)
def test_errors_name_the_place_and_the_nearest_fix(text, message, hint):
    with pytest.raises(InvalidArgumentError) as caught:
        pipeline.parse(text)
    assert message in str(caught.value)
    if hint is not None:
        assert caught.value.hint is not None and hint in caught.value.hint


def test_an_error_of_syntax_points_at_its_column():
    with pytest.raises(InvalidArgumentError) as caught:
        parse_specs("cse,simplify)")
    assert caught.value.notes == ("cse,simplify)", " " * 12 + "^")


def test_specs_round_trip():
    text = 'a{x=1,-2,3.5 y=true z="q, \\"w\\"" f},b.c'
    assert ",".join(format_spec(s) for s in parse_specs(text)) == text


# ---- the manager


def test_what_is_reported():
    module = parse_module(TEXT)
    report = PassManager("test-options{max-bytes=9},remove-dead-nodes,cse").run(module)
    assert [p.name for p in report.passes] == ["test-options", "remove-dead-nodes", "cse"]
    assert [p.changed for p in report.passes] == [False, True, False]
    assert report.changed and report.passes[0].spec == "test-options{max-bytes=9}"
    assert report.statistics()["test-options.seen"] == 9
    assert report.statistics()["remove-dead-nodes.removed"] == 1
    assert report.passes[0].remarks[0].message == "was here"
    assert all(p.seconds >= 0 for p in report.passes) and report.seconds > 0


def test_change_is_noticed_where_a_pass_says_nothing():
    module = parse_module(TEXT)
    manager = PassManager("test-mark,test-mark")
    assert [p.changed for p in manager.run(module).passes] == [True, False]


class Log(Instrumentation):
    def __init__(self, tag: str, lines: list[str]) -> None:
        self.tag = tag
        self.lines = lines

    def before_pass(self, index: int, pass_: ModulePass, module: ModuleOp) -> None:
        self.lines.append(f"{self.tag} before {index} {pass_.name}")

    def after_pass(self, index: int, pass_: ModulePass, module: ModuleOp, report: PassReport) -> None:
        self.lines.append(f"{self.tag} after {index} {report.changed}")

    def on_failure(self, index: int, pass_: ModulePass, module: ModuleOp, error: Exception) -> None:
        self.lines.append(f"{self.tag} failure {index} {type(error).__name__}")


def test_instrumentation_nests():
    lines: list[str] = []
    PassManager("remove-dead-nodes", [Log("a", lines), Log("b", lines)]).run(parse_module(TEXT))
    assert lines == ["a before 0 remove-dead-nodes", "b before 0 remove-dead-nodes", "b after 0 True", "a after 0 True"]


def test_verify_each_names_the_pass_without_printing_the_module():
    lines: list[str] = []
    with pytest.raises(PassError) as caught:
        PassManager("cse,test-break,cse", [Log("a", lines)], verify_each=True).run(parse_module(TEXT))
    assert "pass 'test-break' left invalid IR" in str(caught.value)
    assert "func.func" not in str(caught.value) and "\n" not in str(caught.value)
    assert lines[-1] == "a failure 1 PassError" and "a before 2 cse" not in lines


def test_a_pass_that_raises_is_named():
    class Raises(ModulePass):
        name = "test-raises"

        def apply(self, ctx: Context, op: ModuleOp) -> None:
            raise KeyError("lost")

    with pytest.raises(PassError, match="pass 'test-raises' failed: KeyError: 'lost'"):
        PassManager([Raises()]).run(parse_module(TEXT))


def test_passes_of_upstream():
    names = [p.name for p in pipeline.parse("canonicalize,xdsl-cse,cse")]
    assert names == ["canonicalize", "cse", "cse"]
    ours, theirs = pipeline.parse("cse,xdsl-cse")
    assert isinstance(ours, SxPass) and not isinstance(theirs, SxPass)
    report = PassManager("canonicalize").run(parse_module(TEXT))
    assert report.changed and report.promise is None


# ---- promises


def test_promises_add_up():
    assert str(EXACT) == "exact" and EXACT.is_exact
    total = sum_promises([reassociates(1.0), approximates(2.0), EXACT, reassociates(0.5)])
    assert total == Promise(1.5, 2.0)
    assert str(total) == "reassociates(1.5) + approximates(2 ulp)"


def test_only_passes_that_changed_something_count():
    report = PassManager("compose-transposes,remove-dead-nodes").run(parse_module(TEXT))
    assert [p.changed for p in report.passes] == [False, True]
    assert report.promise == EXACT


def test_a_pipeline_can_name_a_pipeline():
    assert pipeline.format(pipeline.parse("default")) == DEFAULT_PIPELINE
    assert pipeline.format(pipeline.parse("cse,optimize")) == f"cse,{pipeline.SIMPLIFY_PIPELINE}"
    with pytest.raises(InvalidArgumentError, match="pipeline 'optimize' has no options"):
        pipeline.parse("optimize{fast}")
