"""`sardonyx-reduce`: the smallest case of a defect: the shortest pipeline, the smallest module, the fewest rewrites.

It prints a test: MLIR text with its RUN line. What is looked for stays the same all the way, so that one defect does
not turn into another.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from sardonyx.dialects.files import write_whole
from sardonyx.errors import InvalidArgumentError
from sardonyx.tools.diagnostics import EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE, as_error, close_stdout, exit_code, render
from sardonyx.tools.opt_options import UsageError

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp
    from xdsl.passes import ModulePass

    from sardonyx.tools.modules import Loaded
    from sardonyx.tools.reduce_oracles import Oracle

EPILOG = """\
oracles:
  crash      a pass raises, or the target of -t does, or the process dies
  verify     a pass leaves invalid IR
  numeric    a pass changes values by more than it promises (see sardonyx-opt --check-passes)
  native     native code gives other values than the reference
  ort        onnxruntime gives other values than the reference for the exported model, or refuses it
  PROGRAM    a file that is run with the case's file as its argument: status 0 means interesting;
             SARDONYX_PIPELINE and SARDONYX_FUEL hold the pipeline and how many rewrites are wanted

examples:
  sardonyx-reduce model.onnx --oracle numeric -p optimize -o case.mlir
  sardonyx-reduce graph.mlir --oracle crash -p 'simplify,cse' -t llvm-ir
  sardonyx-reduce model.onnx --oracle ort

