"""Files that are written whole: under a temporary name first, then renamed; or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from sardonyx.errors import InvalidArgumentError


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file: complete, or not at all.

    Raises:
        InvalidArgumentError: It cannot be written.
    """
    write_files([(Path(path), lambda file: file.write(content))])


def write_files(files: Sequence[tuple[Path, Callable[[BinaryIO], object]]]) -> None:
    """Write files that belong together: all of them complete, or none.

    Each is written under a temporary name beside its place and renamed when all are written. Links are followed, an
    existing file keeps its permissions, and what is no regular file (a pipe, /dev/null) is written to, not replaced.

    Raises:
        InvalidArgumentError: One cannot be written; what was there before still is.
    """
    moves: list[tuple[str, Path]] = []
    current = files[0][0]
    try:
        for current, write in files:
            target = Path(os.path.realpath(current))
            if target.exists() and not target.is_file():
                with target.open("wb") as file:  # a folder is refused here
                    write(file)
                continue
            temporary = str(target.with_name(f".{target.name}.{os.urandom(6).hex()}.tmp"))
            os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
            moves.append((temporary, target))
            if target.exists():
                if not os.access(target, os.W_OK):
                    raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
                os.chmod(temporary, target.stat().st_mode & 0o777)
            with open(temporary, "wb") as file:
                write(file)
        _rename_all(moves)
    except OSError as error:
        raise InvalidArgumentError(f"cannot write '{current}': {error.strerror or error}") from error
    finally:
        for temporary, _ in moves:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def _rename_all(moves: Sequence[tuple[str, Path]]) -> None:
    """Rename all files; if one cannot be, those before it get back what they had."""
    done: list[tuple[Path, str | None]] = []
    try:
        for number, (source, target) in enumerate(moves):
            kept: str | None = None
            if number < len(moves) - 1 and target.exists():
                kept = f"{source}.old"
                shutil.copy2(target, kept)
            done.append((target, kept))
            os.replace(source, target)
    except OSError:
        for target, kept in done[:-1]:
            if kept is None:
                target.unlink(missing_ok=True)
            else:
                os.replace(kept, target)
        raise
    finally:
        for _, kept in done:
            if kept is not None:
                with contextlib.suppress(OSError):
                    os.unlink(kept)
