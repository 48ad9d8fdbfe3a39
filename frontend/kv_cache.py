"""`attach_kv_cache`: the past/present pairs of a decoding step become buffers inside of the graph.

A *pair* is an input that is a cache (its extent along one axis is a symbol) and an output that is that input with rows
appended. Attached, the graph has neither: it has a buffer of a fixed capacity and a position, and a run appends the new
rows behind those that are there. Native code writes the new rows alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, TensorType
from xdsl.ir import BlockArgument, SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of, is_anonymous, tensor_type, type_dims
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.module import input_names, main_function, output_names, output_values, set_outputs
from sardonyx.dialects.sx.concat import ConcatOp
from sardonyx.dialects.sx.state import CacheAppendOp, CacheOp, CacheReadOp, full_message
from sardonyx.dialects.sx.unary import IdentityOp
from sardonyx.dialects.types import is_tensor
from sardonyx.errors import FailedPreconditionError, InvalidArgumentError
from sardonyx.frontend.spec import TensorSpec

Array = np.ndarray[Any, Any]
DEFAULT_CAPACITY = 2048


@dataclass
class Buffer:
    """The memory of one cache: `dims` are those of what it holds, with the symbol of its length along `axis`."""

    name: str
    dtype: DType
    dims: tuple[Dim, ...]
    axis: int
    array: Array | None = None


class KVCache:
    """The caches of a graph, or of several graphs that share them: one capacity, one position, a buffer per cache.

    Made by `ModelGraph.attach_kv_cache`.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.buffers: dict[str, Buffer] = {}
        self._position = 0

    @property
    def position(self) -> int:
        """How many rows each cache holds."""
        return self._position

    def reset(self) -> None:
        """Forget all rows."""
        self.rewind(0)

    def rewind(self, position: int) -> None:
        """Forget the rows from this position on.

        Raises:
            InvalidArgumentError: There are not so many.
        """
        from sardonyx.frontend.state import exclusive

        with exclusive([self]):
            if not 0 <= position <= self._position:
                raise InvalidArgumentError(f"rewind(): the cache holds {self._position} rows, not {position}")
            self._position = position

    def arrays(self) -> dict[str, Array]:
        """Copies of what the caches hold, by name."""
        from sardonyx.frontend.state import exclusive

        with exclusive([self]):
            return {name: self.held(b).copy() for name, b in self.buffers.items() if b.array is not None}

    def held(self, buffer: Buffer) -> Array:
        """The rows that a buffer holds."""
        assert buffer.array is not None
        return buffer.array[(slice(None),) * buffer.axis + (slice(0, self._position),)]

    def copy(self) -> KVCache:
        """A cache of its own with the same rows."""
        other = KVCache(self.capacity)
        other._position = self._position
        for name, b in self.buffers.items():
            array = None if b.array is None else b.array.copy()
            other.buffers[name] = Buffer(name, b.dtype, b.dims, b.axis, array)
        return other

    def __repr__(self) -> str:
        return f"<KVCache of {len(self.buffers)} buffers, {self._position} of {self.capacity} rows>"

    def __getstate__(self) -> dict[str, Any]:
        """The rows alone: symbols that nobody named are numbered by process."""
        held = {n: None if b.array is None else self.held(b).copy() for n, b in self.buffers.items()}
        buffers = [(b.name, b.dtype, b.dims, b.axis, held[n]) for n, b in self.buffers.items()]
        return {"capacity": self.capacity, "position": self._position, "buffers": buffers}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["capacity"])
        self._position = state["position"]
        for name, dtype, dims, axis, rows in state["buffers"]:
            self.buffers[name] = buffer = Buffer(name, dtype, dims, axis)
            if rows is not None:
                buffer.array = self._memory(buffer, rows.shape)
                self.held(buffer)[...] = rows

    def _memory(self, buffer: Buffer, extents: Sequence[int]) -> Array:
        shape = list(extents)
        shape[buffer.axis] = self.capacity
        return np.zeros(shape, buffer.dtype.numpy)

    # ---- runs
    def allocate(self, buffer: Buffer, bindings: Mapping[str, int]) -> Array:
        """The memory of a buffer for a run with these extents; an empty cache takes any.

        Raises:
            InvalidArgumentError: The cache holds rows of other extents, or the inputs don't tell them.
        """
        extents: list[int] = []
        for axis, dim in enumerate(buffer.dims):
            if axis == buffer.axis:
                extents.append(self.capacity)
            elif dim.symbols() <= bindings.keys():
                extents.append(dim.evaluate(bindings))
            elif buffer.array is not None:
                extents.append(buffer.array.shape[axis])
            else:
                raise InvalidArgumentError(f"the extent '{dim}' of the cache '{buffer.name}' is that of no input")
        if buffer.array is None or (self._position == 0 and buffer.array.shape != tuple(extents)):
            buffer.array = self._memory(buffer, extents)
        if buffer.array.shape != tuple(extents):
            have, want = list(buffer.array.shape), extents
            have[buffer.axis] = want[buffer.axis] = self._position
            raise InvalidArgumentError(
                f"the cache '{buffer.name}' holds rows of the shape {have}, but this run is of {want}",
                hint="reset() the cache to begin with another batch",
            )
        return buffer.array

    def advance(self, rows: int) -> None:
        """Count rows that a run has appended."""
        self._position += rows

    def check_room(self, rows: int) -> None:
        """Refuse a run that appends more rows than there is room for.

        Raises:
            FailedPreconditionError: There is not.
        """
        if self._position + rows > self.capacity:
            name = next(iter(self.buffers))
            raise FailedPreconditionError(
                full_message(name).format(self._position, rows, self.capacity),
                hint="reset() or rewind() the cache, or attach one with a larger capacity",
            )


