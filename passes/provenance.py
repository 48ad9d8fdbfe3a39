"""Locations of ops that passes make: which pass and pattern made them, around where they come from.

A location made here has one bounded form, however many rewrites it went through: the distinct `pass:pattern` names,
newest outermost, around at most `MAX_FUSED` origins that hold no such names. Nesting that grew with each rewrite would
overflow the printer on a transpose that moves past a thousand ops.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, FusedLoc, LocationAttr, NameLoc, UnknownLoc
from xdsl.ir import Attribute

from sardonyx.dialects import locations

MAX_NAMES = 16
"""How many `pass:pattern` names a location keeps; the oldest go first."""


def peel(location: LocationAttr) -> tuple[list[str], list[LocationAttr]]:
    """The names of passes and patterns (newest first), and the origins that they stand around."""
    names: dict[str, None] = {}
    origins: dict[LocationAttr, None] = {}
    stack = [location]
    while stack:
        at = stack.pop()
        if isinstance(at, NameLoc) and at.desc.data.startswith(locations.PASS_PREFIX):
            names.setdefault(at.desc.data.removeprefix(locations.PASS_PREFIX))
            if not locations.is_unknown(at.location):
                stack.append(cast(LocationAttr, at.location))
        elif isinstance(at, FusedLoc):
            parts = cast(tuple[LocationAttr, ...], cast(ArrayAttr[Attribute], at.locations).data)
            stack.extend(reversed(parts))
        elif not locations.is_unknown(at):
            origins.setdefault(at)
    return list(names), list(origins)


def build(names: Iterable[str], origins: Iterable[LocationAttr]) -> LocationAttr:
    """The location with these names around these origins."""
    location = locations.fuse(origins)
    for name in reversed(list(names)[:MAX_NAMES]):
        location = locations.wrap(location, name)
    return location


def merge(*several: LocationAttr) -> LocationAttr:
    """The location of an op that stands for several."""
    names: dict[str, None] = {}
    origins: dict[LocationAttr, None] = {}
    for location in several:
        ours, theirs = peel(location)
        names.update(dict.fromkeys(ours))
        origins.update(dict.fromkeys(theirs))
    return build(names, origins)


def stamp(location: LocationAttr, name: str) -> LocationAttr:
    """Note that `pass:pattern` made an op from this location."""
    if isinstance(location, UnknownLoc):
        return locations.wrap(location, name)
    names, origins = peel(location)
    if name in names:
        return location
    return build([name, *names], origins)
