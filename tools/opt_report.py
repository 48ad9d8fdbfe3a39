"""What `sardonyx-opt` prints beside its result, all on standard error: IR around passes, times, statistics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sardonyx.passes import registry
from sardonyx.passes.base import SxPass
from sardonyx.passes.pipeline import Instrumentation, PassReport, PipelineReport, describe_options


@dataclass
class IRPrinting(Instrumentation):
    """Prints the module before and after passes. A name of `*` means every pass."""

    stream: TextIO
    show: Callable[[ModuleOp], str]
    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    after_change: bool = False
    after_failure: bool = False
    _printed: list[str] = field(default_factory=list)

    def _wanted(self, names: frozenset[str], pass_: ModulePass) -> bool:
        return "*" in names or pass_.name in names

    def _print(self, title: str, module: ModuleOp) -> None:
        self.stream.write(f"// -----// IR Dump {title} //----- //\n{self.show(module)}\n")

    def before_pass(self, index: int, pass_: ModulePass, module: ModuleOp) -> None:
        if self._wanted(self.before, pass_):
            self._print(f"Before {pass_.name}", module)

    def after_pass(self, index: int, pass_: ModulePass, module: ModuleOp, report: PassReport) -> None:
        if self._wanted(self.after, pass_) or (self.after_change and report.changed):
            self._print(f"After {pass_.name}", module)

    def on_failure(self, index: int, pass_: ModulePass, module: ModuleOp, error: Exception) -> None:
        if self.after_failure:
            self._print(f"After {pass_.name} Failed", module)


@dataclass
class Timing:
    """Wall-clock times in seconds: loading our modules, reading, the passes, verifying at the end, and output."""

    loading: float
    reading: float
    verifying: float
    output: float


def print_timing(report: PipelineReport, timing: Timing, stream: TextIO) -> None:
    """A table of wall-clock times; with --verify-each, each pass has a line for its verification."""
    rows = [("load modules", timing.loading), ("read", timing.reading)]
    for entry in report.passes:
        rows.append((entry.name, entry.seconds))
        if entry.verify_seconds > 1e-5:
            rows.append((f"  verify after {entry.name}", entry.verify_seconds))
    if timing.verifying > 1e-5:
        rows.append(("verify", timing.verifying))
    rows.append(("output", timing.output))
    total = sum(seconds for _, seconds in rows)
    stream.write("===--- Execution time report ---===\n")
    for name, seconds in [*rows, ("total", total)]:
        share = 100 * seconds / total if total else 0.0
        stream.write(f"  {seconds * 1000:9.3f} ms  {share:5.1f} %  {name}\n")


def print_statistics(report: PipelineReport, stream: TextIO) -> None:
    """What each pass counted."""
    stream.write("===--- Pass statistics report ---===\n")
    for entry in report.passes:
        stream.write(f"{entry.name}{'' if entry.changed else ' (no change)'}\n")
        for name, value in sorted(entry.statistics.items()):
            stream.write(f"  {value:8d}  {name}\n")


def pass_list(everything: bool = False) -> str:
    """The passes by name: what each does, its options, and its numeric promise; with `everything`, xDSL's too."""
    lines: list[str] = []
    for name, entry in sorted(registry.entries().items()):
        if entry.origin == "xdsl":
            if everything:
                lines.append(f"{name}\n    of xDSL")
            continue
        cls = entry.load()
        lines.append(name)
        summary = entry.summary or (cls.__doc__ or "").strip().partition("\n")[0].rstrip(".")
        if summary:
            lines.append(f"    {summary}")
        if entry.origin != "sardonyx":
            lines.append(f"    from: {entry.origin}")
        options = describe_options(cls)
        if options != "none":
            lines.append(f"    options: {options}")
        if issubclass(cls, SxPass):
            lines.append(f"    promise: {cls.PROMISE}")
    return "\n".join(lines) + "\n"
