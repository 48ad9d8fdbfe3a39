"""Native reductions and arg-reductions against the reference: axes known and of the run, neutral elements, accuracy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from three_ways import Case, both_refuse, build, case, check_all, compare, sample, specials
from tolerances import Tolerance

from sardonyx.backends.llvm.build import emit_module
from sardonyx.backends.llvm.compile import compile_module
from sardonyx.backends.llvm.lowering.graph import lower_graph
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.evaluate import evaluate_function
from sardonyx.dialects.module import main_function
from sardonyx.dialects.sx.argreduce import ArgMaxOp, ArgMinOp
from sardonyx.dialects.sx.reduce import (
    ReduceL1Op,
    ReduceL2Op,
    ReduceLogSumExpOp,
    ReduceLogSumOp,
    ReduceMaxOp,
    ReduceMeanOp,
    ReduceMinOp,
    ReduceOp,
    ReduceProdOp,
    ReduceSumOp,
    ReduceSumSquareOp,
)

Array = np.ndarray[Any, Any]
OPS: list[type[ReduceOp]] = [
    ReduceSumOp, ReduceMeanOp, ReduceMaxOp, ReduceMinOp, ReduceProdOp, ReduceL1Op, ReduceL2Op, ReduceLogSumOp,
    ReduceLogSumExpOp, ReduceSumSquareOp,
]  # fmt: skip
DTYPES = ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint32", "uint64", "int8", "uint8", "bool"]
ARG_DTYPES = ["float32", "float64", "float16", "bfloat16", "int8", "int64", "uint8", "uint32", "uint64"]


def axes(*numbers: int) -> Array:
    return np.array(numbers, np.int64)


def ops_for(dtype: str) -> list[type[ReduceOp]]:
    return [op for op in OPS if DType.of(dtype) in op.DTYPES]


def data(op: type[ReduceOp], dtype: str, *shape: int) -> Array:
    """Random elements; positive ones where a logarithm follows."""
    return sample(dtype, *shape, low=0.5 if op is ReduceLogSumOp else -4.0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_known_axes(dtype: str) -> None:
    """Inner, outer, both and all axes; extents below, at and above a vector's width; no elements; 0-d."""
    cases: list[Case] = []
    for op in ops_for(dtype):
        x = data(op, dtype, 3, 5, 9)
        cases += [case(op, x, axes(-1)), case(op, x, axes(0, 1), keepdims=False), case(op, x[:, :0], axes(1))]
        if dtype not in ("float32", "int32", "bool"):  # loops are the same for all
            continue
        cases += [case(op, x, axes(0, 2)), case(op, x[:0], axes(1))]
        cases += [case(op, x, axes(1), keepdims=False), case(op, x, None), case(op, x, None, noop_with_empty_axes=True)]
        cases += [case(op, data(op, dtype, 33, 70), axes(a), keepdims=False) for a in (0, 1)]
        cases += [case(op, data(op, dtype))]
    check_all(cases, ("mixed",))


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_static_extents(dtype: str) -> None:
    shapes = [(1, 1), (7, 8), (8, 7), (9, 33), (32, 1), (1, 40), (0, 3), (64, 96)]
    ops = (ReduceSumOp, ReduceMaxOp)
    cases = [case(op, sample(dtype, *s), axes(a)) for op in ops for s in shapes for a in (0, 1)]
    check_all(cases, ("constant",))


@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("keepdims", [True, False])
def test_axes_of_the_run(dtype: str, keepdims: bool) -> None:
    """One kernel serves whatever axes the run brings, and however many where that leaves the rank."""
    every = [axes(0, 2), axes(-1, 1), axes(1, 0)] + ([axes(2), axes(), axes(2, 0, 1)] if keepdims else [])
    ops = [op for op in (ReduceSumOp, ReduceMeanOp, ReduceMaxOp, ReduceLogSumExpOp) if op in ops_for(dtype)]
    cases = [case(op, data(op, dtype, 3, 5, 9), every[0], keepdims=keepdims) for op in ops]
    graph = build(cases, "dynamic" if keepdims else "static")
    native = compile_module(graph.module)
    for chosen in every:
        feeds = [chosen if at % 2 else feed for at, feed in enumerate(graph.feeds)]
        expected = evaluate_function(main_function(graph.module), feeds)
        for op, got, want in zip(ops, native.run(feeds), expected, strict=True):
            problem = compare(op.name, got, np.asarray(want))
            assert problem is None, f"{op.name} {chosen}: {problem}"


def test_empty_axes_of_the_run() -> None:
    x = sample("float32", 3, 5)
    cases = [case(op, x, axes(), noop_with_empty_axes=n) for op in (ReduceSumOp, ReduceL2Op) for n in (False, True)]
    check_all(cases, ("dynamic", "static", "constant"))


