"""`sardonyx profile`: where a model's time goes, natively."""

from __future__ import annotations

import argparse
import html
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from sardonyx.tools.arguments import count, whole
from sardonyx.tools.console import Progress, print_json, print_table
from sardonyx.tools.diagnostics import EXIT_OK
from sardonyx.tools.objects import UserFiles
from sardonyx.tools.verify_options import add_run_inputs

if TYPE_CHECKING:
    from sardonyx.frontend.profile import GraphProfile

EPILOG = """examples:
  sardonyx profile model.onnx
  sardonyx profile model.onnx --dim batch=8 --threads 1 --html profile.html
  sardonyx profile model.onnx --trace profile.json          for chrome://tracing or Perfetto

exit status: 0 done, 1 the model cannot be read or has no native form, 2 the command line is wrong"""
STYLE = ".picture .ink{fill:var(--ink)}.picture .soft{fill:var(--soft)}.picture .bar{fill:#4c8eda}"
"""Of the bars, in the page's colours."""
COLUMNS = ("node", "operators", "time", "share", "GFLOP/s", "of peak", "GB/s", "of peak ")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("file", metavar="MODEL.onnx")
    add_run_inputs(parser)
    parser.add_argument("--threads", type=count, metavar="N", help="how many threads may run it (all cores)")
    parser.add_argument("--runs", type=count, default=20, help="how often it is run (20)")
    parser.add_argument("--most", type=whole, default=25, help="how many nodes are shown (25)")
    parser.add_argument("--trace", metavar="FILE.json", help="write one run in the trace event format")
    parser.add_argument("--html", metavar="FILE.html", help="write a page with a picture")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Any, stdout: TextIO) -> int:
    from sardonyx.dialects.files import write_whole
    from sardonyx.frontend.onnx.model import OnnxModel
    from sardonyx.frontend.verify.verify import cases_of

    graph = OnnxModel.open(options.file).compile()
    case = cases_of(graph, UserFiles().inputs(options.inputs), options.dim, options.seed)[0]
    with Progress(options.json) as progress, progress.of_compilation():
        progress("compiling and running")
        found = graph.profile(dict(case.feeds), runs=options.runs, threads=options.threads)
    sizes = ", ".join(f"{k}={v}" for k, v in case.binding.items())
    if options.trace:
        write_whole(options.trace, found.chrome_trace().encode())
    if options.html:
        write_whole(options.html, _page(Path(options.file).name, sizes, found).encode())
    if options.json:
        print_json({"dims": dict(case.binding), **found.to_json()}, stdout)
        return EXIT_OK
    stdout.write(f"{options.file}{' at ' + sizes if sizes else ''}\n{found.table(0)}\n")
    print_table(COLUMNS, _rows(found, options.most), stdout, COLUMNS[2:])
    return EXIT_OK


def _rows(found: GraphProfile, most: int) -> list[list[str]]:
    from sardonyx.frontend.profile import rate

    whole = sum(k.seconds for k in found.kernels) or 1.0
    rows = []
    for node in found.nodes[:most]:
        rows.append(
            [
                node.node,
                ", ".join(node.operators),
                f"{node.seconds * 1e6:.1f} us",
                f"{node.seconds / whole:.1%}",
                rate(node.flops, node.seconds),
                _share(node.flops, node.seconds, found.peak_flops),
                rate(node.bytes, node.seconds),
                _share(node.bytes, node.seconds, found.peak_bytes),
            ]
        )
    return rows


def _share(amount: int | None, seconds: float, peak: float) -> str:
    return f"{amount / seconds / peak:.0%}" if amount and seconds else ""


def _page(name: str, sizes: str, found: GraphProfile) -> str:
    from sardonyx.frontend.verify.golden import versions
    from sardonyx.tools.document import Document, Fact, Picture, Section, Table, to_html

    facts = (
        Fact("a run", f"{found.seconds * 1e3:.3f} ms"),
        Fact("threads", str(found.threads)),
        Fact("kernels", str(len(found.kernels))),
        Fact("peak", f"{found.peak_flops / 1e9:.0f} GFLOP/s"),
        Fact("memory", f"{found.peak_bytes / 1e9:.1f} GB/s"),
    )
    rows = tuple(tuple(r) for r in _rows(found, 200))
    kernels = tuple((k.kernel, k.node, f"{k.seconds * 1e6:.1f} us") for k in found.kernels)
    sections = (
        Section("Where the time goes", (Picture(_bars(found), "The slowest nodes by their share of a run."),)),
        Section(
            "Nodes",
            (
                "Bytes and operations are those of the node's operators, if each ran by itself: fused ones touch less "
                "memory, and may exceed the ceiling of memory.",
                Table(COLUMNS, rows, COLUMNS[2:]),
            ),
        ),
        Section("Kernels in the order of a run", (Table(("kernel", "node", "time"), kernels, ("time",)),)),
    )
    known = ", ".join(f"{k} {v}" for k, v in versions().items())
    return to_html(
        Document(f"{name}{' at ' + sizes if sizes else ''}", facts, sections, f"Made by Sardonyx; {known}", STYLE)
    )


def _bars(found: GraphProfile) -> str:
    """The slowest nodes as bars."""
    whole = sum(k.seconds for k in found.kernels) or 1.0
    shown = found.nodes[:20]
    height, width, names = 24, 720, 300
    longest = shown[0].seconds if shown else 1.0
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height * len(shown) + 8}" '
        'font-family="ui-sans-serif,system-ui,sans-serif" font-size="12">'
    ]
    for row, node in enumerate(shown):
        y = row * height + 4
        label = html.escape(node.node if len(node.node) < 44 else "…" + node.node[-42:])
        span = max(1.0, (width - names - 90) * node.seconds / longest)
        parts.append(f'<text x="{names - 8}" y="{y + 15}" text-anchor="end" class="ink">{label}</text>')
        parts.append(f'<rect x="{names}" y="{y + 3}" width="{span:.1f}" height="16" rx="3" class="bar"/>')
        text = f"{node.seconds * 1e6:.0f} us, {node.seconds / whole:.0%}"
        parts.append(f'<text x="{names + span + 6:.1f}" y="{y + 15}" class="soft">{text}</text>')
    return "".join([*parts, "</svg>"])
