"""What a pass is: its options, its numeric promise, and what one run of it reports.

`SxPass` is a frozen dataclass on xDSL's `ModulePass`: its fields are its options, and it holds no state of a run. A
run's state is a `PassRun`: counters, remarks, why patterns declined, and the hooks through which tracing, fuel and
bisection work. This module knows no op and no pass.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Protocol, final

from xdsl.context import Context
from xdsl.dialects.builtin import LocationAttr, ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from sardonyx.dialects import locations
from sardonyx.errors import SardonyxError


class PassError(SardonyxError):
    """A pass or a pattern failed: it raised, made invalid IR, or did not come to an end."""

    default_code = "INTERNAL"


class CheckError(SardonyxError):
    """What a check found: a pass changed values by more than it promises, or text does not come back as it was."""

    default_code = "CHECK_FAILED"


# ---- numeric promises


@dataclass(frozen=True)
class Promise:
    """By how much a rewrite may change values. Promises add up: a pipeline's is the sum of its passes'.

    Attributes:
        reassociation: c of |error| <= c·n·eps·Σ|terms|, where sums and products are taken in another order.
        ulp: Units in the last place of each element of a result, where a function is approximated.
    """

    reassociation: float = 0.0
    ulp: float = 0.0

    @property
    def is_exact(self) -> bool:
        return not self.reassociation and not self.ulp

    def __add__(self, other: Promise) -> Promise:
        return Promise(self.reassociation + other.reassociation, self.ulp + other.ulp)

    def __str__(self) -> str:
        parts: list[str] = []
        if self.reassociation:
            parts.append(f"reassociates({self.reassociation:g})")
        if self.ulp:
            parts.append(f"approximates({self.ulp:g} ulp)")
        return " + ".join(parts) or "exact"


EXACT = Promise()
"""The same bits, except for the payload of NaNs."""


def reassociates(c: float) -> Promise:
    """Sums or products in another order: |error| <= c·n·eps·Σ|terms|."""
    return Promise(reassociation=c)


def approximates(ulp: float) -> Promise:
    """Each element is off by at most this many units in the last place."""
    return Promise(ulp=ulp)


def sum_promises(promises: Sequence[Promise]) -> Promise:
    total = EXACT
    for promise in promises:
        total = total + promise
    return total


# ---- what a run reports


class PassStatistics(dict[str, int]):
    """Counters by name; one that was never counted is 0."""

    def __missing__(self, name: str) -> int:
        return 0

    def count(self, name: str, by: int = 1) -> None:
        if by:
            self[name] = self[name] + by


@dataclass(frozen=True)
class Remark:
    """Something that a pass tells the user; `kind` groups remarks, as in `--remarks=fusion`."""

    kind: str
    message: str
    op: str | None = None
    location: str | None = None


@dataclass(frozen=True)
class Decline:
    """Why a pattern did not fire on an op: what `--explain` prints."""

    pass_name: str
    pattern: str
    op: str
    reason: str
    location: LocationAttr
    result: str | None = None
    """The name of the op's first result, where it has one."""


@dataclass(frozen=True)
class RewriteEvent:
    """One rewrite that was done: by which pattern, of what, into which ops (those that are still in the IR)."""

    pass_name: str
    pattern: str
    op: str
    location: LocationAttr
    inserted: tuple[Operation, ...] = ()


class RewriteListener(Protocol):
    """Hooks for traces, fuel, debug counters and bisection."""

    def on_match(self, pass_name: str, pattern: str, op: Operation) -> bool:
        """Called before a pattern is tried on an op; False skips it."""
        ...

    def on_rewrite(self, event: RewriteEvent) -> None:
        """Called after each rewrite."""
        ...


MAX_DECLINES = 10_000
"""How many declines a run keeps; `--explain` is for people."""


@dataclass
class PassRun:
    """The state of one run of one pass over one module.

    Attributes:
        ctx: The dialects that are loaded.
        pass_name: Whose run it is.
        verify: Verify what each rewrite made, so that an invalid one is found where it happens.
        listener: Hooks, where somebody watches.
        keep_declines: Whether reasons of declining are kept.
    """

    ctx: Context = field(default_factory=Context)
    pass_name: str = ""
    verify: bool = False
    listener: RewriteListener | None = None
    keep_declines: bool = False
    changed: bool = False
    statistics: PassStatistics = field(default_factory=PassStatistics)
    remarks: list[Remark] = field(default_factory=list[Remark])
    declines: list[Decline] = field(default_factory=list[Decline])

    def allows(self, pattern: str, op: Operation) -> bool:
        """Whether this rewrite may be tried; a pass without patterns asks before each change that it makes."""
        return self.listener is None or self.listener.on_match(self.pass_name, pattern, op)

    def rewritten(self, pattern: str, op: str, location: LocationAttr, inserted: Sequence[Operation] = ()) -> None:
        """Note a change that was made."""
        self.changed = True
        self.statistics.count("rewrites")
        self.statistics.count(f"rewrites:{pattern}")
        if self.listener is not None:
            alive = tuple(new for new in inserted if new.parent is not None)
            self.listener.on_rewrite(RewriteEvent(self.pass_name, pattern, op, location, alive))

    def decline(self, pattern: str, op: Operation, reason: str) -> None:
        """Note why a pattern did not fire."""
        self.statistics.count("declined")
        if self.keep_declines and len(self.declines) < MAX_DECLINES:
            name = op.results[0].name_hint if op.results else None
            self.declines.append(Decline(self.pass_name, pattern, op.name, reason, op.location, name))

    def warn(self, message: str, op: Operation | None = None) -> None:
        """Warn the user; `sardonyx-opt` prints warnings without being asked."""
        self.remark("warning", message, op)

    def remark(self, kind: str, message: str, op: Operation | None = None) -> None:
        """Tell the user something."""
        where = locations.describe(op.location) if op is not None else None
        self.remarks.append(Remark(kind, message, op.name if op is not None else None, where))


# ---- the pass


@dataclass(frozen=True)
class SxPass(ModulePass):
    """A pass of ours: `name` as on the command line, fields as options, `PROMISE`, and `run`.

    The docstring of a pass lists its numbered cases, what it requires and ensures, and its promise.
    """

    PROMISE: ClassVar[Promise] = EXACT
    IS_COMPARABLE: ClassVar[bool] = True
    """Whether each function computes what it computed before. One that makes a part of it, say, is not checked by
    value."""

    @abstractmethod
    def run(self, module: ModuleOp, run: PassRun) -> None:
        """Rewrite the module in place; whatever changes it sets `run.changed` (the driver and `run.rewritten` do)."""

    @final
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run it alone, as xDSL's pipelines do."""
        self.execute(op, PassRun(ctx))

    @final
    def execute(self, module: ModuleOp, run: PassRun | None = None) -> PassRun:
        """Run it and return what it reports."""
        run = run or PassRun()
        run.pass_name = self.name
        self.run(module, run)
        return run


def promise_of(pass_: ModulePass) -> Promise | None:
    """A pass's promise; None for one of upstream's, which makes none."""
    return pass_.PROMISE if isinstance(pass_, SxPass) else None
