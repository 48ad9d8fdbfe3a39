"""`sardonyx compile`: a model as a library, an object file, assembly or LLVM IR that runs without Python."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from sardonyx.tools.console import Progress, print_json
from sardonyx.tools.diagnostics import EXIT_OK

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

EPILOG = """examples:
  sardonyx compile model.onnx -o model.so                          and model.h
  sardonyx compile model.onnx -o model.so --example main.c
  sardonyx compile model.onnx -o model.so --target-cpu x86-64-v2,x86-64-v3,x86-64-v4
  sardonyx compile net.py:forward --signature 'x: f32[batch,37]' -o net.o

In Python, sardonyx.load_compiled('model.so') loads a library; nothing is compiled again.

exit status: 0 written, 1 the model cannot be read or compiled, 2 the command line is wrong"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("file", metavar="MODEL", help="MODEL.onnx, FILE.mlir or FILE.py:FUNCTION")
    parser.add_argument("-o", "--output", metavar="FILE", required=True, help="FILE.so, FILE.o, FILE.s or FILE.ll")
    parser.add_argument(
        "--target-cpu",
        action="append",
        default=[],
        metavar="CPU",
        help="x86-64-v2 (default), x86-64-v3, x86-64-v4, aarch64, host or a CPU of LLVM's; of several the library "
        "takes the first that runs where it is loaded",
    )
    parser.add_argument("--name", help="what the C functions' names begin with (default: the file's name)")
    parser.add_argument("--header", metavar="FILE.h", help="where the C header goes (default: beside the output)")
    parser.add_argument("--example", metavar="FILE.c", help="write a C program that runs the model")
    parser.add_argument(
        "--weights",
        choices=("inside", "beside"),
        help="where the weights go (default: inside, from 1 GiB on beside; those of .s and .ll stand beside)",
    )
    parser.add_argument("--signature", metavar="TEXT", help="of FILE.py:FUNCTION: 'x: f32[batch,37], y: i64'")
    parser.add_argument("--optimize", action="store_true", help="run the default passes first")
    parser.add_argument("--fast-conv", action="store_true", help="convolutions that are faster and less exact")
    parser.add_argument("--debug-info", action="store_true", help="with the lines of the source, for perf and gdb")
    parser.add_argument(
        "--progress", action="store_true", help="say on standard error how far it is; on a terminal it always does"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(options: Any, stdout: TextIO) -> int:
    from sardonyx.backends.llvm.aot.header import c_example
    from sardonyx.backends.llvm.aot.library import compile_to
    from sardonyx.dialects.files import write_whole

    module = _module(options, stdout)
    with Progress(always=options.progress) as progress, progress.of_compilation():
        built = compile_to(
            module,
            options.output,
            [name for listed in options.target_cpu for name in listed.split(",") if name],
            name=options.name,
            weights_beside=None if options.weights is None else options.weights == "beside",
            header=options.header,
            fast_conv=options.fast_conv,
            debug_info=options.debug_info,
        )
    files = list(built.files)
    if options.example:
        header = next((f for f in files if f.suffix == ".h"), Path(options.output).with_suffix(".h"))
        text = c_example(built.name, built.inputs, built.outputs, header.name)
        write_whole(options.example, text.encode())
        files.append(Path(options.example))
    if options.json:
        shown: dict[str, Any] = {
            "kind": built.kind, "name": built.name, "files": [str(f) for f in files], "targets": built.targets,
            "weight_bytes": built.weight_bytes, "inputs": [str(p.name) for p in built.inputs],
            "outputs": [str(p.name) for p in built.outputs],
        }  # fmt: skip
        print_json(shown, stdout)
        return EXIT_OK
    for file in files:
        stdout.write(f"{file}: {file.stat().st_size} bytes\n")
    stdout.write(f"for {', '.join(built.targets)}; weights of {built.weight_bytes} bytes\n")
    return EXIT_OK


def _module(options: Any, stdout: TextIO) -> ModuleOp:
    from sardonyx.frontend.graph import ModelGraph
    from sardonyx.tools.modules import kind_of, load_function, load_onnx, load_other, load_text
    from sardonyx.tools.text import Text, read_text

    kind = kind_of(options.file)
    if kind == "onnx":
        loaded = load_onnx(options.file)
    elif kind == "python":
        loaded = load_function(options.file, options.signature, stdout)
    elif kind == "frontend":
        loaded = load_other(options.file, stdout)
    else:
        from sardonyx.passes.context import make_context

        text = Text(read_text(options.file, sys.stdin), "<stdin>" if options.file == "-" else options.file)
        loaded = load_text(make_context(), text, options.file, None)
    if options.optimize:
        graph = ModelGraph(loaded.module, loaded.store)
        graph.optimize()
        return graph.module
    return loaded.module
