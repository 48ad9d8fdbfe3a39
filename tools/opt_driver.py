"""One run of `sardonyx-opt`: from the options and the streams to the result and the exit status."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from sardonyx.errors import InvalidArgumentError, SardonyxError
from sardonyx.tools import opt_check
from sardonyx.tools.diagnostics import (
    EXIT_DIAGNOSTICS,
    EXIT_FAILURE,
    EXIT_OK,
    EXIT_OUTPUT,
    EXIT_PASS,
    as_error,
    exit_code,
    render,
)
from sardonyx.tools.opt_options import UsageError

if TYPE_CHECKING:
    from sardonyx.passes.base import Remark
    from sardonyx.passes.pipeline import Instrumentation, PassManager, PipelineReport
    from sardonyx.tools.modules import Loaded
    from sardonyx.tools.opt_diagnostics import Diagnostic
    from sardonyx.tools.opt_reproducer import Reproducer
    from sardonyx.tools.opt_targets import Result
    from sardonyx.tools.text import Text

    Finish = Callable[[PipelineReport], object]


class Driver:
    """Reads, runs the passes, writes; reports every failure where it happens."""

    def __init__(self, options: argparse.Namespace, stdin: TextIO, stdout: TextIO, stderr: TextIO) -> None:
        self.options = options
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.begin = time.perf_counter()
        self.source = "<stdin>" if options.input == "-" else str(options.input)
        self.stage = EXIT_FAILURE
        """The exit status of what fails now."""
        self.came: list[Diagnostic] | None = [] if options.verify_diagnostics else None
        """With --verify-diagnostics: the diagnostics of the part that is worked on."""

    def report(self, error: Exception) -> int:
        """Print an error (or keep it for --verify-diagnostics); returns its exit status."""
        known = as_error(error)
        if self.came is not None and known.code_name != "INTERNAL":
            from sardonyx.tools.opt_diagnostics import of_error

            self.came += of_error(known, self.source)
            return EXIT_OK
        render(known, self.stderr, self.source, self.options.debug)
        return exit_code(known, self.stage)

    def run(self) -> int:
        """Do it all; returns the exit status.

        Raises:
            UsageError: The command line is wrong.
        """
        with as_usage():
            self._check()
        self._preload()
        results: list[Result] = []
        status = EXIT_OK
        for number, text in enumerate(self._parts()):
            self.stage = EXIT_FAILURE
            status = max(status, self._part(text, number, results))
        if self.came is not None:
            return status
        if status == EXIT_OK or self.options.output == "-":
            self.stage = EXIT_OUTPUT
            self._write(results)
        return status

    def _part(self, text: Text | None, number: int, results: list[Result]) -> int:
        """Work on one part; what it gives goes to `results`. Other parts have their turn even where this one fails."""
        if self.came is None:
            try:
                results.append(self._one(text, number))
            except Exception as error:  # noqa: BLE001 -- reported here
                return self.report(error)
            return EXIT_OK
        from sardonyx.tools import opt_diagnostics

        expected = [] if text is None else opt_diagnostics.read_expectations(text)
        self.came.clear()
        status = EXIT_OK
        try:
            self._one(text, number)
        except Exception as error:  # noqa: BLE001
            status = self.report(error)
        good = opt_diagnostics.check(expected, self.came, self.source, self.stderr)
        return status or (EXIT_OK if good else EXIT_DIAGNOSTICS)

    # ---- before the work
    def _check(self) -> None:
        """What is wrong with the command line is told before any work is done."""
        from sardonyx.passes import registry
        from sardonyx.passes.pipeline import parse
        from sardonyx.tools.modules import kind_of
        from sardonyx.tools.opt_targets import find_target

        options = self.options
        self.target = find_target(options.target)
        self.kind = kind_of(options.input)
        if options.signature is not None and self.kind != "python":
            raise InvalidArgumentError("--signature is for a function of a Python file", hint="write FILE.py:FUNCTION")
        for option, given in (("--weights", options.weights), ("--split-input-file", options.split_input_file),
                              ("--verify-diagnostics", options.verify_diagnostics)):  # fmt: skip
            if given and self.kind != "mlir":
                raise InvalidArgumentError(f"{option} is for MLIR text, and '{options.input}' is none")
        if self.target.binary and options.output == "-" and self.stdout.isatty():
            raise InvalidArgumentError(f"target '{options.target}' writes bytes", hint="give a file with -o")
        for option, given, endings in (("--view", options.view, (".svg", ".html")),
                                       ("--explore", options.explore, (".html",))):  # fmt: skip
            if given is not None and not given.endswith(endings):
                raise InvalidArgumentError(f"{option} writes {' or '.join(endings)}, and '{given}' is neither")
        tree = options.print_ir_tree_dir
        if tree is not None and Path(tree).exists() and not Path(tree).is_dir():
            raise InvalidArgumentError(f"--print-ir-tree-dir writes into a directory, and '{tree}' is a file")
        self.passes = parse(options.pipeline)
        opt_check.check_explained(options, [p.name for p in self.passes])
        self.counters = []
        if options.debug_counter:
            from sardonyx.tools.opt_rewrites import parse_counter

            self.counters = [parse_counter(text) for text in options.debug_counter]
        printed = options.print_ir_before | options.print_ir_after | options.trace_rewrites
        printed |= {counter.name.partition(":")[0] for counter in self.counters}
        printed -= {"*"}
        known = {*registry.entries(), *(p.name for p in self.passes)} if printed else ()
        for name in printed:
            if name not in known:
                raise registry.unknown("pass", name, known, "see --list-passes")

    def _preload(self) -> None:
        """Import what the work needs, so that --timing tells it from the work."""
        import sardonyx.passes.context
        import sardonyx.tools.modules
        from sardonyx.tools.opt_timing import Timeline

        if self.kind == "onnx":
            import sardonyx.frontend.onnx.model
        if self.kind == "python":
            import sardonyx.frontend.trace  # noqa: F401
        self.timeline = Timeline(self.begin)
        self.timeline.end(self.timeline.begin("load modules", self.begin))

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
        from sardonyx.tools.text import invalid_ops, verify_located

        options = self.options
        self.context = make_context(options.allow_unregistered_dialect)
        if text is not None and self.came is None:
            return modules.load_text(self.context, text, options.input, options.weights)
        if text is not None:  # all that is wrong, not only what is found first
            loaded = modules.load_text(self.context, text, options.input, options.weights, verify=False)
            *others, last = [None, *invalid_ops(loaded.module, "", self.source)]
            for error in others:
                if error is not None:
                    self.report(error)
            if last is not None:
                raise last
            return loaded
        if self.kind == "onnx":
            loaded = modules.load_onnx(options.input)
        elif self.kind == "frontend":
            loaded = modules.load_other(options.input, self.stderr)
        else:
            loaded = modules.load_function(options.input, options.signature, self.stderr)
        verify_located(loaded.module, "the imported graph is invalid", self.source)
        return loaded

    # ---- work
    def _one(self, text: Text | None, number: int) -> Result:
        from sardonyx.tools.opt_print import PrintOptions
        from sardonyx.tools.opt_roundtrip import check_roundtrip
        from sardonyx.tools.opt_targets import Result
        from sardonyx.tools.text import verify_located

        options = self.options
        machine = (options.target_cpu, options.target_features, options.target_triple)
        self.style = PrintOptions(
            options.generic, options.locations, machine, options.elide_constants, options.debug_info
        )
        with self.timeline.span("read"):
            loaded = self._read(text)
        if options.verify_roundtrip:
            check_roundtrip(loaded.module, options.allow_unregistered_dialect, "the input")
        given = {weight.key for weight in loaded.store}
        self.stage = EXIT_PASS
        reproducer = self._reproducer()
        instruments, reports = self._instruments(number, reproducer, loaded)
        manager = self._manager(instruments)
        with self.timeline.span("passes"):
            report = manager.run(loaded.module, self.context)
        self._remark(report)
        if report.changed and not options.verify_each:
            with self.timeline.span("verify"):
                try:
                    verify_located(loaded.module, "the passes left invalid IR")
                except InvalidArgumentError as error:
                    error.code_name = "INTERNAL"
                    error.hint = "--verify-each names the pass"
                    raise
        if options.verify_roundtrip:
            check_roundtrip(loaded.module, options.allow_unregistered_dialect, "the result")
        self.stage = EXIT_OUTPUT
        if reproducer is not None:
            reproducer.before_output(loaded.module)
        result = Result(self._emit(loaded), loaded, frozenset(given))
        if reproducer is not None:
            reproducer.done()
        for finish in reports:
            finish(report)
        return result

    def _manager(self, instruments: Sequence[Instrumentation]) -> PassManager:
        from sardonyx.passes.pipeline import PassManager
        from sardonyx.tools.opt_rewrites import RewriteControl

        options = self.options
        marks = self.timeline.events if options.timing == "chrome" else None
        self.control = RewriteControl(self.stderr, options.fuel, self.counters, options.trace_rewrites, marks)
        controlled = options.fuel is not None or self.counters or options.trace_rewrites or options.print_debug_counters
        listener = self.control if controlled or marks is not None else None
        return PassManager(
            self.passes,
            instruments,
            verify_each=options.verify_each,
            listener=listener,
            keep_declines=bool(options.explain),
            check=opt_check.check_options(options),
        )

    def _reproducer(self) -> Reproducer | None:
        path = self.options.crash_reproducer
        if path is None:
            return None
        from sardonyx.tools.opt_reproducer import Reproducer

        return Reproducer(Path(path), self.options, self.passes)

    def _instruments(
        self, number: int, reproducer: Reproducer | None, loaded: Loaded
    ) -> tuple[list[Instrumentation], list[Finish]]:
        """What watches the passes, and what prints its report at the end. The clock is innermost."""
        from sardonyx.tools import opt_report
        from sardonyx.tools.opt_print import DUMP_ELIDES, IRPrinting, PrintOptions, Wanted
        from sardonyx.tools.opt_timing import MemoryReport

        options = self.options
        instruments: list[Instrumentation] = [] if reproducer is None else [reproducer]
        reports: list[Finish] = []
        folder = None if options.print_ir_tree_dir is None else Path(options.print_ir_tree_dir)
        wanted = Wanted(
            options.print_ir_before,
            options.print_ir_after,
            options.print_ir_after_change,
            options.print_ir_after_failure,
            options.print_ir_diff,
        )
        if wanted.nothing and folder is not None:
            wanted = Wanted(after=frozenset({"*"}), after_failure=True)
        if not wanted.nothing:
            elide = None if options.print_ir_full else options.elide_constants or DUMP_ELIDES
            style = PrintOptions(options.generic, options.locations, elide=elide)
            if folder is not None and options.split_input_file:
                folder /= f"part_{number:03d}"
            instruments.append(IRPrinting(self.stderr, style, wanted, folder))
        if options.memory:
            memory = MemoryReport()
            memory.note("(input)", loaded.module)
            instruments.append(memory)
            reports.append(lambda report: memory.print(self.stderr))
        if options.explore is not None:
            from sardonyx.tools.explorer import Recorder

            recorder = Recorder(loaded.module, self.source, Path(options.explore))
            instruments.append(recorder)
            reports.append(lambda report: recorder.write())
        if options.view is not None:
            from sardonyx.tools.graph_svg import write_view

            reports.append(lambda report: write_view(loaded.module, Path(options.view), self.source))
        if options.explain:
            reports.append(lambda report: opt_check.explain(options, report, self.stderr))
        if options.statistics is not None:
            reports.append(lambda report: opt_report.print_statistics(report, self.stderr, options.statistics))
        if options.print_debug_counters:
            reports.append(lambda report: self.control.print_counters(self.stderr))
        if options.timing is not None:
            reports.append(lambda report: self._times())
        return [*instruments, self.timeline], reports

    def _times(self) -> None:
        content = self.timeline.report(self.options.timing)
        if self.options.timing_output is None:
            self.stderr.write(content)
        else:
            from sardonyx.dialects.files import write_whole

            write_whole(self.options.timing_output, content.encode())

    def _remark(self, report: PipelineReport) -> None:
        """Print what passes remarked, as far as that is wanted; warnings in any case."""
        self.tell([remark for entry in report.passes for remark in entry.remarks])

    def tell(self, remarks: Sequence[Remark]) -> None:
        """Print remarks, or keep them for --verify-diagnostics."""
        kinds = self.options.remarks | {"warning"}
        for remark in remarks:
            if "*" not in kinds and remark.kind not in kinds:
                continue
            if self.came is not None:
                from sardonyx.tools.opt_diagnostics import of_remark

                self.came.append(of_remark(remark, self.source))
                continue
            where = remark.location or self.source
            what = "warning:" if remark.kind == "warning" else f"remark: [{remark.kind}]"
            self.stderr.write(f"{where}: {what} {remark.message}\n")

    def _emit(self, loaded: Loaded) -> str | bytes:
        """The target's content; where its phases are known, the times have them, and where it remarks, they come."""
        if self.options.remarks and self.options.target != "mlir":
            from sardonyx.backends.llvm.lowering.remarks import collecting

            with collecting() as remarks:
                content = self._emit_timed(loaded)
            self.tell(remarks)
            return content
        return self._emit_timed(loaded)

    def _emit_timed(self, loaded: Loaded) -> str | bytes:
        with self.timeline.span("output") as span:
            if self.options.timing is None or self.options.target == "mlir":
                return self.target.emit(loaded.module, loaded.store, self.style)
            from sardonyx.backends.llvm.runtime.phases import time_report

            with time_report("output") as phases:
                content = self.target.emit(loaded.module, loaded.store, self.style)
            self.timeline.add_phases(span, phases)
        return content

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
            write_stdout(self.stdout, content, name)
        else:
            write_result(name, results, content, Path(self.options.output), self.stderr)


@contextlib.contextmanager
def as_usage(prog: str = "sardonyx-opt") -> Iterator[None]:
    """What is raised inside is the fault of the command line."""
    try:
        yield
    except SardonyxError as error:
        notes = "".join(f"  {note}\n" for note in error.notes)
        hint = f"  hint: {error.hint}\n" if error.hint else ""
        raise UsageError(f"{prog}: error: {error.message}\n{notes}{hint}") from error


def write_stdout(stdout: TextIO, content: str | bytes, what: str = "mlir") -> None:
    """Write to standard output, as UTF-8 whatever the locale.

    Raises:
        BrokenPipeError: Nobody reads it any more.
        SardonyxError: It cannot be written.
    """
    try:
        stdout.flush()
        buffer = getattr(stdout, "buffer", None)
        if buffer is not None:
            buffer.write(content.encode() if isinstance(content, str) else content)
        elif isinstance(content, str):
            stdout.write(content)
        else:
            raise InvalidArgumentError(f"target '{what}' writes bytes", hint="give a file with -o")
        stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise InvalidArgumentError(f"cannot write to standard output: {error.strerror}") from error
