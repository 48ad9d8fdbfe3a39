"""The pattern driver: applies rewrite patterns until none fires, in time linear in the number of ops and rewrites.

Patterns are found by the type of the op, not by trying all of them. A worklist holds the ops to visit: all of them
once, then those that a rewrite made or touched, the definitions of what it no longer uses, and the users of what it
replaced; the module is never walked again. What a pattern inserts bears its name and the location of the op it matched,
whether the pattern is one of ours or of upstream's. Rewrites that never end are stopped with an error that names the
patterns.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar, final

from xdsl.dialects import func
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.pattern_rewriter import GreedyRewritePatternApplier, PatternRewriter, RewritePattern
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.worklist import Worklist

from sardonyx.dialects import locations
from sardonyx.errors import InferenceError, SardonyxError
from sardonyx.passes import provenance
from sardonyx.passes.base import PassError, PassRun
from sardonyx.passes.effects import is_dead
from sardonyx.passes.propagate import agree, holder, propagate, sync_functions

OpT = TypeVar("OpT", bound=Operation)

REWRITES_PER_OP = 64
"""How many rewrites per op of the module a run may do before it counts as endless (see `RewriteDriver.limit`)."""

REMOVE_DEAD = "remove-dead"
"""The name under which the driver's own removal of dead ops is reported."""


class SxRewriter(PatternRewriter):
    """xDSL's rewriter with `decline`, and with types that follow replaced values."""

    def __init__(self, where: Operation | InsertPoint, run: PassRun | None = None) -> None:
        super().__init__(where)
        self.run = run if run is not None else PassRun()
        self.pattern = ""
        self.inserted: list[Operation] = []
        self.touched: list[Operation] = []
        self.released: list[SSAValue] = []
        self.erased: list[LocationAttr] = []
        self.unplaced: list[Operation] = []
        self.retyped: list[Operation] = []

    @classmethod
    def of(cls, rewriter: PatternRewriter, op: Operation) -> SxRewriter:
        """The rewriter itself, or one that works for a rewriter of xDSL's own walkers."""
        if isinstance(rewriter, SxRewriter):
            return rewriter
        ours = cls(op)
        ours.extend_from_listener(rewriter)
        return ours

    def begin(self, op: Operation, pattern: str) -> None:
        """Get ready for one pattern on one op."""
        self.has_done_action = False
        self._current_operation = op
        self.insertion_point = InsertPoint.before(op)
        self.name_hint = None
        self.pattern = pattern
        for record in (self.inserted, self.touched, self.released, self.retyped, self.erased, self.unplaced):
            record.clear()

    def decline(self, reason: str, op: Operation | None = None) -> None:
        """Say why the pattern does not fire on the matched op (or on another); the caller then returns."""
        subject = op or self._current_operation
        if subject is not None:
            self.run.decline(self.pattern, subject, reason)

    def replace_all_uses_with(self, from_value: SSAValue, to_value: SSAValue | None, safe_erase: bool = True) -> None:
        if to_value is not None and to_value.type != from_value.type:
            self._merge_types(from_value, to_value)
            if to_value.type != from_value.type:
                self.retyped.extend(use.operation for use in from_value.uses)
        super().replace_all_uses_with(from_value, to_value, safe_erase)

    def _merge_types(self, old: SSAValue, new: SSAValue) -> None:
        """Two equal values: what the old one's type knew, the new one's should know too."""
        if isinstance(new, OpResult) and new.op in self.inserted:
            try:
                new._type = agree(old.type, new.type, new.op)
            except InferenceError as error:
                raise PassError(f"a value of type {old.type} was replaced by one of type {new.type}") from error


class SxPattern(RewritePattern, Generic[OpT]):
    """A pattern of ours: it matches ops of the classes in `OPS` and rewrites them, or declines and says why.

    A pattern may look at the definitions of its op's operands and at the users of its results. One that looks further
    (at the definitions of their operands, say) states in `REACH` how many steps, so that it is tried again when
    something that far changes.
    """

    OPS: ClassVar[tuple[type[Operation], ...]]
    NAME: ClassVar[str] = ""
    REACH: ClassVar[int] = 1

    @abstractmethod
    def rewrite(self, op: OpT, rewriter: SxRewriter) -> None:
        """Rewrite the op, or leave it as it is."""

    @final
    def match_and_rewrite(self, op: Operation, rewriter: PatternRewriter, /) -> None:
        if not isinstance(op, self.OPS):
            return
        ours = SxRewriter.of(rewriter, op)
        self.rewrite(op, ours)  # pyright: ignore[reportArgumentType]
        rewriter.has_done_action |= ours.has_done_action


