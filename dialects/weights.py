"""Weights: arrays that the IR names by key.

A `Weight` is read-only and may be a memory map of a file, which is opened when its bytes are first needed. A
`WeightStore` holds a graph's weights, deduplicated by content. A captured array is a snapshot: the store copies what
the caller could still write to.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sardonyx.dialects.dtypes import DType
from sardonyx.errors import InvalidArgumentError, MissingWeightError

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class FileSlice:
    """Where a weight's bytes lie: `length` bytes from `offset` of a file; `packed` where elements share bytes."""

    path: Path
    offset: int
    length: int
    packed: bool = False

    def mapped(self) -> np.ndarray[Any, Any]:
        """The bytes, mapped (uint8); raises OSError or ValueError where they are not there."""
        import numpy as np

        if not self.length:
            return np.empty(0, np.uint8)
        return np.memmap(self.path, np.uint8, "r", self.offset, (self.length,))


@dataclass(eq=False)
class Weight:
    """One array: its key, dtype, shape, and the bytes in memory or in a file."""

    key: str
    dtype: DType
    shape: tuple[int, ...]
    content: np.ndarray[Any, Any] | FileSlice
    _mapped: np.ndarray[Any, Any] | None = field(default=None, repr=False)
    _digest: str | None = field(default=None, repr=False)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The bytes that the contents take in memory."""
        return self.size * self.dtype.itemsize

    def stored(self) -> np.ndarray[Any, Any]:
        """The bytes of a weight in a file, as the file has them, mapped.

        Raises:
            MissingWeightError: The file is gone or too short.
        """
        where = self.content
        if not isinstance(where, FileSlice):
            raise InvalidArgumentError(f"weight '{self.key}' is in no file")
        try:
            return where.mapped()
        except (OSError, ValueError) as error:
            raise MissingWeightError(f"weight '{self.key}' cannot be read from {where.path}: {error}") from error

    def array(self) -> np.ndarray[Any, Any]:
        """The contents, read-only; a weight in a file is mapped, not read, unless its elements share bytes.

        Raises:
            MissingWeightError: The file is gone or too short.
        """
        if not isinstance(self.content, FileSlice):
            return self.content
        if self._mapped is None:
            flat = self.stored()
            if self.content.packed:
                from sardonyx.dialects.packing import unpack

                flat = unpack(flat, self.dtype, self.size)
                flat.flags.writeable = False
            else:
                flat = flat.view(self.dtype.numpy)
            self._mapped = flat.reshape(self.shape)
        return self._mapped

    def digest(self) -> str:
        """A hash of dtype, shape and contents; what is in memory is read once for it, a file each time.

        Raises:
            MissingWeightError: The file is gone or too short.
        """
        if self._digest is not None:
            return self._digest
        found = _digest(self.array(), self.dtype)
        if not isinstance(self.content, FileSlice):
            self._digest = found
        return found

    def __getstate__(self) -> dict[str, Any]:
        stated = {"key": self.key, "dtype": self.dtype, "shape": self.shape, "content": self.content}
        return {**stated, "_mapped": None, "_digest": self._digest}


class WeightStore:
    """Key → `Weight`; arrays with the same bytes, dtype and shape share one."""

    def __init__(self) -> None:
        self._weights: dict[str, Weight] = {}
        self._by_content: dict[str, str] = {}

    def add(self, array: np.ndarray[Any, Any], name: str = "w", *, distinct: bool = False) -> Weight:
        """Store an array under a key made of `name`; a writable array is copied. A `distinct` one has a key of its own,
        whatever it holds, and is not read."""
        import numpy as np

        dtype = DType.of(array.dtype)
        if array.dtype != dtype.numpy:
            array = array.astype(dtype.numpy)
        contiguous = np.ascontiguousarray(array).reshape(array.shape)
        digest = None if distinct else _digest(contiguous, dtype)
        known = None if digest is None else self._by_content.get(digest)
        if known is not None:
            return self._weights[known]
        base: Any = contiguous
        while base is not None and isinstance(base, np.ndarray) and not base.flags.writeable:
            base = base.base
        if isinstance(base, np.ndarray):  # somebody could still write to the bytes
            contiguous = contiguous.copy()
            contiguous.flags.writeable = False
        weight = Weight(self._free_key(name), dtype, tuple(array.shape), contiguous)
        if digest is not None:
            weight._digest = digest
            self._by_content[digest] = weight.key
        return self.insert(weight)

    def add_file(self, where: FileSlice, dtype: DType, shape: tuple[int, ...], name: str = "w") -> Weight:
        """Name bytes of a file; they are mapped when they are needed."""
        weight = Weight(self._free_key(name), dtype, shape, where)
        needed = dtype.stored_size(weight.size) if where.packed else weight.nbytes
        if needed != where.length:
            raise InvalidArgumentError(
                f"weight '{name}' has {where.length} bytes, but {dtype}{list(shape)} takes {needed}"
            )
        return self.insert(weight)

    def insert(self, weight: Weight) -> Weight:
        self._weights[weight.key] = weight
        return weight

    def _free_key(self, name: str) -> str:
        key, number = name, 1
        while key in self._weights:
            key, number = f"{name}_{number}", number + 1
        return key

    def get(self, key: str) -> Weight | None:
        return self._weights.get(key)

    def __getitem__(self, key: str) -> Weight:
        weight = self._weights.get(key)
        if weight is None:
            raise MissingWeightError(f"the store holds no weight '{key}'", hint="give the weights' file (--weights)")
        return weight

    def __contains__(self, key: object) -> bool:
        return key in self._weights

    def __iter__(self) -> Iterator[Weight]:
        return iter(self._weights.values())

    def __len__(self) -> int:
        return len(self._weights)


def _digest(array: np.ndarray[Any, Any], dtype: DType) -> str:
    import numpy as np

    hasher = hashlib.sha256()  # processors have instructions for it
    hasher.update(f"{dtype.name}{array.shape}".encode())
    hasher.update(np.ascontiguousarray(array).reshape(-1).view("u1").data if array.size else b"")
    return hasher.hexdigest()
