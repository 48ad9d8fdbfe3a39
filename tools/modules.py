"""Reads a graph from what the command line names: MLIR text, an ONNX file, or a function of a Python file."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from sardonyx.dialects.weights import WeightStore
from sardonyx.dialects.weights_file import bind_weights
from sardonyx.errors import InvalidArgumentError, SardonyxError
from sardonyx.passes.registry import unknown
from sardonyx.tools.text import Text, parse_text

STDIN = "-"
ONNX_SUFFIXES = frozenset(".onnx .onnxtxt .onnxtext .onnxjson .json .textproto .prototxt .pbtxt .txtpb".split())
"""Names of ONNX models end in one of these: binary ones, and those that `backends.onnx.texts` lists."""


@dataclass(frozen=True)
class Loaded:
    """A graph and its weights. `origin` says where the weights come from whose bytes are in memory."""

    module: ModuleOp
    store: WeightStore
    origin: str


def kind_of(source: str) -> str:
    """'onnx', 'python', 'mlir', or 'frontend' where somebody else's reads it, by the name. Standard input and `.mlir`
    are ours.

    Raises:
        InvalidArgumentError: It names a Python file, but no function.
    """
    if source == STDIN or source.endswith(".mlir"):
        return "mlir"
    from sardonyx.tools.extensions import frontend_for

    if frontend_for(source) is not None:
        return "frontend"
    if Path(source).suffix.lower() in ONNX_SUFFIXES:
        return "onnx"
    path, separator, name = source.rpartition(":")
    if separator and path.endswith(".py") and name.isidentifier():
        return "python"
    if source.endswith(".py") or (separator and path.endswith(".py")):
        raise InvalidArgumentError(
            f"'{source}' names no function", hint=f"write {path if separator else source}:FUNCTION"
        )
    return "mlir"


def load_text(ctx: Context, text: Text, source: str, weights: str | None, verify: bool = True) -> Loaded:
    """Parse a text, and give its weights their bytes: from the file `weights`, else from the one beside the text.

    Without `verify` the module may be invalid.

    Raises:
        InvalidArgumentError: The text or the weights' file is wrong.
    """
    module = parse_text(ctx, text, verify)
    store = WeightStore()
    bind_weights(module, store, None if source == STDIN else source, weights)
    return Loaded(module, store, "")


def load_onnx(source: str) -> Loaded:
    """Import an ONNX model.

    Raises:
        SardonyxError: It cannot be read, or uses what Sardonyx has not.
    """
    from sardonyx.frontend.onnx.model import OnnxModel

    graph = OnnxModel.open(source).compile()
    return Loaded(graph.module, graph.store, f"an initializer of {source}")


def load_other(source: str, output: TextIO) -> Loaded:
    """Let somebody else's frontend read a file. What it prints goes to `output`.

    Raises:
        InvalidArgumentError: The file is not there, or the frontend fails, or gives something else than a graph.
    """
    from sardonyx.frontend.graph import ModelGraph
    from sardonyx.tools.extensions import frontend_for

    frontend = frontend_for(source)
    if frontend is None or not Path(source).is_file():
        raise InvalidArgumentError(f"there is no file '{source}'")
    with contextlib.redirect_stdout(output):
        try:
            found = frontend.read(source)
        except SardonyxError:
            raise
        except Exception as error:
            text = f"frontend '{frontend.name}' failed: {type(error).__name__}: {error}"
            raise InvalidArgumentError(text, hint="--debug shows the traceback") from error
    if isinstance(found, ModelGraph):
        return Loaded(found.module, found.store, f"read by {frontend.name}")
    if isinstance(found, ModuleOp):
        return Loaded(found, WeightStore(), f"read by {frontend.name}")
    raise InvalidArgumentError(f"frontend '{frontend.name}' gave {type(found).__name__}, not a module or a ModelGraph")


def load_function(source: str, signature: str | None, output: TextIO) -> Loaded:
    """Trace `file.py:function` by the signature given, else by the one that the function carries.

    What the file prints goes to `output`.

    Raises:
        InvalidArgumentError: The file or the function is not there, it fails, or no signature is known.
    """
    path_text, _, name = source.rpartition(":")
    path = Path(path_text)
    if not path.is_file():
        raise InvalidArgumentError(f"there is no file '{path}'")
    with contextlib.redirect_stdout(output), importable(path.parent):
        with blaming(path, f"importing '{path}' failed"):
            module = execute_file(path)
        function = _function_of(module, path, name)
        from sardonyx.frontend.signature import parse_signature, stored_signature
        from sardonyx.frontend.trace import trace

        try:
            wanted = stored_signature(function) if signature is None else parse_signature(signature)
        except InvalidArgumentError as error:
            if signature is None:
                error.hint = (
                    f"give one with --signature 'x: f32[batch,37]', or put @sardonyx.signature('...') on '{name}'"
                )
            raise
        with blaming(path, f"tracing '{name}' failed"):
            graph = trace(function, wanted, name=name).graph
    return Loaded(graph.module, graph.store, f"captured by {source}")


@contextlib.contextmanager
def importable(folder: Path) -> Iterator[None]:
    """The time in which the file's neighbours can be imported, as when Python runs it."""
    entry = str(folder.resolve())
    sys.path.insert(0, entry)
    try:
        yield
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(entry)


@contextlib.contextmanager
def blaming(path: Path, what: str) -> Iterator[None]:
    """Turn what the user's code raises into an error that names its line."""
    try:
        yield
    except SardonyxError as error:
        error.at(_user_line(error, path))
        raise
    except (Exception, SystemExit) as error:
        if isinstance(error, SyntaxError) and error.filename == str(path):
            where = f"{path}:{error.lineno}"
        else:
            where = _user_line(error, path)
        text = f"{what}: {type(error).__name__}: {error}"
        raise InvalidArgumentError(text, location=where, hint="--debug shows the traceback") from error


def _user_line(error: BaseException, path: Path) -> str | None:
    """The innermost line of the file that the error went through."""
    wanted = path.resolve()
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if Path(frame.filename).resolve() == wanted:
            return f"{path}:{frame.lineno}"
    return None


def execute_file(path: Path) -> ModuleType:
    """The file as a module; what it raises goes through."""
    spec = importlib.util.spec_from_file_location(f"sardonyx_user_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise InvalidArgumentError(f"'{path}' cannot be imported as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return module


def _function_of(module: ModuleType, path: Path, name: str) -> Callable[..., Any]:
    found = getattr(module, name, None)
    if callable(found):
        return found
    own = [n for n, v in vars(module).items() if callable(v) and getattr(v, "__module__", None) == module.__name__]
    if found is not None:
        raise InvalidArgumentError(f"'{name}' of '{path}' is no function, but {type(found).__name__}")
    raise unknown(f"function in '{path}' called", name, own, f"it has: {', '.join(own)}" if own else "it has none")
