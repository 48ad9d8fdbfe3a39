"""The benchmarks' runner works, and its document is made by it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_runner_measures_a_small_workload(tmp_path: Path) -> None:
    command = [sys.executable, str(ROOT / "benchmarks" / "run.py"), "--workloads", "elementwise_small,matmul_7x"]
    command += ["--threads", "1", "--rounds", "1", "--seconds", "0.001", "--json", str(tmp_path / "figures.json")]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert "| workload | sardonyx, ms | onnxruntime, ms |" in found.stdout
    assert sum(line.startswith(("| elementwise_small |", "| matmul_7x100x10 |")) for line in lines) == 2


def test_the_document_has_the_runners_marks_and_tables() -> None:
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    assert text.count("<!-- begin tables -->") == text.count("<!-- end tables -->") == 1
    assert "### One thread" in text and "- versions: sardonyx" in text