exit status: 0 reduced, 1 nothing of the kind is there or the input is wrong, 2 the command line is wrong,
70 a defect"""


@dataclass
class Reduction:
    """What is left: the module, the passes, how many rewrites it takes (None: all), and what is found."""

    module: ModuleOp
    passes: list[ModulePass]
    rewrites: int | None
    finding: str
    tried: int


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command line's arguments."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("input", metavar="INPUT", help="FILE.mlir, FILE.onnx, FILE.py:FUNCTION, or - for MLIR text on standard input")
    add("--oracle", required=True, metavar="ORACLE", help="crash, verify, numeric, native, ort, or a program")
    add("-p", "--pass-pipeline", "--passes", dest="pipeline", default="", metavar="PIPELINE", help="the passes")
    add("-t", "--target", metavar="TARGET", help="the target that crashes, for --oracle crash")
    add("--inputs", type=_count, default=1, metavar="N", help="with how many inputs functions run (1)")
    add("--seed", type=int, default=0, metavar="N", help="of these inputs")
    add("--seconds", type=float, default=300.0, metavar="S", help="stop after so many seconds with what there is (300)")
    add("--signature", metavar="TEXT", help="the inputs of a Python function, as 'x: f32[batch,37], y: i64[]'")
    add("--weights", metavar="FILE", help="a safetensors file with the bytes of the weights that MLIR text names")
    add("--load", action="append", default=[], metavar="FILE.py", help="load passes and dialects from a Python file")
    add("--allow-unregistered-dialect", action="store_true", help="accept ops of unknown dialects")
    add("-o", "--output", default="-", metavar="FILE", help="where the test goes (default: standard output)")
    add("--quiet", action="store_true", help="say nothing on the way")
    add("--debug", action="store_true", help="show Python tracebacks")


def _count(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text):
        raise argparse.ArgumentTypeError(f"'{text}' is no number from 1")
    return int(text)


def run(options: argparse.Namespace, stdout: TextIO, stdin: TextIO | None = None, stderr: TextIO | None = None) -> int:
    """Reduce and print the test; returns the exit status.

    Raises:
        UsageError: The command line names a pass or an oracle that is not there, or a file that cannot be written.
    """
    source: TextIO = stdin or sys.stdin
    told: TextIO = stderr or sys.stderr
    from sardonyx.passes.context import make_context
    from sardonyx.passes.pipeline import format, parse
    from sardonyx.passes.registry import load_file
    from sardonyx.tools.opt_driver import as_usage
    from sardonyx.tools.reduce_oracles import find_oracle

    for path in options.load:
        load_file(path)
    with as_usage("sardonyx-reduce"):
        passes = parse(options.pipeline)
        output = Path(options.output)
        if options.output != "-" and (output.is_dir() or not output.parent.is_dir()):  # told now, not in five minutes
            raise InvalidArgumentError(f"'{output}' cannot be written: no such directory, or one itself")
    ctx = make_context(options.allow_unregistered_dialect)
    loaded = _load(options, ctx, source, told)
    with as_usage("sardonyx-reduce"):
        oracle = find_oracle(options.oracle, ctx, options.inputs, loaded.store, options.target, options.seed)
    begin = time.monotonic()
    found = reduce(loaded.module, passes, oracle, options.seconds, io.StringIO() if options.quiet else told)
    text = test_text(found, oracle, options.oracle, options.load)
    if options.output == "-":
        stdout.write(text)
    else:
        write_whole(options.output, text.encode())
    if not options.quiet:
        ops = sum(1 for _ in found.module.walk()) - 1
        rewrites = f", {found.rewrites} rewrite{'s' * (found.rewrites > 1)}" if found.rewrites else ""
        told.write(
            f"{found.finding}\n  {ops} ops, pipeline '{format(found.passes)}'{rewrites}; "
            f"{found.tried} cases tried in {time.monotonic() - begin:.1f} s\n"
        )
    return EXIT_OK


def reduce(
    module: ModuleOp, passes: Sequence[ModulePass], oracle: Oracle, seconds: float, progress: TextIO
) -> Reduction:
    """Find the smallest case.

    Raises:
        InvalidArgumentError: The oracle finds nothing to begin with.
    """
    from sardonyx.passes.reducer import Reducer

    oracle.prepare()
    finding = oracle.find(module, passes)
    if finding is None:
        raise InvalidArgumentError(
            "there is nothing to reduce: the oracle finds nothing in the input", hint="--inputs=9 tries more"
        )
    progress.write(f"found: {finding}\n")
    deadline = time.monotonic() + seconds
    chosen, tried = _shorter(module, list(passes), oracle, finding)
    module, chosen = _behind_the_first(module, chosen, oracle, finding)
    while True:
        reducer = Reducer(lambda m, p=chosen: oracle.find(m, p) == finding, deadline - time.monotonic())
        module = reducer.reduce(module)
        tried += reducer.tried
        progress.write(f"{sum(1 for _ in module.walk()) - 1} ops after {tried} cases\n")
        shorter, more = _shorter(module, chosen, oracle, finding)
        tried += more
        if len(shorter) == len(chosen) or time.monotonic() > deadline:
            break
        chosen = shorter
    return Reduction(module, chosen, _fewest_rewrites(module, chosen, oracle, finding), finding, tried)


def _shorter(module: ModuleOp, passes: list[ModulePass], oracle: Oracle, finding: str) -> tuple[list[ModulePass], int]:
    """The passes that it takes, and how many pipelines were tried."""
    from sardonyx.passes.reducer import ddmin

    tried = 0

    def holds(places: list[int]) -> bool:
        nonlocal tried
        tried += 1
        return oracle.find(module, [passes[i] for i in places]) == finding

    return [passes[i] for i in ddmin(range(len(passes)), holds)], tried


def _behind_the_first(
    module: ModuleOp, passes: list[ModulePass], oracle: Oracle, finding: str
) -> tuple[ModuleOp, list[ModulePass]]:
    """Begin with what the passes before the last one make, if the last one alone shows it then."""
    from sardonyx.passes.pipeline import PassManager

    for count in range(len(passes) - 1, 0, -1):
        later = module.clone()
        with contextlib.suppress(Exception):  # the passes are what is suspected
            PassManager(passes[:count], check=0).run(later, oracle.ctx)
            later.verify()
            if oracle.find(later, passes[count:]) == finding:
                return later, passes[count:]
    return module, passes


def _fewest_rewrites(module: ModuleOp, passes: list[ModulePass], oracle: Oracle, finding: str) -> int | None:
    """How many rewrites it takes; None where that makes no difference."""
    from sardonyx.passes.checked import Fuel
    from sardonyx.passes.pipeline import PassManager

    if not passes:
        return None
    fuel = Fuel(1 << 30)
    try:
        PassManager(passes, listener=fuel, check=0).run(module.clone(), oracle.ctx)
    except Exception:  # noqa: BLE001 -- it counts as far as it comes
        fuel.used += 1
    good, bad = -1, fuel.used
    if oracle.find(module, passes, bad) != finding:
        return None
    while bad - good > 1:
        middle = (good + bad) // 2
        if oracle.find(module, passes, middle) == finding:
            bad = middle
        else:
            good = middle
    return bad


def test_text(found: Reduction, oracle: Oracle, name: str, loaded: Sequence[str] = ()) -> str:
    """The test that shows it again."""
    from sardonyx.passes.pipeline import format
    from sardonyx.passes.reproducer import reproducer_text

    words = [f"--load {shlex.quote(path)}" for path in loaded]
    words += [f"-p '{format(found.passes)}'"] if found.passes else []
    fails = name in ("crash", "verify", "numeric")
    lines = [found.finding]
    if name in ("native", "ort"):
        lines.append(f"sardonyx-reduce %s --oracle {name} shows it")
    if found.rewrites and fails:
        many = "1 rewrite" if found.rewrites == 1 else f"{found.rewrites} rewrites"
        lines.append(f"It takes {many}: --fuel={found.rewrites} stops behind the wrong one.")
    words += [oracle.arguments()]
    return reproducer_text(found.module, " ".join(filter(None, words)), lines, expect_failure=fails)


def _load(options: argparse.Namespace, ctx: object, stdin: TextIO, stderr: TextIO) -> Loaded:
    from xdsl.context import Context

    from sardonyx.tools import modules
    from sardonyx.tools.text import Text, read_text

    assert isinstance(ctx, Context)
    kind = modules.kind_of(options.input)
    if kind == "onnx":
        return modules.load_onnx(options.input)
    if kind == "python":
        return modules.load_function(options.input, options.signature, stderr)
    if kind == "frontend":
        return modules.load_other(options.input, stderr)
    name = "<stdin>" if options.input == "-" else options.input
    text = Text(read_text(options.input, stdin), name)
    return modules.load_text(ctx, text, options.input, options.weights)


def command(args: Sequence[str], stdin: TextIO, stdout: TextIO, stderr: TextIO) -> int:
    """Run the command on the given streams; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="sardonyx-reduce", description="Make the smallest case of a defect of a pass, a target or native code."
    )
    add_arguments(parser)
    try:
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            options = parser.parse_args(list(args))
    except SystemExit as stop:
        return EXIT_USAGE if stop.code else EXIT_OK
    try:
        return run(options, stdout, stdin, stderr)
    except BrokenPipeError:
        return EXIT_OK  # the reader had enough
    except UsageError as error:
        stderr.write(str(error))
        return EXIT_USAGE
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except Exception as error:  # noqa: BLE001 -- the outermost frame: what comes so far is reported
        known = as_error(error)
        render(known, stderr, options.input, options.debug)
        return exit_code(known)


def main() -> None:
    """The console script."""
    sys.exit(close_stdout(command(sys.argv[1:], sys.stdin, sys.stdout, sys.stderr)))


if __name__ == "__main__":
    main()
