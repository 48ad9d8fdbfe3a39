"""From a module to an ExportedProgram of the operators that have translations."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from sardonyx.frontend.torch.errors import invalid, unsupported
from sardonyx.frontend.torch.recurrent_ops import dynamic_lengths
from sardonyx.frontend.torch.registry import table


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without what torch's own machinery says about itself, unless TORCH_LOGS asks for it: errors say what matters."""
    before = logging.root.manager.disable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not os.environ.get("TORCH_LOGS"):
            logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(before)


def capture(
    model: Any,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    report: Callable[[str, BaseException | None], None] = lambda name, error: None,
) -> Any:
    """The model as an ExportedProgram: as it is, else by torch.export with strict=False, then strict=True.

    Args:
        model: A module or an ExportedProgram.
        args: Example inputs.
        kwargs: Example inputs by name.
        dynamic_shapes: As torch.export takes it.
        report: Told of each strategy: its name, and how it failed (None: it did not).

    Raises:
        UnsupportedError: No strategy succeeds; the message says why the first failed.
    """
    import torch

    if isinstance(model, torch.export.ExportedProgram):
        report("ExportedProgram", None)
        return model
    failures: list[Exception] = []
    for strict in (False, True):
        name = f"torch.export.export(strict={strict})"
        said = io.StringIO()
        try:
            lengths = dynamic_lengths() if dynamic_shapes is not None else contextlib.nullcontext()
            with quiet(), torch.no_grad(), lengths, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                program = torch.export.export(
                    model, args, dict(kwargs or {}), dynamic_shapes=dynamic_shapes, strict=strict
                )
        except Exception as error:  # noqa: BLE001 - torch.export raises whatever the model raises
            report(name, error)
            failures.append(error)
            continue
        sys.stdout.write(said.getvalue())  # what the model prints; what torch prints of a failure is in the error
        report(name, None)
        return program
    raise _explained(failures[0], model, args, kwargs or {})


def _explained(error: Exception, model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Exception:
    """The error of the first strategy, with the remedy for the commonest causes."""
    text = _first_lines(str(error).partition("For more information")[0]) or type(error).__name__
    kind, place = type(error).__name__, _place(error, model)
    if kind == "UserError" and "dynamic" in str(error).lower():
        return invalid(f"the dynamic shapes do not fit the model: {text}", location=place, hint=_shape_hint(str(error)))
    failed = _fails(model, args, kwargs)
    if failed is not None:
        said = _first_lines(str(failed), 1) or "no message"
        return invalid(
            f"the model fails on the example inputs: {type(failed).__name__}: {said}",
            location=_place(failed, model) or place,
            hint="call the model with the same inputs outside of the export first",
        )
    if kind == "GuardOnDataDependentSymNode" or "data-dependent" in str(error):
        return unsupported(
            "forward() decides in Python on the contents of a tensor, which torch.export cannot capture: "
            f"{_first_lines(str(error), 1).partition(' (unhinted')[0]}",
            location=place,
            hint="use torch.cond or torch.where, or torch._check for what is known of the number",
        )
    return unsupported(f"torch.export cannot capture the model: {kind}: {text}", location=place)


def _fails(model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Exception | None:
    """What goes wrong when the model is called on copies of the example inputs by itself."""
    import torch

    def copied(value: Any) -> Any:
        return value.clone() if isinstance(value, torch.Tensor) else value

    try:
        given, named = torch.utils._pytree.tree_map(copied, (args, dict(kwargs)))
        with quiet(), torch.no_grad():
            model(*given, **named)
    except Exception as error:  # noqa: BLE001 - whatever the model raises
        return error
    return None


def _shape_hint(text: str) -> str:
    if "specialized" in text or "Constraints violated" in text:
        return "the model fixes that size: leave it static, or remove the code that compares it with a number"
    return "dynamic_shapes has the structure of the inputs: {'x': {0: torch.export.Dim('batch')}}"


def _first_lines(text: str, count: int = 3) -> str:
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    return " ".join(lines[:count])


def _place(error: BaseException, model: Any) -> str | None:
    """The line of the model's source that an error came from, and the path of the module whose code ran there."""
    import traceback

    from sardonyx.frontend import source
    from sardonyx.frontend.source import shown_path, user_line
    from sardonyx.frontend.torch.places import _torchs

    paths = {id(module): path for path, module in model.named_modules()} if hasattr(model, "named_modules") else {}
    module = ""
    line: str | None = None
    for frame, number in traceback.walk_tb(error.__traceback__):
        module = paths.get(id(frame.f_locals.get("self")), module)
        file = frame.f_code.co_filename
        if not file.startswith((_torchs(), "<string>", "<eval")) and not source._is_ours(file):
            line = f"{shown_path(file)}:{number}"
    if not module:
        return line
    return f"{line or user_line() or 'the model'} (module '{module}')"


def decompositions(kept: Mapping[Any, Any]) -> Any:
    """torch's rules that take composite operators apart, but for those that have a translation.

    Args:
        kept: Operators with a translation of the user's.
    """
    import torch

    known = table()
    rules = torch.export.default_decompositions()
    for target in list(rules.keys()):
        if target in kept or str(target) in known:
            rules.pop(target, None)
    return rules


def decompose(program: Any, kept: Mapping[Any, Any]) -> Any:
    """The program in functional form, its composite operators taken apart where they have no translation.

    Args:
        program: An ExportedProgram; it is not changed.
        kept: Operators with a translation of the user's.
    """
    with quiet():
        return program.run_decompositions(decompositions(kept))
