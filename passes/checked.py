"""Checked passes: what a pass changed is evaluated before and after by the reference, against the pass's promise.

A mismatch is an error that names the pass, the pattern (found by bisecting how many rewrites are let through), the
first differing value and where it comes from, and a file that reproduces it. A function that the reference refuses
before and after alike says nothing; one that it refuses only after is a mismatch.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from sardonyx.dialects import locations
from sardonyx.dialects.evaluate import Value
from sardonyx.errors import MissingWeightError, SardonyxError, UnsupportedError
from sardonyx.passes import check_inputs, provenance
from sardonyx.passes.base import EXACT, PassError, PassRun, Promise, RewriteEvent, SxPass, promise_of
from sardonyx.passes.check_inputs import Inputs
from sardonyx.passes.check_values import Difference, compare, run_function
from sardonyx.passes.effects import is_deterministic
from sardonyx.passes.pipeline_text import format_spec

ENVIRONMENT = "SARDONYX_CHECK_PASSES"
"""The number of inputs for pass managers that are told nothing of checking; `2:5000` limits the size of what is
checked to that many elements."""
DEFAULT_INPUTS = 3
_TYPICAL_EXTENT = 4


@dataclass(frozen=True)
class CheckOptions:
    """How passes are checked.

    Attributes:
        inputs: How many inputs each function runs with: ordinary ones, special values, other extents, extents of 1,
            empty; then ordinary ones again.
        seed: Of the numbers in them.
        max_elements: Functions that hold more elements in all their values together are left unchecked; None: no limit.
        reproducer: Where a reproducer is written; a folder gets a file named after the pass. None: no file.
        reduce: Whether the reproducer is made small first.
        seconds: How long that may take.
        blame: Whether the pattern is looked for.
    """

    inputs: int = DEFAULT_INPUTS
    seed: int = 0
    max_elements: int | None = None
    reproducer: Path | None = None
    reduce: bool = True
    seconds: float = 20.0
    blame: bool = True

    @staticmethod
    def of(given: CheckOptions | int | bool | None) -> CheckOptions | None:
        """What `check=` means: a number of inputs, True for the usual one, None for what the environment says."""
        if isinstance(given, CheckOptions):
            return given if given.inputs > 0 else None
        if given is None:
            return _from_environment()
        if isinstance(given, bool):
            return CheckOptions() if given else None
        return CheckOptions(inputs=given) if given > 0 else None


def _from_environment() -> CheckOptions | None:
    text = os.environ.get(ENVIRONMENT, "")
    count, _, limit = text.partition(":")
    if not count.isdecimal() or int(count) == 0:
        return None
    return CheckOptions(inputs=int(count), max_elements=int(limit) if limit.isdecimal() else None, reduce=False)


class MismatchError(PassError):
    """A pass changed values by more than it promises.

    Attributes:
        pass_name: Whose fault it is.
        pattern: The pattern whose rewrite changed the values, where it was found.
        rewrite: How many rewrites it takes to see it, counted from 1.
        function: The function whose values differ.
        difference: The first differing value.
        inputs: With which inputs.
        reproducer: The text of a file that reproduces it.
    """

    default_code = "CHECK_FAILED"
    pass_name: str = ""
    pattern: str | None = None
    rewrite: int | None = None
    function: str = ""
    difference: Difference | None = None
    inputs: Inputs | None = None
    reproducer: str = ""


@dataclass(frozen=True)
class Mismatch:
    """What was found before the culprit is looked for."""

    function: str
    output: str
    difference: Difference
    inputs: Inputs
    provenance: str | None


@dataclass
class CheckReport:
    """What the check of one pass did: how many runs were compared, and how many the reference refused; why a function
    was not checked, by its name."""

    compared: int = 0
    refused: int = 0
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    seconds: float = 0.0


@dataclass
class _Baseline:
    """The runs of a function before a pass."""

    function: func.FuncOp
    runs: list[tuple[Inputs, Sequence[Value] | None, SardonyxError | None]]


def functions_of(module: ModuleOp) -> dict[str, func.FuncOp]:
    """The functions that have one block, by name."""
    return {
        op.sym_name.data: op for op in module.body.block.ops if isinstance(op, func.FuncOp) and len(op.body.blocks) == 1
    }


def why_unchecked(function: func.FuncOp, max_elements: int | None = None) -> str | None:
    """Why a function's values before and after say nothing; None where they do."""
    size = 0
    for op in function.walk():
        if op is not function and not isinstance(op, func.ReturnOp) and _draws(op):
            return f"{op.name} draws other numbers in each run"
        size += sum(_elements(r.type) for r in op.results)
    if max_elements is not None and size > max_elements:
        return f"its values hold {size} elements, the limit is {max_elements}"
    return None


def _draws(op: Operation) -> bool:
    if getattr(op, "DETERMINISTIC", True):
        return False
    seeded = op.properties.get("seed") is not None
    return not seeded and not is_deterministic(op)


def _elements(ty: object) -> int:
    if not isinstance(ty, TensorType):
        return 1
    size = 1
    for extent in ty.get_shape():
        size *= _TYPICAL_EXTENT if extent == DYNAMIC_INDEX else extent
    return size


