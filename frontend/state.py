"""The buffers that outlive the runs of a graph: where their contents are, and how a run takes and leaves them.

A *state* is a tensor of the user's that the traced function writes in place. Native code takes its contents as one more
input and gives what they are afterwards as one more output; the tensor then has that array. Caches (`kv_cache.py`) are
written where they are. Runs of graphs that share a buffer are serialised.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from sardonyx.dialects.attributes import dtype_of, static_shape
from sardonyx.dialects.evaluate import EvalContext, evaluate_function
from sardonyx.dialects.module import main_function, output_values
from sardonyx.dialects.sx.state import CacheOp, StateOp, StateReadOp
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.kv_cache import CacheRun
from sardonyx.frontend.tensor import Tensor

Array = np.ndarray[Any, Any]

_locks: dict[int, tuple[weakref.ref[Any], threading.RLock]] = {}
"""By the holder's `id`: a dict by the holder would compare tensors element by element."""
_guard = threading.RLock()


def lock_of(holder: object) -> threading.RLock:
    """The lock under which the contents that an object holds are taken and replaced."""
    key = id(holder)
    with _guard:
        found = _locks.get(key)
        if found is None:
            found = _locks[key] = (weakref.ref(holder, lambda _: _locks.pop(key, None)), threading.RLock())
        return found[1]


@contextmanager
def exclusive(holders: Sequence[object]) -> Iterator[None]:
    """Hold the locks of all these objects; they are taken in one order everywhere."""
    locks = [lock_of(h) for h in sorted(holders, key=id)]
    for lock in locks:
        lock.acquire()
    try:
        yield
    finally:
        for lock in reversed(locks):
            lock.release()


class States:
    """The states of one graph: its buffers by name."""

    def __init__(
        self, module: ModuleOp, tensors: Mapping[str, Tensor] | None = None, caches: CacheRun | None = None
    ) -> None:
        self.tensors = dict(tensors or {})
        self.caches = caches
        self.reads: list[str] = []
        """The buffers that the graph reads, in order: native code's inputs behind the graph's own."""
        self.writes: list[str] = []
        self.places: list[int] = []
        """For each buffer that is written, which of native code's outputs it is."""
        self.outputs = 0
        """How many outputs are the user's."""
        returned = list(output_values(module))
        self.outputs = len(returned)
        for op in main_function(module).walk():
            if isinstance(op, StateOp) and not isinstance(op, CacheOp):
                self._enter(op, returned)

    def _enter(self, op: StateOp, returned: list[Any]) -> None:
        name = op.buffer_name
        value = op.output if isinstance(op, StateReadOp) else op.operands[0]
        shape, dtype = static_shape(value) or (), dtype_of(value)
        known = self.tensors.get(name)
        if known is None:  # a graph that was read from text
            self.tensors[name] = Tensor.of_array(np.zeros(shape, dtype.numpy))
        elif known.dtype != dtype or known.shape != shape:
            raise InvalidArgumentError(
                f"the state '{name}' is {known.dtype}{list(known.shape)}, but the graph takes {value.type}"
            )
        if isinstance(op, StateReadOp):
            if name not in self.reads and value.first_use is not None:
                self.reads.append(name)
            return
        place = next((k for k, v in enumerate(returned) if v is value), None)
        if place is None:
            place = len(returned)
            returned.append(value)
        self.writes.append(name)
        self.places.append(place)

    @property
    def is_empty(self) -> bool:
        """Whether the graph has no buffers."""
        return not self.tensors and self.caches is None

    def holders(self) -> list[Any]:
        """What holds the contents of the buffers, each once."""
        found: dict[int, Any] = {id(t): t for t in self.tensors.values()}
        if self.caches is not None:
            found[id(self.caches.cache)] = self.caches.cache
        return list(found.values())

    def arrays(self) -> list[Array]:
        """What the buffers hold that the graph reads."""
        return [self.tensors[name].numpy() for name in self.reads]

    def named_arrays(self) -> dict[str, Array]:
        return {name: tensor.numpy() for name, tensor in self.tensors.items()}

    def store(self, name: str, array: Array) -> None:
        """What a buffer holds from now on; the array is shared with the run's result, so nobody may write to it."""
        array.flags.writeable = False
        self.tensors[name]._array = array

    def run(self, native: Callable[..., list[Array]], inputs: Sequence[Any], out: Sequence[Any] | None) -> list[Array]:
        """Run native code on the inputs and what the buffers hold, and keep what it leaves there."""
        caches = self.caches
        with exclusive(self.holders()):
            if caches is None:
                results = native([*inputs, *self.arrays()])
            else:
                rows, buffers = caches.prepare(inputs)
                results = native([*inputs, *caches.native_inputs(buffers), *self.arrays()])
                caches.cache.advance(rows)
            for name, place in zip(self.writes, self.places, strict=True):
                self.store(name, results[place])
        return given(results[: self.outputs], out)

    def evaluate(self, function: func.FuncOp, inputs: Sequence[Any]) -> list[Any]:
        """Run the reference on the inputs and what the buffers hold, and keep what it leaves there."""
        caches = self.caches
        with exclusive(self.holders()):
            ctx = EvalContext(states=self.named_arrays())
            rows = 0
            if caches is not None:
                rows, _ = caches.prepare(inputs)
                ctx.states.update(caches.states())
            results = evaluate_function(function, inputs, ctx=ctx)
            if caches is not None:
                caches.store({name: ctx.updates.pop(name) for name in caches.names if name in ctx.updates})
                caches.cache.advance(rows)
            for name, array in ctx.updates.items():
                self.store(name, array.copy())
        return results


def given(results: list[Array], out: Sequence[Any] | None) -> list[Array]:
    """The results, or the buffers that the user gave, with the results in them.

    Raises:
        InvalidArgumentError: A buffer does not fit.
    """
    if out is None:
        return results
    buffers = [getattr(o, "_array", o) for o in out]
    if len(buffers) != len(results):
        raise InvalidArgumentError(f"the graph has {len(results)} outputs, got {len(buffers)} buffers in out")
    for k, (buffer, made) in enumerate(zip(buffers, results, strict=True)):
        if not isinstance(buffer, np.ndarray) or buffer.dtype != made.dtype or buffer.shape != made.shape:
            raise InvalidArgumentError(f"out[{k}] must be an array of dtype {made.dtype} and shape {list(made.shape)}")
        if not buffer.flags.writeable:
            raise InvalidArgumentError(f"out[{k}] must be writable")
    for buffer, made in zip(buffers, results, strict=True):
        np.copyto(buffer, made)
    return buffers
