"""What a report says of a model: its picture, dims, operators, sizes, passes, parity, gaps and times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sardonyx.errors import SardonyxError
from sardonyx.frontend.graph import ModelGraph
from sardonyx.frontend.onnx.inspect_model import size_text
from sardonyx.frontend.onnx.model import OnnxModel
from sardonyx.frontend.onnx.targets import find_gaps
from sardonyx.frontend.verify.golden import versions
from sardonyx.frontend.verify.verify import Verification, cases_of, verify
from sardonyx.tools.bench import TIMING_COLUMNS, timing_rows
from sardonyx.tools.document import Block, Builder, Document, Fact, Picture, Table
from sardonyx.tools.graph_svg import drawings_of, svg
from sardonyx.tools.measure import measure
from sardonyx.tools.ops import grouped
from sardonyx.tools.verify import result_row

MOST = 40
TARGETS = ("onnxruntime", "tensorrt", "openvino", "coreml", "onnx-mlir")
"""What a model is held against where nobody says otherwise."""


def collect(
    path: str,
    source: Any,
    called: str | None,
    arguments: dict[str, Any],
    targets: Sequence[str],
    seconds: float,
    progress: Callable[[str], None],
) -> Document:
    """The report on a model.

    Args:
        path: The ONNX model.
        source: As `verify` takes it.
        called: What the source is called; None: by its own name.
        arguments: The other arguments of `verify`.
        targets: What its operators are held against.
        seconds: How long it is timed; 0: not at all.
        progress: Called with a line of text before each step.

    Raises:
        SardonyxError: The model cannot be read.
    """
    model = OnnxModel.open(path)
    graph, summary = model.compile(), model.inspect()
    builder = Builder()
    builder.add("Inputs and outputs", _interface(graph))
    found = verify(source, path, progress=progress, **arguments)
    found = found if called is None else replace(found, source=called)
    builder.add("Parity", *_parity(found), _metrics(found))
    progress("comparing with targets")
    builder.add("Targets", *_gaps(model, targets))
    if seconds:
        progress("measuring")
        builder.add("Times", *_times(path, graph, arguments, seconds))
    progress("drawing")
    builder.add("Graph", _picture(graph))
    rows = tuple((str(count), name) for name, count in summary.operators.items())
    builder.add("Operators", Table(("nodes", "operator"), rows, ("nodes",)))
    builder.add("Weights", *_weights(summary))
    progress("optimising")
    builder.add("What the passes would change", *_passes(graph.clone()))
    known = ", ".join(f"{k} {v}" for k, v in versions().items())
    facts = (
        Fact("parity", "verified" if found.ok else "not verified", "good" if found.ok else "bad"),
        Fact("opset", str(model.opset)),
        Fact("nodes", str(summary.nodes)),
        Fact("weights", size_text(summary.weight_bytes)),
        Fact("dynamic dims", ", ".join(found.dims) or "none"),
        Fact("executions untested", str(len(found.untested)), "open" if found.untested else "good"),
    )
    return Document(Path(path).name, facts, tuple(builder.sections), f"Made by Sardonyx; {known}")


def _metrics(found: Verification) -> Table:
    """The user's metrics by inputs and execution."""
    rows = [
        (", ".join(f"{k}={v}" for k, v in r.binding.items()) or r.origin, r.execution, name, f"{value:.6g}")
        for r in found.results
        for name, value in r.metrics.items()
    ]
    return Table(("dims", "execution", "metric", "value"), tuple(rows), ("value",))


def _picture(graph: ModelGraph) -> Block:
    try:
        image = svg(drawings_of(graph.module))
    except SardonyxError as error:
        return f"There is no picture: {error.message}."
    return Picture(image, "The graph as it was imported; constants stand in the nodes that read them.")


def _interface(graph: ModelGraph) -> Table:
    rows = [("input", s.name, str(s.dtype), str(s).partition("[")[2].rstrip("]")) for s in graph.input_specs()]
    rows += [("output", s.name, str(s.dtype), str(s).partition("[")[2].rstrip("]")) for s in graph.output_specs()]
    return Table(("", "name", "dtype", "dims"), tuple(rows))