class PassChecker:
    """Checks the passes of one pipeline run; what one leaves is what the next one begins with, so each state of a
    function is evaluated once."""

    def __init__(self, options: CheckOptions, ctx: Context) -> None:
        self.options = options
        self.ctx = ctx
        self._known: dict[str, _Baseline] = {}

    def wants(self, module: ModuleOp) -> bool:
        """Whether any function of the module can be checked."""
        return any(
            why_unchecked(function, self.options.max_elements) is None for function in functions_of(module).values()
        )

    def check(self, pass_: ModulePass, before: ModuleOp, after: ModuleOp) -> CheckReport:
        """Compare a module before a pass with what the pass made of it.

        Raises:
            MismatchError: The values differ by more than the pass promises.
        """
        begin = time.perf_counter()
        report = CheckReport()
        if isinstance(pass_, SxPass) and not pass_.IS_COMPARABLE:
            self._known = {}
            report.skipped = dict.fromkeys(functions_of(before), "the pass makes another function of it")
            return report
        found = self.compare(before, after, promise_of(pass_) or EXACT, report)
        report.seconds = time.perf_counter() - begin
        if found is not None:
            raise self.explain(pass_, before, found)
        return report

    def compare(
        self, before: ModuleOp, after: ModuleOp, promise: Promise, report: CheckReport | None = None
    ) -> Mismatch | None:
        """The first mismatch of two modules, function by function."""
        report = CheckReport() if report is None else report
        old, new = functions_of(before), functions_of(after)
        following: dict[str, _Baseline] = {}
        for name, function in old.items():
            changed = new.get(name)
            if changed is None:
                report.skipped[name] = "it is gone"
                continue
            reason = why_unchecked(function, self.options.max_elements)
            if reason is None and _arity(function) != _arity(changed):
                reason = "it has other inputs"
            if reason is not None:
                report.skipped[name] = reason
                continue
            try:
                found, runs = self._compare(name, function, changed, promise, report)
            except (UnsupportedError, MissingWeightError) as error:
                report.skipped[name] = str(error)
                continue
            if found is not None:
                return found
            following[name] = _Baseline(changed, runs)
        self._known = following
        return None

    def _compare(
        self, name: str, before: func.FuncOp, after: func.FuncOp, promise: Promise, report: CheckReport
    ) -> tuple[Mismatch | None, list[tuple[Inputs, Sequence[Value] | None, SardonyxError | None]]]:
        runs: list[tuple[Inputs, Sequence[Value] | None, SardonyxError | None]] = []
        for inputs, want, error in self._runs(name, before, after):
            try:
                got = run_function(after, inputs)
            except SardonyxError as refusal:
                if want is None:
                    report.refused += 1
                    runs.append((inputs, None, refusal))
                    continue
                if isinstance(refusal, UnsupportedError | MissingWeightError):
                    raise
                text = f"the reference runs it before, and refuses it after: {refusal}"
                return self._mismatch(name, after, inputs, Difference(0, (), None, None, text)), runs
            runs.append((inputs, got, None))
            if want is None or error is not None:
                report.refused += 1
                continue
            report.compared += 1
            found = compare(
                want,
                got,
                promise,
                lambda rng, inputs=inputs: run_function(before, inputs, rng),
                lambda rng, inputs=inputs: run_function(after, inputs, rng),
            )
            if found is not None:
                return self._mismatch(name, after, inputs, found), runs
        return None, runs

    def _runs(
        self, name: str, function: func.FuncOp, after: func.FuncOp
    ) -> Iterator[tuple[Inputs, Sequence[Value] | None, SardonyxError | None]]:
        """The function's inputs and outputs, evaluated as they are asked for. Where a pass took extents away from the
        inputs, they are of those that are left."""
        known = self._known.get(name)
        narrowed = [a.type for a in function.body.block.args] != [a.type for a in after.body.block.args]
        if known is not None and not narrowed and len(known.function.body.block.args) == len(function.body.block.args):
            yield from known.runs
            return
        source = after if narrowed else function
        for kind in check_inputs.kinds(self.options.inputs):
            yield check_inputs.evaluable_inputs(
                source, kind, lambda made: run_function(function, made), self.options.seed
            )

    def _mismatch(self, name: str, after: func.FuncOp, inputs: Inputs, difference: Difference) -> Mismatch:
        returned = after.body.block.last_op
        read = () if returned is None else returned.operands
        value = read[difference.output] if difference.output < len(read) else None
        owner = value.owner if value is not None else None
        chain = describe_chain(owner) if isinstance(owner, Operation) else None
        return Mismatch(name, _output_name(after, difference.output), difference, inputs, chain)

    # ---- the culprit
    def explain(self, pass_: ModulePass, before: ModuleOp, found: Mismatch) -> MismatchError:
        """The error of a mismatch, with the pattern and a reproducer."""
        culprit, small = self.culprit(pass_, before) if self.options.blame else None, found
        message = f"pass '{pass_.name}' changes values"
        if culprit is not None:
            message += f": pattern '{culprit.pattern}' on {culprit.op}"
            small = culprit.mismatch
        promise = promise_of(pass_) or EXACT
        message += f": {small.output} of @{small.function} {small.difference} (promise: {promise})"
        error = MismatchError(message, op=culprit.op if culprit is not None else None)
        error.pass_name, error.function = pass_.name, small.function
        error.difference, error.inputs = small.difference, small.inputs
        notes = [f"with {small.inputs}"]
        if culprit is not None:
            error.pattern, error.rewrite = culprit.pattern, culprit.number
            error.at(culprit.location)
            notes.append(f"the first wrong rewrite is number {culprit.number}; --fuel={culprit.number} stops there")
        if small.provenance is not None:
            notes.append(f"the value comes from {small.provenance}")
        if self.options.blame:
            error.reproducer = self._reproducer(pass_, before, message)
        where = self._write(pass_, error.reproducer)
        if where is not None:
            notes.append(f"reproducer: {where}")
        error.notes = tuple(notes)
        return error

    def culprit(self, pass_: ModulePass, before: ModuleOp) -> Culprit | None:
        """The first rewrite after which the values differ; None where the pass is not one of ours, or where the
        mismatch is not there when its rewrites are let through one by one."""
        if not isinstance(pass_, SxPass):
            return None
        checker = PassChecker(replace(self.options, reproducer=None), self.ctx)

        def attempt(amount: int) -> tuple[Mismatch | None, Fuel]:
            fuel = Fuel(amount)
            module = before.clone()
            try:
                pass_.execute(module, PassRun(self.ctx, listener=fuel))
            except Exception:  # noqa: BLE001 -- a pass that fails half-way is another defect than the one looked for
                return None, fuel
            checker._known = {}
            return checker.compare(before, module, promise_of(pass_) or EXACT), fuel

        found, fuel = attempt(1 << 30)
        if found is None:
            return None
        good, bad, last = 0, fuel.used, (found, fuel)
        while bad - good > 1:
            middle = (good + bad) // 2
            found, fuel = attempt(middle)
            if found is None:
                good = middle
            else:
                bad, last = middle, (found, fuel)
        found, fuel = last
        event = fuel.last
        if event is None:
            return None
        return Culprit(event.pattern, event.op, locations.describe(event.location), bad, found)

    def _reproducer(self, pass_: ModulePass, before: ModuleOp, message: str) -> str:
        module = before
        spec = format_spec(pass_.spec())
        if self.options.reduce:
            from sardonyx.passes.reducer import Reducer

            checker = PassChecker(replace(self.options, reproducer=None, reduce=False), self.ctx)
            module = Reducer(lambda m: checker.fails(pass_, m), seconds=self.options.seconds).reduce(before.clone())
        from sardonyx.passes.reproducer import reproducer_text

        return reproducer_text(module, f"-p '{spec}' --check-passes={self.options.inputs}", [message])

    def fails(self, pass_: ModulePass, module: ModuleOp) -> bool:
        """Whether the pass changes this module's values by more than it promises."""
        after = module.clone()
        pass_.apply(self.ctx, after)
        self._known = {}
        return self.compare(module, after, promise_of(pass_) or EXACT) is not None

    def _write(self, pass_: ModulePass, text: str) -> Path | None:
        path = self.options.reproducer
        if path is None:
            return None
        if path.is_dir():
            path = path / f"{pass_.name}-mismatch.mlir"
        path.write_text(text, encoding="utf-8")
        return path


