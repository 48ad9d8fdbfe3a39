"""Pipelines: from text to passes and back, and the manager that runs them and says what happened.

The manager collects times, statistics and remarks as data and calls instrumentation around each pass; it prints
nothing.
"""

from __future__ import annotations

import dataclasses
import gc
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec
from xdsl.utils.exceptions import DiagnosticException, VerifyException

from sardonyx.errors import InvalidArgumentError, SardonyxError
from sardonyx.passes import registry
from sardonyx.passes.base import (
    Decline,
    PassError,
    PassRun,
    PassStatistics,
    Promise,
    Remark,
    RewriteListener,
    SxPass,
    promise_of,
    sum_promises,
)
from sardonyx.passes.pipeline_text import format_spec, parse_specs

if TYPE_CHECKING:
    from sardonyx.passes.checked import CheckOptions, CheckReport, PassChecker

DEFAULT_PIPELINE = (
    "infer-types,simplify,fold-constants,cse,compose-transposes,fold-constants,simplify,cse,remove-dead-nodes"
)
"""What `optimize()` runs when it is given nothing."""

SIMPLIFY_PIPELINE = (
    f"{DEFAULT_PIPELINE},recognize-norms,recognize-gelu,fold-affine,simplify,fold-constants,cse,"
    "compose-transposes,fold-constants,join-reshapes,join-slices,remove-dead-nodes"
)
"""The default pipeline, composite forms as one op, and scales and batch norms folded into weights (which reassociates):
as few ops as can be."""

PREPARE_NATIVE_PIPELINE = (
    "move-constants,dequantized-products,gelu-sums,fold-affine{make-gemm=false},decompose-batch-norm,channels-last"
)
"""What native compilation runs on its copy of a graph before it lowers it."""

PIPELINES = {"default": DEFAULT_PIPELINE, "optimize": SIMPLIFY_PIPELINE, "prepare-native": PREPARE_NATIVE_PIPELINE}
"""Pipelines that a pipeline's text can name as if they were passes."""


# ---- text


def parse(text: str) -> list[ModulePass]:
    """The passes that a pipeline's text names; `PIPELINES` may stand among them.

    Raises:
        InvalidArgumentError: The text is malformed, or names a pass or an option that is not there, or gives an option
            a value of another type; a hint names the nearest.
    """
    out: list[ModulePass] = []
    for spec in parse_specs(text):
        if spec.name in PIPELINES:
            if spec.parameters:
                raise InvalidArgumentError(f"pipeline '{spec.name}' has no options", hint=PIPELINES[spec.name])
            out += parse(PIPELINES[spec.name])
        else:
            out.append(_create(spec))
    return out


def format(passes: Iterable[ModulePass]) -> str:
    """The text of these passes; options that have their default are left out. `parse` reads it back."""
    return ",".join(format_spec(p.spec()) for p in passes)


def _create(spec: ArgSpec) -> ModulePass:
    cls = registry.get(spec.name)
    options = {f.name.replace("_", "-"): f for f in dataclasses.fields(cls) if f.init}
    for key in spec.parameters:
        shown = key.replace("_", "-")
        if shown not in options:
            all_of_them = f"its options: {', '.join(options)}" if options else "it has no options"
            raise registry.unknown(f"option of pass '{spec.name}'", shown, options, all_of_them)
    given = dict(spec.parameters)
    for key, values in given.items():
        if not values and str(options[key.replace("_", "-")].type).split(" |")[0] in ("bool", "<class 'bool'>"):
            given[key] = (True,)  # a flag
    try:
        return cls.from_spec(ArgSpec(cls.name, given))
    except ValueError as error:
        what = _wrong_option(cls, given) or str(error)
        raise InvalidArgumentError(
            f"pass '{spec.name}': {what}", hint=f"its options: {describe_options(cls)}"
        ) from error