def test_bad_axes_end_the_run() -> None:
    x = sample("float32", 3, 5, 9)
    for bad, word in ((axes(0, 0), "repeat"), (axes(3, 0), "out of range"), (axes(0, -4), "out of range")):
        for keepdims in (True, False):
            for message in both_refuse(ReduceSumOp, x, bad, modes=("static",), keepdims=keepdims):
                assert word in message
    both_refuse(ReduceSumOp, x, axes(0, -3), modes=("dynamic",))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_special_values(dtype: str) -> None:
    """NaN and infinities come through wherever they stand: in a vector, in its remainder, in any row."""
    values = specials(dtype)
    rows = np.zeros((40, 21), values.dtype)
    for row in range(40):
        rows[row, (row * 5) % 21] = values[row]
    finite = values[np.isfinite(values.astype(np.float64))]
    cases = [case(op, v, axes(a)) for op in OPS for v, a in ((rows, 1), (rows.T.copy(), 0), (values, 0))]
    cases += [case(op, finite[:5], axes(0)) for op in (ReduceMaxOp, ReduceMinOp)]
    check_all(cases, ("mixed",))


def test_integers_wrap_around_and_divide_towards_zero() -> None:
    cases: list[Case] = []
    for dtype in ("int32", "int64", "uint32", "uint64"):
        x = np.stack([specials(dtype)] * 3)
        cases += [case(op, x, axes(1)) for op in ops_for(dtype)]
        cases += [case(ReduceMeanOp, np.array([[5, 0], [-3 if dtype[0] == "i" else 3, 0]]).astype(dtype), axes(0))]
    check_all(cases, ("mixed",))


@pytest.mark.parametrize("shape,axis", [((200_003,), 0), ((2, 100_001), 1), ((100_001, 2), 0), ((50_000, 9), 0)])
def test_long_float32_sums_keep_their_digits(shape: tuple[int, ...], axis: int) -> None:
    """A chain of additions would be off by hundreds of units here."""
    x = np.full(shape, 0.1, np.float32) + sample("float32", *shape, low=0.0, high=1e-3)
    check_all([case(ReduceSumOp, x, axes(axis)), case(ReduceMeanOp, x, axes(axis))], ("mixed",), Tolerance(ulps=24.0))


def test_intermediate_results_do_not_overflow() -> None:
    large = np.array([1e30, 1e30, 1e-30, 1e-30], np.float32)
    cases = [case(ReduceProdOp, large, axes(0)), case(ReduceL2Op, large, axes(0))]
    cases += [case(ReduceL2Op, np.array([3e-30, 4e-30], np.float32), axes(0))]
    cases += [case(ReduceLogSumExpOp, np.array([1000.0, 1000.0, -1000.0], np.float32), axes(0))]
    cases += [case(ReduceSumOp, np.full(100, 60000, np.float16), axes(0))]
    cases += [case(ReduceMeanOp, np.full((100, 9), 60000, np.float16), axes(0))]
    check_all(cases, ("mixed",))


def test_kernels_of_rows_call_nothing() -> None:
    x = sample("float32", 9, 33)
    cases = [case(op, x, axes(a)) for op in (ReduceLogSumExpOp, ReduceL2Op) for a in (0, 1)]
    text, _ = emit_module(lower_graph(build([*cases, case(ArgMaxOp, x)], "mixed").module))
    for name, body in text.functions.items():
        if name.startswith(("reduce", "arg")):
            called = [line for line in body.splitlines() if "call " in line and "@llvm." not in line]
            assert not called, called


# ---- arg_max, arg_min


@pytest.mark.parametrize("dtype", ARG_DTYPES)
def test_places_of_extremes(dtype: str) -> None:
    arrays = [sample(dtype, 3, 5, 9), sample(dtype, 1), sample(dtype, 0, 5), specials(dtype), sample(dtype, 2, 70)]
    cases = [
        case(op, x, axis=axis, select_last_index=last, keepdims=not last)
        for op in (ArgMaxOp, ArgMinOp)
        for x in arrays
        for axis in range(-x.ndim, 0)
        if x.shape[axis]
        for last in (False, True)
    ]
    check_all(cases, ("shared",))


def test_of_equal_elements_and_of_nans_the_first_or_last_counts() -> None:
    x = np.zeros((5, 40), np.float32)
    x[0, [3, 17]] = 1
    x[1, [20, 39]] = -0.0
    x[2, [0, 38]] = np.nan
    x[3, [7, 8]] = -np.inf
    x[4] = np.inf
    x[4, [9, 33]] = np.nan
    cases = [
        case(op, v, axis=axis, select_last_index=last)
        for op in (ArgMaxOp, ArgMinOp)
        for v, axis in ((x, 1), (x.T.copy(), 0))
        for last in (False, True)
    ]
    check_all(cases, ("static",))


def test_an_extreme_of_nothing_ends_the_run() -> None:
    for message in both_refuse(ArgMaxOp, sample("float32", 3, 0), axis=1):
        assert "extent 0" in message
