"""Patterns of `simplify` on arithmetic: neutral elements, ops that undo or repeat one another, casts."""

from __future__ import annotations

from typing import ClassVar

from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.sx import binary, cast, logical, reduce, select, unary, variadic
from sardonyx.dialects.sx.activation import ReluOp
from sardonyx.passes import provenance
from sardonyx.passes.driver import SxPattern, SxRewriter
from sardonyx.passes.matching import defined_by, forward, is_filled_with, same_shape, same_type


class NeutralElementPattern(SxPattern[SxOp]):
    """Case 1: x*1, x/1, x-0, x+(-0), x**1 and the like, where x has the result's shape."""

    NAME: ClassVar = "neutral-element"
    # Op -> the neutral element, whether on the right only, and for floats the sign of a zero.
    RIGHT: ClassVar[dict[type[SxOp], tuple[float, bool]]] = {
        binary.MulOp: (1, False),
        binary.DivOp: (1, False),
        binary.SubOp: (0, False),
        binary.AddOp: (0, True),
        binary.PowOp: (1, False),
        binary.BitShiftOp: (0, False),
        binary.BitwiseOrOp: (0, False),
        binary.BitwiseXorOp: (0, False),
        logical.AndOp: (1, False),
        logical.OrOp: (0, False),
        logical.XorOp: (0, False),
    }
    OPS: ClassVar = tuple(RIGHT)

    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        neutral, negative = self.RIGHT[type(op)]
        sides = [(op.operands[0], op.operands[1])]
        if op.COMMUTATIVE:
            sides.append((op.operands[1], op.operands[0]))
        for kept, other in sides:
            if not is_filled_with(other, neutral, negative):
                continue
            if same_type(op.results[0], kept):
                return forward(op, kept, rewriter)
            rewriter.decline("the neutral element still broadcasts the other operand")


class NoOpPattern(SxPattern[SxOp]):
    """Case 2: identity, a clip without bounds, a variadic op of one operand, a reduction over no axes."""

    NAME: ClassVar = "no-op"
    REDUCTIONS: ClassVar = (
        reduce.ReduceSumOp, reduce.ReduceMeanOp, reduce.ReduceMaxOp, reduce.ReduceMinOp, reduce.ReduceProdOp,
    )  # fmt: skip
    OPS: ClassVar = (unary.IdentityOp, select.ClipOp, variadic.VariadicOp, *REDUCTIONS)

    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        if isinstance(op, reduce.ReduceOp):
            axes = op.known_axes()
            if axes == ():
                forward(op, op.data, rewriter)
            elif axes is None:
                rewriter.decline("its axes are not known")
        elif len(op.operands) == 1:
            forward(op, op.operands[0], rewriter)


class WherePattern(SxPattern[select.WhereOp]):
    """Case 3: a where whose condition is constant, or whose branches are the same value."""

    NAME: ClassVar = "known-condition"
    OPS: ClassVar = (select.WhereOp,)

    def rewrite(self, op: select.WhereOp, rewriter: SxRewriter) -> None:
        chosen: SSAValue | None = None
        if op.on_true is op.on_false or is_filled_with(op.condition, 1):
            chosen = op.on_true
        elif is_filled_with(op.condition, 0):
            chosen = op.on_false
        if chosen is None:
            return
        if not same_shape(op.output, chosen):
            return rewriter.decline("the other operands broadcast the one that is chosen")
        forward(op, chosen, rewriter)


class InversePattern(SxPattern[SxOp]):
    """Case 4: an op after itself that undoes it: neg, not, bitwise_not."""

    NAME: ClassVar = "undone"
    OPS: ClassVar = (unary.NegOp, unary.NotOp, unary.BitwiseNotOp)

    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        inner = defined_by(op.operands[0], type(op))
        if inner is not None:
            forward(op, inner.operands[0], rewriter)


class IdempotentPattern(SxPattern[SxOp]):
    """Case 5: an op after itself that changes nothing more: abs, ceil, floor, round, sign, relu."""

    NAME: ClassVar = "idempotent"
    OPS: ClassVar = (unary.AbsOp, unary.CeilOp, unary.FloorOp, unary.RoundOp, unary.SignOp, ReluOp)

    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        if defined_by(op.operands[0], type(op)) is not None:
            forward(op, op.operands[0], rewriter)


class CastPattern(SxPattern[SxOp]):
    """Case 6: a cast to the operand's dtype; a cast of a cast that loses nothing."""

    NAME: ClassVar = "cast"
    OPS: ClassVar = (cast.CastOp, cast.CastLikeOp)

    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        source, target = op.operands[0], dtype_of(op.results[0])
        if dtype_of(source) == target:
            return forward(op, source, rewriter)
        if isinstance(op, cast.CastLikeOp):
            made = cast.CastOp.make(source, to=target, saturate=op.attr("saturate"), round_mode=op.attr("round_mode"))
            return rewriter.replace(op, made)
        inner = defined_by(source, cast.CastOp)
        if inner is None:
            return
        first, middle = dtype_of(inner.input), dtype_of(source)
        if not composes(first, middle, target):
            return rewriter.decline(f"{first} to {middle} to {target} is not the same as {first} to {target}")
        if first == target:
            return forward(op, inner.input, rewriter)
        both = provenance.merge(op.location, inner.location)
        rewriter.replace(op, cast.CastOp.make(inner.input, to=target, location=both))


# float dtype -> the bits of its significand, with the hidden one.
_PRECISION = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_WIDER = {"float16": ("float32", "float64"), "bfloat16": ("float32", "float64"), "float32": ("float64",)}


def holds(wide: DType, narrow: DType) -> bool:
    """Whether `wide` has every value of `narrow`."""
    if wide == narrow or narrow.kind == "b":
        return True
    if wide.kind == "b":
        return False
    if narrow.is_float:
        return wide.is_float and wide.name in _WIDER.get(narrow.name, ())
    if wide.is_float:
        digits = narrow.bits - (narrow.kind == "i")
        return digits <= _PRECISION[wide.name]
    if narrow.kind == "u":
        return wide.bits > narrow.bits if wide.kind == "i" else wide.bits >= narrow.bits
    return wide.kind == "i" and wide.bits >= narrow.bits


def composes(first: DType, middle: DType, last: DType) -> bool:
    """Whether casting by way of `middle` is casting directly.

    It has to hold all values of `first`. Then the value that arrives at the second cast is the same; only integers to
    integers wrap where floats to integers saturate, so that a float in the middle must not come between integers
    unless the last holds all values too.
    """
    if not holds(middle, first):
        return False
    if last.is_integer and middle.is_float and not first.is_float:
        return holds(last, first)
    return True


PATTERNS = (
    NeutralElementPattern, NoOpPattern, WherePattern, InversePattern, IdempotentPattern, CastPattern,
)  # fmt: skip
