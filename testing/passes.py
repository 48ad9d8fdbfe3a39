"""What every pass has to be: right by value, honest about change, idempotent, and careful with locations."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sardonyx.dialects import locations
from sardonyx.dialects.base import SxOp
from sardonyx.errors import InvalidArgumentError
from sardonyx.passes import pipeline
from sardonyx.passes.base import EXACT, CheckError, Promise, sum_promises
from sardonyx.passes.checked import CheckOptions, PassChecker
from sardonyx.passes.context import make_context
from sardonyx.passes.pipeline import PassManager, PipelineReport, snapshot
from sardonyx.tools.opt_print import PrintOptions, diff, print_module
from sardonyx.tools.text import Text, parse_text

Passes = str | ModulePass | Sequence[ModulePass]
MAX_ROUNDS = 50


@dataclass(frozen=True)
class Checked:
    """What `check_pass` found: the module after the pass, its text, what the pass reported, and how many inputs were
    compared by value."""

    module: ModuleOp
    text: str
    report: PipelineReport
    compared: int


def check_pass(
    passes: Passes,
    module: ModuleOp | str,
    *,
    changes: bool | None = None,
    inputs: int = 6,
    idempotent: bool = True,
) -> Checked:
    """Run a pass (or several) on a module, and check what it promises.

    - Each rewrite, and what is left, verifies.
    - The values are those from before, within the numeric promise, on generated inputs (`inputs` of them).
    - It says that it changed something if and only if it did.
    - A second run changes nothing (`idempotent`).
    - Ops keep locations: each op's leads to lines that the module had.

    Args:
        passes: A pipeline's text, a pass, or several.
        module: The module, or MLIR text. It is not changed.
        changes: Whether the pass has to change something; None leaves it open. A pass that must not fire: False.
        inputs: How many inputs the functions run with; 0 compares no values.
        idempotent: Whether a second run has to change nothing.

    Raises:
        CheckError: One of these does not hold; the message says which, and how to see it.
        MismatchError: Values differ; the error names the pattern, the first value, and the inputs.
    """
    if isinstance(module, str):
        module = parse_text(make_context(), Text(module, "<text>"))
    several = _passes(passes)
    named = pipeline.format(several)
    after = module.clone()
    places = _number(after)
    before = snapshot(after)
    check = CheckOptions(inputs=inputs, reduce=False)
    report = PassManager(several, verify_each=True, verify_rewrites=True, keep_declines=True, check=check).run(after)
    text = print_module(after, PrintOptions())
    really = snapshot(after) != before
    if report.changed != really:
        raise CheckError(
            f"'{named}' says that it {'changed something' if report.changed else 'changed nothing'}, which is not so",
            hint="report each change by run.rewritten(), or through RewriteDriver",
        )
    if changes is not None and changes != report.changed:
        declined = [f"{d.pattern} on {d.op}: {d.reason}" for p in report.passes for d in p.declines]
        what = "changed nothing" if changes else f"changed it:\n{_changes(module, after)}"
        raise CheckError(f"'{named}' {what}", notes=declined[:8])
    compared = sum(p.check.compared for p in report.passes if p.check is not None)
    _check_locations(after, places, named)
    if idempotent:
        again = after.clone()
        second = PassManager(several, verify_each=True, check=0).run(again)
        if second.changed:
            raise CheckError(f"a second run of '{named}' changes something:\n{_changes(after, again)}")
    return Checked(after, text, report, compared)


def _passes(passes: Passes) -> list[ModulePass]:
    if isinstance(passes, str):
        return pipeline.parse(passes)
    return [passes] if isinstance(passes, ModulePass) else list(passes)


def _changes(before: ModuleOp, after: ModuleOp) -> str:
    style = PrintOptions(elide=16)
    return diff(print_module(before, style), print_module(after, style), "before", "after")


def _compare_within(before: ModuleOp, after: ModuleOp, promise: Promise, what: str, inputs: int) -> None:
    """Compare two modules by value."""
    checker = PassChecker(CheckOptions(inputs=inputs, blame=False, reduce=False), make_context())
    found = checker.compare(before, after, promise)
    if found is not None:
        raise CheckError(
            f"'{what}' changes values: {found.output} of @{found.function} {found.difference} (promise: {promise})",
            notes=[f"with {found.inputs}"],
            hint="--check-passes names the pattern",
        )


def _number(module: ModuleOp) -> set[str]:
    """Give each op a line of its own; returns the places."""
    places: set[str] = set()
    for line, op in enumerate(module.walk(), 1):
        op.location = locations.file_location("<module>", line)
        places.add(f"<module>:{line}")
    return places


def _check_locations(module: ModuleOp, places: set[str], named: str) -> None:
    for op in module.walk():
        if not isinstance(op, SxOp):
            continue
        known = [locations.describe(leaf) for leaf in locations.leaves(op.location)]
        if not known or not set(known) <= places:
            raise CheckError(
                f"'{named}' made {op.name} without a location of an op that was there",
                hint="insert through the rewriter, which gives new ops the matched op's location",
            )


# ---- confluence


def check_confluence(
    passes: Sequence[Passes],
    module: ModuleOp | str,
    *,
    orders: int = 6,
    seed: int = 0,
    inputs: int = 3,
    same_text: bool = True,
) -> list[str]:
    """Run passes in random orders, each order again and again until none changes anything, and compare the ends.

    Args:
        passes: The passes, each a pipeline's text or a pass.
        module: The module, or MLIR text. It is not changed.
        orders: How many orders are tried.
        seed: Of the orders.
        inputs: How many inputs are compared by value, within the promises of the passes; 0 for none.
        same_text: Whether all orders have to end with the same text; else only the values are compared.

    Returns:
        The text at the end of each order.

    Raises:
        CheckError: Passes undo each other for ever, values change, or two orders end differently.
        InvalidArgumentError: There are no passes.
    """
    if not passes:
        raise InvalidArgumentError("check_confluence(): there are no passes")
    if isinstance(module, str):
        module = parse_text(make_context(), Text(module, "<text>"))
    each = [_passes(one) for one in passes]
    rng = random.Random(seed)
    ends: list[str] = []
    first_order = ""
    for _ in range(orders):
        order = list(each)
        rng.shuffle(order)
        named = ", ".join(pipeline.format(one) for one in order)
        after = module.clone()
        promises: list[Promise] = []
        for _ in range(MAX_ROUNDS):
            reports = [PassManager(one, verify_each=True, check=0).run(after) for one in order]
            promises += [r.promise or EXACT for r in reports if r.changed]
            if not any(r.changed for r in reports):
                break
        else:
            raise CheckError(f"the passes {named} do not come to rest in {MAX_ROUNDS} rounds")
        if inputs:
            _compare_within(module, after, sum_promises(promises), named, inputs)
        ends.append(print_module(after, PrintOptions()))
        first_order = first_order or named
        if same_text and ends[-1] != ends[0]:
            changed = diff(ends[0], ends[-1], first_order, named)
            raise CheckError(f"two orders end differently: {first_order}; {named}:\n{changed}")
    return ends
