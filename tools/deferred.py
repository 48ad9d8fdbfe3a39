"""Packages that a command imports when it first uses something of them, wherever `import` statements ask for them.

Most graphs go through `sardonyx-opt` without one number being looked at, and loading NumPy takes a third of such a run.
So its console script `defer`s it, and a few modules that only some options need: `import numpy as np` at the head of a
module then binds a module that is empty, and the first name that is read of it loads it. Only `import x` can wait so:
`from x import y` reads a name.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Deferred(ModuleType):
    """A package before its first use. It becomes the package itself then: there is never a second object."""

    def __getattr__(self, name: str) -> object:
        spec: ModuleSpec | None = self.__spec__
        if spec is None or spec.loader is None:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        self.__class__ = ModuleType  # pyright: ignore[reportAttributeAccessIssue]
        self.__path__ = spec.submodule_search_locations or []
        try:
            spec.loader.exec_module(self)
        except BaseException:
            sys.modules.pop(self.__name__, None)
            raise
        return getattr(self, name)

    def __dir__(self) -> list[str]:
        self.__getattr__("__doc__")
        return dir(self)


def defer(*packages: str) -> None:
    """Let these packages be imported at their first use; those that are imported already, or missing, are left alone.

    To be called before a second thread runs.
    """
    for name in packages:
        spec = None if name in sys.modules else importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            continue
        module = _Deferred(name)
        module.__spec__, module.__loader__, module.__file__ = spec, spec.loader, spec.origin
        module.__package__ = spec.parent
        sys.modules[name] = module


def is_loaded(name: str) -> bool:
    """Whether the module of that name was imported, and is not deferred still."""
    return name in sys.modules and not isinstance(sys.modules[name], _Deferred)
