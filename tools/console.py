"""How commands speak: tables where a person reads, JSON where a program does, a status line while they work."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TextIO

WIDTH = 120
"""Of what is written to a file or a pipe."""


def print_json(data: Any, stream: TextIO) -> None:
    """One JSON document."""
    stream.write(json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[object]], stream: TextIO, right: Sequence[str] = ()
) -> None:
    """A table with a heading; the columns named in `right` are aligned there. Cells are plain text."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(cell), style=_STYLES.get(str(cell), "")) for cell in row))
    console(stream).print(table)


_STYLES = {"passed": "green", "failed": "bold red", "untested": "yellow", "refused": "yellow"}


def console(stream: TextIO) -> Any:
    """A console of rich on a stream: colours on a terminal only, and never cut."""
    from rich.console import Console

    terminal = stream.isatty()
    return Console(
        file=stream,
        width=None if terminal else WIDTH,
        highlight=False,
        soft_wrap=not terminal,
        emoji=False,
        markup=False,
    )


class Progress:
    """A line on standard error that says what is going on; nothing where that is no terminal.

    Use it as a context manager, and call it with each step. `always` writes whole lines where there is no terminal, a
    few a second. No thread draws it: a process of one thread may compile in several (`runtime/objects.py`).
    """

    EVERY = 0.5
    """Seconds between lines that are written to something else than a terminal."""

    def __init__(self, quiet: bool = False, always: bool = False) -> None:
        terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._drawn = terminal and not quiet
        self._lines = always and not terminal
        self._since = -self.EVERY

    def __enter__(self) -> Progress:
        return self

    def __call__(self, text: str) -> None:
        if self._drawn:
            width = shutil.get_terminal_size().columns
            sys.stderr.write(f"{_CLEARED}{text[: width - 1]}")
            sys.stderr.flush()
        elif self._lines and time.monotonic() - self._since >= self.EVERY:
            self._since = time.monotonic()
            sys.stderr.write(f"{text}\n")

    @contextmanager
    def of_compilation(self) -> Iterator[None]:
        """Show how far the compilations in here are."""
        from sardonyx.backends.llvm.runtime.phases import progress_to

        with progress_to(lambda at: self(f"compiling: {at}")):
            yield

    def __exit__(self, *_: object) -> None:
        if self._drawn:
            sys.stderr.write(_CLEARED)
            sys.stderr.flush()


_CLEARED = "\r\x1b[2K"
