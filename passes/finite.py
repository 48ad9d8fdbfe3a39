"""How large the elements of a value can be, from what it is made of."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.sx.binary import AddOp, MulOp, SubOp
from sardonyx.dialects.sx.cast import CastOp
from sardonyx.dialects.sx.concat import ConcatOp
from sardonyx.dialects.sx.fill import ConstantOfShapeOp
from sardonyx.dialects.sx.gather import GatherOp
from sardonyx.dialects.sx.reshape import ExpandOp, FlattenOp, ReshapeOp, SqueezeOp, UnsqueezeOp
from sardonyx.dialects.sx.select import WhereOp
from sardonyx.dialects.sx.slice import SliceOp
from sardonyx.dialects.sx.transpose import TransposeOp
from sardonyx.dialects.sx.unary import AbsOp, IdentityOp, NegOp
from sardonyx.passes.constants import small_array
from sardonyx.passes.matching import defined_by

MAX_DEPTH = 24
SAME = (
    AbsOp, ExpandOp, FlattenOp, GatherOp, IdentityOp, NegOp, ReshapeOp, SliceOp, SqueezeOp, TransposeOp, UnsqueezeOp,
)  # fmt: skip
"""Ops whose result has no other magnitudes than their first operand."""


def bound_of(value: SSAValue, depth: int = MAX_DEPTH) -> float:
    """What no element's magnitude exceeds; infinite where that is not known."""
    if depth == 0:
        return math.inf
    filled = defined_by(value, ConstantOfShapeOp)
    array = small_array(value) if filled is None else filled.element()
    if array is not None and array.size and array.dtype.kind != "O":
        largest = float(np.abs(array.astype(np.float64)).max())
        return math.inf if math.isnan(largest) else largest
    found = math.inf
    if (same := defined_by(value, SAME)) is not None:
        found = bound_of(same.operands[0], depth - 1)
    elif (choice := defined_by(value, WhereOp)) is not None:
        found = max(bound_of(v, depth - 1) for v in choice.operands[1:])
    elif (joined := defined_by(value, ConcatOp)) is not None:
        found = max(bound_of(v, depth - 1) for v in joined.operands)
    elif (total := defined_by(value, (AddOp, SubOp))) is not None:
        found = _rounded(sum(bound_of(v, depth - 1) for v in total.operands), value)
    elif (product := defined_by(value, MulOp)) is not None:
        a, b = (bound_of(v, depth - 1) for v in product.operands)
        found = math.inf if math.inf in (a, b) else _rounded(a * b, value)
    elif (cast := defined_by(value, CastOp)) is not None:
        found = _rounded(min(_largest(cast.operands[0]), bound_of(cast.operands[0], depth - 1)), value)
    return found


def _rounded(bound: float, value: SSAValue) -> float:
    """A bound of what was computed in a value's dtype; infinite where it may have been rounded up to infinity."""
    dtype = dtype_of(value)
    if not dtype.is_float:
        return math.inf if bound >= _largest(value) / 2 else bound
    return bound if bound < float(ml_dtypes.finfo(dtype.numpy).max) else math.inf


def _largest(value: SSAValue) -> float:
    """The largest magnitude that a dtype of integers holds."""
    dtype = dtype_of(value)
    if dtype.is_float or dtype.kind not in "biu":
        return math.inf
    return 1.0 if dtype.kind == "b" else 2.0**dtype.bits


def is_never_infinite(value: SSAValue) -> bool:
    """Whether no element is infinite or NaN, whatever the inputs are."""
    return bound_of(value) < math.inf
