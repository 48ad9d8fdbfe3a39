"""Native top_k and unique against the reference: all orders of all dtypes, short lists and long ones."""

from __future__ import annotations

import numpy as np
import pytest
from three_ways import Array, both_refuse, build, case, check_all, sample, specials

from sardonyx.backends.llvm.compile import compile_module
from sardonyx.backends.llvm.runtime.call import CompiledGraph
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx.topk import TopKOp
from sardonyx.dialects.sx.unique import UniqueOp

SORTED = [d.name for d in TopKOp.DTYPES]


@pytest.mark.parametrize("dtype", SORTED)
def test_all_values_are_in_order(dtype: str) -> None:
    many = np.tile(specials(dtype), 9)
    # All of them one way round, a few the other.
    down = SORTED.index(dtype) % 2
    check_all([case(TopKOp, many, np.array([len(many)]), largest=down)], ("mixed",))


def test_the_greatest_and_the_smallest_of_some_dtypes() -> None:
    dtypes = ("float32", "float16", "int64", "uint8")
    check_all([case(TopKOp, np.tile(specials(d), 9), np.array([5]), largest=n % 2) for n, d in enumerate(dtypes)],
              ("mixed",))  # fmt: skip


SHAPES = [
    ((5,), 0, 3), ((3, 7), -1, 7), ((3, 7), 0, 2), ((2, 5, 3), 1, 4), ((1, 1000), -1, 5), ((2, 500), -1, 500),
    ((2, 900), -1, 100), ((3, 0), 1, 0), ((0, 4), 1, 2), ((3, 4), 1, 0), ((300, 2), 0, 10), ((1,), 0, 1),
]  # fmt: skip


@pytest.mark.parametrize("mode", ["static", "dynamic", "constant"])
def test_rows_of_awkward_shapes(mode: str) -> None:
    cases = [case(TopKOp, sample("float32", *s), np.array([k]), axis=a) for s, a, k in SHAPES]
    cases += [case(TopKOp, sample("int64", *s), np.array([k]), axis=a, largest=0) for s, a, k in SHAPES[2:4]]
    check_all(cases, (mode,))


def test_the_first_of_equal_elements_comes_first() -> None:
    x = np.zeros(700, np.float32)
    x[::3] = -0.0
    x[500:] = 1
    cases = [case(TopKOp, x, np.array([k]), largest=largest) for k, largest in ((3, 1), (300, 0), (700, 1))]
    check_all(cases, ("static",))


def test_rows_in_the_worst_order() -> None:
    up = np.arange(2000, dtype=np.float32)
    cases = [case(TopKOp, x, np.array([k])) for x, k in ((up, 7), (up, 700), (up[::-1], 7))]
    check_all(cases, ("static",))


def test_one_program_serves_every_k() -> None:
    graph = build([case(TopKOp, sample("float32", 2, 300), np.array([3]))], "dynamic")
    native = compile_module(graph.module)
    for n, k in ((300, 0), (300, 300), (5, 2), (1000, 40), (0, 0)):
        feeds = [sample("float32", 2, n), np.array([k])]
        expected = evaluate_function(main_function(graph.module), feeds)
        for a, b in zip(native.run(feeds), expected, strict=True):
            assert np.array_equal(a, b)


def test_a_k_beyond_the_axis_ends_the_run() -> None:
    for k in (4, -1):
        for message in both_refuse(TopKOp, sample("float32", 2, 3), np.array([k])):
            assert f"k is {k}" in message


@pytest.mark.parametrize("threads", [2, 5])
def test_rows_are_those_of_one_thread(threads: int) -> None:
    x = sample("float32", 64, 1000)
    graph = build([case(TopKOp, x, np.array([20]))], "static")
    native = compile_module(graph.module)
    assert isinstance(native, CompiledGraph)
    native.use_threads(threads)
    values, places = native.run(graph.feeds)[:2]
    order = np.argsort(-x, axis=1, kind="stable")[:, :20]
    assert np.array_equal(places, order) and np.array_equal(values, np.take_along_axis(x, order, 1))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "bfloat16", "float32", "float64"])
def test_distinct_elements(dtype: str) -> None:
    values = specials(dtype)
    many = np.concatenate([values, values[::-1], values[3:9]])
    check_all([case(UniqueOp, many, sorted=len(dtype) % 2)], ("mixed",))


def repeated(*shape: int) -> Array:
    return sample("float32", *shape, low=0, high=2).round()


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_distinct_slices_of_awkward_shapes(mode: str) -> None:
    axes = [
        ((5,), 0), ((3, 7), -1), ((9, 2), 0), ((2, 5, 3), 1), ((2, 5, 3), 2), ((0, 4), 0), ((0, 4), 1), ((4, 0), 0),
        ((1,), None), ((0,), None), ((3, 4), None), ((), None),
    ]  # fmt: skip
    cases = [
        case(UniqueOp, repeated(*shape), sorted=k % 2, **({} if axis is None else {"axis": axis}))
        for k, (shape, axis) in enumerate(axes)
    ]
    check_all(cases, (mode,))


def test_many_elements() -> None:
    x = np.random.default_rng(0).integers(-3000, 3000, (70, 100))
    check_all([case(UniqueOp, x, sorted=order) for order in (0, 1)], ("static",))
