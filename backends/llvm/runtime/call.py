"""Runs a compiled graph: the contexts, the way in from Python, and the wording of failures.

One run enters native code once. Outputs whose extents follow from the inputs' are allocated by NumPy before the call,
the others by native code. A context (workspace and tables) serves one run at a time; a second concurrent run makes a
context of its own.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from sardonyx.backends.llvm.codegen.entry import CONTEXT_FIELDS, NEEDS_CARE, OUT_OF_MEMORY, TOO_LARGE, EntrySizes
from sardonyx.backends.llvm.codegen.pool import MAX_CHUNKS
from sardonyx.backends.llvm.lowering.plan import LoweredGraph, Port
from sardonyx.backends.llvm.runtime.jit import Library
from sardonyx.backends.llvm.runtime.pool import POOL, thread_count
from sardonyx.dialects.dims import Call, Dim, Symbol
from sardonyx.dialects.weights import Weight
from sardonyx.errors import ExecutionError, InvalidArgumentError, SardonyxError

Array = np.ndarray[Any, Any]
CHUNKS_PER_THREAD = 4
"""More chunks than threads, so that a core that is kept busy by others does not hold up the rest."""
_libc = ctypes.CDLL(None)
_free = _libc.free
_free.argtypes = [ctypes.c_void_p]
_free.restype = None


def _fields_are_known() -> bool:
    """Whether this NumPy lays out its arrays as `entry_py` reads them."""
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    at = id(array)
    head = (ctypes.c_int64 * 9).from_address(at)
    dims = head[4]
    return (
        head[2] == array.ctypes.data
        and (head[3] & 0xFFFFFFFF) == 2
        and tuple((ctypes.c_int64 * 2).from_address(dims)) == (2, 3)
        and head[7] == id(array.dtype)
        and (head[8] & 1) == 1
    )


FAST_ENTRY = _fields_are_known()


class Block:
    """Memory that native code allocated for an output; freed when the last array on it is gone."""

    __slots__ = ("__array_interface__", "address")

    def __init__(self, address: int, size: int) -> None:
        self.address = address
        self.__array_interface__ = {"data": (address, False), "shape": (size,), "typestr": "|u1", "version": 3}

    def __del__(self) -> None:
        _free(self.address)


class Context:
    """The tables and workspace of one run at a time."""

    def __init__(self, graph: CompiledGraph) -> None:
        inputs, outputs = graph.inputs, graph.outputs
        self.tables: list[Any] = []
        self.input_table = self._table(2 * len(inputs))
        self.output_table = self._table(2 * len(outputs))
        self.slots = self._table(2 * graph.sizes.slots)
        self.output_dims = [self._table(len(port.dims)) for port in outputs]
        for k, dims in enumerate(self.output_dims):
            self.output_table[2 * k + 1] = ctypes.addressof(dims)
        dtypes = self._table(len(inputs))
        for k, port in enumerate(inputs):
            dtypes[k] = id(port.dtype.numpy)
        self.fields = self._table(len(CONTEXT_FIELDS))
        for name, table in (
            ("inputs", self.input_table), ("outputs", self.output_table), ("constants", graph.constant_table),
            ("slots", self.slots), ("dtypes", dtypes),
        ):  # fmt: skip
            self.fields[CONTEXT_FIELDS.index(name)] = ctypes.addressof(table)
        self.address = ctypes.addressof(self.fields)
        if graph.sizes.uses_pool:
            self.use_threads(graph.threads)

    def use_threads(self, threads: int) -> None:
        """Let runs use this many threads."""
        self.fields[CONTEXT_FIELDS.index("pool")] = POOL.address(threads)
        self.fields[CONTEXT_FIELDS.index("chunks")] = min(MAX_CHUNKS, threads * CHUNKS_PER_THREAD)

    def _table(self, length: int) -> Any:
        table = (ctypes.c_int64 * max(length, 1))()
        self.tables.append(table)
        return table

    def field(self, name: str) -> int:
        return self.fields[CONTEXT_FIELDS.index(name)]

    def __del__(self) -> None:
        for k in range(0, len(getattr(self, "slots", ())) - 1, 2):
            if self.slots[k]:
                _free(self.slots[k])


class CompiledGraph:
    """A graph as native code. `run` may be called from several threads at once."""

    def __init__(self, lowered: LoweredGraph, sizes: EntrySizes, library: Library, keep: object = None) -> None:
        self.inputs = lowered.inputs
        self.outputs = lowered.outputs
        self.failures = lowered.failures
        self.sizes = sizes
        self.library = library
        self._keep = keep
        self.threads = thread_count()
        self.constants = [_constant_array(c) for c in lowered.constants]
        self.constant_table = (ctypes.c_int64 * max(len(self.constants), 1))(
            *[a.__array_interface__["data"][0] for a in self.constants]
        )
        self._contexts: list[Context] = [Context(self)]
        self._taken = threading.Lock()
        known = [_shape_source(port, self.inputs) for port in self.outputs]
        self._native_outputs = [k for k, source in enumerate(known) if source is None]
        kinds: list[Any] = [ctypes.c_void_p, *([ctypes.py_object] * len(self.inputs))]
        kinds += [ctypes.c_void_p if source is None else ctypes.py_object for source in known]
        self._entry_py = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(library.addresses["entry_py"])
        self._entry = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p)(library.addresses["entry"])
        self.run: Callable[..., list[Array]] = self._make_run(known) if FAST_ENTRY else self.run_carefully

    # ---- the fast way
    def _make_run(self, known: list[str | None]) -> Callable[..., list[Array]]:
        """Generate the call for these inputs and outputs: no loop, no table look-up, one native call."""
        count = len(self.inputs)
        names = [f"a{k}" for k in range(count)]
        lines = [
            "def run(arrays, out=None):",
            "    if out is not None:",
            "        return careful(arrays, out)",
            "    try:",
        ]
        if count:
            lines.append(f"        {', '.join(names)}{',' if count == 1 else ''} = arrays")
        for name in names:
            lines.append(f"        if type({name}) is not ndarray: {name} = {name}._array")
        for k in range(count):
            if any(source and f"s{k}[" in source for source in known):
                lines.append(f"        s{k} = a{k}.shape")
        results = []
        for k, source in enumerate(known):
            if source is None:
                results.append("None")
            else:
                lines.append(f"        o{k} = empty({source}, t{k})")
                results.append(f"o{k}")
        lines += [
            "    except (AttributeError, ValueError, TypeError, IndexError):",
            "        return careful(arrays)",
            "    if not acquire(False): return careful(arrays)",
            "    try:",
            f"        status = entry({', '.join(['address', *names, *results])})",
        ]
        if self._native_outputs:
            lines.append("        blocks = adopt(status)")
        lines += ["    finally:", "        release()", "    if status: return failed(status, arrays)"]
        for k in self._native_outputs:
            results[k] = f"blocks[{self._native_outputs.index(k)}]"
        lines.append(f"    return [{', '.join(results)}]")
        context = self._contexts[0]
        scope: dict[str, Any] = {
            "ndarray": np.ndarray, "empty": np.empty, "careful": self.run_carefully, "acquire": self._taken.acquire,
            "release": self._taken.release, "entry": self._entry_py, "address": context.address,
            "adopt": lambda status: self._adopt(context, status), "failed": self._failed_fast,
            **{f"t{k}": port.dtype.numpy for k, port in enumerate(self.outputs)},
        }  # fmt: skip
        exec("\n".join(lines), scope)
        return scope["run"]

    def _failed_fast(self, status: int, arrays: Sequence[Any]) -> list[Array]:
        if status == NEEDS_CARE:
            return self.run_carefully(arrays)
        raise self.failure(status, self._contexts[0])

    # ---- the careful way
    def run_carefully(self, arrays: Sequence[Any], out: Sequence[Array] | None = None) -> list[Array]:
        """Check every input, bring it into the form that native code takes, and run on a context of its own.

        Raises:
            InvalidArgumentError: An input does not fit; the message names it.
            ExecutionError: The run failed on the data.
        """
        prepared = check_inputs(self.inputs, arrays)
        results = self._check_out(out)
        context = Context(self)
        shapes = []
        for k, array in enumerate(prepared):
            dims = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
            shapes.append(dims)
            context.input_table[2 * k] = array.__array_interface__["data"][0]
            context.input_table[2 * k + 1] = ctypes.addressof(dims)
        for k in range(len(self.outputs)):
            context.output_table[2 * k] = 0
        status = self.enter(context)
        blocks = self._adopt(context, status, everything=True)
        if status:
            raise self.failure(status, context)
        if results is None:
            return blocks
        for k, (given, made) in enumerate(zip(results, blocks, strict=True)):
            if given.shape != made.shape:
                raise InvalidArgumentError(f"out[{k}] has shape {list(given.shape)}, the result has {list(made.shape)}")
            np.copyto(given, made)
        return list(results)

    def enter(self, context: Context) -> int:
        """Run on the tables of a context as they stand; returns the status."""
        return self._entry(context.address)

    def _check_out(self, out: Sequence[Array] | None) -> list[Array] | None:
        if out is None:
            return None
        if len(out) != len(self.outputs):
            raise InvalidArgumentError(f"the graph has {len(self.outputs)} outputs, got {len(out)} buffers in out")
        results = [getattr(o, "_array", o) for o in out]
        for k, (array, port) in enumerate(zip(results, self.outputs, strict=True)):
            if not isinstance(array, np.ndarray) or array.dtype != port.dtype.numpy or not array.flags.writeable:
                raise InvalidArgumentError(f"out[{k}] must be a writable array of dtype {port.dtype}")
        return results

    def _adopt(self, context: Context, status: int, everything: bool = False) -> list[Array]:
        """The outputs that native code allocated, as arrays; their records are emptied for the next run."""
        out: list[Array] = []
        for k in range(len(self.outputs)) if everything else self._native_outputs:
            port = self.outputs[k]
            address = context.output_table[2 * k]
            context.output_table[2 * k] = 0
            if not address:
                continue
            shape = tuple(context.output_dims[k][: len(port.dims)])
            if status:
                _free(address)
                continue
            size = port.dtype.itemsize
            for extent in shape:
                size *= extent
            out.append(np.asarray(Block(address, size)).view(port.dtype.numpy).reshape(shape))
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

    def use_threads(self, threads: int) -> None:
        """Let runs use this many threads, the calling one included.

        Raises:
            InvalidArgumentError: The number is below 1.
        """
        if threads < 1:
            raise InvalidArgumentError(f"a run needs at least one thread, not {threads}")
        self.threads = threads
        if self.sizes.uses_pool:
            for context in self._contexts:
                context.use_threads(threads)

    @property
    def entries(self) -> int:
        """How often native code was entered through the shared context."""
        return self._contexts[0].field("entries")

    @property
    def kernels_launched(self) -> int:
        return self._contexts[0].field("kernels")


def check_inputs(ports: Sequence[Port], arrays: Sequence[Any], unranked: Collection[int] = ()) -> list[Array]:
    """The inputs as contiguous arrays of the declared dtypes, ranks and static extents.

    Inputs whose number is in `unranked` may have any rank.

    Raises:
        InvalidArgumentError: One does not fit; the message names it.
    """
    given = list(arrays)
    if len(given) != len(ports):
        raise InvalidArgumentError(f"the graph takes {len(ports)} inputs, got {len(given)}")
    out: list[Array] = []
    for number, (value, port) in enumerate(zip(given, ports, strict=True)):
        array = getattr(value, "_array", value)
        if not isinstance(array, np.ndarray):
            array = np.asarray(array)
        native = array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
        if native.dtype != port.dtype.numpy:
            raise InvalidArgumentError(f"input '{port.name}' has dtype {array.dtype}, expected {port.dtype}")
        if number not in unranked:
            _check_extents(port, native)
        out.append(np.ascontiguousarray(native).reshape(array.shape))
    return out


def _check_extents(port: Port, array: Array) -> None:
    if array.ndim != len(port.dims):
        expected = f"{len(port.dims)} ([{', '.join(map(str, port.dims))}])"
        raise InvalidArgumentError(f"input '{port.name}' has rank {array.ndim}, expected {expected}")
    for axis, (actual, dim) in enumerate(zip(array.shape, port.dims, strict=True)):
        if dim.static_value is not None and dim.static_value != actual:
            raise InvalidArgumentError(
                f"input '{port.name}' has {actual} elements along axis {axis}, expected {dim.static_value}"
            )


def _constant_array(entry: Weight | Array) -> Array:
    array = entry.array() if isinstance(entry, Weight) else entry
    return np.ascontiguousarray(array)


def _shape_source(port: Port, inputs: Sequence[Port]) -> str | None:
    """Python source of the output's shape from the inputs' shapes `s0, s1 …`; None where data decides it."""
    places: dict[str, str] = {}
    for number, given in enumerate(inputs):
        for axis, dim in enumerate(given.dims):
            if dim.is_symbol:
                places.setdefault(next(iter(dim.symbols())), f"s{number}[{axis}]")

    def source(dim: Dim) -> str | None:
        if dim.static_value is not None:
            return str(dim.static_value)
        parts: list[str] = []
        for coefficient, atoms in dim.terms():
            factors = [str(coefficient)] if coefficient != 1 or not atoms else []
            for atom in atoms:
                if isinstance(atom, Symbol):
                    if atom.name not in places:
                        return None
                    factors.append(places[atom.name])
                    continue
                text = call_source(atom)
                if text is None:
                    return None
                factors.append(text)
            parts.append("*".join(factors))
        return "(" + " + ".join(parts) + ")"

    def call_source(atom: Call) -> str | None:
        args = [source(a) for a in atom.args]
        if None in args:
            return None
        if atom.fn == "broadcast":  # native code checks that the extents fit
            text = args[0]
            for other in args[1:]:
                text = f"({other} if {text} == 1 else {text})"
            return text
        if atom.fn in ("min", "max"):
            return f"{atom.fn}({', '.join(map(str, args))})"
        divisor = atom.args[1].static_value
        if divisor is None or divisor == 0:
            return None
        return {"floordiv": f"({args[0]}//{args[1]})", "ceildiv": f"(-(-{args[0]}//{args[1]}))",
                "mod": f"({args[0]}%{args[1]})"}[atom.fn]  # fmt: skip

    extents = [source(d) for d in port.dims]
    if any(e is None for e in extents):
        return None
    return "(" + "".join(f"{e}, " for e in extents) + ")"
