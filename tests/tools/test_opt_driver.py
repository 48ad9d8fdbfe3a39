"""`sardonyx-opt`: expected diagnostics, reproducers, rewrites under control, times, plug-ins, completions."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from run_opt import GRAPH, T, run_opt

from sardonyx.tools import opt_diagnostics, opt_roundtrip, opt_timing
from sardonyx.tools.opt_options import build_parser
from sardonyx.tools.text import Text

PAIR = f"""\
func.func @main(%x: {T}) -> {T} {{
  %0 = sx.transpose %x {{perm = array<i64: 1, 0>}} : ({T}) -> tensor<3x2xf32>
  %1 = sx.exp %0 : (tensor<3x2xf32>) -> tensor<3x2xf32>
  %2 = sx.transpose %1 {{perm = array<i64: 1, 0>}} : (tensor<3x2xf32>) -> {T}
  func.return %2 : {T}
}}
"""

ZEROS = f"""\
func.func @main(%x: {T}) -> {T} {{
  %c = sx.constant {{value = dense<0> : tensor<i64>}} : () -> tensor<i64>
  %0 = sx.identity %x : ({T}) -> {T}
  %1 = sx.identity %0 : ({T}) -> {T}
  %2 = sx.neg %1 : ({T}) -> {T}
  %3 = sx.neg %2 : ({T}) -> {T}
  func.return %3 : {T}
}}
"""

PLUGINS = '''\
import pathlib
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition

from sardonyx.passes.base import PassRun, SxPass
from sardonyx.tools.extensions import Frontend, Target


@irdl_op_definition
class NopOp(IRDLOperation):
    name = "own.nop"
    assembly_format = "attr-dict"


@dataclass(frozen=True)
class RemarkPass(SxPass):
    """Remarks and warns."""

    name = "test-remark"
    loud: bool = field(default=False, metadata={"help": "whether to warn, too"})

    def run(self, module: ModuleOp, run: PassRun) -> None:
        for op in module.walk():
            if op.name == "sx.exp":
                run.remark("seen", f"found {op.name}", op)
                if self.loud:
                    run.warn("beware of exp", op)


def read(path):
    module = ModuleOp([])
    module.attributes["lines"] = StringAttr(str(len(pathlib.Path(path).read_text().splitlines())))
    return module


OWN = Dialect("own", [NopOp])
COUNT = Target("op-count", "how many ops there are", lambda module: f"{sum(1 for _ in module.walk())}\\n")
RAW = Target("raw", "bytes", lambda module: b"\\x00\\xff", binary=True)
LINES = Frontend("lines", (".lines",), read)
'''


@pytest.fixture
def own(plugin: Path) -> Path:
    path = plugin.with_name("own.py")
    path.write_text(PLUGINS, "utf-8")
    return path


# --- pipelines


def test_a_pipeline_from_a_file(tmp_path: Path, graph: Path):
    path = tmp_path / "pipeline.txt"
    path.write_text("# first\nbuiltin.module(func.func(\n  cse,  # equal things\n  remove-dead-nodes))\n", "utf-8")
    assert run_opt("-p", f"@{path}", "--dump-pass-pipeline").out == "cse\nremove-dead-nodes\n"
    assert run_opt(graph, "-p", f"@{path}").out == run_opt(graph, "-p", "cse,remove-dead-nodes").out
    ran = run_opt(graph, "-p", f"@{tmp_path}/gone")
    assert ran.status == 2
    assert "No such file" in ran.err


def test_mlirs_names_of_options(graph: Path):
    ran = run_opt(graph, "-p", "cse", "--mlir-print-ir-after-all", "--mlir-timing", "--mlir-pass-statistics",
                  "--mlir-elide-elementsattrs-if-larger=3", "--mlir-print-op-generic")  # fmt: skip
    assert ran.status == 0, ran.err
    assert "IR Dump After cse" in ran.err and "Execution time" in ran.err and "statistics report" in ran.err
    assert '"sx.exp"' in ran.out
    assert "unrecognized arguments: --mlir-nothing" in run_opt("--mlir-nothing").err


# --- what is printed around passes


def test_diffs_keep_the_names_of_values():
    ran = run_opt("-p", "compose-transposes", "--print-ir-diff", stdin=PAIR.replace("%2 :", "%2 :"))
    lines = [line for line in ran.err.splitlines() if re.match(r"[+-] ", line)]
    assert [line.split()[1:4] for line in lines if line.startswith("+")] == [
        ["%3", "=", "sx.exp"], ["func.return", "%3", ":"],
    ]  # fmt: skip
    assert len([line for line in lines if line.startswith("-")]) == 4
    assert run_opt("-p", "cse", "--print-ir-diff", stdin=PAIR).err == ""


def test_dumps_as_files(tmp_path: Path):
    folder = tmp_path / "a" / "ir"
    ran = run_opt("-p", "cse,compose-transposes", "--print-ir-tree-dir", folder, stdin=PAIR)
    assert (ran.status, ran.err) == (0, "")
    assert sorted(p.name for p in folder.iterdir()) == ["000_cse.mlir", "001_compose-transposes.mlir"]
    assert run_opt(folder / "001_compose-transposes.mlir").out == ran.out
    run_opt("-p", "cse,compose-transposes", "--print-ir-tree-dir", folder, "--print-ir-diff", stdin=PAIR)
    assert (folder / "001_compose-transposes.diff").exists()
    assert not (folder / "000_cse.diff").exists()
    run_opt("-p", "cse", "--print-ir-tree-dir", folder, "--split-input-file", stdin=f"{PAIR}// -----\n{PAIR}")
    assert (folder / "part_001" / "000_cse.mlir").exists()
    taken = run_opt("-p", "cse", "--print-ir-tree-dir", "/dev/null", stdin=PAIR)
    assert taken.status != 0 and "'/dev/null' is a file" in taken.err


def test_large_constants_are_elided():
    values = ", ".join(map(str, range(20)))
    text = f"""func.func @main() -> (tensor<20xi64>, tensor<20xi64>) {{
  %0 = sx.constant {{value = dense<[{values}]> : tensor<20xi64>}} : () -> tensor<20xi64>
  %1 = sx.constant {{value = dense<7> : tensor<20xi64>}} : () -> tensor<20xi64>
  func.return %0, %1 : tensor<20xi64>, tensor<20xi64>
}}
"""
    ran = run_opt("-p", "cse", "--print-ir-after", stdin=text)
    assert "dense_resource<__elided__> : tensor<20xi64>" in ran.err and "dense<7>" in ran.err
    assert values in ran.out
    assert values in run_opt("-p", "cse", "--print-ir-after", "--print-ir-full", stdin=text).err
    assert values in run_opt("--elide-constants=20", stdin=text).out
    assert "__elided__" in run_opt("--elide-constants=19", stdin=text).out


# --- expected diagnostics


def test_expected_diagnostics(own: Path):
    text = f"""\