def _weights(summary: Any) -> list[Block]:
    rows = tuple((name, size_text(size)) for name, size in summary.largest)
    text = f"{summary.initializers} initializers of {size_text(summary.weight_bytes)}."
    if summary.files:
        text += " In files: " + ", ".join(f"{f} ({size_text(n)})" for f, n in summary.files.items()) + "."
    return [text, Table(("the largest", "size"), rows, ("size",))]


def _passes(graph: ModelGraph) -> list[Block]:
    before = len(graph.nodes())
    report = graph.optimize("optimize")
    rows = tuple(
        (p.name, ", ".join(f"{k} {v}" for k, v in p.statistics.items() if v), f"{p.seconds * 1e3:.1f} ms")
        for p in report.passes
        if p.changed
    )
    text = f"The pipeline 'optimize' leaves {len(graph.nodes())} of {before} nodes, inputs and constants included."
    promise = report.promise
    if promise is not None and rows:
        text += f" Numeric promise: {promise}."
    return [text, Table(("pass", "what it does", "time"), rows, ("time",))]


def _parity(found: Verification) -> list[Block]:
    columns = ("dims", "execution", "result", "max |error|", "max rel.", "of limit", "argmax flips")
    rows = tuple(tuple(result_row(r)) for r in found.results)
    blocks: list[Block] = [f"Held against {found.source}; tolerances for {found.limits.precision} arithmetic."]
    blocks.append(Table(columns, rows, columns[3:]))
    for name in found.frozen:
        blocks.append(f"Frozen: '{name}' is no dynamic dim of the model.")
    told: dict[tuple[str, str], str] = {}
    for result in found.failures:
        words = [f"'{d.name}': {d.reason}" for d in result.differences if not d.ok] or [result.error]
        where = f" First difference: {result.culprit}." if result.culprit is not None else ""
        node = result.culprit.node if result.culprit is not None else ""
        told.setdefault((result.execution, node), f"{result.execution}: {'; '.join(words)}.{where}")
    blocks += list(told.values())[:MOST]
    blocks += [f"Untested: {execution}: {reason}." for execution, reason in found.untested.items()]
    return blocks


def _gaps(model: OnnxModel, targets: Sequence[str]) -> list[Block]:
    rows: list[tuple[str, ...]] = []
    details: list[tuple[str, ...]] = []
    for target in targets:
        try:
            report = find_gaps(model, target)
        except SardonyxError as error:
            rows.append((target, "untested", "", error.message))
            continue
        missing = [g for g in report.gaps if g.kind == "unsupported"]
        limits = len(report.gaps) - len(missing)
        rows.append((report.target, "passed" if report.ok else "unsupported", str(len(missing)), report.source))
        details += [(report.target, *row[1:]) for row in grouped(missing)[:MOST]]
        if limits:
            text = f"{limits} node{'s' * (limits != 1)}"
            details.append((report.target, "", text, "supported with restrictions", "see sardonyx ops"))
    blocks: list[Block] = [Table(("target", "", "gaps", "source"), tuple(rows), ("gaps",))]
    if details:
        blocks.append(Table(("target", "operator", "nodes", "why", "fix"), tuple(details)))
    return blocks


def _times(path: str, graph: ModelGraph, arguments: dict[str, Any], seconds: float) -> list[Block]:
    dims = {k: (v[0],) for k, v in _sizes(arguments["dims"]).items()}
    try:
        case = cases_of(graph, arguments["inputs"], dims, arguments["seed"])[0]
    except SardonyxError as error:
        return [f"It was not timed: {error.message}."]
    found = measure(path, case.feeds, seconds)
    sizes = ", ".join(f"{k}={v}" for k, v in case.binding.items())
    blocks: list[Block] = [f"At {sizes or 'the given inputs'}; the two ran in turns."]
    blocks.append(Table(TIMING_COLUMNS, tuple(tuple(r) for r in timing_rows(found)), TIMING_COLUMNS[1:]))
    blocks += [f"{t.execution} was not timed: {t.error}." for t in found if t.error]
    return blocks


def _sizes(dims: Any) -> dict[str, Sequence[int]]:
    from sardonyx.frontend.verify.bindings import parse_dims

    return dict(dims) if isinstance(dims, dict) else dict(parse_dims(dims or ()))
