"""`sardonyx run`: run a model, natively or otherwise."""

from __future__ import annotations

import argparse
from typing import Any, TextIO

from sardonyx.errors import InvalidArgumentError, SardonyxError
from sardonyx.tools.console import print_json
from sardonyx.tools.diagnostics import EXIT_OK
from sardonyx.tools.objects import UserFiles
from sardonyx.tools.verify_options import add_run_inputs

EPILOG = """examples:
  sardonyx run model.onnx                                    on generated inputs
  sardonyx run model.onnx --inputs in.npz -o out.npz
  sardonyx run model.onnx --dim batch=8 --with onnxruntime

exit status: 0 done, 1 the model or the inputs are wrong, 2 the command line is wrong"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("file", metavar="MODEL.onnx")
    add_run_inputs(parser)
    parser.add_argument(
        "--with",
        dest="execution",
        choices=("native", "reference", "onnxruntime"),
        default="native",
        help="what runs it (native)",
    )
    parser.add_argument("-o", "--output", metavar="FILE.npz", help="write the outputs there")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Any, stdout: TextIO) -> int:
    import numpy as np

    from sardonyx.frontend.onnx.model import OnnxModel
    from sardonyx.frontend.verify.executions import executions
    from sardonyx.frontend.verify.inputs import write_arrays
    from sardonyx.frontend.verify.verify import cases_of

    graph = OnnxModel.open(options.file).compile()
    cases = cases_of(graph, UserFiles().inputs(options.inputs), options.dim, options.seed)
    execution = executions(graph, options.file, ["cpu"], [options.execution])[0]
    if execution.run is None:
        raise InvalidArgumentError(f"{execution.name} cannot run it: {execution.reason}")
    saved: dict[str, Any] = {}
    shown: list[dict[str, Any]] = []
    for number, case in enumerate(cases):
        try:
            outputs = execution.run(case.feeds)
        except SardonyxError as error:
            raise error.at(f"case {number} ({case.origin})") from None
        for name, value in outputs.items():
            key = name if len(cases) == 1 else f"{number}/{name}"
            if isinstance(value, np.ndarray) and value.dtype.kind not in "OV":
                saved[key] = value
            shown.append({"output": key, "dims": dict(case.binding), **_describe(value)})
    if options.output:
        write_arrays(options.output, saved)
    if options.json:
        print_json({"execution": execution.name, "outputs": shown}, stdout)
        return EXIT_OK
    for entry in shown:
        sizes = " ".join(f"{k}={v}" for k, v in entry["dims"].items())
        stdout.write(f"{entry['output']}: {entry['type']}{'  at ' + sizes if sizes else ''}\n")
        stdout.write(f"{entry['text']}\n")
    return EXIT_OK


def _describe(value: Any) -> dict[str, Any]:
    import numpy as np

    if not isinstance(value, np.ndarray):
        return {"type": type(value).__name__, "text": str(value)[:2000]}
    text = np.array2string(value, threshold=60, edgeitems=3, precision=6, max_line_width=100)
    return {"type": f"{value.dtype}{list(value.shape)}", "text": text}
