"""The table of vector math: name -> function that emits it inline, lane by lane, for float and double.

An entry is called as `MATH[name](builder, type, *operands)` with a scalar or vector type of float or double and SSA
names, and returns the result's name. Nothing is called but intrinsics that are single instructions on x86-64-v2 and
newer and on AArch64; there are no branches (fmod and mod hold a loop), so a scalar remainder gets the same bits as a
vector's lane. Half and bfloat go through float: see `conversions`.

`ULP_BOUNDS` states the largest error against the exact result, in units in the last place of the result's type, with
and without FMA. For float it was found by running every float of the region where a function bends (where float goes
through double: 2^24 and more), for double by millions of samples, to which it adds a margin: no proof, but measured.
tests/backends/llvm/test_math.py holds each function to it.
"""

from __future__ import annotations

from collections.abc import Callable

from sardonyx.backends.llvm.codegen import math_exp, math_log, math_pow, math_round, math_trig
from sardonyx.backends.llvm.codegen.lanes import Operation, Value, lanewise


def through_double(function: Callable[..., Value]) -> Callable[..., Value]:
    """A function of doubles that for floats computes in double and rounds once."""

    def emit(*operands: Value) -> Value:
        if operands[0].ty.scalar == "double":
            return function(*operands)
        return function(*(operand.to_double() for operand in operands)).to_float()

    emit.__name__ = function.__name__
    return emit


def _sqrt(x: Value) -> Value:
    return x.sqrt()


def _rsqrt(x: Value) -> Value:
    return 1.0 / x.sqrt()


FUNCTIONS: dict[str, Callable[..., Value]] = {
    "exp": math_exp.exp,
    "exp2": math_exp.exp2,
    "expm1": math_exp.expm1,
    "sigmoid": math_exp.sigmoid,
    "tanh": math_exp.tanh,
    "sinh": math_exp.sinh,
    "cosh": math_exp.cosh,
    "erf": math_exp.erf,
    "log": math_log.log,
    "log2": math_log.log2,
    "log1p": math_log.log1p,
    "softplus": math_log.softplus,
    "asinh": math_log.asinh,
    "acosh": math_log.acosh,
    "atanh": math_log.atanh,
    "pow": math_pow.pow,
    "sin": math_trig.sin,
    "cos": math_trig.cos,
    "tan": math_trig.tan,
    "atan": through_double(math_trig.atan),
    "asin": through_double(math_trig.asin),
    "acos": through_double(math_trig.acos),
    "sqrt": _sqrt,
    "rsqrt": _rsqrt,
    "floor": math_round.floor,
    "ceil": math_round.ceil,
    "trunc": math_round.trunc,
    "round_half_even": math_round.round_half_even,
    "fmod": math_round.fmod,
    "floormod": math_round.floormod,
}

MATH: dict[str, Operation] = {name: lanewise(function) for name, function in FUNCTIONS.items()}

INTERNAL: dict[str, Operation] = {"exp_nonpositive": lanewise(math_exp.exp_nonpositive)}
"""Functions of restricted arguments, for the lowerings' own use."""

# (float, double), each for every finite argument; half and bfloat are within 0.501 of a unit of theirs.
_BOUNDS: dict[str, tuple[float, float]] = {
    "exp": (1.0, 0.95),
    "exp2": (1.25, 1.2),
    "expm1": (1.1, 1.2),
    "sigmoid": (2.45, 2.4),
    "tanh": (1.5, 1.85),
    "sinh": (2.1, 2.1),
    "cosh": (1.5, 1.5),
    "erf": (1.2, 1.4),
    "log": (0.9, 0.95),
    "log2": (0.95, 1.05),
    "log1p": (1.0, 0.95),
    "softplus": (1.75, 1.75),
    "asinh": (1.8, 1.85),
    "acosh": (2.2, 2.2),
    "atanh": (2.1, 2.1),
    "pow": (0.51, 1.3),
    "sin": (0.51, 0.85),
    "cos": (0.51, 0.85),
    "tan": (0.51, 2.3),
    "asin": (0.51, 0.7),
    "acos": (0.51, 0.85),
    "atan": (0.51, 0.9),
    "sqrt": (0.5, 0.5),
    "rsqrt": (1.5, 1.5),
    "floor": (0.0, 0.0),
    "ceil": (0.0, 0.0),
    "trunc": (0.0, 0.0),
    "round_half_even": (0.0, 0.0),
    "fmod": (0.0, 0.0),
    "floormod": (0.5, 0.5),
}
ULP_BOUNDS: dict[tuple[str, str], float] = {
    (name, scalar): bound for name, pair in _BOUNDS.items() for scalar, bound in zip(("float", "double"), pair)
}
