"""`extract`."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, LocationAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, BlockArgument, Operation, OpResult, SSAValue

from sardonyx.dialects.attributes import is_anonymous, type_dims
from sardonyx.dialects.dims import Dim, Symbol
from sardonyx.dialects.module import create_module, main_function, set_outputs
from sardonyx.dialects.types import stored, symbols_of
from sardonyx.dialects.values import forget
from sardonyx.errors import InvalidArgumentError
from sardonyx.passes.base import EXACT, PassRun, Promise, SxPass
from sardonyx.passes.effects import is_removable
from sardonyx.passes.propagate import propagate, sync_functions
from sardonyx.passes.specialize_dims import defined, map_dims
from sardonyx.passes.value_names import ValueNames, find_all

ValueT = TypeVar("ValueT", bound=Hashable)
MakerT = TypeVar("MakerT", bound=Hashable)


def backward_slice(
    wanted: Iterable[ValueT],
    stops: Callable[[ValueT], bool],
    maker: Callable[[ValueT], MakerT | None],
    reads: Callable[[MakerT], Iterable[ValueT]],
) -> tuple[dict[MakerT, None], dict[ValueT, None]]:
    """What makes these values, from values where `stops` says so: the makers, and all values on the way."""
    makers: dict[MakerT, None] = {}
    seen: dict[ValueT, None] = {}
    stack = list(wanted)
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen[value] = None
        made_by = None if stops(value) else maker(value)
        if made_by is not None and made_by not in makers:
            makers[made_by] = None
            stack.extend(reads(made_by))
    return makers, seen


def _reads(op: Operation) -> list[SSAValue]:
    """What an op and the ops in its bodies read."""
    return [value for inner in op.walk() for value in inner.operands]


@dataclass(frozen=True)
class ExtractPass(SxPass):
    """Cut out the part of a graph that computes some of its values from others.

    Cases:

    1. What `outputs` names is what the graph returns, in this order; without any, its outputs stay.
    2. What `inputs` names are the arguments, in this order, with their dtypes and dims; whatever made them is gone.
       Without any, the arguments stay that the outputs need.
    3. A name is that of an input or output, of a value or a node of an imported model, a value of the text (`%4`), or a
       line (`net.py:12`): all that it makes and is read elsewhere.
    4. A dim of an argument that no run could tell (`?0`, or a quotient of what is not there any more) becomes a symbol
       called after the argument and the axis; types that mentioned it are inferred anew.
    5. Constants and weights that the part needs stay; bodies of control flow stay whole.
    6. Refused: outputs that need an input which is not among those named; a name of nothing; a value named twice.
    7. Ops with effects that the outputs don't need are left out, and warned of.

    Options: `inputs`, `outputs`, as `"x","mask"`.
    Requires: nothing. Ensures: a graph by itself, whose arguments and results have these names.
    Promise: exact: each output is the value that it was.
    """

    name = "extract"
    PROMISE: ClassVar[Promise] = EXACT
    IS_COMPARABLE: ClassVar[bool] = False

    inputs: tuple[str, ...] = field(default=(), metadata={"help": 'the values to start from, as "x","%4","net.py:12"'})
    outputs: tuple[str, ...] = field(default=(), metadata={"help": "the values to compute"})

    def run(self, module: ModuleOp, run: PassRun) -> None:
        if not (self.inputs or self.outputs):
            return
        names = ValueNames(module)
        starts = find_all(names, self.inputs)
        ends = find_all(names, self.outputs) if self.outputs else dict(names.outputs)
        body = names.function.body.block
        stops = set(starts.values())
        kept, used = backward_slice(
            ends.values(),
            stops.__contains__,
            lambda value: _maker(value, body.parent_op()),
            _reads,
        )
        missing = [n for n, argument in names.inputs.items() if argument in used and argument not in stops]
        if self.inputs and missing:
            raise InvalidArgumentError(
                f"extract: the outputs need the input '{missing[0]}'", hint=f"give '{missing[0]}' among the inputs"
            )
        if not self.inputs:
            starts = {n: names.inputs[n] for n in missing}
        part = _Part(module, names, starts, ends, kept)
        if part.is_all():
            return
        if not run.allows("cut", names.function):
            return
        for op in body.ops:
            if op not in kept and not isinstance(op, func.ReturnOp) and not is_removable(op):
                run.warn(f"{op.name} is left out: no output needs it", op)
        part.cut()
        run.rewritten("cut", "func.func", names.function.location)


def _maker(value: SSAValue, function: Operation | None) -> Operation | None:
    """The op of the function's own body that makes a value; None for an argument of the function or of a body."""
    op: Operation | None = value.op if isinstance(value, OpResult) else value.owner.parent_op()
    while op is not None and op is not function and op.parent_op() is not function:
        op = op.parent_op()
    return None if op is function else op


