"""What MLIR's own tools make of our text; skipped where no mlir-opt is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from run_opt import run_opt

LIT = Path(__file__).parents[1] / "lit"
NAMES = ("mlir-opt", *(f"mlir-opt-{version}" for version in range(25, 15, -1)))
# A string between the elements of an encoding, and locations, are tested with the rest.
FILES = sorted(p for folder in ("passes", "dialects", "state") for p in (LIT / folder).glob("*.mlir"))


def mlir_opt(text: str, *args: str) -> str:
    """What mlir-opt makes of a text."""
    program = next((path for path in map(shutil.which, NAMES) if path), None)
    if program is None:
        pytest.skip("no mlir-opt here")
    ran = subprocess.run([program, *args], input=text, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr[:3000]
    return ran.stdout


def test_sx_text_is_read_by_mlir_opt_and_comes_back():
    """All that the lit files have, in one run of mlir-opt; its text is read here again, and is the same graph."""
    parts: list[str] = []
    for path in FILES:
        ran = run_opt(path, "--split-input-file", "--allow-unregistered-dialect", "--generic")
        parts += [part for part in ran.out.split("// -----\n") if part.strip()]
    assert len(parts) > 20
    parts = [re.sub(r"(?m)^// .*\n", "", part) for part in parts]
    there = mlir_opt("// -----\n".join(parts), "--allow-unregistered-dialect", "--split-input-file")
    back = run_opt("--split-input-file", "--allow-unregistered-dialect", stdin=there)
    assert back.status == 0, back.err[:2000]
    first = run_opt("--split-input-file", "--allow-unregistered-dialect", stdin="// -----\n".join(parts))
    assert count(back.out) == count(first.out)


def count(text: str) -> dict[str, int]:
    """How often each op stands in a text."""
    names = re.findall(r"\b(?:sx|func|kernel|own|test)\.[a-z_]+", text)
    return {name: names.count(name) for name in set(names)}