// expected-error @below {{{{expected the name}}}}
func.func @(%x: {T}) {{
}}
// -----
func.func @main(%x: {T}) -> {T} {{
  %0 = sx.exp %x : ({T}) -> {T}  // expected-remark {{{{found sx.exp}}}} expected-warning {{{{beware}}}}
  %1 = sx.exp %x : ({T}) -> {T}
  // expected-remark-re @-1 {{{{found {{{{sx\\..x}}}}p}}}}
  // expected-warning @above {{{{beware of exp}}}}
  func.return %0 : {T}
}}
// -----
func.func @main(%x: {T}) -> tensor<9xf32> {{
  %0 = sx.exp %x : ({T}) -> tensor<9xf32>  // expected-error {{{{(2, 3)}}}}
  func.return %0 : tensor<9xf32>
}}
"""
    args = ["--load", own, "-p", "test-remark{loud}", "--remarks=seen", "--split-input-file", "--verify-diagnostics"]
    text = text.replace("expected the name", "identifier expected").replace("(2, 3)", "tensor<2x3xf32>")
    ran = run_opt(*args, stdin=text)
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    # Each way to be wrong fails.
    for old, new, message in (
        ("found sx.exp", "found sx.log", "<stdin>:6: error: expected remark of line 6 did not come: found sx.log"),
        ("expected-warning {{beware", "expected-note {{beware", "unexpected warning: beware of exp"),
        ("// expected-remark-re @-1", "// expected-remark-re @+1", "unexpected remark"),
        ("// expected-warning @above", "// expected-warning @above 2", "did not come: beware of exp"),
        ("// expected-error {{t", "// {{t", "<stdin>:14: error: unexpected error: the type is stated"),
        ("// expected-error @below", "// expected-error @unknown", "of no line did not come"),
    ):
        assert old in text
        ran = run_opt(*args, stdin=text.replace(old, new))
        assert ran.status == 5, (old, ran.err)
        assert message in ran.err, ran.err


def test_all_invalid_ops_are_diagnosed():
    text = f"""\
