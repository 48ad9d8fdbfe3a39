"""`--watch`: run again whenever a file changes that the command reads, and show how the result changed.

Every run is a process of its own, so that a pass under development is loaded anew. The first result goes to standard
output; after that, what changed in it goes to standard error as a diff. Ctrl-C ends it.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from sardonyx.tools.diagnostics import EXIT_INTERRUPTED, EXIT_USAGE

INTERVAL = 0.2
"""Seconds between two looks at the files."""


def watch(options: argparse.Namespace, stdout: TextIO, stderr: TextIO) -> int:
    """Run until interrupted; returns the exit status."""
    if options.input == "-":
        stderr.write("sardonyx-opt: error: --watch needs a file\n  hint: name the input\n")
        return EXIT_USAGE
    from sardonyx.tools.opt_print import diff

    command = [sys.executable, "-m", "sardonyx.tools.opt", *(w for w in options.arguments if w != "--watch")]
    shown: str | None = None
    try:
        while True:
            before = stamps(options)
            ran = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
            stderr.write(ran.stderr.decode(errors="replace"))
            result = ran.stdout.decode(errors="replace")
            if ran.returncode:
                stderr.write(f"// -----// Failed with status {ran.returncode} //----- //\n")
            elif shown is None:
                stdout.write(result)
                stdout.flush()
                shown = result
            elif result == shown:
                stderr.write("// -----// The result is the same //----- //\n")
            else:
                stderr.write(f"// -----// The result changed //----- //\n{diff(shown, result, 'before', 'now')}")
                shown = result
            stderr.flush()
            while stamps(options) == before:
                time.sleep(INTERVAL)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED


def watched(options: argparse.Namespace) -> Iterator[Path]:
    """The files that a run depends on: the input, what is loaded, the pipelines' files, and our own passes. Of a
    Python file, its neighbours too, which it may import."""
    name, _, _ = str(options.input).rpartition(":")
    source = Path(name if name.endswith(".py") else options.input)
    yield source
    if source.suffix == ".py":
        yield from source.parent.glob("*.py")
    for path in options.load:
        yield Path(path)
        yield from Path(path).parent.glob("*.py")
    words = iter(options.arguments)
    yield from (Path(word.partition("@")[2]) for word in words if word.startswith(("@", "-p@", "--passes=@")))
    if options.weights is not None:
        yield Path(options.weights)
    yield from (Path(__file__).parent.parent / "passes").glob("*.py")


def stamps(options: argparse.Namespace) -> dict[Path, tuple[int, int] | None]:
    """When each watched file was last written, and its size; None for one that is not there."""
    found: dict[Path, tuple[int, int] | None] = {}
    for path in watched(options):
        try:
            stat = os.stat(path)
        except OSError:
            found[path] = None
        else:
            found[path] = (stat.st_mtime_ns, stat.st_size)
    return found
