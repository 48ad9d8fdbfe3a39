"""Crash reproducers: the IR from before what failed, and what was to be run on it, in one file.

The file is written before each pass, and removed when all went well, so that it is there even if the process dies.
Its head says how to run it; `sardonyx-opt --run-reproducer FILE` does so. Files that were given with `--load` are
named there, but never loaded by themselves: who runs a reproducer of somebody else's decides on that.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from sardonyx.dialects.files import write_files
from sardonyx.dialects.weights_file import module_weights, weights_path, write_weights
from sardonyx.errors import InvalidArgumentError
from sardonyx.passes import pipeline
from sardonyx.passes.pipeline import Instrumentation
from sardonyx.tools.opt_print import PrintOptions, print_module

HEAD = "// sardonyx-opt reproducer"
RUN = "// sardonyx-opt: "
LOADED = "// loaded: "

TAKEN = ("--pass-pipeline", "-p", "--passes", "--target", "-t", "--target-cpu", "--target-features", "--target-triple",
         "--verify-each", "--allow-unregistered-dialect", "--fuel", "--debug-counter", "--check-passes")  # fmt: skip
"""The options that a reproducer's head may have; none of them reads, writes or executes a file."""


@dataclass
class Reproducer(Instrumentation):
    """Keeps the file that reproduces a failure.

    Attributes:
        path: Where it is.
        options: The options of the run.
        passes: All passes of the pipeline.
    """

    path: Path
    options: argparse.Namespace
    passes: Sequence[ModulePass]
    written: list[Path] = field(default_factory=list[Path], init=False)

    def __post_init__(self) -> None:
        if self.path.exists():
            with contextlib.suppress(OSError), self.path.open("rb") as file:
                if self.path.is_file() and file.read(len(HEAD)) in (HEAD.encode(), b""):
                    return
            raise InvalidArgumentError(f"'{self.path}' is there and is no reproducer", hint="name another file")

    def before_pass(self, index: int, pass_: ModulePass, module: ModuleOp) -> None:
        self.write(module, self.passes[index:], None)

    def before_output(self, module: ModuleOp) -> None:
        """All passes ran; what fails now is the target."""
        self.write(module, (), self.options.target)

    def write(self, module: ModuleOp, passes: Sequence[ModulePass], target: str | None) -> None:
        """Write the file, and the bytes of weights beside it.

        Raises:
            InvalidArgumentError: It cannot be written.
        """
        options = self.options
        words = ["-p", pipeline.format(passes)] if passes else []
        if target is not None:
            words += ["-t", target]
        for name, value in (("cpu", options.target_cpu), ("features", options.target_features),
                            ("triple", options.target_triple)):  # fmt: skip
            words += [f"--target-{name}={value}"] if value is not None else []
        words += ["--verify-each"] if options.verify_each else []
        words += ["--allow-unregistered-dialect"] if options.allow_unregistered_dialect else []
        words += [f"--fuel={options.fuel}"] if options.fuel is not None else []
        words += [f"--debug-counter={counter}" for counter in options.debug_counter]
        checked = getattr(options, "check_passes", None)
        words += [f"--check-passes={checked}"] if checked else []
        lines = [f"{HEAD}; run it with: sardonyx-opt --run-reproducer {self.path.name}", RUN + shlex.join(words)]
        lines += [f"{LOADED}{os.path.abspath(path)}" for path in options.load]
        raw = ("\n".join(lines) + "\n" + print_module(module, PrintOptions(locations=True))).encode()
        files = [(self.path, lambda file: file.write(raw))]
        weights = {key: weight for key, weight in module_weights(module).items() if weight is not None}
        if weights:
            files.insert(0, (weights_path(self.path), lambda file: write_weights(weights, file)))
        write_files(files)
        self.written = [path for path, _ in files]

    def done(self) -> None:
        """Nothing failed: remove what was written."""
        for path in self.written:
            path.unlink(missing_ok=True)
        self.written = []


def read_head(content: str, source: str, loaded: Sequence[str]) -> list[str]:
    """The arguments that a reproducer's head has.

    Raises:
        InvalidArgumentError: It is no reproducer, or its head has what it may not have.
    """
    lines = content.splitlines()
    if not lines or not lines[0].startswith(HEAD) or len(lines) < 2 or not lines[1].startswith(RUN):
        raise InvalidArgumentError(f"'{source}' is no reproducer", hint=f"its first line would begin with '{HEAD}'")
    try:
        words = shlex.split(lines[1].removeprefix(RUN))
    except ValueError as error:
        raise InvalidArgumentError(f"the head of the reproducer '{source}' is damaged: {error}") from None
    for word in words:
        if word.startswith("-") and word.partition("=")[0] not in TAKEN:
            raise InvalidArgumentError(
                f"a reproducer's head may not have '{word}'", hint=f"it may have {', '.join(TAKEN)}"
            )
    if any(word.startswith("@") for word in words):
        raise InvalidArgumentError("a reproducer's head may not name files")
    missing = [line.removeprefix(LOADED) for line in lines[2:] if line.startswith(LOADED)]
    missing = [path for path in missing if path not in {os.path.abspath(p) for p in loaded}]
    if missing:
        given = " ".join(f"--load {shlex.quote(path)}" for path in missing)
        raise InvalidArgumentError("the reproducer needs a file that was loaded", hint=f"if you trust it, add {given}")
    return words
