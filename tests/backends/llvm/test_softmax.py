"""Native softmax, log_softmax and hardmax against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from three_ways import case, check_all, sample, specials

from sardonyx.dialects.sx.softmax import HardmaxOp, LogSoftmaxOp, SoftmaxOp

DTYPES = ["float32", "float64", "float16", "bfloat16"]
OPS = (SoftmaxOp, LogSoftmaxOp, HardmaxOp)


@pytest.mark.parametrize("mode", ["static", "shared"])
def test_rows_along_every_axis(mode: str) -> None:
    shapes = [(8, 37), (3, 5, 9), (2, 7, 8), (1,), (0, 5), (5, 0), (33, 1)]
    check_all(
        [case(op, sample("float32", *s), axis=a) for op in OPS for s in shapes for a in range(-len(s), 0)], (mode,)
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str) -> None:
    check_all([case(op, sample(dtype, 3, 21, 9), axis=a) for op in OPS for a in (1, 2)], ("shared",))


def test_a_scalar_axis_and_dynamic_dims() -> None:
    x = sample("float32", 2, 3, 7)
    check_all([case(op, x, axis=a) for op in OPS for a in (0, 1, 2)], ("dynamic",))


@pytest.mark.parametrize("dtype", DTYPES)
def test_large_and_special_elements(dtype: str) -> None:
    every = specials(dtype)
    finite = every[np.isfinite(every.astype(np.float64))]
    rows = [
        sample(dtype, 3, 1000, low=-50, high=50),
        finite,
        every,
        np.array([[-np.inf, 0, 1], [np.inf, 0, 1], [np.nan, 0, 1], [-np.inf] * 3]).astype(every.dtype),
        np.array([[88.0, 89.0, -104.0, 1000.0, -1000.0]]).astype(every.dtype),
    ]
    check_all([case(op, x) for op in OPS for x in rows], ("shared",))
    check_all([case(op, np.ascontiguousarray(x.T), axis=0) for op in OPS for x in rows if x.ndim == 2], ("shared",))


def test_small_results_are_not_lost() -> None:
    """In 16 bits the powers are below what the result's dtype holds until they are divided."""
    x = np.array([[0.0, -9.0, -11.0, -16.0]], np.float16)
    check_all([case(SoftmaxOp, x), case(SoftmaxOp, np.full((1, 5000), -3, np.float16))], ("static",))
