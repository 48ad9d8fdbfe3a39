"""What does not depend on the number of threads: the results of every family of kernels."""

from __future__ import annotations

import pytest
from families import FAMILIES, hold_weights
from three_ways import build

from sardonyx.backends.llvm.compile import compile_native
from sardonyx.backends.llvm.interface import EntryOptions


@pytest.mark.parametrize("family", ["rows", "reductions", "products", "convolutions", "movements", "signals"])
def test_results_are_the_same_for_any_number_of_threads(family: str) -> None:
    graph = build(list(FAMILIES[family]()), "static" if family in ("products", "convolutions") else "mixed")
    hold_weights(graph)
    compiled = compile_native(graph.module, options=EntryOptions(pool_from=1))  # the pool runs what can be cut
    compiled.use_threads(1)
    alone = compiled.run(graph.feeds)
    for threads in (2, 3, 7):
        compiled.use_threads(threads)
        for (one, number), a, b in zip(graph.outputs, compiled.run(graph.feeds), alone, strict=True):
            assert a.tobytes() == b.tobytes(), f"{one} result {number} with {threads} threads"
