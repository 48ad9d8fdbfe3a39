"""Runs lit tests in this process, at about 10 ms a file instead of 200, and writes their CHECK lines.

A file's `// RUN:` lines are lit's own, and `lit` runs them too. A line that only pipes `sardonyx-opt`,
`filecheck` and `not` into each other, with plain redirections, runs in this process; any other line goes to bash.
`%s` is the file, `%S` its folder, `%t` a file name of the test's own in a fresh folder, which is also the working
directory. Of lit's other keywords (REQUIRES and so on) none is understood, and a file that has one fails.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from sardonyx.errors import FailedPreconditionError

Program = Callable[[list[str], TextIO, TextIO, TextIO], int]

_RUN = re.compile(r"//\s*RUN:\s?(.*)$")
_KEYWORD = re.compile(r"//\s*(REQUIRES|UNSUPPORTED|XFAIL|DEFINE|REDEFINE|ALLOW_RETRIES):")
_SHOWN_LINES = 150
_SHELL_SECONDS = 120
# xDSL switches verification off for the whole process, and not on again.
_POISONOUS = frozenset({"--disable-verify"})


class LitFailure(Exception):
    """A RUN line did not hold; the message is the whole report."""


@dataclass(frozen=True)
class RunLine:
    line: int
    text: str


@dataclass(frozen=True)
class Stage:
    """One command of a pipeline; `stderr` is a file name, or `&1`."""

    argv: tuple[str, ...] = ()
    stdin: str | None = None
    stdout: str | None = None
    stderr: str | None = None

    @property
    def negated(self) -> bool:
        return self.argv[:1] == ("not",)

    @property
    def command(self) -> tuple[str, ...]:
        return self.argv[1:] if self.negated else self.argv


@dataclass
class Outcome:
    stage: Stage
    status: int
    stdout: str
    stderr: str
    crashed: bool = False

    @property
    def name(self) -> str:
        return self.stage.command[0]

    @property
    def passed(self) -> bool:
        return not self.crashed and (self.status != 0) == self.stage.negated


def _opt(args: list[str], stdin: TextIO, stdout: TextIO, stderr: TextIO) -> int:
    from sardonyx.tools import opt

    return opt.run(args, stdin, stdout, stderr)


def _filecheck(args: list[str], stdin: TextIO, stdout: TextIO, stderr: TextIO) -> int:
    try:
        from filecheck.finput import FInput
        from filecheck.matcher import Matcher
        from filecheck.options import parse_argv_options
        from filecheck.parser import Parser
    except ImportError:
        raise FailedPreconditionError("lit files need filecheck", hint="pip install filecheck") from None
    options = parse_argv_options(["filecheck", *args])
    if options.input_file == "-":
        source = FInput("<stdin>", FInput.canonicalize_line_ends(stdin.read()))
    else:
        source = FInput.from_opts(options)
    return Matcher(options, source, Parser.from_opts(options)).run()


PROGRAMS: Mapping[str, Program] = {"sardonyx-opt": _opt, "filecheck": _filecheck}


def read_run_lines(path: Path) -> list[RunLine]:
    """The file's RUN lines, continuations joined, each with the number of its first line."""
    runs: list[RunLine] = []
    open_line: RunLine | None = None
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if keyword := _KEYWORD.search(line):
            raise LitFailure(f"{path}:{number}: {keyword[1]} is not understood here")
        if not (found := _RUN.search(line)):
            continue
        text = found[1].strip()
        if open_line is not None:
            text = f"{open_line.text} {text}"
        run = RunLine(open_line.line if open_line else number, text)
        if text.endswith("\\"):
            open_line = replace(run, text=text[:-1].rstrip())
        else:
            runs.append(run)
            open_line = None
    if open_line is not None:
        raise LitFailure(f"{path}:{open_line.line}: the RUN line's continuation is missing")
    if not runs:
        raise LitFailure(f"{path}:1: no RUN line")
    return runs


def parse_pipeline(text: str) -> list[Stage] | None:
    """The stages of a plain pipeline; None where only a shell does justice to it (`&&`, `$`, globs, `>>`, ...)."""
    stages = [Stage()]
    word: str | None = None
    target: str | None = None  # the stream that the next word redirects
    quoted = braced = False
    position = 0

    def finish() -> None:
        nonlocal word, target, quoted
        if word is None:
            return
        if target is None:
            stages[-1] = replace(stages[-1], argv=(*stages[-1].argv, word))
        else:
            stages[-1] = replace(stages[-1], **{target: word})
        word, target, quoted = None, None, False

    while position < len(text):
        char = text[position]
        rest = text[position:]
        position += 1
        if char.isspace():
            finish()
        elif char in "'\"":
            end = text.find(char, position)
            inside = text[position:end]
            if end < 0 or (char == '"' and re.search(r"[$`\\]", inside)):
                return None
            word, quoted, position = (word or "") + inside, True, end + 1
        elif char == "|" and not rest.startswith(("||", "|&")):
            finish()
            stages.append(Stage())
        elif char in "<>":
            stream = {"<": "stdin", ">": "stdout"}[char]
            if char == ">" and word in {"1", "2"} and not quoted:
                stream, word = ("stderr" if word == "2" else "stdout"), None
            finish()
            if target is not None or getattr(stages[-1], stream) is not None:
                return None
            if stream == "stderr" and rest.startswith(">&1") and not rest[3:4].isalnum():
                # After `>file` it means that file, not the pipe.
                if stages[-1].stdout is not None:
                    return None
                stages[-1] = replace(stages[-1], stderr="&1")
                position += 2
            elif rest[1:2] in {">", "&", "<", "("}:
                return None
            else:
                target = stream
        elif char in "|&;()`$*?[~#!\\":
            return None
        else:
            braced = char == "{" or (braced and char != "}")
            if braced and (char == "," or rest.startswith("..")):  # bash would expand the braces
                return None
            word = (word or "") + char
    finish()
    if target is not None or not all(stage.command for stage in stages):
        return None
    if any(stage.stderr == "&1" and stage.stdout is not None for stage in stages):
        return None
    return stages


