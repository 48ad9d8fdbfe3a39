"""Scalar arithmetic of recurrent cells: activations with their parameters, and what each kind of cell does at a point.

A cell sees one element of the state: the sums of its gates (products of input and state, and biases), and gives the
next state. All is in the compute dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.sx.recurrent import Chosen


@dataclass(frozen=True)
class Arithmetic:
    """Scalars of one dtype in a body."""

    b: Body
    dtype: DType

    def const(self, number: float) -> SSAValue:
        return self.b.const(self.dtype, number)

    def add(self, *terms: SSAValue) -> SSAValue:
        return self._all("add", terms)

    def mul(self, *factors: SSAValue) -> SSAValue:
        return self._all("mul", factors)

    def sub(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.b.arithmetic("sub", self.dtype, a, b)

    def clamp(self, x: SSAValue, low: float, high: float) -> SSAValue:
        """x between the bounds; NaN stays."""
        below = self.b.arithmetic("min", self.dtype, x, self.const(high))
        return self.b.arithmetic("max", self.dtype, below, self.const(low))

    def where(self, relation: str, x: SSAValue, bound: float, then: SSAValue, otherwise: SSAValue) -> SSAValue:
        found = self.b.compare_scalars(relation, self.dtype, x, self.const(bound))
        return self.b.select(found, then, otherwise)

    def math(self, fn: str, x: SSAValue) -> SSAValue:
        return self.b.math(fn, x.type, x)

    def _all(self, fn: str, values: Sequence[SSAValue]) -> SSAValue:
        total = values[0]
        for value in values[1:]:
            total = self.b.arithmetic(fn, self.dtype, total, value)
        return total


def activate(m: Arithmetic, chosen: Chosen, x: SSAValue) -> SSAValue:
    """The activation, as `dialects.sx.recurrent.ACTIVATIONS` defines it."""
    return _ACTIVATIONS[chosen.name](m, chosen, x)


_ACTIVATIONS: dict[str, Callable[[Arithmetic, Chosen, SSAValue], SSAValue]] = {
    "relu": lambda m, c, x: m.b.arithmetic("max", m.dtype, x, m.const(0)),
    "tanh": lambda m, c, x: m.math("tanh", x),
    "sigmoid": lambda m, c, x: m.math("sigmoid", x),
    "affine": lambda m, c, x: m.add(m.mul(m.const(c.alpha), x), m.const(c.beta)),
    "leakyrelu": lambda m, c, x: m.where("lt", x, 0, m.mul(m.const(c.alpha), x), x),
    "thresholdedrelu": lambda m, c, x: m.where("gt", x, c.alpha, x, m.const(0)),
    "scaledtanh": lambda m, c, x: m.mul(m.const(c.alpha), m.math("tanh", m.mul(m.const(c.beta), x))),
    "hardsigmoid": lambda m, c, x: m.clamp(m.add(m.mul(m.const(c.alpha), x), m.const(c.beta)), 0, 1),
    "elu": lambda m, c, x: m.where("lt", x, 0, m.mul(m.const(c.alpha), m.math("expm1", x)), x),
    "softsign": lambda m, c, x: m.b.arithmetic("div", m.dtype, x, m.add(m.const(1), m.math("abs", x))),
    "softplus": lambda m, c, x: m.math("softplus", x),
}


@dataclass(frozen=True)
class Gate:
    """What enters an activation: bounded by `clip`, where there is one."""

    m: Arithmetic
    clip: float | None

    def __call__(self, chosen: Chosen, *terms: SSAValue) -> SSAValue:
        total = self.m.add(*terms)
        return activate(self.m, chosen, self.m.clamp(total, -self.clip, self.clip) if self.clip else total)


def lstm_cell(
    gate: Gate,
    functions: Sequence[Chosen],
    sums: Sequence[SSAValue],
    c: SSAValue,
    peepholes: Sequence[SSAValue] | None,
    input_forget: bool,
) -> tuple[SSAValue, SSAValue]:
    """The next h and c from the sums of i, o, f and c; `peepholes` are those of i, o and f at this element."""
    m, (f, g, last) = gate.m, functions
    peep = [[]] * 3 if peepholes is None else [[m.mul(p, c)] for p in peepholes]
    into = gate(f, sums[0], *peep[0])
    forget = m.sub(m.const(1), into) if input_forget else gate(f, sums[2], *peep[2])
    after = m.add(m.mul(forget, c), m.mul(into, gate(g, sums[3])))
    out = gate(f, sums[1], *([] if peepholes is None else [m.mul(peepholes[1], after)]))
    return m.mul(out, activate(m, last, after)), after


def gru_update(m: Arithmetic, z: SSAValue, n: SSAValue, h: SSAValue) -> SSAValue:
    """The next h of a gated recurrent layer."""
    return m.add(m.mul(m.sub(m.const(1), z), n), m.mul(z, h))
