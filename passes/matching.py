"""What patterns ask of values: who defines and who reads them, constants, shapes that are equal or broadcast.

Everything here answers 'certainly', whatever the symbols of the dims are: what is not known is no.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, OpResult, SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.sx.fill import ConstantOfShapeOp
from sardonyx.dialects.values import forget
from sardonyx.errors import InferenceError
from sardonyx.passes.constants import constant_of, small_array
from sardonyx.passes.driver import SxRewriter
from sardonyx.passes.propagate import agree

if TYPE_CHECKING:
    from sardonyx.dialects.evaluate import Array

OpT = TypeVar("OpT", bound=Operation)


def defined_by(value: SSAValue | None, cls: type[OpT] | tuple[type[OpT], ...]) -> OpT | None:
    """The op of that class that defines a value."""
    op = value.op if isinstance(value, OpResult) else None
    return op if isinstance(op, cls) else None


def operand_from(op: Operation, cls: type[OpT]) -> tuple[OpT, int] | None:
    """The op of that class that defines an operand of an op, and the operand's number; the first where several do."""
    for number, value in enumerate(op.operands):
        found = defined_by(value, cls)
        if found is not None:
            return found, number
    return None


def has_one_use(value: SSAValue) -> bool:
    """Whether exactly one operand reads the value, so that a rewrite of its reader may drop it."""
    return value.has_one_use()


def only_user(value: SSAValue) -> Operation | None:
    """The one op that reads the value (as however many of its operands); None where there is none or several."""
    users = {use.operation for use in value.uses}
    return users.pop() if len(users) == 1 else None


def is_constant(value: SSAValue | None) -> bool:
    """Whether a constant defines the value, small or large."""
    return constant_of(value) is not None or defined_by(value, ConstantOfShapeOp) is not None


def constant_array(value: SSAValue | None) -> Array | None:
    """The contents of a small constant (up to 1 KiB); None for all else."""
    return small_array(value)


def constant_number(value: SSAValue | None) -> Any:
    """The number that all elements of a constant are, as a NumPy scalar; None for all else, and for NaN."""
    filled = defined_by(value, ConstantOfShapeOp)
    array = small_array(value) if filled is None else filled.element()
    if array is None or not array.size or array.dtype.kind == "O":
        return None
    first = array.reshape(-1)[0]
    return first if bool((array == first).all()) else None


def dims_equal(a: Dim | int, b: Dim | int) -> bool:
    """Whether two dims are equal for certain: `n` and `n`, `2*n + n` and `3*n`."""
    return equal(Dim.of(a), Dim.of(b)) is Proof.PROVED


def broadcasts_to(value: SSAValue, shape: SSAValue) -> bool:
    """Whether `value` broadcast with `shape` certainly has the shape of `shape`."""
    if not is_ranked(value, shape):
        return False
    ours, theirs = dims_of(value), dims_of(shape)
    if len(ours) > len(theirs):
        return False
    aligned = theirs[len(theirs) - len(ours) :]
    return all(dims_equal(a, 1) or dims_equal(a, b) for a, b in zip(ours, aligned, strict=True))


def are_broadcastable(a: SSAValue, b: SSAValue) -> bool:
    """Whether two shapes certainly broadcast with each other."""
    if not is_ranked(a, b):
        return False
    pairs = zip(reversed(dims_of(a)), reversed(dims_of(b)))
    return all(dims_equal(x, y) or dims_equal(x, 1) or dims_equal(y, 1) for x, y in pairs)


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
