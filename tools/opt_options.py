"""The command line of `sardonyx-opt`; loads nothing but argparse, so that --help is quick."""

from __future__ import annotations

import argparse
import difflib
import re
from collections.abc import Sequence
from typing import NoReturn

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
  1    the input, a pass or the output failed
  2    the command line is wrong: an option, pass or target that is not there
  70   a defect of a pass or of Sardonyx
  130  interrupted"""

# What stands for an option's value where none is given; a value is attached with '=' only, so that
# `--print-ir-after graph.mlir` does not take the file for the name of a pass.
_ATTACHED = {"--print-ir-before": "*", "--print-ir-after": "*", "--list-passes": "own"}


class UsageError(Exception):
    """The command line is wrong; the message is complete."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        hint = self._hint(message)
        raise UsageError(f"{self.prog}: error: {message}\n" + (f"  hint: {hint}\n" if hint else ""))

    def _hint(self, message: str) -> str:
        found = re.match(r"unrecognized arguments: (.*)", message)
        if found is None:
            return f"{self.prog} --help explains the options"
        first = found[1].split()[0].partition("=")[0]
        near = difflib.get_close_matches(first, self._option_string_actions, 1)
        if near and first != near[0]:
            return f"did you mean '{near[0]}'?"
        return f"it takes one input; {self.prog} --help explains the options"


def build_parser() -> argparse.ArgumentParser:
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
    add = parser.add_argument_group("input").add_argument
    add("--signature", metavar="TEXT", help="the inputs of a Python function, as 'x: f32[batch,37], y: i64[]'")
    add("--weights", metavar="FILE", help="a safetensors file with the bytes of the weights that MLIR text names")
    add("--load", action="append", default=[], metavar="FILE.py", help="load passes and dialects from a Python file")
    add("--allow-unregistered-dialect", action="store_true", help="accept ops of unknown dialects")
    add("--split-input-file", action="store_true", help="treat the parts between lines of '// -----' as files")
    add = parser.add_argument_group("work").add_argument
    add("-p", "--pass-pipeline", "--passes", dest="pipeline", action="append", default=[], metavar="PIPELINE",
        help="passes to run, as 'name,name{option=value}' or 'builtin.module(...)'; several are chained")  # fmt: skip
    add("--verify-each", action="store_true", help="verify the IR after every pass that changed it")
    add = parser.add_argument_group("output").add_argument
    add("-t", "--target", default="mlir", metavar="TARGET", help="mlir (default), kernel, llvm-ir, asm, obj, onnx")
    add(
        "--target-cpu",
        metavar="CPU",
        help="the machine for llvm-ir, asm, obj: host (default), x86-64-v2, -v3, -v4, aarch64, or a CPU of LLVM's",
    )
    add("--target-features", metavar="LIST", help="its features, as '+avx2,+fma'")
    add("--target-triple", metavar="TRIPLE", help="its triple, as 'aarch64-unknown-linux-gnu'")
    add("-o", "--output", default="-", metavar="FILE", help="where the result goes (default: standard output)")
    add("--generic", "--print-op-generic", dest="generic", action="store_true", help="print MLIR's generic form")
    add("--locations", "--print-debuginfo", dest="locations", action="store_true", help="print locations")
    add = parser.add_argument_group("on standard error").add_argument
    add("--print-ir-before", action="append", default=[], metavar="PASS[,PASS]",
        help="print the IR before these passes; --print-ir-before alone, before every pass")  # fmt: skip
    add("--print-ir-after", action="append", default=[], metavar="PASS[,PASS]",
        help="print the IR after these passes; --print-ir-after alone, after every pass")  # fmt: skip
    add("--print-ir-before-all", action="store_true", help="print the IR before every pass")
    add("--print-ir-after-all", action="store_true", help="print the IR after every pass")
    add("--print-ir-after-change", action="store_true", help="print the IR after every pass that changed it")
    add("--print-ir-after-failure", action="store_true", help="print the IR when a pass fails")
    add("--timing", "--time-report", dest="timing", action="store_true", help="print how long everything took")
    add("--statistics", action="store_true", help="print what the passes counted")
    add("--debug", action="store_true", help="show Python tracebacks")
    add = parser.add_argument_group("instead").add_argument
    add("--list-passes", choices=["own", "all"], metavar="all",
        help="list the passes with their options; --list-passes=all, those of xDSL too")  # fmt: skip
    add("--list-targets", action="store_true", help="list the targets")
    add("--version", action="store_true", help="print the version")
    add("-h", "--help", action="help", help="print this")
    return parser


def parse_arguments(args: Sequence[str]) -> argparse.Namespace:
    """Parse the command line.

    Raises:
        UsageError: It is wrong.
        SystemExit: After --help.
    """
    given = [f"{arg}={_ATTACHED[arg]}" if arg in _ATTACHED else arg for arg in args]
    options = build_parser().parse_args(given)
    options.pipeline = ",".join(text for text in options.pipeline if text.strip())
    options.print_ir_before = frozenset(n for names in options.print_ir_before for n in names.split(","))
    options.print_ir_after = frozenset(n for names in options.print_ir_after for n in names.split(","))
    if options.print_ir_before_all:
        options.print_ir_before |= {"*"}
    if options.print_ir_after_all:
        options.print_ir_after |= {"*"}
    return options
