"""Renders errors for the command line: location, severity, message, code, the line, op, hint, notes."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from typing import TextIO

from sardonyx.errors import InvalidArgumentError, SardonyxError

EXIT_OK = 0
EXIT_FAILURE = 1
"""The input is wrong; of commands without stages of their own, anything that failed."""
EXIT_USAGE = 2
"""The command line itself is wrong."""
EXIT_PASS = 3
"""A pass refused the graph."""
EXIT_OUTPUT = 4
"""The target cannot state the graph, or the output cannot be written."""
EXIT_DIAGNOSTICS = 5
"""The diagnostics are not those that the input expects."""
EXIT_CHECK = 6
"""A check failed: values changed, or text does not come back as the IR that it was printed from."""
EXIT_INTERNAL = 70
"""A defect of Sardonyx or of a pass (BSD's EX_SOFTWARE)."""
EXIT_INTERRUPTED = 130
"""Ctrl-C (128 + SIGINT)."""

_LONGEST = 1000
_FULL = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO)
"""What standard output, or a temporary file, may meet at any time."""


def render(error: SardonyxError, stream: TextIO, source: str | None = None, debug: bool = False) -> None:
    """Write the error, one fact a line. `source` is the input's name, shown where the error's location names no file.

    With `debug`, Python's traceback comes first.
    """
    if debug:
        traceback.print_exception(error, file=stream)
    where = error.location or source
    if source and where and where.startswith("node "):  # of a model, which the user named
        where = f"{source}: {where}"
    stream.write(f"{where}: " if where else "")
    stream.write(f"error: {_cut(error.message)} [{error.code_name}]\n")
    for line in getattr(error, "excerpt", ()):
        stream.write(f"  {line}\n".rstrip() + "\n")
    if error.op and error.op not in error.message:
        stream.write(f"  op: {error.op}\n")
    for note in error.notes:
        stream.write(f"  note: {_cut(note)}\n")
    hint = error.hint
    if hint is None and error.code_name == "INTERNAL" and not debug:
        hint = "this is a defect of the pass or of Sardonyx; --debug shows where in its code"
    if hint:
        stream.write(f"  hint: {hint}\n")


def _cut(text: str) -> str:
    """A message as one line of bearable length."""
    line = " ".join(text.split("\n"))
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}..."


def exit_code(error: SardonyxError, otherwise: int = EXIT_FAILURE) -> int:
    """The exit status of an error: by its code, else that of the stage that it came from."""
    return {"INTERNAL": EXIT_INTERNAL, "CHECK_FAILED": EXIT_CHECK}.get(error.code_name, otherwise)


def as_error(error: BaseException) -> SardonyxError:
    """The error itself, or one for what should not have come so far."""
    if isinstance(error, SardonyxError):
        return error
    if isinstance(error, OSError) and error.errno in _FULL:
        return InvalidArgumentError(f"cannot write the result: {os.strerror(error.errno)}")
    wrapped = SardonyxError(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
    wrapped.__cause__ = error
    return wrapped


def close_stdout(status: int) -> int:
    """Flush standard output at the end of a command; what cannot be flushed makes no noise when Python ends."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if not isinstance(error, BrokenPipeError):
            return status or EXIT_FAILURE
    return status