def run_file(path: Path, programs: Mapping[str, Program] = PROGRAMS) -> None:
    """Run the file's RUN lines, in order, until one fails.

    Raises:
        LitFailure: with the failing line, what its commands said, and how to run it by hand.
    """
    runs = read_run_lines(path)
    with tempfile.TemporaryDirectory(prefix="sardonyx-lit-") as folder:
        substitutions = {
            "%s": str(path),
            "%S": str(path.parent),
            "%t": str(Path(folder, f"{path.name}.tmp")),
            "%%": "%",
        }
        for run in runs:
            stages = parse_pipeline(run.text)
            with contextlib.chdir(folder):
                if stages is not None and all(_runs_here(stage, programs) for stage in stages):
                    outcomes = _run_here([_substituted(stage, substitutions) for stage in stages], programs)
                else:
                    quoted = {key: value if key == "%%" else shlex.quote(value) for key, value in substitutions.items()}
                    outcomes = [_run_in_shell(_substitute(run.text, quoted))]
            if not all(outcome.passed for outcome in outcomes):
                raise LitFailure(_report(path, run, outcomes))


def _runs_here(stage: Stage, programs: Mapping[str, Program]) -> bool:
    return stage.command[0] in programs and not _POISONOUS.intersection(stage.command)


def _substitute(text: str, substitutions: Mapping[str, str]) -> str:
    return re.sub(r"%[sSt%]", lambda found: substitutions[found[0]], text)


def _substituted(stage: Stage, substitutions: Mapping[str, str]) -> Stage:
    names = {name: getattr(stage, name) for name in ("stdin", "stdout", "stderr")}
    return Stage(
        tuple(_substitute(word, substitutions) for word in stage.argv),
        **{name: value and _substitute(value, substitutions) for name, value in names.items()},
    )


def _run_here(stages: Iterable[Stage], programs: Mapping[str, Program]) -> list[Outcome]:
    outcomes: list[Outcome] = []
    piped = b""
    for stage in stages:
        given = Path(stage.stdin).read_bytes() if stage.stdin else piped
        outcome, piped = _run_stage(stage, programs[stage.command[0]], given)
        outcomes.append(outcome)
    return outcomes


def _run_stage(stage: Stage, program: Program, given: bytes) -> tuple[Outcome, bytes]:
    """Run one command on text streams that have a `.buffer`, as real ones have; returns what goes down the pipe."""
    stdin = io.TextIOWrapper(io.BytesIO(given), encoding="utf-8")
    out_bytes, err_bytes = io.BytesIO(), io.BytesIO()
    stdout = io.TextIOWrapper(out_bytes, encoding="utf-8", newline="", write_through=True)
    stderr = stdout
    if stage.stderr != "&1":
        stderr = io.TextIOWrapper(err_bytes, encoding="utf-8", newline="", write_through=True)
    crashed = False
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        try:
            status = program(list(stage.command[1:]), stdin, stdout, stderr)
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else int(error.code is not None)
            if isinstance(error.code, str):
                stderr.write(error.code + "\n")
        except Exception:  # noqa: BLE001 -- what a tool lets through is a crash, which `not` doesn't excuse
            status, crashed = 1, True
            stderr.write(traceback.format_exc())
    stdout.flush()
    stderr.flush()
    out, err = out_bytes.getvalue(), err_bytes.getvalue()
    outcome = Outcome(stage, status, out.decode(errors="replace"), err.decode(errors="replace"), crashed)
    if stage.stderr and stage.stderr != "&1":
        Path(stage.stderr).write_bytes(err)
    if stage.stdout:
        Path(stage.stdout).write_bytes(out)
        return outcome, b""
    return outcome, out


_SHELL_PRELUDE = """\
set -o pipefail
not() { "$@"; local status=$?; [ "$status" -ne 0 ] && [ "$status" -lt 126 ]; }
"""


