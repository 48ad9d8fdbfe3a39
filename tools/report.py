"""`sardonyx report`: all there is to say of a model, as one HTML page and one Markdown file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, TextIO

from sardonyx.tools.arguments import UsageError, amount
from sardonyx.tools.console import Progress, print_json
from sardonyx.tools.diagnostics import EXIT_OK
from sardonyx.tools.objects import UserFiles
from sardonyx.tools.verify_options import add_verify_options, verify_arguments

EPILOG = """examples:
  sardonyx report model.onnx                                    writes model.report.html and model.report.md
  sardonyx report net.py:forward model.onnx --dim batch=1,8     with its parity with the source
  sardonyx report model.onnx --target tensorrt@17 --seconds 0   for one target, without timing
  sardonyx report model.onnx --json | jq .facts

The page needs no network. exit status: 0 written, 1 a file cannot be read, 2 the command line is wrong"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from sardonyx.tools.report_data import TARGETS

    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("files", nargs="+", metavar="FILE", help="[SOURCE] MODEL.onnx")
    parser.add_argument("-o", "--output", metavar="FILE.html", help="the page (MODEL.report.html); Markdown beside it")
    parser.add_argument(
        "--target", action="append", metavar="NAME[@OPSET]", help=f"what it is held against ({', '.join(TARGETS)})"
    )
    parser.add_argument("--seconds", type=amount, default=1.0, help="how long it is timed (1); 0: not at all")
    add_verify_options(parser)
    parser.add_argument("--json", action="store_true", help="print what the report says as JSON, too")


def run(options: Any, stdout: TextIO) -> int:
    from sardonyx.dialects.files import write_files
    from sardonyx.tools.document import to_data, to_html, to_markdown
    from sardonyx.tools.report_data import TARGETS, collect

    if len(options.files) > 2:
        raise UsageError("report takes MODEL, or SOURCE and MODEL")
    files = UserFiles()
    *sources, model = options.files
    page = Path(options.output) if options.output else Path(model).with_suffix(".report.html")
    if page.suffix != ".html":
        raise UsageError(f"the report is an HTML page: '{page}' does not end in .html")
    source = files.source(sources[0]) if sources else None
    with Progress(options.json) as progress:
        arguments = verify_arguments(options, files)
        document = collect(
            model,
            source,
            sources[0] if sources else None,
            arguments,
            options.target or TARGETS,
            options.seconds,
            progress,
        )
    text = page.with_suffix(".md")
    html, markdown = to_html(document).encode(), to_markdown(document).encode()
    write_files([(page, lambda f: f.write(html)), (text, lambda f: f.write(markdown))])
    if options.json:
        print_json({"page": str(page), "markdown": str(text), **to_data(document)}, stdout)
    else:
        stdout.write(f"{page}\n{text}\n")
    return EXIT_OK
