"""What is done to rows of scores of trees and support vector machines: `ml_support.transformed` in kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body
from sardonyx.backends.llvm.lowering.number import Number
from sardonyx.dialects.dtypes import DType, float64

Score = Callable[[Body, Number], Number]
"""`score(body, k)` reads score k of a row, float64."""


def probit(x: Number) -> Number:
    """`ml_support.probit`."""
    y = x * 2.0 - 1.0
    log = ((1.0 - y) * (y + 1.0)).fn("log")
    v = log * 0.5 + 2 / (3.14159 * 0.147)
    root = (-v + (v * v - log / 0.147).fn("sqrt")).fn("sqrt") * math.sqrt(2.0)
    return y.lt(0.0).where(-root, root)


def logistic(x: Number) -> Number:
    return x.fn("sigmoid")


def two_columns(score: Number, transform: str, all_positive: bool) -> tuple[Number, Number]:
    """`ml_support.two_columns`."""
    if transform == "LOGISTIC":
        return logistic(-score), logistic(score)
    return (1.0 - score if all_positive else -score), score


def write_transformed(
    b: Body, count: int, transform: str, score: Score, write: SSAValue, at: Number, dtype: DType
) -> None:
    """Write a row of `count` scores, transformed, from `at` on."""
    if transform in ("NONE", "PROBIT", "LOGISTIC"):

        def one(inner: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
            own = Number.index(inner, k)
            value = score(inner, own)
            value = probit(value) if transform == "PROBIT" else logistic(value) if transform == "LOGISTIC" else value
            value.store(write, at + own, dtype, inner)

        b.loop(count, one)
        return

    def largest(inner: Body, k: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        return [Number(inner, carried[0], float64).max(score(inner, Number.index(inner, k))).value]

    low = b.const(float64, float("-inf"))
    best = Number(b, b.loop(count, largest, [("serial", low)])[0], float64)
    zeros = transform == "SOFTMAX_ZERO"

    def powers(inner: Body, k: Number) -> tuple[Number, Number]:
        """What stands for a score, and what it adds to the sum."""
        x = score(inner, k)
        e = (x - best).fn("exp")
        if not zeros:
            return e, e
        some = x.abs().gt(1e-7)
        return some.where(e, x * (-best).fn("exp")), some.where(e, 0.0)

    def add(inner: Body, k: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        return [(Number(inner, carried[0], float64) + powers(inner, Number.index(inner, k))[1]).value]

    total = Number(b, b.loop(count, add, [("serial", b.const(float64, 0))])[0], float64)

    def put(inner: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
        own = Number.index(inner, k)
        (powers(inner, own)[0] / total).store(write, at + own, dtype, inner)

    b.loop(count, put)