func.func @main(%x: {T}) {{
  %0 = sx.exp %x : ({T}) -> tensor<9xf32> // expected-error {{{{tensor<2x3xf32> follows}}}}
  %1 = sx.log %x : ({T}) -> tensor<8xf32> // expected-error {{{{tensor<2x3xf32> follows}}}}
  func.return
}}
"""
    assert run_opt("--verify-diagnostics", stdin=text) == (0, "", "", b"")


@pytest.mark.parametrize("comment", ["// expected-error", "// expected-error @+1 text", "// expected-error {{text",
                                     "// expected-error-re {{a{{(}}b}}"])  # fmt: skip
def test_malformed_expectations(comment: str):
    ran = run_opt("--verify-diagnostics", stdin=f"\n{comment}\n{GRAPH}")
    assert ran.status == 1, ran.err
    assert ran.err.startswith("<stdin>:2: error: ")


def test_lines_of_expectations():
    text = Text(
        "// a\n// expected-error @above {{x}}\n// expected-error @9 {{y}}\n// expected-note @+2 {{z{{w}}}}", "f", 10
    )
    found = [(e.severity, e.line, e.text) for e in opt_diagnostics.read_expectations(text)]
    assert found == [("error", 10, "x"), ("error", 9, "y"), ("note", 15, "z{{w}}")]


# --- round trips


def test_round_trips(graph: Path, monkeypatch: pytest.MonkeyPatch):
    assert run_opt(graph, "-p", "cse", "--verify-roundtrip").status == 0
    honest = opt_roundtrip.print_module
    for wrong, message in (
        (lambda text: text.replace("sx.exp", "sx.log"), "comes back as something else"),
        (lambda text: text.replace("sx.exp", "sx.exq"), "does not parse back"),
    ):
        calls: list[int] = []

        def lying(module, style, calls=calls, wrong=wrong):
            calls.append(1)
            return (
                wrong(honest(module, style)) if len(calls) == 1 else honest(module, style).replace("sx.log", "sx.exp")
            )

        monkeypatch.setattr(opt_roundtrip, "print_module", lying)
        ran = run_opt(graph, "--verify-roundtrip")
        assert ran.status == 6, ran.err
        assert message in ran.err
        assert ran.out == ""


# --- reproducers


def test_a_reproducer_reproduces(tmp_path: Path, plugin: Path, graph: Path):
    path = tmp_path / "crash.mlir"
    args = ["--load", plugin, "-p", 'cse,test-crash{how="so so"},remove-dead-nodes', "--verify-each"]
    first = run_opt(graph, *args, "--crash-reproducer", path)
    assert first.status == 70
    assert "-p 'test-crash{how=\"so so\"},remove-dead-nodes' --verify-each" in path.read_text("utf-8")
    again = run_opt(path, "--run-reproducer", "--load", plugin)
    assert again.status == 70
    assert "KeyError: 'so so'" in again.err
    # Code of somebody else's is not loaded because a file says so.
    refused = run_opt(path, "--run-reproducer")
    assert refused.status == 2
    assert f"if you trust it, add --load {plugin}" in refused.err
    # Nothing is left where nothing fails, and nothing else is overwritten.
    assert run_opt(graph, "-p", "cse", "--crash-reproducer", path).status == 0
    assert not path.exists()
    before = graph.read_text("utf-8")
    ran = run_opt(graph, "-p", "cse", "--crash-reproducer", graph)
    assert ran.status != 0 and "is no reproducer" in ran.err
    assert graph.read_text("utf-8") == before


def test_a_reproducer_of_a_target_and_with_weights(tmp_path: Path, model: Path):
    path = tmp_path / "crash.mlir"
    features = ["--target-triple", "no-such-triple"]
    ran = run_opt(f"{model}:forward", "-p", "cse", "-t", "llvm-ir", *features, "--crash-reproducer", path)
    assert ran.status in (4, 70), ran.err
    assert path.with_name("crash.weights.safetensors").exists()
    again = run_opt("--run-reproducer", path)
    assert again.status == ran.status
    (first,) = re.findall("error: .*", ran.err)
    assert first in again.err


@pytest.mark.parametrize("head", [
    "// no head\n",
    "// sardonyx-opt reproducer\n// sardonyx-opt: -p 'cse\n",
    "// sardonyx-opt reproducer\n// sardonyx-opt: -o /tmp/stolen\n",
    "// sardonyx-opt reproducer\n// sardonyx-opt: --load=/tmp/evil.py\n",
    "// sardonyx-opt reproducer\n// sardonyx-opt: -p @/etc/passwd\n",
])  # fmt: skip
def test_heads_that_are_refused(head: str):
    ran = run_opt("--run-reproducer", stdin=head + GRAPH)
    assert ran.status == 2, ran.err
    assert "reproducer" in ran.err


# --- single rewrites


def test_fuel_counters_and_traces():
    everything = run_opt("-p", "compose-transposes", "--trace-rewrites", stdin=PAIR)
    lines = everything.err.splitlines()
    assert lines[0] == "rewrite 0 (try 0): compose-transposes:through-elementwise on sx.exp at <stdin>:3 -> sx.exp"
    assert [int(re.match(r"rewrite (\d+)", line)[1]) for line in lines] == list(range(len(lines)))  # type: ignore[index]
    assert len(lines) > 2
    simplified = run_opt("-p", "simplify", "--trace-rewrites", stdin=ZEROS).err.splitlines()
    assert len(simplified) > 2
    for fuel in (0, 1, 2, len(simplified)):
        limited = run_opt("-p", "simplify", "--trace-rewrites", "--fuel", fuel, stdin=ZEROS)
        assert limited.err.splitlines() == simplified[:fuel]
    assert run_opt("-p", "compose-transposes", "--fuel=0", stdin=PAIR).out == run_opt(stdin=PAIR).out
    none = run_opt("-p", "compose-transposes", "--debug-counter=compose-transposes=", stdin=PAIR)
    assert none.out == run_opt(stdin=PAIR).out
    # Without one pattern, the others go on; the number of a try is the same in every run.
    name, tried = re.findall(r"\(try (\d+)\): (\S+) on sx.neg", "\n".join(simplified))[0][::-1]
    for ranges, fires in (("", False), ("0-999", True), (tried, True), (f"{int(tried) + 1}-", False)):
        limited = run_opt("-p", "simplify", "--trace-rewrites", f"--debug-counter={name}={ranges}", stdin=ZEROS)
        assert (name in limited.err) == fires, (ranges, limited.err)
        assert "identity" in limited.err
    counted = run_opt("-p", "compose-transposes", "--print-debug-counters", stdin=PAIR)
    assert re.search(r"^ +\d+ +1  compose-transposes:through-elementwise$", counted.err, re.MULTILINE)
    assert run_opt("-p", "cse", "--trace-rewrites=simplify", stdin=PAIR).err == ""
    for wrong in ("cse", "cse=a", "=3"):
        assert run_opt("--debug-counter", wrong, stdin=PAIR).status == 2
    assert "did you mean 'cse'?" in run_opt("--debug-counter", "csee=3", stdin=PAIR).err


# --- times, memory, statistics


def test_times_for_programs(tmp_path: Path):
    path = tmp_path / "times.json"
    ran = run_opt("-p", "cse,compose-transposes", "--timing=json", "--timing-output", path, "--verify-each", stdin=PAIR)
    assert (ran.status, ran.err) == (0, "")
    tree = json.loads(path.read_text("utf-8"))
    passes = next(one for one in tree["inner"] if one["name"] == "passes")
    assert [one["name"] for one in passes["inner"]] == ["cse", "compose-transposes"]
    assert passes["inner"][1]["inner"][0]["name"] == "verify"
    assert sum(one["seconds"] for one in passes["inner"]) <= passes["seconds"] <= tree["seconds"]
    ran = run_opt("-p", "compose-transposes", "-t", "llvm-ir", "--timing=chrome", stdin=PAIR)
    events = json.loads(ran.err)["traceEvents"]
    spans = {e["name"]: e for e in events if e["ph"] == "X"}
    assert {"total", "read", "passes", "compose-transposes", "output", "lowering"} <= set(spans)
    inner, outer = spans["compose-transposes"], spans["passes"]
    assert outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"]
    assert "compose-transposes:through-elementwise" in {e["name"] for e in events if e["ph"] == "i"}
    listed = run_opt("-p", "compose-transposes", "--timing=list", stdin=PAIR)
    assert re.search(r"ms +[\d.]+ % +compose-transposes$", listed.err, re.MULTILINE)


def test_a_timeline_counts_what_is_inside_once():
    line = opt_timing.Timeline(0.0)
    with line.span("a"), line.span("b"):
        time.sleep(0.002)
    (a,) = line.root.inner
    assert a.inner[0].name == "b" and a.own_seconds() <= a.seconds - a.inner[0].seconds + 1e-9


def test_memory_and_statistics_for_programs():
    ran = run_opt("-p", "compose-transposes", "--memory", stdin=PAIR)
    assert re.search(r"MiB +\+0\.0 +6  \(input\)$", ran.err, re.MULTILINE)
    assert re.search(r" 4  compose-transposes$", ran.err, re.MULTILINE)
    assert "peak of the process" in ran.err
    (found,) = json.loads(run_opt("-p", "compose-transposes", "--statistics=json", stdin=PAIR).err)
    assert found["pass"] == "compose-transposes" and found["changed"]
    assert found["statistics"]["transposes-removed"] == 2


# --- plug-ins, lists, completions


def test_plug_ins_of_a_file(own: Path, tmp_path: Path, graph: Path):
    assert run_opt(graph, "--load", own, "-t", "op-count").out == "5\n"
    assert run_opt(graph, "--load", own, "-t", "raw").raw == b"\x00\xff"
    listed = run_opt("--load", own, "--list-targets").out
    assert re.search(r"^op-count +how many ops there are \(from: .*own.py\)$", listed, re.MULTILINE)
    (tmp_path / "x.lines").write_text("a\nb\n", "utf-8")
    assert 'lines = "2"' in run_opt(tmp_path / "x.lines", "--load", own).out
    assert "there is no file" in run_opt(tmp_path / "y.lines", "--load", own).err
    assert "own.nop" in run_opt("--load", own, stdin="own.nop\n").out
    assert re.search(r"^own +.*own.py$", run_opt("--load", own, "--show-dialects").out, re.MULTILINE)
    assert re.search(r"^sx +sardonyx, \d+ ops$", run_opt("--show-dialects").out, re.MULTILINE)


def test_remarks_and_warnings(own: Path, graph: Path):
    loud = [graph, "--load", own, "-p", "test-remark{loud}"]
    assert run_opt(*loud).err == f"{graph}:2: warning: beware of exp\n"
    assert f"{graph}:2: remark: [seen] found sx.exp\n" in run_opt(*loud, "--remarks").err
    assert "remark: " not in run_opt(*loud, "--remarks=other").err


def test_remarks_on_fusion():
    text = f"""\