def pattern_name(pattern: RewritePattern) -> str:
    """`NAME`, else the class's name as on a command line: `SinkThroughConcatPattern` is sink-through-concat."""
    stated = getattr(pattern, "NAME", "")
    if stated:
        return stated
    name = type(pattern).__name__.removesuffix("Pattern")
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", name).lower()


def matched_types(pattern: RewritePattern) -> tuple[type[Operation], ...]:
    """The op classes that a pattern can match: `OPS`, or what xDSL's `@op_type_rewrite_pattern` was given, else all."""
    stated = getattr(pattern, "OPS", None)
    if stated is not None:
        return tuple(stated)
    function = type(pattern).match_and_rewrite
    closure = getattr(function, "__closure__", None) or ()
    variables: dict[str, Any] = dict(zip(function.__code__.co_freevars, (c.cell_contents for c in closure)))
    found = variables.get("expected_types", variables.get("expected_type"))
    if found is None:
        return (Operation,)
    options = found if isinstance(found, tuple) else getattr(found, "__args__", (found,))
    return options if all(isinstance(o, type) and issubclass(o, Operation) for o in options) else (Operation,)


def _flatten(patterns: Iterable[RewritePattern]) -> list[RewritePattern]:
    out: list[RewritePattern] = []
    for pattern in patterns:
        if isinstance(pattern, GreedyRewritePatternApplier) and not pattern.folding_enabled:
            out.extend(_flatten(pattern.rewrite_patterns))
        else:
            out.append(pattern)
    return out


