"""Renders errors for the command line: severity, code, location, message, op, hint, notes, on standard error."""

from __future__ import annotations

from typing import TextIO

from sardonyx.errors import SardonyxError

EXIT_OK = 0
EXIT_FAILURE = 1
"""The input, a pass or the run failed."""
EXIT_USAGE = 2
"""The command line itself is wrong."""
EXIT_INTERNAL = 70
"""A defect of Sardonyx (BSD's EX_SOFTWARE)."""


def render(error: SardonyxError, stream: TextIO, source: str | None = None) -> None:
    """Write the error, one fact a line. `source` is the input's name, shown where the error has no location."""
    where = error.location or source
    head = f"{where}: " if where else ""
    stream.write(f"{head}error: {error.message} [{error.code_name}]\n")
    if error.op:
        stream.write(f"  op: {error.op}\n")
    for note in error.notes:
        stream.write(f"  note: {note}\n")
    if error.hint:
        stream.write(f"  hint: {error.hint}\n")


def exit_code(error: SardonyxError) -> int:
    return EXIT_INTERNAL if error.code_name == "INTERNAL" else EXIT_FAILURE
