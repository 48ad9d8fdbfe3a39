"""Arithmetic that NumPy lacks or leaves undefined: rounding once, casts, maximum with NaN, truncated division."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import ml_dtypes
import numpy as np

from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.evaluate import Array
from sardonyx.dialects.sx import strings
from sardonyx.errors import ExecutionError


def given(arrays: Iterable[Array | None]) -> list[Array]:
    """The operands that are present."""
    return [np.asarray(a) for a in arrays if a is not None]


def broadcast(op: SxOp, arrays: Iterable[Array | None], constraint: str) -> list[Array]:
    """The operands that are present, once it is certain that their shapes broadcast.

    Raises:
        ExecutionError: They do not (extents that were not known before the run).
    """
    operands = given(arrays)
    try:
        np.broadcast_shapes(*(a.shape for a in operands))
    except ValueError:
        shown = " and ".join(str(list(a.shape)) for a in operands)
        raise ExecutionError(f"{constraint} shapes {shown} do not broadcast", op=op.name) from None
    return operands


def is_float(array: Array) -> bool:
    """Whether the elements are floats (NumPy counts most dtypes of `ml_dtypes` among the raw bytes)."""
    return array.dtype.kind == "f" or (array.dtype.kind == "V" and DType.of(array.dtype).is_float)


def wide(array: Array) -> Array:
    """Floats of 16 bits and fewer as float32, others as they are: one operation of +, -, *, / or sqrt in float32 rounds
    right."""
    return array.astype(np.float32) if is_float(array) and array.dtype.itemsize <= 2 else array


def double(array: Array) -> Array:
    """The elements as float64."""
    return array.astype(np.float64)


def narrow(array: Array, dtype: np.dtype[Any] | DType) -> Array:
    """Floats rounded once, to nearest even, to another float dtype; what is too large becomes infinite."""
    array, target = np.asarray(array), dtype.numpy if isinstance(dtype, DType) else dtype
    if array.dtype == np.float64 and target.itemsize <= 2 and target != np.float16:
        # ml_dtypes goes through float32 and would round twice; an intermediate that is rounded to odd does not.
        return _to_odd_float32(array).astype(target)
    return array.astype(target)


def _to_odd_float32(array: Array) -> Array:
    """float64 as float32, inexact values rounded to the neighbour whose last bit is 1."""
    nearest = np.asarray(array.astype(np.float32))
    back = nearest.astype(np.float64)
    truncated = np.where(np.abs(back) > np.abs(array), np.nextafter(nearest, np.float32(0)), nearest)
    inexact = (back != array) & ~np.isnan(array)
    return (np.asarray(truncated).view(np.uint32) | inexact.astype(np.uint32)).view(np.float32)


def convert(array: Array, dtype: DType, saturating: bool = True, round_mode: str = "up") -> Array:
    """The elements as another dtype, every case defined.

    Floats to integers truncate, saturate when out of range, and NaN becomes 0; integers to narrower ones wrap; to bool
    is `!= 0` (NaN is true); to floats rounds once to nearest even. Floats to integers of fewer than 8 bits wrap, too
    (infinities are 0), as ONNX's tests want it. To floats of 8 bits and fewer see `to_small_float`; strings see
    `strings`.
    """
    array, target = np.asarray(array), dtype.numpy
    if array.dtype == target:
        return array
    if dtype.kind == "s":
        return strings.from_numbers(array)
    if strings.is_string(array):
        return strings.to_numbers(array, dtype)
    if array.dtype.kind == "V" and not is_float(array):  # integers of fewer than 8 bits
        array = array.astype(np.int8)
        if array.dtype == target:
            return array
    if dtype.kind == "b":
        return wide(array) != 0
    if dtype.is_integer and dtype.bits < 8:
        return _low_bits(array, dtype)
    if dtype.is_integer and is_float(array):
        return saturate(double(array), target)
    if dtype.is_float and dtype.bits <= 8:
        exact = double(array) if is_float(array) or array.dtype.kind == "b" else _integers_as_double(array)
        return to_small_float(exact, dtype, saturating, round_mode)
    if dtype.is_float and is_float(array):
        return narrow(wide(array), target)
    if dtype.name == "bfloat16":
        return narrow(_integers_as_double(array), target)
    return array.astype(target)


def _low_bits(array: Array, dtype: DType) -> Array:
    """Integers, or floats truncated, modulo the width of an integer dtype of fewer than 8 bits."""
    if is_float(array):
        exact = double(array)
        array = np.fmod(np.trunc(np.where(np.isfinite(exact), exact, 0.0)), 1 << dtype.bits).astype(np.int8)
    mask = np.uint8((1 << dtype.bits) - 1)
    return (np.asarray(array.astype(np.uint8)) & mask).view(dtype.numpy)


def to_small_float(array: Array, dtype: DType, saturating: bool = True, round_mode: str = "up") -> Array:
    """float64 as floats of 8 bits or fewer, by ONNX's tables (Cast).

    Rounds once, to nearest even. What is too large becomes, where `saturating`, the largest number, infinities too;
    else infinity, or NaN where the dtype has none; NaN stays NaN. Dtypes that have neither (float4, float6) always
    saturate, and NaN becomes -0. For float8e8m0 see `_to_power_of_two`.
    """
    if dtype.name == "float8e8m0":
        return _to_power_of_two(array, dtype, saturating, round_mode)
    array = np.asarray(array)
    if dtype.bits < 8:  # ml_dtypes makes +0 of a NaN that bears a sign
        array = np.where(np.isnan(array), np.nan, array)
    rounded = np.asarray(narrow(array, dtype))
    if dtype.bits < 8 or not saturating:
        return rounded
    over = ~np.isfinite(rounded.astype(np.float32)) & ~np.isnan(array)
    limit = np.float32(ml_dtypes.finfo(dtype.numpy).max)
    return np.where(over, np.copysign(limit, array).astype(dtype.numpy), rounded)


def _to_power_of_two(array: Array, dtype: DType, saturating: bool, round_mode: str) -> Array:
    """float64 as float8e8m0, which has the powers of two from 2^-127 to 2^127, and NaN.

    `round_mode` is 'up' (away from zero), 'down' or 'nearest' (ties go up). What lies beyond the range, 0 and infinity
    too, becomes the nearest limit where `saturating`, else NaN. NaN stays NaN, and so becomes what is negative.
    """
    mantissa, exponent = np.frexp(array)
    above = {"up": mantissa > 0.5, "nearest": mantissa >= 0.75, "down": np.zeros(np.shape(array), bool)}[round_mode]
    code = np.clip(exponent.astype(np.int64) - 1 + 127 + above, 0, 254)
    low, high = array < 2.0**-127, array > 2.0**127
    nothing = np.isnan(array) | (array < 0) | (False if saturating else low | high)
    code = np.where(nothing, 255, np.where(low, 0, np.where(high, 254, code)))
    return np.asarray(code).astype(np.uint8).view(dtype.numpy)


def saturate(array: Array, target: np.dtype[Any]) -> Array:
    """float64 truncated to an integer dtype; beyond its range the nearest limit, NaN 0."""
    limits = np.iinfo(target)
    truncated = np.trunc(array)
    below, above = truncated <= float(limits.min), truncated >= float(limits.max)
    inside = np.where(below | above | np.isnan(truncated), 0.0, truncated).astype(target)
    return np.where(below, target.type(limits.min), np.where(above, target.type(limits.max), inside))


def _integers_as_double(array: Array) -> Array:
    """Integers as float64; what does not fit in 53 bits keeps a sticky bit, so that a later rounding is right."""
    if array.dtype.itemsize < 8:
        return array.astype(np.float64)
    low = array & array.dtype.type(0x7FF)
    sticky = (array - low) | np.where(low != 0, array.dtype.type(0x800), array.dtype.type(0))
    small = np.abs(array.astype(np.float64)) < 2.0**52
    return np.where(small, array, sticky).astype(np.float64)


def maximum(a: Array, b: Array) -> Array:
    """The greater element; NaN where either is NaN, +0 where they are zeros of both signs."""
    greater = np.maximum(a, b)
    return np.where((a == 0) & (b == 0), a + b, greater) if is_float(a) else greater


def minimum(a: Array, b: Array) -> Array:
    """The smaller element; NaN where either is NaN, -0 where they are zeros of both signs."""
    smaller = np.minimum(a, b)
    return np.where((a == 0) & (b == 0), -(-a - b), smaller) if is_float(a) else smaller


def truncated_quotient(a: Array, b: Array) -> Array:
    """Integer division towards zero; 0 where the divisor is 0; the least integer divided by -1 is itself."""
    divisor = np.where(b == 0, b.dtype.type(1), b)
    floor = np.floor_divide(a, divisor)
    if a.dtype.kind == "u":
        return np.where(b == 0, a.dtype.type(0), floor)
    inexact = (a - floor * divisor) != 0
    quotient = floor + (inexact & ((a < 0) != (divisor < 0))).astype(a.dtype)
    return np.where(b == 0, a.dtype.type(0), quotient)


def sigmoid(x: Array) -> Array:
    """`1 / (1 + exp(-x))` without overflow."""
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, np.where(np.isnan(x), x, small)) / (1.0 + small)


def softplus(x: Array) -> Array:
    """`log(1 + exp(x))` without overflow."""
    return np.logaddexp(0.0, x)
