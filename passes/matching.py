"""What patterns ask of values: equal shapes, constants that are all one number, the op behind a value."""

from __future__ import annotations

from typing import TypeVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, OpResult, SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Proof, equal
from sardonyx.dialects.sx.fill import ConstantOfShapeOp
from sardonyx.dialects.values import forget
from sardonyx.errors import InferenceError
from sardonyx.passes.constants import small_array
from sardonyx.passes.driver import SxRewriter
from sardonyx.passes.propagate import agree

OpT = TypeVar("OpT", bound=Operation)


def defined_by(value: SSAValue | None, cls: type[OpT] | tuple[type[OpT], ...]) -> OpT | None:
    """The op of that class that defines a value."""
    op = value.op if isinstance(value, OpResult) else None
    return op if isinstance(op, cls) else None


def is_ranked(*values: SSAValue) -> bool:
    return all(isinstance(v.type, TensorType) for v in values)


def same_shape(a: SSAValue, b: SSAValue) -> bool:
    """Whether the shapes are equal for certain, whatever the symbols are."""
    if not is_ranked(a, b):
        return False
    ours, theirs = dims_of(a), dims_of(b)
    return len(ours) == len(theirs) and all(equal(x, y) is Proof.PROVED for x, y in zip(ours, theirs, strict=True))


def same_type(a: SSAValue, b: SSAValue) -> bool:
    """Whether dtype and shape are equal for certain."""
    return dtype_of(a) == dtype_of(b) and same_shape(a, b)


def is_filled_with(value: SSAValue | None, number: float, negative_zero: bool = False) -> bool:
    """Whether all elements are known to be that number: a small constant, or one element in any shape; zeros have to
    have the right sign."""
    filled = defined_by(value, ConstantOfShapeOp)
    array = small_array(value) if filled is None else filled.element()
    if array is None or not array.size or array.dtype.kind == "O":
        return False
    import numpy as np

    if not bool((array == array.dtype.type(number)).all()):
        return False
    if number != 0 or array.dtype.kind in "iub":
        return True
    return bool((np.signbit(array.astype(np.float64)) == negative_zero).all())


def forward(op: Operation, value: SSAValue, rewriter: SxRewriter) -> None:
    """Let the readers of the op's only result read an equal value instead.

    Declines where the op's type tells more of the shape than that of an input of the function, which stays as it is
    stated.
    """
    (result,) = op.results
    try:
        merged = agree(value.type, result.type)
    except InferenceError:
        return rewriter.decline("its type contradicts that of the value that it would be replaced by")
    if merged != value.type:
        if not isinstance(value, OpResult):
            return rewriter.decline("its type tells more than that of the input that it would be replaced by")
        value._type = merged
        forget(value)
        rewriter.retyped.extend(use.operation for use in value.uses)
    rewriter.replace(op, [], [value])
