"""What docs/torch.md says of mistakes is what they say."""

from __future__ import annotations

import linecache
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import sardonyx as sx  # noqa: E402

TEXT = (Path(__file__).parents[3] / "docs" / "torch.md").read_text(encoding="utf-8")
SECTION = TEXT.partition("## Fifteen mistakes")[2].partition("\n## ")[0]
SETUP = re.findall(r"^```python\n(.*?)^```", SECTION, re.MULTILINE | re.DOTALL)[0]
MISTAKES = re.findall(
    r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", SECTION.partition("**1.")[2], re.MULTILINE | re.DOTALL
)


def said(code: str) -> str:
    """What the document shows of an error: the code, the message and the hint."""
    space: dict[str, object] = {}
    exec(SETUP, space)
    linecache.cache["model.py"] = (len(code), None, [line + "\n" for line in code.split("\n")], "model.py")
    with pytest.raises(sx.OnnxExporterError) as found:
        exec(compile(code, "model.py", "exec"), space)
    error = found.value
    return f"{error.code_name}: {error}\n" + (f"hint: {error.hint}\n" if error.hint else "")


def test_there_are_fifteen():
    assert len(MISTAKES) == 15


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("number", range(len(MISTAKES)))
def test_messages(number):
    code, expected = MISTAKES[number]
    assert said(code) == expected
