"""Sequences and optionals on their way into native code and out of it: tables of records (`lowering/containers.py`)."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.backends.llvm.interface import RECORD_HEAD, Port
from sardonyx.backends.llvm.runtime.blocks import adopt, free_memory
from sardonyx.errors import InvalidArgumentError

Array = np.ndarray[Any, Any]


class Packed:
    """A sequence or an optional as native code takes it: the addresses of its table, and of its count and presence."""

    def __init__(self, port: Port, value: Any) -> None:
        elements = _elements(port, value)
        words = port.record_words
        self._arrays = [_as_array(port, k, element) for k, element in enumerate(elements)]
        self._table = (ctypes.c_int64 * max(1, words * len(elements)))()
        for k, array in enumerate(self._arrays):
            head = (array.__array_interface__["data"][0], array.nbytes, array.ndim)
            self._table[k * words : k * words + RECORD_HEAD + array.ndim] = [*head, *array.shape]
        self._dims = (ctypes.c_int64 * 2)(len(elements), int(value is not None))

    @property
    def table(self) -> int:
        return ctypes.addressof(self._table)

    @property
    def dims(self) -> int:
        return ctypes.addressof(self._dims)


def _elements(port: Port, value: Any) -> list[Any]:
    if value is None and port.kind != "sequence":
        return []
    if port.kind == "optional":
        return [value]
    if not isinstance(value, list | tuple):
        raise InvalidArgumentError(f"input '{port.name}' is a list of arrays, not {type(value).__name__}")
    return list(value)


def _as_array(port: Port, number: int, value: Any) -> Array:
    array = np.asarray(getattr(value, "_array", value))
    what = f"input '{port.name}'" + (f", element {number}," if port.kind != "optional" else "")
    if array.dtype != port.dtype.numpy:
        raise InvalidArgumentError(f"{what} has dtype {array.dtype}, expected {port.dtype}")
    most = port.record_words - RECORD_HEAD
    if array.ndim > most:
        raise InvalidArgumentError(f"{what} has rank {array.ndim}; native code takes at most {most} in this graph")
    return np.ascontiguousarray(array).reshape(array.shape)


def unpack(port: Port, address: int, dims: Sequence[int], failed: bool) -> Any:
    """What native code made: a list of arrays, an array, or None. The table is freed; after a failure all is."""
    count, present = dims[0], dims[1]
    words = port.record_words
    table = (ctypes.c_int64 * max(1, words * count)).from_address(address)
    arrays: list[Array] = []
    for at in range(0, words * count, words):
        block, rank = table[at], table[at + 2]
        if failed:
            free_memory(block)
        else:
            arrays.append(adopt(block, 0, tuple(table[at + RECORD_HEAD : at + RECORD_HEAD + rank]), port.dtype.numpy))
    free_memory(address)
    if failed or not present:
        return None
    return arrays[0] if port.kind == "optional" else arrays
