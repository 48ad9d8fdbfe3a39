"""Patterns of `simplify` on shapes: ops that change none, chains of them, and extents that are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import Shape, dims_of, dtype_of, rank_of, static_shape
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.sx.concat import ConcatOp, SplitOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.pad import PadOp
from sardonyx.dialects.sx.reshape import ExpandOp, FlattenOp, ReshapeOp, SqueezeOp, UnsqueezeOp
from sardonyx.dialects.sx.slice import SliceOp
from sardonyx.dialects.sx.tile import TileOp
from sardonyx.dialects.sx.transpose import TransposeOp
from sardonyx.dialects.values import contents, known_ints
from sardonyx.passes import provenance
from sardonyx.passes.driver import SxPattern, SxRewriter
from sardonyx.passes.effects import is_deterministic
from sardonyx.passes.matching import defined_by, forward, is_ranked, same_shape
from sardonyx.passes.permutations import is_identity

RESHAPES = (ReshapeOp, FlattenOp, SqueezeOp, UnsqueezeOp)
"""Ops that keep the elements in their order."""


class SameShapePattern(SxPattern[SxOp]):
    """Case 7: a reshape, flatten, squeeze, unsqueeze or expand to the operand's own shape."""

    NAME: ClassVar = "same-shape"
    OPS: ClassVar = (*RESHAPES, ExpandOp)

    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        if same_shape(op.results[0], op.operands[0]):
            return forward(op, op.operands[0], rewriter)
        if rewriter.run.keep_declines and is_ranked(op.results[0], op.operands[0]):
            self.near_miss(dims_of(op.operands[0]), dims_of(op.results[0]), rewriter)

    def near_miss(self, before: Shape, after: Shape, rewriter: SxRewriter) -> None:
        if len(before) != len(after):
            return
        unsure = [(a, b) for a, b in zip(before, after, strict=True) if equal(a, b) is not Proof.PROVED]
        if all(equal(a, b) is Proof.UNKNOWN for a, b in unsure):
            shown = ", ".join(f"{a} and {b}" for a, b in unsure)
            rewriter.decline(f"the extents are not proved to be equal: {shown}")


class KeepsAllPattern(SxPattern[SxOp]):
    """Case 8: a transpose, concat, split, slice, pad or tile that leaves its operand as it is."""

    NAME: ClassVar = "keeps-all"
    OPS: ClassVar = (TransposeOp, ConcatOp, SplitOp, SliceOp, PadOp, TileOp)

    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        if self.keeps_all(op):
            forward(op, op.operands[0], rewriter)

    def keeps_all(self, op: SxOp) -> bool:
        data = op.operands[0]
        if isinstance(op, ConcatOp):
            return len(op.operands) == 1
        if isinstance(op, SplitOp):
            return len(op.results) == 1 and same_shape(op.results[0], data)
        if isinstance(op, TransposeOp):
            return is_ranked(data) and is_identity(op.permutation(rank_of(data)))
        if isinstance(op, PadOp):
            pads = known_ints(op.pads)
            return pads is not None and not any(pads) and same_shape(op.output, data)
        if isinstance(op, TileOp):
            repeats = known_ints(op.repeats)
            return repeats is not None and all(r == 1 for r in repeats) and same_shape(op.output, data)
        assert isinstance(op, SliceOp)
        bounds = op.known_bounds()
        if bounds is None or not same_shape(op.output, data):
            return False
        return all(step == 1 and start is not None and start.static_value == 0 for _, start, _, step in bounds)


class ReshapeOfReshapePattern(SxPattern[ReshapeOp]):
    """Case 9: a reshape of a reshape, flatten, squeeze or unsqueeze is one reshape."""

    NAME: ClassVar = "reshape-of-reshape"
    OPS: ClassVar = (ReshapeOp,)

    def rewrite(self, op: ReshapeOp, rewriter: SxRewriter) -> None:
        inner = defined_by(op.data, RESHAPES)
        if inner is None:
            return
        source, both = inner.operands[0], provenance.merge(op.location, inner.location)
        if not is_ranked(source):
            return rewriter.decline("the rank of the first operand is not known")
        if self.reads_alike(op, source):
            return rewriter.replace(op, ReshapeOp.make(source, op.shape, allowzero=op.attr("allowzero"), location=both))
        shape = static_shape(op.output)
        entries = stated_entries(dims_of(source), dims_of(op.output)) if shape is None else list(shape)
        if entries is None:
            return rewriter.decline("an entry of the shape copies an extent of what it is reshaped from, or is unknown")
        constant = rewriter.insert(ConstantOp.dense(np.array(entries, np.int64)))
        allowzero = shape is not None and 0 in shape
        rewriter.replace(op, ReshapeOp.make(source, constant.output, allowzero=allowzero, location=both))

    def reads_alike(self, op: ReshapeOp, source: SSAValue) -> bool:
        """Whether the shape means the same for the source as for what is reshaped from it, whatever it is in a run."""
        known = contents(op.shape)
        if known is None or any(d is None or (d.static_value == 0 and not op.attr("allowzero")) for d in known):
            return False
        entries = [d for d in known if d is not None]
        # A computed entry that is 0 copies after all where the numbers of elements would differ otherwise.
        return all(d.is_static for d in entries) or (
            equal(Dim.product(entries), Dim.product(dims_of(source))) is Proof.PROVED
        )


