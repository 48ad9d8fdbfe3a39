"""Inputs for running a function that nobody gave inputs for: by dtype and use, with special values and odd sizes.

An integer argument may be an index, a shape or an axis; what it may be follows from the ops that read it, directly or
through ops that move elements. Where the reference refuses the result all the same, tamer values are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IndexType, TensorType, UnrankedTensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of, rank_of, static_shape, type_dims
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.evaluate import Array, Value
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.types import OptionalType, SequenceType, is_tensor
from sardonyx.errors import SardonyxError, UnsupportedError

ORDINARY, SPECIAL, SINGLE, EMPTY, LARGER = "ordinary", "special", "single", "empty", "larger"
KINDS = (ORDINARY, SPECIAL, SINGLE, LARGER, EMPTY)
"""What inputs are like, in the order in which they are taken. Ordinary: distinct odd extents, floats with zeros of
both signs. Special: NaN, infinities, subnormals, limits; all extents equal. Single: every other symbol is 1, so that
what has it broadcasts. Larger: other extents. Empty: the symbols are 0."""

_ODD = (3, 5, 2, 7)
UNRANKED_SHAPE = (2, 3)


@dataclass(frozen=True)
class Inputs:
    """One value per argument of a function, what its buffers hold, and how they were made."""

    values: tuple[Value, ...]
    kind: str
    bindings: Mapping[str, int]
    attempt: int
    states: Mapping[str, Array] = field(default_factory=dict[str, Array])

    def __str__(self) -> str:
        bound = ", ".join(f"{k}={v}" for k, v in sorted(self.bindings.items()) if not k.startswith("?"))
        return f"{self.kind} inputs" + (f" with {bound}" if bound else "")


ATTEMPTS = 4
"""As the uses suggest; with equal extents; integers 0 and 1 and positive floats; all of them 1."""


def inputs_for(function: FuncOp, kind: str, attempt: int = 0, seed: int = 0) -> Inputs:
    """Values for the arguments of a function.

    Raises:
        UnsupportedError: An argument has a type of which nothing is known.
    """
    number = KINDS.index(kind) if kind in KINDS else len(KINDS) + int(kind)
    rng = np.random.default_rng([seed, number, attempt])
    shapes = [_extents(argument) for argument in function.body.block.args]
    symbols = sorted({s for dims in shapes for dim in dims or () for s in dim.symbols()})
    bindings = {symbol: _extent_of(kind, attempt, i, rng) for i, symbol in enumerate(symbols)}
    values: list[Value] = []
    for argument, dims in zip(function.body.block.args, shapes, strict=True):
        shape = UNRANKED_SHAPE if dims is None else tuple(max(0, dim.evaluate(bindings)) for dim in dims)
        values.append(_value(argument, argument.type, shape, kind, attempt, bindings, rng))
    return Inputs(tuple(values), kind, bindings, attempt, _states(function, kind, attempt, rng))


def _states(function: FuncOp, kind: str, attempt: int, rng: np.random.Generator) -> dict[str, Array]:
    """What the buffers hold that the function reads."""
    out: dict[str, Array] = {}
    for op in function.walk():
        if op.name == "sx.state_read" and isinstance(op, SxOp):
            name, shape = op.attr("state"), static_shape(op.results[0])
            if isinstance(name, str) and name not in out and shape is not None:
                out[name] = array_of(dtype_of(op.results[0]), shape, kind, attempt, rng)
    return out


def kinds(count: int) -> Iterator[str]:
    """The first `count` kinds of inputs; more than there are repeat the ordinary one with other numbers."""
    for number in range(count):
        yield KINDS[number] if number < len(KINDS) else str(number)


def _extents(argument: BlockArgument) -> tuple[Dim, ...] | None:
    """The argument's dims; a dim without a name has one symbol of its own."""
    ty = argument.type
    if isinstance(ty, SequenceType | OptionalType):
        ty = ty.element
    return type_dims(ty) if isinstance(ty, TensorType) and scalar_dtype(ty) is not None else ()


def _extent_of(kind: str, attempt: int, number: int, rng: np.random.Generator) -> int:
    if attempt == ATTEMPTS - 1:
        return 1 if kind != EMPTY else 0
    if kind == EMPTY:
        return 0
    if kind == SINGLE:
        return 3 if attempt < 2 and number % 2 != attempt else 1
    if attempt or kind == SPECIAL:
        return 4 if kind == LARGER else 3
    if kind == ORDINARY:
        return _ODD[number % len(_ODD)]
    return int(rng.integers(1, 9))


# ---- values


