"""Native one_hot, eye_like, reverse_sequence, cumprod and det against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from three_ways import both_refuse, case, check_all, sample

from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.sx.cumprod import CumProdOp
from sardonyx.dialects.sx.det import DetOp
from sardonyx.dialects.sx.one_hot import EyeLikeOp, OneHotOp
from sardonyx.dialects.sx.reverse_sequence import ReverseSequenceOp


@pytest.mark.parametrize("mode", ["static", "dynamic", "constant"])
def test_one_hot_shapes(mode: str) -> None:
    values = np.array([7, -1], np.float32)
    cases = [
        case(OneHotOp, sample("int64", *shape, low=-7, high=7), np.array(depth), values, axis=axis)
        for shape, depth, axis in (((4,), 5, -1), ((2, 3), 3, 0), ((2, 3), 0, 1), ((), 6, -1), ((0,), 4, 0))
    ]
    check_all([*cases, case(OneHotOp, np.array([0, 2]), np.array([3.9], np.float32), values)], (mode,))


def test_one_hot_dtypes() -> None:
    indices = [
        np.array([0, 3, -1, -4, 4, -5, 100, -128], np.int8), np.array([0, 3, 4, 255], np.uint8),
        np.array([0, 3, 1 << 63, (1 << 64) - 1], np.uint64), np.array([0.5, 2.9, -1.2, np.nan, 1e30], np.float32),
        np.array([1, -2], np.float16), np.array([2, -3], np.int32),
    ]  # fmt: skip
    kinds = ("bool", "int8", "float16", "bfloat16", "float64", "uint16")
    cases = [case(OneHotOp, i, np.array(4), sample(v, 2, seed=5)) for i, v in zip(indices, kinds, strict=True)]
    check_all(cases, ("mixed",))


def test_a_negative_depth_ends_the_run() -> None:
    both_refuse(OneHotOp, np.array([0]), np.array(-1), np.array([0, 1]))
    both_refuse(OneHotOp, np.array([0]), np.array([2, 2]), np.array([0, 1]))
    both_refuse(OneHotOp, np.array([0]), np.array(2), np.array([0, 1, 2]))


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_diagonals(mode: str) -> None:
    cases = [case(EyeLikeOp, sample("float32", 3, 5), k=k) for k in (0, 1, -2, 9, -9, 1 << 62, -(1 << 62))]
    for dtype in ("bool", "int8", "uint64", "float16", "bfloat16", "float64"):
        cases.append(case(EyeLikeOp, sample("int8", 4, 4), dtype=DType.of(dtype)))
    check_all([*cases, case(EyeLikeOp, sample("int64", 0, 3)), case(EyeLikeOp, sample("bool", 17, 33), k=-1)], (mode,))


@pytest.mark.parametrize("mode", ["static", "dynamic", "constant"])
def test_sequences_turned_around(mode: str) -> None:
    cases = [
        case(ReverseSequenceOp, sample(dtype, *shape), np.array(lengths), batch_axis=batch, time_axis=1 - batch)
        for dtype, shape, lengths, batch in (
            ("float32", (4, 3), [4, 0, 2], 1), ("int8", (3, 4, 5), [1, 4, 3], 0), ("float16", (4, 2, 0), [3, 1], 1),
            ("bool", (2, 9), [9, 8], 0), ("bfloat16", (3, 2, 1, 7), [2, 3], 1), ("float64", (0, 2), [0, 0], 1),
        )
    ]  # fmt: skip
    check_all(cases, (mode,))


def test_lengths_beyond_the_time_axis_end_the_run() -> None:
    for bad in (5, -1):
        for message in both_refuse(ReverseSequenceOp, sample("float32", 4, 2), np.array([1, bad])):
            assert f"a sequence has length {bad}, the time axis 4" in message
    both_refuse(ReverseSequenceOp, sample("float32", 4, 2), np.array([1]))


@pytest.mark.parametrize("dtype", [d.name for d in CumProdOp.DTYPES])
def test_running_products(dtype: str) -> None:
    x = sample(dtype, 3, 4, 5)
    kinds = [(exclusive, reverse) for exclusive in (0, 1) for reverse in (0, 1)]
    cases = [case(CumProdOp, x, np.array(k % 3), exclusive=e, reverse=r) for k, (e, r) in enumerate(kinds)]
    empty = [case(CumProdOp, sample(dtype, 0), np.array([-1]))] if dtype == "float32" else []
    check_all([*cases[len(dtype) % 2 :: 2], *empty], ("mixed",))


def test_running_products_along_axes_of_the_run() -> None:
    x = sample("float32", 3, 17)
    check_all([case(CumProdOp, x, np.array(axis)) for axis in (0, -1)], ("static", "dynamic"))
    both_refuse(CumProdOp, x, np.array(2))


@pytest.mark.parametrize("mode", ["static", "dynamic"])
def test_determinants(mode: str) -> None:
    shapes = [(3, 3), (2, 4, 4), (0, 0), (5, 1, 1), (2, 0, 3, 3), (1, 9, 9)]
    cases = [case(DetOp, sample("float32", *shape)) for shape in shapes]
    cases += [case(DetOp, sample(dtype, 2, 3, 3)) for dtype in ("float16", "bfloat16", "float64")]
    cases += [case(DetOp, np.ones((3, 3), np.float32)), case(DetOp, np.eye(4, dtype=np.float32)[[1, 0, 3, 2]])]
    check_all(cases, (mode,))


def test_a_matrix_that_is_not_square_ends_the_run() -> None:
    both_refuse(DetOp, sample("float32", 2, 3))
