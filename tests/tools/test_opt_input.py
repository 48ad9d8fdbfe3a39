"""`sardonyx-opt`: what it reads, and how it refuses what it cannot."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from run_opt import GRAPH, T, run_opt

FUZZED = """\
func.func @main(%x: tensor<?x3xf32, #sx.dims<2*batch + 1, _>> {sx.name = "x"}) -> (tensor<?x3xi64> {sx.name = "y"}) {
  %c = sx.constant {value = dense<[0, -1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %w = sx.constant {value = #sx.weight<"w">} : () -> tensor<3x400xf32>
  %0 = sx.transpose %x {perm = array<i64: 1, 0>} : (tensor<?x3xf32, #sx.dims<2*batch + 1, _>>) -> tensor<3x?xf32>
  %1 = sx.reduce_sum %0, %c {keepdims = false} : (tensor<3x?xf32>, tensor<2xi64>) -> tensor<f32>
  %2 = sx.clip %x, _, %1 : (tensor<?x3xf32, #sx.dims<2*batch + 1, _>>, tensor<f32>) -> tensor<?x3xf32>
  %3 = sx.cast %2 {to = i64} : (tensor<?x3xf32>) -> tensor<?x3xi64>
  func.return %3 : tensor<?x3xi64>
}
"""

# --- input


def test_a_file_and_standard_input_give_the_same(graph: Path):
    from_file = run_opt(graph, "-p", "remove-dead-nodes")
    assert from_file.status == 0
    assert "sx.exp" in from_file.out
    assert "sx.tanh" not in from_file.out
    assert from_file.err == ""
    for args in (["-"], []):
        assert run_opt(*args, "-p", "remove-dead-nodes", stdin=GRAPH) == from_file


def test_the_output_is_read_back(graph: Path):
    first = run_opt(graph).out
    assert run_opt(stdin=first).out == first
    generic = run_opt(graph, "--generic").out
    assert '"sx.exp"' in generic
    assert run_opt(stdin=generic).out == first


def test_several_pipelines_are_chained(graph: Path):
    ran = run_opt(graph, "-p", "cse", "--passes", "builtin.module(remove-dead-nodes)", "--statistics")
    assert re.findall(r"^(cse|remove-dead-nodes)\b", ran.err, re.MULTILINE) == ["cse", "remove-dead-nodes"]


def test_a_python_function_by_its_own_signature(model: Path):
    ran = run_opt(f"{model}:forward")
    assert ran.status == 0, ran.err
    assert "tensor<?x20xf32, #sx.dims<batch, _>>" in ran.out
    assert ran.err == "hello from the file\nhello from the trace\n", "what the file prints is not part of the result"
    assert f'//   "w": float32[20, 30], captured by {model}:forward\n' in ran.out


def test_a_python_function_by_a_given_signature(model: Path):
    ran = run_opt(f"{model}:bare", "--signature", "z: f16[2*n, 5]")
    assert ran.status == 0, ran.err
    assert 'tensor<?x5xf16, #sx.dims<2*n, _>> {sx.name = "z"}' in ran.out
    again = run_opt(f"{model}:forward", "--signature", "x: f32[7,20]")
    assert "tensor<7x30xf32>" in again.out


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("bare", [], "the signature of 'bare' is not known"),
        ("bare", ["--signature", "x: f99[3]"], "f99"),
        ("bare", ["--signature", "x: f32[3"], "signature, column 9"),
        ("forwrd", [], "did you mean 'forward'?"),
        ("NUMBER", [], "is no function, but int"),
        ("fails", ["--signature", "x: f32[3]"], "model.py:21: error: tracing 'fails' failed: IndexError"),
        ("leaves", ["--signature", "x: f32[3]"], "model.py:25: error: tracing 'leaves' failed: SystemExit: enough"),
    ],
)
def test_what_can_be_wrong_with_a_function(model: Path, name: str, args: list[str], message: str):
    ran = run_opt(f"{model}:{name}", *args)
    assert ran.status == 1
    assert message in ran.err
    assert ran.out == ""


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("raise ValueError('at import')\n", "broken.py:1: error: importing"),
        ("def f(:\n", "broken.py:1: error: importing"),
        ("import no_such_module_anywhere\n", "ModuleNotFoundError"),
        ("raise SystemExit(0)\n", "SystemExit"),
    ],
)
def test_a_python_file_that_does_not_import(tmp_path: Path, source: str, message: str):
    (tmp_path / "broken.py").write_text(source, "utf-8")
    ran = run_opt(f"{tmp_path / 'broken.py'}:f", "--signature", "x: f32[3]")
    assert ran.status == 1
    assert message in ran.err
    assert not [name for name in sys.modules if name.startswith("sardonyx_user_broken")]
    assert str(tmp_path) not in sys.path


def test_an_onnx_file(tmp_path: Path, model: Path):
    path = tmp_path / "model.onnx"
    assert run_opt(f"{model}:forward", "-t", "onnx", "-o", path).status == 0
    ran = run_opt(path)
    assert ran.status == 0, ran.err
    assert "sx.matmul" in ran.out
    assert f"an initializer of {path}" in ran.out
    piped = run_opt(f"{model}:forward", "-t", "onnx")
    assert piped.raw == path.read_bytes()


def test_onnx_models_written_as_text(tmp_path: Path):
    import onnx
    from google.protobuf import json_format, text_format

    from sardonyx.backends.onnx import texts
    from sardonyx.tools.modules import ONNX_SUFFIXES

    assert ONNX_SUFFIXES == texts.SYNTAX | texts.JSON | texts.PROTOTEXT | {".onnx"}
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[n] x) => (float[n] y) { y = Relu(x) }'
    proto = onnx.parser.parse_model(text)
    for name, written in (
        ("m.onnxtxt", text),
        ("m.json", json_format.MessageToJson(proto)),
        ("m.TextProto", text_format.MessageToString(proto)),
    ):
        (tmp_path / name).write_text(written)
        assert "sx.relu" in run_opt(tmp_path / name).out


@pytest.mark.parametrize("content", [b"", b"\x08", b"not a model", bytes(range(100, 200))])
def test_an_onnx_file_that_is_none(tmp_path: Path, content: bytes):
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    ran = run_opt(path)
    assert ran.status == 1
    assert ran.err.count("error:") == 1, ran.err
    assert ran.out == ""


@pytest.mark.parametrize("name", ["missing.mlir", "missing.onnx", "missing.py:f", ".", "a\0b.mlir"])
def test_what_is_not_there(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    ran = run_opt(name)
    assert ran.status == 1
    assert len(ran.err.strip().splitlines()) <= 2, ran.err
    assert "error:" in ran.err


@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="root reads everything")
def test_an_unreadable_file(graph: Path):
    graph.chmod(0)
    ran = run_opt(graph)
    assert ran.status == 1
    assert "Permission denied" in ran.err


def test_bytes_that_are_no_text(tmp_path: Path):
    (tmp_path / "x.mlir").write_bytes(b"func\xff\x00")
    for ran in (run_opt(tmp_path / "x.mlir"), run_opt(stdin=b"func\xff\x00")):
        assert ran.status == 1
        assert "byte 0xff at offset 4 is not UTF-8" in ran.err


# --- errors in text


def test_a_parse_error_shows_its_place(graph: Path):
    graph.write_text(GRAPH.replace("sx.tanh %x :", "sx.tanh %q :"), "utf-8")
    ran = run_opt(graph)
    assert ran.status == 1
    lines = ran.err.splitlines()
    assert lines[0].startswith(f"{graph}:")
    assert "error: " in lines[0]
    assert "%q" in ran.err


def test_an_unknown_op_has_a_hint():
    ran = run_opt(stdin=GRAPH.replace("sx.tanh", "sx.tanhh"))
    assert ran.err.splitlines() == [
        "<stdin>:3:8: error: Operation sx.tanhh is not registered [INVALID_ARGUMENT]",
        "    %1 = sx.tanhh %x : (tensor<2x3xf32>) -> tensor<2x3xf32>",
        "         ^",
        "  hint: did you mean 'sx.tanh'?",
    ]
    assert run_opt("--allow-unregistered-dialect", stdin='"other.op"() : () -> ()\n').status == 0


def test_invalid_ir_names_its_line():
    ran = run_opt(stdin=GRAPH.replace(f"sx.tanh %x : ({T}) -> {T}", f"sx.tanh %x : ({T}) -> tensor<2x4xf32>"))
    assert ran.status == 1
    assert ran.err.startswith("<stdin>:3: error: the type is stated as tensor<2x4xf32>")
    assert "op: sx.tanh" in ran.err


def test_a_refusal_deep_inside_names_the_line_of_the_text():
    ran = run_opt("-t", "kernel", "--allow-unregistered-dialect", stdin=GRAPH.replace("sx.tanh", "sx.exp").replace(
        "  func.return", f'  %2 = "test.op"(%1) : ({T}) -> {T}\n  func.return'))  # fmt: skip
    assert ran.status == 4
    assert ran.err.startswith("<stdin>:4: error: ")


def test_errors_stay_short_however_wide_the_line():
    dims = "x".join(["2"] * 3000)
    ran = run_opt(stdin=f"func.func @main(%x: tensor<{dims}xf33>) {{\n  func.return\n}}\n")
    assert ran.status == 1
    assert max(map(len, ran.err.splitlines())) < 1200
    wide = ", ".join(f"%a{i}: tensor<{i}xf32>" for i in range(1, 2000))
    ran = run_opt(stdin=f"func.func @main({wide}) {{\n  %0 = sx.nothing %a1\n}}\n")
    assert ran.status == 1
    assert len(ran.err) < 1000


def test_no_error_dumps_the_module():
    many = "\n".join(f"  %v{i} = sx.exp %x : ({T}) -> {T}" for i in range(500))
    bad = f"  %w = sx.add %x, %x : ({T}, {T}) -> tensor<9xf32>"
    ran = run_opt(stdin=f"func.func @main(%x: {T}) {{\n{many}\n{bad}\n  func.return\n}}\n")
    assert ran.err.startswith("<stdin>:502: error:")
    assert len(ran.err) < 500


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000,
        "func.func @main() {" * 2000,
        "#" * 3000,
        "module {",
        '"unterminated',
        "func.func @main(%x: tensor<?xf32, #sx.dims<(((((>>) {\n  func.return\n}\n",
        "func.func @main(%x: tensor<?xf32, #sx.dims<a floordiv 0>>) {\n  func.return\n}\n",
        "%0 = sx.constant {value = dense<[1, 2]> : tensor<3xi64>} : () -> tensor<3xi64>\n",
        '%0 = "sx.exp"() : () -> i32\n',
        "%0 = sx.cast %0 : (tensor<1xf32>) -> tensor<1xf32>\n",
        "\0",
        '"' + "a" * 200,
        'func.func @main() attributes {a = "' + "b" * 200 + "\n",
        "%0 = sx.constant {value = #sx.weight<3>} : () -> tensor<3xi64>\n",
        "sx.exp\n",
    ],
)
def test_garbage_is_refused_not_a_defect(text: str):
    ran = run_opt(stdin=text)
    assert ran.status == 1, ran.err
    assert "[INTERNAL]" not in ran.err


# --- split input


SPLIT = """\
func.func @a() {
  func.return
}
// -----
func.func @b() {
  sx.nothing
}
// ----- not a separator
// -----
func.func @c() {
  %0 = sx.nothing
  func.return
}
// -----
func.func @d() {
  func.return
}
"""


def test_every_part_has_its_own_errors_and_lines(tmp_path: Path):
    path = tmp_path / "x.mlir"
    path.write_text(SPLIT, "utf-8")
    ran = run_opt(path, "--split-input-file")
    assert ran.status == 1
    assert [line.split(": error")[0] for line in ran.err.splitlines() if ": error" in line] == [
        f"{path}:6:3",
        f"{path}:11:8",
    ]
    assert re.findall(r"@(\w)", ran.out) == ["a", "d"]
    assert ran.out.count("// -----\n") == 1
    assert run_opt(path, "--split-input-file", "-o", tmp_path / "out.mlir").status == 1
    assert not (tmp_path / "out.mlir").exists()


def test_locations_count_from_the_top_of_the_file():
    ran = run_opt("--split-input-file", "--locations", stdin="\n\n// -----\n\nfunc.func @a() {\n  func.return\n}\n")
    assert 'func.return loc("<stdin>":6:3)' in ran.out
    stated = 'func.func @a() {\n  func.return loc("model.py":7:1)\n} loc(unknown)\n'
    again = run_opt("--locations", stdin=stated).out
    assert 'loc("model.py":7:1)' in again
    assert "} loc(unknown)" in again


@given(data=st.data())
@settings(max_examples=100)
def test_mutilated_text_is_parsed_or_refused(data: st.DataObject):
    text = FUZZED
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(text)))
        length = data.draw(st.integers(0, 12))
        other = data.draw(st.integers(0, len(FUZZED)))
        piece = data.draw(
            st.sampled_from(["", FUZZED[other : other + length], "<", ">", '"', "-1", "?", "%x", "é", "_"])
        )
        text = text[:at] + piece + text[at + length :]
    ran = run_opt(stdin=text)
    assert ran.status in (0, 1), ran.err
    assert "[INTERNAL]" not in ran.err, (text, ran.err)
    assert ran.status == 0 or ran.err.startswith("<stdin>"), (text, ran.err)


def test_a_text_that_an_editor_marked(tmp_path: Path):
    """A byte order mark, and Windows' ends of lines."""
    (tmp_path / "g.mlir").write_bytes(b"\xef\xbb\xbffunc.func @main() {\r\n  func.return // end\r\n}\r\n")
    ran = run_opt(tmp_path / "g.mlir", "--locations")
    assert ran.status == 0, ran.err
    assert 'g.mlir":2:3' in ran.out


@pytest.mark.parametrize("content", ["", " \n\t\n", "// nothing\n// here"])
def test_a_text_with_nothing_in_it(content: str):
    ran = run_opt(stdin=content)
    assert ran.status == 1
    assert ran.err == "<stdin>: error: there is nothing in it: neither a module nor an op [INVALID_ARGUMENT]\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--check-passes=0", "-p", "cse"], "--check-passes: '0' is no number from 1"),
        (["--fuel", "-1", "-p", "cse"], "--fuel: '-1' is no number from 0"),
        (["-p", "fold-constants{max-bytes=abc}"], "option 'max-bytes' cannot be 'abc'"),
        (["-p", "fold-constants{max-bytes}"], "option 'max-bytes' needs a value"),
        (["-p", "cse", "--print-ir-tree-dir", __file__], "writes into a directory, and"),
    ],
)
def test_what_a_command_line_gets_wrong_is_told_in_words(args: list[str], message: str):
    ran = run_opt(*args, stdin="func.func @main() {\n  func.return\n}\n")
    assert (ran.status, ran.out) == (2, "")
    assert message in ran.err
