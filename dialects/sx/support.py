"""What several op families share: operand checks, broadcasting of extents, axes."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import UnrankedTensorType
from xdsl.ir import Attribute, SSAValue

from sardonyx.dialects.attributes import Shape, dims_of, dtype_of, tensor_type, unranked_type
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import ANY, DType, string


def is_unranked(value: SSAValue) -> bool:
    return isinstance(value.type, UnrankedTensorType)


def broadcast_dims(op: SxOp, shapes: Sequence[Shape], constraint: str) -> Shape:
    """The extents of NumPy broadcasting; two unequal static extents, neither of them 1, break the constraint."""
    rank = max((len(s) for s in shapes), default=0)
    out: list[Dim] = []
    for axis in range(rank):
        result = Dim.of(1)
        for shape in shapes:
            at = axis - (rank - len(shape))
            if at < 0:
                continue
            a, b = result, shape[at]
            both = a.static_value, b.static_value
            if None not in both and 1 not in both and both[0] != both[1]:
                shown = " and ".join(format_dims(s) for s in shapes)
                raise op.fail(f"{constraint} shapes {shown} do not broadcast: {a} and {b} at axis {axis}")
            result = Dim.broadcast(a, b)
        out.append(result)
    return tuple(out)


def format_dims(dims: Iterable[Dim]) -> str:
    return "[" + ", ".join(str(d) for d in dims) + "]"


def broadcast_type(op: SxOp, dtype: DType, operands: Sequence[SSAValue], constraint: str) -> Attribute:
    """The type of an elementwise result over these operands."""
    if any(is_unranked(o) for o in operands):
        return unranked_type(dtype)
    return tensor_type(dtype, broadcast_dims(op, [dims_of(o) for o in operands], constraint))


def same_dtype(op: SxOp, operands: Sequence[SSAValue], constraint: str) -> DType:
    """The one dtype of all operands."""
    found = [dtype_of(o) for o in operands]
    if any(d != found[0] for d in found):
        raise op.fail(f"{constraint} the operands have different dtypes: {', '.join(map(str, found))}")
    return found[0]


def check_dtype(
    op: SxOp, value: SSAValue, allowed: Sequence[DType], constraint: str, what: str = "the operand"
) -> DType:
    dtype = dtype_of(value)
    if dtype not in allowed and not (allowed is ANY and dtype == string):
        raise op.fail(f"{constraint} {what} has dtype {dtype}; allowed: {', '.join(map(str, allowed))}")
    return dtype


def normalize_axis(op: SxOp, axis: int, rank: int, constraint: str) -> int:
    """A non-negative axis; one outside [-rank, rank) breaks the constraint."""
    if not -rank <= axis < rank:
        raise op.fail(f"{constraint} axis {axis} is out of range for rank {rank}")
    return axis % rank if rank else 0


def normalize_axes(op: SxOp, axes: Iterable[int], rank: int, constraint: str) -> tuple[int, ...]:
    """Non-negative axes in the given order; a repeated one breaks the constraint."""
    found = tuple(normalize_axis(op, a, rank, constraint) for a in axes)
    if len(set(found)) != len(found):
        raise op.fail(f"{constraint} axes {list(found)} repeat one")
    return found


def require_equal(op: SxOp, a: Dim, b: Dim, message: str) -> None:
    """Refuse extents that are certainly different; unknown ones become a check of the run."""
    if equal(a, b) is Proof.REFUTED:
        raise op.fail(f"{message}: {a} and {b}")


def float_attr(op: SxOp, name: str) -> float:
    """A float property as ONNX keeps it: rounded to float32, whatever the tensor's dtype."""
    return struct.unpack("f", struct.pack("f", op.attr(name)))[0]
