"""Reads a graph from what the command line names: MLIR text, an ONNX file, or a function of a Python file."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.utils.exceptions import DiagnosticException, ParseError, VerifyException

from sardonyx.dialects.weights import WeightStore
from sardonyx.errors import InvalidArgumentError

if TYPE_CHECKING:
    from sardonyx.frontend.graph import ModelGraph


def parse_text(ctx: Context, text: str, name: str, verify: bool = True) -> ModuleOp:
    """Parse MLIR text.

    Raises:
        InvalidArgumentError: The text does not parse, or (with `verify`) is not valid; the location is its line.
    """
    try:
        module = Parser(ctx, text, name).parse_module()
        if verify:
            module.verify()
    except ParseError as error:
        raise _parse_error(error, text, name) from error
    except (VerifyException, DiagnosticException) as error:
        raise InvalidArgumentError(_first_line(error), location=name) from error
    return module


def _parse_error(error: ParseError, text: str, name: str) -> InvalidArgumentError:
    span: Any = error.span
    line = text.count("\n", 0, span.start) + 1
    column = span.start - (text.rfind("\n", 0, span.start) + 1) + 1
    lines = text.splitlines() or [""]
    shown = lines[min(line, len(lines)) - 1]
    notes = [shown.rstrip(), " " * (column - 1) + "^"] if len(shown) < 400 else []
    message = str(error.msg).strip().splitlines()
    return InvalidArgumentError(
        message[0] if message else "the text does not parse", location=f"{name}:{line}:{column}", notes=notes
    )


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__


def read_text(source: str, stdin: Any) -> str:
    """The text of a file, or of standard input for `-`."""
    if source == "-":
        return stdin.read()
    try:
        return Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"cannot read '{source}': {_os_reason(error)}") from error


def _os_reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)


def load_onnx(source: str) -> ModelGraph:
    from sardonyx.frontend.onnx.model import OnnxModel

    return OnnxModel.open(source).compile()


def load_function(source: str, signature: str | None) -> ModelGraph:
    """Trace `file.py:function` by the signature given, else by the one that the function carries.

    Raises:
        InvalidArgumentError: The file or the function is not there, importing it fails, or no signature is known.
    """
    from sardonyx.frontend.signature import stored_signature
    from sardonyx.frontend.trace import trace

    path, _, name = source.rpartition(":")
    function = _python_function(Path(path), name)
    return trace(function, signature if signature is not None else stored_signature(function), name=name).graph


def _python_function(path: Path, name: str) -> Callable[..., Any]:
    if not path.is_file():
        raise InvalidArgumentError(f"there is no file '{path}'")
    spec = importlib.util.spec_from_file_location(f"sardonyx_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InvalidArgumentError(f"'{path}' cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidArgumentError(f"importing '{path}' failed: {type(error).__name__}: {error}") from error
    finally:
        sys.path.pop(0)
    found = getattr(module, name, None)
    if not callable(found):
        callables = [n for n, v in vars(module).items() if callable(v) and not n.startswith("_")]
        raise InvalidArgumentError(
            f"'{path}' has no function '{name}'", hint=f"it has: {', '.join(callables)}" if callables else None
        )
    return found


def kind_of(source: str) -> str:
    """'onnx', 'python' or 'mlir', by the name."""
    if source.endswith(".onnx"):
        return "onnx"
    path, separator, name = source.rpartition(":")
    if separator and path.endswith(".py") and name.isidentifier():
        return "python"
    if source.endswith(".py"):
        raise InvalidArgumentError(f"'{source}' names no function", hint=f"write {source}:FUNCTION")
    return "mlir"


def store_of(graph: ModelGraph | None) -> WeightStore:
    return graph.store if graph is not None else WeightStore()
