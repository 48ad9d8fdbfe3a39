"""`--explore FILE.html`: a page with every step of a pipeline: what each pass changed, how long it took, who made it.

One static file that fetches nothing. It is written when a pass fails, too, with the IR that the pass left.
"""

from __future__ import annotations

import html
import json
from collections import Counter
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from sardonyx.dialects import locations
from sardonyx.dialects.files import write_whole
from sardonyx.passes import provenance
from sardonyx.passes.pipeline import Instrumentation, PassReport
from sardonyx.tools.opt_print import DUMP_ELIDES, PrintOptions, SteadyNames, print_with_lines

PAGES = Path(__file__).parent

MATCHED_LINES = 4000
"""How many lines in the changed middle of two texts are matched; beyond, all of it counts as changed."""


@dataclass
class Step:
    """The state after a pass: its IR as numbers of lines, and what the pass reported.

    Attributes:
        lines: The text, as numbers in the recorder's table of lines; None where the pass changed nothing.
        origins: For each line, the number of its op's origin in the recorder's table.
        changes: Pieces (tag, from, to, from, to) of the old and the new text, as `difflib` makes them.
    """

    name: str
    spec: str
    ops: dict[str, int]
    seconds: float = 0.0
    changed: bool = True
    promise: str | None = None
    statistics: dict[str, int] = field(default_factory=dict[str, int])
    remarks: list[str] = field(default_factory=list[str])
    error: str | None = None
    lines: list[int] | None = None
    origins: list[int] = field(default_factory=list[int])
    changes: list[tuple[str, int, int, int, int]] = field(default_factory=list[tuple[str, int, int, int, int]])


class Recorder(Instrumentation):
    """Keeps every step of a run."""

    def __init__(self, module: ModuleOp, title: str, path: Path) -> None:
        self.title = title
        self.path = path
        self.steps: list[Step] = []
        self._texts: dict[str, int] = {}
        self._origins: dict[str, int] = {"": 0}
        self._steady = SteadyNames()
        self._last: list[int] = []
        self._add(Step("input", title, {}), module)

    def after_pass(self, index: int, pass_: ModulePass, module: ModuleOp, report: PassReport) -> None:
        step = Step(report.name, report.spec, {}, report.seconds, report.changed)
        step.promise = None if report.promise is None else str(report.promise)
        step.statistics = dict(sorted(report.statistics.items()))
        step.remarks = [f"{r.location + ': ' if r.location else ''}[{r.kind}] {r.message}" for r in report.remarks]
        self._add(step, module)

    def on_failure(self, index: int, pass_: ModulePass, module: ModuleOp, error: Exception) -> None:
        self._add(Step(pass_.name, pass_.name, {}, error=str(error)), module)
        self.write()

    def _add(self, step: Step, module: ModuleOp) -> None:
        counted = Counter(op.name for op in module.walk())
        step.ops = dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))
        self.steps.append(step)
        if not step.changed:
            return
        text, starts = print_with_lines(module, PrintOptions(elide=DUMP_ELIDES), self._steady)
        lines = text.splitlines()
        step.lines = [self._texts.setdefault(line, len(self._texts)) for line in lines]
        step.origins = [0] * len(lines)
        for op, line in starts.items():
            step.origins[line] = self._origins.setdefault(origin(op), len(self._origins))
        step.changes = changes(self._last, step.lines)
        self._last = step.lines

    def as_json(self) -> dict[str, Any]:
        """All of it, for the page."""
        steps = [vars(step) for step in self.steps]
        return {"title": self.title, "texts": list(self._texts), "origins": list(self._origins), "steps": steps}

    def write(self) -> None:
        """Write the page.

        Raises:
            InvalidArgumentError: It cannot be written.
        """
        data = json.dumps(self.as_json(), separators=(",", ":")).replace("<", "\\u003c")
        text = (PAGES / "explore.html").read_text("utf-8")
        script = (PAGES / "explore.js").read_text("utf-8")
        for name, value in (("title", html.escape(self.title)), ("script", script), ("data", data)):
            text = text.replace(f"<!--{name}-->", value)
        write_whole(self.path, text.encode())


def origin(op: Operation) -> str:
    """Where an op comes from, and which passes and patterns made it, newest first."""
    names, origins = provenance.peel(op.location)
    places = [place for place in (locations.describe(one) for one in origins) if place]
    made = " ← ".join(names)
    return " · ".join(part for part in (made, ", ".join(places[:4])) if part)


def changes(old: list[int], new: list[int]) -> list[tuple[str, int, int, int, int]]:
    """How one text became the other. Only the middle, between what both begin and end with, is matched."""
    begin, most = 0, min(len(old), len(new))
    while begin < most and old[begin] == new[begin]:
        begin += 1
    end = 0
    while end < most - begin and old[-1 - end] == new[-1 - end]:
        end += 1
    a, b = old[begin : len(old) - end], new[begin : len(new) - end]
    if max(len(a), len(b)) > MATCHED_LINES:
        inner = [("replace", 0, len(a), 0, len(b))]
    else:
        inner = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    found = [("equal", 0, begin, 0, begin)] if begin else []
    found += [(tag, i + begin, j + begin, k + begin, m + begin) for tag, i, j, k, m in inner]
    if end:
        found.append(("equal", len(old) - end, len(old), len(new) - end, len(new)))
    return found
