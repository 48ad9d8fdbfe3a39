"""Runs the commands of a document in the order in which they stand, and compares what they print.

A block that begins with ```python file=net.py (or mlir, text) is a file; one of ```console has commands after `$ `,
each with its output below it. A line of `...` stands for any lines, `...` inside a line for anything there. A comment
`# status 3` after a command says with which status it ends. `python tests/support/doc_commands.py FILE.md` writes the
outputs anew.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from run_opt import Stream

BLOCK = re.compile(r"^```(\w+)(?: file=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STATUS = re.compile(r"\s+# status (\d+)$")


@dataclass
class Command:
    """A command and the output that the document shows."""

    text: str
    status: int = 0
    output: list[str] = field(default_factory=list[str])

    def __str__(self) -> str:
        return self.text


def commands_of(block: str) -> list[Command]:
    """The commands of a console block; a backslash at the end of a line continues it."""
    found: list[Command] = []
    lines = iter(block.splitlines())
    for line in lines:
        if line.startswith("$ "):
            text = line[2:]
            while text.endswith("\\"):
                text = text[:-1].rstrip() + " " + next(lines).strip()
            status = STATUS.search(text)
            found.append(Command(STATUS.sub("", text), int(status[1]) if status else 0))
        elif found:
            found[-1].output.append(line)
    return found


def run_command(text: str) -> tuple[int, str]:
    """Run a command: `sardonyx-opt` and `sardonyx` in this process, all else in bash. Both streams come as one."""
    words = shlex.split(text)
    plain = not re.search(r"[|<>;&$*`]", re.sub(r"'[^']*'|\"[^\"]*\"", "", text))
    if plain and words[0] in ("sardonyx-opt", "sardonyx") and "--watch" not in words:
        from sardonyx.passes import registry
        from sardonyx.tools import cli, opt

        out = Stream()
        kept = dict(registry._registered), dict(registry._loaded_files)
        try:
            if words[0] == "sardonyx":
                status = cli.run(words[1:], out, out)
            else:
                status = opt.run(words[1:], Stream(), out, out)
        finally:  # a new process would know nothing of what this one loaded
            for now, before in zip((registry._registered, registry._loaded_files), kept, strict=True):
                now.clear()
                now.update(before)  # pyright: ignore[reportArgumentType, reportCallIssue]
        return status, out.content.decode()
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    done = subprocess.run(["bash", "-c", text], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False,
                          env={**os.environ, "PATH": path})  # fmt: skip
    return done.returncode, done.stdout


def matches(shown: list[str], printed: list[str]) -> bool:
    """Whether an output is as it is shown."""
    pattern = "".join("(.*\n)*" if line == "..." else re.escape(line).replace(r"\.\.\.", ".*") + "\n" for line in shown)
    return re.fullmatch(pattern, "".join(line + "\n" for line in printed)) is not None


def run_document(path: Path) -> Iterator[tuple[Command, str]]:
    """Run a document's commands in a new folder; gives those that are not as shown, with what they printed."""
    text = path.read_text("utf-8")
    with tempfile.TemporaryDirectory(prefix="sardonyx-doc-") as folder, contextlib.chdir(folder):
        for language, name, content in BLOCK.findall(text):
            if name:
                Path(name).write_text(content, "utf-8")
            elif language == "console":
                for command in commands_of(content):
                    status, printed = run_command(command.text)
                    lines = [line.rstrip() for line in printed.replace(folder, "...").rstrip("\n").split("\n")]
                    lines = [] if lines == [""] else lines
                    shown = [line.rstrip() for line in command.output]
                    if status != command.status or not matches(shown, lines):
                        yield command, f"status {status}\n" + "\n".join(lines)


def main() -> None:
    """Write a document's outputs anew; outputs with `...` stay where they still match."""
    path = Path(sys.argv[1]).resolve()
    text = path.read_text("utf-8")
    for command, printed in run_document(path):
        status, _, output = printed.partition("\n")
        print(f"--- {command} ({status}, expected {command.status})")
        head = re.escape(command.text).replace(r"\ ", r"(?:\ \\\n\s*|\ )")
        shown = "".join(line + "\n" for line in command.output)
        found = re.search(rf"^\$ {head}(?:\s+# status \d+)?\n{re.escape(shown)}", text, re.MULTILINE)
        if found is None:
            print("    not found in the text")
            continue
        first = found[0][: len(found[0]) - len(shown)]
        text = text[: found.start()] + first + (output + "\n" if output else "") + text[found.end() :]
    path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
