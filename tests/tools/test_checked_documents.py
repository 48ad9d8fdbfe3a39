"""The examples of docs/embedding.md and docs/checked-passes.md run, and print what stands there."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from sardonyx.tools import cli

DOCS = Path(__file__).parents[2] / "docs"
BLOCKS = [
    pytest.param(code, id=f"{name}:{number}")
    for name in ("embedding.md", "checked-passes.md")
    for number, code in enumerate(re.findall(r"^```python\n(.*?)^```", (DOCS / name).read_text("utf-8"), re.M | re.S))
]


@pytest.mark.parametrize("code", BLOCKS)
def test_python_blocks(code):
    assert "assert" in code
    exec(compile(code, "docs", "exec"), {"__name__": "docs"})


def test_blame_prints_what_stands_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(
        "import sardonyx as sx\n\ndef net(x):\n    a = sx.transpose(x, (1, 0))\n    b = sx.relu(a)\n"
        "    return sx.transpose(b, (1, 0))\n"
    )
    text = (DOCS / "checked-passes.md").read_text("utf-8")
    found = re.search(r"^\$ sardonyx (blame .*?)\n(.*?)^```", text, re.M | re.S)
    assert found is not None
    import shlex

    out, err = io.StringIO(), io.StringIO()
    assert cli.run(shlex.split(found[1]), out, err) == 0, err.getvalue()
    got = re.sub(r"from \S*/net\.py", "from net.py", out.getvalue())
    assert got == found[2]
