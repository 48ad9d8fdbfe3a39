"""What an export did: its steps on standard output, a report and a profile in Markdown, the dumped program."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from sardonyx.errors import SardonyxError
from sardonyx.frontend.torch.options import Options

if TYPE_CHECKING:
    from sardonyx.frontend.torch.program import ONNXProgram


class Journal:
    """Collects what is reported of one export."""

    def __init__(self, name: str, options: Options) -> None:
        self.name = name
        self.options = options
        self.steps: list[tuple[str, float, int]] = []
        self.lines: list[str] = []
        self.tables: list[str] = []
        self.result = ""

    # ---- while it runs
    def say(self, text: str) -> None:
        if self.options.verbose:
            print(f"[sardonyx.export] {text}", file=sys.stdout)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """The time of one step."""
        self.say(f"{self.name}: {name} ...")
        start = time.perf_counter()
        try:
            yield
        finally:
            spent = time.perf_counter() - start
            self.steps.append((name, spent, peak_memory()))
        self.say(f"{self.name}: {name} done in {spent:.2f} s")

    def strategy(self, name: str, error: BaseException | None) -> None:
        """One way of capturing the model."""
        said = (
            "succeeded" if error is None else f"failed: {type(error).__name__}: {str(error).strip().splitlines()[:1]}"
        )
        self.lines.append(f"- {name}: {said}")
        self.say(f"{self.name}: {name} {said}")

    def note(self, text: str) -> None:
        self.lines.append(f"- note: {text}")
        self.say(f"{self.name}: {text}")

    def verified(self, name: str, close: bool, error: float) -> None:
        said = f"agrees, greatest difference {error:.3g}" if close else "DIFFERS"
        self.lines.append(f"- verify: output `{name}` {said}")
        self.say(f"{self.name}: output '{name}' {said}")

    def failed(self, error: SardonyxError) -> None:
        self.result = "failed"
        self.lines.append(f"- **{error.code_name}**: {error}")
        if error.hint:
            self.lines.append(f"- remedy: {error.hint}")

    def counted(self, program: Any, made: ONNXProgram) -> None:
        """The operators before and after."""
        self.result = "succeeded"
        if not (self.options.report or self.options.verbose):
            return
        aten = Counter(str(n.target) for n in program.graph.nodes if n.op == "call_function")
        ours = Counter(op.name for op in made.graph.module.walk() if op.name.startswith("sx."))
        self.lines.append(f"- {sum(aten.values())} nodes of torch became {sum(ours.values())} ops")
        self.tables += ["", "| operator of torch | count |", "|---|---|"]
        self.tables += [f"| `{name}` | {count} |" for name, count in sorted(aten.items())]
        self.tables += ["", "| op | count |", "|---|---|"]
        self.tables += [f"| `{name}` | {count} |" for name, count in sorted(ours.items())]

    # ---- files
    def dump(self, program: Any) -> None:
        """Write the ExportedProgram where that is asked for."""
        if self.options.dump_exported_program:
            import torch

            torch.export.save(program, self._path("exported_program.pt2"))

    def _path(self, ending: str) -> str:
        os.makedirs(self.options.artifacts_dir, exist_ok=True)
        return os.path.join(self.options.artifacts_dir, f"{self.name}_{ending}")

    def write(self) -> str:
        """The report, written where that is asked for."""
        text = "\n".join(
            [f"# Export of `{self.name}`", "", f"The export {self.result}.", "", *self.lines, *self.tables, ""]
        )
        if self.options.report:
            with open(self._path("export_report.md"), "w", encoding="utf-8") as file:
                file.write(text)
        if self.options.profile:
            rows = [f"| {name} | {spent:.3f} | {peak / 1e6:.0f} |" for name, spent, peak in self.steps]
            table = ["| step | seconds | peak memory of the process, MB |", "|---|---|---|", *rows]
            with open(self._path("export_profile.md"), "w", encoding="utf-8") as file:
                file.write("\n".join([f"# Profile of the export of `{self.name}`", "", *table, ""]))
        return text


def peak_memory() -> int:
    """The most memory that the process has had so far, in bytes; 0 where the system doesn't say."""
    try:
        import resource
    except ImportError:
        return 0
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024
