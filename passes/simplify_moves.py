"""Patterns of `simplify` on ops that pick and join elements: slices, concats and gathers in a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of, rank_of
from sardonyx.dialects.dims import Proof, equal
from sardonyx.dialects.sx.concat import ConcatOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.gather import GatherOp
from sardonyx.dialects.sx.slice import SliceOp, slice_positions
from sardonyx.dialects.values import known_ints
from sardonyx.passes import provenance
from sardonyx.passes.constants import small_array
from sardonyx.passes.driver import SxPattern, SxRewriter
from sardonyx.passes.matching import defined_by, is_ranked

Range = tuple[int, int, int]
"""Start, end and step of a slice along one axis."""


def ranges_of(op: SliceOp) -> dict[int, Range] | None:
    """What a slice takes along each of its axes, where all of it is constant."""
    vectors = [known_ints(v) for v in (op.starts, op.ends)]
    starts, ends = vectors
    if starts is None or ends is None or not is_ranked(op.data):
        return None
    axes = tuple(range(len(starts))) if op.axes is None else known_ints(op.axes)
    steps = (1,) * len(starts) if op.steps is None else known_ints(op.steps)
    if axes is None or steps is None:
        return None
    rank = rank_of(op.data)
    return {a % rank: r for a, *r in zip(axes, starts, ends, steps, strict=True)}  # pyright: ignore[reportReturnType]


class SliceOfSlicePattern(SxPattern[SliceOp]):
    """Case 15: a slice of a slice along other axes, both with constant bounds."""

    NAME: ClassVar = "slice-of-slice"
    OPS: ClassVar = (SliceOp,)

    def rewrite(self, op: SliceOp, rewriter: SxRewriter) -> None:
        inner = defined_by(op.data, SliceOp)
        if inner is None:
            return
        first, second = ranges_of(inner), ranges_of(op)
        if first is None or second is None:
            return rewriter.decline("a bound is not known")
        if first.keys() & second.keys():
            return rewriter.decline("both take a part of the same axis")
        if not op.data.has_one_use():
            return rewriter.decline("the first slice is read elsewhere too")
        both = provenance.merge(op.location, inner.location)
        merged = sorted({**first, **second}.items())
        columns = [[r[k] for _, r in merged] for k in range(3)]
        vectors = [ConstantOp.dense(np.array(c, np.int64), both) for c in (*columns, [axis for axis, _ in merged])]
        starts, ends, steps, axes = (v.output for v in vectors)
        rewriter.replace(op, [*vectors, SliceOp.make(inner.data, starts, ends, axes, steps, location=both)])


class ConcatOfConcatPattern(SxPattern[ConcatOp]):
    """Case 16: a concat along the axis of a concat of which it is the only reader; operands without elements."""

    NAME: ClassVar = "concat-of-concat"
    OPS: ClassVar = (ConcatOp,)

    def rewrite(self, op: ConcatOp, rewriter: SxRewriter) -> None:
        if not is_ranked(op.output, *op.inputs):
            return
        rank = rank_of(op.output)
        axis = op.attr("axis") % rank
        inputs: list[SSAValue] = []
        places = [op.location]
        for value in op.inputs:
            inner = defined_by(value, ConcatOp)
            if inner is not None and value.has_one_use() and inner.attr("axis") % rank == axis:
                inputs += inner.inputs
                places.append(inner.location)
            else:
                inputs.append(value)
        kept = [v for v in inputs if not self.is_empty(v, axis)] or inputs[:1]
        if len(kept) < len(inputs) and not self.fits(kept, op, axis):
            rewriter.decline("without the operand that has no elements an extent would not be known, or not be checked")
            kept = inputs
        if len(kept) == len(op.inputs) and len(places) == 1:
            return
        both = provenance.merge(*places)
        rewriter.replace(op, ConcatOp.make(kept, axis=axis, location=both))

    def is_empty(self, value: SSAValue, axis: int) -> bool:
        return is_ranked(value) and dims_of(value)[axis].static_value == 0

    def fits(self, kept: Sequence[SSAValue], op: ConcatOp, axis: int) -> bool:
        """Whether all operands have the result's other extents for certain."""
        out = dims_of(op.output)
        return all(
            equal(own, full) is Proof.PROVED
            for value in [*kept, *op.inputs]
            for at, (own, full) in enumerate(zip(dims_of(value), out, strict=True))
            if at != axis
        )


class GatherOfGatherPattern(SxPattern[GatherOp]):
    """Case 17: a gather of a gather along the same axis, both with constant indices, the first's a vector."""

    NAME: ClassVar = "gather-of-gather"
    OPS: ClassVar = (GatherOp,)

    def rewrite(self, op: GatherOp, rewriter: SxRewriter) -> None:
        inner = defined_by(op.data, GatherOp)
        if inner is None or not is_ranked(inner.data, op.data):
            return
        first, second = small_array(inner.indices), small_array(op.indices)
        if first is None or second is None or first.ndim != 1:
            return rewriter.decline("indices are not constant, or those of the first are no vector")
        if inner.attr("axis") % rank_of(inner.data) != op.attr("axis") % rank_of(op.data):
            return rewriter.decline("the gathers are along different axes")
        both = provenance.merge(op.location, inner.location)
        indices = ConstantOp.dense(first[second].astype(dtype_of(inner.indices).numpy), both)
        rewriter.replace(
            op, [indices, GatherOp.make(inner.data, indices.output, axis=inner.attr("axis"), location=both)]
        )


class SliceOfGatherPattern(SxPattern[SliceOp]):
    """Case 21: a slice along the axis of a gather by a constant vector, which only such slices read."""

    NAME: ClassVar = "slice-of-gather"
    OPS: ClassVar = (SliceOp,)

    def rewrite(self, op: SliceOp, rewriter: SxRewriter) -> None:
        inner = defined_by(op.data, GatherOp)
        if inner is None or not is_ranked(inner.data, op.data):
            return
        axis, indices = inner.attr("axis") % rank_of(inner.data), small_array(inner.indices)
        if indices is None or indices.ndim != 1:
            return rewriter.decline("the indices of the gather are no constant vector")
        readers = {use.operation for use in inner.output.uses}
        parts = {reader: ranges_of(reader) for reader in readers if isinstance(reader, SliceOp)}
        if len(parts) < len(readers) or any(part is None or part.keys() != {axis} for part in parts.values()):
            return rewriter.decline("the gather is not only read by slices along its axis with constant bounds")
        start, end, step = (parts[op] or {})[axis]
        first, count = slice_positions(len(indices), start, end, step)
        kept = indices[first + step * np.arange(count)]
        both = provenance.merge(op.location, inner.location)
        constant = ConstantOp.dense(np.ascontiguousarray(kept), both)
        made = GatherOp.make(inner.data, constant.output, axis=inner.attr("axis"), location=both)
        rewriter.replace(op, [constant, made])


PATTERNS = (SliceOfSlicePattern, ConcatOfConcatPattern, GatherOfGatherPattern, SliceOfGatherPattern)
