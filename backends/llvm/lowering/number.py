"""Scalars with operators, so that formulas of kernels read like formulas.

A `Number` is an SSA value of the kernel level with its dtype (None: an index) and the body that it stands in. What is
made of two of them stands in the inner one of their bodies, before whatever is appended there next: a formula of values
from outside of a loop is computed outside of it.
"""

from __future__ import annotations

from typing import Union

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.dialects.dtypes import DType, bool_, float64, int64

Numeric = Union["Number", int, float]


def _depth(body: Body) -> int:
    depth = 0
    while body.parent is not None:
        depth, body = depth + 1, body.parent
    return depth


class Number:
    """A scalar; `dtype` None is an index. Comparisons give Numbers of dtype bool, for `where`, `&`, `|` and `~`."""

    __slots__ = ("body", "dtype", "value")

    def __init__(self, body: Body, value: SSAValue, dtype: DType | None) -> None:
        self.body = body
        self.value = value
        self.dtype = dtype

    @staticmethod
    def index(body: Body, value: IndexLike) -> Number:
        return Number(body, body.index(value), None)

    @staticmethod
    def const(body: Body, value: float, dtype: DType = float64) -> Number:
        return Number(body, body.const(dtype, value), dtype)

    @staticmethod
    def load(body: Body, buffer: SSAValue, offset: IndexLike | Number, dtype: DType, to: DType | None = None) -> Number:
        """An element of a buffer of that dtype, converted by Cast's rules where `to` says so."""
        at = offset.value if isinstance(offset, Number) else offset
        value = body.load(buffer, at)
        return Number(body, value if to is None else body.convert(value, dtype, to), to or dtype)

    def store(self, buffer: SSAValue, offset: IndexLike | Number, dtype: DType, body: Body | None = None) -> None:
        """Put it into a buffer of that dtype."""
        at = offset.value if isinstance(offset, Number) else offset
        where = self.body if body is None else body
        value = (
            self.value if self.dtype is None or self.dtype == dtype else where.convert(self.value, self.dtype, dtype)
        )
        where.store(value, buffer, at)

    def within(self, body: Body) -> Number:
        """The same value, for formulas that are to stand in an inner body."""
        return Number(body, self.value, self.dtype)

    # ---- arithmetic
    def _other(self, other: Numeric) -> tuple[Body, SSAValue]:
        if isinstance(other, Number):
            return (other.body if _depth(other.body) > _depth(self.body) else self.body), other.value
        if self.dtype is None:
            return self.body, self.body.index(int(other))
        return self.body, self.body.const(self.dtype, other)

    def _made(self, fn: str, other: Numeric, swapped: bool = False) -> Number:
        body, value = self._other(other)
        a, b = (value, self.value) if swapped else (self.value, value)
        if self.dtype is None:
            if fn in ("max", "min"):
                return Number(body, body.index_math(fn, a, b), None)
            made = {"add": body.plus, "sub": body.minus, "mul": body.times}[fn]
            return Number(body, made(a, b), None)
        return Number(body, body.arithmetic(fn, self.dtype, a, b), self.dtype)

    def __add__(self, other: Numeric) -> Number:
        return self._made("add", other)

    def __radd__(self, other: Numeric) -> Number:
        return self._made("add", other, True)

    def __sub__(self, other: Numeric) -> Number:
        return self._made("sub", other)

    def __rsub__(self, other: Numeric) -> Number:
        return self._made("sub", other, True)

    def __mul__(self, other: Numeric) -> Number:
        return self._made("mul", other)

    def __rmul__(self, other: Numeric) -> Number:
        return self._made("mul", other, True)

    def __truediv__(self, other: Numeric) -> Number:
        return self._made("div", other)

    def __rtruediv__(self, other: Numeric) -> Number:
        return self._made("div", other, True)

    def __floordiv__(self, other: Numeric) -> Number:
        """Of indices; division by zero gives 0."""
        body, value = self._other(other)
        return Number(body, body.index_math("floordiv", self.value, value), None)

    def __mod__(self, other: Numeric) -> Number:
        body, value = self._other(other)
        return Number(body, body.index_math("floormod", self.value, value), None)

    def __neg__(self) -> Number:
        return 0 - self if self.dtype is None or not self.dtype.is_float else self._made("mul", -1.0)

    def max(self, other: Numeric) -> Number:
        return self._made("max", other)

    def min(self, other: Numeric) -> Number:
        return self._made("min", other)

    def clip(self, low: Numeric, high: Numeric) -> Number:
        return self.max(low).min(high)

    # ---- functions of floats
    def fn(self, name: str, *others: Numeric) -> Number:
        """A `kernel.math` function of floats that gives the same type."""
        body, values = self.body, [self.value]
        for other in others:
            inner, value = self._other(other)
            body = inner if _depth(inner) > _depth(body) else body
            values.append(value)
        return Number(body, body.math(name, self.value.type, *values), self.dtype)

    def floor(self) -> Number:
        return self.fn("floor")

    def ceil(self) -> Number:
        return self.fn("ceil")

    def abs(self) -> Number:
        return self.fn("abs")

    # ---- conditions
    def _compare(self, relation: str, other: Numeric) -> Number:
        body, value = self._other(other)
        if self.dtype is None:
            predicate = relation if relation in ("eq", "ne") else "s" + relation
            return Number(body, body.compare(predicate, self.value, value), bool_)
        return Number(body, body.compare_scalars(relation, self.dtype, self.value, value), bool_)

    def lt(self, other: Numeric) -> Number:
        return self._compare("lt", other)

    def le(self, other: Numeric) -> Number:
        return self._compare("le", other)

    def gt(self, other: Numeric) -> Number:
        return self._compare("gt", other)

    def ge(self, other: Numeric) -> Number:
        return self._compare("ge", other)

    def eq(self, other: Numeric) -> Number:
        return self._compare("eq", other)

    def ne(self, other: Numeric) -> Number:
        return self._compare("ne", other)

    def __and__(self, other: Number) -> Number:
        body, value = self._other(other)
        return Number(body, body.both(self.value, value), self.dtype)

    def __or__(self, other: Number) -> Number:
        body, value = self._other(other)
        return Number(body, body.either(self.value, value), self.dtype)

    def __invert__(self) -> Number:
        """Not, of a condition."""
        return Number(self.body, self.body.negate(self.value), self.dtype)

    def where(self, a: Number, b: Numeric) -> Number:
        """`a` where this condition holds, else `b`."""
        inner, other = a._other(b)
        body = inner if _depth(inner) > _depth(self.body) else self.body
        return Number(body, body.select(self.value, a.value, other), a.dtype)

    # ---- conversions
    def to(self, dtype: DType) -> Number:
        """By Cast's rules; an index as an integer or a float."""
        if self.dtype is None:
            return Number(self.body, self.body.from_index(self.value, dtype), dtype)
        return Number(self.body, self.body.convert(self.value, self.dtype, dtype), dtype)

    def to_index(self) -> Number:
        """An integer as an index; a float truncated (saturating, NaN is 0)."""
        if self.dtype is None:
            return self
        if self.dtype.is_float:
            wide = self.body.math("fptosi_sat", IntegerType(64), self.value)
            return Number(self.body, self.body.to_index(wide, int64), None)
        return Number(self.body, self.body.to_index(self.value, self.dtype), None)


def bits(body: Body, value: int) -> Number:
    """A 64-bit pattern as an int64 (unsigned arithmetic wraps in it)."""
    signed = value - (1 << 64) if value >= 1 << 63 else value
    return Number.const(body, signed, int64)


def all_of(first: Number, *others: Number) -> Number:
    out = first
    for other in others:
        out = out & other
    return out
