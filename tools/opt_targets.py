"""What `sardonyx-opt -t` writes: MLIR, the kernel level, LLVM IR, assembly, object code, ONNX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from xdsl.dialects.builtin import ModuleOp

from sardonyx.dialects.files import write_files
from sardonyx.dialects.weights import FileSlice, Weight, WeightStore
from sardonyx.dialects.weights_file import module_weights, weights_path, write_weights
from sardonyx.errors import InvalidArgumentError, SardonyxError
from sardonyx.passes import registry
from sardonyx.tools import extensions
from sardonyx.tools.opt_print import PrintOptions, print_module

if TYPE_CHECKING:
    from sardonyx.backends.llvm.codegen.text import ModuleText
    from sardonyx.frontend.onnx.model import OnnxModel
    from sardonyx.tools.modules import Loaded

Output = str | bytes


@dataclass(frozen=True)
class TargetEntry:
    """A target: what it is, whether it writes bytes, and how."""

    summary: str
    binary: bool
    emit: Callable[[ModuleOp, WeightStore, PrintOptions], Output]


@dataclass(frozen=True)
class Result:
    """What was made of one input: the target's content, the graph, and the keys of the weights that it came with."""

    content: Output
    loaded: Loaded
    given: frozenset[str]

    @property
    def text(self) -> str:
        return self.content if isinstance(self.content, str) else self.content.decode()


def _mlir(module: ModuleOp, store: WeightStore, options: PrintOptions) -> Output:
    return print_module(module, options)


def _kernel(module: ModuleOp, store: WeightStore, options: PrintOptions) -> Output:
    from sardonyx.backends.llvm.lowering.graph import lower_graph
    from sardonyx.backends.llvm.planner import plan_workspace

    lowered = lower_graph(module, options.target()).module
    plan_workspace(lowered)
    lowered.verify()
    return print_module(lowered, options)


def _upstream(module: ModuleOp, store: WeightStore, options: PrintOptions) -> Output:
    from sardonyx.backends.llvm.lowering.graph import lower_graph
    from sardonyx.backends.llvm.upstream import to_upstream

    converted = to_upstream(lower_graph(module, options.target()).module)
    converted.verify()
    return print_module(converted, options)


def _generated(module: ModuleOp, options: PrintOptions) -> tuple[ModuleText, str]:
    """The generated module, and its text."""
    from sardonyx.backends.llvm.build import emit_module
    from sardonyx.backends.llvm.codegen.debug import with_lines
    from sardonyx.backends.llvm.lowering.graph import lower_graph
    from sardonyx.backends.llvm.runtime.phases import phase

    target = options.target()
    with phase("lowering"):
        lowered = lower_graph(module, target)
    with phase("text"):
        generated, sizes = emit_module(lowered, target)
        return generated, with_lines(generated, sizes) if options.debug_info else str(generated)


def _llvm_ir(module: ModuleOp, store: WeightStore, options: PrintOptions) -> Output:
    text = _generated(module, options)[1]
    return text if text.endswith("\n") else text + "\n"


def _asm(module: ModuleOp, store: WeightStore, options: PrintOptions) -> Output:
    from sardonyx.backends.llvm.runtime.jit import text_to_assembly

    generated, text = _generated(module, options)
    return text_to_assembly(generated.target, text)


def _object(module: ModuleOp, store: WeightStore, options: PrintOptions) -> Output:
    from sardonyx.backends.llvm.runtime.jit import emit_object, to_object

    generated, text = _generated(module, options)
    return emit_object(generated.target, text) if options.debug_info else to_object(generated)


def _onnx_model(module: ModuleOp, store: WeightStore) -> OnnxModel:
    """The graph as it stands: what the user wants optimized, the pipeline says."""
    from sardonyx.frontend.graph import ModelGraph
    from sardonyx.frontend.onnx.model import OnnxModel

    return OnnxModel.from_graph(ModelGraph(module, store), optimize=False)


def _onnx(module: ModuleOp, store: WeightStore, options: PrintOptions) -> Output:
    return _onnx_model(module, store).to_proto().SerializeToString(deterministic=True)


