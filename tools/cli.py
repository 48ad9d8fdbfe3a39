"""`sardonyx`: the command line. A sub-command is a module with `add_arguments(parser)` and `run(options, streams)`.

Sub-commands are imported when they are called, so that `sardonyx --help` loads nothing heavy.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import sys
from collections.abc import Sequence
from typing import Any, NoReturn, TextIO

from sardonyx.tools.arguments import UsageError, check_places
from sardonyx.tools.diagnostics import (
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_USAGE,
    as_error,
    close_stdout,
    exit_code,
    render,
)

COMMANDS = {
    "export": ("sardonyx.tools.export", "a function, a torch module or a model as a checked and verified ONNX file"),
    "verify": ("sardonyx.tools.verify", "whether a model computes what its source does, at all sizes, everywhere"),
    "golden": ("sardonyx.tools.golden", "regression tests of exported models: freeze inputs and outputs, check them"),
    "diff": ("sardonyx.tools.diff", "what distinguishes two models, in structure and in numbers"),
    "inspect": ("sardonyx.tools.inspect_command", "what is in a model: sizes, dims, operators, opsets, files"),
    "optimize": ("sardonyx.tools.optimize", "simplify an ONNX model, and say what was done"),
    "ops": ("sardonyx.tools.ops", "a model's operators against what a runtime supports, and what closes the gaps"),
    "report": ("sardonyx.tools.report", "all there is to say of a model, as an HTML page and as Markdown"),
    "view": ("sardonyx.tools.view", "a picture of a model that one can move, zoom and search"),
    "bench": ("sardonyx.tools.bench", "how fast a model is natively, beside onnxruntime"),
    "profile": ("sardonyx.tools.profile", "where a model's time goes natively, by node and by kernel"),
    "run": ("sardonyx.tools.run", "run a model, natively, by the reference or by onnxruntime"),
    "blame": ("sardonyx.tools.blame", "where a value comes from, and which passes and patterns made it"),
    "new-pass": ("sardonyx.tools.new_pass", "write a pass, its lit file and its test, which run as they are"),
    "compile": ("sardonyx.tools.compile", "a model as a library, object file or assembly that runs without Python"),
    "demo": ("sardonyx.tools.demo", "trace, rewrite, run and export a real model, and compare the executions"),
}
"""Name → the module that runs it, and one line on it; a new sub-command is one line here."""

EPILOG = """examples:
  sardonyx demo
  sardonyx export net.py:forward -o net.onnx --dim batch=1,8
  sardonyx verify net.py:reference net.onnx
  sardonyx --complete bash > ~/.local/share/bash-completion/completions/sardonyx

`sardonyx COMMAND --help` explains a command; passes are run by `sardonyx-opt`.
exit status: 0 success, 1 the command failed, 2 the command line is wrong, 6 a check failed, 70 a defect,
130 interrupted"""


class _UsageError(Exception):
    """The command line is wrong; the message is complete."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _UsageError(f"{self.format_usage()}{self.prog}: error: {message}\n")


def build_parser(chosen: str | None = None) -> argparse.ArgumentParser:
    """The parser; only the chosen sub-command's arguments are filled in."""
    from sardonyx import __version__

    parser = _Parser(
        prog="sardonyx",
        description="A small machine-learning compiler: trace, rewrite, run natively, export to ONNX.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"sardonyx {__version__}")
    parser.add_argument("--complete", choices=("bash", "zsh", "fish"), help="print the completions for a shell")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", parser_class=_Parser)
    for name, (module, summary) in COMMANDS.items():
        sub = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        sub.add_argument("--debug", action="store_true", help="show Python tracebacks")
        if name == chosen:
            importlib.import_module(module).add_arguments(sub)
    return parser


def run(args: Sequence[str], stdout: TextIO, stderr: TextIO) -> int:
    """Run the command on the given streams; returns the exit status."""
    chosen = next((a for a in args if a in COMMANDS), None)
    parser = build_parser(chosen)
    try:
        with contextlib.redirect_stdout(stdout):  # --help prints there
            options: Any = parser.parse_args(list(args))
    except _UsageError as error:
        stderr.write(str(error))
        return EXIT_USAGE
    except SystemExit as stop:
        return int(stop.code or 0)
    if options.complete is not None:
        from sardonyx.tools.complete import script

        stdout.write(script(options.complete))
        return EXIT_OK
    if options.command is None:
        parser.print_help(stderr)
        return EXIT_USAGE
    try:
        check_places(options)
        with contextlib.redirect_stdout(stderr):  # what users' files print is not the result
            return importlib.import_module(COMMANDS[options.command][0]).run(options, stdout)
    except BrokenPipeError:
        return EXIT_OK  # the reader had enough
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 -- the outermost frame: what comes so far is reported
        known = as_error(error)
        render(known, stderr, debug=options.debug)
        return EXIT_USAGE if isinstance(known, UsageError) else exit_code(known)


def main() -> None:
    """The console script."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without our rules and dashes is no reason to fail
    try:
        status = run(sys.argv[1:], sys.stdout, sys.stderr)
    except KeyboardInterrupt:  # before the command itself ran: modules are still being imported
        status = EXIT_INTERRUPTED
    sys.exit(close_stdout(status))


if __name__ == "__main__":
    main()