def _wrong_option(cls: type[ModulePass], given: Mapping[str, Any]) -> str | None:
    """Which option has a value of another type, in words; xDSL's error does not name it."""
    for key, values in given.items():
        try:
            cls.from_spec(ArgSpec(cls.name, {key: values}))
        except ValueError as error:
            if "Incompatible types" in str(error):
                shown = f"cannot be '{','.join(map(str, values))}'" if values else "needs a value"
                return f"option '{key.replace('_', '-')}' {shown}"
    return None


def describe_options(cls: type[ModulePass]) -> str:
    """The options of a pass with types and defaults, as `max-bytes: int = 1024`."""
    parts: list[str] = []
    for option in dataclasses.fields(cls):
        if not option.init:
            continue
        ty = option.type if isinstance(option.type, str) else getattr(option.type, "__name__", str(option.type))
        default = "" if option.default is dataclasses.MISSING else f" = {option.default}"
        parts.append(f"{option.name.replace('_', '-')}: {ty}{default}")
    return ", ".join(parts) or "none"


# ---- running


class Instrumentation:
    """What is told of each pass; subclass and override. Calls nest: after_* come in the reverse order of before_*."""

    def before_pass(self, index: int, pass_: ModulePass, module: ModuleOp) -> None:
        """Called before pass number `index` (from 0)."""

    def after_pass(self, index: int, pass_: ModulePass, module: ModuleOp, report: PassReport) -> None:
        """Called after a pass that came to its end (and verified, where that was asked for)."""

    def on_failure(self, index: int, pass_: ModulePass, module: ModuleOp, error: Exception) -> None:
        """Called when a pass raised or left invalid IR; the error is raised on after this."""


@dataclass(frozen=True)
class PassReport:
    """What one pass did."""

    name: str
    spec: str
    changed: bool
    seconds: float
    verify_seconds: float
    promise: Promise | None
    statistics: PassStatistics
    remarks: tuple[Remark, ...] = ()
    declines: tuple[Decline, ...] = ()
    check: CheckReport | None = None
    """What was found when the pass was checked by value; None where it was not, or changed nothing."""


@dataclass(frozen=True)
class PipelineReport:
    """What a pipeline did."""

    passes: tuple[PassReport, ...]

    @property
    def changed(self) -> bool:
        return any(p.changed for p in self.passes)

    @property
    def seconds(self) -> float:
        return sum(p.seconds + p.verify_seconds for p in self.passes)

    @property
    def promise(self) -> Promise | None:
        """The sum of the promises of the passes that changed something; None where one makes none."""
        promises = [p.promise for p in self.passes if p.changed]
        return None if None in promises else sum_promises([p for p in promises if p is not None])

    def statistics(self) -> PassStatistics:
        """The counters of all passes, named `pass.counter`."""
        total = PassStatistics()
        for report in self.passes:
            for name, value in report.statistics.items():
                total.count(f"{report.name}.{name}", value)
        return total


