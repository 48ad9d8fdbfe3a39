"""The command line `sardonyx`, and its demo as the README runs it."""

from __future__ import annotations

import builtins
import errno
import io
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sardonyx.tools import cli


def call(*args: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return cli.run(list(args), out, err), out.getvalue(), err.getvalue()


def test_the_demo_runs_and_all_executions_agree(tmp_path: Path) -> None:
    status, out, err = call("demo", "--output", str(tmp_path))
    assert (status, err) == (0, "")
    assert "all executions agree" in out and "sx.conv" in out and "dense<...>" in out
    rows = re.findall(r"^  (reference|native|ONNX file.*?) +(\d+\.\d+)% +(\d+) ", out, re.MULTILINE)
    assert len(rows) == 4
    for name, accuracy, flips in rows:
        assert float(accuracy) > 97.5 and flips == "0", name
    assert re.search(r"22 ops became 18 ops", out)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["digits.onnx"]


def test_without_onnxruntime_the_reference_evaluator_checks_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def refuse(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "onnxruntime":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", refuse)
    status, out, _ = call("demo", "--quiet")
    assert status == 0
    assert "onnxruntime is not installed" in out and "ONNX file, reference" in out


def test_a_difference_fails_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    from sardonyx.tools import demo

    monkeypatch.setattr(demo, "TOLERANCES", {"logits": (0.0, 0.0), "probabilities": (0.0, 0.0)})
    status, out, _ = call("demo", "--quiet")
    assert status == 6 and "DIFFER" in out


@pytest.mark.parametrize(
    ("args", "status", "word"), [([], 2, "COMMAND"), (["dmo"], 2, "demo"), (["demo", "--x"], 2, "--x")]
)
def test_a_wrong_command_line_is_a_usage_error(args: list[str], status: int, word: str) -> None:
    found, out, err = call(*args)
    assert found == status and word in err and not out


def test_an_error_is_one_message(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    status, _, err = call("demo", "--quiet", "--output", str(blocked / "below"))
    assert status == 1 and err.count("error:") == 1 and "Traceback" not in err


def test_the_demo_compiles_cold_and_warm_and_leaves_the_users_cache_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SARDONYX_CACHE_DIR", str(tmp_path / "mine"))
    monkeypatch.setenv("SARDONYX_CACHE", "0")  # off: the demo's own folder is used all the same
    from sardonyx.backends.llvm.runtime.cache import STATISTICS
    from sardonyx.tools import demo

    before = (STATISTICS.compiled, STATISTICS.loaded)
    monkeypatch.setattr(demo._Demo, "_times", lambda *args: None)
    status, out, _ = call("demo", "--quiet")
    assert status == 0
    assert STATISTICS.compiled > before[0]
    assert STATISTICS.loaded > before[1]
    assert not (tmp_path / "mine").exists()
    assert re.search(r"^  cold +\d+ ms", out, re.MULTILINE)
    assert re.search(r"^  warm +\d+ ms", out, re.MULTILINE)


def test_help_loads_nothing_and_a_plain_terminal_will_do(tmp_path: Path) -> None:
    code = "import sys; sys.argv = ['sardonyx', '--help']\nfrom sardonyx.tools.cli import main\n"
    code += "try: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    command = [sys.executable, "-P", "-c", code]
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == 0, done.stderr
    assert "exit status" in done.stdout
    assert not {"numpy", "xdsl", "onnx", "llvmlite"} & set(done.stderr.split())
    shown = subprocess.run(
        [sys.executable, "-P", "-m", "sardonyx.tools.cli", "demo", "--quiet", "--output", str(tmp_path)],
        capture_output=True, text=True, env=env, check=False,
    )  # fmt: skip
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "1. trace" in shown.stdout


def test_a_full_disk_and_an_interrupt_are_told_as_what_they_are() -> None:
    class Full(io.StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, "no space")

    err = io.StringIO()
    assert cli.run(["ops", "x.onnx", "--list-targets"], Full(), err) == 1
    assert err.getvalue() == "error: cannot write the result: No space left on device [INVALID_ARGUMENT]\n"

    # Ctrl-C while a module is imported, which takes longer than most commands.
    script = "import sys; sys.argv = ['sardonyx', 'demo']; import sardonyx.tools.cli as cli\n"
    script += "def stop(*_): raise KeyboardInterrupt\ncli.build_parser = stop; cli.main()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("command", sorted(cli.COMMANDS))
def test_every_help_has_examples_and_exit_statuses(command: str) -> None:
    status, out, err = call(command, "--help")
    assert (status, err) == (0, "")
    assert re.search(rf"^  sardonyx {command}\b", out, re.MULTILINE), out
    told = out.partition("exit status:")[2]
    assert (
        re.search(r"\b0 \w+", told)
        and re.search(r"\b1 \w+", told)
        and "2 the command line is wrong" in " ".join(told.split())
    )
