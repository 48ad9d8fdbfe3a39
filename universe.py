"""What stock `xdsl-opt` sees of Sardonyx, through the entry point `xdsl.universe`.

Names that upstream has already raise there, so every pass and target bears the prefix `sx-`.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Dialect
from xdsl.passes import ModulePass
from xdsl.universe import Universe

PREFIX = "sx-"


def _sx() -> Dialect:
    from sardonyx.dialects.sx import SX

    return SX


def _kernel() -> Dialect:
    from sardonyx.dialects.kernel import KERNEL

    return KERNEL


def _native() -> Dialect:
    from sardonyx.backends.llvm.native_dialect import NATIVE

    return NATIVE


def _renamed(name: str) -> Callable[[], type[ModulePass]]:
    def load() -> type[ModulePass]:
        from sardonyx.passes.registry import own_entries

        cls = own_entries()[name].load()
        return type(cls.__name__, (cls,), {"name": PREFIX + name, "__doc__": cls.__doc__, "__module__": cls.__module__})

    return load


def _passes() -> dict[str, Callable[[], type[ModulePass]]]:
    from sardonyx.passes.registry import own_entries

    return {PREFIX + name: _renamed(name) for name in own_entries()}


UNIVERSE = Universe(all_dialects={"sx": _sx, "kernel": _kernel, "native": _native}, all_passes=_passes())