def _run_in_shell(text: str) -> Outcome:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    done = subprocess.run(
        ["bash", "-c", f"{_SHELL_PRELUDE}{{ {text}\n}}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        env={**os.environ, "PATH": path},
        timeout=_SHELL_SECONDS,
        check=False,
    )
    return Outcome(Stage(("bash",)), done.returncode, done.stdout, done.stderr)


def _report(path: Path, run: RunLine, outcomes: list[Outcome]) -> str:
    lines = [f"{path}:{run.line}: RUN: {run.text}"]
    for outcome in sorted(outcomes, key=lambda outcome: outcome.passed):
        if not outcome.passed:
            wanted = "failure" if outcome.stage.negated else "success"
            said = "crashed" if outcome.crashed else f"status {outcome.status}"
            lines.append(f"{outcome.name}: {said}, where {wanted} was expected")
        if outcome.stderr.strip():
            lines.append(f"--- standard error of {outcome.name}:\n{_cut(outcome.stderr)}")
    for outcome in outcomes:
        if outcome.stdout.strip():
            lines.append(f"--- output of {outcome.name}:\n{_cut(outcome.stdout)}")
    by_hand = _substitute(
        run.text, {"%s": os.path.relpath(path), "%S": os.path.relpath(path.parent), "%t": "/tmp/t", "%%": "%"}
    )
    lines.append(f"--- by hand:\n{by_hand}")
    return "\n".join(lines)


def _cut(text: str) -> str:
    lines = text.rstrip("\n").split("\n")
    if len(lines) <= _SHOWN_LINES:
        return "\n".join(lines)
    return "\n".join([*lines[:_SHOWN_LINES], f"... and {len(lines) - _SHOWN_LINES} lines more"])


# ---- CHECK lines from what a command prints


def check_lines(output: str, prefix: str = "CHECK") -> list[str]:
    """CHECK lines that hold for an output: one a line, in order; names of values are captured, as by LLVM's own
    update scripts, so that renumbering breaks nothing."""
    lines: list[str] = []
    known: set[str] = set()
    follows = False
    for line in output.splitlines():
        text = line.strip()
        if not text or text in ("builtin.module {", "module {"):
            follows = False
            continue
        if text == "}" and not follows:
            continue
        if text.startswith("func.func"):
            known.clear()
        mark = "LABEL" if text.startswith("func.func") else "NEXT" if follows else ""
        shown = text if mark == "LABEL" else _captured(text, known)
        lines.append(f"// {prefix}{'-' + mark if mark else ''}: {shown}")
        follows = True
    while lines and lines[-1].endswith(": }"):
        lines.pop()
    return lines


def _captured(text: str, known: set[str]) -> str:
    """Numbered values as variables: defined where they first stand, used afterwards."""

    def variable(found: re.Match[str]) -> str:
        name = f"V{found[1]}"
        if name in known:
            return f"%[[{name}]]"
        known.add(name)
        return f"%[[{name}:[0-9]+]]"

    return re.sub(r"%(\d+)\b", variable, text.replace("[[", "{{\\[\\[}}"))


def update(path: Path, programs: Mapping[str, Program] | None = None) -> bool:
    """Write a lit file's CHECK lines anew from what its first RUN line prints; returns whether the file changed.

    The lines stand in front of the first line that is no comment. Lines of other prefixes stay.

    Raises:
        LitFailure: The first RUN line is no `sardonyx-opt ... | filecheck %s`, or the command fails.
    """
    programs = PROGRAMS if programs is None else programs
    run = read_run_lines(path)[0]
    stages = parse_pipeline(run.text)
    if stages is None or len(stages) != 2 or stages[1].command[0] != "filecheck" or stages[0].negated:
        raise LitFailure(f"{path}:{run.line}: only 'sardonyx-opt %s ... | filecheck %s' can be regenerated")
    words = stages[1].command
    prefix = words[words.index("--check-prefix") + 1] if "--check-prefix" in words else "CHECK"
    names = {"%s": str(path), "%S": str(path.parent), "%t": os.devnull, "%%": "%"}
    outcome, printed = _run_stage(_substituted(stages[0], names), programs[stages[0].command[0]], b"")
    if not outcome.passed:
        raise LitFailure(_report(path, run, [outcome]))
    before = path.read_text(encoding="utf-8").splitlines()
    kept = [line for line in before if not re.match(rf"\s*//\s*{re.escape(prefix)}(-\w+)?:", line)]
    at = next((i for i, line in enumerate(kept) if line.strip() and not line.startswith("//")), len(kept))
    while at and not kept[at - 1].strip():
        del kept[at - 1]
        at -= 1
    after = [*kept[:at], "", *check_lines(printed.decode(), prefix), *kept[at:]]
    path.write_text("\n".join(after) + "\n", encoding="utf-8")
    return before != after


def main(args: Sequence[str] | None = None) -> int:
    """`python -m sardonyx.testing.lit FILE...`: writes CHECK lines anew."""
    for name in sys.argv[1:] if args is None else args:
        print(f"{name}: {'updated' if update(Path(name)) else 'unchanged'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
