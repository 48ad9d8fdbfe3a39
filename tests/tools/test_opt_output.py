"""`sardonyx-opt`: its targets, the files that it writes, and how it behaves as a process."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from run_opt import GRAPH, T, run_opt

from sardonyx.tools import opt_driver

# --- output


def test_the_weights_go_beside_the_text(tmp_path: Path, model: Path):
    out = tmp_path / "x.mlir"
    assert run_opt(f"{model}:forward", "-o", out).status == 0
    assert sorted(p.name for p in tmp_path.glob("x.*")) == ["x.mlir", "x.weights.safetensors"]
    assert "//" not in out.read_text("utf-8")
    # They are found again, and the native code gets them.
    again = run_opt(out, "-t", "onnx", "-o", tmp_path / "y.onnx")
    assert again.status == 0, again.err
    import onnx

    (weight,) = (i for i in onnx.load(str(tmp_path / "y.onnx")).graph.initializer if len(i.dims) == 2)
    assert np.array_equal(onnx.numpy_helper.to_array(weight).reshape(-1), np.arange(600, dtype=np.float32))
    # On standard output, each names the file.
    assert re.search(rf'"w": float32\[20, 30\], 2400 bytes at \d+ of {tmp_path}/x.weights', run_opt(out).out)
    # In place, too: the file is mapped while it is written anew.
    before = (tmp_path / "x.weights.safetensors").read_bytes()
    assert run_opt(out, "-p", "cse", "-o", out).status == 0
    assert (tmp_path / "x.weights.safetensors").read_bytes() == before


def test_text_without_its_weights(tmp_path: Path, model: Path):
    out = tmp_path / "x.mlir"
    assert run_opt(f"{model}:forward", "-o", out).status == 0
    text = out.read_text("utf-8")
    passes = run_opt("-p", "cse", stdin=text)
    assert passes.status == 0
    assert '"w": not here; --weights FILE gives them' in passes.out
    moved = run_opt("-o", tmp_path / "z.mlir", stdin=text)
    assert moved.status == 0
    assert "1 weights are without their bytes ('w')" in moved.err
    assert not (tmp_path / "z.weights.safetensors").exists()
    needed = run_opt("-t", "onnx", "-o", tmp_path / "z.onnx", stdin=text)
    assert needed.status == 4
    assert "'w'" in needed.err
    assert "--weights" in needed.err
    assert not (tmp_path / "z.onnx").exists()
    given = run_opt("--weights", tmp_path / "x.weights.safetensors", "-o", tmp_path / "z.mlir", stdin=text)
    assert given.status == 0, given.err
    assert (tmp_path / "z.weights.safetensors").read_bytes() == (tmp_path / "x.weights.safetensors").read_bytes()


@pytest.mark.parametrize("target", ["llvm-ir", "asm", "kernel"])
def test_text_targets(graph: Path, target: str):
    ran = run_opt(graph, "-t", target)
    assert ran.status == 0, ran.err
    wanted = {"llvm-ir": "define ", "asm": "entry:", "kernel": "kernel.plan @"}
    assert wanted[target] in ran.out
    if target == "kernel":
        assert run_opt(stdin=ran.out).out == ran.out


def test_object_code(graph: Path, tmp_path: Path):
    path = tmp_path / "x.o"
    assert run_opt(graph, "-t", "obj", "-o", path).status == 0
    assert path.read_bytes()[:4] in (b"\x7fELF", b"\xcf\xfa\xed\xfe")
    assert run_opt(graph, "-t", "obj").raw == path.read_bytes()


def test_one_binary_takes_one_module(tmp_path: Path):
    ran = run_opt("-t", "obj", "-o", tmp_path / "x.o", "--split-input-file", stdin=f"{GRAPH}// -----\n{GRAPH}")
    assert ran.status == 4
    assert "writes one module" in ran.err
    assert not (tmp_path / "x.o").exists()


@pytest.mark.parametrize("target", ["mlir", "llvm-ir", "obj", "onnx"])
def test_an_output_that_cannot_be_written_leaves_nothing(tmp_path: Path, model: Path, target: str):
    taken = tmp_path / "taken"
    (taken / "inside").mkdir(parents=True)
    for path in (tmp_path / "no" / "such" / "x.mlir", taken):
        before = sorted(tmp_path.rglob("*"))
        ran = run_opt(f"{model}:forward", "-t", target, "-o", path)
        assert ran.status == 4, path
        assert "cannot write" in ran.err
        assert sorted(p for p in tmp_path.rglob("*") if "__pycache__" not in p.parts) == [
            p for p in before if "__pycache__" not in p.parts
        ]


def test_a_failure_keeps_the_old_output(graph: Path, tmp_path: Path, plugin: Path):
    out = tmp_path / "out.mlir"
    out.write_text("precious", "utf-8")
    assert run_opt(graph, "--load", plugin, "-p", "test-crash", "-o", out).status == 70
    assert out.read_text("utf-8") == "precious"


def test_links_and_modes_and_devices_are_kept(graph: Path, tmp_path: Path):
    real = tmp_path / "real.mlir"
    real.write_text("old", "utf-8")
    real.chmod(0o640)
    link = tmp_path / "link.mlir"
    link.symlink_to(real)
    assert run_opt(graph, "-o", link).status == 0
    assert link.is_symlink()
    assert "sx.exp" in real.read_text("utf-8")
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert run_opt(graph, "-o", os.devnull).status == 0
    assert not Path(os.devnull).is_file()


# --- as a process


def start(*args: object, **options: Any) -> subprocess.Popen[Any]:
    command = [sys.executable, "-P", "-m", "sardonyx.tools.opt", *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@pytest.mark.skipif(os.name != "posix", reason="pipes")
def test_a_reader_that_leaves_early(tmp_path: Path):
    body = "\n".join(f"  %v{i} = sx.exp %x : ({T}) -> {T}" for i in range(3000))
    (tmp_path / "long.mlir").write_text(f"func.func @main(%x: {T}) {{\n{body}\n  func.return\n}}\n", "utf-8")
    process = start(tmp_path / "long.mlir")
    assert process.stdout and process.stderr
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0
    assert errors == b""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_an_error(graph: Path):
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-P", "-m", "sardonyx.tools.opt", str(graph)]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 4
    assert b"cannot write to standard output: No space left on device" in done.stderr


def test_help_loads_nothing():
    code = """
