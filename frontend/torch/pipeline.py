"""The export of a torch model: capture, translation, names, and what the user asked for besides."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Container, Sequence
from typing import Any

import numpy as np

from sardonyx.errors import SardonyxError
from sardonyx.frontend.torch.arrays import array_of
from sardonyx.frontend.torch.capture import capture, decompose, quiet
from sardonyx.frontend.torch.custom import translations_of
from sardonyx.frontend.torch.errors import as_export_error, invalid, unsupported
from sardonyx.frontend.torch.naming import input_namer, output_axes, output_namer
from sardonyx.frontend.torch.options import Options, axis_names
from sardonyx.frontend.torch.program import ONNXProgram
from sardonyx.frontend.torch.report import Journal
from sardonyx.frontend.torch.shapes import (
    check_still_dynamic,
    combined,
    leaves_of,
    shapes_for_torch,
    symbol_names,
)
from sardonyx.frontend.torch.translate import Translator


def export_torch(model: Any, args: tuple[Any, ...], options: Options, fallback: bool) -> ONNXProgram:
    """Export a module, an ExportedProgram or a function on torch tensors."""
    name = _name_of(model)
    journal = Journal(name, options)
    try:
        return _export(model, args, options, journal, name)
    except SardonyxError as error:
        found = as_export_error(error)
        journal.failed(found)
        journal.write()
        if not fallback:
            raise found from error.__cause__
        from sardonyx.frontend.torch.fallback import export_by_torch

        warnings.warn(
            f"sardonyx.export failed ({found}); torch.onnx's own exporter makes the model instead, as fallback=True "
            "allows: its graph is torch's, not Sardonyx's",
            UserWarning,
            stacklevel=4,
        )
        return export_by_torch(model, args, options)


def _name_of(model: Any) -> str:
    import torch

    if isinstance(model, torch.export.ExportedProgram):
        stacks = (node.meta.get("nn_module_stack") for node in model.graph.nodes)
        first = next((next(iter(s.values())) for s in stacks if s), None)
        kind = first[1] if isinstance(first, tuple | list) and len(first) > 1 else "main_graph"
        return str(getattr(kind, "__name__", kind)).rpartition(".")[2]
    return getattr(model, "__name__", type(model).__name__)


def _export(model: Any, args: tuple[Any, ...], options: Options, journal: Journal, name: str) -> ONNXProgram:
    import torch

    if isinstance(model, torch.jit.ScriptModule | torch.jit.ScriptFunction):
        raise unsupported(
            f"'{name}' is a ScriptModule: TorchScript has no translation",
            hint="export the torch.nn.Module that it was scripted from",
        )
    is_program = isinstance(model, torch.export.ExportedProgram)
    shapes: Any = None
    names: list[dict[int, str]] = []
    kwargs = options.kwargs
    if is_program:
        if options.dynamic_shapes is not None:
            raise invalid("dynamic_shapes of an ExportedProgram are fixed", hint="give them to torch.export.export")
        example = model.example_inputs
        if not args and not kwargs and example is not None:
            args, kwargs = example
    else:
        if not isinstance(model, torch.nn.Module):
            model = _Function(model)
        shapes, names = shapes_for_torch(model, args, options)
        combined(model, args, kwargs)
        if model.training:
            journal.note("the model is in training mode: dropout draws at random, norms use the batch's statistics")
    with journal.step("capture"):
        program = capture(model, args, kwargs, shapes, journal.strategy)
    journal.dump(program)
    check_still_dynamic(program, names)
    custom = translations_of(options.custom_translation_table)
    with journal.step("decompose"):
        flat = decompose(program, custom)
    symbols = symbol_names(flat, names)
    translator = Translator(flat, name, symbols, custom)
    with journal.step("translate"):
        count = translator.input_count()
        translated = translator.run(
            input_namer(flat, options.input_names, count), output_namer(flat, options.output_names)
        )
    axes = output_axes(flat, translated.graph, symbols)
    for n, entry in (options.dynamic_axes or {}).items():
        if n in (options.output_names or []):
            axes[n] = axis_names(n, entry)
    made = ONNXProgram(translated.graph, program, options, inputs=_flattener(flat, translated.inputs), output_axes=axes)
    made.baked = frozenset(translated.baked)
    with journal.step("optimize and write"):
        made.finish()
    journal.counted(flat, made)
    if options.verify:
        with journal.step("verify"):
            _verify(model, args, kwargs, made, journal, translated.constants)
    made.report = journal.write()
    return made


class _Function:
    """Makes a module of a function; a real class is made when torch is there."""

    def __new__(cls, function: Callable[..., Any]) -> Any:
        import torch

        if not callable(function):
            raise invalid(f"export() takes a module, an ExportedProgram, a graph or a function, not {function!r}")

        class Function(torch.nn.Module):
            def forward(self, *args: Any, **kwargs: Any) -> Any:
                return function(*args, **kwargs)

        import functools
        import inspect

        module = Function()
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):  # torch's own functions have none
            return module.eval()

        @functools.wraps(function)
        def forward(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        forward.__signature__ = signature  # pyright: ignore[reportAttributeAccessIssue]
        module.forward = forward
        return module.eval()


def _flattener(program: Any, slots: Sequence[Any]) -> Callable[[Any, Any], list[Any]]:
    """From the user's arguments to the graph's inputs: the leaves that are tensors, in torch's order."""
    from sardonyx.frontend.torch.shapes import input_leaves

    targets = input_leaves(program)
    wanted = [slot.target for slot in slots]
    places = [targets.index(target) for target in wanted]

    def flat(args: Any, kwargs: Any) -> list[Any]:
        import torch

        leaves = leaves_of(tuple(args), kwargs)
        if kwargs and len(leaves) == len(targets):
            from torch.export._tree_utils import reorder_kwargs

            try:
                leaves = leaves_of(tuple(args), reorder_kwargs(dict(kwargs), program.call_spec.in_spec))
            except ValueError as error:
                raise invalid(f"the keyword arguments are not those of the export: {error}") from None
        if len(leaves) == len(targets):
            return [leaves[place] for place in places]
        if len(leaves) == len(places):
            return leaves
        return [v for v in leaves if isinstance(v, torch.Tensor | np.ndarray)]

    return flat


