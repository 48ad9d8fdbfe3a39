"""What arguments of the command line may be: a wrong one is a usage error, told before anything is read."""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from sardonyx.errors import InvalidArgumentError


class UsageError(InvalidArgumentError):
    """The arguments do not go together; the command line is wrong, whatever the files hold."""


WRITTEN = ("output", "save_worst", "certify", "trace", "html", "header", "example")
"""The options that name a file to be written."""
FOLDERS = ("demo", "new-pass")
"""The commands whose --output is a folder, which they make."""


def check_places(options: argparse.Namespace) -> None:
    """See whether files can be written where they are to be, before there is work to lose.

    Raises:
        InvalidArgumentError: A folder is not there, or a folder is in the place of the file.
    """
    for name in () if options.command in FOLDERS else WRITTEN:
        text = getattr(options, name, None)
        if text:
            path = Path(text)
            if not path.parent.is_dir():
                raise InvalidArgumentError(f"there is no folder '{path.parent}' to write '{path.name}' to")
            if path.is_dir():
                raise InvalidArgumentError(f"cannot write '{path}': it is a folder")


def count(text: str) -> int:
    """A whole number from 1 on."""
    return _whole(text, 1)


def whole(text: str) -> int:
    """A whole number from 0 on."""
    return _whole(text, 0)


def _whole(text: str, least: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if value < least:
        raise argparse.ArgumentTypeError(f"'{text}' is no whole number from {least} on")
    return value


def amount(text: str) -> float:
    """A finite number from 0 on."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not math.isfinite(value) or value < 0:
        raise argparse.ArgumentTypeError(f"'{text}' is no number from 0 on")
    return value


def dim_sizes(text: str) -> str:
    """Sizes of a dim, as `batch=1,8,32`."""
    name, _, sizes = text.rpartition("=")
    if not name or not all(size.strip().isdecimal() for size in sizes.split(",")):
        raise argparse.ArgumentTypeError(f"'{text}' states no sizes of a dim: write batch=1,8,32")
    return text


def dim_size(text: str) -> str:
    """The size of a dim, as `batch=8`."""
    if "," in dim_sizes(text):
        raise argparse.ArgumentTypeError(f"'{text}' states several sizes: one is wanted, as batch=8")
    return text
