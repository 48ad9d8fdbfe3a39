"""No kernel touches what is not its own: every family runs between forbidden pages, at awkward sizes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from families import FAMILIES, hold_weights
from guard import EDGES, GuardError, run_guarded
from op_case import op
from three_ways import build, case, compare, sample
from whole_graphs import GRAPHS, graph
from xdsl.dialects.builtin import ModuleOp

import sardonyx as sx
from sardonyx.backends.llvm.build import lower
from sardonyx.backends.llvm.codegen import emit
from sardonyx.backends.llvm.codegen.text import I64
from sardonyx.backends.llvm.codegen.widen import Value, add_index
from sardonyx.backends.llvm.copies import with_explicit_state
from sardonyx.backends.llvm.expand import expand, is_expanded
from sardonyx.backends.llvm.prepare import prepare
from sardonyx.backends.llvm.registries import EMITTERS, LOWERINGS
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.kernel.ops import LoadOp, StoreOp
from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx.constant import ConstantOp

NOT_RUN = {
    "sx.custom": "its kernel is the user's",
    "kernel.output_list": "an output that is a list; `run_guarded` gives memory for tensors",
}
"""Kinds without a case, and why."""

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


@pytest.mark.parametrize("name", GRAPHS)
def test_whole_graphs_touch_nothing_past_the_ends_of_buffers(name: str) -> None:
    module, feeds = graph(name).module, GRAPHS[name][1]
    expected = evaluate_function(main_function(module), feeds)
    for edge in EDGES:
        got = run_guarded(module, feeds, edge, threads=3)
        for number, (a, b) in enumerate(zip(got, map(np.asarray, expected), strict=True)):
            assert a.dtype == b.dtype and a.shape == b.shape, f"result {number}"
            wide = np.float64 if a.dtype.kind == "f" else a.dtype
            np.testing.assert_allclose(a.astype(wide), b.astype(wide), rtol=1e-4, atol=1e-5, err_msg=f"{number}")


@sx.signature("x: f32[2,n,5], past: f32[2,past,5]")
def longer(x: Any, past: Any) -> Any:
    present = sx.concat([past, x], axis=1)
    return present * 2.0, past * 3.0, present


def cached() -> ModuleOp:
    """`longer` with a cache of 9 rows: its memory and its length are inputs 1 and 2."""
    traced = sx.trace(longer).graph
    traced.attach_kv_cache(9)
    return with_explicit_state(traced.module)


def test_a_cache_is_written_where_its_new_rows_are_and_nowhere_else() -> None:
    x = sample("float32", 2, 3, 5)
    memory = np.zeros((2, 9, 5), np.float32)
    memory[:, :4] = sample("float32", 2, 4, 5, seed=1)
    for edge in EDGES:
        got = run_guarded(cached(), [x, memory, np.zeros(4, np.uint8)], edge, threads=3, writable=(1,))
        np.testing.assert_array_equal(got[0], 2 * np.concatenate([memory[:, :4], x], 1))
        np.testing.assert_array_equal(got[1], 3 * memory[:, :4])


@sx.signature("x: f32[n,24], w: uint4[24,19], scale: f32[3,19]")
def product(x: Any, w: Any, scale: Any) -> Any:
    return x @ sx.dequantize_linear(w, scale, axis=0, block_size=8)


def weights_of_four_bits() -> tuple[ModuleOp, list[Any]]:
    """A product with constant weights that stay packed; what it is run on."""
    matrix = np.random.default_rng(0).integers(0, 16, (24, 19)).astype(sx.uint4.numpy)
    feeds = [sample("float32", 5, 24), matrix, sample("float32", 3, 19, low=0.1, high=1)]
    module = sx.trace(product).graph.module
    block = main_function(module).body.block
    for argument, array in zip(block.args[1:], feeds[1:], strict=True):
        constant = ConstantOp.dense(array)
        block.insert_op_before(constant, block.first_op)  # pyright: ignore[reportArgumentType]
        argument.replace_all_uses_with(constant.output)
    return module, feeds


def test_nothing_past_packed_weights_is_read() -> None:
    module, feeds = weights_of_four_bits()
    (expected,) = evaluate_function(main_function(module), feeds)
    for edge in EDGES:
        (got,) = run_guarded(module, feeds, edge, threads=3)
        np.testing.assert_allclose(got, np.asarray(expected), rtol=1e-5, atol=1e-4)


def test_every_kind_of_kernel_runs_between_forbidden_pages() -> None:
    """All that has a lowering, and all that kernels and plans are made of, stands in a case of the tests above."""
    seen: set[str] = set()
    modules = [build(list(family()), "mixed").module for family in FAMILIES.values()]
    for module in (*modules, *(graph(name).module for name in GRAPHS), cached(), weights_of_four_bits()[0]):
        expanded, _ = expand(prepare(module))
        kernels = lower(module, None, False).module
        seen |= {one.name for one in (*module.walk(), *expanded.walk(), *kernels.walk())}
    kinds: dict[Any, set[str]] = {}
    for cls, lowering in LOWERINGS.items():
        kinds.setdefault(lowering, set()).add(cls.name)
    wanted = [names for lowering, names in kinds.items() if lowering is not is_expanded]
    wanted += [{cls.name} for cls in EMITTERS]
    missing = [sorted(names) for names in wanted if not names & seen]
    assert [names for names in missing if not NOT_RUN.keys() & set(names)] == []
    assert not seen & NOT_RUN.keys(), "these have cases by now"


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
