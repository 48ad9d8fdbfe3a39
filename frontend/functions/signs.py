"""Functions that look at the signs and bits of floats: atan2, copysign, signbit, nextafter."""

from __future__ import annotations

import math

from sardonyx.dialects.dtypes import DType, int16, int32, int64
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend.apply import op
from sardonyx.frontend.functions.elementwise import (
    abs,
    atan,
    equal,
    greater,
    isinf,
    isnan,
    less,
    logical_and,
    logical_or,
    maximum,
    minimum,
    negative,
    reciprocal,
    where,
)
from sardonyx.frontend.operands import TensorLike, promoted, to_tensor
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor

_BITS: dict[int, DType] = {16: int16, 32: int32, 64: int64}


def signbit(x: TensorLike) -> Tensor:
    """Whether a float is negative, or the negative zero. That of a NaN is False, whatever its sign."""
    x = to_tensor(x)
    if not x.dtype.is_float:
        raise InvalidArgumentError(f"signbit() takes floats, not {x.dtype}", location=user_line())
    return logical_or(less(x, 0.0), logical_and(equal(x, 0.0), less(reciprocal(x), 0.0)))


def copysign(x1: TensorLike, x2: TensorLike) -> Tensor:
    """`abs(x1)` with the sign of `x2`."""
    a, b = promoted(x1, x2, floating=True)
    size = abs(a)
    return where(signbit(b), negative(size), size)


def atan2(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The angle of the point (x2, x1), in (-pi, pi]: zeros and infinities as C has them."""
    y, x = promoted(x1, x2, floating=True)
    dtype = y.dtype
    tall, wide = abs(y), abs(x)
    low, high = minimum(tall, wide), maximum(tall, wide)
    both = logical_and(isinf(low), isinf(high))
    one, zero = to_tensor(1.0, dtype), to_tensor(0.0, dtype)
    ratio = where(both, one, where(equal(high, 0.0), zero, low / where(equal(high, 0.0), one, high)))
    angle = atan(ratio)
    angle = where(greater(tall, wide), to_tensor(math.pi / 2, dtype) - angle, angle)
    angle = where(signbit(x), to_tensor(math.pi, dtype) - angle, angle)
    return where(isnan(high), high, copysign(angle, y))


def nextafter(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The next float after `x1` towards `x2`. ONNX states it from opset 26 on."""
    x, y = promoted(x1, x2, floating=True)
    whole = _BITS.get(x.dtype.bits)
    if whole is None:
        raise InvalidArgumentError(f"nextafter() has no form for {x.dtype}", location=user_line())
    bits = op("sx.bit_cast", x, to=whole.ir)
    away = equal(less(x, y), greater(x, 0.0))
    stepped = where(away, bits + 1, bits - 1)
    smallest = op("sx.bit_cast", to_tensor(1, whole), to=x.dtype.ir)
    moved = where(equal(x, 0.0), copysign(smallest, y), op("sx.bit_cast", stepped, to=x.dtype.ir))
    return where(logical_or(isnan(x), isnan(y)), x + y, where(equal(x, y), y, moved))
