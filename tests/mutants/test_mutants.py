"""A slice of the mutants in every run of the tests: mistakes in the passes' sources that the checker has to catch."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_the_checker_catches_mistakes_in_the_passes():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE.parent / "support")])}
    ran = subprocess.run(
        [sys.executable, str(HERE / "run.py"), "--only", str(HERE / "slice.txt"), "--jobs", "1"],
        capture_output=True, text=True, env=environment, timeout=600, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr[-4000:]
    count = len((HERE / "slice.txt").read_text("utf-8").splitlines())
    assert f"Of {count} mutants that change a value the checker catches {count} (100.0 %)" in ran.stdout


def test_mutants_are_single_changes_and_found_again(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))
    import single_changes

    path = HERE.parents[1] / "passes" / "permutations.py"
    mutants = single_changes.mutants_of(path, path.name)
    assert len(mutants) > 10 and len({m.number for m in mutants}) == len(mutants)
    source = ast.unparse(ast.parse(path.read_text("utf-8"))).splitlines()
    for mutant in mutants[::3]:
        text = ast.unparse(single_changes.mutated(path, path.name, mutant.number)).splitlines()
        assert sum(a != b for a, b in zip(source, text, strict=False)) <= 1 or abs(len(text) - len(source)) == 1
        assert text != source