@dataclass(frozen=True)
class Culprit:
    """The rewrite that is to blame, counted from 1, and what differs after it."""

    pattern: str
    op: str
    location: str | None
    number: int
    mismatch: Mismatch


class Fuel:
    """A listener that lets so many rewrites through, and remembers the last one."""

    def __init__(self, amount: int) -> None:
        self.amount = amount
        self.used = 0
        self.last: RewriteEvent | None = None

    def on_match(self, pass_name: str, pattern: str, op: Operation) -> bool:
        return self.used < self.amount

    def on_rewrite(self, event: RewriteEvent) -> None:
        self.used += 1
        self.last = event


def describe_chain(op: Operation) -> str:
    """Where an op comes from and who made it, newest first: `pass:pattern <- model.py:12`."""
    names, _ = provenance.peel(op.location)
    return " <- ".join([op.name, *names, locations.describe(op.location) or "an unknown place"])


def _arity(function: func.FuncOp) -> tuple[object, ...]:
    return tuple(_kind(a.type) for a in function.body.block.args)


def _kind(ty: object) -> object:
    return ty.element_type if isinstance(ty, TensorType) else type(ty)


def _output_name(function: func.FuncOp, number: int) -> str:
    from sardonyx.dialects.module import NAME

    attrs = function.properties.get("res_attrs")
    entries: Sequence[object] = getattr(attrs, "data", ())
    entry = entries[number] if number < len(entries) else None
    name = getattr(entry, "data", {}).get(NAME) if entry is not None else None
    returned = function.body.block.last_op
    if returned is not None and number >= len(returned.operands):
        return "what a buffer holds afterwards"
    return f"output '{name.data}'" if name is not None else f"output {number}"
