"""Helpers on locations: where an op comes from, and which pass and pattern made it.

A location is a leaf (`loc("model.py":12:3)`, or a name `loc("conv1")` for an ONNX node) around which passes wrap
names: `loc("pass:pattern"(origin))`. Fused locations hold several origins; fusing flattens, removes duplicates and is
capped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    IntAttr,
    LocationAttr,
    NameLoc,
    NoneAttr,
    StringAttr,
    UnknownLoc,
)
from xdsl.ir import Attribute

MAX_FUSED = 8
"""How many origins a fused location keeps."""

PASS_PREFIX = "pass:"
"""Names that passes wrap around an origin begin so."""


def file_location(path: str, line: int, column: int = 0) -> LocationAttr:
    return FileLineColLoc(StringAttr(path), IntAttr(line), IntAttr(column))


def name_location(name: str, child: LocationAttr | None = None) -> LocationAttr:
    """A name, around another location where one is given."""
    return NameLoc(StringAttr(name), NoneAttr() if child is None or is_unknown(child) else child)


def is_unknown(location: Attribute | None) -> bool:
    return location is None or isinstance(location, UnknownLoc | NoneAttr)


def _parts(location: FusedLoc) -> tuple[LocationAttr, ...]:
    return cast(tuple[LocationAttr, ...], cast(ArrayAttr[Attribute], location.locations).data)


def leaves(location: LocationAttr) -> Iterator[LocationAttr]:
    """The origins: file locations and the innermost names, without what passes wrapped around them."""
    stack = [location]
    while stack:
        at = stack.pop()
        if isinstance(at, FusedLoc):
            stack.extend(reversed(_parts(at)))
        elif isinstance(at, CallSiteLoc):
            stack.append(cast(LocationAttr, at.callee))
        elif isinstance(at, NameLoc) and not is_unknown(at.location):
            stack.append(cast(LocationAttr, at.location))
        elif not is_unknown(at):
            yield at


def fuse(locations: Iterable[LocationAttr]) -> LocationAttr:
    """One location for several: flattened, without duplicates, at most `MAX_FUSED`."""
    kept: dict[LocationAttr, None] = {}
    for location in locations:
        for part in _parts(location) if isinstance(location, FusedLoc) else (location,):
            if not is_unknown(part):
                kept.setdefault(part)
    found = list(kept)[:MAX_FUSED]
    if not found:
        return UnknownLoc()
    return found[0] if len(found) == 1 else FusedLoc(ArrayAttr(found), NoneAttr())


def wrap(location: LocationAttr, name: str) -> LocationAttr:
    """Note that a pass or pattern made an op from this location; the same name is not noted twice in a row."""
    full = PASS_PREFIX + name
    if isinstance(location, NameLoc) and location.desc.data == full:
        return location
    return NameLoc(StringAttr(full), NoneAttr() if is_unknown(location) else location)


def names(location: LocationAttr) -> Iterator[str]:
    """All names on the way to the leaves, outermost first, those of passes left out."""
    stack = [location]
    while stack:
        at = stack.pop()
        if isinstance(at, FusedLoc):
            stack.extend(reversed(_parts(at)))
        elif isinstance(at, CallSiteLoc):
            stack.append(cast(LocationAttr, at.callee))
        elif isinstance(at, NameLoc):
            if not at.desc.data.startswith(PASS_PREFIX):
                yield at.desc.data
            if not is_unknown(at.location):
                stack.append(cast(LocationAttr, at.location))


def describe(location: LocationAttr | None) -> str | None:
    """The location for a person: `model.py:12`, or `node 'conv1'`; None where nothing is known."""
    if location is None or is_unknown(location):
        return None
    name = next(names(location), None)
    for leaf in leaves(location):
        if isinstance(leaf, FileLineColLoc):
            return f"{leaf.filename.data}:{leaf.line.data}"
    return f"node '{name}'" if name else None


def node_location(node: str, outputs: Iterable[str]) -> LocationAttr:
    """The location of an op made from a node of this name with these outputs (read by `node_name`, `value_names`)."""
    named = list(outputs)
    while named and not named[-1]:
        named.pop()
    node = node or next((n for n in named if n), "")
    if not node:
        return UnknownLoc()
    if not named or named == [node]:
        return name_location(node)
    parts = [name_location(n) if n else UnknownLoc() for n in named]
    child = parts[0] if len(parts) == 1 else FusedLoc(ArrayAttr(parts), NoneAttr())
    return NameLoc(StringAttr(node), child)


def node_name(location: LocationAttr | None) -> str | None:
    """The name of the node that the op comes from, if it comes from one."""
    return None if location is None else next(names(location), None)


def value_names(location: LocationAttr | None, count: int) -> list[str | None]:
    """The names that an op's results had in the model that it comes from; None where nothing is known."""
    at: Attribute | None = location
    name: str | None = None
    while True:
        if isinstance(at, NameLoc):
            if not at.desc.data.startswith(PASS_PREFIX):
                name = at.desc.data
                if isinstance(at.location, FusedLoc):
                    return _of_parts(at.location, count)
            at = at.location
        elif isinstance(at, CallSiteLoc):
            at = at.callee
        elif isinstance(at, FusedLoc):  # several ops became one: it computes what the first of them did
            at = _parts(at)[0]
        else:
            return [name, *([None] * (count - 1))][:count]


def _of_parts(location: FusedLoc, count: int) -> list[str | None]:
    found = [p.desc.data if isinstance(p, NameLoc) else None for p in _parts(location)]
    return (found + [None] * count)[:count]
