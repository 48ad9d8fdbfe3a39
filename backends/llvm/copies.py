"""Copies of a graph that native compilation makes for itself: with locations, and with state as inputs and outputs."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from sardonyx.dialects.sx.state import CacheOp, StateOp


def with_explicit_state(module: ModuleOp) -> ModuleOp:
    """The graph with its buffers as inputs and outputs, for whoever runs it to hold: a copy, or the module itself.

    Behind the graph's own inputs come those of `bind_caches`, then those of `explicit-state`.
    """
    if not any(isinstance(op, StateOp) and not (isinstance(op, CacheOp) and op.memory[0]) for op in module.walk()):
        return module
    from sardonyx.passes.bind_caches import bind_caches  # a graph without state needs neither
    from sardonyx.passes.explicit_state import ExplicitStatePass

    copy = located_copy(module)
    bind_caches(copy)
    ExplicitStatePass().execute(copy)
    return copy


def located_copy(module: ModuleOp) -> ModuleOp:
    """A copy with the locations, which xDSL's has not."""
    copy = module.clone()
    for mine, theirs in zip(module.walk(), copy.walk(), strict=True):
        theirs.location = mine.location
    return copy
