"""The pattern driver: dispatch, worklist, locations, types, errors. On an own small set of patterns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from ir_text import parse_module
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.pattern_rewriter import (
    GreedyRewritePatternApplier,
    PatternRewriter,
    PatternRewriteWalker,
    RewritePattern,
    op_type_rewrite_pattern,
)

from sardonyx.dialects import locations
from sardonyx.dialects.attributes import tensor_type
from sardonyx.dialects.dtypes import float32
from sardonyx.dialects.module import create_module, set_outputs
from sardonyx.dialects.sx.binary import AddOp
from sardonyx.passes.base import PassError, PassRun, RewriteEvent
from sardonyx.passes.driver import RewriteDriver, SxPattern, SxRewriter, matched_types, pattern_name

F = "tensor<4xf32>"


def adds(count: int) -> str:
    lines = [f'%v0 = sx.add %x, %x : ({F}, {F}) -> {F} loc("m.py":1:0)']
    lines += [
        f'%v{i} = sx.add %v{i - 1}, %x {{tag = "a"}} : ({F}, {F}) -> {F} loc("m.py":{i + 1}:0)' for i in range(1, count)
    ]
    return f"func.func @main(%x: {F}) -> {F} {{\n" + "\n".join(lines) + f"\nfunc.return %v{count - 1} : {F}\n}}"


def tag_of(op: Operation) -> str | None:
    found = op.attributes.get("tag")
    return found.data if isinstance(found, StringAttr) else None


@dataclass
class RetagPattern(SxPattern[AddOp]):
    """Replace an add with tag `old` by one with tag `new`."""

    old: str
    new: str
    OPS = (AddOp,)

    @property
    def NAME(self) -> str:
        return f"{self.old}-to-{self.new}"

    def rewrite(self, op: AddOp, rewriter: SxRewriter) -> None:
        if tag_of(op) != self.old:
            return rewriter.decline(f"the tag is not {self.old}")
        made = AddOp.make(op.lhs, op.rhs)
        made.attributes["tag"] = StringAttr(self.new)
        rewriter.replace(op, made)


class UpstreamPattern(RewritePattern):
    """The same as upstream would write it."""

    @op_type_rewrite_pattern
    def match_and_rewrite(self, op: AddOp, rewriter: PatternRewriter, /) -> None:
        if tag_of(op) != "a":
            return
        made = AddOp.create(operands=op.operands, result_types=[op.output.type])
        rewriter.replace(op, made)


@dataclass
class Watch:
    fuel: int = 1_000_000
    events: list[RewriteEvent] = field(default_factory=list)
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    def on_match(self, pass_name: str, pattern: str, op: Operation) -> bool:
        self.asked.append((pass_name, pattern, op.name))
        return len(self.events) < self.fuel

    def on_rewrite(self, event: RewriteEvent) -> None:
        self.events.append(event)


def drive(module: ModuleOp, *patterns: RewritePattern, **options: Any) -> PassRun:
    run = PassRun(pass_name="p", keep_declines=True, **options)
    RewriteDriver(patterns, run).rewrite(module)
    module.verify()
    return run


def test_names_and_dispatch():
    assert pattern_name(UpstreamPattern()) == "upstream"
    assert pattern_name(RetagPattern("a", "b")) == "a-to-b"
    assert matched_types(UpstreamPattern()) == (AddOp,)
    assert matched_types(RetagPattern("a", "b")) == (AddOp,)


def test_a_pattern_without_types_sees_every_op():
    seen: list[str] = []

    class Any(RewritePattern):
        def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
            seen.append(op.name)

    drive(parse_module(adds(2)), Any())
    assert seen == ["func.func", "sx.add", "sx.add", "func.return"]


def test_patterns_are_tried_by_type_only():
    watch = Watch()
    drive(parse_module(adds(2)), UpstreamPattern(), listener=watch)
    assert {op for _, _, op in watch.asked} == {"sx.add"}


@pytest.mark.parametrize("pattern", [RetagPattern("a", "b"), UpstreamPattern()], ids=["ours", "upstream's"])
def test_new_ops_keep_the_location_of_the_matched_op(pattern):
    module = parse_module(adds(3))
    drive(module, pattern)
    ops = [op for op in module.walk() if isinstance(op, AddOp)]
    assert [locations.describe(op.location) for op in ops] == ["m.py:1", "m.py:2", "m.py:3"]
    assert str(ops[1].location) == f'loc("pass:p:{pattern_name(pattern)}"("m.py":2:0))'


def test_a_location_that_the_pattern_gives_is_wrapped_not_replaced():
    class Own(SxPattern[AddOp]):
        OPS = (AddOp,)
        NAME = "own"

        def rewrite(self, op: AddOp, rewriter: SxRewriter) -> None:
            if tag_of(op) == "a":
                rewriter.replace(op, AddOp.make(op.lhs, op.rhs, location=locations.file_location("other.py", 9)))

    module = parse_module(adds(2))
    drive(module, Own())
    assert 'loc("pass:p:own"("other.py":9:0))' in [str(op.location) for op in module.walk()]


def test_an_op_that_stands_for_several_comes_from_all_of_them():
    """Upstream's patterns say nothing of locations: what they erase in one rewrite, the new op stands for."""

    class Both(RewritePattern):
        @op_type_rewrite_pattern
        def match_and_rewrite(self, op: AddOp, rewriter: PatternRewriter, /) -> None:
            inner = op.lhs.owner
            if isinstance(inner, AddOp) and tag_of(op) == "a":
                rewriter.replace(op, AddOp.create(operands=inner.operands, result_types=[op.output.type]))
                rewriter.erase(inner)

    module = parse_module(adds(2))
    drive(module, Both())
    (left,) = [op for op in module.walk() if isinstance(op, AddOp)]
    assert [locations.describe(leaf) for leaf in locations.leaves(left.location)] == ["m.py:2", "m.py:1"]
    assert str(left.location).startswith('loc("pass:p:both"(')


