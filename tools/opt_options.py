"""The command line of `sardonyx-opt`; loads nothing but argparse, so that --help is quick."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Container, Sequence
from typing import Any, NoReturn, TypeAlias

from sardonyx.tools import opt_check

EPILOG = """\
examples:
  sardonyx-opt graph.mlir -p compose-transposes,remove-dead-nodes
  sardonyx-opt model.onnx -p 'fold-constants{max-bytes=4096},cse' -t kernel
  sardonyx-opt model.py:forward --signature 'x: f32[batch,37]' -t onnx -o forward.onnx
  cat graph.mlir | sardonyx-opt -p cse --print-ir-after-change --timing

Standard output carries the result and nothing else; IR dumps, times, statistics and errors go to standard error.
With -o x.mlir the bytes of the weights go to x.weights.safetensors beside it, which is found again when x.mlir is read.

exit status:
  0    success
  1    the input is wrong: it cannot be read, does not parse, or is invalid
  2    the command line is wrong: an option, pass or target that is not there
  3    a pass refused the graph
  4    the output failed: the target cannot state the graph, or the file cannot be written
  5    the diagnostics are not those that the input expects (--verify-diagnostics)
  6    a check failed: values changed (--check-passes), or the text does not come back (--verify-roundtrip)
  70   a defect of a pass or of Sardonyx
  130  interrupted"""

# What stands for an option's value where none is given; a value is attached with '=' only, so that
# `--print-ir-after graph.mlir` does not take the file for the name of a pass.
_ATTACHED = {
    "--print-ir-before": "*",
    "--print-ir-after": "*",
    "--list-passes": "own",
    "--remarks": "*",
    "--trace-rewrites": "*",
    "--elide-constants": "16",
    "--timing": "tree",
    "--time-report": "tree",
    "--statistics": "text",
    **opt_check.ATTACHED,
}


class UsageError(Exception):
    """The command line is wrong; the message is complete."""


_Add: TypeAlias = Callable[..., Any]


class _Parser(argparse.ArgumentParser):
    @property
    def known(self) -> Container[str]:
        """The options."""
        return self._option_string_actions

    @property
    def actions(self) -> Sequence[argparse.Action]:
        """The input and all options."""
        return self._actions

    def error(self, message: str) -> NoReturn:
        hint = self._hint(message)
        raise UsageError(f"{self.prog}: error: {message}\n" + (f"  hint: {hint}\n" if hint else ""))

    def _hint(self, message: str) -> str:
        found = re.match(r"unrecognized arguments: (.*)", message)
        if found is None:
            return f"{self.prog} --help explains the options"
        import difflib

        first = found[1].split()[0].partition("=")[0]
        near = difflib.get_close_matches(first, self._option_string_actions, 1, 0.7)
        if near and first != near[0]:
            return f"did you mean '{near[0]}'?"
        return f"it takes one input; {self.prog} --help explains the options"


def build_parser() -> _Parser:
    """The parser of the command line."""
    parser = _Parser(
        prog="sardonyx-opt",
        usage="sardonyx-opt [INPUT] [-p PIPELINE] [-t TARGET] [-o FILE] [options]",
        description="Read a graph, run passes over it, and write it in the form of a target.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument(
        "input",
        nargs="?",
        default="-",
        metavar="INPUT",
        help="FILE.mlir, FILE.onnx, FILE.py:FUNCTION, or - for MLIR text on standard input (default)",
    )
    _add_input(parser.add_argument_group("input").add_argument)
    _add_work(parser.add_argument_group("work").add_argument)
    _add_output(parser.add_argument_group("output").add_argument)
    _add_printing(parser.add_argument_group("IR around passes, on standard error").add_argument)
    _add_reports(parser.add_argument_group("reports, on standard error").add_argument)
    _add_instead(parser.add_argument_group("instead of all that").add_argument)
    return parser


def _add_input(add: _Add) -> None:
    add("--signature", metavar="TEXT", help="the inputs of a Python function, as 'x: f32[batch,37], y: i64[]'")
    add("--weights", metavar="FILE", help="a safetensors file with the bytes of the weights that MLIR text names")
    add("--load", action="append", default=[], metavar="FILE.py",
        help="load passes, dialects, targets and frontends from a Python file")  # fmt: skip
    add("--allow-unregistered-dialect", action="store_true", help="accept ops of unknown dialects")
    add("--split-input-file", action="store_true", help="treat the parts between lines of '// -----' as files")
    add("--run-reproducer", action="store_true",
        help="run what the input's header says, which --crash-reproducer wrote")  # fmt: skip


def _add_work(add: _Add) -> None:
    add("-p", "--pass-pipeline", "--passes", dest="pipeline", action="append", default=[], metavar="PIPELINE",
        help="passes to run: 'name,name{option=value}', 'builtin.module(...)' or @FILE; several chain")  # fmt: skip
    add("--verify-each", action="store_true", help="verify the IR after every pass that changed it")
    add("--verify-roundtrip", action="store_true",
        help="check that the text of the input and of the result, in both forms, parses back to that IR")  # fmt: skip
    add("--verify-diagnostics", action="store_true",
        help="check that exactly the diagnostics come that the input's comments expect: "
        "'// expected-error @+1 {{text}}'; likewise warning, note, remark; @N, @above, @below, @unknown")  # fmt: skip
    add("--fuel", type=_natural, metavar="N", help="do the first N rewrites only")
    add("--debug-counter", action="append", default=[], metavar="NAME=RANGES",
        help="of PASS, PASS:PATTERN or * make only these tries, counted from 0, as 'cse=0-4:7'")  # fmt: skip
    opt_check.add_work(add)
    add("--crash-reproducer", metavar="FILE",
        help="when a pass or the target fails, leave the IR before it and what was to be run in this file")  # fmt: skip
    add("--watch", action="store_true", help="run again whenever a file changes, and show how the result changed")


def _add_output(add: _Add) -> None:
    add(
        "-t",
        "--target",
        default="mlir",
        metavar="TARGET",
        help="mlir (default), kernel, mlir-upstream, llvm-ir, asm, obj, onnx, ...",
    )
    add(
        "--target-cpu",
        metavar="CPU",
        help="the machine for llvm-ir, asm, obj: host (default), x86-64-v2, -v3, -v4, aarch64, or a CPU of LLVM's",
    )
    add("--target-features", metavar="LIST", help="its features, as '+avx2,+fma'")
    add("--target-triple", metavar="TRIPLE", help="its triple, as 'aarch64-unknown-linux-gnu'")
    add("--debug-info", action="store_true", help="llvm-ir, asm, obj: with the lines of the source, for perf and gdb")
    add("-o", "--output", default="-", metavar="FILE", help="where the result goes (default: standard output)")
    add("--generic", "--print-op-generic", dest="generic", action="store_true", help="print MLIR's generic form")
    add("--locations", "--print-debuginfo", dest="locations", action="store_true", help="print locations")
    add("--elide-constants", type=_natural, metavar="N",
        help="print constants of more than N elements (16) as '__elided__'; IR dumps do so anyway")  # fmt: skip
    add("--view", metavar="FILE", help="draw the graph of the result: FILE.svg or FILE.html")
    add(
        "--explore",
        metavar="FILE.html",
        help="a page with every step of the pipeline: IR, changes, times, who made what",
    )


def _add_printing(add: _Add) -> None:
    add("--print-ir-before", action="append", default=[], metavar="PASS[,PASS]",
        help="print the IR before these passes; --print-ir-before alone, before every pass")  # fmt: skip
    add("--print-ir-after", action="append", default=[], metavar="PASS[,PASS]",
        help="print the IR after these passes; --print-ir-after alone, after every pass")  # fmt: skip
    add("--print-ir-before-all", action="store_true", help="print the IR before every pass")
    add("--print-ir-after-all", action="store_true", help="print the IR after every pass")
    add("--print-ir-after-change", action="store_true", help="print the IR after every pass that changed it")
    add("--print-ir-after-failure", action="store_true", help="print the IR when a pass fails")
    add("--print-ir-diff", action="store_true", help="print what every pass changed, as a diff")
    add("--print-ir-tree-dir", metavar="DIR", help="put these dumps into numbered files of a folder")
    add("--print-ir-full", action="store_true", help="dump large constants, too")


def _add_reports(add: _Add) -> None:
    add("--timing", "--time-report", dest="timing", choices=["tree", "list", "json", "chrome"], metavar="FORM",
        help="how long everything took: tree (default), list, json, or chrome, a trace for Perfetto")  # fmt: skip
    add("--timing-output", metavar="FILE", help="where the times go")
    add("--statistics", choices=["text", "json"], metavar="json", help="print what the passes counted")
    add("--memory", action="store_true", help="print the memory in use after each pass, and the peak")
    add("--remarks", action="append", default=[], metavar="KIND[,KIND]",
        help="print what passes remark, of these kinds (as 'fusion'), or all")  # fmt: skip
    add("--trace-rewrites", action="append", default=[], metavar="PASS[,PASS]",
        help="print each rewrite: number, pass and pattern, op, place, what it made")  # fmt: skip
    add("--print-debug-counters", action="store_true", help="print how often each pattern fired, for --debug-counter")
    opt_check.add_reports(add)
    add("--debug", action="store_true", help="show Python tracebacks")


def _add_instead(add: _Add) -> None:
    add("--list-passes", choices=["own", "all", "json"], metavar="all",
        help="list the passes with their options; =all, those of xDSL too; =json, for programs")  # fmt: skip
    add("--help-pass", metavar="PASS", help="explain a pass: its cases, its promise, its options")
    add("--show-dialects", action="store_true", help="list the dialects")
    add("--list-targets", action="store_true", help="list the targets")
    add("--dump-pass-pipeline", action="store_true", help="print the passes that would run, one a line")
    add("--complete", choices=["bash", "zsh", "fish"], metavar="SHELL",
        help="print completions for a shell: eval \"$(sardonyx-opt --complete bash)\"")  # fmt: skip
    add("--version", action="store_true", help="print the version")
    add("-h", "--help", action="help", help="print this")


def _natural(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"'{text}' is no number from 0")
    return int(text)


_MLIR_NAMES = {
    "--mlir-elide-elementsattrs-if-larger": "--elide-constants",
    "--mlir-pass-pipeline-crash-reproducer": "--crash-reproducer",
    "--mlir-pass-statistics": "--statistics",
}


def _own_name(argument: str, known: Container[str]) -> str:
    """Our name of an option of mlir-opt's: `--mlir-timing` is `--timing`."""
    name, equals, value = argument.partition("=")
    if name in known or not name.startswith("--mlir-"):
        return argument
    ours = _MLIR_NAMES.get(name, "--" + name.removeprefix("--mlir-"))
    return f"{ours}{equals}{value}" if ours in known else argument


