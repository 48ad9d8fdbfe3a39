"""`@sardonyx.jit`: a Python function that is traced when first called, and then runs natively.

It is traced again only for other dtypes, ranks, dims that are 1 (they broadcast) or Python arguments: all other dims
are symbols of the graph, so that one trace serves every size. Tensors that the function captures are constants.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

from sardonyx.dialects.dims import Dim
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.containers import Structure, flatten
from sardonyx.frontend.extent import Extent
from sardonyx.frontend.graph import ModelGraph
from sardonyx.frontend.operands import is_scalar, is_tensor_like, to_tensor
from sardonyx.frontend.promotion import scalar_key
from sardonyx.frontend.signature import parameter_names
from sardonyx.frontend.source import user_line
from sardonyx.frontend.spec import TensorSpec
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.trace import trace


class CacheInfo(NamedTuple):
    """How often a jitted function found a graph, traced one, and how many it holds."""

    hits: int
    traces: int
    size: int


@dataclass(frozen=True)
class _Entry:
    graph: ModelGraph
    structure: Structure
    constants: tuple[Any, ...]
    """What the function returned beside tensors, by position; `_TENSOR` where a tensor is."""


_TENSOR = object()


class JitFunction:
    """A function that runs natively; made by `jit`."""

    def __init__(self, fn: Callable[..., Any], optimize: bool, fallback: bool) -> None:
        functools.update_wrapper(self, fn)
        self._fn = fn
        self._optimize = optimize
        self._fallback = fallback
        self._entries: dict[object, _Entry] = {}
        self._hits = self._traces = 0
        self._lock = threading.RLock()
        self._parameters = parameter_names(fn)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten((args, kwargs))
        if any(_is_traced(leaf) for _, leaf in leaves):
            return self._fn(*args, **kwargs)  # part of the trace that runs
        tensors: list[Tensor] = []
        key: list[object] = [structure]
        for path, leaf in leaves:
            key.append(self._leaf_key(path, leaf, tensors))
        with self._lock:
            found = self._entries.get(tuple(key))
            if found is None:
                found = self._trace(leaves, structure)
                self._entries[tuple(key)] = found
            else:
                self._hits += 1
        results = iter(found.graph.run(tensors))
        return found.structure.build([next(results) if c is _TENSOR else c for c in found.constants])

    def __get__(self, instance: object, owner: object = None) -> Any:
        """As a method: the instance is an argument like others."""
        return self if instance is None else functools.partial(self, instance)

    def cache_info(self) -> CacheInfo:
        """How often a graph was found and traced, and how many there are."""
        return CacheInfo(self._hits, self._traces, len(self._entries))

    def cache_clear(self) -> None:
        """Forget all graphs."""
        with self._lock:
            self._entries.clear()
            self._hits = self._traces = 0

    def graphs(self) -> list[ModelGraph]:
        """The graphs that were traced."""
        return [entry.graph for entry in self._entries.values()]

    # ---- keys
    def _leaf_key(self, path: str, leaf: Any, tensors: list[Tensor]) -> object:
        if is_scalar(leaf):
            return scalar_key(leaf)
        if is_tensor_like(leaf):
            tensor = to_tensor(leaf)
            tensors.append(tensor)
            return tensor.dtype, tuple(extent == 1 for extent in tensor.shape)
        try:
            hash(leaf)
        except TypeError:
            raise InvalidArgumentError(
                f"the argument {self._argument(path)} of the jitted function '{self.__name__}' is neither a tensor nor "
                f"hashable, but {type(leaf).__name__}",
                location=user_line(),
            ) from None
        return type(leaf), leaf

    def _argument(self, path: str) -> str:
        """A leaf's name for people and graphs: the parameter's, and the way to the leaf."""
        # Paths begin with [0] for positional arguments and with [1] for those by keyword.
        if path.startswith("[1]"):
            return path[4:]
        number, _, rest = path[4:].partition("]")
        position = int(number)
        name = self._parameters[position] if position < len(self._parameters) else f"arg{position}"
        return name + rest

    # ---- tracing
    def _trace(self, leaves: list[tuple[str, Any]], structure: Structure) -> _Entry:
        specs: list[TensorSpec] = []
        places: list[int] = []
        for place, (path, leaf) in enumerate(leaves):
            if is_scalar(leaf) or not is_tensor_like(leaf):
                continue
            name = self._argument(path)
            tensor = to_tensor(leaf)
            dims = [1 if e == 1 else Dim.symbol(f"{name}_{axis}") for axis, e in enumerate(tensor.shape)]
            specs.append(TensorSpec(name, tensor.dtype, dims))
            places.append(place)
        constants: list[Any] = []
        shape: list[Structure] = []

        def call(*tensors: Tensor) -> list[Any]:
            values = [leaf for _, leaf in leaves]
            for place, tensor in zip(places, tensors):
                values[place] = tensor
            args, kwargs = structure.build(values)
            returned, built = flatten(self._fn(*args, **kwargs))
            shape[:] = [built]  # a trace may call it twice
            constants[:] = [_TENSOR if is_tensor_like(v) and not isinstance(v, Extent) else v for _, v in returned]
            return [v for (_, v), c in zip(returned, constants) if c is _TENSOR]

        result = trace(call, tuple(specs), name=self.__name__)
        self._traces += 1
        graph = result.graph
        if self._optimize:
            graph.optimize()
        graph.finalize(fallback=self._fallback)
        return _Entry(graph, shape[0], tuple(constants))

    __name__: str = "jit"


def _is_traced(leaf: object) -> bool:
    return isinstance(leaf, Extent) or (isinstance(leaf, Tensor) and leaf.is_traced)


@overload
def jit(fn: Callable[..., Any]) -> JitFunction: ...
@overload
def jit(*, optimize: bool = True, fallback: bool = False) -> Callable[[Callable[..., Any]], JitFunction]: ...
def jit(
    fn: Callable[..., Any] | None = None, *, optimize: bool = True, fallback: bool = False
) -> JitFunction | Callable[[Callable[..., Any]], JitFunction]:
    """Make a function run natively. A decorator, with or without options.

    Tensors and arrays among the arguments (in lists, tuples and dicts, too) become inputs of the graph; every other
    argument is hashable and part of the key. Results come back as the function returned them.

    Args:
        fn: The function.
        optimize: Whether the graph goes through the default pipeline.
        fallback: Whether ops without a native form run by the reference; without it they are refused.
    """
    if fn is None:
        return lambda function: JitFunction(function, optimize, fallback)
    return JitFunction(fn, optimize, fallback)
