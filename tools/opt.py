"""`sardonyx-opt`: reads a graph, runs passes over it, and writes it in the form of a target.

Standard output carries the result and nothing else; IR dumps, times, statistics and diagnostics go to standard error.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from sardonyx.errors import InvalidArgumentError, SardonyxError
from sardonyx.tools.diagnostics import (
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_USAGE,
    as_error,
    close_stdout,
    exit_code,
    render,
)
from sardonyx.tools.opt_options import UsageError, parse_arguments

if TYPE_CHECKING:
    from sardonyx.tools.modules import Loaded
    from sardonyx.tools.opt_targets import Output, PrintOptions, Result
    from sardonyx.tools.text import Text


def run(args: Sequence[str], stdin: TextIO, stdout: TextIO, stderr: TextIO) -> int:
    """Run the driver on the given streams; returns the exit status."""
    try:
        with contextlib.redirect_stdout(stdout):  # --help prints there
            options = parse_arguments(args)
    except UsageError as error:
        stderr.write(str(error))
        return EXIT_USAGE
    except SystemExit as stop:
        return int(stop.code or 0)
    driver = _Driver(options, stdin, stdout, stderr)
    try:
        return driver.run()
    except BrokenPipeError:
        return EXIT_OK  # the reader had enough
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except UsageError as error:
        stderr.write(str(error))
        return EXIT_USAGE
    except Exception as error:  # noqa: BLE001 -- the outermost frame: what comes so far is reported, as a defect
        return driver.report(error)


class _Driver:
    def __init__(self, options: argparse.Namespace, stdin: TextIO, stdout: TextIO, stderr: TextIO) -> None:
        self.options = options
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.begin = time.perf_counter()
        self.source = "<stdin>" if options.input == "-" else str(options.input)

    def report(self, error: Exception) -> int:
        """Print an error; returns its exit status."""
        known = as_error(error)
        render(known, self.stderr, self.source, self.options.debug)
        return exit_code(known)

    def run(self) -> int:
        options = self.options
        if options.version:
            from sardonyx import __version__

            self._print(f"sardonyx-opt {__version__}\n")
            return EXIT_OK
        for path in options.load:
            from sardonyx.passes.registry import load_file

            load_file(path)
        if options.list_passes:
            from sardonyx.tools.opt_report import pass_list

            self._print(pass_list(everything=options.list_passes == "all"))
            return EXIT_OK
        from sardonyx.tools.opt_targets import TARGETS

        if options.list_targets:
            self._print("".join(f"{name:10s} {entry.summary}\n" for name, entry in TARGETS.items()))
            return EXIT_OK
        with _as_usage():
            self._check()
        self._preload()
        parts = self._parts()
        results: list[Result] = []
        status = EXIT_OK
        for part in parts:
            try:
                results.append(self._one(part))
            except Exception as error:  # noqa: BLE001 -- reported, and the other parts have their turn
                status = max(status, self.report(error))
        if status == EXIT_OK or options.output == "-":
            self._write(results)
        return status

    def _check(self) -> None:
        """What is wrong with the command line is told before any work is done."""
        from sardonyx.passes import registry
        from sardonyx.passes.pipeline import parse
        from sardonyx.tools.modules import kind_of
        from sardonyx.tools.opt_targets import TARGETS

        options = self.options
        if options.target not in TARGETS:
            raise registry.unknown("target", options.target, TARGETS, f"targets: {', '.join(TARGETS)}")
        self.target = TARGETS[options.target]
        self.kind = kind_of(options.input)
        if options.signature is not None and self.kind != "python":
            raise InvalidArgumentError("--signature is for a function of a Python file", hint="write FILE.py:FUNCTION")
        for option, given in (("--weights", options.weights), ("--split-input-file", options.split_input_file)):
            if given and self.kind != "mlir":
                raise InvalidArgumentError(f"{option} is for MLIR text, and '{options.input}' is none")
        if self.target.binary and options.output == "-" and self.stdout.isatty():
            raise InvalidArgumentError(f"target '{options.target}' writes bytes", hint="give a file with -o")
        passes = parse(options.pipeline)
        printed = (options.print_ir_before | options.print_ir_after) - {"*"}
        known = {*registry.entries(), *(p.name for p in passes)} if printed else ()
        for name in printed:
            if name not in known:
                raise registry.unknown("pass", name, known, "see --list-passes")

    def _preload(self) -> None:
        """Import what the work needs, so that --timing tells it from the work."""
        import sardonyx.passes.context
        import sardonyx.tools.modules

        if self.kind == "onnx":
            import sardonyx.frontend.onnx.model
        if self.kind == "python":
            import sardonyx.frontend.trace  # noqa: F401
        self.loading = time.perf_counter() - self.begin

    # ---- input
    def _parts(self) -> list[Text | None]:
        """The texts to work on; one None for an input that is no text."""
        from sardonyx.tools.text import Text, read_text, split_text

        if self.kind != "mlir":
            return [None]
        if self.options.input == "-" and self.stdin.isatty():
            self.stderr.write("sardonyx-opt: reading MLIR text from the terminal; --help explains the command\n")
        text = Text(read_text(self.options.input, self.stdin), self.source)
        return list(split_text(text)) if self.options.split_input_file else [text]

    def _read(self, text: Text | None) -> Loaded:
        from sardonyx.passes.context import make_context
        from sardonyx.tools import modules
        from sardonyx.tools.text import verify_located

        self.context = make_context(self.options.allow_unregistered_dialect)
        if text is not None:
            return modules.load_text(self.context, text, self.options.input, self.options.weights)
        if self.kind == "onnx":
            loaded = modules.load_onnx(self.options.input)
        else:
            loaded = modules.load_function(self.options.input, self.options.signature, self.stderr)
        verify_located(loaded.module, "the imported graph is invalid", self.source)
        return loaded

    # ---- work
    def _one(self, text: Text | None) -> Result:
        from sardonyx.passes.pipeline import PassManager
        from sardonyx.tools.opt_report import IRPrinting, Timing, print_statistics, print_timing
        from sardonyx.tools.opt_targets import PrintOptions, Result, print_module
        from sardonyx.tools.text import verify_located

        options = self.options
        machine = (options.target_cpu, options.target_features, options.target_triple)
        style = PrintOptions(options.generic, options.locations, machine)
        times = [time.perf_counter()]
        loaded = self._read(text)
        times.append(time.perf_counter())
        printing = IRPrinting(
            self.stderr,
            lambda m: print_module(m, style),
            options.print_ir_before,
            options.print_ir_after,
            options.print_ir_after_change,
            options.print_ir_after_failure,
        )
        given = {weight.key for weight in loaded.store}
        manager = PassManager(options.pipeline, [printing], verify_each=options.verify_each)
        report = manager.run(loaded.module, self.context)
        times.append(time.perf_counter())
        if report.changed and not options.verify_each:
            try:
                verify_located(loaded.module, "the passes left invalid IR")
            except InvalidArgumentError as error:
                error.code_name = "INTERNAL"
                error.hint = "--verify-each names the pass"
                raise
        times.append(time.perf_counter())
        content, phases = self._emit(loaded, style)
        result = Result(content, loaded, frozenset(given))
        if options.statistics:
            print_statistics(report, self.stderr)
        if options.timing:
            times.append(time.perf_counter())
            reading, _, verifying, output = (b - a for a, b in zip(times, times[1:]))
            print_timing(report, Timing(self.loading, reading, verifying, output), self.stderr)
            self.stderr.write(phases)
        return result

    def _emit(self, loaded: Loaded, style: PrintOptions) -> tuple[Output, str]:
        """The target's content, and where the time went, where that is asked for and there is more than one phase."""
        if not self.options.timing or self.options.target == "mlir":
            return self.target.emit(loaded.module, loaded.store, style), ""
        from sardonyx.backends.llvm.runtime.phases import time_report

        with time_report("output") as phases:
            content = self.target.emit(loaded.module, loaded.store, style)
        return content, f"{phases}\n" if phases.inner else ""

    # ---- output
    def _write(self, results: Sequence[Result]) -> None:
        from sardonyx.tools.opt_targets import weights_note, write_result

        name = self.options.target
        if self.target.binary:
            if len(results) != 1:
                if not results:
                    return
                raise InvalidArgumentError(f"target '{name}' writes one module, and the input has {len(results)}")
            content = results[0].content
        else:
            on_stdout = name == "mlir" and self.options.output == "-"
            content = "// -----\n".join(r.text + (weights_note(r) if on_stdout else "") for r in results)
        if self.options.output == "-":
            self._print(content)
        else:
            write_result(name, results, content, Path(self.options.output), self.stderr)

    def _print(self, content: str | bytes) -> None:
        """Write to standard output, as UTF-8 whatever the locale.

        Raises:
            BrokenPipeError: Nobody reads it any more.
            SardonyxError: It cannot be written.
        """
        try:
            self.stdout.flush()
            buffer = getattr(self.stdout, "buffer", None)
            if buffer is not None:
                buffer.write(content.encode() if isinstance(content, str) else content)
            elif isinstance(content, str):
                self.stdout.write(content)
            else:
                raise InvalidArgumentError(f"target '{self.options.target}' writes bytes", hint="give a file with -o")
            self.stdout.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise InvalidArgumentError(f"cannot write to standard output: {error.strerror}") from error


@contextlib.contextmanager
def _as_usage() -> Iterator[None]:
    """What is raised inside is the fault of the command line."""
    try:
        yield
    except SardonyxError as error:
        notes = "".join(f"  {note}\n" for note in error.notes)
        hint = f"  hint: {error.hint}\n" if error.hint else ""
        raise UsageError(f"sardonyx-opt: error: {error.message}\n{notes}{hint}") from error


def main() -> None:
    """The console script."""
    gc.disable()  # one command, one graph: collecting costs a fifth of the time and frees nothing of size
    sys.exit(close_stdout(run(sys.argv[1:], sys.stdin, sys.stdout, sys.stderr)))


if __name__ == "__main__":
    main()
