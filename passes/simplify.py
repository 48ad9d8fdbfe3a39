"""`simplify`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp

from sardonyx.passes import simplify_arith, simplify_moves, simplify_regions, simplify_sequences, simplify_shapes
from sardonyx.passes.base import EXACT, PassRun, Promise, SxPass
from sardonyx.passes.driver import RewriteDriver


@dataclass(frozen=True)
class SimplifyPass(SxPass):
    """Algebraic identities that hold for all bits, and shape computations whose results are known.

    Cases:
    1. Neutral elements: x*1, x/1, x**1, x-0 (+0 for floats), x+(-0) for floats and x+0 for integers, shifts by 0, x|0,
       x^0, x and true, x or false, x xor false. Not x+0 for floats (-0 would change), not 0*x (NaN). Only if x has
       the result's shape for certain: a neutral element still broadcasts.
    2. identity, clip without bounds, max/min/sum/mean of one operand, sum/mean/max/min/prod over no axes.
    3. where with a constant condition, or with the same value twice.
    4. neg, not and bitwise_not twice.
    5. abs, ceil, floor, round, sign and relu twice: once is enough.
    6. A cast to the operand's own dtype; cast_like becomes cast; a cast of a cast by way of a dtype that holds all
       values of the first (not int to float to narrower int: floats saturate, integers wrap).
    7. reshape, flatten, squeeze, unsqueeze and expand to the operand's own shape.
    8. transpose that moves nothing, concat and split of one, slice of all, pad by 0, tile by 1.
    9. reshape of a reshape, flatten, squeeze or unsqueeze. Where the second shape copies extents (entries 0), or is
       computed and not proved to fit, only if a constant shape states the result as in case 12.
    10. squeeze of squeeze, unsqueeze of unsqueeze, and those that undo each other.
    11. Ops on small integers whose results follow from static extents (shape, gather, concat and arithmetic on them)
        become constants.
    12. reshape and expand to a computed shape whose entries are numbers, the operand's own extents, or (one, beside
        positive numbers only) what is left: the shape becomes constant.
    13. if with a known condition: the branch that is taken stands in its place.
    14. loop that certainly never runs: its initial values, and rows of extent 0.
    15. slice of a slice along other axes, with constant bounds, where nothing else reads the first.
    16. concat of concats along the same axis, where nothing else reads these; operands without elements drop out where
        the other extents are proved equal.
    17. gather of a gather along the same axis, with constant indices.
    18. Elements, length and concatenation of a sequence that was put together from tensors, or (not concatenation) is
        the parts of one of static extents: the tensors themselves, a constant, concat, slice.
    19. What an optional was made of; whether there is a value, where that is known.
    20. What a loop carries and its body yields as it came: the body reads it from outside, and it is the result. Not
        where the body's argument states an extent that is not proved of the initial value.
    21. slice, with constant bounds, of a gather along the same axis by a constant vector, where only such slices read
        the gather: a gather by a part of the vector.

    Requires: nothing (it finds more after `infer-types`). Ensures: none of the cases is left.
    Promise: exact (payloads of NaN excepted).
    """

    name = "simplify"
    PROMISE: ClassVar[Promise] = EXACT

    def run(self, module: ModuleOp, run: PassRun) -> None:
        patterns = [
            pattern()
            for group in (simplify_shapes, simplify_moves, simplify_arith, simplify_regions, simplify_sequences)
            for pattern in group.PATTERNS
        ]
        RewriteDriver(patterns, run).rewrite(module)
