"""Nested lists, tuples and dicts of tensors: taken apart and put together again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sardonyx.errors import InvalidArgumentError


@dataclass(frozen=True)
class Structure:
    """How a value is made of its leaves: a leaf (kind None), or a container of such. Hashable."""

    kind: type | None
    keys: tuple[object, ...] = ()
    children: tuple[Structure, ...] = ()

    @property
    def size(self) -> int:
        """The number of leaves."""
        return 1 if self.kind is None else sum(child.size for child in self.children)

    def build(self, leaves: Sequence[Any]) -> Any:
        """The value that has these leaves.

        Raises:
            InvalidArgumentError: There are more or fewer than it has.
        """
        rest = iter(leaves)
        if len(leaves) != self.size:
            raise InvalidArgumentError(f"the structure has {self.size} leaves, got {len(leaves)}")
        return self._build(rest)

    def _build(self, rest: Iterator[Any]) -> Any:
        if self.kind is None:
            return next(rest)
        parts = [child._build(rest) for child in self.children]
        if issubclass(self.kind, Mapping):
            return dict(zip(self.keys, parts))
        if hasattr(self.kind, "_fields"):  # a named tuple
            return self.kind(*parts)
        return tuple(parts) if issubclass(self.kind, tuple) else parts


LEAF = Structure(None)


def is_container(value: object) -> bool:
    return isinstance(value, list | tuple | Mapping)


def flatten(value: object) -> tuple[list[tuple[str, Any]], Structure]:
    """The leaves with their paths (`[0]`, `hidden.state`, …), and the structure."""
    leaves: list[tuple[str, Any]] = []
    return leaves, _flatten(value, "", leaves)


def _flatten(value: object, path: str, leaves: list[tuple[str, Any]]) -> Structure:
    if isinstance(value, Mapping):
        keys = tuple(value)
        children = tuple(_flatten(value[k], f"{path}.{k}" if path else str(k), leaves) for k in keys)
        return Structure(dict, keys, children)
    if isinstance(value, list | tuple):
        names = getattr(value, "_fields", None)
        steps = [f".{n}" if path else n for n in names] if names else [f"[{i}]" for i in range(len(value))]
        children = tuple(_flatten(v, path + step, leaves) for v, step in zip(value, steps))
        return Structure(type(value), (), children)
    leaves.append((path, value))
    return LEAF
