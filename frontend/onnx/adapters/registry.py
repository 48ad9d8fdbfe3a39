"""Which adapter imports which operator at which opset.

An adapter turns a node of an operator, as an opset up to `until` has it, into today's ops; it returns the values of
the node's outputs. A node that no adapter is for is imported as the op whose `OnnxForm` names it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from sardonyx.frontend.onnx.node import NodeContext

Adapter = Callable[[NodeContext], Sequence[SSAValue | None]]

ALWAYS = 10**9
_ADAPTERS: dict[tuple[str, str], list[tuple[int, Adapter]]] = {}


def adapts(*names: str, until: int = ALWAYS, domain: str = "") -> Callable[[Adapter], Adapter]:
    """Register an adapter for the opsets up to `until` (those that no adapter with a lower one is for)."""

    def register(function: Adapter) -> Adapter:
        for name in names:
            entries = _ADAPTERS.setdefault((domain, name), [])
            entries.append((until, function))
            entries.sort(key=lambda entry: entry[0])
        return function

    return register


def find(domain: str, name: str, opset: int) -> Adapter | None:
    """The adapter of an operator at an opset."""
    for until, adapter in _ADAPTERS.get((domain, name), ()):
        if opset <= until:
            return adapter
    return None
