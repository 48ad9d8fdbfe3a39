"""`join-slices`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import LocationAttr, ModuleOp

from sardonyx.dialects import locations
from sardonyx.dialects.attributes import dims_of, rank_of
from sardonyx.dialects.sx.concat import SplitOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.slice import SliceOp, slice_positions
from sardonyx.passes import provenance
from sardonyx.passes.base import EXACT, PassRun, Promise, SxPass
from sardonyx.passes.driver import RewriteDriver, SxPattern, SxRewriter
from sardonyx.passes.matching import is_ranked
from sardonyx.passes.simplify_moves import ranges_of

Parts = list[tuple[int, int, SliceOp]]
"""Where each slice starts, how many it takes, and the slice; in order."""


def parts_of(op: SliceOp) -> tuple[int, Parts] | None:
    """The axis, and the slices along it alone, without steps, of the same value and block as `op`.

    None where `op` itself is no such slice.
    """
    own = _part(op)
    if own is None:
        return None
    found: Parts = []
    for reader in {use.operation for use in op.data.uses if use.index == 0}:
        part = _part(reader) if isinstance(reader, SliceOp) and reader.parent is op.parent else None
        if part is not None and part[0] == own[0]:
            found.append(part[1])
    return own[0], sorted(found, key=lambda part: part[:2])


def _part(op: SliceOp) -> tuple[int, tuple[int, int, SliceOp]] | None:
    ranges = ranges_of(op) if is_ranked(op.data) else None
    if ranges is None or len(ranges) != 1:
        return None
    ((axis, (start, end, step)),) = ranges.items()
    extent = dims_of(op.data)[axis].static_value
    if extent is None or step != 1:
        return None
    first, count = slice_positions(extent, start, end, step)
    return axis, (first, count, op)


class PartsPattern(SxPattern[SliceOp]):
    """Cases 1 and 2."""

    NAME: ClassVar = "parts"
    OPS: ClassVar = (SliceOp,)

    def rewrite(self, op: SliceOp, rewriter: SxRewriter) -> None:
        found = parts_of(op)
        if found is None:
            return rewriter.decline("it takes no range of one axis of a known extent")
        axis, parts = found
        ends = [0, *(start + count for start, count, _ in parts)]
        whole = dims_of(op.data)[axis].static_value
        if len(parts) < 2 or ends[-1] != whole or any(e != p[0] or not p[1] for e, p in zip(ends, parts)):
            return rewriter.decline("the slices of the value are not parts that follow one another and make it up")
        slices = [part for _, _, part in parts]
        if any(other.is_before_in_block(op) for other in slices if other is not op):
            return  # the first of them stands for all
        location = _location(slices)
        sizes = rewriter.insert(ConstantOp.dense(np.array([count for _, count, _ in parts], np.int64), location))
        split = SplitOp.make(op.data, sizes.output, results=len(parts), axis=axis % rank_of(op.data), location=location)
        rewriter.insert(split)
        for part, value in zip(slices, split.results, strict=True):
            rewriter.replace(part, [], [value])


def _location(slices: list[SliceOp]) -> LocationAttr:
    """Where the split comes from; its results keep the names that the slices' results had."""
    named = [locations.value_names(part.location, 1)[0] for part in slices]
    if any(name is None for name in named):
        return provenance.merge(*(part.location for part in slices))
    return locations.node_location(locations.node_name(slices[0].location) or "", [name or "" for name in named])


@dataclass(frozen=True)
class JoinSlicesPass(SxPass):
    """State the slices that make up a value as one split.

    Cases:
    1. Slices of one value along one axis of a known extent, with constant bounds and steps of 1, that follow one
       another from its start to its end: a split. So exporters write the gates of recurrent cells, and the heads of
       packed projections.
    2. Not: where a part is missing, empty, or there twice, or slices of other blocks take it.

    Requires: nothing (it finds more after `cse`, which makes equal slices one). Ensures: none of the cases is left.
    Promise: exact.
    """

    name = "join-slices"
    PROMISE: ClassVar[Promise] = EXACT

    def run(self, module: ModuleOp, run: PassRun) -> None:
        RewriteDriver([PartsPattern()], run).rewrite(module)
