"""Ahead of time: libraries and object files in C programs and from Python, for several CPUs, with weights beside."""

from __future__ import annotations

import ctypes
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import sardonyx as sx
from sardonyx.backends.llvm.aot import library as aot
from sardonyx.backends.llvm.aot.cpu import FEATURE_BITS, wanted_features
from sardonyx.backends.llvm.aot.runtime import c_format
from sardonyx.backends.llvm.codegen.pool import emit_pool
from sardonyx.backends.llvm.codegen.targets import resolve_target
from sardonyx.backends.llvm.interface import Failure
from sardonyx.backends.llvm.runtime import jit
from sardonyx.tools.cli import run as command

needs_cc = pytest.mark.skipif(shutil.which("cc") is None, reason="there is no cc to link with")
needs_x86 = pytest.mark.skipif(not jit.native_target().triple.startswith("x86_64"), reason="another architecture")

W = np.random.default_rng(0).normal(size=(8, 300)).astype(np.float32)
X = np.random.default_rng(1).normal(size=(5, 8)).astype(np.float32)
AT = np.array([0, 299, -1])


@pytest.fixture(scope="module")
def graph() -> sx.ModelGraph:
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"], name="product"),
        helper.make_node("Gather", ["a", "i"], ["b"], axis=1, name="take"),
        helper.make_node("NonZero", ["b"], ["z"], name="where"),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info("x", 1, ["n", 8]), helper.make_tensor_value_info("i", 7, ["k"])]
    outputs = [helper.make_tensor_value_info("y", 1, ["n", "k"]), helper.make_tensor_value_info("z", 7, [2, None])]
    made = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(W, "w")])
    proto = helper.make_model(made, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    onnx.checker.check_model(proto)
    return sx.OnnxModel.from_proto(proto).compile()


def holds(model: sx.CompiledModel) -> None:
    y, z = (np.asarray(v) for v in model.run([X, AT]))
    np.testing.assert_allclose(y, np.maximum((X @ W)[:, AT], 0), rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(z, np.nonzero((X @ W)[:, AT]))


def program(folder: Path, source: str, *arguments: str) -> str:
    """Build a C program beside a library or object file, and run it."""
    (folder / "main.c").write_text(source)
    build = ["cc", "-Wall", "-Wextra", "-Werror", "-std=c11", "main.c", "-o", "main", *arguments]
    subprocess.run(build, cwd=folder, check=True, capture_output=True)
    found = subprocess.run(["./main", "2", "3"], cwd=folder, check=False, capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stderr
    return found.stdout


USE = """
#include <stdio.h>
#include <string.h>
#include "model.h"
int main(void) {
    const char *error = 0;
    model_context *c = model_create(&error);
    if (!c) { puts(error); return 2; }
    float x[10] = {1, 1, 1, 1, 1, 1, 1, 1, 0, 0};
    int64_t i[2] = {4, -2}, xd[2] = {1, 8}, id[1] = {2}, yd[2], zd[2];
    float y[2];
    model_tensor in[2] = {{x, xd}, {i, id}}, out[2] = {{y, yd}, {NULL, zd}};
    model_set_threads(c, 3);
    for (int turn = 0; turn < 3; turn++) {
        if (model_run(c, in, out)) { puts(model_error(c)); return 3; }
        if (yd[0] != 1 || yd[1] != 2 || zd[0] != 2) return 4;
        model_free(out[1].data);
        out[1].data = NULL;
    }
    printf("%.4f %.4f\\n", y[0], y[1]);
    i[1] = 300;
    if (!model_run(c, in, out) || out[1].data || out[0].data != y) return 5;
    puts(model_error(c));
    xd[1] = 9;
    if (!model_run(c, in, out)) return 6;
    puts(model_error(c));
    model_destroy(c);
    model_destroy(NULL);
    return 0;
}
"""


def said(out: str) -> None:
    numbers, index, extent = out.splitlines()
    wanted = np.maximum((np.ones((1, 8), np.float32) @ W)[0, [4, -2]], 0)
    np.testing.assert_allclose([float(v) for v in numbers.split()], wanted, atol=1e-3)
    assert index == "node 'take': index 300 is out of range for axis 1 with 300 elements"
    assert extent == "input 'x' has 9 elements along axis 1, expected 8"


@needs_cc
@needs_x86
def test_a_library_in_c_and_from_python(graph: sx.ModelGraph, tmp_path: Path) -> None:
    files = sx.compile_to(graph, tmp_path / "model.so", ["x86-64-v2", "x86-64-v3"])
    assert [f.name for f in files] == ["model.so", "model.h"]
    said(program(tmp_path, USE, "./model.so", "-Wl,-rpath,$ORIGIN"))
    model = sx.load_compiled(tmp_path / "model.so")
    assert model.target in ("x86-64-v3", "x86-64-v2")
    holds(model)
    with pytest.raises(sx.ExecutionError, match="node 'take': index 300"):
        model.run([X, AT + 1])
    with pytest.raises(sx.InvalidArgumentError, match="the input 'x'"):
        model.run([X[:, :3], AT])
    threads = [threading.Thread(target=lambda: [holds(model) for _ in range(50)]) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    exported = subprocess.run(
        ["nm", "-D", "--defined-only", str(tmp_path / "model.so")], capture_output=True, text=True
    )
    if exported.returncode == 0:  # nothing but the interface is seen from outside
        names = {line.split()[-1] for line in exported.stdout.splitlines()}
        assert names == {f"model_{f}" for f in aot.API} | {"sardonyx_model"}


@needs_cc
def test_an_object_file_with_its_example(graph: sx.ModelGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")  # an object file needs no compiler
    sx.compile_to(graph, tmp_path / "model.o")
    monkeypatch.undo()
    said(program(tmp_path, USE, "model.o", "-lpthread"))


@needs_cc
def test_weights_beside(graph: sx.ModelGraph, tmp_path: Path) -> None:
    files = sx.compile_to(graph, tmp_path / "model.so", weights="beside")
    assert [f.name for f in files] == ["model.so", "model.weights", "model.h"]
    assert files[0].stat().st_size + files[1].stat().st_size > W.nbytes
    said(program(tmp_path, USE, "./model.so", "-Wl,-rpath,$ORIGIN"))
    holds(sx.load_compiled(files[0]))
    moved = tmp_path / "alone.so"
    shutil.copy(files[0], moved)
    files[1].rename(tmp_path / "elsewhere")
    with pytest.raises(sx.InvalidArgumentError, match="'model.weights' is not beside"):
        sx.load_compiled(moved)


@needs_cc
def test_the_command_line(graph: sx.ModelGraph, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "net.py"
    source.write_text(
        "import sardonyx as sx\n@sx.signature('x: f32[batch,3]')\ndef forward(x):\n    return sx.exp(x) * 2.0\n"
    )
    out, example = tmp_path / "net.so", tmp_path / "main.c"
    arguments = ["compile", f"{source}:forward", "-o", str(out), "--example", str(example), "--json"]
    assert command(arguments, sys.stdout, sys.stderr) == 0, capsys.readouterr()
    assert '"name": "net"' in capsys.readouterr().out
    shown = program(tmp_path, example.read_text(), "./net.so", "-Wl,-rpath,$ORIGIN")
    assert shown == "output 0, 6 elements: 5.43656 5.43656 5.43656 5.43656 5.43656 5.43656\n"


@needs_cc
@needs_x86
def test_a_cpu_that_lacks_features_is_refused(graph: sx.ModelGraph, tmp_path: Path) -> None:
    missing = [f for f in ("avx512vbmi", "avx512f", "avx512vnni") if f"+{f}" not in jit.native_target().features]
    if not missing:
        pytest.skip("this CPU has all that could be asked for")
    sx.compile_to(graph, tmp_path / "model.so", ["x86-64-v4"])
    with pytest.raises(sx.UnsupportedError, match=r"compiled for x86-64-v4: this CPU lacks .*avx512f"):
        sx.load_compiled(tmp_path / "model.so")
    handle = ctypes.CDLL(str(tmp_path / "model.so"))
    create = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.POINTER(ctypes.c_char_p))(("model_create", handle))
    error = ctypes.c_char_p()
    assert create(ctypes.byref(error)) is None and b"avx512f" in (error.value or b"")


@needs_cc
@needs_x86
def test_what_the_documents_show(
    graph: sx.ModelGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "aot.md").read_text("utf-8")
    blocks = {kind: re.findall(rf"^```{kind}\n(.*?)^```", page, re.MULTILINE | re.DOTALL) for kind in ("sh", "py", "c")}
    monkeypatch.chdir(tmp_path)
    sx.OnnxModel.from_graph(graph).save("model.onnx")
    for line in "".join(blocks["sh"]).splitlines():
        if line.startswith("sardonyx "):
            assert command(shlex.split(line)[1:], sys.stdout, sys.stderr) == 0, capsys.readouterr()
        else:
            found = subprocess.run(line, shell=True, capture_output=True, text=True, check=False)
            assert found.returncode == 0, (line, found.stderr)
    unit = f'#include <stdio.h>\n#include "model.h"\nint main(void) {{\nfloat x[148];\n{blocks["c"][0]}return 0;\n}}\n'
    Path("unit.c").write_text(unit)
    subprocess.run(["cc", "-Wall", "-Werror", "-fsyntax-only", "unit.c"], check=True)
    Path("shown.py").write_text(blocks["py"][0])
    capsys.readouterr()
    runpy.run_path("shown.py")
    assert capsys.readouterr().out.endswith("(2, 4)\n")


def test_other_forms(graph: sx.ModelGraph, tmp_path: Path) -> None:
    for name, cpu, part in (("a.ll", "x86-64-v3", "define"), ("b.s", "aarch64", "fmla"), ("c.s", "host", ".globl")):
        if cpu.startswith("x86") and not jit.native_target().triple.startswith("x86_64"):
            continue
        files = sx.compile_to(graph, tmp_path / name, cpu)
        assert part in files[0].read_text() and files[1].suffix == ".weights"


def test_refusals(graph: sx.ModelGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(sx.InvalidArgumentError, match="ends in none of"):
        sx.compile_to(graph, tmp_path / "model.dll")
    with pytest.raises(sx.InvalidArgumentError, match="several architectures"):
        sx.compile_to(graph, tmp_path / "model.so", ["x86-64-v3", "aarch64"])
    with pytest.raises(sx.InvalidArgumentError, match="no identifier"):
        sx.compile_to(graph, tmp_path / "model.o", name="a b")
    with pytest.raises(sx.InvalidArgumentError, match="of several CPUs is a library"):
        sx.compile_to(graph, tmp_path / "model.o", ["x86-64-v2", "host"])
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(sx.UnsupportedError, match="no C compiler"):
        sx.compile_to(graph, tmp_path / "model.so")
    assert not list(tmp_path.iterdir())
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(sx.InvalidArgumentError, match="cannot be loaded"):
        sx.load_compiled(tmp_path / "text.so")
    with pytest.raises(sx.InvalidArgumentError, match="there is no file"):
        sx.load_compiled(tmp_path / "nothing.so")


def test_the_pool_needs_no_assembler_elsewhere() -> None:
    """LLVM ends the process where it has inline assembly of a machine that it has no assembler for."""
    assert " asm " not in str(emit_pool(resolve_target("aarch64")))


def test_texts_and_features() -> None:
    text, order = c_format(Failure("{1} of {0} is 100% wrong", "node 'a'", "sx.add"))
    assert text == b"node 'a': %lld of %lld is 100%% wrong\0" and order == [1, 0]
    assert {"avx2", "fma", "bmi2"} <= set(wanted_features(resolve_target("x86-64-v3")))
    for name in ("x86-64-v2", "x86-64-v3", "x86-64-v4"):
        listed = {f[1:] for f in resolve_target(name).features.split(",")}
        assert listed <= set(FEATURE_BITS), listed - set(FEATURE_BITS)
    assert aot.library_name(Path("lib3-d.v2.so")) == "m3_d"
