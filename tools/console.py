"""How commands speak: tables where a person reads, JSON where a program does, a status line while they work."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
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

    Use it as a context manager, and call it with each step.
    """

    def __init__(self, quiet: bool = False) -> None:
        self._shown = not quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._status: Any = None

    def __enter__(self) -> Progress:
        if self._shown:
            self._status = console(sys.stderr).status("")
            self._status.start()
        return self

    def __call__(self, text: str) -> None:
        if self._status is not None:
            self._status.update(text)

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()
