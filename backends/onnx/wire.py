"""Protobuf's encoding of long lists, made by NumPy: Python's API takes them element by element, which is slow.

https://protobuf.dev/programming-guides/encoding/: a field is its key and its contents, a list of numbers may be one
field with all of them behind one another (packed), and integers are in base 128, the lowest seven bits first.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

Array = np.ndarray[Any, Any]

FLOATS, INTS, STRINGS = 7, 8, 9
"""Numbers of AttributeProto's fields."""
LONG = 1024
"""Shorter lists go by Python's API."""


def key(number: int, size: int) -> bytes:
    """The key of a field of bytes and their count."""
    return varint(number << 3 | 2) + varint(size)


def varint(value: int) -> bytes:
    """A number that is not negative, in base 128."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def varints(values: Array) -> bytes:
    """Integers of 64 bits in base 128, one behind the other; negative ones take ten bytes."""
    rest = np.ascontiguousarray(values, np.int64).reshape(-1).view(np.uint64)
    sizes = np.ones(rest.size, np.int64)
    for digit in range(1, 10):
        larger = rest >> np.uint64(7 * digit) != 0
        if not larger.any():
            break
        sizes += larger
    ends = np.cumsum(sizes)
    out = np.empty(int(ends[-1]) if ends.size else 0, np.uint8)
    at = ends - sizes
    for digit in range(int(sizes.max(initial=0))):
        here = np.flatnonzero(sizes > digit) if digit else slice(None)
        more = (sizes[here] > digit + 1).astype(np.uint8) << 7
        out[at[here] + digit] = (rest[here] >> np.uint64(7 * digit)).astype(np.uint8) & 0x7F | more
    return out.tobytes()


def put_ints(proto: onnx.AttributeProto, values: Array) -> None:
    """Append integers to an attribute's `ints`."""
    if values.size < LONG:
        proto.ints.extend(values.reshape(-1).tolist())
    else:
        _merge(proto, INTS, varints(values))


def put_floats(proto: onnx.AttributeProto, values: Array) -> None:
    """Append float32 numbers to an attribute's `floats`."""
    if values.size < LONG:
        proto.floats.extend(values.reshape(-1).tolist())
    else:
        _merge(proto, FLOATS, np.ascontiguousarray(values, "<f4").tobytes())


def put_choices(proto: onnx.AttributeProto, choices: Sequence[bytes], which: Array) -> None:
    """Append to an attribute's `strings` those of `choices` with the numbers `which`."""
    numbers = which.reshape(-1).tolist()
    if len(numbers) < LONG:
        proto.strings.extend(map(choices.__getitem__, numbers))
    else:
        encoded = [key(STRINGS, len(text)) + text for text in choices]
        proto.MergeFromString(b"".join(map(encoded.__getitem__, numbers)))


def _merge(proto: onnx.AttributeProto, number: int, packed: bytes) -> None:
    proto.MergeFromString(key(number, len(packed)) + packed)
