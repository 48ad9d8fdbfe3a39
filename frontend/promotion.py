"""Which dtype a mixture of tensors and Python numbers has: the array API's table, with weak Python scalars.

A Python `bool`, `int` or `float` takes the dtype of the tensors beside it; it changes only their kind: a float beside
integers gives the default float dtype, an integer beside bools the default integer dtype. `np.float64` is a Python
float (it is a subclass), so that `x * np.sqrt(2.0)` doesn't widen a model; other NumPy scalars are arrays. Beyond the
array API's table, integers with floats give the float's dtype, and bool with anything gives the other. Floats of 8 bits
and fewer are for storage: they mix with nothing but bool and Python scalars.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence

from sardonyx.dialects.dtypes import (
    DTYPES,
    FLOATS,
    INTEGERS,
    SMALL_FLOATS,
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    int4,
    int8,
    int16,
    int32,
    int64,
    uint2,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
)
from sardonyx.errors import InvalidArgumentError

DEFAULT_FLOAT = float32
DEFAULT_INT = int64

_SIGNED_FOR = {uint2: int4, uint4: int8, uint8: int16, uint16: int32, uint32: int64}
"""The signed dtype that holds an unsigned one and any signed one that is no wider."""


def default_dtype(kind: type) -> DType:
    """The dtype of a Python scalar's type where no tensor decides."""
    if issubclass(kind, bool):
        return bool_
    return DEFAULT_INT if issubclass(kind, int) else DEFAULT_FLOAT


def promote(a: DType, b: DType) -> DType:
    """The dtype of two tensors' common values.

    Raises:
        InvalidArgumentError: uint64 meets a signed dtype, and no dtype holds both; or a float of 8 bits or fewer meets
            another dtype.
    """
    if a == b or b.kind == "b":
        return a
    if a.kind == "b":
        return b
    if a in SMALL_FLOATS or b in SMALL_FLOATS:
        raise InvalidArgumentError(f"{a} and {b} don't mix; cast one of them (astype)")
    if a.is_float or b.is_float:
        return _promote_floats(a, b)
    if a.kind == b.kind:
        return a if a.bits >= b.bits else b
    signed, unsigned = (a, b) if a.kind == "i" else (b, a)
    if unsigned == uint64:
        raise InvalidArgumentError(f"no integer dtype holds both {a} and {b}; cast one of them (astype)")
    wide = _SIGNED_FOR[unsigned]
    return signed if signed.bits >= wide.bits else wide


def _promote_floats(a: DType, b: DType) -> DType:
    if not a.is_float:
        return b
    if not b.is_float:
        return a
    if {a, b} == {float16, bfloat16}:
        return float32
    return a if a.bits >= b.bits else b


def promote_all(dtypes: Iterable[DType]) -> DType:
    """The dtype of one or more tensors' common values."""
    found = list(dtypes)
    if not found:
        raise InvalidArgumentError("there is nothing to promote: give one or more dtypes or tensors")
    # Floats first, so that an integer beside them doesn't have to go with another integer.
    found.sort(key=lambda d: not d.is_float)
    result = found[0]
    for dtype in found[1:]:
        result = promote(result, dtype)
    return result


def with_scalars(dtypes: Sequence[DType], scalars: Iterable[type]) -> DType:
    """The dtype of tensors of these dtypes beside Python scalars of these types.

    Without tensors the scalars decide: the default dtype of the widest kind.
    """
    kinds = list(scalars)
    if not dtypes:
        return promote_all(default_dtype(kind) for kind in kinds)
    result = promote_all(dtypes)
    for kind in kinds:
        if issubclass(kind, bool):
            continue
        if issubclass(kind, int):
            result = DEFAULT_INT if result.kind == "b" else result
        elif not result.is_float:
            result = DEFAULT_FLOAT
    return result


def check_scalar(value: bool | int | float, dtype: DType) -> None:
    """Refuse a Python integer that the dtype of the tensor beside it cannot hold.

    Raises:
        InvalidArgumentError: It cannot.
    """
    if isinstance(value, float) or not dtype.is_integer:
        return
    low, high = integer_range(dtype)
    if not low <= value <= high:
        raise InvalidArgumentError(f"the integer {value} does not fit {dtype}: its values are {low} to {high}")


def integer_range(dtype: DType) -> tuple[int, int]:
    """The least and the greatest value of an integer dtype."""
    if dtype.kind == "u":
        return 0, (1 << dtype.bits) - 1
    return -(1 << (dtype.bits - 1)), (1 << (dtype.bits - 1)) - 1


def scalar_key(value: bool | int | float) -> tuple[type, object]:
    """What tells Python scalars apart: their type, and the bits of a float (0.0 == -0.0, and a NaN equals nothing)."""
    if isinstance(value, float):
        return float, struct.pack("<d", value)
    return type(value), value


def can_cast(source: DType, target: DType) -> bool:
    """Whether promotion turns the one dtype into the other."""
    try:
        return promote(source, target) == target
    except InvalidArgumentError:
        return False


def is_of_kind(dtype: DType, kind: object) -> bool:
    """Whether a dtype is, or is of a kind: a dtype, a name of the array API's, or a tuple of such.

    Raises:
        InvalidArgumentError: There is no such kind.
    """
    if isinstance(kind, tuple):
        return any(is_of_kind(dtype, k) for k in kind)
    if isinstance(kind, str) and kind in _KINDS:
        return dtype in _KINDS[kind]
    if isinstance(kind, str) and kind not in DTYPES:
        raise InvalidArgumentError(f"'{kind}' is no kind of dtype", hint=f"known: {', '.join(_KINDS)}")
    return dtype == DType.of(kind)


_KINDS: dict[str, tuple[DType, ...]] = {
    "bool": (bool_,),
    "signed integer": (int8, int16, int32, int64),
    "unsigned integer": (uint8, uint16, uint32, uint64),
    "integral": INTEGERS,
    "real floating": FLOATS,
    "complex floating": (),
    "numeric": (*INTEGERS, *FLOATS),
}
