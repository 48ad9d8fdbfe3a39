"""What the documents say is so: generated parts are current, examples run and print what stands below them."""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import shlex
from pathlib import Path

import pytest
from run_opt import run_opt

from sardonyx.dialects.sx import OPS
from sardonyx.passes import registry
from sardonyx.tools import tables
from sardonyx.tools.cli import COMMANDS
from sardonyx.tools.opt_targets import TARGETS

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")


def block(text: str, mark: str) -> str:
    """The fenced block after `<!-- mark -->`."""
    found = re.search(rf"<!-- {re.escape(mark)} -->\n```\w+\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert found, mark
    return found[1]


@pytest.mark.parametrize("path", sorted(tables.documents()), ids=lambda path: path.name)
def test_generated_documents_are_current(path: Path):
    assert path.read_text("utf-8") == tables.documents()[path], "run `python3 tools/dev.py docs`"


def test_the_check_fails_where_a_document_is_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(tables, "ROOT", tmp_path)
    monkeypatch.setattr(tables, "PARTS", {})
    (tmp_path / "docs").mkdir()
    with contextlib.redirect_stdout(io.StringIO()) as out:
        assert tables.main(["--check"]) == 1
        assert not list((tmp_path / "docs").iterdir())
        assert tables.main([]) == 0
        assert tables.main(["--check"]) == 0
    assert "docs/operators.md is not current" in out.getvalue()
    (tmp_path / "docs" / "passes.md").write_text("typed by hand", "utf-8")
    with contextlib.redirect_stdout(out):
        assert tables.main(["--check"]) == 1


def test_the_operators_table_has_every_op():
    text = (ROOT / "docs" / "operators.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(sx\.\w+)` \|", text, re.MULTILINE)) == {cls.name for cls in OPS}


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(block(README, "file net.py"), "utf-8")
    return tmp_path


def test_the_readmes_python_example(net: Path):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        runpy.run_path("net.py", run_name="__main__")
    assert out.getvalue() == block(README, "output of net.py")
    assert (net / "net.onnx").exists()


def test_the_readmes_commands(net: Path):
    examples = re.findall(r"^```console\n\$ sardonyx-opt (.*?)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    assert examples
    for command, expected in examples:
        ran = run_opt(*shlex.split(command))
        assert (ran.status, ran.out) == (0, expected), ran.err


def test_the_text_formats_examples_are_read():
    text = (ROOT / "docs" / "text-format.md").read_text("utf-8")
    examples = re.findall(r"^```mlir\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert examples
    for example in examples:
        ran = run_opt("--locations", stdin=example)
        assert ran.status == 0, ran.err
        for location in re.findall(r'loc\("[^)]*\)', example):
            assert location in ran.out
    assert 'loc("net.py":12:9)' in examples[0]


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/architecture.md",
                                  "docs/native.md", "docs/text-format.md"])  # fmt: skip
def test_files_and_passes_that_documents_name_are_there(name: str):
    text = (ROOT / name).read_text("utf-8")
    bases = (ROOT, ROOT / "backends" / "llvm")
    for path in re.findall(r"`((?:\w+/)+\w+\.\w+)`", text):
        assert any((base / path).exists() for base in bases), path
    for pipeline in re.findall(r"sardonyx-opt [^`\n]*?-p (\S+)", text):
        for entry in pipeline.strip("`").split(","):
            assert entry == "my-pass" or entry.partition("{")[0] in registry.own_entries(), entry
    for target in re.findall(r"-t ([\w-]+)", text):
        assert target in TARGETS


def test_the_changelogs_counts_and_lists():
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    assert f"{len(OPS)} ops" in text
    named = re.search(r"^- Passes (.*?) \(", text, re.MULTILINE | re.DOTALL)
    assert named
    assert re.findall(r"`([\w-]+)`", named[1]) == [
        n for n, e in sorted(registry.own_entries().items()) if e.origin == "sardonyx"
    ]
    for command in COMMANDS:
        assert f"`sardonyx {command}`" in text
