"""The tutorial's commands print what stands below them, and the table of the driver shows what it says."""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path

import pytest
from doc_commands import BLOCK, commands_of, matches, run_command, run_document

DOCS = Path(__file__).parents[2] / "docs"
DRIVER = (DOCS / "driver.md").read_text("utf-8")


@pytest.mark.slow
def test_the_tutorial():
    problems = [f"$ {command}\n{printed}" for command, printed in run_document(DOCS / "tutorial-passes.md")]
    assert not problems, "\n\n".join(problems)


def test_outputs_are_compared():
    (one, two) = commands_of("$ a \\\n  b # status 3\nx\n...\ny\n$ c\n")
    assert (one.text, one.status, one.output, two.output) == ("a b", 3, ["x", "...", "y"], [])
    assert matches(["x", "...", "y"], ["x", "y"]) and matches(["x", "...", "y"], ["x", "1", "2", "y"])
    assert matches(["7 passed in ..."], ["7 passed in 2.3s"]) and not matches(["a"], ["a", "b"])
    assert not matches(["x", "...", "y"], ["x", "1"]) and matches([], [])


def rows() -> list[tuple[str, str, str]]:
    """Feature, command and what it shows, of each row of the table."""
    found: list[tuple[str, str, str]] = []
    section = DRIVER.split("\n## Beside ")[1].partition("\n## ")[0]
    for line in re.findall(r"^\| (?!feature|---)(.*) \|$", section, re.MULTILINE):
        cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)]
        found.append((cells[0], cells[1].strip("`"), cells[2].strip("`")))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("driver")
    for _, name, content in BLOCK.findall(DRIVER):
        if name:
            (path / name).write_text(content, "utf-8")
    with contextlib.chdir(path):
        status, said = run_command("sardonyx-opt crash.mlir --load plugin.py -p cse,fail --crash-reproducer r.mlir")
        assert status == 3, said
    return path


@pytest.mark.parametrize(("feature", "command", "shows"), rows(), ids=lambda value: None)
def test_a_row_of_the_drivers_table(folder: Path, feature: str, command: str, shows: str):
    if command.startswith("lit ") and shutil.which("lit") is None:
        pytest.skip("lit is not on the path")
    with contextlib.chdir(folder):
        _, said = run_command(command)
    assert re.search(re.escape(shows).replace(r"\.\.\.", ".*"), said), f"{feature}: {command}\n{said[-3000:]}"


def test_the_drivers_document():
    assert len(rows()) >= 30
    for _, name, content in BLOCK.findall(DRIVER):
        assert name or content
