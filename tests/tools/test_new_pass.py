"""`sardonyx new-pass`: what it writes runs, is formatted, and passes its own tests."""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from run_opt import run_opt

from sardonyx.tools import cli


def command(*args: object) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    return cli.run(["new-pass", *map(str, args)], out, err), out.getvalue(), err.getvalue()


def test_a_new_pass_passes_its_tests(tmp_path: Path, plugin: Path):
    folder = tmp_path / "new"
    status, out, err = command("drop-pairs", "-o", folder)
    assert (status, err) == (0, "")
    assert f"pytest {folder}/test_drop_pairs.py" in out
    assert sorted(p.name for p in folder.iterdir()) == ["drop_pairs.mlir", "drop_pairs.py", "test_drop_pairs.py"]
    ruff = shutil.which("ruff") or str(Path(sys.executable).with_name("ruff"))
    if Path(ruff).exists():
        for what in (["format", "--check"], ["check"]):
            done = subprocess.run([ruff, *what, "--isolated", "--line-length=120", str(folder)], capture_output=True,
                                  text=True, check=False)  # fmt: skip
            assert done.returncode == 0, done.stdout
    ran = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error", str(folder)],
                         capture_output=True, text=True, check=False)  # fmt: skip
    assert ran.returncode == 0 and "7 passed" in ran.stdout, ran.stdout + ran.stderr
    helped = run_opt("--load", folder / "drop_pairs.py", "--help-pass", "drop-pairs")
    assert "aggressive: bool = false" in helped.out and "numeric promise: exact" in helped.out


def test_its_tests_can_fail(tmp_path: Path):
    """A wrong rewrite in it is caught by the tests that come with it."""
    assert command("wrong-pairs", "-o", tmp_path)[0] == 0
    path = tmp_path / "wrong_pairs.py"
    text = path.read_text("utf-8")
    assert "forward(op, inner.operands[0], rewriter)" in text
    path.write_text(text.replace("forward(op, inner.operands[0]", "forward(op, inner.results[0]"), "utf-8")
    ran = subprocess.run([sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", "pair_goes",
                          str(tmp_path)], capture_output=True, text=True, check=False)  # fmt: skip
    assert ran.returncode == 1 and "changes values" in ran.stdout, ran.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [("Drop", "is no name of a pass"), ("a_b", "is no name"), ("cse", "there is a pass 'cse'"),
     ("canonicalize", "there is a pass")],
)  # fmt: skip
def test_names_that_are_refused(tmp_path: Path, name: str, message: str):
    status, _, err = command(name, "-o", tmp_path)
    assert status == 1 and message in err
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path: Path):
    (tmp_path / "mine.mlir").write_text("precious", "utf-8")
    status, _, err = command("mine", "-o", tmp_path)
    assert status == 1 and "not overwritten" in err
    assert [p.name for p in tmp_path.iterdir()] == ["mine.mlir"]
