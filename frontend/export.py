"""`sardonyx.export`: a PyTorch module, an ExportedProgram, a traced graph or a Python function as an ONNX program.

The signature is that of `torch.onnx.export`. torch is imported only where the model is torch's.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import IntEnum
from typing import Any

from sardonyx.frontend.graph import ModelGraph
from sardonyx.frontend.source import user_line
from sardonyx.frontend.torch.context import exporting
from sardonyx.frontend.torch.errors import export_errors, invalid
from sardonyx.frontend.torch.options import Options, check_options
from sardonyx.frontend.torch.program import ONNXProgram
from sardonyx.frontend.trace import TraceResult, trace


class TrainingMode(IntEnum):
    """In which mode a model is exported; deprecated: a module's own mode decides."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(IntEnum):
    """What operators become; deprecated: only ONNX is there."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


def export(
    model: Any,
    args: tuple[Any, ...] = (),
    f: str | os.PathLike[str] | None = None,
    *,
    kwargs: dict[str, Any] | None = None,
    verbose: bool | None = None,
    input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None,
    opset_version: int | None = None,
    dynamo: bool = True,
    external_data: bool = True,
    dynamic_shapes: dict[str, Any] | tuple[Any, ...] | list[Any] | None = None,
    custom_translation_table: dict[Callable[..., Any], Callable[..., Any] | Sequence[Callable[..., Any]]] | None = None,
    report: bool = False,
    optimize: bool = True,
    verify: bool = False,
    profile: bool = False,
    dump_exported_program: bool = False,
    artifacts_dir: str | os.PathLike[str] = ".",
    fallback: bool = False,
    export_params: bool = True,
    keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Mapping[int, str] | Sequence[int]] | None = None,
    training: TrainingMode = TrainingMode.EVAL,
    operator_export_type: OperatorExportTypes = OperatorExportTypes.ONNX,
    do_constant_folding: bool = True,
    custom_opsets: Mapping[str, int] | None = None,
    export_modules_as_functions: bool | Collection[type] = False,
    autograd_inlining: bool = True,
) -> ONNXProgram:
    """Export a model into ONNX.

    Args:
        model: A `torch.nn.Module`; an `ExportedProgram`, used as it is; a function on torch tensors; or, without torch,
            a traced graph (`TraceResult`, `ModelGraph`) or a function on Sardonyx tensors.
        args: Example positional inputs. Tensors become inputs of the graph, in order; all else is baked in. For a
            function on Sardonyx tensors: arrays, tensors or `TensorSpec`s.
        f: The file to write; by default nothing is written, and the result's `save` does.
        kwargs: Example inputs by name.
        verbose: Print what is being done.
        input_names: Names of the graph's inputs, in order.
        output_names: Names of its outputs, in order.
        opset_version: The ai.onnx opset; by default the recommended one (21, or the lowest that states the graph).
        dynamo: Accepted; False takes the same path.
        external_data: With `f`: weights in a file of their own beside it; False: inside.
        dynamic_shapes: As `torch.export.export` takes it; names (`{"x": {0: "batch"}}`) are taken, too.
        custom_translation_table: Translations by operator (`torch.ops.ns.name.default`): functions over Sardonyx's
            functions, or onnxscript functions.
        report: Write a report in Markdown to `artifacts_dir`.
        optimize: Run the default pipeline.
        verify: Run the exported model in onnxruntime on the example inputs, and compare with the model.
        profile: Write where time and memory went to `artifacts_dir`.
        dump_exported_program: Write the ExportedProgram to `artifacts_dir`.
        artifacts_dir: Where these go.
        fallback: Let torch's own exporter try where this one fails; a warning says so.
        export_params: With `f`: write the weights' contents; without, they are inputs that a run has to give.
        keep_initializers_as_inputs: With `f`: list the weights among the inputs, too.
        dynamic_axes: By name of an input or output: the axes that are dynamic, as {axis: name} or [axis, …].
        training: Deprecated; set the module's mode before.
        operator_export_type: Deprecated; only ONNX is there.
        do_constant_folding: Deprecated; always done under `optimize`.
        custom_opsets: Deprecated; versions of domains beside ai.onnx.
        export_modules_as_functions: Deprecated; ignored.
        autograd_inlining: Deprecated; ignored.

    Raises:
        OnnxExporterError: Whatever goes wrong; the error is also of its code's class (`InvalidArgumentError`,
            `UnsupportedError`, …) and names the user's line and the module.
    """
    with export_errors(user_line()), exporting():
        options = Options(
            f=None if f is None else _path(f),
            kwargs=dict(kwargs or {}),
            verbose=bool(verbose),
            input_names=_names("input_names", input_names),
            output_names=_names("output_names", output_names),
            opset_version=opset_version,
            external_data=external_data,
            dynamic_shapes=dynamic_shapes,
            dynamic_axes=dynamic_axes,
            custom_translation_table=dict(custom_translation_table or {}),
            report=report,
            optimize=optimize,
            verify=verify,
            profile=profile,
            dump_exported_program=dump_exported_program,
            artifacts_dir=_path(artifacts_dir),
            export_params=export_params,
            keep_initializers_as_inputs=keep_initializers_as_inputs,
            custom_opsets=custom_opsets,
        )
        check_options(options)
        _deprecated(
            dynamo, training, operator_export_type, do_constant_folding, custom_opsets, export_modules_as_functions,
            autograd_inlining,
        )  # fmt: skip
        given = (args,) if not isinstance(args, tuple) else args
        return _export(model, given, options, fallback)


def _export(model: Any, args: tuple[Any, ...], options: Options, fallback: bool) -> ONNXProgram:
    if isinstance(model, TraceResult | ModelGraph):
        graph = model.graph if isinstance(model, TraceResult) else model
        return _of_graph(graph, options)
    if _is_torchs(model, args, options):
        from sardonyx.frontend.torch.pipeline import export_torch

        return export_torch(model, args, options, fallback)
    if not callable(model):
        raise invalid(
            f"export() takes a torch.nn.Module, an ExportedProgram, a graph or a function, not {type(model).__name__}"
        )
    return _of_graph(trace(model, _signature(model, args, options), output_names=options.output_names).graph, options)


def _is_torchs(model: Any, args: tuple[Any, ...], options: Options) -> bool:
    torch = sys.modules.get("torch")
    if torch is None:
        return False
    if isinstance(model, torch.nn.Module | torch.export.ExportedProgram | torch.jit.ScriptFunction | torch.fx.Graph):
        return True
    leaves = torch.utils._pytree.tree_leaves((args, options.kwargs))
    return any(isinstance(leaf, torch.Tensor) for leaf in leaves)


def _signature(model: Callable[..., Any], args: tuple[Any, ...], options: Options) -> Any:
    """The specs of a function on Sardonyx tensors, from example inputs."""
    import inspect

    import numpy as np

    from sardonyx.frontend.spec import TensorSpec
    from sardonyx.frontend.tensor import Tensor

    if options.dynamic_shapes is not None or options.dynamic_axes is not None:
        raise invalid(
            "dynamic shapes of a function on Sardonyx tensors are stated in its inputs",
            hint="pass TensorSpec('x', 'float32', ['batch', 3]) in args",
        )
    if not args and not options.kwargs:
        return None
    parameters = list(inspect.signature(model).parameters)
    specs = []
    for index, (name, value) in enumerate([*zip(parameters, args), *options.kwargs.items()]):
        named = (options.input_names or [])[index : index + 1] or [name]
        if isinstance(value, TensorSpec):
            specs.append(value)
        elif isinstance(value, Tensor | np.ndarray):
            specs.append(TensorSpec(named[0], value.dtype, list(value.shape)))
        else:
            raise invalid(f"the example input '{name}' is a {type(value).__name__}, not an array, Tensor or TensorSpec")
    return tuple(specs)


def _of_graph(graph: ModelGraph, options: Options) -> ONNXProgram:
    for what in ("dynamic_shapes", "dynamic_axes", "custom_translation_table", "dump_exported_program"):
        if getattr(options, what):
            raise invalid(f"{what} has no meaning for a graph that is traced already")
    program = ONNXProgram(graph.clone(), None, options)
    program.finish()
    return program


def _path(value: Any) -> str:
    if not isinstance(value, str | os.PathLike):
        raise invalid(f"a path is a str or an os.PathLike, not {type(value).__name__}")
    return os.fspath(value)


def _names(what: str, names: Any) -> list[str] | None:
    if names is None:
        return None
    if isinstance(names, str) or not all(isinstance(n, str) and n for n in names):
        raise invalid(f"{what} is a list of names, not {names!r}")
    found = list(names)
    if len(set(found)) != len(found):
        raise invalid(f"{what} has a name twice: {found}")
    return found


def _number(mode: Any) -> int:
    """The number of a mode: of ours, of torch's, or None."""
    return int(getattr(mode, "value", mode) or 0)


def _deprecated(
    dynamo: bool,
    training: Any,
    operator_export_type: Any,
    folding: bool,
    custom_opsets: Any,
    functions: Any,
    inlining: bool,
) -> None:
    said = [
        (not dynamo, "dynamo=False takes the same path: the TorchScript exporter is not there"),
        (_number(training) != 0, "training is deprecated: set the model's mode before"),
        (_number(operator_export_type) != 0, "operator_export_type is deprecated: only ONNX is there"),
        (not folding, "do_constant_folding is deprecated: constants are always folded under optimize=True"),
        (custom_opsets is not None, "custom_opsets is deprecated"),
        (bool(functions), "export_modules_as_functions is deprecated: it is ignored"),
        (not inlining, "autograd_inlining is deprecated: it is ignored"),
    ]  # fmt: skip
    for given, text in said:
        if given:
            warnings.warn(f"sardonyx.export: {text}", DeprecationWarning, stacklevel=3)


__all__ = ["ONNXProgram", "OperatorExportTypes", "TrainingMode", "export"]
