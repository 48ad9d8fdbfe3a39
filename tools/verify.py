"""`sardonyx verify`: whether a model computes what its source does."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

from sardonyx.tools.arguments import UsageError
from sardonyx.tools.console import Progress, print_json, print_table
from sardonyx.tools.diagnostics import EXIT_CHECK, EXIT_OK
from sardonyx.tools.objects import UserFiles, is_object
from sardonyx.tools.verify_options import add_verify_options, asked_for, missed_metrics, verify_arguments

if TYPE_CHECKING:
    from sardonyx.frontend.verify.verify import CaseResult, Verification

EPILOG = """examples:
  sardonyx verify model.onnx                                the model's executions among each other
  sardonyx verify original.onnx optimised.onnx              a model against the one that it was made from
  sardonyx verify net.py:forward net.onnx --dim batch=1,8   a Python function over arrays, at two sizes
  sardonyx verify recorded.npz net.onnx --inputs in.npz     outputs that were recorded elsewhere
  sardonyx verify net.py:model net.onnx --certify           and write net.certificate.json
  sardonyx verify --certificate net.certificate.json        recompute every figure of a certificate

exit status: 0 all passed, 6 something failed (or, with --strict, was not tested), 1 a file cannot be read,
2 the command line is wrong"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("files", nargs="*", metavar="FILE", help="[SOURCE] MODEL.onnx")
    add_verify_options(parser)
    parser.add_argument("--strict", action="store_true", help="what could not be tested fails too")
    parser.add_argument("--save-worst", metavar="FILE.npz", help="write the inputs with the largest error there")
    parser.add_argument(
        "--certify", nargs="?", const="", metavar="FILE.json", help="write a certificate (MODEL.certificate.json)"
    )
    parser.add_argument("--certificate", metavar="FILE.json", help="recompute this certificate; needs no FILE")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Any, stdout: TextIO) -> int:
    if options.certificate is not None:
        return _check_certificate(options, stdout)
    if len(options.files) not in (1, 2):
        raise UsageError("verify takes MODEL, or SOURCE and MODEL", hint="see sardonyx verify --help")
    from sardonyx.frontend.verify.verify import verify

    files = UserFiles()
    *sources, model = options.files
    source = files.source(sources[0]) if sources else None
    arguments = verify_arguments(options, files)
    with Progress(options.json) as progress:
        found = named(verify(source, model, progress=progress, **arguments), sources)
    missed = missed_metrics(found, options, files)
    if options.save_worst and found.worst is not None:
        _save(options.save_worst, found.worst.arrays())
    ok = found.ok and not missed and not (options.strict and found.untested)
    if options.certify is not None:
        _certify(options, found, model, sources[0] if sources else None)
    if options.json:
        print_json({**found.to_json(), "ok": ok, "missed_metrics": missed}, stdout)
    else:
        print_verification(found, stdout, missed)
        stdout.write(_last_line(found, ok, options.strict))
    return EXIT_OK if ok else EXIT_CHECK


def named(found: Verification, sources: Sequence[str]) -> Verification:
    """The verification with the source called as on the command line."""
    return replace(found, source=sources[0]) if sources and is_object(sources[0]) else found


def print_verification(found: Verification, stdout: TextIO, missed: Sequence[str] = ()) -> None:
    """The table of a verification, then what is wrong."""
    stdout.write(f"{found.model}\nagainst {found.source}; tolerances for {found.limits.precision} arithmetic\n")
    rows = [result_row(result) for result in found.results]
    columns = ("dims", "execution", "result", "max |error|", "max rel.", "of limit", "argmax flips")
    print_table(columns, rows, stdout, right=columns[3:])
    for name in found.frozen:
        stdout.write(f"frozen: '{name}' is no dynamic dim of the model: it was exported for one size\n")
    told: set[str] = set()
    for result in found.failures:
        _print_failure(result, stdout, told)
    if len(found.failures) > len(told):
        stdout.write(f"and {len(found.failures) - len(told)} more failures like these\n")
    for text in dict.fromkeys(f"refused by the source: {r.error}" for r in found.results if r.status == "refused"):
        stdout.write(f"{text}\n  hint: name sizes that it takes (--dim), or give inputs (--inputs)\n")
    for execution, reason in found.untested.items():
        stdout.write(f"untested: {execution}: {reason}\n")
    for text in missed:
        stdout.write(f"metric: {text}\n")


