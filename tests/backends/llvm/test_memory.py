"""Where workspace and results lie: the planner, its native twin, blocks that come back, buffers that users give."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
import pytest
from plans import Builder
from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.parser import Parser

from sardonyx.backends.llvm.codegen.arena import HUGE, emit_place, padded
from sardonyx.backends.llvm.codegen.text import I64, PTR, FunctionBuilder, ModuleText
from sardonyx.backends.llvm.compile import compile_native
from sardonyx.backends.llvm.planner import pack, plan_workspace
from sardonyx.backends.llvm.runtime import jit
from sardonyx.backends.llvm.runtime.blocks import KEPT, kept_bytes, release_blocks
from sardonyx.backends.llvm.runtime.call import CompiledGraph
from sardonyx.dialects.dtypes import DType, float32, int64
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.kernel import KERNEL
from sardonyx.dialects.kernel.ops import AllocOp
from sardonyx.dialects.module import main_function
from sardonyx.errors import ExecutionError, InvalidArgumentError


def check_disjoint(sizes: list[int], spans: list[tuple[int, int]], offsets: list[int], total: int) -> None:
    for i, (a, b) in enumerate(spans):
        assert 0 <= offsets[i] and offsets[i] + sizes[i] <= total
        for j in range(i):
            if spans[j][0] <= b and spans[j][1] >= a:
                assert offsets[i] >= offsets[j] + sizes[j] or offsets[j] >= offsets[i] + sizes[i], (i, j)


def native_place() -> Any:
    module = ModuleText(jit.native_target())
    emit_place(module)
    b = FunctionBuilder(module, "place", [(PTR, "table"), (I64, "n"), (PTR, "spans")], I64)
    b.emit(f"ret i64 {b.call('sx.place', I64, [(PTR, '%table'), (I64, '%n'), (PTR, '%spans')])}")
    b.finish()
    library = jit.Library(jit.to_object(module), ("place",))
    place: Any = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)(
        library.addresses["place"]
    )
    place.library = library
    return place


def test_slots_that_live_together_are_disjoint_and_native_code_places_them_alike() -> None:
    place = native_place()
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 17, 60):
        table = (ctypes.c_int64 * (1 + 3 * n))()
        spans = [(int(a), int(a + rng.integers(0, 6))) for a in rng.integers(0, 2 * n, n)]
        flat = (ctypes.c_int64 * (2 * n))(*[x for span in spans for x in span])
        for _ in range(4):
            sizes = [padded(int(s)) for s in rng.integers(0, 3000, n)]
            table[1 : 1 + n] = sizes
            offsets, total = pack(sizes, spans)
            check_disjoint(sizes, spans, offsets, total)
            for _ in range(2):  # the second time nothing has changed
                assert place(table, n, flat) == total
                assert list(table[1 + 2 * n :]) == offsets
        assert total <= sum(sizes)


def test_a_chain_needs_memory_for_two() -> None:
    sizes = [padded(1000)] * 50
    _, total = pack(sizes, [(k, k + 1) for k in range(50)])
    assert total == 2 * padded(1000)


# ---- graphs


def chain(*dims: int | str) -> ModuleOp:
    """Softmaxes of x [..., 64] with sums and running totals between them, which no one kernel computes."""
    g = Builder(("x", float32, [*dims, 64]), ("b", float32, [64]))
    value = g.inputs[0]
    for _ in range(4):
        value = g.op("add", g.op("softmax", value, axis=-1), g.inputs[1])
        value = g.op("cumsum", value, g.constant(0, np.int64))
    return g.outputs(g.op("softmax", value, axis=-1))


def reference(module: ModuleOp, feeds: list[np.ndarray]) -> list[np.ndarray]:
    return [np.asarray(a) for a in evaluate_function(main_function(module), feeds)]


@pytest.mark.parametrize("dims", [(33,), ("n",), (3, "n")])
def test_workspace_of_known_and_of_dynamic_extents(dims: tuple[int | str, ...]) -> None:
    module = chain(*dims)
    compiled = compile_native(module)
    rng = np.random.default_rng(0)
    for n in (33,) if dims == (33,) else (5, 1, 0, 17, 33, 5):
        shape = [n if isinstance(d, str) else d for d in dims]
        feeds = [rng.standard_normal((*shape, 64)).astype(np.float32), rng.standard_normal(64).astype(np.float32)]
        (got,), (want,) = compiled.run(feeds), reference(module, feeds)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)
    assert 0 < compiled.workspace_bytes < 4 * padded(3 * 33 * 64 * 4)


PLAN = """
kernel.func @negate {{
^bb0(%from: !kernel.buffer<f32>, %to: !kernel.buffer<f32>):
  %zero = arith.constant 0 : index
  %many = arith.constant 16 : index
  "kernel.loop"(%zero, %many) <{{step = 1 : i64, vector}}> ({{
  ^bb1(%i: index):
    %at = arith.addi %i, %{shift} : index
    %x = kernel.load %from[%at] : !kernel.buffer<f32> -> f32
    %y = arith.negf %x : f32
    %there = arith.addi %i, %zero : index
    kernel.store %y, %to[%there] : f32, !kernel.buffer<f32>
    kernel.yield
  }}) : (index, index) -> ()
  kernel.yield
}}
kernel.plan @main {{
  %n = arith.constant 16 : index
  %m = kernel.input_dim 0 : i64, 0 : i64
  %in = kernel.input 0 : i64 : !kernel.buffer<f32>
  %a = kernel.alloc[%{extent}] : !kernel.buffer<f32>
  kernel.launch @negate(%in, %a) {{writes = array<i64: 1>}} : !kernel.buffer<f32>, !kernel.buffer<f32>
  %b = kernel.alloc[%{extent}] : !kernel.buffer<{element}>
  kernel.launch @negate(%a, %b) {{writes = array<i64: 1>}} : !kernel.buffer<f32>, !kernel.buffer<{element}>
  %out = kernel.output 0 : i64[%n] : !kernel.buffer<f32>
  kernel.launch @negate(%{last}, %out) {{writes = array<i64: 1>}} : !kernel.buffer<f32>, !kernel.buffer<f32>
  kernel.yield
}}
"""


@pytest.mark.parametrize(
    ("change", "slots", "size"),
    [
        ({}, [[0, 1]], padded(64)),
        ({"extent": "m"}, [[0, 1]], None),
        ({"shift": "many"}, [[0], [1]], 2 * padded(64)),  # reads 16 elements further on
        ({"last": "a"}, [[0], [1]], 2 * padded(64)),  # a is read again
        ({"element": "f64", "last": "a"}, [[0], [1]], padded(64) + padded(128)),
    ],
)
def test_a_kernel_writes_over_what_it_reads_for_the_last_time(
    change: dict[str, str], slots: list[list[int]], size: int | None
) -> None:
    text = PLAN.format(**{"shift": "zero", "extent": "n", "element": "f32", "last": "b", **change})
    context = Context()
    for dialect in (Builtin, arith.Arith, KERNEL):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    allocs = [op for op in module.walk() if isinstance(op, AllocOp)]
    found = plan_workspace(module)
    assert [[allocs.index(op) for op in members] for members in found.members] == slots
    assert found.size == size
    assert all((op.offset is None) == (size is None) for op in allocs)


def test_a_buffer_that_is_read_elsewhere_or_again_is_not_overwritten() -> None:
    g = Builder(("x", float32, [40, 40]))
    soft = g.op("softmax", g.inputs[0], axis=-1)
    turned = g.op("add", soft, g.op("transpose", soft, perm=(1, 0)))  # reads soft at two places
    kept = g.op("softmax", turned, axis=-1)
    again = g.op("softmax", g.op("mul", kept, turned), axis=0)  # turned is read for the last time, kept is not
    module = g.outputs(g.op("softmax", again, axis=-1), g.op("softmax", kept, axis=0))
    x = np.random.default_rng(0).standard_normal((40, 40)).astype(np.float32)
    for got, want in zip(compile_native(module).run([x]), reference(module, [x]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)


def test_of_two_results_of_a_kernel_only_one_is_written_over_its_operand() -> None:
    g = Builder(("x", float32, [1, 12]), ("e", float32, []))
    x, axis = g.inputs[0], g.constant([1], np.int64)
    epsilon = g.op("abs", g.inputs[1])
    mean, square = g.op("reduce_mean", x, axis), g.op("reduce_mean", g.op("mul", x, x), axis)
    deviation = g.op("sqrt", g.op("add", square, epsilon))
    module = g.outputs(g.op("div", g.op("sub", x, mean), deviation), g.op("neg", mean), g.op("reciprocal", deviation))
    feeds = [np.arange(12, dtype=np.float32).reshape(1, 12), np.array(-0.5, np.float32)]
    for got, want in zip(compile_native(module).run(feeds), reference(module, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)


def test_workspace_whose_extents_the_run_computes() -> None:
    g = Builder(("x", float32, ["n", 8]), ("repeats", int64, [2]))
    doubled = g.op("reduce_sum", g.op("softmax", g.inputs[1 - 1], axis=-1), g.constant([0], np.int64))
    counts = g.op("add", g.inputs[1], g.constant([0, 0], np.int64))  # computed by a kernel
    tiled = g.op("softmax", g.op("tile", doubled, counts), axis=-1)
    module = g.outputs(g.op("softmax", tiled, axis=0))
    compiled = compile_native(module)
    assert compiled.sizes.slots >= 1 and compiled.sizes.places
    x = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)
    for repeats in ([2, 3], [0, 1], [30, 7], [1, 1]):
        feeds = [x, np.array(repeats)]
        np.testing.assert_allclose(compiled.run(feeds)[0], reference(module, feeds)[0], rtol=1e-5, atol=1e-7)


def test_extents_that_are_too_large_are_refused_where_they_stand() -> None:
    g = Builder(("x", float32, ["n", 1]), ("y", float32, [1, "m"]))
    outer = g.op("softmax", g.op("add", *g.inputs), axis=-1)
    compiled = compile_native(g.outputs(g.op("reduce_sum", outer, g.constant([0, 1], np.int64))))
    one = np.zeros((1, 1), np.float32)
    wide = np.lib.stride_tricks.as_strided(one, (1 << 24, 1), (0, 0))
    assert compiled.run([one, one])[0].shape == (1, 1)
    with pytest.raises((InvalidArgumentError, ExecutionError)) as caught:
        compiled.run([wide, wide.T])
    assert caught.value.code_name in ("INVALID_ARGUMENT", "RESOURCE_EXHAUSTED")
    assert compiled.run([one, one])[0].shape == (1, 1)


# ---- results


def large() -> CompiledGraph:
    g = Builder(("x", float32, ["n", 1024]))
    return compile_native(g.outputs(g.op("neg", g.inputs[0])))


def test_the_block_of_a_result_comes_back_when_the_last_view_is_gone() -> None:
    release_blocks()
    compiled = large()
    x = np.ones((512, 1024), np.float32)
    (y,) = compiled.run([x])
    address = y.ctypes.data
    assert address % HUGE == 0
    view = y[3:, 5:]
    capsule = view.__dlpack__()
    imported = np.from_dlpack(y)
    del y
    assert kept_bytes() == 0 and compiled.run([x])[0].ctypes.data != address
    held = kept_bytes()
    del view
    del imported
    assert kept_bytes() == held  # the capsule still holds it
    del capsule
    assert kept_bytes() > held
    (again,) = compiled.run([x])
    (more,) = compiled.run([x])
    assert address in (again.ctypes.data, more.ctypes.data)
    assert np.array_equal(again, -x) and np.array_equal(more, -x)


def test_free_blocks_are_few() -> None:
    release_blocks()
    compiled = large()
    for n in range(64, 6000, 64):
        compiled.run([np.ones((n, 1024), np.float32)])
    assert 0 < kept_bytes() <= KEPT
    release_blocks()
    assert kept_bytes() == 0


@pytest.mark.parametrize("dtype", ["bfloat16", "bool", "int8", "float64"])
def test_large_results_of_every_kind_of_dtype(dtype: str) -> None:
    g = Builder(("x", DType.of(dtype), ["n", 1024]))
    compiled = compile_native(g.outputs(g.op("transpose", g.inputs[0], perm=(1, 0))))
    x = (np.arange(300 * 1024) % 7 - 2).reshape(300, 1024).astype(DType.of(dtype).numpy)
    (y,) = compiled.run([x])
    assert y.dtype == x.dtype and y.flags.writeable and np.array_equal(y, x.T)


def test_memory_is_flat_over_many_runs() -> None:
    compiled = compile_native(chain("n"))
    b = np.ones(64, np.float32)
    feeds = [[np.full((n, 64), n, np.float32), b] for n in (1, 300, 40, 2000)]

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    for _ in range(50):
        for feed in feeds:
            compiled.run(feed)
    before = resident()
    small = feeds[0]
    for _ in range(5000):
        compiled.run(small)
    for _ in range(200):
        for feed in feeds:
            compiled.run(feed)
    assert resident() - before < 2 << 20


# ---- buffers of the user's


def test_native_code_writes_into_the_users_buffers(monkeypatch: pytest.MonkeyPatch) -> None:
    g = Builder(("x", float32, ["n", 8]))
    compiled = compile_native(g.outputs(g.op("neg", g.inputs[0]), g.op("exp", g.inputs[0])))
    x = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)
    out = [np.zeros((5, 8), np.float32), np.zeros((5, 8), np.float32)]

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a result was copied")

    with monkeypatch.context() as patch:
        patch.setattr(np, "copyto", refuse)
        got = compiled.run([x], out=out)
    assert got[0] is out[0] and got[1] is out[1]
    assert np.array_equal(out[0], -x)
    np.testing.assert_allclose(out[1], np.exp(x), rtol=1e-6)


def test_buffers_that_native_code_cannot_write_to_get_a_copy() -> None:
    g = Builder(("x", float32, ["n", 8]))
    compiled = compile_native(g.outputs(g.op("transpose", g.inputs[0], perm=(1, 0)), g.op("neg", g.inputs[0])))
    x = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    want = [x.T.copy(), -x]
    shared = np.zeros((16, 8), np.float32)
    raw = np.zeros(8 * 8 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(8, 8)
    for out in (
        [np.zeros((8, 8), np.float32).T, np.zeros((8, 16), np.float32)[:, ::2]],
        [raw, np.zeros((8, 8), np.float32)],
        [shared[:8], shared[8:]],
    ):
        assert [a is b for a, b in zip(compiled.run([x], out=out), out, strict=True)] == [True, True]
        assert all(np.array_equal(a, b) for a, b in zip(out, want, strict=True))
    y = x.copy()
    compiled.run([y], out=[y, np.zeros_like(y)])  # the first result overwrites what the second is made of
    assert np.array_equal(y, want[0])
    y = x.copy()
    other = np.zeros_like(y)
    compiled.run([y], out=[y, other])
    assert np.array_equal(other, want[1])


@pytest.mark.parametrize(
    ("out", "words"),
    [
        ([np.zeros((3, 1024), np.float32)], "shape"),
        ([np.zeros((2, 1024), np.float64)], "dtype float32"),
        ([np.broadcast_to(np.float32(0), (2, 1024))], "writable"),
        ([], "1 outputs"),
        ([[0.0]], "out\\[0\\]"),
    ],
)
def test_a_buffer_that_does_not_fit_is_refused(out: list[object], words: str) -> None:
    with pytest.raises(InvalidArgumentError, match=words):
        large().run([np.ones((2, 1024), np.float32)], out=out)


def test_runs_side_by_side_have_contexts_of_their_own() -> None:
    compiled = compile_native(chain("n"))
    b = np.zeros(64, np.float32)
    wrong: list[int] = []

    def work(seed: int) -> None:
        x = np.random.default_rng(seed).standard_normal((200 + seed, 64)).astype(np.float32)
        want = compiled.run([x, b])[0]
        for _ in range(40):
            if not np.array_equal(compiled.run([x, b])[0], want):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert compiled.entries == 5 * 41
    assert compiled.workspace_bytes <= 5 * 2 * padded(204 * 64 * 4)
