"""Recurrent layers as operators of their own while a model with dynamic shapes is captured.

torch takes `aten.lstm` apart step by step when it works out shapes, which fixes the length of the sequences. Where the
user says that a dim is dynamic, the layers call `torch.ops.sardonyx.lstm` and the like instead: the same kernels, and a
shape rule that leaves the length open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

_KINDS = ("lstm", "gru", "rnn_tanh", "rnn_relu")
_REST = "bool has_biases, int layers, float dropout, bool train, bool bidirectional, bool batch_first"


@cache
def _library() -> Any:
    """The operators, registered once a process."""
    import torch

    library = torch.library.Library("sardonyx", "DEF")
    for kind in _KINDS:
        states = "Tensor[] states" if kind == "lstm" else "Tensor state"
        results = "(Tensor, Tensor, Tensor)" if kind == "lstm" else "(Tensor, Tensor)"
        library.define(f"{kind}(Tensor input, {states}, Tensor[] params, {_REST}) -> {results}")
        library.impl(kind, getattr(torch.ops.aten, kind).input, "CPU")
        torch.library.register_fake(f"sardonyx::{kind}", _shapes(kind), lib=library)
    return library


def _shapes(kind: str) -> Callable[..., Any]:
    def shapes(
        input: Any,
        states: Any,
        params: Any,
        biases: bool,
        layers: int,
        dropout: float,
        train: bool,
        both: bool,
        first: bool,
    ) -> Any:
        given = list(states) if kind == "lstm" else [states]
        width = given[0].shape[-1] * (2 if both else 1)
        out = input.new_empty([*input.shape[:-1], width])
        return out, *(state.new_empty(state.shape) for state in given)

    return shapes


@contextmanager
def dynamic_lengths() -> Iterator[None]:
    """The time in which recurrent layers are operators of their own."""
    import torch

    _library()
    functions: Any = torch._VF

    def replaced(kind: str) -> Callable[..., Any]:
        original = getattr(functions, kind)
        ours = getattr(torch.ops.sardonyx, kind)

        def call(*args: Any) -> Any:
            packed = len(args) != 9 or not isinstance(args[2], list | tuple)  # of a PackedSequence
            projected = kind == "lstm" and not packed and args[1][0].shape[-1] != args[1][1].shape[-1]
            return original(*args) if packed or projected else ours(*args)

        return call

    calls = {kind: replaced(kind) for kind in _KINDS}
    for kind, call in calls.items():
        setattr(functions, kind, call)
    try:
        yield
    finally:
        for kind in calls:
            delattr(functions, kind)
