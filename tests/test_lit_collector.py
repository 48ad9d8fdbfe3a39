"""The lit collector itself, with a stand-in for sardonyx-opt."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TextIO

import lit_collector
import pytest
from lit_collector import LitFailure, Stage, parse_pipeline


def stand_in(args: list[str], stdin: TextIO, stdout: TextIO, stderr: TextIO) -> int:
    """Echoes its arguments (or, for `-`, its input); `--fail`, `--raise` and `--exit` do as they say."""
    if "--raise" in args:
        raise ValueError("let through")
    if "--exit" in args:
        raise SystemExit("usage: none")
    text = stdin.read() if args == ["-"] else "\n".join(arg for arg in args if not arg.endswith(".mlir"))
    stdout.write(text + "\n")
    print("a note", file=stderr)
    return 3 if "--fail" in args else 0


def run(tmp_path: Path, text: str) -> None:
    path = tmp_path / "some test.mlir"  # the space is on purpose
    path.write_text(text, encoding="utf-8")
    lit_collector.run_file(path, {**lit_collector.PROGRAMS, "sardonyx-opt": stand_in})


@pytest.mark.parametrize(
    ("text", "stages"),
    [
        ("sardonyx-opt %s", [Stage(("sardonyx-opt", "%s"))]),
        ("a -p 'x{k=1 l=2},y' | b c", [Stage(("a", "-p", "x{k=1 l=2},y")), Stage(("b", "c"))]),
        ("a -p x{k=1}", [Stage(("a", "-p", "x{k=1}"))]),
        ("a \"b c\"d ''", [Stage(("a", "b cd", ""))]),
        ("not a 2>&1 | b", [Stage(("not", "a"), stderr="&1"), Stage(("b",))]),
        ("a <in >out 2> err", [Stage(("a",), stdin="in", stdout="out", stderr="err")]),
        ("a '2'>out", [Stage(("a", "2"), stdout="out")]),
        ("a v2>out", [Stage(("a", "v2"), stdout="out")]),
    ],
)
def test_plain_pipelines_are_taken_apart(text: str, stages: list[Stage]):
    assert parse_pipeline(text) == stages


@pytest.mark.parametrize(
    "text",
    [
        "a && b",
        "a || b",
        "a; b",
        "a &",
        "a $X",
        'a "$X"',
        "a *.mlir",
        "a >> out",
        "a <<X",
        "a > out 2>&1",
        "a 2>&1 > out",
        "a 1>&2",
        "a >&2",
        "a {x,y}",
        "a x{1..3}",
        "a 'open",
        "a |",
        "a | not",
        "a >",
        "a \\n",
        "a > x > y",
    ],
)
def test_what_only_a_shell_understands_is_left_to_it(text: str):
    assert parse_pipeline(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "// RUN: sardonyx-opt %s foo | filecheck %s\n// CHECK: foo\n",
        "// RUN: sardonyx-opt %s foo | filecheck %s --check-prefix BAR\n// BAR: foo\n",
        "// RUN: sardonyx-opt %s foo \\\n// RUN:   bar | filecheck %s\n// CHECK: foo\n// CHECK-NEXT: bar\n",
        "// RUN: sardonyx-opt - < %s | filecheck %s\nhello\n// CHECK: hello\n",
        "// RUN: sardonyx-opt foo > %t && grep foo %t",
        "// RUN: sardonyx-opt foo > %t\n// RUN: filecheck %s --input-file %t\n// CHECK: foo\n",
        "// RUN: not sardonyx-opt --fail 2>&1 | filecheck %s\n// CHECK: --fail\n// CHECK-NEXT: a note\n",
        "// RUN: sardonyx-opt foo | not filecheck %s\n// CHECK: bar\n",
        "// RUN: not false && echo foo | filecheck %s\n// CHECK: foo\n",
        "// RUN: sardonyx-opt 100%% | filecheck %s\n// CHECK: 100%\n",
        "// RUN: test -f %s && test -d %S\n",
    ],
)
def test_what_holds_passes(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch):
    # Lines for the shell find a stand-in on PATH, too: an executable that echoes.
    (tmp_path / "sardonyx-opt").write_text('#!/bin/sh\necho "$@"\n', encoding="utf-8")
    (tmp_path / "sardonyx-opt").chmod(0o755)
    shutil.copy(Path(sys.executable).with_name("filecheck"), tmp_path)
    monkeypatch.setattr(lit_collector.sys, "executable", str(tmp_path / "python"))
    run(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "// RUN: sardonyx-opt foo | filecheck %s\n// CHECK: bar\n",
            ["filecheck: status 1", "output of sardonyx-opt", "foo"],
        ),
        ("// RUN: sardonyx-opt foo | filecheck %s\n", ["filecheck: status 2", "No check strings"]),
        ("// RUN: sardonyx-opt --fail\n", ["sardonyx-opt: status 3, where success was expected", "a note"]),
        ("// RUN: sardonyx-opt --fail | filecheck %s\n// CHECK: --fail\n", ["sardonyx-opt: status 3"]),
        ("// RUN: not sardonyx-opt foo\n", ["status 0, where failure was expected"]),
        ("// RUN: sardonyx-opt --raise\n", ["crashed", "ValueError: let through"]),
        ("// RUN: not sardonyx-opt --raise\n", ["crashed"]),
        ("// RUN: sardonyx-opt --exit\n", ["status 1", "usage: none"]),
        ("// RUN: sardonyx-opt a\n// RUN: sardonyx-opt --fail\n", [".mlir:2: RUN: sardonyx-opt --fail"]),
        ("// RUN: false | true\n", ["bash: status 1"]),
        ("// RUN: not bash -c 'kill -9 $$'\n", ["bash: status 1"]),
        ("module {}\n", ["no RUN line"]),
        ("// RUN: sardonyx-opt \\\n", ["continuation is missing"]),
        ("// REQUIRES: x\n// RUN: true\n", ["REQUIRES is not understood"]),
    ],
)
def test_what_does_not_hold_fails_and_says_why(tmp_path: Path, text: str, said: list[str]):
    with pytest.raises(LitFailure) as caught:
        run(tmp_path, text)
    for part in said:
        assert part in str(caught.value)


def test_the_working_directory_is_not_the_checkout(tmp_path: Path):
    run(tmp_path, "// RUN: sardonyx-opt x > stray.txt\n// RUN: touch stray.txt\n")
    assert not Path("stray.txt").exists()
    assert not (tmp_path / "stray.txt").exists()


def test_files_below_tests_lit_are_collected_as_items(tmp_path: Path):
    """In a pytest of its own, with the real conftest: a failure shows its RUN line, and no traceback."""
    tests = Path(__file__).parent
    (tmp_path / "tests/lit/Inputs").mkdir(parents=True)
    shutil.copy(tests / "conftest.py", tmp_path / "tests")
    (tmp_path / "tests/lit/good.mlir").write_text("// RUN: true\n", encoding="utf-8")
    (tmp_path / "tests/lit/bad.mlir").write_text("// RUN: false\n", encoding="utf-8")
    (tmp_path / "tests/lit/Inputs/other.mlir").write_text("no test\n", encoding="utf-8")
    config = f"[pytest]\npythonpath = {tests / 'support'}\naddopts = --import-mode=importlib -p no:cacheprovider\n"
    (tmp_path / "pytest.ini").write_text(config, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "tests"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "1 failed, 1 passed" in done.stdout
    assert "bad.mlir:1: RUN: false" in done.stdout
    assert "Traceback" not in done.stdout
    assert "lit_collector.py" not in done.stdout
