"""No kernel touches what is not its own: every family runs between forbidden pages, at awkward sizes."""

from __future__ import annotations

import numpy as np
import pytest
from families import FAMILIES, hold_weights
from guard import EDGES, GuardError, run_guarded
from op_case import op
from three_ways import build, case, compare, sample

from sardonyx.backends.llvm.codegen import emit
from sardonyx.backends.llvm.codegen.text import I64
from sardonyx.backends.llvm.codegen.widen import Value, add_index
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.kernel.ops import LoadOp, StoreOp
from sardonyx.dialects.module import main_function

RUNS = [*((f, "mixed") for f in FAMILIES), *((f, "static") for f in ("rows", "products", "convolutions"))]


@pytest.mark.parametrize(("family", "mode"), RUNS)
def test_nothing_is_touched_past_the_ends_of_buffers(family: str, mode: str) -> None:
    graph = build(list(FAMILIES[family]()), mode)
    if mode == "static":
        hold_weights(graph)
    expected = evaluate_function(main_function(graph.module), graph.feeds)
    for edge in EDGES:
        got = run_guarded(graph.module, graph.feeds, edge, threads=3 if mode == "mixed" else 1)
        for (one, number), a, b in zip(graph.outputs, got, expected, strict=True):
            problem = compare(one.op.name, a, np.asarray(b))
            assert problem is None, f"{one} result {number}: {problem}"


@pytest.mark.parametrize(("edge", "shift", "words"), [("end", 1, "1 bytes past the end"), ("start", -1, "4 bytes in")])
def test_the_guard_names_kernel_buffer_and_distance(
    monkeypatch: pytest.MonkeyPatch, edge: str, shift: int, words: str
) -> None:
    load = emit.EMITTERS[LoadOp]

    def misplaced(e: emit.KernelEmitter, one: LoadOp) -> None:
        kept = e.values[one.offset]
        e.values[one.offset] = add_index(e.builder, kept, Value(str(shift), I64))
        load(e, one)
        e.values[one.offset] = kept

    monkeypatch.setitem(emit.EMITTERS, LoadOp, misplaced)
    graph = build([case(op("neg"), sample("float32", 17))], "static")
    with pytest.raises(GuardError, match=f"neg_0.*{words}.*input 0"):
        run_guarded(graph.module, graph.feeds, edge)


def test_the_guard_sees_what_is_written_beside_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    store = emit.EMITTERS[StoreOp]

    def misplaced(e: emit.KernelEmitter, one: StoreOp) -> None:
        kept = e.values[one.offset]
        e.values[one.offset] = add_index(e.builder, kept, Value("1", I64))
        store(e, one)
        e.values[one.offset] = kept

    monkeypatch.setitem(emit.EMITTERS, StoreOp, misplaced)
    graph = build([case(op("neg"), sample("float32", 17))], "static")
    with pytest.raises(GuardError, match="4 bytes were written behind output 0 \\(68 bytes\\), the nearest 1 away"):
        run_guarded(graph.module, graph.feeds, "start")
