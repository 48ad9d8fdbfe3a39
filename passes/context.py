"""The context in which modules are parsed and passes run: our dialects, and upstream's where text names them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.ir import Attribute, Dialect, Operation, TypeAttribute

from sardonyx.dialects import sx
from sardonyx.passes.registry import installed_dialects, loaded_dialects

_TYPES: dict[str, type[TypeAttribute]] = {a.name: a for a in sx.ATTRIBUTES if issubclass(a, TypeAttribute)}
_ATTRIBUTES: dict[str, type[Attribute]] = {a.name: a for a in sx.ATTRIBUTES if a.name not in _TYPES}


class SxContext(Context):
    """Loads what text names, and no more: of `sx` the family of an op (the whole dialect for a name that it has not),
    and the dialects of installed packages when a name is of none that is known."""

    def get_optional_op(self, name: str, *, dialect_stack: Sequence[str] = ()) -> type[Operation] | None:
        found = sx.find_op(name)
        if found is None:
            self._reach(name)
            found = super().get_optional_op(name, dialect_stack=dialect_stack)
        return found

    def get_optional_type(self, name: str) -> type[TypeAttribute] | None:
        self._reach(name)
        return _TYPES.get(name) or super().get_optional_type(name)

    def get_optional_attr(self, name: str) -> type[Attribute] | None:
        self._reach(name)
        return _ATTRIBUTES.get(name) or super().get_optional_attr(name)

    def get_optional_dialect(self, name: str) -> Dialect | None:
        self._reach(f"{name}.")
        return super().get_optional_dialect(name)

    @property
    def registered_dialect_names(self) -> Iterable[str]:
        self._reach("?.")
        return super().registered_dialect_names

    def clone(self) -> SxContext:
        return SxContext(**vars(super().clone()))

    def _reach(self, name: str) -> None:
        """Register the dialects of installed packages, where no dialect of ours, a file's or xDSL's has the name."""
        dialect, separator, _ = name.partition(".")
        if separator and dialect not in self._registered_dialects:
            for other, factory in installed_dialects().items():
                if other not in self._registered_dialects:
                    self.register_dialect(other, factory)


def _sx() -> Dialect:
    return sx.SX


def _kernel() -> Dialect:
    from sardonyx.dialects.kernel import KERNEL

    return KERNEL


def _native() -> Dialect:
    return importlib.import_module("sardonyx.backends.llvm.native_dialect").NATIVE  # a room above this one


def make_context(allow_unregistered: bool = False, upstream: bool = True) -> Context:
    """A context with `builtin` and `func` loaded; `sx`, `kernel`, `native` and upstream's load when text names them."""
    ctx = SxContext(allow_unregistered)
    for dialect in (Builtin, Func):
        ctx.load_dialect(dialect)
    lazy: dict[str, Callable[[], Dialect]] = {"sx": _sx, "kernel": _kernel, "native": _native}
    for dialect in loaded_dialects():
        lazy[dialect.name] = lambda dialect=dialect: dialect
    if upstream:
        from xdsl.dialects import get_all_dialects

        lazy = {**get_all_dialects(), **lazy}
    for name, factory in lazy.items():
        if name not in (Builtin.name, Func.name):
            ctx.register_dialect(name, factory)
    return ctx
