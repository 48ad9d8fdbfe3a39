"""Large results go past the caches: the same values, nothing beside the buffers, whatever the alignment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from guard import EDGES, run_guarded
from op_case import op
from three_ways import Case, build, case, compare, sample

import sardonyx as sx
from sardonyx.backends.llvm.build import emit_module, lower
from sardonyx.backends.llvm.codegen import nontemporal
from sardonyx.backends.llvm.runtime import jit
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.module import main_function


@pytest.fixture
def small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results of 256 bytes are large; no program of this test is kept."""
    monkeypatch.setattr(nontemporal, "LARGE", 256)
    monkeypatch.setenv("SARDONYX_CACHE", "0")


def cases() -> Iterator[Case]:
    for rows, columns in ((5, 64), (4, 37), (1, 256), (0, 64), (7, 48)):
        x = sample("float32", rows, columns)
        yield case(op("relu"), x)
        yield case(op("add"), x, sample("float32", columns, seed=1))
        yield case(op("softmax"), x, axis=-1)
        yield case(op("layer_norm"), x, sample("float32", columns), sample("float32", columns, seed=2), axis=-1)
    yield case(op("cast"), sample("float32", 9, 32), to=sx.float16)
    yield case(op("cast"), sample("float32", 9, 32), to=sx.int8)
    yield case(op("exp"), sample("float64", 3, 5, 16))
    yield case(op("softmax"), sample("float64", 6, 40), axis=-1)
    yield case(op("softmax"), sample("float32", 3, 2304), axis=-1)  # longer than what waits on the stack
    yield case(op("log_softmax"), sample("float16", 6, 96), axis=-1)
    yield case(op("softmax"), sample("float32", 32, 6), axis=0)


@pytest.mark.usefixtures("small_is_large")
@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_values_are_the_same_and_nothing_beside_the_buffers_is_written(mode: str) -> None:
    graph = build(list(cases()), mode)
    expected = evaluate_function(main_function(graph.module), graph.feeds)
    for edge in EDGES:  # what begins on a page is aligned, what ends on one may not be
        got = run_guarded(graph.module, graph.feeds, edge, threads=3)
        for (one, number), a, b in zip(graph.outputs, got, expected, strict=True):
            problem = compare(one.op.name, a, np.asarray(b))
            assert problem is None, f"{one} result {number}: {problem}"


@sx.signature("x: f32[64,128], w: f32[128]")
def mapped(x: sx.Tensor, w: sx.Tensor) -> sx.Tensor:
    return sx.relu(x * w)


@sx.signature("x: f32[64,128]")
def squashed(x: sx.Tensor) -> sx.Tensor:
    return sx.softmax(x, axis=-1)


@sx.signature("x: f32[64,128]")
def read_again(x: sx.Tensor) -> tuple[sx.Tensor, sx.Tensor]:
    y = sx.relu(x)
    return y, sx.matmul(y, sx.transpose(y, (1, 0)))


def assembly(fn: Callable[..., Any]) -> str:
    return jit.to_assembly(emit_module(lower(sx.trace(fn).graph.module, None, False))[0])


@pytest.mark.skipif(not jit.native_target().triple.startswith("x86_64"), reason="of other processors none is known")
@pytest.mark.usefixtures("small_is_large")
@pytest.mark.parametrize("fn", [mapped, squashed])
def test_large_results_are_written_in_whole_lines_behind_a_fence(fn: Callable[..., Any]) -> None:
    text = assembly(fn)
    assert "movnt" in text and "sfence" in text
    assert "movnti" not in text  # what is not aligned would be written element by element


@pytest.mark.usefixtures("small_is_large")
def test_what_a_kernel_reads_again_stays_in_the_caches() -> None:
    assert "movnt" not in assembly(read_again)


def test_small_results_stay_in_the_caches() -> None:
    for fn in (mapped, squashed):
        assert "movnt" not in assembly(fn)


@pytest.mark.usefixtures("small_is_large")
@pytest.mark.parametrize("shift", [0, 4, 16, 32, 64])
def test_buffers_of_the_caller_may_lie_anywhere(shift: int) -> None:
    graph = sx.trace(squashed).graph
    graph.finalize()
    x = sample("float32", 64, 128)
    memory = np.full(64 * 128 * 4 + 256, 7, np.uint8)
    begin = -memory.ctypes.data % 64 + shift
    out = memory[begin : begin + x.nbytes].view(np.float32).reshape(x.shape)
    graph.run([x], out=[out])
    np.testing.assert_allclose(out, np.asarray(graph.evaluate([x])[0]), rtol=1e-5, atol=1e-7)
    assert (memory[:begin] == 7).all() and (memory[begin + x.nbytes :] == 7).all()
