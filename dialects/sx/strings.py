"""Strings: arrays of Python's str, their elements as numbers and numbers as strings (ONNX's Cast)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.evaluate import Array
from sardonyx.errors import ExecutionError


def is_string(array: Array) -> bool:
    return array.dtype.kind == "O"


def string_array(texts: Any, shape: tuple[int, ...]) -> Array:
    """An array of these texts, in row-major order."""
    flat = np.empty(len(texts), object)
    flat[:] = texts
    return flat.reshape(shape)


def to_numbers(array: Array, dtype: DType) -> Array:
    """The numbers that strings state, plain or in scientific form; infinities and NaN in any case.

    A string that stands for an integer may be written as a float, which is truncated; one for a bool is a number
    (not 0 is true) or `true` or `false`.

    Raises:
        ExecutionError: A string is no number, or too large for an integer.
    """
    out: list[Any] = []
    for text in array.reshape(-1):
        try:
            out.append(_number(text.strip(), dtype))
        except (ValueError, OverflowError):
            raise ExecutionError(f"the string {text!r} is no {dtype}") from None
    try:
        with np.errstate(all="ignore"):
            wide = np.array(out, np.float64 if dtype.is_float else None if out else np.int64)
            return wide.astype(dtype.numpy, copy=False).reshape(array.shape)
    except OverflowError:
        raise ExecutionError(f"a string states a number that is too large for {dtype}") from None


def _number(text: str, dtype: DType) -> float | int | bool:
    if dtype.is_float:
        return float(text)
    if dtype.kind == "b" and text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        whole = int(text)
    except ValueError:
        whole = int(float(text))
    if dtype.kind == "b":
        return whole != 0
    low = -(1 << (dtype.bits - 1)) if dtype.kind == "i" else 0
    high = (1 << (dtype.bits - (dtype.kind == "i"))) - 1
    if not low <= whole <= high:
        raise OverflowError
    return whole


def from_numbers(array: Array) -> Array:
    """Numbers as strings: integers plain, floats with as many digits as tell them from their neighbours."""
    return string_array([_text(v) for v in array.reshape(-1)], array.shape)


def _text(value: Any) -> str:
    if isinstance(value, np.bool_ | np.integer):
        return str(value)
    number = float(value)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "INF" if number > 0 else "-INF"
    return str(value)
