"""The methods of dataclasses, compiled when they are first called.

`@dataclass` writes five methods as text and compiles each of them: a millisecond or two a class, and importing xDSL
makes some 300, most of which a run never uses. So the console script of `sardonyx-opt`, which has half a second in all,
lets those of xDSL's and our own classes wait: what stands in the class is a stand-in that compiles the method at its
first call and takes its place. Classes of others are left alone, and so is a Python whose `dataclasses` work otherwise
(from 3.13 on they compile once per class).
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

OURS = ("xdsl.", "sardonyx.")
"""The packages whose classes are made so."""
PARAMETERS = ["name", "args", "body", "globals", "locals", "return_type"]
"""What the function of `dataclasses` takes that makes a method: a private one, so it is looked at before."""


def defer_methods() -> None:
    """Let the dataclasses that are made from now on in our packages compile their methods late."""
    make: Callable[..., Any] | None = getattr(dataclasses, "_create_fn", None)
    if make is None or list(inspect.signature(make).parameters) != PARAMETERS:
        return

    def create(name: str, args: Any, body: Any, *, globals: Any = None, locals: Any = None, **more: Any) -> Any:
        if not str((globals or {}).get("__name__", "")).startswith(OURS):
            return make(name, args, body, globals=globals, locals=locals, **more)
        return _late(name, lambda: make(name, args, body, globals=globals, locals=locals, **more))

    dataclasses._create_fn = create  # pyright: ignore[reportAttributeAccessIssue]


def _late(name: str, make: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
    """A method that is made at its first call, and then stands in the class itself."""
    made: Callable[..., Any] | None = None

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal made
        if made is None:
            made = make()
            made.__qualname__ = method.__qualname__
            for owner in type(self).__mro__:
                if vars(owner).get(name) is method:
                    setattr(owner, name, made)
        return made(self, *args, **kwargs)

    method.__name__ = name
    return method