@dataclass
class PassManager:
    """Runs passes in order.

    Attributes:
        passes: Passes, or a pipeline's text.
        instrumentations: Called around each pass.
        verify_each: Verify the module after each pass that changed it.
        verify_rewrites: Verify what each single rewrite made (slow; finds the guilty pattern).
        listener: Hooks on single rewrites.
        keep_declines: Keep why patterns declined.
        collect_garbage: Leave Python's cyclic collector on.
        check: Evaluate what each pass changed before and after by the reference, on so many inputs (see
            `passes.checked`). None: as `SARDONYX_CHECK_PASSES` says, else not at all.
    """

    passes: Sequence[ModulePass] | str
    instrumentations: Sequence[Instrumentation] = ()
    verify_each: bool = False
    verify_rewrites: bool = False
    listener: RewriteListener | None = None
    keep_declines: bool = False
    collect_garbage: bool = False
    check: CheckOptions | int | None = None

    def __post_init__(self) -> None:
        self._checker: PassChecker | None = None
        self._passes: list[ModulePass] = parse(self.passes) if isinstance(self.passes, str) else list(self.passes)

    def run(self, module: ModuleOp, ctx: Context | None = None) -> PipelineReport:
        """Run the passes over the module, in place.

        Raises:
            SardonyxError: What a pass raised; one of another kind is wrapped in a `PassError` that names the pass.
        """
        if ctx is None:
            from sardonyx.passes.context import make_context

            ctx = make_context()
        reports: list[PassReport] = []
        self._checker = make_checker(self.check, ctx)
        with _garbage(self.collect_garbage):
            for index, pass_ in enumerate(self._passes):
                for watcher in self.instrumentations:
                    watcher.before_pass(index, pass_, module)
                try:
                    report = self._run_one(pass_, module, ctx)
                except Exception as error:
                    for watcher in reversed(self.instrumentations):
                        watcher.on_failure(index, pass_, module, error)
                    raise
                reports.append(report)
                for watcher in reversed(self.instrumentations):
                    watcher.after_pass(index, pass_, module, report)
        return PipelineReport(tuple(reports))

    def _run_one(self, pass_: ModulePass, module: ModuleOp, ctx: Context) -> PassReport:
        run = PassRun(ctx, pass_.name, self.verify_rewrites, self.listener, self.keep_declines)
        before = None if isinstance(pass_, SxPass) else snapshot(module)
        checker = self._checker
        if checker is not None and not checker.wants(module):
            checker = None
        original = module.clone() if checker is not None else module
        start = time.perf_counter()
        try:
            if isinstance(pass_, SxPass):
                pass_.execute(module, run)
            else:
                pass_.apply(ctx, module)
        except SardonyxError:
            raise
        except Exception as error:
            raise PassError(f"pass '{pass_.name}' failed: {type(error).__name__}: {_first_line(error)}") from error
        middle = time.perf_counter()
        if before is not None:
            run.changed = before != snapshot(module)
        if self.verify_each and run.changed:
            verify(module, f"pass '{pass_.name}' left invalid IR")
        end = time.perf_counter()
        checked = checker.check(pass_, original, module) if checker is not None and run.changed else None
        return PassReport(
            pass_.name,
            format_spec(pass_.spec()),
            run.changed,
            middle - start,
            end - middle,
            promise_of(pass_),
            run.statistics,
            tuple(run.remarks),
            tuple(run.declines),
            checked,
        )


def make_checker(check: CheckOptions | int | None, ctx: Context) -> PassChecker | None:
    """What checks passes by value, where `check` or the environment asks for it."""
    if check is None and not os.environ.get("SARDONYX_CHECK_PASSES"):
        return None
    from sardonyx.passes.checked import CheckOptions, PassChecker

    options = CheckOptions.of(check)
    return None if options is None else PassChecker(options, ctx)


def run(module: ModuleOp, pipeline: str = DEFAULT_PIPELINE, ctx: Context | None = None) -> PipelineReport:
    """Run a pipeline given as text."""
    return PassManager(pipeline).run(module, ctx)


def verify(module: ModuleOp, message: str = "the module is invalid") -> None:
    """Verify a module.

    Raises:
        PassError: It is invalid; the error holds the first line of xDSL's, without the whole module that xDSL prints.
    """
    try:
        module.verify()
    except (VerifyException, DiagnosticException, ValueError) as error:
        raise PassError(f"{message}: {_first_line(error)}") from error


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


Snapshot = list[tuple[Operation, tuple[SSAValue, ...], tuple[Any, ...], dict[str, Attribute], dict[str, Attribute]]]


def snapshot(module: ModuleOp) -> Snapshot:
    """What the module is made of; two snapshots are equal if no op, operand, type or attribute changed between them.

    How a change is noticed where a pass does not report it itself.
    """
    return [
        (op, tuple(op.operands), tuple(r.type for r in op.results), dict(op.properties), dict(op.attributes))
        for op in module.walk()
    ]


@contextmanager
def _garbage(collect: bool) -> Iterator[None]:
    """Without the cyclic collector: passes make many objects and few cycles, and it doubles their time."""
    enabled = gc.isenabled() and not collect
    if enabled:
        gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
