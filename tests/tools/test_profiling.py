"""docs/profiling.md: its Python runs, its commands are there; the line that says how far a compilation is."""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path

import pytest

from sardonyx.tools import cli
from sardonyx.tools.console import Progress

PAGE = (Path(__file__).parents[2] / "docs" / "profiling.md").read_text("utf-8")
NET = "import sardonyx as sx\n\n\ndef forward(x):\n    return sx.softmax(sx.exp(x), axis=-1) * 2.0\n"


def test_python_blocks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("SARDONYX_CACHE", "0")
    code = "".join(re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S))
    assert code.count("assert") == 3
    exec(compile(code, "docs", "exec"), {"__name__": "docs"})
    assert "ceilings" in capsys.readouterr().out


def test_commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    Path("net.py").write_text(NET)
    out, err = io.StringIO(), io.StringIO()
    assert cli.run(["export", "net.py:forward", "-o", "model.onnx", "--signature", "x: f32[batch,5]"], out, err) == 0, (
        err
    )
    for line in re.findall(r"^\$ sardonyx (.*)", PAGE, re.M):
        out = io.StringIO()
        assert cli.run(shlex.split(line), out, err) == 0, err.getvalue()
        assert "GFLOP/s" in out.getvalue()
    assert "<svg" in Path("profile.html").read_text() and "traceEvents" in Path("profile.json").read_text()


def test_compile_says_how_far_it_is_where_it_is_asked_to(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Progress, "EVERY", 0.0)
    Path("net.py").write_text(NET)
    command = ["compile", "net.py:forward", "--signature", "x: f32[n,5]", "-o", "net.o"]
    out = io.StringIO()
    assert cli.run(command, out, io.StringIO()) == 0 and capsys.readouterr().err == ""
    assert cli.run([*command, "--progress"], out, io.StringIO()) == 0
    lines = capsys.readouterr().err.splitlines()
    assert "compiling: lowering" in lines and any(re.fullmatch(r"compiling: text: 0 of \d+", line) for line in lines)
    assert all(line.startswith("compiling: ") for line in lines)


def test_on_a_terminal_the_line_is_drawn_anew_and_cleared(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "20")
    with Progress() as progress:
        progress("one")
        progress("two" * 20)
    assert capsys.readouterr().err == f"\r\x1b[2Kone\r\x1b[2K{('two' * 20)[:19]}\r\x1b[2K"
    with Progress(quiet=True) as progress:
        progress("one")
    assert capsys.readouterr().err == ""
