"""The cache of object code on disk.

A file's name is the hash of all that decides its contents; the file begins with a hash of the rest, so that a damaged
one is noticed and rebuilt. Files are written whole. `SARDONYX_CACHE_DIR` moves the folder, `SARDONYX_CACHE=0` turns the
cache off.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

FORMAT = b"sardonyx object 1\n"


@dataclass
class CacheStatistics:
    """What this process did."""

    compiled: int = 0
    loaded: int = 0
    written: int = 0
    damaged: int = 0


STATISTICS = CacheStatistics()


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
    where = folder()
    if where is None:
        return
    temporary = None
    try:
        where.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=where, suffix=".part", delete=False) as file:
            temporary = file.name
            file.write(FORMAT + hashlib.sha256(body).digest() + body)
        os.replace(temporary, where / f"{name}.o")
        STATISTICS.written += 1
    except OSError:
        if temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
