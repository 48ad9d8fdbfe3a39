"""`sardonyx golden freeze|check`: regression tests of exported models."""

from __future__ import annotations

import argparse
from typing import Any, TextIO

from sardonyx.tools.arguments import UsageError
from sardonyx.tools.console import Progress, print_json, print_table
from sardonyx.tools.diagnostics import EXIT_CHECK, EXIT_OK
from sardonyx.tools.objects import UserFiles
from sardonyx.tools.verify import named, print_verification
from sardonyx.tools.verify_options import add_verify_options, missed_metrics, verify_arguments

EPILOG = """examples:
  sardonyx golden freeze net.onnx -o net.golden.npz                  after the executions agree among each other
  sardonyx golden freeze net.py:forward net.onnx -o net.golden.npz   after the model agrees with its source
  sardonyx golden check net.golden.npz net.onnx                      after a new export, or with new versions

exit status: 0 frozen, or all agree; 6 not verified, or drifted; 1 a file cannot be read; 2 the command line is wrong"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("action", choices=("freeze", "check"), help="make a golden test, or run one")
    parser.add_argument("files", nargs="+", metavar="FILE", help="freeze: [SOURCE] MODEL; check: GOLDEN MODEL")
    parser.add_argument("-o", "--output", metavar="FILE.npz", help="where freeze writes (MODEL.golden.npz)")
    add_verify_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Any, stdout: TextIO) -> int:
    return _freeze(options, stdout) if options.action == "freeze" else _check(options, stdout)


def _freeze(options: Any, stdout: TextIO) -> int:
    from pathlib import Path

    from sardonyx.frontend.onnx.inspect_model import size_text
    from sardonyx.frontend.verify.golden import freeze
    from sardonyx.frontend.verify.verify import verify

    if len(options.files) > 2:
        raise UsageError("golden freeze takes MODEL, or SOURCE and MODEL")
    files = UserFiles()
    *sources, model = options.files
    source = files.source(sources[0]) if sources else None
    with Progress(options.json) as progress:
        found = named(verify(source, model, progress=progress, **verify_arguments(options, files)), sources)
    missed = missed_metrics(found, options, files)
    if not found.ok or missed:
        if options.json:
            print_json({"ok": False, "verification": found.to_json(), "missed_metrics": missed}, stdout)
        else:
            print_verification(found, stdout, missed)
            stdout.write("not frozen: the model is not verified\n")
        return EXIT_CHECK
    golden = freeze(found, model)
    target = options.output or str(Path(model).with_suffix(".golden.npz"))
    golden.save(target)
    if options.json:
        print_json({"ok": True, "file": target, "cases": len(golden.cases), "about": dict(golden.about)}, stdout)
    else:
        count = len(golden.cases)
        size = size_text(Path(target).stat().st_size)
        stdout.write(f"{target}: {count} case{'s' * (count != 1)} of {model}, {size}\n")
    return EXIT_OK


def _check(options: Any, stdout: TextIO) -> int:
    from sardonyx.frontend.verify.golden import Golden, versions
    from sardonyx.frontend.verify.sources import file_digest

    if len(options.files) != 2:
        raise UsageError("golden check takes GOLDEN and MODEL")
    golden = Golden.load(options.files[0])
    model = options.files[1]
    with Progress(options.json) as progress:
        progress(f"running {model}")
        found = golden.check(model, options.ep or ["cpu"], options.only)
    ok = bool(found) and all(d.ok for d in found)
    same = file_digest(model) == golden.about.get("model_sha256")
    then = golden.about.get("versions", {})
    changed = {k: (then.get(k), v) for k, v in versions().items() if then.get(k) != v}
    if options.json:
        data = {"ok": ok, "same_file": same, "versions_changed": changed, "results": [d.to_json() for d in found]}
        print_json(data, stdout)
        return EXIT_OK if ok else EXIT_CHECK
    rows = []
    for drift in found:
        error = max((d.max_abs for d in drift.differences), default=0.0)
        use = max((d.use for d in drift.differences), default=0.0)
        rows.append([drift.case, drift.execution, "passed" if drift.ok else "failed", f"{error:.2e}", f"{use:.2g}"])
    stdout.write(f"{model} ({'the frozen file' if same else 'another file than the frozen one'})\n")
    print_table(("inputs", "execution", "result", "max |error|", "of limit"), rows, stdout, ("max |error|", "of limit"))
    for name, (before, now) in changed.items():
        stdout.write(f"version: {name} was {before}, is {now}\n")
    for drift in found:
        if drift.ok:
            continue
        stdout.write(f"drifted: {drift.execution}, {drift.case}\n")
        for line in [drift.error] if drift.error else []:
            stdout.write(f"  {line}\n")
        for difference in drift.differences:
            if not difference.ok:
                stdout.write(f"  output '{difference.name}': {difference.reason}\n")
        if drift.culprit is not None:
            stdout.write(f"  first difference: {drift.culprit}\n")
    stdout.write("the golden outputs hold\n" if ok else "the golden outputs do NOT hold\n")
    return EXIT_OK if ok else EXIT_CHECK
