"""Elements of less than a byte as files hold them: several in a byte, the first in its lowest bits.

ONNX's layout (onnx.proto, `raw_data`): one stream of bits, of which each element takes the next lowest ones. In memory
an element has a byte of its own, of which `ml_dtypes` leaves the upper bits 0.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np

from sardonyx.dialects.dtypes import DType

Array: TypeAlias = "np.ndarray[Any, Any]"


def pack(array: Array, dtype: DType) -> Array:
    """The elements' bits, one after the other, as bytes (flat uint8); the last byte is filled up with zeros."""
    count, bits = array.size, dtype.bits
    elements, width = _group(bits)
    groups = -(-count // elements)
    padded = np.zeros((groups, elements), np.uint8)
    padded.reshape(-1)[:count] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    padded &= np.uint8((1 << bits) - 1)
    out = np.zeros((groups, width), np.uint8)
    for byte in range(width):
        for element in range(elements):
            shift = bits * element - 8 * byte
            if -bits < shift < 8:
                out[:, byte] |= _shifted(padded[:, element], shift)
    return out.reshape(-1)[: dtype.stored_size(count)]


def unpack(data: Array, dtype: DType, count: int) -> Array:
    """The first `count` elements of packed bytes, one element in a byte (flat, of the dtype)."""
    bits = dtype.bits
    elements, width = _group(bits)
    groups = -(-count // elements)
    padded = np.zeros((groups, width), np.uint8)
    stored = dtype.stored_size(count)
    padded.reshape(-1)[:stored] = data[:stored]
    out = np.zeros((groups, elements), np.uint8)
    for element in range(elements):
        for byte in range(width):
            shift = bits * element - 8 * byte
            if -bits < shift < 8:
                out[:, element] |= _shifted(padded[:, byte], -shift)
    out &= np.uint8((1 << bits) - 1)
    return out.reshape(-1)[:count].view(dtype.numpy)


def _group(bits: int) -> tuple[int, int]:
    """How many elements fill how many bytes."""
    elements = 8 // math.gcd(8, bits)
    return elements, bits * elements // 8


def _shifted(values: Array, left: int) -> Array:
    """Bytes shifted; bits that leave a byte are gone."""
    return np.left_shift(values, np.uint8(left)) if left >= 0 else np.right_shift(values, np.uint8(-left))
