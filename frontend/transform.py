"""`Transform`: a Python function on a `ModelGraph` as a pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

from sardonyx.errors import InvalidArgumentError
from sardonyx.passes.base import PassRun, SxPass
from sardonyx.passes.pipeline import snapshot

if TYPE_CHECKING:
    from sardonyx.frontend.graph import ModelGraph


@dataclass(frozen=True)
class Transform:
    """A named function that changes a graph in place: what it returns doesn't matter.

    Inside of it the graph may be read and edited (`graph.module`, `graph.edit`), but not run, exported, optimized or
    finalized.
    """

    name: str
    fn: Callable[[ModelGraph], Any]

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise InvalidArgumentError("the name of a Transform is a str that isn't empty")
        if not callable(self.fn):
            raise InvalidArgumentError(f"fn of the Transform '{self.name}' is a function, not {type(self.fn).__name__}")

    def to_pass(self, graph: ModelGraph | None = None) -> SxPass:
        """The pass that calls the function, on this graph, or on one made of the module that it runs over."""
        fn = self.fn

        def run(self: SxPass, module: ModuleOp, run: PassRun) -> None:
            from sardonyx.frontend.graph import ModelGraph

            before = snapshot(module)
            fn(graph if graph is not None and graph.module is module else ModelGraph(module))
            run.changed = before != snapshot(module)

        # A pass's name is its class's.
        cls = type("TransformPass", (SxPass,), {"name": self.name, "run": run, "__doc__": fn.__doc__ or self.name})
        return cls()
