"""What `sardonyx-opt -t` writes: MLIR, the kernel level, LLVM IR, assembly, object code, ONNX."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.printer import Printer

from sardonyx.dialects.weights import WeightStore

Output = str | bytes


@dataclass(frozen=True)
class PrintOptions:
    """How MLIR is printed."""

    generic: bool = False
    locations: bool = False


@dataclass(frozen=True)
class TargetEntry:
    """A target: what it is, whether it writes bytes, and how."""

    summary: str
    binary: bool
    emit: Callable[[ModuleOp, WeightStore, PrintOptions], Output]


def print_module(module: ModuleOp, options: PrintOptions) -> str:
    """The module's text, with a newline at its end."""
    stream = io.StringIO()
    printer = Printer(stream, print_generic_format=options.generic, print_debuginfo=options.locations)
    printer.print_op(module)
    stream.write("\n")
    return stream.getvalue()


def _mlir(module: ModuleOp, store: WeightStore, options: PrintOptions) -> Output:
    return print_module(module, options)


def _kernel(module: ModuleOp, store: WeightStore, options: PrintOptions) -> Output:
    from sardonyx.backends.llvm.compile import assign_plan_slots
    from sardonyx.backends.llvm.lowering.graph import lower_graph

    lowered = lower_graph(module).module
    assign_plan_slots(lowered)
    lowered.verify()
    return print_module(lowered, options)


def _llvm_ir(module: ModuleOp, store: WeightStore, options: PrintOptions) -> Output:
    from sardonyx.backends.llvm.compile import emit_module
    from sardonyx.backends.llvm.lowering.graph import lower_graph

    return str(emit_module(lower_graph(module))[0])


def _asm(module: ModuleOp, store: WeightStore, options: PrintOptions) -> Output:
    from sardonyx.backends.llvm.compile import emit_module
    from sardonyx.backends.llvm.lowering.graph import lower_graph
    from sardonyx.backends.llvm.runtime.jit import to_assembly

    return to_assembly(emit_module(lower_graph(module))[0])


def _object(module: ModuleOp, store: WeightStore, options: PrintOptions) -> Output:
    from sardonyx.backends.llvm.compile import emit_module
    from sardonyx.backends.llvm.lowering.graph import lower_graph
    from sardonyx.backends.llvm.runtime.jit import to_object

    return to_object(emit_module(lower_graph(module))[0])


def _onnx(module: ModuleOp, store: WeightStore, options: PrintOptions) -> Output:
    from sardonyx.frontend.graph import ModelGraph
    from sardonyx.frontend.onnx.model import OnnxModel

    model = OnnxModel.from_graph(ModelGraph(module, store), optimize=False)
    return model.to_proto().SerializeToString(deterministic=True)


TARGETS: dict[str, TargetEntry] = {
    "mlir": TargetEntry("the module as MLIR text", False, _mlir),
    "kernel": TargetEntry("the kernel level: kernels and the plan, as MLIR text", False, _kernel),
    "llvm-ir": TargetEntry("LLVM IR for this machine", False, _llvm_ir),
    "asm": TargetEntry("assembly for this machine", False, _asm),
    "obj": TargetEntry("an object file for this machine", True, _object),
    "onnx": TargetEntry("an ONNX file", True, _onnx),
}
