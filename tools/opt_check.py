"""Options of `sardonyx-opt` on the passes' work: `--check-passes` and `--explain`."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from sardonyx.passes.base import Decline
    from sardonyx.passes.checked import CheckOptions
    from sardonyx.passes.pipeline import PipelineReport

ATTACHED = {"--check-passes": "3"}
"""What stands for an option's value where none is given."""


def add_work(add: Callable[..., Any]) -> None:
    """The option that checks passes by value."""
    add("--check-passes", type=_count, metavar="N",
        help="evaluate what each pass changed before and after on N inputs (3), within its promise")  # fmt: skip
    add("--check-reproducer", metavar="FILE",
        help="when --check-passes finds a mismatch, write a small case of it (a file, or a folder)")  # fmt: skip


def add_reports(add: Callable[..., Any]) -> None:
    """The options that explain what passes did not do."""
    add("--explain", action="append", default=[], metavar="PASS[@OP]",
        help="print why the patterns of a pass did not fire, on all ops or on one (name, result, line)")  # fmt: skip
    add("--explain-format", choices=["text", "json"], default="text", metavar="json", help="for programs")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"'{text}' is no number from 1")
    return int(text)


def check_options(options: argparse.Namespace) -> CheckOptions | None:
    """How the command line wants passes checked; None for not stated."""
    if options.check_passes is None:
        return None
    from sardonyx.passes.checked import CheckOptions

    path = options.check_reproducer
    return CheckOptions(options.check_passes, reproducer=Path(path) if path else None, reduce=path is not None)


def check_explained(options: argparse.Namespace, passes: Sequence[str]) -> None:
    """Refuse to explain a pass that does not run.

    Raises:
        InvalidArgumentError: It is not in the pipeline.
    """
    for text in options.explain:
        name = text.partition("@")[0]
        if name not in passes and name != "*":
            from sardonyx.passes.registry import unknown

            raise unknown("pass of the pipeline called", name, passes, "give it with -p")


def explain(options: argparse.Namespace, report: PipelineReport, stream: TextIO) -> None:
    """Print the near misses that were asked for."""
    found: list[tuple[Decline, int]] = []
    for text in options.explain:
        name, _, op = text.partition("@")
        chosen = (d for entry in report.passes if name in (entry.name, "*") for d in entry.declines)
        counts = Counter(d for d in chosen if not op or _concerns(d, op))
        found += [item for item in counts.items() if item not in found]
    if options.explain_format == "json":
        import json

        stream.write(json.dumps([_as_dict(d, n) for d, n in found], indent=1) + "\n")
        return
    fired = ", ".join(f"{e.name} {e.statistics['rewrites']}" for e in report.passes if _asked(options, e.name))
    stream.write(f"===--- Near misses ---===\n  rewrites done: {fired or 'none'}\n")
    for decline, count in found:
        stream.write(f"  {line_of(decline)}" + (f"  ({count} times)\n" if count > 1 else "\n"))
    if not found:
        stream.write("  no pattern came near\n")


def _asked(options: argparse.Namespace, name: str) -> bool:
    return any(text.partition("@")[0] in (name, "*") for text in options.explain)


def line_of(decline: Decline) -> str:
    """One line: `model.py:12: cse:merge on sx.add %y: reason`."""
    from sardonyx.dialects.locations import describe

    where = describe(decline.location)
    value = f" %{decline.result}" if decline.result else ""
    return (
        f"{where + ': ' if where else ''}{decline.pass_name}:{decline.pattern} on {decline.op}{value}: {decline.reason}"
    )


def _as_dict(decline: Decline, count: int) -> dict[str, object]:
    from sardonyx.dialects.locations import describe

    return {
        "pass": decline.pass_name,
        "pattern": decline.pattern,
        "op": decline.op,
        "result": decline.result,
        "location": describe(decline.location),
        "reason": decline.reason,
        "times": count,
    }


def _concerns(decline: Decline, op: str) -> bool:
    """Whether a near miss is on the op that was named: by its name, its result, or where it comes from."""
    from sardonyx.dialects import locations

    if op in (decline.op, decline.op.removeprefix("sx."), decline.result, f"%{decline.result}"):
        return True
    where = locations.describe(decline.location) or ""
    return where == op or where.endswith(f":{op}") or op in set(locations.names(decline.location))
