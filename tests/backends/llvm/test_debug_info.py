"""Line tables of generated code: the user's lines and the model's nodes, in LLVM IR and assembly."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from run_opt import run_opt

import sardonyx as sx

SOURCE = """
import sardonyx as sx

@sx.signature("x: f32[batch,300]")
def forward(x):
    a = sx.softmax(x)
    return sx.cumsum(a, axis=1)
"""


@pytest.fixture
def net(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(SOURCE.lstrip("\n"))
    return path


def test_kernels_and_launches_have_lines(net: Path) -> None:
    found = run_opt(f"{net}:forward", "-t", "llvm-ir", "--debug-info")
    assert found.status == 0, found.err
    text = found.out
    assert 'filename: "net.py"' in text and "emissionKind: LineTablesOnly" in text
    lines = {int(n) for n in re.findall(r"!DISubprogram\(name: \"\w+\", .*?line: (\d+)", text)}
    assert {5, 6} <= lines  # the softmax's kernel and the running sum's
    assert {int(n) for n in re.findall(r"!DILocation\(line: (\d+)", text)} >= {5, 6}
    assert "!dbg" not in run_opt(f"{net}:forward", "-t", "llvm-ir").out


def test_assembly_names_the_lines(net: Path) -> None:
    text = run_opt(f"{net}:forward", "-t", "asm", "--debug-info").out
    assert re.search(r"\.loc\s+\d+ 5 ", text) and re.search(r"\.loc\s+\d+ 6 ", text)


@pytest.mark.skipif(not all(map(shutil.which, ("cc", "readelf"))), reason="there is no cc or readelf")
def test_a_library_with_lines(net: Path) -> None:
    @sx.signature("x: f32[n]")
    def forward(x: sx.Tensor) -> sx.Tensor:
        return sx.exp(x)

    from sardonyx.backends.llvm.aot.library import compile_to

    graph = sx.trace(forward, sx.parse_signature("x: f32[n]")).graph
    built = compile_to(graph.module, net.with_suffix(".so"), debug_info=True)
    shown = subprocess.run(["readelf", "--debug-dump=line", str(built.files[0])], capture_output=True, text=True)
    assert Path(__file__).name in shown.stdout
