"""The lit files also pass under lit itself, the tool of LLVM's."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

LIT = Path(__file__).parent / "lit"
FILES = ("tools/diagnostics.mlir", "passes/remove-dead-nodes.mlir")


@pytest.mark.slow
def test_files_pass_under_lit(tmp_path: Path):
    """A few of them: all take `lit tests/lit` a minute, one process a command."""
    if importlib.util.find_spec("lit") is None:
        pytest.skip("lit is not installed")
    failing = tmp_path / "failing.mlir"
    failing.write_text("// RUN: not sardonyx-opt %s\nfunc.func @main() {\n  func.return\n}\n", "utf-8")
    (tmp_path / "lit.cfg.py").write_bytes((LIT / "lit.cfg.py").read_bytes())
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = [sys.executable, "-c", "import lit.main; lit.main.main()", "-j1", "-v"]
    environment = {**os.environ, "PATH": path}
    files = [str(LIT / name) for name in FILES]
    ran = subprocess.run([*command, *files], capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for name in FILES:
        assert f"PASS: sardonyx :: {name}" in ran.stdout
    ran = subprocess.run([*command, str(failing)], capture_output=True, text=True, env=environment, check=False)
    assert ran.returncode != 0 and "FAIL: sardonyx :: failing.mlir" in ran.stdout
