"""Long rows: several of them read side by side, and extremes that are looked for in parts of a row."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from guard import EDGES, run_guarded
from op_case import op
from three_ways import Case, build, case, check_all, sample

import sardonyx as sx
from sardonyx.backends.llvm.lowering.row_emission import LONG_ROW, PART, ROWS_AT_ONCE

EXTREMES = [(op(name), last) for name in ("arg_max", "arg_min") for last in (0, 1)]


def long_reductions(length: int, rows: int) -> Iterator[Case]:
    x = sample("float32", rows, length)
    for name in ("reduce_sum", "reduce_max", "reduce_mean", "reduce_l2"):
        yield case(op(name), x, np.array([1]))
    yield case(op("reduce_sum"), x, np.array([-1]), keepdims=0)
    yield case(op("reduce_sum"), x.astype(np.int32), np.array([1]))
    yield case(op("reduce_max"), x.astype(np.float16), np.array([1]))
    holes = x.copy()
    holes[rows // 2, length // 3] = np.nan
    yield case(op("reduce_max"), holes, np.array([1]))


@pytest.mark.parametrize("mode", ["static", "mixed"])
def test_rows_side_by_side(mode: str) -> None:
    cases = [
        one
        for length, rows in ((LONG_ROW, ROWS_AT_ONCE), (LONG_ROW + 7, 2 * ROWS_AT_ONCE + 3), (4099, 1), (2050, 5))
        for one in long_reductions(length, rows)
    ]
    check_all(cases, (mode,))


def contents(length: int) -> Iterator[np.ndarray]:
    """Ties within a part and across parts, not-a-numbers in the first, a middle and the last part, infinities."""
    rng = np.random.default_rng(length)
    ties = rng.integers(-3, 4, (3, length)).astype(np.float32)
    yield ties
    yield np.zeros((1, length), np.float32) * np.where(rng.random(length) < 0.5, -1, 1).astype(np.float32)
    yield np.full((2, length), -np.inf, np.float32)
    yield np.full((1, length), np.inf, np.float32)
    holes = np.tile(ties[:1], (5, 1))
    for row, places in enumerate(([0], [length - 1], [length // 2, length - 1], [PART - 1, PART], [1, length // 2])):
        holes[row, [place % length for place in places]] = np.nan
    yield holes
    for dtype in (np.uint8, np.int64, np.float64, np.float16):
        yield np.abs(ties).astype(dtype)
    yield np.full((1, length), np.iinfo(np.int32).min, np.int32)


@pytest.mark.parametrize("mode", ["static", "mixed"])
@pytest.mark.parametrize("length", [PART, PART + 1, 3 * PART + 5])
def test_places_of_extremes(mode: str, length: int) -> None:
    given = list(contents(length))
    cases = [case(cls, x, axis=1, select_last_index=last) for cls, last in EXTREMES for x in given]
    cases.append(case(op("arg_max"), sample("float32", 2, length, 3), axis=1))
    cases.append(case(op("arg_max"), sample("float32", 2, 3, length), axis=-1, keepdims=0))
    check_all(cases, (mode,))


def test_a_producer_is_computed_in_both_loops() -> None:
    x = sample("float32", 3, 4 * PART + 3)
    graph = sx.trace(lambda x: sx.argmax(sx.abs(x - 0.5), axis=-1), "x: f32[n, m]").graph
    graph.finalize()
    np.testing.assert_array_equal(np.asarray(graph.run([x])[0]), np.argmax(np.abs(x - np.float32(0.5)), axis=-1))


def test_nothing_is_touched_past_the_ends_of_buffers() -> None:
    cases = [*long_reductions(LONG_ROW + 7, ROWS_AT_ONCE + 3)]
    cases += [case(cls, sample("float32", 5, PART + 9), axis=1, select_last_index=last) for cls, last in EXTREMES]
    graph = build(cases, "mixed")
    for edge in EDGES:
        one, three = (run_guarded(graph.module, graph.feeds, edge, threads=threads) for threads in (1, 3))
        for a, b in zip(one, three, strict=True):  # the number of threads changes nothing
            np.testing.assert_array_equal(a, b)
