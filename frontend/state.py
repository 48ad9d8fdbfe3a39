"""The buffers that outlive the runs of a graph: where their contents are, and how a run takes and leaves them.

A *state* is a tensor of the user's that the traced function writes in place. Native code takes its contents as one more
input and gives what they are afterwards as one more output; the tensor then has that array. Runs of graphs that share a
tensor are serialised.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from sardonyx.dialects.attributes import dtype_of, static_shape
from sardonyx.dialects.module import main_function, output_values
from sardonyx.dialects.sx.state import CacheAppendOp, CacheOp, StateOp, StateReadOp, StateWriteOp
from sardonyx.errors import InvalidArgumentError
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

    def __init__(self, module: ModuleOp, tensors: Mapping[str, Tensor] | None = None) -> None:
        self.tensors = dict(tensors or {})
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

    def holders(self) -> list[Tensor]:
        return list({id(t): t for t in self.tensors.values()}.values())

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
        with exclusive(self.holders()):
            results = native([*inputs, *self.arrays()])
            for name, place in zip(self.writes, self.places, strict=True):
                self.store(name, results[place])
        return given(results[: self.outputs], out)


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


def written_output(module: ModuleOp, names: Sequence[str]) -> str | None:
    """The output that is what the graph writes to a buffer, or a name for it; None for a graph without state."""
    returned = output_values(module)
    found: str | None = None
    for op in main_function(module).walk():
        if isinstance(op, StateWriteOp | CacheAppendOp):
            value = op.value if isinstance(op, StateWriteOp) else op.output
            place = next((k for k, v in enumerate(returned) if v is value), None)
            if place is not None:
                return names[place]
            found = found or op.buffer_name
        elif isinstance(op, StateOp):
            found = found or op.buffer_name
    return found
