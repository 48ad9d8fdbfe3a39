"""Exact values from mpmath, and errors in units in the last place, for tests of floating-point functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np

Array = np.ndarray[Any, Any]
_FORMATS = {"float16": (11, -24, 65504.0), "bfloat16": (8, -133, 3.3895313892515355e38)}


def worst_ulp(function: Callable[[Any], Any], x: Array, got: Array) -> float:
    """The greatest error of `got` against `function` on the elements of `x`, in units in the last place of its dtype.

    Elements where the function is beyond the dtype's range have to be infinite.
    """
    worst = 0.0
    for a, b in zip(x.reshape(-1), got.reshape(-1), strict=True):
        with mpmath.workdps(60):
            exact = function(mpmath.mpf(float(a)))
            unit, limit = _unit(exact, got.dtype)
            if abs(exact) > limit:
                assert np.isinf(float(b)) and (float(b) > 0) == (exact > 0), f"{a}: {b}, expected an infinity"
                continue
            assert np.isfinite(float(b)), f"{a}: {b}, expected {mpmath.nstr(exact, 12)}"
            worst = max(worst, float(abs(mpmath.mpf(float(b)) - exact) / unit))
    return worst


def _unit(exact: Any, dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The spacing of the dtype's numbers at a value, and the greatest value that rounds to a finite one."""
    if dtype.name in _FORMATS:
        digits, least, largest = _FORMATS[dtype.name]
    else:
        info = np.finfo(dtype)
        digits, least, largest = info.nmant + 1, int(np.log2(float(info.smallest_subnormal))), float(info.max)
    exponent = least if exact == 0 else max(least, int(mpmath.floor(mpmath.log(abs(exact), 2))) + 1 - digits)
    top = mpmath.mpf(2) ** (int(mpmath.floor(mpmath.log(largest, 2))) + 1 - digits)
    return mpmath.mpf(2) ** exponent, mpmath.mpf(largest) + top / 2