# ---- attaching


@dataclass(frozen=True)
class _Pair:
    argument: BlockArgument
    past: str
    present: str
    concat: ConcatOp
    new: SSAValue
    axis: int


def attach(module: ModuleOp, cache: KVCache, pairs: Mapping[str, str] | None) -> None:
    """Put a cache in the place of the pairs; `pairs` names them (input → output), by default all that there are.

    Raises:
        InvalidArgumentError: There are none, or one that is named is none.
    """
    found = _find(module, pairs)
    _check_cache(cache, found)
    # All begin empty and grow alike, so their lengths are one.
    symbols = [dims_of(p.argument)[p.axis] for p in found]
    symbol = next((s for s in symbols if not is_anonymous(s)), None) or _free_symbol(module)
    _rename(module, {next(iter(s.symbols())): symbol for s in symbols if s != symbol})
    rows = next(iter(symbol.symbols()))
    for pair in found:
        axis, dims, name = pair.axis, dims_of(pair.argument), pair.past
        if name not in cache.buffers:
            cache.buffers[name] = Buffer(name, dtype_of(pair.argument), dims, axis)
        properties: dict[str, Any] = {"state": name, "axis": axis, "rows": rows, "capacity": cache.capacity}
        append = CacheAppendOp.make(
            pair.new, location=pair.concat.location, result_types=[pair.concat.output.type], **properties
        )
        append.output.name_hint = pair.concat.output.name_hint
        block = pair.concat.parent_block()
        assert block is not None
        block.insert_op_before(append, pair.concat)
        pair.concat.output.replace_all_uses_with(append.output)
        pair.concat.detach()
        pair.concat.erase()
        if pair.argument.first_use is not None:
            read = CacheReadOp.make(result_types=[pair.argument.type], location=pair.argument.location, **properties)
            read.output.name_hint = pair.argument.name_hint
            first = main_function(module).body.block.first_op
            assert first is not None
            main_function(module).body.block.insert_op_before(read, first)
            pair.argument.replace_all_uses_with(read.output)
    presents = [v for n, v in zip(output_names(module), output_values(module)) if n in {p.present for p in found}]
    _drop(module, {p.past for p in found}, {p.present for p in found})
    for value in presents:
        op = value.owner
        while isinstance(op, IdentityOp) and op.output.first_use is None:
            before = op.operands[0].owner
            op.detach()
            op.erase()
            op = before


