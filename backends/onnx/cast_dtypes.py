"""Other dtypes for a graph: all values of a dtype become another's, or single nodes compute in another between casts.

A runtime may lack a dtype altogether, or an operator for it. Which dtype stands in for one that is lacking: the
narrowest that holds all its values, else the widest below it; then values are rounded, and somebody has to hold the
results against the model that it was.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, ModuleOp, TensorType, UnrankedTensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from sardonyx.backends.onnx.names import node_name
from sardonyx.backends.onnx.rewrite import Expansion
from sardonyx.dialects import locations
from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import DTYPES, SMALL_FLOATS, DType
from sardonyx.dialects.module import input_names, main_function, sync_signature
from sardonyx.dialects.sx.cast import CastOp
from sardonyx.dialects.sx.constant import ConstantOp, dense_array, dense_attribute
from sardonyx.dialects.types import OptionalType, SequenceType, is_tensor
from sardonyx.dialects.weights import WeightStore
from sardonyx.errors import InferenceError, UnsupportedError

_STANDS_IN: Mapping[str, tuple[str, ...]] = {
    "float64": ("float32",),
    "float32": ("float64",),
    "float16": ("float32", "bfloat16"),
    "bfloat16": ("float32", "float16"),
    **{t.name: ("float16", "bfloat16", "float32") for t in SMALL_FLOATS},
    "int64": ("int32",),
    "uint64": ("int64", "int32"),
    "uint32": ("int64", "int32"),
    "int32": ("int64",),
    "uint16": ("int32", "int64"),
    "int16": ("int32", "int64"),
    "uint8": ("int32", "int64"),
    "int8": ("int32", "int64"),
}
"""dtype → what may be there instead, best first."""

_ROUNDS = frozenset({"float64", "int64", "uint64", "uint32"})
"""dtypes of which a value may be lost in what stands in for them."""


def stand_in(dtype: str, supported: Collection[str]) -> str | None:
    """The dtype that stands in for one that a target lacks; None where it supports none that could."""
    return next((name for name in _STANDS_IN.get(dtype, ()) if name in supported), None)


@dataclass
class Changes:
    """What became of a dtype: the nodes whose results have another, the inputs, and how many constants."""

    old: str
    new: str
    nodes: list[str] = field(default_factory=list[str])
    inputs: list[str] = field(default_factory=list[str])
    constants: int = 0

    def __str__(self) -> str:
        parts = [f"{len(self.nodes)} node{'s' * (len(self.nodes) != 1)}"] if self.nodes else []
        parts += [f"the input '{name}'" for name in self.inputs]
        parts += [f"{self.constants} constant{'s' * (self.constants != 1)}"] if self.constants else []
        lost = "; values may be rounded" if self.old.startswith("float") and self.old in _ROUNDS else ""
        lost = "; values beyond its range wrap around" if self.old.endswith("64") and "int" in self.old else lost
        return f"{self.old} became {self.new} in {', '.join(parts)}{lost}"


def used_dtypes(module: ModuleOp) -> set[str]:
    """The names of the dtypes of all tensors of a module."""
    return {dtype_of(v).name for block in _blocks(module) for v in _values(block) if is_tensor(v.type)}


def change_dtypes(module: ModuleOp, store: WeightStore, mapping: Mapping[str, str]) -> list[Changes]:
    """Make all values of some dtypes those of others, in place.

    What an op's definition gives in the old dtype anyway (the indices of ArgMax) is cast behind it.

    Raises:
        UnsupportedError: An op is not defined for the new dtype, or a constant does not fit into it; names the node.
    """
    found = {old: Changes(old, new) for old, new in mapping.items()}
    names = dict(zip(main_function(module).body.block.args, input_names(module)))
    for argument, name in names.items():
        if is_tensor(argument.type) and dtype_of(argument).name in mapping:
            found[dtype_of(argument).name].inputs.append(name)
    for block in list(_blocks(module)):
        for argument in block.args:
            argument._type = _mapped(argument.type, mapping)
        for op in list(block.ops):
            if isinstance(op, ConstantOp):
                _change_constant(op, store, mapping, found)
            elif isinstance(op, SxOp):
                _change_op(op, mapping, found)
    for op in [op for block in _blocks(module) for op in block.ops if isinstance(op, SxOp)]:
        _settle(op)
    sync_signature(main_function(module))
    return [c for c in found.values() if c.nodes or c.inputs or c.constants]


def compute_in(module: ModuleOp, nodes: Collection[str], dtypes: Mapping[str, str]) -> list[str]:
    """Have single nodes compute in other dtypes, between casts, in place; returns the names of those that do."""
    done: list[str] = []
    for op in [op for block in _blocks(module) for op in block.ops if isinstance(op, SxOp)]:
        name = node_name(op.location)
        if name is not None and name in nodes and not isinstance(op, ConstantOp) and _between_casts(op, dtypes):
            done.append(name)
    return done


def _between_casts(op: SxOp, mapping: Mapping[str, str]) -> bool:
    expansion = Expansion(op, "cast-dtypes")
    wide = op.clone()
    for index, operand in enumerate(op.operands):
        if is_tensor(operand.type) and dtype_of(operand).name in mapping:
            wide.operands[index] = expansion.cast(operand, DTYPES[mapping[dtype_of(operand).name]])
    _change_properties(wide, mapping)
    expansion.add(wide)
    try:
        for result, ty in zip(wide.results, wide.infer(), strict=True):
            result._type = ty
    except InferenceError:
        expansion.undo()
        return False
    values: list[SSAValue | None] = []
    for old, new in zip(op.results, wide.results, strict=True):
        same = not is_tensor(old.type) or dtype_of(old) == dtype_of(new)
        values.append(new if same else expansion.cast(new, dtype_of(old)))
    expansion.replace(values)
    return True


def _blocks(module: ModuleOp) -> Iterator[Block]:
    """The blocks of the graph, the outer ones first."""
    waiting = [main_function(module).body.block]
    while waiting:
        block = waiting.pop(0)
        yield block
        waiting.extend(inner for op in block.ops for region in op.regions for inner in region.blocks)


def _values(block: Block) -> Iterator[SSAValue]:
    yield from block.args
    for op in block.ops:
        yield from op.results


def _mapped(ty: Attribute, mapping: Mapping[str, str]) -> Attribute:
    """The type with another element, where its dtype has one."""
    if isinstance(ty, SequenceType | OptionalType):
        return type(ty)(_mapped(ty.element, mapping))
    if not is_tensor(ty) or dtype_of(ty).name not in mapping:
        return ty
    element = DTYPES[mapping[dtype_of(ty).name]].ir
    if isinstance(ty, TensorType):
        return TensorType(element, ty.shape, ty.encoding)
    return UnrankedTensorType(element)


def _change_constant(
    op: ConstantOp, store: WeightStore, mapping: Mapping[str, str], found: Mapping[str, Changes]
) -> None:
    dtype = dtype_of(op.output)
    if dtype.name not in mapping:
        return
    array = np.asarray(op.array())
    target = DTYPES[mapping[dtype.name]]
    with np.errstate(over="ignore", invalid="ignore"):
        made = array.astype(target.numpy)
        same = np.array_equal(made.astype(array.dtype), array) if target.is_integer else _as_finite(array, made)
    if not same:
        raise UnsupportedError(
            f"a constant of {dtype.name} does not fit into {target.name}", location=_where(op), op=op.name
        )
    twin = ConstantOp.of(made, store, location=op.location)
    op.properties.update(twin.properties)
    op.output._type = twin.output.type
    found[dtype.name].constants += 1


def _as_finite(old: np.ndarray, new: np.ndarray) -> bool:
    """Whether no finite value became infinite."""
    return bool((np.isfinite(old.astype(np.float64)) <= np.isfinite(new.astype(np.float64))).all())


def _change_op(op: SxOp, mapping: Mapping[str, str], found: Mapping[str, Changes]) -> None:
    _change_properties(op, mapping)
    for result in op.results:
        if is_tensor(result.type) and dtype_of(result).name in mapping:
            changes, name = found[dtype_of(result).name], node_name(op.location) or op.name
            if name not in changes.nodes:
                changes.nodes.append(name)
        result._type = _mapped(result.type, mapping)


def _change_properties(op: Operation, mapping: Mapping[str, str]) -> None:
    """The dtypes that an op names, and the contents that it holds."""
    types: dict[Attribute, DType] = {DTYPES[old].ir: DTYPES[new] for old, new in mapping.items()}
    for name, value in list(op.properties.items()):
        if value in types:
            op.properties[name] = types[value].ir
        elif isinstance(value, DenseIntOrFPElementsAttr) and value.type.element_type in types:
            op.properties[name] = dense_attribute(dense_array(value).astype(types[value.type.element_type].numpy))


def _settle(op: SxOp) -> None:
    """Have an op's results the dtypes that its definition gives; where that is another one, a cast follows."""
    if isinstance(op, ConstantOp) or op.regions:
        return
    try:
        inferred = op.infer()
    except InferenceError as error:
        raise UnsupportedError(
            f"{op.name} is not defined for the other dtype: {error.message}", location=_where(op), op=op.name
        ) from error
    for result, ty in zip(op.results, inferred, strict=True):
        if not is_tensor(result.type) or not is_tensor(ty) or dtype_of(result) == dtype_of(ty):
            continue
        wanted, given = dtype_of(result), dtype_of(ty)
        result._type = _mapped(result.type, {wanted.name: given.name})
        block = op.parent
        if block is None or not list(result.uses):
            continue
        cast = CastOp.make(result, location=op.location, to=wanted)
        block.insert_op_after(cast, op)
        result.replace_uses_with_if(cast.results[0], lambda use, cast=cast: use.operation is not cast)


def _where(op: Operation) -> str | None:
    return locations.describe(op.location)
