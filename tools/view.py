"""`sardonyx view`: a picture of a model on a page that one can move, zoom and search."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, TextIO

from sardonyx.tools.arguments import UsageError
from sardonyx.tools.console import print_json
from sardonyx.tools.diagnostics import EXIT_OK

EPILOG = """examples:
  sardonyx view model.onnx                    writes model.html
  sardonyx view model.onnx -o model.svg
  sardonyx view model.onnx --optimize -o small.html

exit status: 0 written, 1 the model cannot be read or is too large to look at, 2 the command line is wrong"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("file", metavar="MODEL.onnx")
    parser.add_argument("-o", "--output", metavar="FILE", help="FILE.html or FILE.svg (MODEL.html)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--optimize", action="store_true", help="as it is after the pipeline 'optimize'")


def run(options: Any, stdout: TextIO) -> int:
    from sardonyx.frontend.onnx.model import OnnxModel
    from sardonyx.tools.graph_svg import write_view

    target = Path(options.output) if options.output else Path(options.file).with_suffix(".html")
    if target.suffix not in (".html", ".svg"):
        raise UsageError(f"'{target}' is neither .html nor .svg")
    graph = OnnxModel.open(options.file).compile()
    if options.optimize:
        graph.optimize("optimize")
    boxes = write_view(graph.module, target, Path(options.file).name)
    if options.json:
        print_json({"file": str(target), "boxes": boxes}, stdout)
    else:
        stdout.write(f"{target}\n")
    return EXIT_OK