def _value(
    argument: BlockArgument,
    ty: Attribute,
    shape: tuple[int, ...],
    kind: str,
    attempt: int,
    bindings: Mapping[str, int],
    rng: np.random.Generator,
) -> Value:
    if isinstance(ty, OptionalType) and kind == EMPTY:
        return None
    if isinstance(ty, OptionalType):
        return _value(argument, ty.element, shape, kind, attempt, bindings, rng)
    if isinstance(ty, SequenceType):
        return [_value(argument, ty.element, shape, kind, attempt, bindings, rng) for _ in range(3)]
    dtype = scalar_dtype(ty)
    if dtype is None:
        raise UnsupportedError(f"there are no inputs of type {ty}")
    if not is_tensor(ty):
        shape = ()
    if dtype.kind in "iu" and attempt < 2:
        for use in _roles(argument):
            found = use(shape, bindings, rng)
            if found is not None and np.shape(found) == shape:
                return np.asarray(found).astype(dtype.numpy)
    return array_of(dtype, shape, kind, attempt, rng)


def scalar_dtype(ty: Attribute) -> DType | None:
    """The dtype of a tensor's element or of a scalar of the builtin dialect; an integer without a sign is signed."""
    if isinstance(ty, TensorType | UnrankedTensorType):
        ty = ty.element_type
    return DType.of("int64") if isinstance(ty, IndexType) else DType.from_ir(ty)


def array_of(dtype: DType, shape: Sequence[int], kind: str, attempt: int, rng: np.random.Generator) -> Array:
    """Elements of a dtype, of the kind."""
    if dtype.kind == "s":
        return rng.choice(np.array(["a", "bc", "", "7"], dtype=object), tuple(shape))
    last = attempt == ATTEMPTS - 1
    if dtype.kind == "b":
        return np.ones(shape, np.bool_) if last else rng.random(tuple(shape)) < 0.5
    if not dtype.is_float:
        if last:
            return np.ones(shape).astype(dtype.numpy)
        if kind == SPECIAL and attempt == 0 and dtype.bits >= 8:
            limits = np.iinfo(dtype.numpy)
            pool = [0, 1, 2, 7, limits.max, limits.max - 1, limits.min, limits.min + 1]
            pool += [-1, -2, -7] if dtype.kind == "i" else []
            return rng.choice(np.array(pool, dtype.numpy), tuple(shape))
        low = -4 if dtype.kind == "i" and attempt < 2 and dtype.bits > 2 else 0
        high = 2 if attempt >= 2 or dtype.bits <= 2 else 7
        return rng.integers(low, high, tuple(shape)).astype(dtype.numpy)
    if last:
        return np.ones(shape).astype(dtype.numpy)
    if attempt == ATTEMPTS - 2:
        return (rng.random(tuple(shape)) + 0.5).astype(dtype.numpy)
    if dtype.bits < 16:
        return rng.choice(np.array([0.0, 0.5, 1.0, -1.0, 2.0, -0.0], np.float32), tuple(shape)).astype(dtype.numpy)
    array = np.asarray(rng.normal(size=tuple(shape)) * 2).astype(dtype.numpy)
    if array.size >= 4:
        chosen = rng.choice(array.size, 2, replace=False)
        array.reshape(-1)[chosen] = np.array([0.0, -0.0], dtype.numpy)
    if kind == SPECIAL and attempt == 0 and array.size:
        pool = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, 2.5, -0.5, 1e-40, 6e-8, 3e4, -3e4]).astype(
            dtype.numpy
        )
        chosen = rng.random(array.size) < 0.5
        array.reshape(-1)[chosen] = rng.choice(pool, int(chosen.sum()))
    return array


# ---- what integers are used for

Role = Callable[[tuple[int, ...], Mapping[str, int], np.random.Generator], Any]
"""Shape, bindings and random numbers → elements, or None where nothing can be said."""

PASSES_ON = frozenset(
    f"sx.{name}"
    for name in "identity cast cast_like reshape flatten squeeze unsqueeze transpose expand concat slice split neg "
    "tile where gather abs".split()
)
"""Ops whose results hold elements of their operands, or nearly so."""

_AXES_FIRST = {"sx.squeeze": 1, "sx.unsqueeze": 1, "sx.cumsum": 1}


def _roles(argument: SSAValue) -> Iterator[Role]:
    """What the readers of an argument want of it, the nearest first."""
    return (role for _, _, role in _uses(argument))


def _uses(argument: SSAValue) -> Iterator[tuple[SxOp, str, Role]]:
    """The readers that want something of an argument, with the operand's name and what they want; the nearest first."""
    seen: set[SSAValue] = set()
    queue: list[SSAValue] = [argument]
    while queue:
        value = queue.pop(0)
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            op = use.operation
            if not isinstance(op, SxOp) or isinstance(op, ConstantOp):
                continue
            name = _slot_name(op, use.index)
            role = _role(op, name)
            if role is not None:
                yield op, name, role
            elif op.name in PASSES_ON and name in ("input", "data", "x", "inputs", "on_true", "on_false", "operand"):
                queue.extend(op.results)


