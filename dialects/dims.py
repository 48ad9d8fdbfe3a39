"""Dim expressions: the extents of tensors, as canonical polynomials over non-negative integer symbols.

A `Dim` is a sum of monomials; a monomial is an integer coefficient times a product of atoms; an atom is a symbol
or a call of `floordiv`, `ceildiv`, `mod`, `min`, `max` or `broadcast` on Dims. Equal means same terms, same text
and same hash. Division follows Python (floor, the remainder has the divisor's sign).

Canonical division by a constant c: whole multiples of c leave the call, so `(h + 2) floordiv 2` is
`h floordiv 2 + 1`; `ceildiv` by a constant is written with `floordiv`; nested divisions by constants are one.
Simplification may forget an error: `0 * (a floordiv b)` is 0 although `b` may be 0. But it never cancels a divisor
that might be 0: `(a*b) floordiv a` stays (`Dim.exact_quotient` is for callers who know better).

What two Dims are to each other is proved, refuted (false for all values of the symbols) or unknown; unknown is
a check at run time, never an assumption.

This module is the door to `dim_expr.py`, `dim_rules.py` and `dim_text.py`, and knows nothing of IR: others put Dims
into types, and feed xDSL's tokens to `parse_dim`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum

from sardonyx.dialects.dim_expr import Atom, Bounds, Call, Dim, DimLike, Monomial, Symbol
from sardonyx.dialects.dim_rules import at_least, never_negative
from sardonyx.dialects.dim_text import KEYWORDS, TextTokens, TokenStream, parse_dim, symbol_text
from sardonyx.errors import InvalidArgumentError

__all__ = [
    "KEYWORDS",
    "Atom",
    "Bounds",
    "Call",
    "Dim",
    "DimLike",
    "Monomial",
    "Proof",
    "Symbol",
    "TextTokens",
    "TokenStream",
    "divides",
    "equal",
    "less_equal",
    "parse_dim",
    "solve",
    "symbol_text",
]

# How many calls a proof may unfold.
_MAX_UNFOLDED = 4


class Proof(Enum):
    """What is known of a statement about Dims: true for all values of the symbols, for none, or open."""

    PROVED = "proved"
    REFUTED = "refuted"
    UNKNOWN = "unknown"


def equal(left: DimLike, right: DimLike) -> Proof:
    """Whether two Dims are always (PROVED) or never (REFUTED) equal."""
    left, right = Dim.of(left), Dim.of(right)
    if left == right:
        return Proof.PROVED
    difference = left - right
    if difference.is_static:
        return Proof.REFUTED
    # 2*s + 1 is never 4: what divides every coefficient but the constant would have to divide it too.
    content = math.gcd(*(factor for factor, atoms in difference.terms() if atoms))
    if difference.coefficients().get((), 0) % content:
        return Proof.REFUTED
    above = never_negative(difference, _MAX_UNFOLDED)
    below = never_negative(-difference, _MAX_UNFOLDED)
    if above and below:
        return Proof.PROVED
    if above and never_negative(difference - 1, _MAX_UNFOLDED):
        return Proof.REFUTED
    if below and never_negative(-difference - 1, _MAX_UNFOLDED):
        return Proof.REFUTED
    return Proof.UNKNOWN


def less_equal(left: DimLike, right: DimLike) -> Proof:
    """Whether `left <= right` always (PROVED) or never (REFUTED) holds."""
    difference = Dim.of(right) - Dim.of(left)
    if never_negative(difference, _MAX_UNFOLDED):
        return Proof.PROVED
    return Proof.REFUTED if never_negative(-difference - 1, _MAX_UNFOLDED) else Proof.UNKNOWN


def divides(divisor: DimLike, dividend: DimLike) -> Proof:
    """Whether `dividend` is always (PROVED) or never (REFUTED) an integer times `divisor`; 0 divides only 0."""
    divisor, dividend = Dim.of(divisor), Dim.of(dividend)
    if divisor.static_value == 0:
        return equal(dividend, 0)
    if dividend.exact_quotient(divisor) is not None:
        return Proof.PROVED
    if divisor.is_static:
        return equal(dividend % divisor, 0)
    if at_least(dividend, 1) and less_equal(dividend + 1, divisor) is Proof.PROVED:
        return Proof.REFUTED
    return Proof.UNKNOWN


def solve(expr: Dim, value: int, bindings: Mapping[str, int]) -> dict[str, int] | None:
    """The value of the one symbol that `bindings` lacks, so that `expr` is `value`.

    Returns an empty dict when no symbol is missing, and None when several are or `expr` is not linear in it.
    Raises InvalidArgumentError when no non-negative integer will do, or `expr` has another value already.
    """
    rest = expr.substitute(bindings)
    if rest.is_static:
        if rest.static_value == value:
            return {}
        raise InvalidArgumentError(f"dim '{expr}' is {rest}, not {value}{_given(expr, bindings)}")
    symbols = rest.symbols()
    if len(symbols) != 1:
        return None
    (name,) = symbols
    coefficients = dict(rest.coefficients())
    offset = coefficients.pop((), 0)
    factor = coefficients.pop((Symbol(name),), 0)
    if coefficients:
        return None
    result, remainder = divmod(value - offset, factor)
    if remainder or result < 0:
        raise InvalidArgumentError(
            f"dim '{expr}' cannot be {value}{_given(expr, bindings)}: no integer {symbol_text(name)} >= 0 gives that"
        )
    return {name: result}


def _given(expr: Dim, bindings: Mapping[str, int]) -> str:
    used = [f"{symbol_text(name)} = {bindings[name]}" for name in sorted(expr.symbols()) if name in bindings]
    return f" (where {', '.join(used)})" if used else ""