def _find(module: ModuleOp, named: Mapping[str, str] | None) -> list[_Pair]:
    inputs = dict(zip(input_names(module), main_function(module).body.block.args, strict=True))
    outputs = dict(zip(output_names(module), output_values(module), strict=True))
    if named is not None:
        for past, present in named.items():
            for kind, name, there in (("input", past, inputs), ("output", present, outputs)):
                if name not in there:
                    raise InvalidArgumentError(f"attach_kv_cache: the graph has no {kind} '{name}'")
    found: dict[str, _Pair] = {}
    for present, value in outputs.items():
        pair = _pair(inputs, present, value)
        if pair is not None and (named is None or named.get(pair.past) == present):
            found[pair.past] = pair
    missing = [past for past in named or () if past not in found]
    if missing:
        present = (named or {})[missing[0]]
        raise InvalidArgumentError(
            f"attach_kv_cache: the output '{present}' is not the input '{missing[0]}' with rows appended "
            "(a concat of the two along an axis whose extent is a symbol)"
        )
    if not found:
        raise InvalidArgumentError(
            "attach_kv_cache: no output of the graph is an input with rows appended (a concat of the two along an axis "
            "whose extent is a symbol)",
            hint="trace the step with the past of each cache as an input, such as f32[1,heads,past,size], and return "
            "concat([past, new], axis)",
        )
    order = list(inputs)
    return sorted(found.values(), key=lambda p: order.index(p.past))


def _pair(inputs: Mapping[str, BlockArgument], present: str, value: SSAValue) -> _Pair | None:
    op = value.owner
    while isinstance(op, IdentityOp):
        op = op.operands[0].owner
    if not isinstance(op, ConcatOp) or len(op.inputs) != 2 or op.parent_op() is None:
        return None
    held, new = op.inputs
    past = next((name for name, argument in inputs.items() if argument is held), None)
    if past is None or not isinstance(held, BlockArgument) or not is_tensor(held.type) or new is held:
        return None
    dims = dims_of(held)
    axis = op.attr("axis") % len(dims)
    return _Pair(held, past, present, op, new, axis) if dims[axis].is_symbol else None


def _check_cache(cache: KVCache, pairs: Sequence[_Pair]) -> None:
    """Hold the pairs against the buffers of a cache that other graphs use already."""
    if not cache.buffers:
        return
    names = {p.past for p in pairs}
    if names != cache.buffers.keys():
        raise InvalidArgumentError(
            f"attach_kv_cache: the cache has buffers for {sorted(cache.buffers)}, the graph for {sorted(names)}"
        )
    for pair in pairs:
        buffer = cache.buffers[pair.past]
        statics = [d.static_value for d in dims_of(pair.argument)]
        theirs = [d.static_value for d in buffer.dims]
        fits = len(statics) == len(theirs) and all(a is None or b is None or a == b for a, b in zip(statics, theirs))
        if not fits or dtype_of(pair.argument) != buffer.dtype or pair.axis != buffer.axis:
            raise InvalidArgumentError(
                f"attach_kv_cache: the cache '{pair.past}' is of {buffer.dtype} and the shape "
                f"[{', '.join(map(str, buffer.dims))}], which {pair.argument.type} does not fit"
            )


def _free_symbol(module: ModuleOp) -> Dim:
    """A symbol that the module has not."""
    taken = {n for v in _values(module) for d in _dims(v) for n in d.symbols()}
    name, number = "cached", 1
    while name in taken:
        name, number = f"cached_{number}", number + 1
    return Dim.symbol(name)


def _rename(module: ModuleOp, symbols: Mapping[str, Dim]) -> None:
    """Put other symbols in the place of these, in all types."""
    for value in _values(module):
        dims = _dims(value)
        if symbols and any(name in d.symbols() for d in dims for name in symbols):
            value._type = tensor_type(dtype_of(value), [d.substitute(symbols) for d in dims])


def _values(module: ModuleOp) -> list[SSAValue]:
    out: list[SSAValue] = []
    for op in module.walk():
        out.extend(op.results)
        for region in op.regions:
            for block in region.blocks:
                out.extend(block.args)
    return out


def _dims(value: SSAValue) -> tuple[Dim, ...]:
    return type_dims(value.type) if isinstance(value.type, TensorType) else ()