def result_row(result: CaseResult) -> list[str]:
    """What the table of a verification says of a result."""
    sizes = ", ".join(f"{k}={v}" for k, v in result.binding.items()) or result.origin
    head = [sizes, result.execution, result.status]
    if not result.differences:
        return [*head, "", "", "", ""]
    worst = max(result.differences, key=lambda d: d.use)
    flips = [d for d in result.differences if d.flips is not None]
    shown = f"{sum(d.flips or 0 for d in flips)}/{sum(d.rows for d in flips)}" if flips else ""
    error = max(d.max_abs for d in result.differences)
    relative = max(d.max_rel for d in result.differences)
    return [*head, f"{error:.2e}", f"{relative:.2e}", f"{worst.use:.2g}", shown]


def _print_failure(result: CaseResult, stdout: TextIO, told: set[str]) -> None:
    """What is wrong with a result, unless the same was told of the execution before."""
    bad = [d.name for d in result.differences if not d.ok]
    same = f"{result.execution} {result.culprit and result.culprit.node} {bad}"
    if same in told:
        return
    told.add(same)
    sizes = ", ".join(f"{k}={v}" for k, v in result.binding.items()) or result.origin
    stdout.write(f"failed: {result.execution} at {sizes}\n")
    if result.error:
        stdout.write(f"  {result.error}\n")
    for difference in result.differences:
        if not difference.ok:
            stdout.write(f"  output '{difference.name}': {difference.reason}\n")
            if difference.worst is not None:
                index, expected, actual = difference.worst
                stdout.write(f"    worst at {list(index)}: expected {expected}, got {actual}\n")
    if result.culprit is not None:
        stdout.write(f"  first difference: {result.culprit}\n")


def _last_line(found: Verification, ok: bool, strict: bool) -> str:
    counts = {s: sum(r.status == s for r in found.results) for s in ("passed", "failed", "untested", "refused")}
    text = ", ".join(f"{n} {s}" for s, n in counts.items() if n)
    if not ok and not found.failures and strict and found.untested:
        text += "; --strict wants all executions tested"
    return f"{'verified' if ok else 'NOT verified'}: {text or 'nothing was tried'}\n"


def _save(path: str, arrays: dict[str, Any]) -> None:
    from sardonyx.frontend.verify.inputs import write_arrays

    write_arrays(path, {k: a for k, a in arrays.items() if a.dtype.kind not in "OV"})


def _certify(options: Any, found: Verification, model: str, source: str | None) -> None:
    from sardonyx.frontend.verify.certificate import default_path, write_certificate

    asked = asked_for(options, options.inputs)
    target = options.certify or default_path(model)
    write_certificate(target, found, model, source=source, asked=asked)


def _check_certificate(options: Any, stdout: TextIO) -> int:
    if options.files:
        raise UsageError("--certificate names the model itself; give no FILE beside it")
    from sardonyx.frontend.verify.certificate import check_certificate, other_versions

    files = UserFiles()
    with Progress(options.json) as progress:
        found, wrong = check_certificate(
            options.certificate,
            files.source,
            files.inputs,
            progress,
        )
    others = other_versions(options.certificate)
    if options.json:
        print_json({**found.to_json(), "ok": not wrong, "disagreements": wrong, "other_versions": others}, stdout)
    else:
        print_verification(found, stdout)
        if others:
            stdout.write(f"other versions: {'; '.join(others)}; figures may differ within the limits\n")
        for text in wrong:
            stdout.write(f"does not agree: {text}\n")
        stdout.write("the certificate holds\n" if not wrong else "the certificate does NOT hold\n")
    return EXIT_OK if not wrong else EXIT_CHECK
