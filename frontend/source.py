"""Where in the user's source a call comes from: the nearest frame that is neither Sardonyx's nor NumPy's.

What counts as ours are the rooms of the package, not its examples and tests: those are users.
"""

from __future__ import annotations

import os
import sys
from functools import cache
from pathlib import Path
from types import CodeType, FrameType

from xdsl.dialects.builtin import CallSiteLoc, LocationAttr

from sardonyx.dialects.locations import describe, file_location, name_location

_ROOT = Path(__file__).resolve().parent.parent
_OURS = tuple(str(_ROOT / room) + os.sep for room in ("frontend", "dialects", "passes", "backends", "tools"))


@cache
def _is_ours(filename: str) -> bool:
    import numpy

    numpys = os.path.dirname(numpy.__file__) + os.sep
    # `<frozen …>`, `<__array_function__ internals>`; but `<stdin>`, `<string>` and notebooks are the user's.
    internal = filename.startswith(("<frozen ", "<__array_function__"))
    return internal or os.path.realpath(filename).startswith(_OURS) or filename.startswith(numpys)


def user_frame() -> FrameType | None:
    """The nearest frame of the user's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


Place = tuple[CodeType, int]
"""A place in the source: a code object and the offset of an instruction."""


def user_location(known: dict[Place, LocationAttr] | None = None) -> LocationAttr | None:
    """The user's file, line and column, as called from the user's function; None outside of any.

    Args:
        known: Locations that were made before, by place.
    """
    frame = user_frame()
    if frame is None:
        return None
    place = (frame.f_code, frame.f_lasti)
    if known is not None and place in known:
        return known[place]
    name = frame.f_code.co_qualname.replace(".<locals>", "")
    origin = file_location(shown_path(frame.f_code.co_filename), frame.f_lineno, _column(frame))
    location = origin if name == "<module>" else CallSiteLoc(origin, name_location(name))
    if known is not None:
        known[place] = location
    return location


def user_line() -> str | None:
    """The user's file and line as text, for messages."""
    return describe(user_location())


def function_location(fn: object) -> LocationAttr | None:
    """Where a Python function is defined."""
    code = getattr(fn, "__code__", None)
    if not isinstance(code, CodeType):
        return None
    return file_location(shown_path(code.co_filename), code.co_firstlineno)


def shown_path(filename: str) -> str:
    """A path relative to the current directory where it lies below it; any other as it is."""
    try:
        below = os.path.relpath(filename) if os.path.isabs(filename) else filename
    except (OSError, ValueError):  # the current directory is gone; another drive
        return filename
    return filename if below.startswith(os.pardir) else below


def _column(frame: FrameType) -> int:
    """The column, from 1, of the expression that a frame is at; 0 where Python doesn't know it."""
    if frame.f_lasti < 0:
        return 0
    positions = list(frame.f_code.co_positions())
    index = frame.f_lasti // 2
    column = positions[index][2] if index < len(positions) else None
    return 0 if column is None else column + 1