@dataclass
class RewriteDriver:
    """Applies patterns to a module.

    Attributes:
        patterns: In order of preference; upstream's patterns and appliers are welcome.
        run: The pass's run, which collects counters, declines and hooks.
        remove_dead: Whether ops that nobody reads any more are removed on the way.
        limit: How many rewrites may be done; by default 1024 + `REWRITES_PER_OP` for each op of the module.
    """

    patterns: Sequence[RewritePattern]
    run: PassRun
    remove_dead: bool = True
    limit: int | None = None
    _by_type: dict[type[Operation], list[tuple[str, RewritePattern]]] = field(default_factory=dict, init=False)
    _worklist: Worklist = field(default_factory=Worklist, init=False)
    _recent: deque[tuple[str, str, LocationAttr]] = field(default_factory=lambda: deque(maxlen=64), init=False)

    def __post_init__(self) -> None:
        flat = _flatten(self.patterns)
        self._entries = [(pattern_name(p), p, matched_types(p)) for p in flat]
        self._reach = max((getattr(p, "REACH", 1) for p in flat), default=1)

    def rewrite(self, module: ModuleOp) -> bool:
        """Apply the patterns until none fires; returns whether anything changed.

        Raises:
            PassError: A pattern failed, made invalid IR (with `run.verify`), or the rewrites do not end.
        """
        ops = list(module.walk())
        for op in reversed(ops):
            if op is not module:
                self._worklist.push(op)
        limit = self.limit if self.limit is not None else 1024 + REWRITES_PER_OP * len(ops)
        rewriter = SxRewriter(InsertPoint.at_end(module.body.block), self.run)
        rewriter.operation_insertion_handler.append(lambda op: self._on_insertion(rewriter, op))
        rewriter.operation_modification_handler.append(rewriter.touched.append)
        rewriter.operation_removal_handler.append(lambda op: self._on_removal(rewriter, op))
        done = visits = 0
        while self._worklist:
            op = self._worklist.pop()
            if op.parent is None:
                continue
            visits += 1
            if self._visit(op, rewriter):
                done += 1
                if done > limit:
                    raise self._endless(done)
        self.run.statistics.count("visits", visits)
        if done and sync_functions(module):
            self.run.changed = True
        return done > 0

    def _patterns_for(self, cls: type[Operation]) -> list[tuple[str, RewritePattern]]:
        found = self._by_type.get(cls)
        if found is None:
            found = [(name, pattern) for name, pattern, types in self._entries if issubclass(cls, types)]
            self._by_type[cls] = found
        return found

    def _visit(self, op: Operation, rewriter: SxRewriter) -> bool:
        if self.remove_dead and is_dead(op) and self.run.allows(REMOVE_DEAD, op):
            rewriter.begin(op, REMOVE_DEAD)
            name, location = op.name, op.location
            rewriter.erase(op)
            self._finish(rewriter, name, location)
            return True
        name, location = op.name, op.location
        for pattern_id, pattern in self._patterns_for(type(op)):
            if not self.run.allows(pattern_id, op):
                continue
            rewriter.begin(op, pattern_id)
            try:
                pattern.match_and_rewrite(op, rewriter)
                if rewriter.has_done_action:
                    self._finish(rewriter, name, location)
                    return True
            except PassError as error:
                self._blame(error, pattern_id, name, location)
                raise
            except Exception as error:
                raise self._blame(PassError(str(error)), pattern_id, name, location) from error
        return False

    def _blame(self, error: PassError, pattern: str, op: str, location: LocationAttr) -> PassError:
        """Name the pass and the pattern in an error."""
        if not error.message.startswith("pass '"):
            error.message = f"pass '{self.run.pass_name}', pattern '{pattern}' on {op}: {error.message}"
        error.op = error.op or op
        error.at(locations.describe(location))
        return error

    # ---- what a rewrite does to the worklist
    def _on_insertion(self, rewriter: SxRewriter, op: Operation) -> None:
        """Note who made the op: its own location where the pattern gave one, else that of the matched op (fused with
        those of other ops that the same rewrite erases)."""
        rewriter.inserted.append(op)
        made_by = f"{self.run.pass_name}:{rewriter.pattern}"
        matched = rewriter._current_operation
        origin = matched.location if matched is not None else op.location
        for new in op.walk() if op.regions else (op,):
            if locations.is_unknown(new.location):
                new.location = origin
                rewriter.unplaced.append(new)
            new.location = provenance.stamp(new.location, made_by)

    def _on_removal(self, rewriter: SxRewriter, op: Operation) -> None:
        rewriter.erased.append(op.location)
        for gone in op.walk() if op.regions else (op,):
            self._worklist.remove(gone)
            rewriter.released.extend(gone.operands)

    def _finish(self, rewriter: SxRewriter, name: str, location: LocationAttr) -> None:
        """After a rewrite: types, verification, the report, and who is to be visited again."""
        if len(rewriter.erased) > 1:  # what was made stands for all of them
            for new in rewriter.unplaced:
                new.location = provenance.merge(new.location, *rewriter.erased)
        changed = list(rewriter.touched)
        if rewriter.retyped:
            propagate(rewriter.retyped, note=changed.append)
        again: dict[Operation, None] = dict.fromkeys([*rewriter.inserted, *changed])
        frontier: Iterable[Operation] = list(again)
        for _ in range(self._reach):
            users = dict.fromkeys(
                holder(use.operation) for op in frontier for result in op.results for use in result.uses
            )
            frontier = [op for op in users if op not in again]
            again.update(dict.fromkeys(frontier))
        # Not the users of what is no longer read here: a constant may have thousands.
        for value in rewriter.released:
            if isinstance(value, OpResult):
                again.setdefault(value.op)
            if value.has_one_use():  # a pattern on the user that is left may have waited for this
                again.update((use.operation, None) for use in value.uses)
        if self.run.verify:
            self._verify(dict.fromkeys([*rewriter.inserted, *changed]))
        for op in reversed(again):
            if op.parent is not None:
                self._worklist.push(op)
        self._recent.append((rewriter.pattern, name, location))
        self.run.rewritten(rewriter.pattern, name, location, rewriter.inserted)

    def _verify(self, ops: Iterable[Operation]) -> None:
        for op in ops:
            if op.parent is None or isinstance(op, func.ReturnOp):  # the function's type follows at the end
                continue
            try:
                op.verify(verify_nested_ops=bool(op.regions))
            except (VerifyException, ValueError, SardonyxError) as error:
                raise PassError(f"the rewrite made an invalid {op.name}: {error}") from error

    def _endless(self, done: int) -> PassError:
        common = sorted(name for name, _ in Counter(pattern for pattern, _, _ in self._recent).most_common(2))
        _, op, location = self._recent[-1]
        if len(common) == 2:
            who = f"patterns '{common[0]}' and '{common[1]}' undo each other"
        else:
            who = f"pattern '{common[0]}' keeps firing"
        return PassError(
            f"pass '{self.run.pass_name}' does not come to an end after {done} rewrites: {who} at {op}",
            location=locations.describe(location),
            op=op,
            hint="a pattern must not match what it or another one makes",
        )