def test_locations_do_not_grow_with_the_number_of_rewrites():
    module = parse_module(adds(2))
    tags = "abcdefgh"
    for _ in range(3):
        for old, new in zip(tags, tags[1:] + "a"):
            drive(module, RetagPattern(old, new))
    location = next(str(op.location) for op in module.walk() if tag_of(op) == "a")
    assert location.count("pass:") == len(tags)


def test_declining_is_recorded_with_its_reason():
    run = drive(parse_module(adds(2)), RetagPattern("z", "b"))
    assert [(d.pass_name, d.pattern, d.op, d.reason) for d in run.declines] == [
        ("p", "z-to-b", "sx.add", "the tag is not z")
    ] * 2
    assert locations.describe(run.declines[1].location) == "m.py:2"
    assert run.statistics["declined"] == 2 and not run.changed


def test_ping_pong_is_stopped_and_names_the_pair():
    with pytest.raises(PassError) as caught:
        drive(parse_module(adds(3)), RetagPattern("a", "b"), RetagPattern("b", "a"))
    assert "pass 'p' does not come to an end" in str(caught.value)
    assert "patterns 'a-to-b' and 'b-to-a' undo each other at sx.add" in str(caught.value)
    assert caught.value.location in ("m.py:2", "m.py:3")


def test_a_pattern_that_repeats_itself_is_named():
    with pytest.raises(PassError, match="pattern 'a-to-a' keeps firing at sx.add"):
        drive(parse_module(adds(2)), RetagPattern("a", "a"))


def test_an_error_in_a_pattern_names_pass_pattern_op_and_place():
    class Broken(SxPattern[AddOp]):
        OPS = (AddOp,)

        def rewrite(self, op: AddOp, rewriter: SxRewriter) -> None:
            raise ValueError("oops")

    with pytest.raises(PassError) as caught:
        drive(parse_module(adds(1)), Broken())
    assert str(caught.value) == "m.py:1: pass 'p', pattern 'broken' on sx.add: oops"
    assert isinstance(caught.value.__cause__, ValueError)


def test_verification_of_each_rewrite_finds_the_guilty_pattern():
    class Wrong(SxPattern[AddOp]):
        OPS = (AddOp,)

        def rewrite(self, op: AddOp, rewriter: SxRewriter) -> None:
            if tag_of(op) == "a":
                made = AddOp.create(operands=[op.lhs], result_types=[op.output.type])
                rewriter.replace(op, made)

    with pytest.raises(PassError, match="pattern 'wrong' on sx.add: the rewrite made an invalid sx.add"):
        drive(parse_module(adds(2)), Wrong(), verify=True)


def test_fuel_and_trace():
    module = parse_module(adds(5))
    watch = Watch(fuel=2)
    run = drive(module, RetagPattern("a", "b"), listener=watch)
    assert [tag_of(op) for op in module.walk() if isinstance(op, AddOp)] == [None, "b", "b", "a", "a"]
    assert [(e.pass_name, e.pattern, e.op, len(e.inserted)) for e in watch.events] == [("p", "a-to-b", "sx.add", 1)] * 2
    assert run.statistics["rewrites"] == 2


