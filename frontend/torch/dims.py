"""Symbolic sizes of torch as dims: sympy's expressions over `s0`, `s27`, … in the names that the user gave."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sardonyx.dialects.dims import Dim


def dim_of(size: Any, names: Mapping[str, str]) -> Dim | None:
    """The dim of a size, a number or a SymInt; None where its expression has no counterpart.

    Args:
        size: What `shape` of a fake tensor has.
        names: What torch's symbols are called.
    """
    if isinstance(size, int):
        return Dim.of(size)
    return _of_expression(size.node.expr, names)


def _of_expression(expr: Any, names: Mapping[str, str]) -> Dim | None:
    if expr.is_Integer:
        return Dim.of(int(expr))
    if expr.is_Symbol:
        return Dim.symbol(names.get(str(expr), str(expr)))
    rule = _RULES.get(type(expr).__name__)
    if rule is None:
        return None
    parts = [_of_expression(argument, names) for argument in expr.args]
    known = [p for p in parts if p is not None]
    return rule(*known) if len(known) == len(parts) else None


def _power(base: Dim, exponent: Dim) -> Dim | None:
    count = exponent.static_value
    if count is None or not 0 <= count <= 8:
        return None
    return Dim.product([base] * count)


_RULES: dict[str, Callable[..., Dim | None]] = {
    "Add": lambda *parts: Dim.sum(parts),
    "Mul": lambda *parts: Dim.product(parts),
    "Pow": _power,
    "PowByNatural": _power,
    "FloorDiv": lambda a, b: a.floordiv(b),
    "CleanDiv": lambda a, b: a.floordiv(b),
    "CeilDiv": lambda a, b: a.ceildiv(b),
    "Mod": lambda a, b: a.mod(b),
    "PythonMod": lambda a, b: a.mod(b),
    "Max": Dim.max,
    "Min": Dim.min,
}


def symbols_in(size: Any) -> list[str]:
    """The names of torch's symbols in a size."""
    return [] if isinstance(size, int) else sorted(str(s) for s in size.node.expr.free_symbols)


def lone_symbol(size: Any) -> str | None:
    """torch's symbol, where the size is nothing but one."""
    if isinstance(size, int):
        return None
    return str(size.node.expr) if size.node.expr.is_Symbol else None
