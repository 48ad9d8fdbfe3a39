"""The normal distribution as lane-wise formulas: gelu.

Source of the form: M. M. Shepherd and J. G. Laframboise, Chebyshev approximation of (1 + 2x) exp(x^2) erfc(x), Math.
Comp. 36 (1981). The coefficients are those of interpolation in Chebyshev nodes.
"""

from __future__ import annotations

import math

from sardonyx.backends.llvm.codegen.lanes import (
    Operation,
    Value,
    at_most,
    bit_pattern,
    fma,
    lanewise,
    paired,
    two_product,
    where,
)
from sardonyx.backends.llvm.codegen.math_exp import exp_nonpositive

# (1 + sqrt(2) a) exp(a^2/2) P(X > a) in t = (a - K)/(a + K), up to where P is 0 (2^-27.9, 2^-58.1).
CENTER = {"float": 4.0, "double": 5.0}
END = {"float": 14.6, "double": 39.0}
SCALED_TAIL = {
    "float": (
        0.6284778714179993,
        -0.06617830693721771,
        -0.03172110393643379,
        0.07014860212802887,
        -0.058319203555583954,
        0.028889043256640434,
        -0.0072835697792470455,
        -0.0006935492274351418,
        0.0010494187008589506,
        -7.004343933658674e-05,
        -0.00010767208732431754,
    ),
    "double": (
        0.6208209264948372,
        -0.0700524136206178,
        -0.004193708178282885,
        0.04764866133893246,
        -0.05715904897197505,
        0.044398861329216076,
        -0.025178554835578137,
        0.01020885138645703,
        -0.0024612651357335006,
        -4.460025236703183e-05,
        0.0002828893311059415,
        -7.621100715357063e-05,
        -1.674759041680051e-05,
        1.333933671480209e-05,
        1.808278478093951e-07,
        -1.9510932105125472e-06,
        1.473943701380576e-07,
        2.9508863384296967e-07,
        -3.062720887122355e-08,
        -4.665173456736585e-08,
        2.9254526323322237e-09,
        6.305419340806647e-09,
        1.4494547034705129e-10,
        -3.80926092602472e-10,
    ),
}
# sqrt(P(X > a)) for a in 0 … 5.5, where what is left is 0 as far as a sum with 1 is concerned (2^-26.3 in P).
ROOT_END = 5.5
TAIL_ROOT = (
    0.7071067690849304,
    -0.2820945084095001,
    -0.05626931041479111,
    0.0245473925024271,
    0.007660088129341602,
    -0.002306463196873665,
    -0.0003524813801050186,
    -0.00010577023203950375,
    0.00018052937230095267,
    -5.931280611548573e-05,
    9.30557416722877e-06,
    -7.430282380482822e-07,
    2.443321456269132e-08,
)


def upper_tail(a: Value) -> Value:
    """P(X > a) of a standard normal X, for a >= 0 or NaN; without losing the small results of large a."""
    scalar = a.ty.scalar
    a = at_most(a, END[scalar])
    linear = a * math.sqrt(2.0) + 1.0
    shifted = a + CENTER[scalar]
    inverse = 1.0 / (linear * shifted)
    t = (a - CENTER[scalar]) * linear * inverse
    scaled = paired(t, SCALED_TAIL[scalar], last=2) * shifted * inverse
    # exp magnifies the rounding error of its argument, so the square keeps its own.
    square, low = two_product(a, a)
    return exp_nonpositive(square * -0.5) * (scaled - scaled * (low * 0.5))


def gelu(x: Value) -> Value:
    """x P(X <= x); NaN at -inf, where it is infinity times zero."""
    tail = upper_tail(abs(x))
    return x * where(x > 0.0, 1.0 - tail, tail)


def gelu_sum(x: Value) -> Value:
    """x/2 (1 + erf(x / sqrt(2))) for float, as exact as a sum with 1 is: off by at most 1.2e-7 |x|.

    The chain of rounded functions that it stands for is off by 0.7e-7 |x|, and takes twice as many products. Both are 0
    where the sum is, and NaN at -inf. Numbers are compared as integers, by units that do no products.
    """
    a = abs(x)
    root = where(a.bits() < bit_pattern("float", ROOT_END), paired(a, TAIL_ROOT, last=1), 0.0)
    below = where(x.bits() > 0, x.like(1.0), 0.0)  # 1 - P(X > x) for positive x, P(X > -x) for others
    return x * abs(fma(-root, root, below))


GAUSS: dict[str, Operation] = {"gelu": lanewise(gelu), "gelu_sum": lanewise(gelu_sum)}
