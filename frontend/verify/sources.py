"""What a model is held against: a callable over arrays, a traced graph, another model, or recorded outputs."""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sardonyx.backends.onnx.parity import installed_providers, ort_session
from sardonyx.dialects.dtypes import DType
from sardonyx.errors import ExecutionError, InvalidArgumentError, SardonyxError
from sardonyx.frontend.graph import ModelGraph
from sardonyx.frontend.onnx.model import OnnxModel
from sardonyx.frontend.spec import TensorSpec
from sardonyx.frontend.verify.inputs import Feeds, load_cases, read_arrays
from sardonyx.frontend.verify.observe import Memory

Outputs = Mapping[str, Any]


@dataclass(frozen=True)
class Source:
    """What a model is held against.

    Attributes:
        name: What it is called in reports.
        kind: 'function', 'graph', 'onnx', 'torch' or 'recorded'.
        run: Gives the outputs for inputs by name: by name, or in the model's order. Raises `ExecutionError`.
        graph: Its graph, where it has one: differences are then traced to a node.
        digest: The hash of what it is made of; None where that is not known (a function in memory).
        memories: What its graph computed, by the identity of the inputs, for those who verify many models against one
            source on the same inputs; None: nothing is kept from one verification to the next.
    """

    name: str
    kind: str
    run: Callable[[Feeds], Outputs | Sequence[Any]]
    graph: ModelGraph | None = None
    digest: str | None = None
    memories: dict[int, Memory] | None = None


def source_of(given: Any, input_names: Sequence[str]) -> Source:
    """The source that an object, or the path of a model or of recorded outputs, stands for.

    Args:
        given: A graph, a model, a path to `.onnx`, `.npz` or `.npy`, a module of torch, or a callable over arrays.
        input_names: The inputs of the model to be verified, in order.

    Raises:
        InvalidArgumentError: It is none of these.
    """
    if isinstance(given, Source):
        return given
    if isinstance(given, str | os.PathLike):
        return _of_path(Path(given))
    if isinstance(given, OnnxModel):
        given = given.compile()
    if isinstance(given, ModelGraph):
        return graph_source(given, f"graph '{given.name}'")
    if _is_torch_module(given):
        return _torch_source(given, input_names)
    if callable(given):
        return _callable_source(given, input_names)
    raise InvalidArgumentError(
        f"a source is a callable, a graph, a model or a file, not {type(given).__name__}",
        hint="a Python function takes the inputs as arrays and gives the outputs",
    )


def graph_source(graph: ModelGraph, name: str, digest: str | None = None) -> Source:
    """A graph, as the reference evaluates it."""

    return Source(name, "graph", lambda feeds: evaluate(graph, feeds), graph, digest)


def evaluate(graph: ModelGraph, feeds: Feeds) -> dict[str, Any]:
    """The outputs of a graph by name, as the reference computes them."""
    results = graph.evaluate(feeds_for(graph, feeds))
    return dict(zip(graph.output_names(), map(plain, results)))


def feeds_for(graph: ModelGraph, feeds: Feeds) -> dict[str, Any]:
    """The inputs of a graph out of those of another one: by name, else in order where there are as many.

    Floats and integers of another width become those that the graph takes: one of the two may have been cast.

    Raises:
        InvalidArgumentError: There are more or fewer.
    """
    names = graph.input_names()
    if all(name in feeds for name in names):
        return {spec.name: _fitting(spec, feeds[spec.name]) for spec in graph.input_specs() if spec.name in feeds}
    if len(names) != len(feeds):
        raise InvalidArgumentError(
            f"the source takes {', '.join(names) or 'no inputs'}, but the inputs given are {', '.join(feeds) or 'none'}"
        )
    specs = {spec.name: spec for spec in graph.input_specs()}
    return {name: _fitting(specs[name], value) for name, value in zip(names, feeds.values())}


def _fitting(spec: TensorSpec, value: Any) -> Any:
    if spec.container is not None or not isinstance(value, np.ndarray) or value.dtype.kind in "OSU":
        return value
    given = DType.of(value.dtype)
    alike = (given.is_float and spec.dtype.is_float) or (given.is_integer and spec.dtype.is_integer)
    return value.astype(spec.dtype.numpy) if alike and given != spec.dtype else value


def plain(value: Any) -> Any:
    """A result as arrays: tensors of any framework; sequences entry by entry; maps and None as they are."""
    if value is None or isinstance(value, np.ndarray):
        return value
    if isinstance(value, Mapping):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":  # NumPy knows no such dtype, and torch does not convert it
            import ml_dtypes

            return value.view(_torch().int16).numpy().view(ml_dtypes.bfloat16)
        return value.numpy()
    return np.asarray(value)


