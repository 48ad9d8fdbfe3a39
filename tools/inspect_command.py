"""`sardonyx inspect`: what is in a model."""

from __future__ import annotations

import argparse
from typing import Any, TextIO

from sardonyx.tools.console import print_json, print_table
from sardonyx.tools.diagnostics import EXIT_OK

EPILOG = """examples:
  sardonyx inspect model.onnx
  sardonyx inspect model.onnx --nodes
  sardonyx inspect model.onnx --json

exit status: 0 done, 1 the file cannot be read, 2 the command line is wrong"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("file", metavar="MODEL.onnx")
    parser.add_argument("--nodes", action="store_true", help="list every node with its results' types")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Any, stdout: TextIO) -> int:
    from dataclasses import asdict

    from sardonyx.frontend.onnx.model import OnnxModel

    model = OnnxModel.open(options.file)
    summary = model.inspect()
    nodes = _nodes(model) if options.nodes else None
    if options.json:
        data = asdict(summary)
        print_json({**data, "node_list": nodes} if nodes is not None else data, stdout)
        return EXIT_OK
    stdout.write(f"{summary}\n")
    if nodes is not None:
        print_table(("node", "operator", "results"), [[n["name"], n["operator"], n["results"]] for n in nodes], stdout)
    return EXIT_OK


def _nodes(model: Any) -> list[dict[str, str]]:
    found = []
    for node in model.compile().nodes():
        if not node.is_input and not node.is_constant:
            results = ", ".join(str(o.spec()).partition(": ")[2] for o in node.outputs())
            found.append({"name": node.name, "operator": node.operator, "results": results})
    return found
