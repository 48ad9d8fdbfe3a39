"""docs/tracing.md: its code runs in order and prints what it says; its mistakes give the messages that are shown."""

from __future__ import annotations

import contextlib
import io
import linecache
import re
from pathlib import Path
from typing import Any

import pytest

from sardonyx.errors import SardonyxError

TEXT = (Path(__file__).parents[2] / "docs" / "tracing.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(python(?: raises)?)\n(.*?)^```$", TEXT, re.M | re.S)


def run(code: str, scope: dict[str, Any]) -> list[str]:
    """The lines that a block prints; its source is where errors look for the user's line."""
    linecache.cache["example.py"] = (len(code), None, code.splitlines(True), "example.py")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "example.py", "exec"), scope)
    return out.getvalue().splitlines()


def shown(error: SardonyxError) -> list[str]:
    hint = [f"hint: {error.hint}"] if error.hint else []
    return [f"{type(error).__name__}: {error}", *hint]


def test_the_page():
    scope: dict[str, Any] = {"__name__": "example"}
    mistakes = 0
    for kind, code in BLOCKS:
        wanted = [line[3:] for line in code.splitlines() if line.startswith("#> ")]
        if kind == "python":
            assert run(code, scope) == wanted, code
            continue
        mistakes += 1
        with pytest.raises(SardonyxError) as caught:
            run(code, dict(scope))
        assert shown(caught.value) == wanted, code
    assert mistakes >= 15
