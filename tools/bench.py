"""`sardonyx bench`: how fast a model is natively, beside onnxruntime."""

from __future__ import annotations

import argparse
from typing import Any, TextIO

from sardonyx.tools.arguments import amount, count
from sardonyx.tools.console import Progress, print_json, print_table
from sardonyx.tools.diagnostics import EXIT_FAILURE, EXIT_OK
from sardonyx.tools.objects import UserFiles
from sardonyx.tools.verify_options import add_run_inputs

EPILOG = """examples:
  sardonyx bench model.onnx
  sardonyx bench model.onnx --dim batch=8 --threads 1
  sardonyx bench model.onnx --inputs in.npz --seconds 5 --json

The two are run in turns. Compare their ratio: on a machine that others use too, times alone say little.
exit status: 0 measured, 1 neither could be, or the model cannot be read, 2 the command line is wrong"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("file", metavar="MODEL.onnx")
    add_run_inputs(parser)
    parser.add_argument("--threads", type=count, metavar="N", help="how many threads each may use (all cores)")
    parser.add_argument("--seconds", type=amount, default=2.0, help="how long each is run in all (2)")
    parser.add_argument("--rounds", type=count, default=5, help="in how many turns (5)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Any, stdout: TextIO) -> int:
    from sardonyx.frontend.onnx.model import OnnxModel
    from sardonyx.frontend.verify.verify import cases_of
    from sardonyx.tools.measure import measure

    graph = OnnxModel.open(options.file).compile()
    case = cases_of(graph, UserFiles().inputs(options.inputs), options.dim, options.seed)[0]
    with Progress(options.json) as progress, progress.of_compilation():
        progress("measuring")
        found = measure(options.file, case.feeds, options.seconds, options.rounds, options.threads)
    if options.json:
        print_json({"dims": dict(case.binding), "timings": [t.to_json() for t in found]}, stdout)
    else:
        rows = timing_rows(found)
        sizes = ", ".join(f"{k}={v}" for k, v in case.binding.items())
        stdout.write(f"{options.file}{' at ' + sizes if sizes else ''}\n")
        print_table(TIMING_COLUMNS, rows, stdout, TIMING_COLUMNS[1:])
        for timing in found:
            if timing.error:
                stdout.write(f"not measured: {timing.execution}: {timing.error}\n")
    return EXIT_OK if any(t.runs for t in found) else EXIT_FAILURE


TIMING_COLUMNS = ("execution", "ready after", "one run", "fastest", "slowest", "to the native run")


def timing_rows(found: Any) -> list[list[str]]:
    """A row for each execution that was measured."""
    native = next((t.typical for t in found if t.execution == "native" and t.runs), None)
    rows = []
    for timing in found:
        if timing.runs:
            ratio = f"{timing.typical / native:.2f}x" if native else ""
            spread = [_time(min(timing.runs)), _time(max(timing.runs))]
            rows.append([timing.execution, _time(timing.ready), _time(timing.typical), *spread, ratio])
    return rows


def _time(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"