def integers_for(
    argument: SSAValue, shape: tuple[int, ...], bindings: Mapping[str, int], rng: np.random.Generator
) -> Array | None:
    """Integers that all readers of an argument can use, none of them counted from the end; None where they take any.

    Frameworks refuse negative indices that ONNX allows, so that there are none.
    """
    found: Array | None = None
    for op, name, role in _uses(argument):
        made = role(shape, bindings, rng) if found is None else None
        if made is not None and np.shape(made) == shape:
            found = np.asarray(made)
        extent = _indexed_extent(op, name, bindings)
        if found is not None and extent:
            found = found % extent
    return found


def _indexed_extent(op: SxOp, name: str, bindings: Mapping[str, int]) -> int | None:
    """How many elements an operand of indices chooses from, where that is one number."""
    if name != "indices" or op.name not in ("sx.gather", "sx.gather_elements", "sx.scatter_elements"):
        return None
    return _extent(op, op.operands[0], op.attr("axis") or 0, bindings)


def _slot_name(op: SxOp, index: int) -> str:
    """The name of the definition that an operand belongs to."""
    at = 0
    for name, _ in op.get_irdl_definition().operands:
        found = getattr(op, name)
        size = 0 if found is None else (1 if isinstance(found, SSAValue) else len(found))
        if at <= index < at + size:
            return name
        at += size
    return ""


def _extent(op: SxOp, value: SSAValue, axis: int, bindings: Mapping[str, int]) -> int | None:
    if not isinstance(value.type, TensorType) or not rank_of(value):
        return None
    return _known(dims_of(value)[axis % rank_of(value)], bindings)


def _known(dim: Dim, bindings: Mapping[str, int]) -> int | None:
    if dim.symbols() - bindings.keys():
        return None
    return dim.evaluate(bindings)


def _role(op: SxOp, name: str) -> Role | None:
    """What the op wants of the integers of an operand; None where it takes any."""
    if name in ("indices", "write_indices") and op.name in _INDEXED:
        axis = (-2 if op.name == "sx.tensor_scatter" else 0) if op.attr("axis") is None else op.attr("axis")
        return lambda shape, bound, rng: _indices(op, axis, shape, bound, rng)
    if name in ("shape", "sizes"):
        return lambda shape, bound, rng: _shape(op, shape, bound)
    found = _PLAIN.get(name)
    return None if found is None or op.name not in found[0] else found[1](op)


_INDEXED = frozenset(
    f"sx.{n}"
    for n in "gather gather_elements gather_nd scatter scatter_elements scatter_nd tensor_scatter one_hot".split()
)


def _indices(op: SxOp, axis: int, shape: tuple[int, ...], bound: Mapping[str, int], rng: np.random.Generator) -> Any:
    data = op.operands[0]
    if op.name == "sx.one_hot":
        return rng.integers(0, 3, shape)
    if not isinstance(data.type, TensorType):
        return rng.integers(0, 2, shape)
    if op.name.endswith("_nd"):
        batch = op.attr("batch_dims") or 0
        dims = dims_of(data)
        width = shape[-1] if shape else 0
        columns = [_known(dims[batch + i], bound) or 1 for i in range(width) if batch + i < len(dims)]
        if op.name == "sx.scatter_nd" and columns and shape[:-1]:  # no two entries write the same element
            count, total = int(np.prod(shape[:-1])), int(np.prod(columns))
            chosen = rng.permutation(total)[:count] if total >= count else rng.integers(0, max(total, 1), count)
            return np.stack(np.unravel_index(chosen, columns), -1).reshape(shape)
        return np.stack([rng.integers(0, c, shape[:-1]) for c in columns], -1) if columns else np.zeros(shape)
    extent = _extent(op, data, axis, bound)
    if not extent:
        return np.zeros(shape)
    if op.name == "sx.tensor_scatter":
        written = _extent(op, op.operands[1], axis, bound)
        return rng.integers(0, max(1, extent - (written or 0) + 1), shape)
    if "scatter" in op.name and len(shape) == rank_of(data):
        axis %= len(shape)
        order = np.argsort(rng.random((*shape[:axis], extent, *shape[axis + 1 :])), axis)
        fits = shape[axis] <= extent
        return np.take(order, np.arange(shape[axis]), axis) if fits else rng.integers(0, extent, shape)
    return rng.integers(-extent, extent, shape)