def _verify(
    model: Any, args: tuple[Any, ...], kwargs: Any, made: ONNXProgram, journal: Journal, constants: Container[int]
) -> None:
    """Run the exported model in onnxruntime on the example inputs, and hold the results against the model's.

    `constants` are the places of results that are no outputs of the graph.

    Raises:
        ExecutionError: They differ.
    """
    import tempfile

    import torch

    from sardonyx.backends.onnx.parity import ort_session
    from sardonyx.errors import ExecutionError

    runnable = model.module() if isinstance(model, torch.export.ExportedProgram) else model
    with torch.no_grad(), quiet():
        copies = torch.utils._pytree.tree_map(lambda v: v.clone() if isinstance(v, torch.Tensor) else v, (args, kwargs))
        returned = torch.utils._pytree.tree_leaves(runnable(*copies[0], **copies[1]))
        wanted = [v for place, v in enumerate(returned) if place not in constants]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.onnx")
        made.save(path, external_data=True)
        session = ort_session(path)
        feeds = {n: np.asarray(array_of(v)) for n, v in zip(made.graph.input_names(), made._flat(args, kwargs))}
        found = session(feeds)
    for name, want, got in zip(made.graph.output_names(), wanted, found):
        expected = array_of(want) if isinstance(want, torch.Tensor) else np.asarray(want)
        wide = expected.astype(np.float64), np.asarray(got).astype(np.float64)
        loose = expected.dtype.itemsize < 4 and expected.dtype.kind not in "iub"
        close = expected.shape == np.shape(got) and np.allclose(
            *reversed(wide), rtol=1e-2 if loose else 1e-3, atol=1e-2 if loose else 1e-4, equal_nan=True
        )
        with np.errstate(invalid="ignore"):  # equal infinities have no difference
            apart = np.nan_to_num(np.abs(wide[0] - wide[1])) if close else np.zeros(0)
        error = float(apart.max(initial=0.0))
        journal.verified(name, close, error)
        if not close:
            raise ExecutionError(
                f"verify: the output '{name}' of the exported model differs from the model's on the example inputs",
                hint="set report=True for a report, and compare with compute_values()",
            )
