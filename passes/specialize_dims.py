"""`specialize-dims`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from sardonyx.dialects.attributes import DimsAttr
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.types import MapType, OptionalType, SequenceType, stored, symbols_of
from sardonyx.dialects.values import forget
from sardonyx.errors import InvalidArgumentError
from sardonyx.passes.base import EXACT, PassRun, Promise, SxPass
from sardonyx.passes.propagate import propagate, sync_functions


@dataclass(frozen=True)
class SpecializeDimsPass(SxPass):
    """Fix named dims to extents.

    Cases:

    1. A dim that is, or is computed from, a name that `dims` fixes gets its number: in the types of inputs, outputs
       and everything between, bodies of regions included.
    2. What follows from that is inferred anew: other dims, and what is known of the contents of shapes.
    3. A name that no dim has changes nothing, and is warned of.

    Options: `dims`, as `"batch=4","seq=128"`.
    Requires: nothing. Ensures: no type has one of these names. (`simplify` and `fold-constants` find more after it.)
    The graph takes no other extents any more.
    Promise: exact, for inputs of these extents.
    """

    name = "specialize-dims"
    PROMISE: ClassVar[Promise] = EXACT

    dims: tuple[str, ...] = field(default=(), metadata={"help": 'names and their extents, as "batch=4","seq=128"'})

    def run(self, module: ModuleOp, run: PassRun) -> None:
        bindings = parse_bindings(self.dims)
        known: set[str] = set()
        changed: list[Operation] = []
        for op in module.walk():
            touched = False
            for value in defined(op):
                names = symbols_of(value.type)
                known |= names
                if names & bindings.keys() and run.allows("specialize", op):
                    value._type = specialized(value.type, bindings)
                    forget(value)
                    touched = True
            if touched:
                changed.append(op)
        for name in bindings.keys() - known:
            near = difflib.get_close_matches(name, known, n=1)
            run.warn(f"no dim is called '{name}'" + (f"; did you mean '{near[0]}'?" if near else ""))
        if not changed:
            return
        propagate(list(module.walk()))
        sync_functions(module)
        for op in changed:
            run.rewritten("specialize", op.name, op.location, [op])


def defined(op: Operation) -> list[SSAValue]:
    """The results of an op and the arguments of its blocks."""
    blocks: list[Block] = [block for region in op.regions for block in region.blocks]
    return [*op.results, *(argument for block in blocks for argument in block.args)]


def parse_bindings(dims: tuple[str, ...]) -> dict[str, int]:
    """Names and extents of `"batch=4","seq=128"`.

    Raises:
        InvalidArgumentError: One is not of that form, or a name stands twice.
    """
    bindings: dict[str, int] = {}
    for text in dims:
        found = re.fullmatch(r"\s*(.+?)\s*=\s*(\d+)\s*", text)
        if found is None:
            raise InvalidArgumentError(f"specialize-dims: '{text}' is no NAME=EXTENT", hint='dims="batch=4","seq=128"')
        if found[1] in bindings:
            raise InvalidArgumentError(f"specialize-dims: '{found[1]}' is given twice")
        bindings[found[1]] = int(found[2])
    return bindings


def specialized(ty: Attribute, bindings: Mapping[str, int]) -> Attribute:
    """The type with these names fixed.

    Raises:
        InvalidArgumentError: An extent would be negative.
    """

    def fix(dim: Dim) -> Dim:
        fixed = dim.substitute(bindings)
        if fixed.static_value is not None and fixed.static_value < 0:
            raise InvalidArgumentError(f"specialize-dims: the extent {dim} would be {fixed}")
        return fixed

    return map_dims(ty, fix)


def map_dims(ty: Attribute, change: Callable[[Dim], Dim | None]) -> Attribute:
    """The type with other dims in the place of those that are no numbers; None is one that is not known."""
    if isinstance(ty, SequenceType | OptionalType):
        return type(ty)(map_dims(ty.element, change))
    if isinstance(ty, MapType):
        return MapType(ty.key, map_dims(ty.element, change))
    if not isinstance(ty, TensorType):
        return ty
    named = ty.encoding.data if isinstance(ty.encoding, DimsAttr) else [None] * len(ty.get_shape())
    dims = [
        Dim.of(extent) if extent >= 0 else None if dim is None else change(dim)
        for extent, dim in zip(ty.get_shape(), named, strict=True)
    ]
    return stored(ty, dims)
