"""`sardonyx diff`: what distinguishes two models, in structure (names ignored) and in numbers."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any, TextIO

from sardonyx.errors import InvalidArgumentError
from sardonyx.tools.console import Progress, print_json, print_table
from sardonyx.tools.diagnostics import EXIT_CHECK, EXIT_OK
from sardonyx.tools.objects import UserFiles
from sardonyx.tools.verify_options import add_verify_options, missed_metrics, verify_arguments

if TYPE_CHECKING:
    from sardonyx.frontend.verify.structure import Entry, Structure

EPILOG = """examples:
  sardonyx diff before.onnx after.onnx
  sardonyx diff before.onnx after.onnx --structure
  sardonyx diff before.onnx after.onnx --json | jq .numbers.ok

exit status: 0 equal in structure, or in numbers within the limits; 6 the numbers differ (with --structure: the
structure differs); 1 a file cannot be read; 2 the command line is wrong"""
MOST = 40
"""How many nodes of a kind are listed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("files", nargs=2, metavar="MODEL.onnx", help="the two models")
    parser.add_argument("--structure", action="store_true", help="compare the structure alone, run nothing")
    add_verify_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Any, stdout: TextIO) -> int:
    from sardonyx.frontend.onnx.model import OnnxModel
    from sardonyx.frontend.verify.structure import compare_structure, weight_changes
    from sardonyx.frontend.verify.verify import verify

    first, second = (OnnxModel.open(path).compile() for path in options.files)
    structure = compare_structure(first, second)
    weights = weight_changes(first, second, structure.changed)
    numbers, reason, missed = None, "", list[str]()
    if not options.structure and not structure.equal:
        with Progress(options.json) as progress:
            try:
                files = UserFiles()
                arguments = verify_arguments(options, files)
                arguments["only"] = options.only or ["reference", "onnxruntime"]
                numbers = verify(options.files[0], options.files[1], progress=progress, **arguments)
                missed = missed_metrics(numbers, options, files)
            except InvalidArgumentError as error:
                reason = str(error)
        if numbers is not None and all(r.status == "refused" for r in numbers.results):
            reason, numbers = numbers.results[0].error if numbers.results else "there are no inputs", None
    same_numbers = numbers is not None and numbers.ok and not missed
    if options.json:
        data: dict[str, Any] = {"ok": structure.equal or same_numbers, "structure": structure.to_json()}
        data |= {"weights": weights, "numbers": None if numbers is None else numbers.to_json()}
        print_json({**data, "missed_metrics": missed, "reason": reason}, stdout)
    else:
        _print(options.files, structure, weights, stdout)
        if reason:
            stdout.write(f"the numbers cannot be compared: {reason}\n")
        if numbers is not None:
            from sardonyx.tools.verify import print_verification

            print_verification(numbers, stdout, missed)
            stdout.write(f"the numbers {'agree' if same_numbers else 'do NOT agree'} within the limits\n")
    return EXIT_OK if structure.equal or same_numbers else EXIT_CHECK


def _print(files: list[str], found: Structure, weights: dict[str, float], stdout: TextIO) -> None:
    if found.equal:
        stdout.write(f"equal but for names: {found.same} nodes\n")
        return
    for text in found.interface:
        stdout.write(f"interface: {text}\n")
    for before, after in found.changed[:MOST]:
        stdout.write(f"changed: {before}\n      -> {after}\n")
        if after.node in weights:
            stdout.write(f"         its constants differ by up to {weights[after.node]:.4g}\n")
        elif before.operator == after.operator and before.attributes == after.attributes:
            stdout.write("         its constants, or the order of its operands, differ\n")
    _print_entries("-", files[0], found.removed, stdout)
    _print_entries("+", files[1], found.added, stdout)
    stdout.write(f"{found.same} nodes are the same")
    if any(found.behind):
        stdout.write(f"; {found.behind[0]} and {found.behind[1]} more differ only in what they read")
    stdout.write("\n")
    if found.operators:
        rows = [[name, str(a), str(b), f"{b - a:+d}"] for name, (a, b) in found.operators.items()]
        print_table(("operator", "first", "second", "change"), rows, stdout, ("first", "second", "change"))


def _print_entries(sign: str, file: str, entries: tuple[Entry, ...], stdout: TextIO) -> None:
    for entry in entries[:MOST]:
        stdout.write(f"{sign} {entry}\n")
    if len(entries) > MOST:
        stdout.write(f"{sign} and {len(entries) - MOST} more of {file}\n")
