"""Native scatters against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from three_ways import Array, Case, both_refuse, build, case, check_all, sample

from sardonyx.backends.llvm.compile import compile_module
from sardonyx.backends.llvm.runtime.call import CompiledGraph
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx.scatter import REDUCTIONS, ScatterElementsOp, ScatterNDOp, TensorScatterOp

MOVED = ("bool", "int8", "uint16", "int32", "uint64", "float16", "bfloat16", "float64")
REDUCED = ("bool", "int8", "uint8", "int64", "uint32", "float16", "bfloat16", "float32", "float64")


def indices(*shape: int, size: int, dtype: str = "int64", seed: int = 0) -> Array:
    """Places in [-size, size), of which several are the same."""
    return np.random.default_rng([seed, *shape]).integers(-size, size, shape).astype(dtype)


def elements(dtype: str, shape: tuple[int, ...], places: tuple[int, ...], axis: int, reduction: str) -> Case:
    at = indices(*places, size=shape[axis], dtype="int32" if axis else "int64")
    data, updates = sample(dtype, *shape), sample(dtype, *places, seed=1)
    return case(ScatterElementsOp, data, at, updates, axis=axis, reduction=reduction)


SHAPES: list[tuple[tuple[int, ...], tuple[int, ...], int]] = [
    ((7,), (12,), 0), ((1,), (3,), -1), ((5, 9), (11, 9), 0), ((5, 9), (3, 7), 0), ((5, 9), (4, 33), 1),
    ((3, 4, 5), (3, 6, 2), 1), ((3, 4, 5), (2, 4, 9), -1), ((3, 4, 5), (7, 1, 5), -3), ((2, 300), (4, 300), 0),
    ((3, 4), (0, 4), 0), ((3, 4), (3, 0), 1), ((0, 4), (0, 3), 1), ((2, 1, 3, 2), (2, 1, 5, 2), 2),
]  # fmt: skip


PAIRS = [(dtype, reduction) for dtype in REDUCED for reduction in REDUCTIONS[1:]]
"""Every second one goes to the elements, the others to the slices: what combines is the same."""


def test_elements_are_put_in() -> None:
    check_all([elements(dtype, *SHAPES[2], "none") for dtype in MOVED], ("mixed",))


@pytest.mark.parametrize("mode", ["static", "dynamic", "constant"])
def test_elements_of_awkward_shapes(mode: str) -> None:
    check_all([elements("float32", *one, "add") for one in SHAPES], (mode,))


def test_elements_are_combined() -> None:
    check_all([elements(dtype, *SHAPES[4], reduction) for dtype, reduction in PAIRS[::2]], ("mixed",))


def slices(dtype: str, shape: tuple[int, ...], tuples: tuple[int, ...], length: int, reduction: str) -> Case:
    columns = [indices(*tuples, size=max(shape[k], 1), seed=k) for k in range(length)]
    at = np.stack(columns, -1) if columns else np.zeros((*tuples, 0), np.int64)
    updates = sample(dtype, *tuples, *shape[length:], seed=1)
    return case(ScatterNDOp, sample(dtype, *shape), at, updates, reduction=reduction)


TUPLES: list[tuple[tuple[int, ...], tuple[int, ...], int]] = [
    ((7,), (12,), 1), ((5, 9), (4,), 1), ((5, 9), (3, 4), 2), ((3, 4, 5), (6,), 2), ((3, 600), (5,), 1),
    ((3, 4, 5), (0,), 1), ((3, 0), (2,), 1), ((3, 4), (2,), 0), ((3, 4), (), 1), ((3, 4), (), 0), ((5,), (2, 2), 1),
]  # fmt: skip


def test_slices_are_put_in() -> None:
    check_all([slices(dtype, *TUPLES[1], "none") for dtype in MOVED], ("mixed",))


@pytest.mark.parametrize("mode", ["static", "shared"])
def test_slices_of_awkward_shapes(mode: str) -> None:
    check_all([slices("float32", *one, "mul") for one in TUPLES], (mode,))


def test_slices_are_combined() -> None:
    check_all([slices(dtype, *TUPLES[4], reduction) for dtype, reduction in PAIRS[1::2]], ("mixed",))


def test_nan_wins_a_maximum() -> None:
    data, updates = np.array([1.0, np.nan, -np.inf], np.float32), np.array([np.nan, 2.0, -0.0], np.float32)
    at = np.arange(3)
    cases = [case(ScatterElementsOp, data, at, updates, reduction=r) for r in ("max", "min", "add")]
    check_all(cases, ("static",))


@pytest.mark.parametrize("threads", [2, 5])
def test_sums_are_those_of_one_thread(threads: int) -> None:
    x, updates = sample("float32", 3, 3000), sample("float32", 500, 3000, seed=1)
    graph = build(
        [
            case(ScatterElementsOp, x, indices(500, 3000, size=3), updates, axis=0, reduction="add"),
            case(ScatterNDOp, x, indices(500, 1, size=3), updates, reduction="add"),
        ],
        "static",
    )
    native = compile_module(graph.module)
    assert isinstance(native, CompiledGraph)
    native.use_threads(1)
    expected = native.run(graph.feeds)
    native.use_threads(threads)
    for a, b in zip(native.run(graph.feeds), expected, strict=True):
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_bad_indices_end_the_run(mode: str) -> None:
    x = sample("float32", 4, 5)
    for bad in (4, -5, 1 << 40):
        at = np.array([[0, 1, bad, 2, 3]])
        for message in both_refuse(ScatterElementsOp, x, at, sample("float32", 1, 5), axis=0, modes=(mode,)):
            assert f"index {bad} is out of range for axis 0 with 4 elements" in message
        for message in both_refuse(ScatterNDOp, x, np.array([[0, 1], [bad, 2]]), sample("float32", 2), modes=(mode,)):
            assert str(bad) in message


def test_updates_that_do_not_fit_end_the_run() -> None:
    x = sample("float32", 4, 5)
    both_refuse(ScatterElementsOp, x, np.zeros((1, 6), np.int64), sample("float32", 1, 6), axis=0)
    both_refuse(ScatterElementsOp, x, np.zeros((1, 5), np.int64), sample("float32", 1, 4), axis=0)
    both_refuse(ScatterNDOp, x, np.zeros((3, 1), np.int64), sample("float32", 3, 4), modes=("shared",))


@pytest.mark.parametrize(("dtype", "mode"), [("float32", "static"), ("bfloat16", "dynamic"), ("int8", "constant")])
def test_caches_are_written(dtype: str, mode: str) -> None:
    cases = []
    for shape, axis, count in (((2, 4, 7, 3), -2, 3), ((3, 5), 1, 5), ((2, 9, 2), 1, 1), ((2, 4, 3), -1, 0)):
        room = shape[axis]
        updated = [count if k == axis % len(shape) else n for k, n in enumerate(shape)]
        cache, update = sample(dtype, *shape), sample(dtype, *updated, seed=1)
        starts = np.arange(shape[0]) % (room - count + 1)
        cases.append(case(TensorScatterOp, cache, update, starts, axis=axis))
        cases.append(case(TensorScatterOp, cache, update, starts + room - 1, axis=axis, mode="circular"))
        cases.append(case(TensorScatterOp, cache, update, None, axis=axis))
    check_all(cases, (mode,))


def test_writes_beyond_a_cache_end_the_run() -> None:
    cache, update = sample("float32", 2, 4, 3), sample("float32", 2, 2, 3)
    for starts in ([0, 3], [-1, 0]):
        for message in both_refuse(TensorScatterOp, cache, update, np.array(starts)):
            assert "2 elements from index" in message
    both_refuse(TensorScatterOp, cache, update, np.array([0, -1]), mode="circular")
    both_refuse(TensorScatterOp, cache, update, np.array([0]))
    both_refuse(TensorScatterOp, cache, sample("float32", 2, 5, 3), None)


def test_one_program_serves_all_sizes() -> None:
    at = indices(6, size=4)
    graph = build([case(ScatterElementsOp, sample("int64", 4), at, sample("int64", 6), reduction="add")], "dynamic")
    native = compile_module(graph.module)
    for n in (1, 4, 33, 100):
        feeds = [sample("int64", n), indices(2 * n, size=n), sample("int64", 2 * n, seed=2)]
        (expected,) = evaluate_function(main_function(graph.module), feeds)
        assert np.array_equal(native.run(feeds)[0], expected)