func.func @main(%x: {T}, %w: tensor<3x4xf32>) -> tensor<2x4xf32> {{
  %0 = sx.exp %x : ({T}) -> {T}
  %1 = sx.neg %0 : ({T}) -> {T}
  %2 = sx.matmul %1, %w : ({T}, tensor<3x4xf32>) -> tensor<2x4xf32>
  %3 = sx.relu %2 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  func.return %3 : tensor<2x4xf32>
}}
"""
    said = run_opt("-t", "kernel", "--remarks=fusion", stdin=text).err
    assert "<stdin>:3: remark: [fusion] 2 ops of 2 lines are one kernel (elementwise): exp, neg" in said
    assert "<stdin>:5: remark: [fusion] 2 ops of 2 lines are one kernel (epilogue): matmul, relu" in said
    assert run_opt("-t", "kernel", stdin=text).err == ""
    expected = text.replace(
        "-> tensor<2x4xf32>\n  func", "-> tensor<2x4xf32> // expected-remark {{one kernel}}\n  func"
    )
    expected = expected.replace("%2 = sx", "// expected-remark @-1 {{exp, neg}}\n  %2 = sx")
    ran = run_opt("-t", "kernel", "--remarks=fusion", "--verify-diagnostics", stdin=expected)
    assert ran.status == 0, ran.err


def test_help_of_a_pass(own: Path):
    out = run_opt("--load", own, "--help-pass", "test-remark").out
    assert "  loud: bool = false\n      whether to warn, too\n" in out
    assert "-p 'test-remark{loud=false}'" in out
    out = run_opt("--help-pass=fold-constants").out
    assert "numeric promise: exact" in out and "max-bytes: int = 65536\n      " in out
    assert "default is a pipeline" in run_opt("--help-pass=default").out
    assert "did you mean 'cse'" in run_opt("--help-pass=csee").err
    found = {entry["name"]: entry for entry in json.loads(run_opt("--list-passes=json").out)}
    assert found["fold-constants"]["options"][0]["default"] == "65536"


def test_completions_in_bash(tmp_path: Path):
    script = tmp_path / "complete.sh"
    script.write_text(run_opt("--complete", "bash").out, "utf-8")
    calls = {
        "-p cse,fold": {"cse,fold-affine", "cse,fold-constants"},
        "-t ker": {"kernel"},
        "--timing = ch": {"chrome"},
        "--split": {"--split-input-file"},
        "--help-pass infer": {"infer-types"},
    }
    for words, expected in calls.items():
        count = len(words.split())
        given = f'COMP_WORDS=(sardonyx-opt {words}); COMP_CWORD={count}; _sardonyx_opt; echo "${{COMPREPLY[@]}}"'
        ran = subprocess.run(["bash", "-c", f"source {script}; {given}"], capture_output=True, text=True, check=True)
        assert set(ran.stdout.split()) == expected, words


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completions_of_other_shells(shell: str, tmp_path: Path):
    text = run_opt("--complete", shell).out
    for name in build_parser()._option_string_actions:
        assert name.lstrip("-") in text
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here to read the script")
    script = tmp_path / "script"
    script.write_text(text, "utf-8")
    subprocess.run([program, "-n", str(script)], check=True)


# --- watching


def test_watch_shows_what_changed(graph: Path):
    command = [sys.executable, "-P", "-m", "sardonyx.tools.opt", str(graph), "-p", "remove-dead-nodes", "--watch"]
    restore = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's background jobs ignore it
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=restore)
    assert process.stdout is not None and process.stderr is not None
    try:
        first = [process.stdout.readline() for _ in range(2)]
        assert "builtin.module" in first[0]
        graph.write_text(GRAPH.replace("sx.exp", "sx.log"), "utf-8")
        os.utime(graph, ns=(1, 1))
        said = [process.stderr.readline() for _ in range(3)]
        assert "The result changed" in said[0]
        lines: list[str] = []
        while not lines or not lines[-1].startswith("+ "):
            lines.append(process.stderr.readline())
        assert "sx.log" in lines[-1]
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    finally:
        process.kill()
        process.communicate()
    assert run_opt("--watch").status == 2