def _shape(op: SxOp, shape: tuple[int, ...], bound: Mapping[str, int]) -> Any:
    """A shape that the op takes: the result's extents where they are known, else one that fits."""
    (length,) = shape if len(shape) == 1 else (None,)
    if length is None:
        return None
    result = op.results[0].type
    if isinstance(result, TensorType) and len(result.get_shape()) == length:
        known = [_known(d, bound) for d in type_dims(result)]
        if None not in known:
            return known
        if op.name == "sx.reshape" and known.count(None) == 1:
            return [-1 if d is None else d for d in known]
    if op.name == "sx.reshape":
        return [-1, *[1] * (length - 1)] if length else []
    return [1] * length if op.name == "sx.expand" else [2] * length


def _axes(op: SxOp) -> Role:
    def role(shape: tuple[int, ...], bound: Mapping[str, int], rng: np.random.Generator) -> Any:
        count = int(np.prod(shape))
        rank = rank_of(op.operands[0]) if isinstance(op.operands[0].type, TensorType) else 2
        if op.name == "sx.squeeze" and isinstance(op.operands[0].type, TensorType):
            ones = [i for i, d in enumerate(dims_of(op.operands[0])) if _known(d, bound) == 1]
            return np.reshape(ones[:count], shape) if len(ones) >= count else None
        if op.name == "sx.unsqueeze":
            rank += count
        return np.reshape(rng.permutation(rank)[:count], shape) if rank >= count else None

    return role


def _between(low: int, high: int) -> Callable[[SxOp], Role]:
    return lambda op: lambda shape, bound, rng: rng.integers(low, high, shape)


def _count_of(axis: str) -> Callable[[SxOp], Role]:
    def make(op: SxOp) -> Role:
        def role(shape: tuple[int, ...], bound: Mapping[str, int], rng: np.random.Generator) -> Any:
            extent = _extent(op, op.operands[0], op.attr(axis) if op.attr(axis) is not None else -1, bound)
            return np.full(shape, min(2, extent if extent is not None else 1))

        return role

    return make


def _parts(op: SxOp) -> Role:
    def role(shape: tuple[int, ...], bound: Mapping[str, int], rng: np.random.Generator) -> Any:
        extent = _extent(op, op.operands[0], op.attr("axis") or 0, bound)
        if extent is None or len(shape) != 1 or not shape[0]:
            return None
        each = extent // shape[0]
        return [*[each] * (shape[0] - 1), extent - each * (shape[0] - 1)]

    return role


_REDUCTIONS = frozenset(f"sx.reduce_{n}" for n in "sum mean max min prod l1 l2 log_sum log_sum_exp sum_square".split())
_PLAIN: dict[str, tuple[frozenset[str], Callable[[SxOp], Role]]] = {
    "axes": (_REDUCTIONS | {"sx.squeeze", "sx.unsqueeze", "sx.slice", "sx.pad"}, _axes),
    "axis": (frozenset({"sx.cumsum", "sx.cumprod"}), _axes),
    "repeats": (frozenset({"sx.tile"}), _between(1, 3)),
    "pads": (frozenset({"sx.pad"}), _between(0, 2)),
    "starts": (frozenset({"sx.slice"}), _between(0, 2)),
    "ends": (frozenset({"sx.slice"}), _between(1, 4)),
    "steps": (frozenset({"sx.slice"}), _between(1, 3)),
    "depth": (frozenset({"sx.one_hot"}), _between(3, 4)),
    "position": (frozenset({"sx.sequence_at", "sx.sequence_insert", "sx.sequence_erase"}), _between(0, 1)),
    "k": (frozenset({"sx.topk"}), _count_of("axis")),
    "split": (frozenset({"sx.split"}), _parts),
    "max_trip_count": (frozenset({"sx.loop"}), _between(0, 4)),
    "trip_count": (frozenset({"sx.loop"}), _between(0, 4)),
    "sequence_lens": (frozenset({"sx.reverse_sequence", "sx.lstm", "sx.gru", "sx.rnn"}), _between(1, 3)),
}


def evaluable_inputs(
    function: FuncOp, kind: str, run: Callable[[Inputs], Sequence[Value]], seed: int = 0
) -> tuple[Inputs, Sequence[Value] | None, SardonyxError | None]:
    """The first inputs of a kind that the function takes, and its outputs for them.

    Where it refuses all attempts, the first ones with the error. An error that says that something is not supported
    is raised.
    """
    first: tuple[Inputs, SardonyxError] | None = None
    for attempt in range(ATTEMPTS):
        made = inputs_for(function, kind, attempt, seed)
        try:
            return made, run(made), None
        except UnsupportedError:
            raise
        except SardonyxError as error:
            first = first or (made, error)
    assert first is not None
    return first[0], None, first[1]
