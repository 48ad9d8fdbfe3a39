"""Panels of columns: how the contraction's tiles read B in one sweep (see `packed` of `kernel.contract`)."""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

CACHE_LINE = 64
HUGE = 2 << 20


def aligned_empty(shape: tuple[int, ...], dtype: Any) -> Array:
    """Memory that begins at a cache line, so that no vector load of a panel touches two; large blocks ask for huge
    pages."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if size >= HUGE:
        block = mmap.mmap(-1, size + HUGE)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            block.madvise(mmap.MADV_HUGEPAGE)
        raw, step = np.frombuffer(block, np.uint8), HUGE
    else:
        raw, step = np.empty(size + CACHE_LINE, np.uint8), CACHE_LINE
    start = -raw.ctypes.data % step
    return raw[start : start + size].view(dtype).reshape(shape)


def pack_columns(array: Array, width: int) -> Array:
    """A matrix [k, n] as panels [ceil(n / width), k, width], the last one filled up with zeros."""
    k, n = array.shape
    panels = -(-n // width)
    packed = aligned_empty((panels, k, width), array.dtype)
    whole = n // width
    packed[:whole] = array[:, : whole * width].reshape(k, whole, width).swapaxes(0, 1)
    if whole < panels:
        packed[whole, :, n - whole * width :] = 0
        packed[whole, :, : n - whole * width] = array[:, whole * width :]
    return packed