def stated_entries(source: Shape, target: Shape) -> list[int] | None:
    """A reshape's constant entries that give `target` whatever the symbols are; None where there are none.

    0 copies the operand's extent at the same place; one extent may be left open (-1) beside positive numbers.
    """
    entries: list[int] = []
    for axis, dim in enumerate(target):
        number = dim.static_value
        if number == 0:
            return None
        if number is not None:
            entries.append(number)
        else:
            entries.append(0 if axis < len(source) and equal(dim, source[axis]) is Proof.PROVED else -1)
    if -1 in entries and 0 in entries:  # a copied extent of 0 would leave -1 undefined
        entries = [-1 if dim.static_value is None else dim.static_value for dim in target]
    return entries if entries.count(-1) <= 1 else None


class SqueezeChainPattern(SxPattern[SxOp]):
    """Case 10: squeezes and unsqueezes in a row, with known axes: two of a kind are one, opposite ones cancel."""

    NAME: ClassVar = "squeeze-chain"
    OPS: ClassVar = (SqueezeOp, UnsqueezeOp)

    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        inner = defined_by(op.operands[0], (SqueezeOp, UnsqueezeOp))
        if inner is None or not is_ranked(inner.operands[0], op.operands[0], op.results[0]):
            return
        source = inner.operands[0]
        outer_axes, inner_axes = axes_of(op), axes_of(inner)
        if outer_axes is None or inner_axes is None:
            return rewriter.decline("axes are not known")
        if isinstance(inner, SqueezeOp) and isinstance(op, SqueezeOp):
            kept = [i for i in range(rank_of(source)) if i not in inner_axes]
            return self.merge(op, inner, sorted([*inner_axes, *(kept[a] for a in outer_axes)]), rewriter)
        if isinstance(inner, UnsqueezeOp) and isinstance(op, UnsqueezeOp):
            kept = [i for i in range(rank_of(op.output)) if i not in outer_axes]
            return self.merge(op, inner, sorted([*outer_axes, *(kept[a] for a in inner_axes)]), rewriter)
        if outer_axes == inner_axes and same_shape(source, op.results[0]):
            return forward(op, source, rewriter)
        rewriter.decline(f"axes {inner_axes} and {outer_axes} do not undo each other")

    def merge(self, op: SxOp, inner: SxOp, axes: Sequence[int], rewriter: SxRewriter) -> None:
        both = provenance.merge(op.location, inner.location)
        vector = rewriter.insert(ConstantOp.dense(np.array(axes, np.int64), both))
        rewriter.replace(op, type(op).make(inner.operands[0], vector.output, location=both))


def axes_of(op: SxOp) -> list[int] | None:
    """The axes that a squeeze removes, or an unsqueeze adds, non-negative and sorted; None where they are not known."""
    rank = rank_of(op.operands[0] if isinstance(op, SqueezeOp) else op.results[0])
    if len(op.operands) == 1:
        return [i for i, d in enumerate(dims_of(op.operands[0])) if d.static_value == 1]
    known = known_ints(op.operands[1])
    return None if known is None else sorted(axis % rank for axis in known)


class KnownContentsPattern(SxPattern[SxOp]):
    """Case 11: an op of small integers whose contents follow from shapes that are known."""

    NAME: ClassVar = "known-contents"
    OPS: ClassVar = (SxOp,)
    REACH: ClassVar = 1

    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        if isinstance(op, ConstantOp) or not op.operands or op.regions or not op.results:
            return
        values: list[tuple[int, ...] | None] = []
        for result in op.results:
            known = known_ints(result)
            if known is None and result.first_use is not None:
                return
            values.append(known)
        if all(result.first_use is None for result in op.results) or not is_deterministic(op):
            return
        made: list[ConstantOp | None] = []
        for result, known in zip(op.results, values, strict=True):
            if known is None:
                made.append(None)
                continue
            array = np.array(known, dtype_of(result).numpy).reshape(static_shape(result) or ())
            made.append(ConstantOp.dense(array))
        rewriter.replace(op, [c for c in made if c is not None], [c.output if c is not None else None for c in made])


class ComputedShapePattern(SxPattern[SxOp]):
    """Case 12: a reshape or expand to a computed shape that constant entries state as well."""

    NAME: ClassVar = "computed-shape"
    OPS: ClassVar = (ReshapeOp, ExpandOp)

    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        data, shape = op.operands
        if not is_ranked(data, op.results[0]) or known_ints(shape) is not None or contents(shape) is None:
            return
        entries = stated_entries(dims_of(data), dims_of(op.output)) if isinstance(op, ReshapeOp) else self.broadcast(op)
        if entries is None:
            return rewriter.decline("an extent is neither a number nor the operand's own, and cannot be left open")
        constant = ConstantOp.dense(np.array(entries, np.int64), op.location)
        rewriter.replace(op, [constant, type(op).make(data, constant.output, location=op.location)])

    def broadcast(self, op: SxOp) -> list[int] | None:
        """1 leaves the operand's extent as it is."""
        out = dims_of(op.results[0])
        source = dims_of(op.operands[0])
        own = [Dim.of(1)] * (len(out) - len(source)) + list(source)
        entries: list[int] = []
        for dim, held in zip(out, own, strict=True):
            if dim.static_value is not None:
                entries.append(dim.static_value)
            elif equal(dim, held) is Proof.PROVED:
                entries.append(1)
            else:
                return None
        return entries


PATTERNS = (
    SameShapePattern, KeepsAllPattern, ReshapeOfReshapePattern, SqueezeChainPattern, KnownContentsPattern,
    ComputedShapePattern,
)  # fmt: skip
