"""The quick way of small runs: the same results and refusals as the careful one, and no reference too many or few."""

from __future__ import annotations

import gc
import os
import sys
import threading
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.errors import ExecutionError, FailedPreconditionError, InvalidArgumentError


@sx.signature("x: f32[batch,5], y: f32[batch,1]")
def two(x: Any, y: Any) -> Any:
    return x + y, sx.sum(x, axis=0), sx.cast(x, sx.float16)


def finalized(fn: Any) -> sx.ModelGraph:
    graph = sx.trace(fn).graph
    graph.finalize()
    return graph


def arrays(batch: int) -> list[np.ndarray]:
    rng = np.random.default_rng(batch)
    return [rng.standard_normal((batch, n)).astype(np.float32) for n in (5, 1)]


@pytest.fixture(scope="module")
def graph() -> sx.ModelGraph:
    return finalized(two)


@pytest.mark.parametrize("batch", [0, 1, 7, 300])
def test_results_are_those_of_the_careful_way(graph: sx.ModelGraph, batch: int) -> None:
    given = arrays(batch)
    expected = graph.compiled.run_carefully(given)
    for inputs in (given, tuple(given), [sx.Tensor(a) for a in given], [given[0], sx.Tensor(given[1])]):
        quick = graph._quick(inputs)
        assert quick is not None and all(type(t) is sx.Tensor for t in quick)
        for a, b, c in zip(quick, expected, graph.run(inputs), strict=True):
            assert a.dtype == c.dtype and a.shape == b.shape
            assert np.array_equal(np.asarray(a), b) and np.array_equal(np.asarray(c), b)


def test_each_result_has_memory_of_its_own(graph: sx.ModelGraph) -> None:
    results = [graph.run(arrays(k % 9)) for k in range(500)]
    for k, (total, *_) in enumerate(results):
        x, y = arrays(k % 9)
        assert np.array_equal(np.asarray(total), x + y)
    first = np.asarray(results[1][0])
    assert first.flags.writeable and first.flags.owndata and first.flags.c_contiguous


def test_what_is_out_of_the_ordinary_goes_the_careful_way(graph: sx.ModelGraph) -> None:
    x, y = arrays(6)
    wide = np.zeros((6, 10), np.float32)
    wide[:, ::2] = x
    swapped = x.astype(">f4")
    for inputs in ([wide[:, ::2], y], [x.tolist(), y], {"x": x, "y": y}, [swapped, y]):
        assert graph._quick(inputs) is None
    for inputs in ([wide[:, ::2], y], [swapped, y], {"x": x, "y": y}):
        assert np.array_equal(np.asarray(graph.run(inputs)[0]), x + y)
    large = arrays(200_000)
    assert graph._quick(large) is None  # a result of 4 MB lies in a block that comes back
    assert np.array_equal(np.asarray(graph.run(large)[0]), large[0] + large[1])

    class Array(np.ndarray):
        pass

    assert graph._quick([x.view(Array), y]) is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x, y: [x.astype(np.float64), y], ["'x'", "float64", "float32"]),
        (lambda x, y: [x[0], y], ["'x'", "rank 1"]),
        (lambda x, y: [x[:, :4].copy(), y], ["'x'", "4", "axis 1"]),
        (lambda x, y: [x], ["2 inputs", "1"]),
        (lambda x, y: [], ["2 inputs", "0"]),
        (lambda x, y: [x, None], ["y"]),
    ],
)
def test_wrong_inputs_are_refused_as_before(graph: sx.ModelGraph, change: Any, words: list[str]) -> None:
    inputs = change(*arrays(3))
    assert graph._quick(inputs) is None
    with pytest.raises((InvalidArgumentError, TypeError)) as caught:
        graph.run(inputs)
    assert all(word in str(caught.value) for word in words)


def test_extents_that_disagree_are_an_error_of_the_run(graph: sx.ModelGraph) -> None:
    x, _ = arrays(3)
    inputs = [x, np.zeros((2, 1), np.float32)]
    assert graph._quick(inputs) is None
    with pytest.raises((ExecutionError, InvalidArgumentError), match="batch"):
        graph.run(inputs)
    assert len(graph.run(arrays(3))) == 3  # the context came back


def test_nothing_is_kept_or_let_go_of(graph: sx.ModelGraph) -> None:
    x, y = arrays(4)
    tensors = [sx.Tensor(x), sx.Tensor(y)]
    held = np.zeros((2, 1), np.float32)
    graph.run([x, y])
    kinds = [np.dtype(np.float32), np.dtype(np.float16), np.ndarray, sx.Tensor]
    watched = [x, y, *tensors, held, *kinds, graph.compiled._idle]
    gc.collect()
    before, blocks = [sys.getrefcount(o) for o in watched], sys.getallocatedblocks()
    for _ in range(2000):
        graph.run([x, y])
        graph.run(tensors)
        assert graph._quick([x, held]) is None
        assert graph._quick([x, 3]) is None
    gc.collect()
    assert [sys.getrefcount(o) for o in watched] == before
    assert sys.getallocatedblocks() - blocks < 200


def test_scalars_and_graphs_without_inputs() -> None:
    @sx.signature("x: f64[]")
    def doubled(x: Any) -> Any:
        return x * 2.0

    (result,) = finalized(doubled).run([np.array(1.5)])
    assert result.shape == () and float(result) == 3.0

    @sx.signature("")
    def constant() -> Any:
        return sx.Tensor(np.arange(3)) + 1

    (result,) = finalized(constant).run([])
    assert np.array_equal(np.asarray(result), [1, 2, 3])


def test_threads_run_side_by_side() -> None:
    graph = finalized(two)
    failures: list[Any] = []

    def work(seed: int) -> None:
        for k in range(300):
            x, y = arrays((seed + k) % 11)
            if not np.array_equal(np.asarray(graph.run([x, y])[0]), x + y):
                failures.append((seed, k))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forked children here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_runs(graph: sx.ModelGraph) -> None:
    x, y = arrays(5)
    child = os.fork()
    if not child:
        code = 1
        try:
            code = 0 if np.array_equal(np.asarray(graph.run([x, y])[0]), x + y) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_edited_graph_refuses(graph: sx.ModelGraph) -> None:
    other = finalized(two)
    with other.edit():
        pass
    with pytest.raises(FailedPreconditionError, match="finalize"):
        other.run(arrays(2))