import sys
from sardonyx.tools.opt import main
sys.argv = ["sardonyx-opt", "--help"]
try:
    main()
finally:
    from sardonyx.tools.deferred import is_loaded
    print("\\n".join(filter(is_loaded, list(sys.modules))), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.split())
    assert not {"numpy", "xdsl", "onnx", "llvmlite", "ml_dtypes", "importlib.metadata"} & loaded
    assert {m for m in loaded if m.startswith("sardonyx")} == {
        "sardonyx", "sardonyx.errors", "sardonyx.tools", "sardonyx.tools.deferred", "sardonyx.tools.diagnostics",
        "sardonyx.tools.opt", "sardonyx.tools.opt_check", "sardonyx.tools.opt_options",
    }  # fmt: skip


def test_interruption_is_no_traceback(graph: Path, monkeypatch: pytest.MonkeyPatch):
    def interrupted(self: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(opt_driver.Driver, "run", interrupted)
    ran = run_opt(graph)
    assert ran.status == 130
    assert ran.err == ""


def test_types_are_printed_as_xdsl_prints_them():
    """The printer prints a type once and says it again; the text is that of xDSL's own printer in every form."""
    import io

    from xdsl.printer import Printer

    from sardonyx.passes.context import make_context
    from sardonyx.passes.text import Text, parse_text
    from sardonyx.tools.opt_print import PrintOptions, print_module

    text = """
func.func @main(%x: tensor<?x2xf32, #sx.dims<n, _>>, %i: tensor<i1>, %u: tensor<*xf16>) -> tensor<?x2xf32, #sx.dims<n, _>> {
  %0 = sx.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %1 = sx.add %x, %0 : (tensor<?x2xf32, #sx.dims<n, _>>, tensor<2xf32>) -> tensor<?x2xf32, #sx.dims<n, _>>
  %2 = sx.add %1, %0 : (tensor<?x2xf32, #sx.dims<n, _>>, tensor<2xf32>) -> tensor<?x2xf32, #sx.dims<n, _>>
  func.return %2 : tensor<?x2xf32, #sx.dims<n, _>>
}"""  # noqa: E501
    module = parse_text(make_context(), Text(text, "t.mlir"))
    for generic in (False, True):
        for located in (False, True):
            theirs = io.StringIO()
            Printer(theirs, print_generic_format=generic, print_debuginfo=located).print_op(module)
            assert print_module(module, PrintOptions(generic, located)) == theirs.getvalue() + "\n"
