"""Where the time and the memory of a `sardonyx-opt` run go: as a tree, a list, JSON, or a Chrome trace."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TextIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sardonyx.passes.pipeline import Instrumentation, PassReport

if TYPE_CHECKING:
    from sardonyx.backends.llvm.runtime.phases import Phase


@dataclass
class Span:
    """A stretch of wall-clock time, in seconds, and the stretches inside it in order."""

    name: str
    start: float
    seconds: float = 0.0
    inner: list[Span] = field(default_factory=list["Span"])

    def lines(self, total: float, depth: int = 0) -> Iterator[str]:
        share = 100 * self.seconds / total if total else 0.0
        yield f"  {self.seconds * 1000:9.3f} ms  {share:5.1f} %  {'  ' * depth}{self.name}\n"
        for one in self.inner:
            yield from one.lines(total, depth + 1)

    def walk(self) -> Iterator[Span]:
        yield self
        for one in self.inner:
            yield from one.walk()

    def own_seconds(self) -> float:
        """Without what is inside."""
        return max(0.0, self.seconds - sum(one.seconds for one in self.inner))

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"name": self.name, "seconds": round(self.seconds, 9)}
        if self.inner:
            found["inner"] = [one.as_json() for one in self.inner]
        return found


class Timeline(Instrumentation):
    """Measures the parts of a run; a pass is a part, and so is its verification."""

    def __init__(self, begin: float) -> None:
        self.root = Span("total", begin)
        self._open = [self.root]
        self.events: list[tuple[str, float]] = []

    @contextmanager
    def span(self, name: str) -> Iterator[Span]:
        """Measure what happens in here."""
        one = self.begin(name)
        try:
            yield one
        finally:
            self.end(one)

    def begin(self, name: str, at: float | None = None) -> Span:
        one = Span(name, time.perf_counter() if at is None else at)
        self._open[-1].inner.append(one)
        self._open.append(one)
        return one

    def end(self, one: Span) -> None:
        one.seconds = time.perf_counter() - one.start
        while self._open.pop() is not one:  # what an error left open inside
            pass

    def before_pass(self, index: int, pass_: ModulePass, module: ModuleOp) -> None:
        self.begin(pass_.name)

    def after_pass(self, index: int, pass_: ModulePass, module: ModuleOp, report: PassReport) -> None:
        one = self._open[-1]
        self.end(one)
        if report.verify_seconds > 1e-5:
            one.inner.append(Span("verify", one.start + one.seconds - report.verify_seconds, report.verify_seconds))

    def on_failure(self, index: int, pass_: ModulePass, module: ModuleOp, error: Exception) -> None:
        self.end(self._open[-1])

    def add_phases(self, one: Span, phase: Phase) -> None:
        """The phases of a compilation inside a span. How long each took is known, not when: they stand in a row."""
        at = one.start
        for inner in phase.inner.values():
            span = Span(inner.name + (f" ×{inner.count}" if inner.count > 1 else ""), at, inner.seconds)
            one.inner.append(span)
            self.add_phases(span, inner)
            at += inner.seconds

    def report(self, form: str) -> str:
        """The times so far, as `tree`, `list`, `json` or `chrome`."""
        self.root.seconds = time.perf_counter() - self.root.start
        if form == "json":
            return json.dumps(self.root.as_json(), indent=1) + "\n"
        if form == "chrome":
            return json.dumps(self._chrome()) + "\n"
        lines = ["===--- Execution time report ---===\n"]
        if form == "list":
            seconds: dict[str, float] = {}
            for one in self.root.walk():
                name = "other" if one is self.root else one.name
                seconds[name] = seconds.get(name, 0.0) + one.own_seconds()
            spans = [Span(name, 0.0, value) for name, value in sorted(seconds.items(), key=lambda item: -item[1])]
        else:
            other = self.root.own_seconds()
            spans = [*self.root.inner, *([Span("other", 0.0, other)] if other > 1e-5 else [])]
        for one in [*spans, Span("total", 0.0, self.root.seconds)]:
            lines += one.lines(self.root.seconds)
        return "".join(lines)

    def _chrome(self) -> dict[str, Any]:
        """The trace-event format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU"""
        common = {"pid": os.getpid(), "tid": 1, "cat": "sardonyx-opt"}

        def microseconds(at: float) -> float:
            return round((at - self.root.start) * 1e6, 3)

        spans: list[dict[str, Any]] = [
            {"name": s.name, "ph": "X", "ts": microseconds(s.start), "dur": round(s.seconds * 1e6, 3), **common}
            for s in self.root.walk()
        ]
        marks = [{"name": name, "ph": "i", "s": "t", "ts": microseconds(at), **common} for name, at in self.events]
        return {"traceEvents": spans + marks, "displayTimeUnit": "ms"}


# ---- memory


def resident_bytes() -> int | None:
    """The memory of this process that is in RAM; None where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return None


def peak_bytes() -> int:
    """The most that this process ever had in RAM."""
    import resource
    import sys

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class MemoryReport(Instrumentation):
    """Memory and number of ops after each pass."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int, int | None]] = []

    def note(self, name: str, module: ModuleOp) -> None:
        self.rows.append((name, sum(1 for _ in module.walk()), resident_bytes()))

    def after_pass(self, index: int, pass_: ModulePass, module: ModuleOp, report: PassReport) -> None:
        self.note(pass_.name, module)

    def print(self, stream: TextIO) -> None:
        stream.write("===--- Memory report ---===\n     resident     change       ops\n")
        last: int | None = None
        for name, ops, now in self.rows:
            shown = "        ?" if now is None else f"{now / 2**20:9.1f}"
            change = 0.0 if now is None or last is None else (now - last) / 2**20
            stream.write(f"  {shown} MiB {change:+10.1f} {ops:9d}  {name}\n")
            last = now
        stream.write(f"  {peak_bytes() / 2**20:9.1f} MiB  peak of the process\n")
