"""`sardonyx-opt`: reads a graph, runs passes over it, and writes it in the form of a target.

Standard output carries the result and nothing else; IR dumps, times, statistics and diagnostics go to standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from sardonyx.errors import InvalidArgumentError, SardonyxError
from sardonyx.tools.diagnostics import EXIT_INTERNAL, EXIT_OK, EXIT_USAGE, exit_code, render

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from sardonyx.dialects.weights import WeightStore

EPILOG = """examples:
  sardonyx-opt graph.mlir -p compose-transposes,remove-dead-nodes
  sardonyx-opt model.onnx -p fold-constants -t kernel
  sardonyx-opt model.py:forward --signature 'x: f32[batch,37]' -t onnx -o forward.onnx
  cat graph.mlir | sardonyx-opt -p simplify --print-ir-after-change --timing

exit status: 0 success, 1 the input, a pass or the output failed, 2 the command line is wrong, 70 a defect"""


class _UsageError(Exception):
    """The command line is wrong; the message is complete."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{self.format_usage()}{self.prog}: error: {message}\n")


def build_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="sardonyx-opt",
        description="Read a graph, run passes over it, and write it in the form of a target.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        exit_on_error=False,
    )
    add = parser.add_argument
    add("input", nargs="?", default="-", help="FILE.mlir, FILE.onnx, FILE.py:FUNCTION, or - for standard input (MLIR)")
    add("-o", "--output", default="-", metavar="FILE", help="where the result goes (default: standard output)")
    add("-p", "--pass-pipeline", "--passes", dest="pipeline", default="", metavar="PIPELINE",
        help="passes to run, as 'name,name{option=value}' or 'builtin.module(...)'")  # fmt: skip
    add("-t", "--target", default="mlir", metavar="TARGET", help="mlir (default), kernel, llvm-ir, asm, obj, onnx")
    add("--signature", metavar="TEXT", help="the inputs of a Python function, as 'x: f32[batch,37], y: i64[]'")
    add("--load", action="append", default=[], metavar="FILE.py", help="load passes and dialects from a Python file")
    add("--weights", metavar="FILE", help="a safetensors file with the bytes of the weights that the text names")
    add(
        "--list-passes",
        nargs="?",
        const="own",
        choices=["own", "all"],
        help="list the passes with their options, and stop (all: those of xDSL too)",
    )
    add("--list-targets", action="store_true", help="list the targets, and stop")
    add("--print-ir-before", nargs="?", const="*", action="append", default=[], metavar="PASS",
        help="print the IR before this pass (without PASS: before every pass)")  # fmt: skip
    add("--print-ir-after", nargs="?", const="*", action="append", default=[], metavar="PASS",
        help="print the IR after this pass (without PASS: after every pass)")  # fmt: skip
    add("--print-ir-before-all", action="store_true", help="print the IR before every pass")
    add("--print-ir-after-all", action="store_true", help="print the IR after every pass")
    add("--print-ir-after-change", action="store_true", help="print the IR after every pass that changed it")
    add("--print-ir-after-failure", action="store_true", help="print the IR when a pass fails")
    add("--timing", action="store_true", help="print how long everything took")
    add("--statistics", action="store_true", help="print what the passes counted")
    add("--verify-each", action="store_true", help="verify the IR after every pass that changed it")
    add("--generic", "--print-op-generic", dest="generic", action="store_true", help="print MLIR's generic form")
    add("--locations", "--print-debuginfo", dest="locations", action="store_true", help="print locations")
    add("--split-input-file", action="store_true", help="treat parts between '// -----' lines as files of their own")
    add("--allow-unregistered-dialect", action="store_true", help="accept ops of unknown dialects")
    add("--debug", action="store_true", help="show Python tracebacks")
    add("--version", action="store_true", help="print the version, and stop")
    return parser


def run(args: Sequence[str], stdin: TextIO, stdout: TextIO, stderr: TextIO) -> int:
    """Run the driver on the given streams; returns the exit status."""
    try:
        with contextlib.redirect_stdout(stdout):  # --help prints there
            options = build_parser().parse_args(list(args))
    except (_UsageError, argparse.ArgumentError) as error:
        message = str(error)
        stderr.write(message if message.endswith("\n") else f"sardonyx-opt: error: {message}\n")
        return EXIT_USAGE
    except SystemExit as stop:
        return int(stop.code or 0)
    try:
        return _Driver(options, stdin, stdout, stderr).run()
    except SardonyxError as error:
        if options.debug:
            raise
        render(error, stderr, None if options.input == "-" else options.input)
        return exit_code(error)
    except BrokenPipeError:
        return EXIT_OK
    except Exception as error:
        if options.debug:
            raise
        stderr.write(f"error: {type(error).__name__}: {error} [INTERNAL]\n  hint: --debug shows where\n")
        return EXIT_INTERNAL