def _torch() -> Any:
    """torch, which whoever made a module or a tensor of it has imported."""
    return sys.modules["torch"]


def _of_path(path: Path) -> Source:
    if path.suffix in (".npz", ".npy"):
        return _recorded(path)
    if path.suffix not in (".onnx", ".onnxtxt", ".json"):
        raise InvalidArgumentError(
            f"'{path}' is no source", hint="a source is FILE.py:NAME, FILE.onnx, or recorded outputs in FILE.npz"
        )
    graph = OnnxModel.open(path).compile()
    digest = file_digest(path)
    if path.suffix != ".onnx" or "CPUExecutionProvider" not in installed_providers():
        return graph_source(graph, str(path), digest)
    try:
        session = ort_session(path, optimize=False)
    except ExecutionError as error:
        return graph_source(graph, f"{path} (by the reference: {error.message})", digest)

    def run(feeds: Feeds) -> Outputs:
        return dict(zip(graph.output_names(), session(feeds_for(graph, feeds))))

    return Source(str(path), "onnx", run, graph, digest)


def _recorded(path: Path) -> Source:
    """Outputs that were saved: those of the only case, or `case/name` in the cases' order."""
    arrays = read_arrays(path)
    by_name = isinstance(arrays, dict)
    names = list(dict.fromkeys(key.partition("/")[2] or key for key in arrays)) if by_name else ["output"]
    cases = load_cases(path, names)
    waiting = iter(cases)

    def run(feeds: Feeds) -> Outputs | Sequence[Any]:
        case = next(waiting, None)
        if case is None:
            raise InvalidArgumentError(f"'{path}' records the outputs of {len(cases)} cases, but there are more inputs")
        return dict(case.feeds) if by_name else list(case.feeds.values())

    return Source(str(path), "recorded", run, None, file_digest(path))


def file_digest(path: str | os.PathLike[str]) -> str:
    """The SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    try:
        with open(path, "rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    except OSError as error:
        raise InvalidArgumentError(f"'{path}' cannot be read: {error.strerror or error}") from error
    return digest.hexdigest()


def _callable_source(function: Callable[..., Any], input_names: Sequence[str]) -> Source:
    name = getattr(function, "__qualname__", type(function).__name__)
    by_keyword = _takes_names(function, input_names)

    def run(feeds: Feeds) -> Outputs | Sequence[Any]:
        try:
            given = {n: feeds[n] for n in input_names if n in feeds}
            result = function(**given) if by_keyword else function(*given.values())
        except SardonyxError:
            raise
        except Exception as error:
            raise ExecutionError(f"the source '{name}' failed: {type(error).__name__}: {error}") from error
        return flatten(result)

    return Source(name, "function", run)


def _takes_names(function: Callable[..., Any], names: Sequence[str]) -> bool:
    """Whether the function's parameters are called as the inputs are."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
    taken = [n for n, p in parameters.items() if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return bool(names) and set(names) <= set(taken)


def _is_torch_module(given: object) -> bool:
    return any(c.__module__.startswith("torch.nn.") and c.__name__ == "Module" for c in type(given).__mro__)


def _torch_source(module: Any, input_names: Sequence[str]) -> Source:
    name = type(module).__name__
    by_keyword = _takes_names(module.forward, input_names)

    def run(feeds: Feeds) -> Outputs | Sequence[Any]:
        torch = _torch()
        tensors = {n: torch.from_numpy(np.array(v)) if isinstance(v, np.ndarray) else v for n, v in feeds.items()}
        before = module.training
        module.eval()
        try:
            with torch.no_grad():
                return flatten(module(**tensors) if by_keyword else module(*tensors.values()))
        except Exception as error:
            raise ExecutionError(f"the module '{name}' failed: {type(error).__name__}: {error}") from error
        finally:
            module.train(before)

    return Source(name, "torch", run)


def flatten(result: Any) -> Outputs | list[Any]:
    """The tensors of what a source returned: a mapping by name, else in order, nested containers opened."""
    if isinstance(result, Mapping):
        values = {str(k): v for k, v in result.items() if v is not None}
        if all(not isinstance(v, Mapping | list | tuple) for v in values.values()):
            return {k: plain(v) for k, v in values.items()}
        return [leaf for value in values.values() for leaf in _leaves(value)]
    return _leaves(result)


def _leaves(value: Any) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, Mapping):
        return [leaf for entry in value.values() for leaf in _leaves(entry)]
    if isinstance(value, list | tuple):
        return [leaf for entry in value for leaf in _leaves(entry)]
    return [plain(value)]
