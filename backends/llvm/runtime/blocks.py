"""Memory of large results: blocks that come back when the last array on them is gone.

Fresh pages cost more than most kernels (2.9 GB/s to touch 4 KiB pages for the first time), so a result of `LARGE` bytes
or more lies in a block of ours. An array's `base` keeps its block alive, and so does every view and DLPack capsule;
when the last is gone the block joins the free ones, of which at most `KEPT` bytes stay (or one larger block).
No lock: each step is one operation that Python's own lock makes atomic, since a block may come back at any time.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from sardonyx.backends.llvm.codegen.arena import ALIGNMENT, HUGE

LARGE = 1 << 18
KEPT = 1 << 28
_MADV_HUGEPAGE = 14

_libc = ctypes.CDLL(None)
free_memory: Callable[[int], None] = _libc.free
_libc.free.argtypes, _libc.free.restype = [ctypes.c_void_p], None
_libc.aligned_alloc.argtypes, _libc.aligned_alloc.restype = [ctypes.c_size_t, ctypes.c_size_t], ctypes.c_void_p
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]

_free: dict[int, list[int]] = {}
"""Addresses of free blocks, by capacity."""


def capacity_for(size: int) -> int:
    """The size of the block for a result: few different ones, at most an eighth larger."""
    step = max(4096, 1 << max(0, size.bit_length() - 4))
    return -(-size // step) * step


class Block:
    """Memory of a result. NumPy reads `__array_interface__` and keeps the block as the array's base."""

    __slots__ = ("__array_interface__", "address", "capacity")

    def __init__(self, address: int, capacity: int, shape: tuple[int, ...], typestr: str) -> None:
        self.address = address
        self.capacity = capacity
        self.__array_interface__ = {"data": (address, False), "shape": shape, "typestr": typestr, "version": 3}

    def __del__(self) -> None:
        _give_back(self.address, self.capacity)


def _give_back(address: int, capacity: int) -> None:
    if capacity == 0 or sys.is_finalizing():
        free_memory(address)
        return
    _free.setdefault(capacity, []).append(address)
    if sum(size * len(found) for size, found in list(_free.items())) > KEPT:
        _shrink(capacity)


def _shrink(newest: int) -> None:
    """Return blocks to the system until no more than `KEPT` bytes are free, the newest capacity last."""
    for size in [*sorted((s for s in list(_free) if s != newest), reverse=True), newest]:
        found = _free.get(size, [])
        least = 1 if size == newest else 0
        while len(found) > least and sum(s * len(f) for s, f in list(_free.items())) > KEPT:
            try:
                free_memory(found.pop(0))
            except IndexError:  # another thread took it
                break


def take(shape: tuple[int, ...], dtype: np.dtype[Any], size: int) -> np.ndarray[Any, Any]:
    """A new array of `size` bytes on a block.

    Raises:
        MemoryError: There is none.
    """
    capacity = capacity_for(size)
    try:
        address = _free[capacity].pop()
    except (KeyError, IndexError):
        address = _allocate(capacity)
    return adopt(address, capacity, shape, dtype)


def adopt(address: int, capacity: int, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array on memory of the C library's allocator; with a capacity of 0 it is freed at the end, not kept."""
    if dtype.isbuiltin == 1:
        return np.asarray(Block(address, capacity, shape, dtype.str))
    count = dtype.itemsize
    for extent in shape:
        count *= extent
    return np.asarray(Block(address, capacity, (count,), "|u1")).view(dtype).reshape(shape)


def _allocate(capacity: int) -> int:
    large = capacity >= HUGE
    alignment = HUGE if large else ALIGNMENT
    rounded = -(-capacity // alignment) * alignment
    address = _libc.aligned_alloc(alignment, rounded)
    if not address:
        raise MemoryError(f"no {rounded} bytes for a result")
    if large and sys.platform == "linux":
        _libc.madvise(address, rounded, _MADV_HUGEPAGE)
    return address


def kept_bytes() -> int:
    """How many bytes of free blocks wait for the next result."""
    return sum(size * len(found) for size, found in list(_free.items()))


def release_blocks() -> None:
    """Return all free blocks to the system."""
    for found in list(_free.values()):
        while found:
            free_memory(found.pop())