@dataclass(frozen=True)
class _Part:
    """The part of a graph to be cut out: what it starts from and ends with, by name, and the ops between these."""

    module: ModuleOp
    names: ValueNames
    starts: dict[str, SSAValue]
    ends: dict[str, SSAValue]
    kept: dict[Operation, None]

    def is_all(self) -> bool:
        """Whether the graph is that part already."""
        count = sum(not isinstance(op, func.ReturnOp) for op in self.names.function.body.block.ops)
        same = list(self.starts.items()) == list(self.names.inputs.items()) and self.ends == self.names.outputs
        return same and count == len(self.kept)

    def cut(self) -> None:
        """Put it in the place of the graph's function."""
        old = self.names.function
        bound = bound_symbols(value.type for value in self.starts.values())
        types = [_argument_type(name, value.type, bound) for name, value in self.starts.items()]
        ordered = [op for op in old.body.block.ops if op in self.kept]
        function = self._function(types, ordered)
        _keep_attributes(old, function, self.starts)
        function.detach()
        function.sym_name = old.sym_name
        function.location = old.location
        parent = old.parent
        assert parent is not None
        parent.insert_op_before(function, old)
        last = old.body.block.last_op
        if last is not None:
            last.detach()
            last.erase()
        old.detach()
        old.erase(safe_erase=False)
        _infer_anew(ordered, bound | {name for ty in types for name in symbols_of(ty)})
        sync_functions(self.module)

    def _function(self, types: list[Attribute], ordered: list[Operation]) -> func.FuncOp:
        """A function of its own that has the ops, and arguments of these types for what they start from."""
        made = [(name, ty, _location(value)) for (name, value), ty in zip(self.starts.items(), types, strict=True)]
        fresh, block = create_module("part", made)
        inside = {inner for op in ordered for inner in op.walk()}
        results = list(self.ends.values())
        for value, argument in zip(self.starts.values(), block.args, strict=True):
            value.replace_uses_with_if(argument, lambda use: use.operation in inside)
            results = [argument if result is value else result for result in results]
        for op in ordered:
            op.detach()
            block.add_op(op)
        set_outputs(fresh, results, list(self.ends))
        return main_function(fresh)


def _infer_anew(ordered: list[Operation], told: set[str]) -> None:
    """Types that mention other symbols than those that are told."""
    inner = [inner for op in ordered for inner in op.walk()]
    for op in inner:
        for value in defined(op):
            if symbols_of(value.type) - told:
                value._type = map_dims(value.type, lambda dim: dim if dim.symbols() <= told else None)
            forget(value)
    propagate(inner)


def _location(value: SSAValue) -> LocationAttr | None:
    owner = value.owner
    return owner.location if isinstance(owner, Operation) else getattr(value, "location", None)


def _keep_attributes(old: func.FuncOp, new: func.FuncOp, starts: dict[str, SSAValue]) -> None:
    """What was said of arguments that are arguments still."""
    said, fresh = old.properties.get("arg_attrs"), new.properties.get("arg_attrs")
    if not isinstance(said, ArrayAttr) or not isinstance(fresh, ArrayAttr):
        return
    merged: list[Attribute] = []
    for value, mine in zip(starts.values(), fresh.data, strict=True):
        theirs = said.data[value.index] if isinstance(value, BlockArgument) else None
        both = {**theirs.data, **mine.data} if isinstance(theirs, DictionaryAttr) else mine.data
        merged.append(DictionaryAttr(both))
    new.properties["arg_attrs"] = ArrayAttr(merged)


def bound_symbols(types: Iterable[Attribute]) -> set[str]:
    """The symbols that a run can tell from the shapes of arguments of these types."""
    dims: list[Dim] = []

    def note(dim: Dim) -> Dim:
        dims.append(dim)
        return dim

    for ty in types:
        map_dims(ty, note)
    bound: set[str] = set()
    while True:
        news = {name for dim in dims if (name := _told_by(dim, bound)) is not None}
        if not news:
            return bound
        bound |= news


def _told_by(dim: Dim, bound: set[str]) -> str | None:
    """The one symbol that follows from a dim's extent where those of `bound` are known."""
    open_ = dim.symbols() - bound
    if len(open_) != 1 or is_anonymous(dim):
        return None
    (name,) = open_
    factor = dim.coefficients().get((Symbol(name),), 0)
    return name if factor and name not in (dim - factor * Dim.symbol(name)).symbols() else None


def _argument_type(name: str, ty: Attribute, bound: set[str]) -> Attribute:
    """The type of a value as an argument: dims that no run could tell are symbols called after it and the axis."""
    if not isinstance(ty, TensorType):
        return map_dims(ty, lambda dim: dim if dim.symbols() <= bound else None)
    dims: list[Dim] = []
    for axis, dim in enumerate(type_dims(ty)):
        wanted = f"{re.sub(r'[^A-Za-z0-9_]', '_', name)}_{axis}"
        while wanted in bound:
            wanted += "_"
        dims.append(dim if dim.symbols() <= bound else Dim.symbol(wanted))
    return stored(ty, dims)