def _drop(module: ModuleOp, inputs: set[str], outputs: set[str]) -> None:
    """Take inputs that nobody reads and outputs out of the signature."""
    function = main_function(module)
    kept = [(n, v) for n, v in zip(output_names(module), output_values(module), strict=True) if n not in outputs]
    names = input_names(module)
    entries = function.properties.get("arg_attrs")
    arguments = list(function.body.block.args)
    if isinstance(entries, ArrayAttr):
        left = [entry for entry, name in zip(entries.data, names, strict=True) if name not in inputs]
        function.properties["arg_attrs"] = ArrayAttr(left)
    for name, argument in zip(names, arguments, strict=True):
        if name in inputs:
            function.body.block.erase_arg(argument)
    set_outputs(module, [v for _, v in kept], [n for n, _ in kept])


# ---- running


class CacheRun:
    """How the runs of one graph use its cache."""

    def __init__(self, module: ModuleOp, cache: KVCache, specs: Sequence[TensorSpec]) -> None:
        self.cache = cache
        ops = [op for op in main_function(module).walk() if isinstance(op, CacheOp)]
        self.names = list(dict.fromkeys(op.buffer_name for op in ops))
        self.symbol = ops[0].attr("rows") if ops else None
        self.places = {
            next(iter(dim.symbols())): (number, axis)
            for number, spec in enumerate(specs)
            for axis, dim in enumerate(spec.extents or ())
            if dim.is_symbol
        }
        self.filled = np.zeros(cache.capacity, np.uint8)
        """Bytes whose number tells native code the position."""
        appends = [op for op in ops if isinstance(op, CacheAppendOp)]
        grown = {dims_of(op.new)[op.attr("axis") % len(dims_of(op.new))] for op in appends}
        if len(grown) > 1:
            raise InvalidArgumentError(f"the caches grow by different extents: {', '.join(map(str, grown))}")
        self.new: Dim = next(iter(grown)) if grown else Dim.of(0)
        if not self.new.symbols() <= self.places.keys():
            raise InvalidArgumentError(f"by how many rows the cache grows ('{self.new}') is no input's extent")
        self.count = self._count()

    def _count(self) -> Callable[[Sequence[Any]], int]:
        static = self.new.static_value
        if static is not None:
            return lambda arrays: static
        name = self.new.symbol_name
        if name is not None:
            number, axis = self.places[name]
            return lambda arrays: arrays[number].shape[axis]
        return lambda arrays: self.new.evaluate(self.bindings(arrays))

    def bindings(self, arrays: Sequence[Any]) -> dict[str, int]:
        return {name: arrays[number].shape[axis] for name, (number, axis) in self.places.items()}

    @functools.cached_property
    def is_static(self) -> bool:
        """Whether the buffers' extents are numbers, so that they need be allocated but once."""
        return all(
            d.static_value is not None
            for name in self.names
            for axis, d in enumerate(self.cache.buffers[name].dims)
            if axis != self.cache.buffers[name].axis
        )

    def prepare(self, arrays: Sequence[Any]) -> tuple[int, list[Array]]:
        """By how many rows a run grows the cache, and its buffers.

        Raises:
            InvalidArgumentError: The buffers don't fit the run.
            FailedPreconditionError: There is no room.
        """
        rows = self.count(arrays)
        self.cache.check_room(rows)
        buffers = [self.cache.buffers[name] for name in self.names]
        if self.is_static and all(b.array is not None for b in buffers):
            return rows, [b.array for b in buffers if b.array is not None]
        bindings = self.bindings(arrays)
        return rows, [self.cache.allocate(b, bindings) for b in buffers]

    def native_inputs(self, buffers: list[Array]) -> list[Array]:
        """What native code takes behind the graph's own inputs."""
        return [*buffers, self.filled[: self.cache.position]]

    def states(self) -> dict[str, Array]:
        """What the reference takes."""
        return {name: self.cache.held(self.cache.buffers[name]) for name in self.names}

    def store(self, updates: Mapping[str, Array]) -> None:
        """Take over what the reference leaves."""
        at = self.cache.position
        for name, array in updates.items():
            buffer = self.cache.buffers[name]
            assert buffer.array is not None
            index = (slice(None),) * buffer.axis + (slice(at, array.shape[buffer.axis]),)
            buffer.array[index] = array[index]
