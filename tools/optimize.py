"""`sardonyx optimize`: simplify an ONNX model."""

from __future__ import annotations

import argparse
from typing import Any, TextIO

from sardonyx.tools.arguments import whole
from sardonyx.tools.console import print_json, print_table
from sardonyx.tools.diagnostics import EXIT_OK

EPILOG = """examples:
  sardonyx optimize model.onnx -o smaller.onnx
  sardonyx optimize model.onnx -o smaller.onnx -p default --opset 21
  sardonyx optimize model.onnx -o smaller.onnx --verify

exit status: 0 written, 6 --verify found a difference (nothing is written), 1 the model cannot be read or stated,
2 the command line is wrong"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("file", metavar="MODEL.onnx")
    parser.add_argument("-o", "--output", metavar="FILE.onnx", required=True, help="where the result goes")
    parser.add_argument("-p", "--passes", metavar="PIPELINE", default="optimize", help="the passes (optimize)")
    parser.add_argument("--opset", type=whole, default=0, metavar="N", help="the opset (that of the model)")
    parser.add_argument("--external-data", action="store_true", default=None, help="weights beside the model")
    parser.add_argument("--verify", action="store_true", help="hold the result against the model before writing it")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Any, stdout: TextIO) -> int:
    from sardonyx.frontend.onnx.inspect_model import size_text
    from sardonyx.frontend.onnx.model import OnnxModel

    model = OnnxModel.open(options.file)
    before = model.inspect()
    report = model.optimize(options.passes, opset_version=options.opset)
    after = model.inspect()
    if options.verify:
        from sardonyx.frontend.verify.verify import verify
        from sardonyx.tools.diagnostics import EXIT_CHECK

        found = verify(options.file, model)
        if not found.ok:
            from sardonyx.tools.verify import print_verification

            print_verification(found, stdout)
            stdout.write("the result does NOT agree with the model; nothing was written\n")
            return EXIT_CHECK
    model.save(options.output, save_as_external_data=options.external_data)
    steps = [
        {"pass": p.name, "changed": p.changed, "seconds": p.seconds, "counts": dict(p.statistics.items())}
        for p in report.passes
    ]
    if options.json:
        sizes = {"nodes": [before.nodes, after.nodes], "weight_bytes": [before.weight_bytes, after.weight_bytes]}
        print_json({"output": options.output, **sizes, "passes": steps}, stdout)
        return EXIT_OK
    rows = [[s["pass"], ", ".join(f"{k} {v}" for k, v in s["counts"].items() if v)] for s in steps if s["changed"]]
    if rows:
        print_table(("pass", "what it did"), rows, stdout)
    changed = {
        name: (before.operators.get(name, 0), after.operators.get(name, 0))
        for name in sorted({*before.operators, *after.operators})
    }
    rows = [[n, str(a), str(b), f"{b - a:+d}"] for n, (a, b) in changed.items() if a != b]
    if rows:
        print_table(("operator", "before", "after", "change"), rows, stdout, ("before", "after", "change"))
    stdout.write(
        f"{options.output}: {after.nodes} nodes ({before.nodes} before), weights of "
        f"{size_text(after.weight_bytes)} ({size_text(before.weight_bytes)} before)\n"
    )
    return EXIT_OK
