"""In-place writes: on eager tensors, in traces, and on captured tensors, which become states of the graph."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sardonyx as sx
from sardonyx.errors import InvalidArgumentError, UnsupportedError
from sardonyx.frontend.tensor import Tensor

A = np.arange(12, dtype=np.float32).reshape(3, 4)


def graph_of(fn: Callable[..., Any], signature: Any, **options: Any) -> sx.ModelGraph:
    return sx.trace(fn, signature, **options).graph


# ---- eager


def test_a_write_changes_the_tensor_and_no_array():
    array = A.copy()
    x = sx.asarray(array)
    view, same = x.reshape(12), x
    assert sx.add_(x, 1) is x and x.mul_(2) is x
    x -= np.ones(4, np.float32)
    assert x is same and x.tolist() == ((A + 1) * 2 - 1).tolist()
    assert array.tolist() == A.tolist() and view.tolist() == A.reshape(12).tolist()
    x.zero_().fill_(3).copy_(np.arange(4, dtype=np.float32))
    assert x.tolist() == [[0, 1, 2, 3]] * 3
    i = sx.asarray([4, 5])
    i //= 2
    i |= 8
    i <<= 1
    assert i.tolist() == [20, 20] and i.dtype == sx.int64
    assert sx.relu_(sx.asarray([-1.0, 2.0])).tolist() == [0, 2]


@pytest.mark.parametrize(("write", "message"), [
    (lambda x: x.add_(np.ones((2, 3, 4), np.float32)), r"add_\(\): the shape \[2, 3, 4\] does not fit into \[3, 4\]"),
    (lambda x: x.astype(sx.int64).div_(2), r"div_\(\) would make float32 of a tensor of int64"),
    (lambda x: x.copy_(np.ones(3, np.float32)), "3"),
    (lambda x: x.__setitem__((0, 0, 0), 1), "too many indices"),
    (lambda x: x.__setitem__(9, 1), "out of bounds"),
    (lambda x: x.__setitem__(0, np.ones(3, np.float32)), "could not broadcast"),
    (lambda x: x.astype(sx.int64).__setitem__(0, 0.5), "the number 0.5 is no int64"),
    (lambda x: sx.add_(x.numpy(), 1), "writes to a Tensor, not to ndarray"),
])  # fmt: skip
def test_writes_that_do_not_fit(write: Callable[[sx.Tensor], object], message: str):
    with pytest.raises(InvalidArgumentError, match=message):
        write(sx.asarray(A))


# ---- parts


def put(key: Any, value: Any) -> Callable[..., Any]:
    def fn(x: Any) -> Any:
        x = x.copy()
        x[key] = value
        return x

    return fn


V4 = np.array([9, 8, 7, 6], np.float32)
KEYS: list[tuple[Any, Any]] = [
    (..., 5), (slice(None), V4), (0, V4), (-1, 2), ((1, 2), 7), ((slice(None), 1), np.float32(3)),
    ((slice(1, None), slice(0, 2)), np.ones((2, 2), np.float32)), (slice(1, 2), V4), (slice(None, None, -2), V4),
    ((..., slice(-2, None)), 0), ((0, slice(3, 1)), 4), (np.array([2, 0]), V4),
    ((np.array([0, 2]), np.array([1, 3])), 5), (A > 5, -1), (np.array([True, False, True]), 3), (slice(0, 2), V4[None]),
]  # fmt: skip


@pytest.mark.parametrize("dims", ["3,4", "n,m"])
def test_parts(dims: str):
    keys = [(k, v) for k, v in KEYS if dims == "3,4" or not isinstance(k, np.ndarray) or k.dtype != bool or k.ndim == 2]
    fns = [put(k, v) for k, v in keys]
    graph = graph_of(lambda x: [fn(x) for fn in fns], f"x: f32[{dims}]")
    wanted = [fn(A) for fn in fns]
    executions = [graph.evaluate([A]), [fn(sx.asarray(A)) for fn in fns]]
    if dims == "3,4":
        graph.finalize()
        executions.append(graph.run([A]))
    for results in executions:
        for (key, _), got, want in zip(keys, results, wanted, strict=True):
            np.testing.assert_array_equal(got, want, err_msg=str(key))


def test_parts_of_traced_tensors_that_do_not_fit():
    for key, value, message in [
        (0, np.ones(3, np.float32), "3"),
        (slice(0, 1), np.ones((2, 1, 4), np.float32), r"a value of shape \[2, 1, 4\] for a part of shape \[1, 4\]"),
        (A > 0, V4, r"x\[mask\] = values: how many values"),
        (9, 1, "out of range"),
    ]:
        with pytest.raises(InvalidArgumentError, match=message):
            sx.trace(put(key, value), "x: f32[3,4]")


# ---- states


def step_of(cache: sx.Tensor, count: sx.Tensor) -> Callable[[sx.Tensor], Any]:
    def step(x: sx.Tensor) -> Any:
        before = cache * 2  # of captured tensors only, before the first write
        cache.add_(x)
        cache[0] = 5.0
        global_count = count
        global_count += 1
        return sx.relu(cache) + before, count

    return step


def numpy_step(cache: np.ndarray, count: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, ...]:
    before = cache * 2
    cache += x
    cache[0] = 5
    count += 1
    return np.maximum(cache, 0) + before, count


def test_every_run_rewrites_the_state():
    cache, count = sx.zeros(3, 4), sx.asarray(np.zeros(2, np.int64))
    graph = graph_of(step_of(cache, count), "x: f32[3,4]", output_names=["y", "n"])
    assert cache.tolist() == np.zeros((3, 4)).tolist() and count.tolist() == [0, 0], "tracing changes nothing"
    assert graph.output_names() == ["y", "n", "state_out_0", "state_out_1"]
    assert graph.states()["state_0"] is cache and graph.states()["state_1"] is count
    mine, number = np.zeros((3, 4), np.float32), np.zeros(2, np.int64)
    snapshots: list[tuple[Any, np.ndarray]] = []
    graph.finalize()
    plain = graph.clone()
    for turn in range(6):
        if turn == 2:
            graph.optimize()
            graph.finalize()
        run = graph.evaluate if turn == 1 else graph.run
        y, n = numpy_step(mine, number, A)
        results = run({"x": A} if turn == 3 else [A])
        for got, want in zip(results, (y, n, mine, number), strict=True):
            np.testing.assert_array_equal(got, want)
        snapshots.append((results[2], mine.copy()))
        assert cache.tolist() == mine.tolist() and count.tolist() == number.tolist()
        if turn == 4:
            cache.mul_(0.5)  # the user may write between runs
            mine *= np.float32(0.5)
    for got, want in snapshots:
        np.testing.assert_array_equal(got, want, err_msg="results of earlier runs stay")
    with pytest.raises(ValueError, match="read-only"):
        snapshots[-1][0].numpy()[:] = 0
    assert plain.evaluate([A])[1].tolist() == [1, 1], "a clone has states of its own"


def test_out_buffers_and_wrong_inputs():
    total = sx.zeros(3, 4)
    graph = graph_of(lambda x: total.add_(x) * 1, "x: f32[3,4]")
    graph.finalize()
    out = [np.zeros((3, 4), np.float32), np.zeros((3, 4), np.float32)]
    assert graph.run([A], out=out)[1].numpy() is out[1]
    out[1][:] = 7
    assert total.tolist() == A.tolist() == out[0].tolist()
    for wrong in ([A.T], [A.astype(np.float64)], []):
        with pytest.raises(InvalidArgumentError):
            graph.run(wrong)
    with pytest.raises(InvalidArgumentError, match="2 outputs, got 1 buffers"):
        graph.run([A], out=out[:1])
    assert graph.run([A])[1].tolist() == (2 * A + A).tolist(), "the run with wrong buffers was made"


def test_runs_are_serialised():
    total = sx.zeros(1)
    graphs = [graph_of(lambda x: total.add_(x), "x: f32[1]") for _ in range(2)]
    for graph in graphs:
        graph.finalize()

    def work(graph: sx.ModelGraph) -> None:
        for _ in range(200):
            graph.run([np.ones(1, np.float32)])

    threads = [threading.Thread(target=work, args=(graphs[n % 2],)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert total.tolist() == [800]


def test_copies_and_pickles():
    total = sx.asarray(A)
    graph = graph_of(lambda x: total.add_(x), "x: f32[3,4]")
    for other in (pickle.loads(pickle.dumps(graph)), copy.deepcopy(graph), copy.copy(graph)):
        other.finalize()
        assert other.run([A])[0].tolist() == (2 * A).tolist() and total.tolist() == A.tolist()
        assert other.run([A])[0].tolist() == (3 * A).tolist()


def test_a_module_without_its_states_begins_with_zeros():
    total = sx.asarray(A)
    graph = sx.ModelGraph(graph_of(lambda x: total.add_(x), "x: f32[3,4]").module.clone())
    graph.finalize()
    assert graph.run([A])[0].tolist() == A.tolist() and graph.run([A])[0].tolist() == (2 * A).tolist()


def test_jit_with_a_state():
    count = sx.zeros(1)

    @sx.jit
    def step(x: sx.Tensor) -> dict[str, sx.Tensor]:
        count.add_(1)
        return {"y": x + count}

    for turn in range(1, 4):
        assert step(A)["y"].tolist() == (A + turn).tolist() and count.tolist() == [turn]


def test_what_is_no_state():
    def fn(x: sx.Tensor) -> Any:
        acc = sx.zeros(3, 4)
        acc += x
        x += 1  # the graph's input, which stays the caller's
        read = sx.asarray(A)
        return acc, x, read * 2

    graph = graph_of(fn, "x: f32[3,4]")
    assert not graph.states() and len(graph.outputs()) == 3
    graph.finalize()
    given = A.copy()
    for got, want in zip(graph.run([given]), (A, A + 1, A * 2), strict=True):
        np.testing.assert_array_equal(got, want)
    assert given.tolist() == A.tolist()


def test_tracing_that_fails_leaves_the_tensors_alone():
    cache = sx.zeros(3, 4)

    def fails(x: sx.Tensor) -> Any:
        cache.add_(x)
        return bool(cache.sum())

    with pytest.raises(InvalidArgumentError, match="no truth value"):
        sx.trace(fails, "x: f32[3,4]")
    assert not cache.is_traced and cache.tolist() == np.zeros((3, 4)).tolist()
    kept: list[Tensor] = []
    sx.trace(lambda x: kept.append(sx.zeros(3, 4).add_(x)) or x, "x: f32[3,4]")
    with pytest.raises(InvalidArgumentError, match="used after that trace has ended"):
        sx.add(kept[0], 1)


# ---- ONNX


def test_onnx_has_no_state(tmp_path: Path):
    cache = sx.asarray(A)
    graph = graph_of(lambda x: sx.relu(cache.add_(x)), "x: f32[3,4]", output_names=["y"])
    for call in (lambda: graph.export_onnx(tmp_path / "m.onnx"), lambda: sx.OnnxModel.from_graph(graph)):
        with pytest.raises(UnsupportedError, match="'state_out_0'.*ONNX cannot state.*attach_kv_cache") as caught:
            call()
        assert caught.value.code_name == "NOT_IMPLEMENTED_FOR_PARAM" and "explicit_state" in str(caught.value.hint)
    assert not list(tmp_path.iterdir())
    graph.export_onnx(tmp_path / "m.onnx", explicit_state=True)
    back = sx.OnnxModel.open(str(tmp_path / "m.onnx")).compile()
    assert back.input_names() == ["x", "state_0"] and back.output_names() == ["y", "state_out_0"]
    assert back.evaluate([A, A])[1].tolist() == (2 * A).tolist() and graph.states()["state_0"].tolist() == A.tolist()


def test_traces_in_several_threads_know_their_own_tensors():
    failures: list[object] = []
    barrier = threading.Barrier(3)

    def work() -> None:
        def fn(x: sx.Tensor) -> sx.Tensor:
            acc = sx.zeros(3)
            barrier.wait()
            acc.add_(x)
            barrier.wait()
            return acc

        graph = graph_of(fn, "x: f32[3]")
        if graph.states():
            failures.append(graph)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_cache_with_a_position_of_its_own():
    cache, position = sx.zeros(6, 2), sx.asarray(np.array(0))

    def step(x: sx.Tensor) -> sx.Tensor:
        cache[position : position + 2] = x
        cache[position] = 7
        position.add_(2)
        return sx.where((sx.arange(6) < position)[:, None], cache, 0).sum(0)

    graph = graph_of(step, "x: f32[2,2]")
    graph.finalize()
    for turn, run in enumerate((graph.run, graph.evaluate, graph.run), 1):
        assert run([np.full((2, 2), turn, np.float32)])[0].tolist() == [7 * turn + sum(range(turn + 1))] * 2
    assert position.tolist() == 6 and cache.tolist() == [[7, 7], [1, 1], [7, 7], [2, 2], [7, 7], [3, 3]]
