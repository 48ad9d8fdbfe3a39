"""`recognize-gelu`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import ml_dtypes
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue

from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.sx.activation import GeluOp, TanhOp
from sardonyx.dialects.sx.binary import AddOp, DivOp, MulOp, PowOp
from sardonyx.dialects.sx.unary import ErfOp
from sardonyx.passes.base import PassRun, Promise, SxPass, reassociates
from sardonyx.passes.driver import RewriteDriver, SxPattern, SxRewriter
from sardonyx.passes.matching import constant_number, defined_by, has_one_use, same_type

MAX_FACTORS = 6
ROUNDINGS = 4
"""By how many roundings of its dtype a constant may differ from the number that is meant. One with fewer digits means
another function, as far as the promise is concerned."""


def factors_of(value: SSAValue, root: bool = True) -> list[SSAValue]:
    """The factors of a product; a product inside of it counts as its factors, where nobody else reads it."""
    op = defined_by(value, MulOp)
    if op is None or not (root or has_one_use(value)):
        return [value]
    return [factor for operand in op.operands for factor in factors_of(operand, root=False)][:MAX_FACTORS]


def _powers_as_factors(factors: list[SSAValue]) -> list[SSAValue]:
    """The factors with `x ** 2` and `x ** 3` as x two and three times, where nobody else reads the power."""
    out: list[SSAValue] = []
    for factor in factors:
        power = defined_by(factor, PowOp)
        number = None if power is None or not has_one_use(factor) else constant_number(power.operands[1])
        out += [power.operands[0]] * int(number) if power is not None and number in (2, 3) else [factor]
    return out


def is_near(value: SSAValue, number: float) -> bool:
    """Whether a value is a constant that means this number."""
    found = constant_number(value)
    return found is not None and _close(float(found), number, value)


def _close(found: float, number: float, like: SSAValue) -> bool:
    dtype = dtype_of(like)
    if not dtype.is_float:
        return found == number
    return math.isclose(found, number, rel_tol=ROUNDINGS * float(ml_dtypes.finfo(dtype.numpy).eps))


def plus_one(value: SSAValue) -> SSAValue | None:
    """`y` of `1 + y` or `y + 1`, where nobody else reads the sum."""
    op = defined_by(value, AddOp)
    if op is None or not has_one_use(value):
        return None
    a, b = op.operands
    return b if is_near(a, 1.0) else a if is_near(b, 1.0) else None


def split_constant(value: SSAValue) -> tuple[SSAValue, float] | None:
    """`(y, c)` of a product or quotient that is `y * c` for one number c."""
    op = defined_by(value, (MulOp, DivOp))
    if op is None:
        return None
    a, b = op.operands
    number = constant_number(b)
    if number is not None and float(number) != 0.0:
        return a, (1.0 / float(number) if isinstance(op, DivOp) else float(number))
    number = constant_number(a)
    return (b, float(number)) if number is not None and isinstance(op, MulOp) else None


@dataclass
class GeluPattern(SxPattern[MulOp]):
    """Factors `x`, 1/2 and `1 + erf(x / sqrt(2))`, or with tanh."""

    OPS: ClassVar = (MulOp,)
    NAME: ClassVar = "gelu"
    REACH: ClassVar = 12

    def rewrite(self, op: MulOp, rewriter: SxRewriter) -> None:
        """Rewrite the op, or say why not."""
        factors = factors_of(op.results[0])
        if len(factors) != 3:
            return
        halves = [f for f in factors if is_near(f, 0.5)]
        rest = [f for f in factors if f not in halves]
        if len(halves) != 1 or len(rest) != 2:
            return
        near = False
        for x, other in (rest, rest[::-1]):
            inner = plus_one(other)
            near = near or (inner is not None and defined_by(inner, (ErfOp, TanhOp)) is not None)
            approximate = None if inner is None else _kind(inner, x)
            if approximate is None:
                continue
            if not dtype_of(x).is_float or not same_type(x, op.results[0]):
                return rewriter.decline("the factors broadcast x to another shape")
            made = self.made(x, approximate)
            return None if made is None else rewriter.replace(op, made)
        if near:
            rewriter.decline("what the erf or tanh is of is another function of x, or has other constants")

    def made(self, x: SSAValue, approximate: str) -> Operation | None:
        """What stands for the chain; None where it is to stay."""
        return GeluOp.make(x, approximate=approximate)


def _kind(inner: SSAValue, x: SSAValue) -> str | None:
    """`none` where a value is `erf(x / sqrt(2))`, `tanh` where it is that of the approximation; else None."""
    erf = defined_by(inner, ErfOp)
    if erf is not None:
        scaled = split_constant(erf.operands[0])
        fits = scaled is not None and scaled[0] is x and _close(scaled[1], math.sqrt(0.5), x)
        return "none" if fits else None
    tanh = defined_by(inner, TanhOp)
    return "tanh" if tanh is not None and _is_cubic(tanh.operands[0], x) else None


def _is_cubic(value: SSAValue, x: SSAValue) -> bool:
    """Whether it is `c * (x + 0.044715 * x³)`, or `x * c * (1 + 0.044715 * x²)`, with c = sqrt(2 / pi)."""
    scaled = split_constant(value)
    total = None if scaled is None else defined_by(scaled[0], AddOp)
    if scaled is not None and total is not None and _close(scaled[1], math.sqrt(2 / math.pi), x):
        a, b = total.operands
        return (a is x and _is_power(b, x, 3)) or (b is x and _is_power(a, x, 3))
    factors = factors_of(value)
    sums = [(f, plus_one(f)) for f in factors]
    rest = [f for f, square in sums if square is None]
    squares = [square for _, square in sums if square is not None]
    if len(squares) != 1 or len(rest) != 2 or not _is_power(squares[0], x, 2):
        return False
    return any(a is x and is_near(b, math.sqrt(2 / math.pi)) for a, b in (rest, rest[::-1]))


def _is_power(value: SSAValue, x: SSAValue, power: int) -> bool:
    """Whether it is `0.044715 * x ** power`, the power stated or multiplied out."""
    factors = _powers_as_factors(factors_of(value))
    numbers = [f for f in factors if is_near(f, 0.044715)]
    return len(numbers) == 1 and len(factors) == power + 1 and factors.count(x) == power


@dataclass(frozen=True)
class RecognizeGeluPass(SxPass):
    """State the Gaussian error linear unit as one op.

    Cases:

    1. `x * 1/2 * (1 + erf(x / sqrt(2)))`, its factors and sums in any order, the division as a product or not, is
       `gelu(x)`.
    2. `x * 1/2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)))`, likewise, is `gelu(x)` with
       `approximate = "tanh"`; the cube may be stated as a power, and an x be taken out of the sum.
    3. Constants are those of the dtype, off by a few roundings at most.
    4. Not: where something in between is read elsewhere, or where x is broadcast.

    Requires: nothing (`fold-constants` and `simplify` before it help). Ensures: none of the cases is left. Opsets
    below 20 have no such operator; `legalize-for-opset` states it by others again.
    Promise: reassociates(8).
    """

    name = "recognize-gelu"
    PROMISE: ClassVar[Promise] = reassociates(8)

    def run(self, module: ModuleOp, run: PassRun) -> None:
        RewriteDriver([GeluPattern()], run).rewrite(module)
