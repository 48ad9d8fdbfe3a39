"""Graphs as plain data, for pickling: ops in order, operands by number.

Pickling xDSL's objects recurses along use-def chains and overflows after some 300 ops; text would have to be parsed
again (milliseconds an op) and does not hold every float. Attributes are kept as they are: they are values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, LocationAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from sardonyx.dialects.attributes import ANONYMOUS, DimsAttr, WeightAttr, WeightRef, fresh_dim
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.module import sync_signature
from sardonyx.dialects.types import OptionalType, SequenceType
from sardonyx.dialects.weights import WeightStore
from sardonyx.errors import InvalidArgumentError
from sardonyx.passes.context import make_context


@dataclass(frozen=True)
class FlatOp:
    """An op whose operands are numbers of values; values are numbered in the order in which they are defined."""

    name: str
    operands: tuple[int, ...]
    results: tuple[tuple[Attribute, str | None], ...]
    properties: dict[str, Attribute]
    attributes: dict[str, Attribute]
    location: LocationAttr
    regions: tuple[tuple[FlatBlock, ...], ...] = ()


@dataclass(frozen=True)
class FlatBlock:
    arguments: tuple[tuple[Attribute, str | None, LocationAttr], ...]
    ops: tuple[FlatOp, ...]


def flatten(module: ModuleOp) -> FlatOp:
    """The module as plain data."""
    return _Flattener().op(module)


def rebuild(flat: FlatOp, ctx: Context | None = None) -> ModuleOp:
    """The module again. Symbols that nobody named are new ones: their numbers count in one process only.

    Raises:
        InvalidArgumentError: An op is not known here.
    """
    module = _Builder(ctx or make_context()).op(flat)
    if not isinstance(module, ModuleOp):
        raise InvalidArgumentError(f"the data hold {flat.name}, not a module")
    for op in module.body.block.ops:
        if isinstance(op, func.FuncOp):
            sync_signature(op)
    return module


class _Flattener:
    def __init__(self) -> None:
        self.numbers: dict[SSAValue, int] = {}

    def number(self, value: SSAValue) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    def op(self, op: Operation) -> FlatOp:
        operands = tuple(self.numbers[o] for o in op.operands)
        regions = tuple(tuple(self.block(b) for b in region.blocks) for region in op.regions)
        for result in op.results:
            self.number(result)
        return FlatOp(
            op.name,
            operands,
            tuple((r.type, r.name_hint) for r in op.results),
            dict(op.properties),
            dict(op.attributes),
            op.location,
            regions,
        )

    def block(self, block: Block) -> FlatBlock:
        for argument in block.args:
            self.number(argument)
        arguments = tuple((a.type, a.name_hint, a.location) for a in block.args)
        return FlatBlock(arguments, tuple(self.op(op) for op in block.ops))


class _Builder:
    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.values: list[SSAValue] = []
        self.symbols: dict[str, Dim] = {}
        self.types: dict[Attribute, Attribute] = {}

    def type(self, ty: Attribute) -> Attribute:
        """The type with new symbols for those that nobody named."""
        known = self.types.get(ty)
        if known is None:
            known = self.types[ty] = self._renewed(ty)
        return known

    def _renewed(self, ty: Attribute) -> Attribute:
        if isinstance(ty, SequenceType | OptionalType):
            return type(ty)(self.type(ty.element))
        if not isinstance(ty, TensorType) or not isinstance(ty.encoding, DimsAttr):
            return ty
        dims = ty.encoding.data
        names = {n for d in dims if d is not None for n in d.symbols() if n.startswith(ANONYMOUS)}
        if not names:
            return ty
        for name in names - self.symbols.keys():
            self.symbols[name] = fresh_dim()
        renewed = DimsAttr(tuple(None if d is None else d.substitute(self.symbols) for d in dims))
        return TensorType(ty.element_type, ty.get_shape(), renewed)

    def op(self, flat: FlatOp) -> Operation:
        cls = self.ctx.get_optional_op(flat.name)
        if cls is None:
            raise InvalidArgumentError(f"the op '{flat.name}' is not known here; load what defines it (--load)")
        operands = [self.values[n] for n in flat.operands]
        regions = [Region([self.block(b) for b in blocks]) for blocks in flat.regions]
        types = [self.type(ty) for ty, _ in flat.results]
        op = cls.create(
            operands=operands,
            result_types=types,
            properties=dict(flat.properties),
            attributes=dict(flat.attributes),
            regions=regions,
        )
        op.location = flat.location
        for result, (_, hint) in zip(op.results, flat.results):
            result.name_hint = hint
            self.values.append(result)
        return op

    def block(self, flat: FlatBlock) -> Block:
        block = Block(arg_types=[self.type(ty) for ty, _, _ in flat.arguments])
        for argument, (_, hint, location) in zip(block.args, flat.arguments):
            argument.name_hint = hint
            argument.location = location
            self.values.append(argument)
        for op in flat.ops:
            block.add_op(self.op(op))
        return block


# ---- weights


def bind_weights(module: ModuleOp, store: WeightStore) -> None:
    """Let every `#sx.weight` of the module refer to the store's weight of that key, where it has one."""
    for op in module.walk():
        for name, attr in list(op.properties.items()):
            if isinstance(attr, WeightAttr):
                op.properties[name] = _bound(attr, store)
        if isinstance(op, func.FuncOp) and isinstance(op.properties.get("arg_attrs"), ArrayAttr):
            op.properties["arg_attrs"] = _bound_entries(op.properties["arg_attrs"], store)


def _bound(attr: WeightAttr, store: WeightStore) -> WeightAttr:
    weight = store.get(attr.data.key)
    return attr if weight is None or attr.data.source is weight else WeightAttr(WeightRef(weight.key, weight))


def _bound_entries(entries: Any, store: WeightStore) -> Attribute:
    out: list[Attribute] = []
    for entry in entries.data:
        if isinstance(entry, DictionaryAttr) and any(isinstance(v, WeightAttr) for v in entry.data.values()):
            entry = DictionaryAttr(
                {k: _bound(v, store) if isinstance(v, WeightAttr) else v for k, v in entry.data.items()}
            )
        out.append(entry)
    return ArrayAttr(out)


def weight_keys(module: ModuleOp) -> Sequence[str]:
    """The keys of all weights that the module names, in order."""
    keys: dict[str, None] = {}
    for op in module.walk():
        for attr in op.properties.values():
            if isinstance(attr, WeightAttr):
                keys.setdefault(attr.data.key)
    return list(keys)
