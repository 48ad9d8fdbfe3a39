"""The one authority on names in an exported model.

The names of inputs and outputs are the user's and are kept. All others are made so that they are unique and stable:
from the names in an op's location (those that an imported node and its outputs had), else from the operator's name and
a counter. Values and nodes have a name space each, as in ONNX.
"""

from __future__ import annotations

from collections.abc import Iterable

from sardonyx.dialects.locations import (
    node_location as node_location,
    node_name as node_name,
    value_names as value_names,
)


class NameSpace:
    """Hands out names, each once."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = {"", *taken}
        self._next: dict[str, int] = {}

    def reserve(self, name: str) -> None:
        self._taken.add(name)

    def claim(self, wanted: str) -> str:
        """The wanted name, or it with the lowest number that makes it unique."""
        if wanted not in self._taken:
            self._taken.add(wanted)
            return wanted
        number = self._next.get(wanted, 1)
        while f"{wanted}_{number}" in self._taken:
            number += 1
        self._next[wanted] = number + 1
        name = f"{wanted}_{number}"
        self._taken.add(name)
        return name

    def claim_numbered(self, stem: str) -> str:
        """`<stem>_<n>` with the lowest n not yet used for that stem."""
        number = self._next.get(stem, 0)
        while f"{stem}_{number}" in self._taken:
            number += 1
        self._next[stem] = number + 1
        name = f"{stem}_{number}"
        self._taken.add(name)
        return name
