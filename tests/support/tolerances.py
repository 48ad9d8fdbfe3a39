"""How far a native result may lie from the reference, by op and dtype: one table for all value tests.

An op that is not listed is exact: every bit agrees, except that one NaN is as good as another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
FORMATS = {"float16": (10, -14), "bfloat16": (7, -126), "float32": (23, -126), "float64": (52, -1022)}
"""Stored bits of the significand, and the exponent of the smallest normal number."""


@dataclass(frozen=True)
class Tolerance:
    """An element may be off by `ulps` units in its last place plus `of_largest` units in that of the largest finite
    element of the result (sums cancel: their error follows the terms, not the sum) plus `steps` of the smallest
    subnormal. Zeros' signs count if `signed`. For integers a unit is that of the float64 of the value.
    """

    ulps: float = 0.0
    of_largest: float = 0.0
    steps: float = 0.0
    signed: bool = True


EXACT = Tolerance()

_TABLE: dict[str, dict[str, Tolerance]] = {}


def allow(ops: str, dtypes: str = "float16 bfloat16 float32 float64", **limits: Any) -> None:
    """Enter a tolerance for these ops and dtypes (both separated by spaces)."""
    for op in ops.split():
        for dtype in dtypes.split():
            _TABLE.setdefault(op, {})[dtype] = Tolerance(**limits)


# Functions have bounds of a few units; in 16 bits they are off where the exact value lies between two numbers.
MATH = (
    "exp log reciprocal sin cos tan asin acos atan sinh cosh asinh acosh atanh erf sigmoid tanh softplus gelu mish "
    "swish elu selu celu softsign pow leaky_relu hard_sigmoid hard_swish"
)
allow(MATH, ulps=6.0)
allow(MATH, "float16 bfloat16", ulps=1.0)
allow("mish swish gelu", "float32 float64", ulps=6.0, steps=128.0)  # a subnormal factor has few bits
allow("gelu", "float64", ulps=1000.0, steps=128.0)  # the reference's erfc sees a rounded argument
# An exponential magnifies the rounding of its argument by the argument.
allow("gelu swish", "float32", ulps=200.0, steps=128.0)
allow("swish", "float64", ulps=64.0, steps=128.0)
allow("hard_sigmoid hard_swish", "float64", ulps=6.0, of_largest=2.0)  # the reference cancels near the zeros
allow("pow", "int32 int64", ulps=4.0)  # an integer to a float, by way of float64
allow("max min", signed=False)  # of zeros with both signs a backend may give either
allow("reduce_max reduce_min clip", signed=False)

SUMS = "sum mean reduce_sum reduce_mean reduce_l1 reduce_sum_square cumsum"
allow(SUMS, ulps=4.0, of_largest=4.0, signed=False)
allow(SUMS, "float16 bfloat16", ulps=1.0, of_largest=0.1, signed=False)
allow(SUMS, "float64", ulps=4.0, of_largest=16.0, signed=False)  # the reference adds in float64 too, one by one
allow("reduce_l2 reduce_prod reduce_log_sum reduce_log_sum_exp", ulps=8.0, of_largest=4.0, signed=False)
allow(
    "reduce_l2 reduce_prod reduce_log_sum reduce_log_sum_exp",
    "float16 bfloat16",
    ulps=1.0,
    of_largest=0.1,
    signed=False,
)

# Sums in their order, in float32 where the reference has float64.
allow("scatter_elements scatter_nd", "float32 float64", ulps=4.0, of_largest=4.0, signed=False)
allow("scatter_elements scatter_nd", "float16 bfloat16", ulps=1.0, of_largest=0.1, signed=False)
allow("cumprod", "float32 float64", ulps=4.0)
allow("det", "float64", ulps=64.0, of_largest=16.0)  # the reference eliminates in blocks, in float64 too
allow("det", "float16 bfloat16 float32", ulps=1.0)

ROWS = "softmax log_softmax layer_norm rms_norm instance_norm group_norm batch_norm lp_normalization lrn"
allow(ROWS, ulps=16.0, of_largest=16.0, signed=False)
allow(ROWS, "float16 bfloat16", ulps=1.0, of_largest=1.0, signed=False)

CONTRACTIONS = "attention rotary_embedding matmul gemm einsum conv conv_transpose average_pool global_average_pool"
allow(CONTRACTIONS, ulps=8.0, of_largest=8.0, signed=False)
allow(CONTRACTIONS, "float16 bfloat16", ulps=1.0, of_largest=1.0, signed=False)
allow("max_pool global_max_pool", signed=False)

SAMPLED = "resize grid_sample roi_align affine_grid col2im lp_pool global_lp_pool deform_conv"
allow(SAMPLED, ulps=8.0, of_largest=8.0, signed=False)
allow(SAMPLED, "float16 bfloat16", ulps=1.0, of_largest=1.0, signed=False)
allow("random_normal random_normal_like", ulps=16.0, of_largest=4.0, signed=False)
allow("random_normal random_normal_like", "float16 bfloat16", ulps=1.0, of_largest=1.0, signed=False)
allow("dft stft mel_weight_matrix", ulps=8.0, of_largest=32.0, signed=False)
allow("dft stft mel_weight_matrix", "float16 bfloat16", ulps=1.0, of_largest=1.0, signed=False)

# Errors of one step go into the next.
RECURRENT = "rnn gru lstm linear_attention"
allow(RECURRENT, ulps=16.0, of_largest=16.0, signed=False)
allow(RECURRENT, "float16 bfloat16", ulps=2.0, of_largest=1.0, signed=False)


def tolerance(op: str, dtype: str) -> Tolerance:
    """The tolerance of an op (`sx.` may lead its name) for results of a dtype."""
    return _TABLE.get(op.removeprefix("sx."), {}).get(dtype, EXACT)


def worst(got: Array, expected: Array, limit: Tolerance) -> tuple[float, str] | None:
    """None where every element is within the limit; else by how much the worst one is beyond, and what it is.

    NaNs and infinities must agree.
    """
    name = expected.dtype.name
    if name not in FORMATS:
        same = got.reshape(-1) == expected.reshape(-1)
        if got.dtype.kind in "Vf" and got.dtype.itemsize == 1:  # floats and integers of few bits: by their bytes
            a, b = (np.asarray(v.reshape(-1).astype(np.float32)) for v in (got, expected))
            same = (got.reshape(-1).view(np.uint8) == expected.reshape(-1).view(np.uint8)) | (np.isnan(a) & np.isnan(b))
        if limit.ulps:
            a, b = got.reshape(-1).astype(np.float64), expected.reshape(-1).astype(np.float64)
            same |= np.abs(a - b) <= limit.ulps * 2.0**-52 * np.abs(b)
        wrong = np.flatnonzero(~same)
        return None if not wrong.size else (float("inf"), _show(got, expected, int(wrong[0]), wrong.size))
    bits, lowest = FORMATS[name]
    a, b = got.reshape(-1).astype(np.float64), expected.reshape(-1).astype(np.float64)
    with np.errstate(all="ignore"):
        bad = np.isnan(a) != np.isnan(b)
        if limit.signed:
            bad |= ~np.isnan(a) & (np.signbit(a) != np.signbit(b)) & (a == 0) & (b == 0)
        finite = np.isfinite(b)
        unit = np.ldexp(1.0, np.maximum(np.frexp(np.where(finite, b, 0.0))[1] - 1, lowest) - bits)
        largest = float(np.max(np.abs(b[finite]), initial=0.0))
        slack = limit.ulps * unit + limit.of_largest * largest * 2.0**-bits + limit.steps * 2.0 ** (lowest - bits)
        # The largest number and infinity are neighbours to a rounding.
        top = {"float16": 2.0**16, "float64": np.inf}.get(name, 2.0**128)
        error = np.abs(np.clip(a, -top, top) - np.clip(b, -top, top))
        error = np.where((a == b) | (np.isnan(a) & np.isnan(b)), 0.0, np.where(np.isnan(error), np.inf, error))
    excess = np.where(bad, np.inf, error - slack)
    wrong = np.flatnonzero(excess > 0)
    if not wrong.size:
        return None
    at = int(np.argmax(excess))
    return float("inf") if bad[at] else float(error[at] / unit[at]), _show(got, expected, at, wrong.size)


def _show(got: Array, expected: Array, at: int, count: int) -> str:
    place = np.unravel_index(at, expected.shape) if expected.shape else ()
    return (
        f"{count} of {expected.size} elements differ, the worst at {[int(i) for i in place]}: "
        f"got {got.reshape(-1)[at]!r}, expected {expected.reshape(-1)[at]!r}"
    )
