"""`sardonyx ops`: the operators of a model against what a runtime supports."""

from __future__ import annotations

import argparse
from typing import Any, TextIO

from sardonyx.tools.arguments import UsageError
from sardonyx.tools.console import print_json, print_table
from sardonyx.tools.diagnostics import EXIT_CHECK, EXIT_OK

EPILOG = """examples:
  sardonyx ops model.onnx                                 what is in it, and what Sardonyx runs natively
  sardonyx ops model.onnx --target onnxruntime            asked for real, node by node
  sardonyx ops model.onnx --target onnxruntime:cuda
  sardonyx ops model.onnx --target tensorrt@17            by the table of TensorRT, at most opset 17
  sardonyx ops model.onnx --target openvino --fix -o fixed.onnx

--fix decomposes operators, lowers the opset and casts dtypes that the target lacks; the result is held against the
model before it is written.
exit status: 0 no gap (what is merely restricted is for you to check), 6 gaps, or the fixed model does not agree,
1 the model cannot be read or stated, 2 the command line is wrong"""
MOST = 60


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("file", metavar="MODEL.onnx")
    parser.add_argument("--target", action="append", default=[], metavar="NAME[@OPSET]", help="what it is to run on")
    parser.add_argument("--fix", action="store_true", help="close the gaps that can be: lower opset, decompose, cast")
    parser.add_argument(
        "--no-verify", action="store_true", help="with --fix: write without holding it against the model"
    )
    parser.add_argument("-o", "--output", metavar="FILE.onnx", help="where --fix writes")
    parser.add_argument("--list-targets", action="store_true", help="print the names of the targets, and stop")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Any, stdout: TextIO) -> int:
    from sardonyx.frontend.onnx.model import OnnxModel
    from sardonyx.frontend.onnx.targets import close_gaps, find_gaps, targets

    if options.list_targets:
        stdout.write("".join(f"{t}\n" for t in targets()))
        return EXIT_OK
    if options.fix and (not options.output or len(options.target) != 1):
        raise UsageError("--fix takes one --target, and -o FILE.onnx")
    model = OnnxModel.open(options.file)
    done: list[str] = []
    found = None
    if options.fix:
        model, done = close_gaps(model, options.target[0])
        found = None if options.no_verify else _verified(options.file, model)
        if found is not None and not found.ok:
            return _not_written(found, done, options.json, stdout)
        model.save(options.output)
    reports = [find_gaps(model, target) for target in options.target]
    ok = all(r.ok for r in reports)
    native = _native(model)
    if options.json:
        data = {
            "fixed": done,
            "verified": None if found is None else found.ok,
            "operators": dict(model.inspect().operators),
            "native": native,
        }
        print_json({**data, "targets": [r.to_json() for r in reports]}, stdout)
        return EXIT_OK if ok else EXIT_CHECK
    for text in done:
        stdout.write(f"fixed: {text}\n")
    if found is not None:
        passed = sum(r.status == "passed" for r in found.results)
        stdout.write(f"verified: {passed} runs of {options.output} agree with {options.file}\n")
    rows = [[str(count), name] for name, count in model.inspect().operators.items()]
    print_table(("nodes", "operator"), rows, stdout, ("nodes",))
    stdout.write(f"natively by Sardonyx: {'all of them' if not native else 'all but these'}\n")
    for text in native[:MOST]:
        stdout.write(f"  {text}\n")
    for report in reports:
        stdout.write(f"\n{report.target} ({report.source})\n")
        rows = grouped(report.gaps)
        if rows:
            print_table(("", "operator", "nodes", "why", "fix"), rows[:MOST], stdout)
        if len(rows) > MOST:
            stdout.write(f"and {len(rows) - MOST} more\n")
        count = sum(g.kind == "unsupported" for g in report.gaps)
        stdout.write(f"{count} gap{'s' * (count != 1)}\n" if count else "no gap\n")
    if any(g.fix for r in reports for g in r.gaps) and not options.fix:
        stdout.write("--fix -o FILE.onnx closes those with a fix\n")
    return EXIT_OK if ok else EXIT_CHECK


def _verified(file: str, model: Any) -> Any:
    """The fixed model, held against the one that it was made from."""
    import tempfile
    from pathlib import Path

    from sardonyx.frontend.verify.verify import verify

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fixed.onnx"
        model.save(path)
        return verify(file, path)


def _not_written(found: Any, done: list[str], as_json: bool, stdout: TextIO) -> int:
    if as_json:
        print_json({"fixed": done, "verified": False, "verification": found.to_json()}, stdout)
        return EXIT_CHECK
    from sardonyx.tools.verify import print_verification

    stdout.write("".join(f"fixed: {text}\n" for text in done))
    print_verification(found, stdout)
    stdout.write("the fixed model does NOT agree with the model; nothing was written\n")
    return EXIT_CHECK


def grouped(gaps: Any) -> list[list[str]]:
    """Gaps alike in one row, with the first nodes."""
    groups: dict[tuple[str, str, str, str], list[str]] = {}
    for gap in gaps:
        groups.setdefault((gap.kind, gap.operator, gap.reason, gap.fix), []).append(gap.node)
    rows = []
    for (kind, operator, reason, fix), nodes in groups.items():
        shown = ", ".join(n for n in nodes[:3] if n)
        more = f" and {len(nodes) - 3} more" if len(nodes) > 3 else ""
        rows.append([kind, operator, shown + more, reason, fix])
    return rows


def _native(model: Any) -> list[str]:
    """The nodes without a native form, with the reason."""
    from sardonyx.backends.llvm.fallback import find_fallbacks
    from sardonyx.dialects import locations

    graph = model.compile()
    return [f"{locations.describe(op.location) or op.name}: {why}" for op, why in find_fallbacks(graph.module).items()]
