"""The context in which modules are parsed and passes run: our dialects, and upstream's where text names them."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.ir import Dialect

from sardonyx.passes.registry import installed_dialects, loaded_dialects


def _kernel() -> Dialect:
    from sardonyx.dialects.kernel import KERNEL

    return KERNEL


def make_context(allow_unregistered: bool = False, upstream: bool = True) -> Context:
    """A context with `builtin`, `func` and `sx` loaded; `kernel` and upstream's dialects load when text names them."""
    from sardonyx.dialects.sx import SX

    ctx = Context(allow_unregistered)
    for dialect in (Builtin, Func, SX):
        ctx.load_dialect(dialect)
    lazy: dict[str, Callable[[], Dialect]] = {"kernel": _kernel, **installed_dialects()}
    for dialect in loaded_dialects():
        lazy[dialect.name] = lambda dialect=dialect: dialect
    if upstream:
        from xdsl.dialects import get_all_dialects

        lazy = {**get_all_dialects(), **lazy}
    present = set(ctx.registered_dialect_names)
    for name, factory in lazy.items():
        if name not in present:
            ctx.register_dialect(name, factory)
    return ctx