class _Driver:
    def __init__(self, options: argparse.Namespace, stdin: TextIO, stdout: TextIO, stderr: TextIO) -> None:
        self.options = options
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr

    def run(self) -> int:
        options = self.options
        if options.version:
            from sardonyx import __version__

            self.stdout.write(f"sardonyx-opt {__version__}\n")
            return EXIT_OK
        self._load_plugins()
        if options.list_passes:
            self._list_passes()
            return EXIT_OK
        from sardonyx.tools.opt_targets import TARGETS

        if options.list_targets:
            for name, entry in TARGETS.items():
                self.stdout.write(f"{name:10s} {entry.summary}\n")
            return EXIT_OK
        if options.target not in TARGETS:
            raise _unknown_target(options.target, list(TARGETS))
        self.target = TARGETS[options.target]
        if self.target.binary and options.output == "-" and getattr(self.stdout, "buffer", None) is None:
            raise InvalidArgumentError(f"target '{options.target}' writes bytes", hint="give a file with -o")
        from sardonyx.passes.context import make_context
        from sardonyx.passes.pipeline import parse

        self.context = make_context(options.allow_unregistered_dialect)
        parse(options.pipeline)  # a wrong name or option is told before any work
        parts = self._parts()
        results = [self._one(text) for text in parts]
        self._write(results)
        return EXIT_OK

    def _load_plugins(self) -> None:
        if not self.options.load:
            return
        from sardonyx.passes.registry import load_file

        for path in self.options.load:
            load_file(path)

    def _list_passes(self) -> None:
        from sardonyx.passes import registry
        from sardonyx.passes.pipeline import describe_options

        for name, entry in sorted(registry.entries().items()):
            if entry.origin == "xdsl" and self.options.list_passes == "own":
                continue
            self.stdout.write(f"{name}\n")
            if entry.summary:
                self.stdout.write(f"    {entry.summary}\n")
            if entry.origin == "sardonyx":
                options = describe_options(entry.load())
                if options != "none":
                    self.stdout.write(f"    options: {options}\n")

    # ---- input
    def _parts(self) -> list[str | None]:
        """The texts to work on; one None for an input that is no text."""
        from sardonyx.tools.modules import kind_of, read_text

        if kind_of(self.options.input) != "mlir":
            return [None]
        text = read_text(self.options.input, self.stdin)
        if not self.options.split_input_file:
            return [text]
        parts: list[str | None] = []
        lines = 0
        for part in text.split("\n// -----"):
            body = part if not parts else part.partition("\n")[2]
            parts.append("\n" * lines + body)  # so that lines count from the top of the file
            lines += part.count("\n") + 1
        return parts

    def _read(self, text: str | None) -> tuple[ModuleOp, WeightStore]:
        from sardonyx.tools import modules

        source = self.options.input
        if text is None:
            if modules.kind_of(source) == "onnx":
                graph = modules.load_onnx(source)
            else:
                graph = modules.load_function(source, self.options.signature)
            return graph.module, graph.store
        module = modules.parse_text(self.context, text, "<stdin>" if source == "-" else source)
        store = modules.store_of(None)
        from sardonyx.dialects.weights_file import bind_weights

        bind_weights(module, store, source if source != "-" else None, self.options.weights)
        return module, store

    # ---- work
    def _one(self, text: str | None) -> Any:
        from sardonyx.passes.pipeline import PassManager
        from sardonyx.tools.opt_report import IRPrinting, print_statistics, print_timing
        from sardonyx.tools.opt_targets import PrintOptions, print_module

        options = self.options
        begin = time.perf_counter()
        module, store = self._read(text)
        parsed = time.perf_counter()
        style = PrintOptions(options.generic, options.locations)
        printing = IRPrinting(
            self.stderr,
            lambda m: print_module(m, style),
            frozenset(options.print_ir_before) | (frozenset("*") if options.print_ir_before_all else frozenset()),
            frozenset(options.print_ir_after) | (frozenset("*") if options.print_ir_after_all else frozenset()),
            options.print_ir_after_change,
            options.print_ir_after_failure,
        )
        manager = PassManager(options.pipeline, [printing], verify_each=options.verify_each)
        report = manager.run(module, self.context)
        passed = time.perf_counter()
        result = self.target.emit(module, store, style)
        if options.statistics:
            print_statistics(report, self.stderr)
        if options.timing:
            print_timing(report, parsed - begin, time.perf_counter() - passed, self.stderr)
        self.module, self.store = module, store
        return result

    # ---- output
    def _write(self, results: Sequence[Any]) -> None:
        from sardonyx.dialects.weights_file import write_whole

        if self.target.binary:
            if len(results) != 1:
                raise InvalidArgumentError(f"target '{self.options.target}' takes one module")
            content = results[0]
        else:
            content = "// -----\n".join(results)
        if self.options.output == "-":
            if isinstance(content, bytes):
                self.stdout.buffer.write(content)  # pyright: ignore[reportAttributeAccessIssue]
            else:
                self.stdout.write(content)
            return
        if self.options.target == "mlir" and len(results) == 1:
            from sardonyx.dialects.weights_file import save_weights, weights_path

            save_weights(self.module, weights_path(self.options.output))
        write_whole(self.options.output, content if isinstance(content, bytes) else content.encode())


def _unknown_target(name: str, known: Sequence[str]) -> InvalidArgumentError:
    import difflib

    near = difflib.get_close_matches(name, known, 1)
    hint = f"did you mean '{near[0]}'?" if near else f"targets: {', '.join(known)}"
    return InvalidArgumentError(f"there is no target '{name}'", hint=hint)


def main() -> None:
    """The console script."""
    sys.exit(run(sys.argv[1:], sys.stdin, sys.stdout, sys.stderr))


if __name__ == "__main__":
    main()
