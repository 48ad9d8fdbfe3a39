"""`sardonyx export`: a model from its source to a checked, verified and certified ONNX file, in one step."""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

from sardonyx.errors import SardonyxError
from sardonyx.tools.arguments import whole
from sardonyx.tools.console import Progress, print_json, print_table
from sardonyx.tools.diagnostics import EXIT_CHECK, EXIT_OK
from sardonyx.tools.objects import UserFiles
from sardonyx.tools.verify_options import add_verify_options, asked_for, missed_metrics, verify_arguments

EPILOG = """examples:
  sardonyx export net.py:forward -o net.onnx                 a traced function, with the signature that it carries
  sardonyx export net.py:forward -o net.onnx --signature 'x: f32[batch,37]'
  sardonyx export net.py:model -o net.onnx --inputs net.py:example --dynamic x=batch,_ --opset 18
                                                             a torch module, with example inputs
  sardonyx export net.py:forward -o net.onnx --strict --lint --dim batch=1,8,32

Opset, checker, strict shape inference, simplification, leftovers of torch, parity and certificate: each is a line of
what is printed. Nothing is written unless all of them pass.
exit status: 0 written, 6 a check failed (with --strict: or something would have been a warning), 1 the source cannot
be read or stated, 2 the command line is wrong"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("source", metavar="SOURCE", help="FILE.py:NAME, or a model: FILE.onnx")
    parser.add_argument("-o", "--output", metavar="FILE.onnx", required=True, help="the model")
    parser.add_argument("--opset", type=whole, default=0, metavar="N", help="the opset (21, or the source's own)")
    parser.add_argument("--signature", metavar="TEXT", help="of a function: 'x: f32[batch,37], y: i64[]'")
    parser.add_argument(
        "--dynamic",
        action="append",
        default=[],
        metavar="INPUT=NAMES",
        help="names of a torch input's dynamic dims, _ for a fixed one: x=batch,_,seq",
    )
    parser.add_argument("--external-data", action="store_true", default=None, help="weights beside the model")
    parser.add_argument("--no-optimize", action="store_true", help="leave the graph as it was traced")
    parser.add_argument("--no-verify", action="store_true", help="no parity, and so no certificate")
    parser.add_argument("--target", action="append", default=[], metavar="NAME[@OPSET]", help="must have no gap there")
    parser.add_argument("--strict", action="store_true", help="warnings are errors: frozen dims, what --lint finds")
    parser.add_argument(
        "--lint",
        action="store_true",
        help="report captured arrays, and shapes, branches and loops that became constants",
    )
    add_verify_options(parser)
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Any, stdout: TextIO) -> int:
    from sardonyx.tools.export_source import open_source

    files = UserFiles()
    with Progress(options.json) as progress:
        progress("tracing")
        source = open_source(options, files)
        steps: list[list[str]] = []
        warnings = list(source.warnings)
        if options.lint:
            from sardonyx.tools.lint import lint
            from sardonyx.tools.lint_source import traced_branches

            warnings += [*lint(source.graph), *(traced_branches(source.function) if source.function else ())]
        target = Path(options.output)
        with tempfile.TemporaryDirectory(prefix=".sardonyx-", dir=target.parent) as folder:
            draft = Path(folder) / target.name
            progress("writing")
            _write(source, draft, options)
            made = _inspect(source.graph, draft, steps)
            ok = _gaps(draft, options.target, steps)
            found = None
            if not options.no_verify:
                found = _verify(source, draft, options, files, progress)
                warnings += [f"'{n}' is no dynamic dim of the model: it is frozen" for n in found.frozen]
                warnings += _refused(found)
                passed = sum(r.status == "passed" for r in found.results)
                state = "passed" if found.ok else "failed"
                steps.append(["parity", state, f"{passed} of {len(found.results)} runs agree with {found.source}"])
                missed = missed_metrics(found, options, files)
                if options.metric:
                    steps.append(["metrics", "failed" if missed else "passed", "; ".join(missed or options.metric)])
                ok &= not missed
                ok &= found.ok or (bool(found.frozen) and not found.failures and not options.strict)
            ok &= not (options.strict and warnings)
            if ok:
                if found is not None and not source.reloads:
                    warnings.append("no certificate: with --signature nobody could recompute it; use the decorator")
                elif found is not None:
                    certificate = _certify(source, found, draft, options, made, warnings)
                    steps.append(["certificate", "passed", str(certificate.name)])
                _move(Path(folder), target.parent)
    if options.json:
        verification = None if found is None else found.to_json()
        data = {"ok": ok, "output": options.output if ok else None, "steps": steps, "warnings": warnings}
        print_json({**data, "made": made, "verification": verification}, stdout)
        return EXIT_OK if ok else EXIT_CHECK
    print_table(("step", "", ""), steps, stdout)
    if found is not None and not found.ok:
        from sardonyx.tools.verify import print_verification

        print_verification(found, stdout)
    for text in dict.fromkeys(warnings):
        stdout.write(f"{'error' if options.strict else 'warning'}: {text}\n")
    stdout.write(f"{options.output}\n" if ok else "nothing was written\n")
    return EXIT_OK if ok else EXIT_CHECK


def _write(source: Any, draft: Path, options: Any) -> None:
    """Write the model; an error names the place where it is to be."""
    try:
        source.write(draft, options)
    except SardonyxError as error:
        error.message = error.message.replace(str(draft), options.output)
        raise


def _inspect(graph: Any, draft: Path, steps: list[list[str]]) -> dict[str, Any]:
    """What was written: the export itself ran the checker and the strict inference."""
    from sardonyx.frontend.onnx.model import OnnxModel

    model = OnnxModel.open(draft)
    summary = model.inspect()
    steps.append(["opset", "passed", str(model.opset)])
    steps.append(["ONNX checker, strict shape inference", "passed", ""])
    steps.append(["nodes", "passed", f"{summary.nodes}, {len(graph.nodes())} in the source with inputs and constants"])
    steps.append(["inputs", "passed", "; ".join(summary.inputs)])
    steps.append(["outputs", "passed", "; ".join(summary.outputs)])
    return {
        "opset": model.opset,
        "nodes": summary.nodes,
        "nodes_of_source": len(graph.nodes()),
        "inputs": list(summary.inputs),
        "outputs": list(summary.outputs),
    }


def _gaps(draft: Path, targets: Sequence[str], steps: list[list[str]]) -> bool:
    """Operators that no runtime knows, and what the named targets lack."""
    from sardonyx.frontend.onnx.model import OnnxModel
    from sardonyx.frontend.onnx.targets import find_gaps, foreign_nodes

    model = OnnxModel.open(draft)
    foreign = foreign_nodes(model)
    shown = "none" if not foreign else ", ".join(f"{g.operator} (node '{g.node}')" for g in foreign[:5])
    steps.append(["operators of unknown domains", "failed" if foreign else "passed", shown])
    ok = not foreign
    for target in targets:
        report = find_gaps(model, target)
        missing = [f"{g.operator or g.reason} {g.node}".strip() for g in report.gaps if g.kind == "unsupported"]
        steps.append([report.target, "passed" if report.ok else "failed", ", ".join(missing[:5]) or "no gap"])
        ok &= report.ok
    return ok


def _verify(source: Any, draft: Path, options: Any, files: UserFiles, progress: Progress) -> Any:
    from sardonyx.frontend.verify.verify import verify

    arguments = verify_arguments(options, files)
    if not _uses_inputs(source, options):
        arguments["inputs"] = None
    found = verify(source.source, str(draft), progress=progress, **arguments)
    return replace(found, model=options.output)


def _uses_inputs(source: Any, options: Any) -> bool:
    """Whether --inputs are what is verified on: not where they are the one example of a source with dynamic dims."""
    return options.inputs is not None and not (source.example is not None and source.graph_dims)


def _refused(found: Any) -> list[str]:
    """Sizes of dynamic dims that the source itself does not take: they are frozen in it, whatever is declared."""
    refused = {tuple(r.binding.items()): r.error for r in found.results if r.status == "refused"}
    if not any(r.status == "passed" for r in found.results):
        return []
    return [
        f"the source refuses {', '.join(f'{k}={v}' for k, v in sizes)}: {error}" for sizes, error in refused.items()
    ]


def _certify(source: Any, found: Any, draft: Path, options: Any, made: dict[str, Any], warnings: list[str]) -> Path:
    from sardonyx.frontend.verify.certificate import default_path, write_certificate

    asked = asked_for(options, options.inputs if _uses_inputs(source, options) else None)
    if not source.recomputes_semantics:
        found = replace(found, results=tuple(r for r in found.results if r.execution != "semantics"))
    pipeline = "none" if options.no_optimize else "default"
    path = default_path(draft)
    write_certificate(
        path,
        found,
        draft,
        source=options.source,
        asked=asked,
        made={**made, "pipeline": pipeline, "warnings": warnings},
    )
    return path


def _move(folder: Path, target: Path) -> None:
    """Put what was written in its place, the model last: it names the others."""
    entries = sorted(folder.iterdir(), key=lambda p: p.suffix == ".onnx")
    try:
        for entry in entries:
            os.replace(entry, target / entry.name)
    except OSError as error:
        raise SardonyxError(f"cannot write to '{target}': {error.strerror}", code_name="INVALID_ARGUMENT") from error
