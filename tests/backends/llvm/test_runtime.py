"""The native runtime: one entry per run, results that stay, refusals that name their place, the cache, the fallback."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from plans import Builder
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, result_def

from sardonyx.backends.llvm.compile import compile_module, compile_native
from sardonyx.backends.llvm.fallback import HybridGraph
from sardonyx.backends.llvm.runtime import cache
from sardonyx.dialects import locations
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import float32, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx import BY_NAME
from sardonyx.errors import ExecutionError, InvalidArgumentError, UnsupportedError


def elementwise() -> ModuleOp:
    """y = relu(x * w + b) over x [batch, 37]."""
    g = Builder(("x", float32, ["batch", 37]))
    scaled = g.op("mul", g.inputs[0], g.constant((np.arange(37) - 18) / 8))
    return g.outputs(g.op("relu", g.op("add", scaled, g.constant(np.full(37, 0.5)))))


def expected(x: np.ndarray) -> np.ndarray:
    return np.maximum(x * ((np.arange(37) - 18) / 8).astype(np.float32) + np.float32(0.5), 0)


def test_a_run_enters_native_code_once_whatever_the_number_of_kernels() -> None:
    g = Builder(("x", float32, ["n", 8]))
    value = g.inputs[0]
    for _ in range(50):
        value = g.op("add", g.op("matmul", value, g.constant(np.eye(8))), g.constant(1.0))
    compiled = compile_native(g.outputs(value))
    x = np.zeros((3, 8), np.float32)
    before = compiled.entries, compiled.kernels_launched
    assert np.array_equal(compiled.run([x])[0], x + 50)
    assert compiled.entries - before[0] == 1
    assert compiled.kernels_launched - before[1] >= 50


def test_one_graph_serves_every_size_and_compiles_once() -> None:
    compiled = compile_native(elementwise())
    compiles = cache.STATISTICS.compiled
    for batch in (0, 1, 7, 8, 1000, 3):
        x = np.random.default_rng(batch).standard_normal((batch, 37)).astype(np.float32)
        (y,) = compiled.run([x])
        np.testing.assert_allclose(y, expected(x), rtol=1e-6)
    assert cache.STATISTICS.compiled == compiles


def test_two_named_dims_a_computed_reshape_and_a_concat_of_past_and_seq() -> None:
    g = Builder(("past", float32, ["batch", "past", 4]), ("x", float32, ["batch", "seq", 4]))
    past, x = g.inputs
    joined = BY_NAME["sx.concat"].make([past, x], axis=1)
    g.block.add_op(joined)
    shape = g.op("shape", joined.results[0])
    rows = g.op("gather", shape, g.constant([0, 1], np.int64), axis=0)
    target = BY_NAME["sx.concat"].make([rows, g.constant([2, 2], np.int64)], axis=0)
    g.block.add_op(target)
    reshaped = g.op("reshape", joined.results[0], target.results[0])
    assert str(reshaped.type) == "tensor<?x?x2x2xf32, #sx.dims<batch, past + seq, _, _>>"
    compiled = compile_native(g.outputs(reshaped, joined.results[0]))
    rng = np.random.default_rng(0)
    for batch, before, seq in [(0, 0, 0), (1, 0, 1), (7, 8, 1), (8, 7, 1000), (1, 1000, 0)]:
        a = rng.standard_normal((batch, before, 4)).astype(np.float32)
        b = rng.standard_normal((batch, seq, 4)).astype(np.float32)
        both = np.concatenate([a, b], 1)
        got = compiled.run([a, b])
        assert np.array_equal(got[0], both.reshape(batch, before + seq, 2, 2)) and np.array_equal(got[1], both)


def test_a_thousand_results_stay_right() -> None:
    compiled = compile_native(elementwise())
    rng = np.random.default_rng(1)
    inputs = [rng.standard_normal((k % 9, 37)).astype(np.float32) for k in range(1000)]
    results = [compiled.run([x])[0] for x in inputs]
    for x, y in zip(inputs, results, strict=True):
        np.testing.assert_allclose(y, expected(x), rtol=1e-6)


def test_results_that_native_code_allocates_outlive_the_graph() -> None:
    g = Builder(("x", float32, [4]), ("n", int64, [1]))
    compiled = compile_native(g.outputs(g.op("tile", *g.inputs)))
    x = np.arange(4, dtype=np.float32)
    results = [compiled.run([x, np.array([k])])[0] for k in range(100)]
    view = results[7][2:]
    del compiled
    for k, y in enumerate(results):
        assert np.array_equal(y, np.tile(x, k))
    assert np.array_equal(view, np.tile(x, 7)[2:])


@pytest.mark.parametrize(
    ("feed", "words"),
    [
        ([np.zeros((2, 37))], ["'x'", "float64", "float32"]),
        ([np.zeros((37,), np.float32)], ["'x'", "rank 1", "2"]),
        ([np.zeros((2, 36), np.float32)], ["'x'", "36", "axis 1", "37"]),
        ([], ["1 inputs", "0"]),
    ],
)
def test_a_wrong_input_is_named(feed: list[np.ndarray], words: list[str]) -> None:
    compiled = compile_native(elementwise())
    with pytest.raises(InvalidArgumentError) as caught:
        compiled.run(feed)
    assert all(word in str(caught.value) for word in words), caught.value


def test_inputs_that_share_a_dim_must_agree() -> None:
    g = Builder(("a", float32, ["n"]), ("b", float32, ["n"]), ("c", float32, [Dim.parse("2*n")]))
    total = g.op("add", *g.inputs[:2])
    compiled = compile_native(g.outputs(total, g.op("neg", g.inputs[2])))
    ones = np.ones(3, np.float32)
    assert np.array_equal(compiled.run([ones, ones, np.ones(6, np.float32)])[0], 2 * ones)
    with pytest.raises(ExecutionError, match="'b'.*2.*3"):
        compiled.run([ones, ones[:2], np.ones(6, np.float32)])
    with pytest.raises(ExecutionError, match="'c'.*5"):
        compiled.run([ones, ones, np.ones(5, np.float32)])


def test_a_failure_names_the_node() -> None:
    g = Builder(("x", float32, [5]), ("i", int64, ["k"]))
    compiled = compile_native(g.outputs(g.op("gather", *g.inputs)))
    x = np.arange(5, dtype=np.float32)
    assert np.array_equal(compiled.run([x, np.array([-5, 4])])[0], [0, 4])
    for bad in (5, -6, 2**62):
        with pytest.raises(ExecutionError) as caught:
            compiled.run([x, np.array([0, bad])])
        assert "gather_node" in str(caught.value) and str(bad) in str(caught.value)


def test_strided_swapped_and_unaligned_inputs() -> None:
    compiled = compile_native(elementwise())
    wide = np.random.default_rng(2).standard_normal((6, 74)).astype(np.float32)
    raw = np.zeros(37 * 4 + 1, np.uint8)
    unaligned = raw[1:].view(np.float32).reshape(1, 37)
    unaligned[:] = wide[:1, :37]
    for x in (wide[::2, ::2], wide[:, :37], wide.astype(">f4")[:, :37], unaligned, wide[::-1, 36::-1]):
        np.testing.assert_allclose(compiled.run([x])[0], expected(np.ascontiguousarray(x, np.float32)), rtol=1e-6)


def test_results_go_into_the_users_buffers() -> None:
    compiled = compile_native(elementwise())
    x = np.random.default_rng(3).standard_normal((4, 37)).astype(np.float32)
    out = np.empty((4, 37), np.float32)
    assert compiled.run([x], out=[out])[0] is out
    np.testing.assert_allclose(out, expected(x), rtol=1e-6)
    with pytest.raises(InvalidArgumentError, match="shape"):
        compiled.run([x], out=[np.empty((3, 37), np.float32)])


def test_runs_side_by_side() -> None:
    g = Builder(("x", float32, ["n", 64]))
    value = g.inputs[0]
    for _ in range(4):
        value = g.op("matmul", value, g.constant(np.eye(64) * 2))
    compiled = compile_native(g.outputs(value))
    wrong: list[str] = []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(30):
            x = rng.standard_normal((int(rng.integers(1, 200)), 64)).astype(np.float32)
            if not np.array_equal(compiled.run([x])[0], x * 16):
                wrong.append(f"thread {seed}")

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_no_numpy_computes_in_a_native_run(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = compile_native(elementwise())
    x = np.ones((3, 37), np.float32)
    want = expected(x)

    def refuse(*_: Any, **__: Any) -> Any:
        raise AssertionError("NumPy computed in a native run")

    for name in ("add", "multiply", "maximum", "matmul", "dot", "sum", "where", "exp", "copyto"):
        monkeypatch.setattr(np, name, refuse)
    for op in BY_NAME.values():
        monkeypatch.setattr(op, "evaluate", refuse)
    assert compiled.run([x])[0].tolist() == want.tolist()


# ---- the cache

CHILD = """
import sys
sys.path[:0] = {paths!r}
from test_runtime import elementwise
from sardonyx.backends.llvm.compile import compile_native
from sardonyx.backends.llvm.runtime import cache
import numpy as np
compile_native(elementwise()).run([np.ones((2, 37), np.float32)])
print(cache.STATISTICS.compiled, cache.STATISTICS.loaded, cache.STATISTICS.damaged)
"""


def _child(folder: Any, **env: str) -> tuple[int, int, int]:
    here = Path(__file__).parent
    code = CHILD.format(paths=[str(here), str(here.parents[1] / "support")])
    environment = {**os.environ, "SARDONYX_CACHE_DIR": str(folder), "SARDONYX_NUM_THREADS": "1", **env}
    found = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    compiled, loaded, damaged = map(int, found.stdout.split())
    return compiled, loaded, damaged


def test_a_second_process_compiles_nothing_and_damaged_files_are_rebuilt(tmp_path: Any) -> None:
    assert _child(tmp_path) == (1, 0, 0)
    assert _child(tmp_path) == (0, 1, 0)
    for entry in (*tmp_path.glob("*.o"), *tmp_path.glob("*.program")):
        content = bytearray(entry.read_bytes())
        content[len(content) // 2] ^= 0xFF
        entry.write_bytes(content)
    assert _child(tmp_path) == (1, 0, 2)
    assert _child(tmp_path, SARDONYX_CACHE="0") == (1, 0, 0)
    assert not list(tmp_path.glob("*.part"))


# ---- the fallback


@irdl_op_definition
class OddOp(SxOp):
    """x + 1 by the reference only."""

    name = "test.odd"
    x = operand_def()
    output = result_def()

    def infer(self) -> Sequence[Attribute]:
        return [self.x.type]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        return [arrays[0] + 1]  # pyright: ignore[reportOptionalOperand]


def mixed() -> ModuleOp:
    g = Builder(("x", float32, ["n", 4]))
    first = g.op("mul", g.inputs[0], g.constant(2.0))
    odd = OddOp.make(first, location=locations.name_location("odd_node"))
    g.block.add_op(odd)
    last = g.op("mul", odd.output, g.op("relu", first))
    return g.outputs(last, g.inputs[0], odd.output)


def test_an_op_without_native_form_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedError) as caught:
        compile_module(mixed())
    assert "odd_node" in str(caught.value) and "test.odd" in str(caught.value)
    assert caught.value.code_name == "NOT_IMPLEMENTED"


def test_a_fallback_that_was_asked_for_runs_and_is_listed() -> None:
    compiled = compile_module(mixed(), fallback=True)
    assert isinstance(compiled, HybridGraph)
    assert [(f.op, f.location) for f in compiled.fallbacks] == [("test.odd", "node 'odd_node'")]
    x = np.array([[1, -2, 3, 0]], np.float32)
    y, same, odd = compiled.run([x])
    assert np.array_equal(odd, 2 * x + 1) and np.array_equal(same, x)
    assert np.array_equal(y, (2 * x + 1) * np.maximum(2 * x, 0))
    with pytest.raises(InvalidArgumentError, match="'x'"):
        compiled.run([x.astype(np.float64)])


def test_without_a_need_nothing_falls_back() -> None:
    assert not isinstance(compile_module(elementwise(), fallback=True), HybridGraph)
