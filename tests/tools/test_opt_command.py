"""`sardonyx-opt`: its command line, passes that fail, plug-ins, and what it prints beside the result."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from run_opt import GRAPH, run_opt

from sardonyx.passes import registry

# --- the command line


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["-p", "remove-dead-node"], "did you mean 'remove-dead-nodes'?"),
        (["-p", "fold-constants{max-byte=3}"], "did you mean 'max-bytes'?"),
        (["-p", "fold-constants{max-bytes=many}"], "max-bytes: int"),
        (["-p", "cse,,cse"], "column 5"),
        (["-t", "llvm"], "did you mean 'llvm-ir'?"),
        (["-t", "qqq"], "targets: mlir, kernel, mlir-upstream, llvm-ir, asm, obj, onnx"),
        (["--print-ir-after=remove-dead-node"], "did you mean 'remove-dead-nodes'?"),
        (["--statistic"], "did you mean '--statistics'?"),
        (["--stat"], "unrecognized arguments"),
        (["another.mlir"], "it takes one input"),
        (["-o"], "expected one argument"),
        (["--signature", "x: f32[3]"], "--signature is for a function of a Python file"),
        (["--list-passes=some"], "invalid choice"),
    ],
)
def test_a_wrong_command_line(args: list[str], message: str):
    ran = run_opt("-", *args, stdin=GRAPH)
    assert ran.status == 2
    assert message in ran.err
    assert ran.out == ""


def test_a_python_file_without_a_function(model: Path):
    for source in (model, f"{model}:", f"{model}:a.b"):
        ran = run_opt(source)
        assert ran.status == 2
        assert f"write {model}:FUNCTION" in ran.err


def test_options_of_another_input_are_refused(tmp_path: Path):
    for option in (["--weights", "w"], ["--split-input-file"]):
        ran = run_opt(tmp_path / "x.onnx", *option)
        assert ran.status == 2
        assert "is for MLIR text" in ran.err


def test_print_ir_after_does_not_take_the_input_for_a_pass(graph: Path):
    ran = run_opt("-p", "remove-dead-nodes", "--print-ir-after", graph)
    assert ran.status == 0, ran.err
    assert "IR Dump After remove-dead-nodes" in ran.err


def test_lists(model: Path):
    ran = run_opt("--list-passes")
    assert ran.status == 0
    names = re.findall(r"^(\S+)$", ran.out, re.MULTILINE)
    assert names == registry.names()
    assert "    options: max-bytes: int = 65536\n    promise: exact\n" in ran.out
    everything = run_opt("--list-passes=all").out
    assert "\ncanonicalize\n    of xDSL\n" in everything
    assert [line.split()[0] for line in run_opt("--list-targets").out.splitlines()] == [
        "mlir", "kernel", "mlir-upstream", "llvm-ir", "asm", "obj", "onnx",
    ]  # fmt: skip
    assert re.fullmatch(r"sardonyx-opt \d+\.\d+\.\d+\n", run_opt("--version").out)


def test_help_names_every_option_and_status():
    ran = run_opt("--help")
    assert ran.status == 0
    for word in ("--print-ir-after-change", "--split-input-file", "--signature", "exit status", "70"):
        assert word in ran.out


# --- passes that fail, and plug-ins


def test_a_pass_that_crashes(plugin: Path):
    ran = run_opt("--load", plugin, "-p", "test-crash{how=quietly}", "--print-ir-after-failure", stdin=GRAPH)
    assert ran.status == 70
    assert "error: pass 'test-crash' failed: KeyError: 'quietly' [INTERNAL]" in ran.err
    assert "IR Dump After test-crash Failed" in ran.err
    assert "hint:" in ran.err
    assert "Traceback" not in ran.err
    assert ran.out == ""
    debugged = run_opt("--load", plugin, "-p", "test-crash", "--debug", stdin=GRAPH)
    assert debugged.status == 70
    assert "Traceback" in debugged.err
    assert f'{plugin}", line 15' in debugged.err


def test_a_pass_that_leaves_invalid_ir(plugin: Path):
    ran = run_opt("--load", plugin, "-p", "test-wreck,cse", stdin=GRAPH)
    assert ran.status == 70
    assert ran.err.startswith("<stdin>:2: error: the passes left invalid IR")
    assert "--verify-each" in ran.err
    each = run_opt("--load", plugin, "-p", "test-wreck,cse", "--verify-each", stdin=GRAPH)
    assert each.status == 70
    assert "pass 'test-wreck' left invalid IR" in each.err


def test_passes_of_a_file_are_listed(plugin: Path):
    out = run_opt("--load", plugin, "--list-passes").out
    assert f"test-crash\n    Crashes\n    from: {plugin}\n    options: how: str = loudly\n" in out


def test_a_file_that_does_not_load(tmp_path: Path):
    assert run_opt("--load", tmp_path / "gone.py").status == 1
    (tmp_path / "bad.py").write_text("1 / 0\n", "utf-8")
    ran = run_opt("--load", tmp_path / "bad.py", stdin=GRAPH)
    assert ran.status == 1
    assert "ZeroDivisionError" in ran.err


# --- what stands beside the result


def test_ir_around_passes(graph: Path):
    def titles(*args: str) -> list[str]:
        return re.findall(r"// IR Dump (.*?) //", run_opt(graph, "-p", "cse,remove-dead-nodes", *args).err)

    assert titles("--print-ir-before") == ["Before cse", "Before remove-dead-nodes"]
    assert titles("--print-ir-before-all") == ["Before cse", "Before remove-dead-nodes"]
    assert titles("--print-ir-before=cse") == ["Before cse"]
    assert titles("--print-ir-after=cse,remove-dead-nodes") == ["After cse", "After remove-dead-nodes"]
    assert titles("--print-ir-after=cse", "--print-ir-after=cse") == ["After cse"]
    assert titles("--print-ir-after-change") == ["After remove-dead-nodes"]
    assert titles("--print-ir-after-failure") == []


def test_statistics_and_timing(graph: Path):
    ran = run_opt(graph, "-p", "cse,remove-dead-nodes", "--statistics", "--timing")
    assert "cse (no change)\n" in ran.err
    assert re.search(r"^ +1  removed$", ran.err, re.MULTILINE)
    rows = re.findall(r" ms +[\d.]+ % +(.*)$", ran.err, re.MULTILINE)
    assert rows[:2] == ["load modules", "read"]
    assert "output" in rows and rows[-1] == "total"
    assert {"cse", "remove-dead-nodes"} <= set(rows)
    assert "===" not in ran.out
