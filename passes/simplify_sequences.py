"""Patterns of `simplify` on sequences and optionals whose elements are known: they become plain tensors."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of, rank_of, static_shape
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.sx.concat import ConcatOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.optional import OptionalGetElementOp, OptionalHasElementOp, OptionalOp
from sardonyx.dialects.sx.reshape import UnsqueezeOp
from sardonyx.dialects.sx.sequence import (
    ConcatFromSequenceOp,
    SequenceAtOp,
    SequenceConstructOp,
    SequenceLengthOp,
    SplitToSequenceOp,
)
from sardonyx.dialects.sx.slice import SliceOp
from sardonyx.dialects.types import OptionalType
from sardonyx.dialects.values import known_ints
from sardonyx.errors import InferenceError
from sardonyx.passes import provenance
from sardonyx.passes.driver import SxPattern, SxRewriter
from sardonyx.passes.matching import defined_by, forward, is_ranked


class KnownElementPattern(SxPattern[SequenceAtOp]):
    """Case 18: an element of a sequence that was put together, or of the parts of a tensor."""

    NAME: ClassVar = "known-element"
    OPS: ClassVar = (SequenceAtOp,)

    def rewrite(self, op: SequenceAtOp, rewriter: SxRewriter) -> None:
        known = known_ints(op.position)
        made = defined_by(op.input_sequence, (SequenceConstructOp, SplitToSequenceOp))
        if known is None or len(known) != 1 or made is None:
            return
        if isinstance(made, SequenceConstructOp):
            if -len(made.inputs) <= known[0] < len(made.inputs):
                forward(op, made.inputs[known[0]], rewriter)
            return
        parts = bounds_of(made)
        if parts is None or not -len(parts) <= known[0] < len(parts):
            return rewriter.decline("the sizes of the parts are not known, or there are fewer")
        if made.split is None and not made.attr("keepdims"):
            return rewriter.decline("its axis is dropped")
        vectors: list[SSAValue] = []
        for number in (*parts[known[0]], made.attr("axis") % rank_of(made.input)):
            vectors.append(rewriter.insert(ConstantOp.dense(np.array([number], np.int64))).output)
        both = provenance.merge(op.location, made.location)
        rewriter.replace(op, SliceOp.make(made.input, *vectors, location=both))


def bounds_of(op: SplitToSequenceOp) -> list[tuple[int, int]] | None:
    """Where the parts begin and end along the axis; None where that is not known."""
    shape = static_shape(op.input)
    sizes = None if op.split is None else known_ints(op.split)
    if shape is None or not shape or (op.split is not None and (sizes is None or not is_ranked(op.split))):
        return None
    extent = shape[op.attr("axis") % len(shape)]
    if sizes is not None and op.split is not None and rank_of(op.split) == 1:
        ends = np.cumsum(sizes).tolist()
        return list(zip([0, *ends][:-1], ends, strict=True))
    size = 1 if sizes is None else sizes[0]
    return [(start, min(start + size, extent)) for start in range(0, extent, size)]


class KnownLengthPattern(SxPattern[SequenceLengthOp]):
    """Case 18: the number of elements of a sequence that was put together, or of the parts of a tensor."""

    NAME: ClassVar = "known-length"
    OPS: ClassVar = (SequenceLengthOp,)

    def rewrite(self, op: SequenceLengthOp, rewriter: SxRewriter) -> None:
        made = defined_by(op.input_sequence, (SequenceConstructOp, SplitToSequenceOp))
        parts = bounds_of(made) if isinstance(made, SplitToSequenceOp) else None
        if isinstance(made, SequenceConstructOp):
            rewriter.replace(op, ConstantOp.dense(np.array(len(made.inputs), np.int64)))
        elif parts is not None:
            rewriter.replace(op, ConstantOp.dense(np.array(len(parts), np.int64)))


class JoinedPattern(SxPattern[ConcatFromSequenceOp]):
    """Case 18: the elements of a sequence that was put together are joined as they are."""

    NAME: ClassVar = "joined"
    OPS: ClassVar = (ConcatFromSequenceOp,)

    def rewrite(self, op: ConcatFromSequenceOp, rewriter: SxRewriter) -> None:
        made = defined_by(op.input_sequence, SequenceConstructOp)
        if made is None:
            return
        if not is_ranked(*made.inputs) or len({len(dims_of(v)) for v in made.inputs}) > 1:
            return rewriter.decline("the rank of an element is not known")
        elements = list(made.inputs)
        axis = op.attr("axis") % (rank_of(elements[0]) + bool(op.attr("new_axis")))
        if op.attr("new_axis"):
            if any(dims_of(v) != dims_of(elements[0]) for v in elements):
                return rewriter.decline("the elements are not certain to have the same shape")
            where = rewriter.insert(ConstantOp.dense(np.array([axis], np.int64))).output
            elements = [rewriter.insert(UnsqueezeOp.make(v, where)).output for v in elements]
        both = provenance.merge(op.location, made.location)
        try:
            joined = ConcatOp.make(elements, axis=axis, location=both)
        except InferenceError as error:  # it fails when it runs
            return rewriter.decline(error.message)
        rewriter.replace(op, joined)


class KnownOptionalPattern(SxPattern[SxOp]):
    """Case 19: what is known to be there, or not to be, and what an optional was made of."""

    NAME: ClassVar = "known-optional"
    OPS: ClassVar = (OptionalGetElementOp, OptionalHasElementOp)

    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        given = op.operands[0] if op.operands else None
        made = defined_by(given, OptionalOp)
        if isinstance(op, OptionalHasElementOp):
            there = given is not None and not isinstance(given.type, OptionalType)
            if made is not None and (made.input is None or not isinstance(made.input.type, OptionalType)):
                there, given = made.input is not None, None
            if there or given is None:
                rewriter.replace(op, ConstantOp.dense(np.array(there)))
        elif given is not None and not isinstance(given.type, OptionalType):
            forward(op, given, rewriter)
        elif made is not None and made.input is not None:
            forward(op, made.input, rewriter)


PATTERNS = (KnownElementPattern, KnownLengthPattern, JoinedPattern, KnownOptionalPattern)
