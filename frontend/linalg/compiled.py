"""Factorisations of eager tensors, compiled: a loop of the graph, step by step in Python, would take seconds.

A function of `linalg` that is called on eager tensors is traced and compiled for their dtypes and shapes, and the graph
is kept for the next call of that kind. Small matrices are computed op by op: compiling them would take longer.
"""

from __future__ import annotations

import functools
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from sardonyx.frontend.operands import is_tensor_like, to_tensor
from sardonyx.frontend.spec import TensorSpec
from sardonyx.frontend.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])

KEPT = 64
"""How many graphs are kept; those that were not used for longest go first."""

_graphs: OrderedDict[object, tuple[Any, type | None]] = OrderedDict()
_lock = threading.Lock()


def compiled_from(extent: int) -> Callable[[F], F]:
    """Compile a function of matrices when one of them has that extent or a greater one; its options are keywords.

    Args:
        extent: The smallest extent at which compiling takes less time than computing op by op.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            if not all(is_tensor_like(a) for a in args):
                return function(*args, **options)
            tensors = [to_tensor(a) for a in args]
            if any(t.is_traced for t in tensors) or not any(_large(t, extent) for t in tensors):
                return function(*tensors, **options)
            return _run(function, tensors, options)

        return call  # pyright: ignore[reportReturnType]

    return decorate


def _large(x: Tensor, extent: int) -> bool:
    return x.ndim >= 2 and min(x.shape) > 0 and max(x.shape[-2:]) >= extent


def _run(function: Callable[..., Any], tensors: list[Tensor], options: dict[str, Any]) -> Any:
    key = (
        function,
        tuple((t.dtype, t.shape) for t in tensors),
        tuple(sorted((name, repr(value)) for name, value in options.items())),
    )
    with _lock:
        found = _graphs.get(key)
        if found is not None:
            _graphs.move_to_end(key)
    if found is None:
        found = _compiled(function, tensors, options)
        with _lock:
            _graphs[key] = found
            while len(_graphs) > KEPT:
                _graphs.popitem(last=False)
    graph, kind = found
    results = graph.run(tensors)
    return results[0] if kind is None else kind(*results)


def _compiled(function: Callable[..., Any], tensors: list[Tensor], options: dict[str, Any]) -> tuple[Any, type | None]:
    """The graph, and the named tuple that its results make."""
    from sardonyx.frontend.trace import trace

    kinds: list[type | None] = []

    def traced(*inputs: Tensor) -> Any:
        returned = function(*inputs, **options)
        kinds.append(type(returned) if isinstance(returned, tuple) else None)
        return tuple(returned) if isinstance(returned, tuple) else returned

    specs = tuple(TensorSpec(f"x{number}", t.dtype, list(t.shape)) for number, t in enumerate(tensors))
    graph = trace(traced, specs, name=function.__name__).graph
    graph.finalize()
    return graph, kinds[-1]