def parse_arguments(args: Sequence[str]) -> argparse.Namespace:
    """Parse the command line.

    Raises:
        UsageError: It is wrong.
        SystemExit: After --help.
    """
    parser = build_parser()
    given = [_own_name(arg, parser.known) for arg in args]
    given = [f"{arg}={_ATTACHED[arg]}" if arg in _ATTACHED else arg for arg in given]
    options = parser.parse_args(given)
    options.arguments = tuple(args)
    options.pipeline = ",".join(pipeline_text(text) for text in options.pipeline if text.strip())
    for name in ("print_ir_before", "print_ir_after", "remarks", "trace_rewrites"):
        setattr(options, name, frozenset(n for names in getattr(options, name) for n in names.split(",")))
    if options.print_ir_before_all:
        options.print_ir_before |= {"*"}
    if options.print_ir_after_all:
        options.print_ir_after |= {"*"}
    return options


def pipeline_text(given: str) -> str:
    """What `-p` was given: a pipeline, or the file that `@` names, in which `#` begins a comment and lines may end
    anywhere.

    Raises:
        UsageError: The file cannot be read.
    """
    if not given.startswith("@"):
        return given
    try:
        with open(given[1:], encoding="utf-8") as file:
            lines = [line.partition("#")[0].strip() for line in file]
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"sardonyx-opt: error: cannot read the pipeline's file '{given[1:]}': {reason}\n") from error
    return " ".join(line for line in lines if line).rstrip(",")
