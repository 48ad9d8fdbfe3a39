"""The cache of object code on disk.

A file's name is the hash of all that decides its contents; the file begins with a hash of the rest, so that a damaged
one is noticed and rebuilt. Files are written whole, and the oldest go when they take more than `SARDONYX_CACHE_BYTES`.
`SARDONYX_CACHE_DIR` moves the folder, `SARDONYX_CACHE=0` turns the cache off.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sardonyx.errors import InvalidArgumentError

FORMAT = b"sardonyx object 1\n"
SWEEP_EVERY = 1 << 26
"""After how many written bytes a process looks whether the cache has grown too large; also at its first file."""
_until_sweep = 0


@dataclass
class CacheStatistics:
    """What this process did."""

    compiled: int = 0
    loaded: int = 0
    written: int = 0
    damaged: int = 0


STATISTICS = CacheStatistics()


@contextlib.contextmanager
def uncounted() -> Iterator[None]:
    """Code that belongs to no graph does not count."""
    statistics = STATISTICS
    before = vars(statistics).copy()
    try:
        yield
    finally:
        vars(statistics).update(before)


def folder() -> Path | None:
    """Where objects are kept; None when the cache is off."""
    if os.environ.get("SARDONYX_CACHE", "1") == "0":
        return None
    given = os.environ.get("SARDONYX_CACHE_DIR")
    if given:
        return Path(given)
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "sardonyx"


def key(*parts: str) -> str:
    """The name of the object that follows from these parts."""
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(f"{len(part)}:".encode())
        hasher.update(part.encode())
    return hasher.hexdigest()


def load(name: str) -> bytes | None:
    """The object of that name, or None; a damaged file counts as absent."""
    where = folder()
    if where is None:
        return None
    try:
        content = (where / f"{name}.o").read_bytes()
    except OSError:
        return None
    head, digest, body = content[: len(FORMAT)], content[len(FORMAT) : len(FORMAT) + 32], content[len(FORMAT) + 32 :]
    if head != FORMAT or hashlib.sha256(body).digest() != digest:
        STATISTICS.damaged += 1
        return None
    STATISTICS.loaded += 1
    return body


def store(name: str, body: bytes) -> None:
    """Keep an object. A folder that cannot be written to costs time, never the run."""
    store_file(f"{name}.o", [FORMAT + hashlib.sha256(body).digest(), body])


def store_file(name: str, chunks: Sequence[Any]) -> None:
    """Write a file of these bytes whole, or not at all; then make room, if there are too many."""
    global _until_sweep
    where = folder()
    if where is None:
        return
    temporary = None
    try:
        where.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=where, suffix=".part", delete=False) as file:
            temporary = file.name
            for chunk in chunks:
                file.write(chunk)
        os.replace(temporary, where / name)
        STATISTICS.written += 1
    except OSError:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        return
    _until_sweep -= sum(len(c) for c in chunks)
    if _until_sweep < 0:
        _until_sweep = SWEEP_EVERY
        sweep(where, limit())


def limit() -> int:
    """How many bytes the cache may take: `SARDONYX_CACHE_BYTES`, else 4 GiB.

    Raises:
        InvalidArgumentError: The variable holds no number.
    """
    text = os.environ.get("SARDONYX_CACHE_BYTES", "").strip()
    if text and not text.isdigit():
        raise InvalidArgumentError(f"SARDONYX_CACHE_BYTES is '{text}', not a number of bytes")
    return int(text) if text else 1 << 32


def sweep(where: Path, most: int) -> None:
    """Remove the files that were written longest ago, until no more than `most` bytes are left."""
    found: list[tuple[float, int, Path]] = []
    for path in where.iterdir():
        if path.suffix in (".o", ".program"):
            with contextlib.suppress(OSError):  # another process may remove it
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= most:
            return
        total -= size
        with contextlib.suppress(OSError):
            path.unlink()