def test_dead_ops_are_removed_on_the_way():
    module = parse_module(f"func.func @main(%x: {F}) -> {F} {{\n%0 = sx.add %x, %x : ({F}, {F}) -> {F}\n"
                          f"%1 = sx.add %0, %x : ({F}, {F}) -> {F}\nfunc.return %x : {F}\n}}")  # fmt: skip
    run = drive(module)
    assert not [op for op in module.walk() if isinstance(op, AddOp)]
    assert run.statistics["rewrites:remove-dead"] == 2


def test_types_follow_a_replaced_value():
    """The replaced value was unknown in its extent, its users' types and the function's type follow the new one's."""

    class UseInput(SxPattern[AddOp]):
        OPS = (AddOp,)

        def rewrite(self, op: AddOp, rewriter: SxRewriter) -> None:
            if tag_of(op) == "copy":
                rewriter.replace(op, [], [op.lhs])

    text = """func.func @main(%x: tensor<4xf32>) -> tensor<?xf32, #sx.dims<n>> {
      %0 = sx.add %x, %x {tag = "copy"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<?xf32, #sx.dims<n>>
      %1 = sx.add %0, %0 : (tensor<?xf32, #sx.dims<n>>, tensor<?xf32, #sx.dims<n>>) -> tensor<?xf32, #sx.dims<n>>
      %2 = sx.add %1, %1 : (tensor<?xf32, #sx.dims<n>>, tensor<?xf32, #sx.dims<n>>) -> tensor<?xf32, #sx.dims<n>>
      func.return %2 : tensor<?xf32, #sx.dims<n>>
    }"""
    module = parse_module(text)
    drive(module, UseInput())
    assert "#sx.dims" not in str(module)


def test_what_the_old_type_knew_is_not_lost():
    class Remake(SxPattern[AddOp]):
        OPS = (AddOp,)

        def rewrite(self, op: AddOp, rewriter: SxRewriter) -> None:
            if tag_of(op) == "a":
                rewriter.replace(op, AddOp.make(op.lhs, op.rhs))

    text = """func.func @main(%x: tensor<?xf32>) -> tensor<?xf32, #sx.dims<n>> {
      %0 = sx.add %x, %x {tag = "a"} : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32, #sx.dims<n>>
      func.return %0 : tensor<?xf32, #sx.dims<n>>
    }"""
    module = parse_module(text)
    run = drive(module, Remake())
    assert run.changed and "-> tensor<?xf32, #sx.dims<n>>" in str(module)


def built_adds(count: int, chained: bool) -> ModuleOp:
    """As `adds`, built without text; not chained: all adds read the same value and are outputs."""
    module, block = create_module("g", [("x", tensor_type(float32, [4]), None)])
    (x,) = block.args
    first = AddOp.make(x, x)
    ops = [first]
    for _ in range(1, count):
        op = AddOp.create(operands=[ops[-1].output if chained else first.output, x], result_types=[x.type])
        op.attributes["tag"] = StringAttr("a")
        ops.append(op)
    block.add_ops(ops)
    outputs = ops[-1:] if chained else ops
    set_outputs(module, [op.output for op in outputs], [f"y{i}" for i in range(len(outputs))])
    return module


def test_visits_grow_with_the_module_not_with_its_square():
    visits = {}
    for count in (5_000, 20_000):
        run = PassRun(pass_name="p")
        RewriteDriver([UpstreamPattern()], run).rewrite(built_adds(count, chained=True))
        assert run.statistics["rewrites"] == count - 1
        visits[count] = run.statistics["visits"]
    assert visits[20_000] <= 4.1 * visits[5_000]
    assert visits[20_000] <= 4 * 20_000


def test_many_users_of_one_value_cost_nothing_extra():
    """Each removed reader of a value must not make the driver visit all its other readers."""
    count = 2_000
    run = PassRun(pass_name="p")
    RewriteDriver([RetagPattern("a", "b")], run).rewrite(built_adds(count, chained=False))
    assert run.statistics["rewrites"] == count - 1
    assert run.statistics["visits"] <= 5 * count


def test_our_patterns_work_in_upstream_s_walker():
    module = parse_module(adds(3))
    walker = PatternRewriteWalker(GreedyRewritePatternApplier([RetagPattern("a", "b")], dce_enabled=False))
    assert walker.rewrite_module(module)
    assert [tag_of(op) for op in module.walk() if isinstance(op, AddOp)] == [None, "b", "b"]


def test_appliers_are_opened_so_that_each_pattern_is_named():
    run = drive(parse_module(adds(2)), GreedyRewritePatternApplier([RetagPattern("z", "y"), RetagPattern("a", "b")]))
    assert run.statistics["rewrites:a-to-b"] == 1
