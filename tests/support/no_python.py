"""Makes whatever could compute in Python raise: a run inside of `no_python()` is native code's work alone.

Every op's `evaluate` raises, and so does NumPy: its ufuncs, and all functions but those that make arrays without
computing, or describe them. Operators and methods of arrays (`a + b`) cannot be replaced; so that no code of ours uses
them, no function of the rooms that compute may be entered at all (`COMPUTING`).
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

import sardonyx
from sardonyx.dialects.sx import BY_NAME

DESCRIBING = frozenset(
    "array asarray asanyarray ascontiguousarray empty empty_like frombuffer from_dlpack may_share_memory "
    "shares_memory ndim shape size isscalar iterable issubdtype isdtype promote_types can_cast result_type "
    "min_scalar_type".split()
)
MODULES = (np, np.linalg, np.fft, np.random, np.strings)

_ROOT = Path(str(sardonyx.__file__)).parent
COMPUTING = tuple(f"{_ROOT / room}/" for room in ("dialects/sx", "passes", "frontend/functions"))


class PythonComputed(AssertionError):
    """Something in Python computed what native code has to."""


@contextlib.contextmanager
def no_python() -> Iterator[None]:
    """Inside, computing in Python raises `PythonComputed`. For one thread; not to be nested."""

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(COMPUTING):
            raise PythonComputed(f"{frame.f_code.co_qualname} of {frame.f_code.co_filename} ran in a native run")

    before = sys.getprofile()
    kept = [(where, name, where.__dict__[name]) for where, name, _ in _refusals()]
    try:
        for where, name, refused in _refusals():
            setattr(where, name, refused)
        sys.setprofile(watch)
        yield
    finally:
        sys.setprofile(before)
        for where, name, value in kept:
            setattr(where, name, value)


@functools.cache
def _refusals() -> list[tuple[Any, str, Callable[..., Any]]]:
    """What raises: the module or class, the name, and the function that stands there meanwhile."""
    out: list[tuple[Any, str, Callable[..., Any]]] = []
    for module in MODULES:
        out += [
            (module, name, _refusal(module, name)) for name, value in vars(module).items() if _computes(name, value)
        ]
    classes = {kind for op in BY_NAME.values() for kind in op.__mro__ if "evaluate" in kind.__dict__}
    out += [(kind, "evaluate", _refusal(kind, "evaluate")) for kind in classes]
    return out


def _refusal(where: Any, name: str) -> Callable[..., Any]:
    def refused(*_: Any, **__: Any) -> Any:
        raise PythonComputed(f"{where.__name__}.{name} was called in a native run")

    return refused


def _computes(name: str, value: Any) -> bool:
    return callable(value) and not isinstance(value, type) and not name.startswith("_") and name not in DESCRIBING
