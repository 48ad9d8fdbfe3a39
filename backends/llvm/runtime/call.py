"""Runs a compiled graph: the contexts, the way in from Python, and the wording of failures.

One run enters native code once. Outputs whose extents follow from the inputs' are allocated before the call, the others
by native code. A context (workspace and tables) serves one run at a time; runs side by side have one each.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sardonyx.backends.llvm.codegen.pool import MAX_CHUNKS
from sardonyx.backends.llvm.interface import (
    CONTEXT_FIELDS,
    NEEDS_CARE,
    OUT_OF_MEMORY,
    TOO_LARGE,
    EntrySizes,
    Failure,
    Port,
)
from sardonyx.backends.llvm.runtime.blocks import adopt, free_memory
from sardonyx.backends.llvm.runtime.caller import generate_callers
from sardonyx.backends.llvm.runtime.jit import Library
from sardonyx.backends.llvm.runtime.lists import Packed, unpack
from sardonyx.backends.llvm.runtime.phases import phase
from sardonyx.backends.llvm.runtime.pool import POOL, thread_count
from sardonyx.backends.llvm.runtime.python_call import Quick, enter_function, is_available, quick_function
from sardonyx.backends.llvm.runtime.shapes import Array, check_inputs, shape_source
from sardonyx.dialects.weights import Weight
from sardonyx.errors import ExecutionError, InvalidArgumentError, SardonyxError

CHUNKS_PER_THREAD = 4
"""More chunks than threads, so that a core that is kept busy by others does not hold up the rest."""


@dataclass
class Program:
    """What a run needs beside the code: inputs, outputs, constants, the wording of failures, the sizes of tables."""

    inputs: list[Port]
    outputs: list[Port]
    constants: list[Array]
    failures: list[Failure]
    sizes: EntrySizes


class Context:
    """The tables and workspace of one run at a time."""

    def __init__(self, graph: CompiledGraph) -> None:
        inputs, outputs, sizes = graph.inputs, graph.outputs, graph.sizes
        self.tables: list[Any] = []
        self.input_table = self._table(2 * len(inputs))
        self.output_table = self._table(2 * len(outputs))
        self.slots = self._table(2 * sizes.slots)
        self.output_dims = [self._table(len(port.dims) if port.kind == "tensor" else 2) for port in outputs]
        for k, dims in enumerate(self.output_dims):
            self.output_table[2 * k + 1] = ctypes.addressof(dims)
        dtypes = self._table(len(inputs))
        for k, port in enumerate(inputs):
            dtypes[k] = id(port.dtype.numpy)
        self.times = self._table(len(sizes.launches))
        self.fields = self._table(len(CONTEXT_FIELDS))
        for name, table in (
            ("inputs", self.input_table), ("outputs", self.output_table), ("constants", graph.constant_table),
            ("slots", self.slots), ("places", self._table(sizes.places)), ("dtypes", dtypes),
            ("times", self.times),
        ):  # fmt: skip
            self.fields[CONTEXT_FIELDS.index(name)] = ctypes.addressof(table)
        self.address = ctypes.addressof(self.fields)
        if sizes.uses_pool:
            self.use_threads(graph.threads)

    def use_threads(self, threads: int) -> None:
        """Let runs use this many threads."""
        self.fields[CONTEXT_FIELDS.index("pool")] = POOL.address(threads)
        self.fields[CONTEXT_FIELDS.index("chunks")] = min(MAX_CHUNKS, threads * CHUNKS_PER_THREAD)
        self.fields[CONTEXT_FIELDS.index("workers")] = threads - 1

    def _table(self, length: int) -> Any:
        table = (ctypes.c_int64 * max(length, 1))()
        self.tables.append(table)
        return table

    def field(self, name: str) -> int:
        return self.fields[CONTEXT_FIELDS.index(name)]

    def workspace_bytes(self) -> int:
        """How much memory the context holds on to."""
        kept = sum(size for _, size in self._kept())
        return self.field("arena_bytes") + kept + sum(self.slots[k] for k in range(1, len(self.slots), 2))

    def _kept(self) -> list[tuple[int, int]]:
        """Address and capacity of the chunks of what the last run kept until its end (`sx.keep`)."""
        out: list[tuple[int, int]] = []
        address = self.field("kept")
        while address:
            before, capacity = (ctypes.c_int64 * 2).from_address(address)
            out.append((address, capacity))
            address = before
        return out

    def __del__(self) -> None:
        for k in range(0, len(getattr(self, "slots", ())) - 1, 2):
            if self.slots[k]:
                free_memory(self.slots[k])
        if not hasattr(self, "fields"):
            return
        for address in [self.field("arena"), *(address for address, _ in self._kept())]:
            if address:
                free_memory(address)


class CompiledGraph:
    """A graph as native code. `run` may be called from several threads at once."""

    def __init__(self, program: Program, library: Library, keep: object = None) -> None:
        self.inputs = program.inputs
        self.outputs = program.outputs
        self.failures = program.failures
        self.sizes = program.sizes
        self.constants = program.constants
        self.library = library
        self._keep = keep
        self.threads = thread_count()
        self.constant_table = (ctypes.c_int64 * max(len(self.constants), 1))(
            *[a.__array_interface__["data"][0] for a in self.constants]
        )
        # A run takes the address of an idle context and puts it back: both are one atomic step, also across a fork.
        self._contexts: dict[int, Context] = {}
        self._idle: list[int] = []
        self._idle.append(self._new_context())
        shapes = [shape_source(port, self.inputs) for port in self.outputs]
        self._native_outputs = [k for k, shape in enumerate(shapes) if shape is None]
        self._entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(library.addresses["entry"])
        self.run: Callable[..., list[Array]] = self.run_carefully
        if is_available() and all(port.kind == "tensor" for port in (*self.inputs, *self.outputs)):
            self.run = generate_callers(self, shapes, enter_function(self), self._idle)

    def quick(self, wrapper: type, slot: str) -> Quick | None:
        """A run as one native call, where all results may be small (see `runtime/python_call.py`)."""
        return quick_function(self, wrapper, slot, self._idle)

    def _new_context(self) -> int:
        context = Context(self)
        self._contexts[context.address] = context
        return context.address

    def adopt_outputs(self, address: int, status: int) -> list[Array]:
        """The outputs that native code allocated, as arrays; their records are emptied for the next run."""
        return self._adopt(self._contexts[address], status, self._native_outputs)

    def failed(self, status: int, arrays: Sequence[Any], out: Sequence[Any] | None, address: int) -> list[Array]:
        """What a run does whose status isn't 0: once more, carefully, or the error."""
        if status == NEEDS_CARE:
            return self.run_carefully(arrays, out)
        raise self.failure(status, self._contexts[address])

    # ---- the careful way
    def run_carefully(self, arrays: Sequence[Any], out: Sequence[Any] | None = None) -> list[Array]:
        """Check every input, bring it into the form that native code takes, and run.

        Raises:
            InvalidArgumentError: An input does not fit; the message names it.
            ExecutionError: The run failed on the data.
        """
        prepared = check_inputs(self.inputs, arrays)
        results = self._check_out(out)
        try:
            address = self._idle.pop()
        except IndexError:
            address = self._new_context()
        context = self._contexts[address]
        try:
            shapes: list[Any] = []
            for k, array in enumerate(prepared):
                if isinstance(array, Packed):
                    context.input_table[2 * k], context.input_table[2 * k + 1] = array.table, array.dims
                    continue
                shapes.append((ctypes.c_int64 * max(array.ndim, 1))(*array.shape))
                context.input_table[2 * k] = array.__array_interface__["data"][0]
                context.input_table[2 * k + 1] = ctypes.addressof(shapes[-1])
            for k in range(len(self.outputs)):
                context.output_table[2 * k] = 0
            status = self.enter(context)
            blocks = self._adopt(context, status, range(len(self.outputs)))
            if status:
                raise self.failure(status, context)
        finally:
            self._idle.append(address)
        if results is None:
            return blocks
        for k, (given, made) in enumerate(zip(results, blocks, strict=True)):
            if given.shape != made.shape:
                raise InvalidArgumentError(f"out[{k}] has shape {list(given.shape)}, the result has {list(made.shape)}")
        for given, made in zip(results, blocks, strict=True):
            np.copyto(given, made)
        return list(results)

    def enter(self, context: Context) -> int:
        """Run on the tables of a context as they stand; returns the status."""
        return self._entry(context.address)

    def _check_out(self, out: Sequence[Any] | None) -> list[Array] | None:
        if out is None:
            return None
        if len(out) != len(self.outputs):
            raise InvalidArgumentError(f"the graph has {len(self.outputs)} outputs, got {len(out)} buffers in out")
        results = [getattr(o, "_array", o) for o in out]
        for k, (array, port) in enumerate(zip(results, self.outputs, strict=True)):
            if port.kind != "tensor":
                raise InvalidArgumentError(f"out[{k}]: the output is a sequence or an optional, which is no buffer")
            if not isinstance(array, np.ndarray) or array.dtype != port.dtype.numpy or not array.flags.writeable:
                raise InvalidArgumentError(f"out[{k}] must be a writable array of dtype {port.dtype}")
        return results

    def _adopt(self, context: Context, status: int, numbers: Sequence[int]) -> list[Array]:
        out: list[Array] = []
        for k in numbers:
            port = self.outputs[k]
            address = context.output_table[2 * k]
            context.output_table[2 * k] = 0
            if not address:
                continue
            if port.kind != "tensor":
                out.append(unpack(port, address, context.output_dims[k], failed=bool(status)))
                continue
            shape = tuple(context.output_dims[k][: len(port.dims)])
            if status:
                free_memory(address)
                continue
            out.append(adopt(address, 0, shape, port.dtype.numpy))
        return out

    def failure(self, status: int, context: Context) -> SardonyxError:
        """The error of a status, with the values that it shows."""
        if status == OUT_OF_MEMORY:
            return ExecutionError("the run needs more memory than there is", code_name="RESOURCE_EXHAUSTED")
        if status == TOO_LARGE:
            return InvalidArgumentError("a tensor of the run would be larger than 64 TiB")
        failure = self.failures[status - 1]
        message = failure.message.format(*(context.field(f"shown{k}") for k in range(3)))
        return ExecutionError(message, location=failure.location, op=failure.op)

    # ---- what it does
    def use_threads(self, threads: int) -> None:
        """Let runs use this many threads, the calling one included.

        Raises:
            InvalidArgumentError: The number is below 1.
        """
        if threads < 1:
            raise InvalidArgumentError(f"a run needs at least one thread, not {threads}")
        self.threads = threads
        if self.sizes.uses_pool:
            for context in list(self._contexts.values()):
                context.use_threads(threads)

    @property
    def entries(self) -> int:
        """How often native code was entered."""
        return sum(context.field("entries") for context in list(self._contexts.values()))

    @property
    def kernels_launched(self) -> int:
        return sum(context.field("kernels") for context in list(self._contexts.values()))

    @property
    def cycles(self) -> list[int]:
        """How many cycles each launch took in all runs; counted with `EntryOptions.timed`."""
        contexts = list(self._contexts.values())
        return [sum(context.times[k] for context in contexts) for k in range(len(self.sizes.launches))]

    @property
    def workspace_bytes(self) -> int:
        """How much workspace the graph holds on to, for all runs that ever were side by side."""
        return sum(context.workspace_bytes() for context in list(self._contexts.values()))


def constant_arrays(entries: Sequence[Weight | Array]) -> list[Array]:
    """The contents of a lowered graph's constants, contiguous."""
    return [np.ascontiguousarray(e.array() if isinstance(e, Weight) else e) for e in entries]


def link(program: Program, objects: Sequence[bytes]) -> CompiledGraph:
    """Load a program's objects into this process."""
    with phase("link"):
        return CompiledGraph(program, Library(objects, ("entry", "entry_py")))