TARGETS: dict[str, TargetEntry] = {
    "mlir": TargetEntry("the module as MLIR text", False, _mlir),
    "kernel": TargetEntry("the kernel level: kernels and the plan, as MLIR text", False, _kernel),
    "mlir-upstream": TargetEntry(
        "the kernels as func, scf, memref, arith and math, for MLIR's own tools", False, _upstream
    ),
    "llvm-ir": TargetEntry("LLVM IR for this machine, or --target-cpu", False, _llvm_ir),
    "asm": TargetEntry("assembly for this machine, or --target-cpu", False, _asm),
    "obj": TargetEntry("an object file for this machine, or --target-cpu", True, _object),
    "onnx": TargetEntry("an ONNX file", True, _onnx),
}


def targets() -> dict[str, TargetEntry]:
    """Ours, and those of others (`sardonyx.tools.extensions`).

    Raises:
        InvalidArgumentError: One of the others has the name of one of ours.
    """
    found = dict(TARGETS)
    for name, other in extensions.targets().items():
        if name in TARGETS:
            raise InvalidArgumentError(f"target '{name}' of {other.origin} has the name of a target of sardonyx")
        found[name] = TargetEntry(f"{other.summary} (from: {other.origin})", other.binary, _others(other))
    return found


def find_target(name: str) -> TargetEntry:
    """The target of that name.

    Raises:
        InvalidArgumentError: There is none; the hint names the nearest.
    """
    if name in TARGETS and not registry.loaded_files():  # looking at what packages register takes its time
        return TARGETS[name]
    known = targets()
    if name not in known:
        raise registry.unknown("target", name, known, f"targets: {', '.join(known)}")
    return known[name]


def _others(target: extensions.Target) -> Callable[[ModuleOp, WeightStore, PrintOptions], Output]:
    def emit(module: ModuleOp, store: WeightStore, options: PrintOptions) -> Output:
        try:
            content = target.emit(module.clone())
        except SardonyxError:
            raise
        except Exception as error:
            raise SardonyxError(f"target '{target.name}' failed: {type(error).__name__}: {error}") from error
        if not isinstance(content, bytes if target.binary else str):
            raise SardonyxError(f"target '{target.name}' gave {type(content).__name__}")
        return content

    return emit


# ---- weights beside the text


def weights_note(result: Result) -> str:
    """Comment lines that say where the bytes of each weight are that the text names."""
    weights = module_weights(result.loaded.module)
    if not weights:
        return ""
    lines = [f'//   "{key}": {_origin(key, weight, result)}\n' for key, weight in weights.items()]
    return "// The bytes of the weights (-o FILE.mlir writes them beside the text):\n" + "".join(lines)


def _origin(key: str, weight: Weight | None, result: Result) -> str:
    if weight is None:
        return "not here; --weights FILE gives them"
    what = f"{weight.dtype}{list(weight.shape)}"
    if isinstance(weight.content, FileSlice):
        at = weight.content
        return f"{what}, {at.length} bytes at {at.offset} of {at.path}"
    if key in result.given and result.loaded.origin:
        return f"{what}, {result.loaded.origin}"
    return f"{what}, made by a pass"


def write_result(target: str, results: Sequence[Result], content: Output, path: Path, stderr: TextIO) -> None:
    """Write the output file whole, and with MLIR text the weights beside it; all or nothing.

    Weights whose bytes are not here are left out, which `stderr` is told.

    Raises:
        InvalidArgumentError: It cannot be written, or the parts of a split input name weights.
    """
    raw = content.encode() if isinstance(content, str) else content
    files = [(path, lambda file: file.write(raw))]
    if target == "mlir":
        named = [module_weights(r.loaded.module) for r in results]
        if len(results) > 1 and any(named):
            raise InvalidArgumentError("several parts name weights, and one file cannot hold them; write each part")
        weights = {key: weight for part in named for key, weight in part.items()}
        here = {key: weight for key, weight in weights.items() if weight is not None}
        missing = [key for key in weights if key not in here]
        regular = path.is_file() or not path.exists()
        if missing:
            some = ", ".join(f"'{key}'" for key in missing[:3]) + (", ..." if len(missing) > 3 else "")
            stderr.write(f"{path}: note: {len(missing)} weights are without their bytes ({some})\n")
        if here and regular:
            files.insert(0, (weights_path(path), lambda file: write_weights(here, file)))
    write_files(files)
