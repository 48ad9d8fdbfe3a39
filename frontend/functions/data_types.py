"""Functions on dtypes, as the array API has them, and the dtype `bool` under its plain name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes

from sardonyx.dialects.dtypes import DType, bool_
from sardonyx.errors import InvalidArgumentError
from sardonyx.frontend import promotion
from sardonyx.frontend.tensor import Tensor

bool = bool_


def _dtype(value: Any) -> DType:
    return value.dtype if isinstance(value, Tensor) else DType.of(value)


def can_cast(from_: Any, to: Any, /) -> object:
    """Whether promotion turns a dtype, or a tensor's, into another."""
    return promotion.can_cast(_dtype(from_), DType.of(to))


def isdtype(dtype: Any, kind: Any) -> object:
    """Whether a dtype is, or is of a kind: a dtype, one of the array API's kinds, or a tuple of such."""
    return promotion.is_of_kind(DType.of(dtype), kind)


def dtype_of_to(given: Sequence[object], dtype: object = None, device: object = None) -> DType | None:
    """The dtype among the arguments of a `to()`; None where only a device is named.

    Args:
        given: In any order: a dtype or its name, a tensor (whose dtype is meant), the device "cpu".
        dtype: The dtype by its keyword.
        device: The device by its keyword.

    Raises:
        InvalidArgumentError: Nothing or too much is given, or there is no such dtype or device.
    """
    dtypes: list[DType] = [] if dtype is None else [DType.of(dtype)]
    devices: list[object] = [] if device is None else [device]
    for value in given:
        if isinstance(value, str) and (value == "cpu" or value.partition(":")[0] in _DEVICES):
            devices.append(value)
        else:
            dtypes.append(_dtype(value))
    if len(dtypes) > 1 or len(devices) > 1 or not (dtypes or devices):
        raise InvalidArgumentError("to() takes a dtype, a tensor, the device 'cpu', or a dtype and the device")
    if devices and devices[0] != "cpu":
        raise InvalidArgumentError(f"to(): there is no device {devices[0]!r}", hint="the only one is 'cpu'")
    return dtypes[0] if dtypes else None


_DEVICES = frozenset({"gpu", "cuda", "mps", "xpu", "xla", "hip", "rocm", "tpu", "npu", "vulkan", "metal"})
"""Devices by their names elsewhere, so that a refusal speaks of devices and not of dtypes."""


@dataclass(frozen=True)
class FloatInfo:
    """The limits of a float dtype."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True)
class IntegerInfo:
    """The limits of an integer dtype."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: Any, /) -> FloatInfo:
    """The limits of a float dtype, or of a tensor's."""
    dtype = _dtype(type)
    if not dtype.is_float:
        raise InvalidArgumentError(f"finfo() takes a float dtype, not {dtype}")
    found = ml_dtypes.finfo(dtype.numpy)
    return FloatInfo(
        dtype.bits, float(found.eps), float(found.max), float(found.min), float(found.smallest_normal), dtype
    )


def iinfo(type: Any, /) -> IntegerInfo:
    """The limits of an integer dtype, or of a tensor's."""
    dtype = _dtype(type)
    if not dtype.is_integer:
        raise InvalidArgumentError(f"iinfo() takes an integer dtype, not {dtype}")
    low, high = promotion.integer_range(dtype)
    return IntegerInfo(dtype.bits, high, low, dtype)
