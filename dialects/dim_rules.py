"""What calls of functions on Dims simplify to, and the bounds that can be proved of a Dim (see `dims.py`).

Every rule holds for all values of the symbols (integers, at least 0) for which the call is defined.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence

from sardonyx.dialects.dim_expr import (
    INFIX,
    NARY,
    Atom,
    Bounds,
    Call,
    Dim,
    DimLike,
    Monomial,
    Symbol,
    constant,
    make,
    single_atom,
)
from sardonyx.errors import InvalidArgumentError

# Extrema of more arguments are not searched for pairs that are provably ordered: that takes quadratic time.
_MAX_ORDERED_ARGS = 16
# Proofs don't unfold calls of expressions that have more of them; an extremum unfolds that many to order its arguments.
_MAX_CALLS = 8
_UNFOLDED_BY_EXTREMUM = 2
# The same few shapes recur all through a graph: results are kept, the most recently used.
_CACHE_SIZE = 1 << 12
# Longer polynomials are not divided by anything but a monomial.
_MAX_DIVISION_TERMS = 256


def apply(fn: str, args: Sequence[Dim]) -> Dim:
    """The call of `fn`, simplified. Raises InvalidArgumentError as the constructors of `Dim` do."""
    if fn in NARY:
        return broadcast(args) if fn == "broadcast" else extremum(fn, tuple(args))
    dividend, divisor = args
    if fn == "floordiv":
        return floordiv(dividend, divisor)
    if fn == "ceildiv":
        return ceildiv(dividend, divisor)
    if fn == "mod":
        return mod(dividend, divisor)
    raise InvalidArgumentError(f"unknown function {fn!r} of dims")


# Division


@functools.lru_cache(_CACHE_SIZE)
def floordiv(dividend: Dim, divisor: Dim) -> Dim:
    """`dividend floordiv divisor`; see `Dim.floordiv`."""
    value = divisor.static_value
    if value is not None:
        if value == 0:
            raise InvalidArgumentError(f"'({dividend}) floordiv 0': division by zero")
        return _floordiv_constant(dividend, value) if value > 0 else _floordiv_constant(-dividend, -value)
    if at_least(divisor, 1):
        quotient = exact_quotient(dividend, divisor)
        if quotient is not None:
            return quotient
    dividend, divisor, _ = _cancel_content(dividend, divisor)
    if divisor.is_static:
        return floordiv(dividend, divisor)
    return _call("floordiv", (dividend, divisor))


@functools.lru_cache(_CACHE_SIZE)
def ceildiv(dividend: Dim, divisor: Dim) -> Dim:
    """`dividend ceildiv divisor`; see `Dim.ceildiv`."""
    value = divisor.static_value
    if value is not None:
        if value == 0:
            raise InvalidArgumentError(f"'({dividend}) ceildiv 0': division by zero")
        return -floordiv(-dividend, divisor) if value < 0 else _floordiv_constant(dividend + (value - 1), value)
    if at_least(divisor, 1):
        quotient = exact_quotient(dividend, divisor)
        if quotient is not None:
            return quotient
    dividend, divisor, _ = _cancel_content(dividend, divisor)
    return _call("ceildiv", (dividend, divisor))


@functools.lru_cache(_CACHE_SIZE)
def mod(dividend: Dim, divisor: Dim) -> Dim:
    """`dividend mod divisor`; see `Dim.mod`."""
    value = divisor.static_value
    if value is not None:
        if value == 0:
            raise InvalidArgumentError(f"'({dividend}) mod 0': division by zero")
        return _mod_constant(dividend, value) if value > 0 else -_mod_constant(-dividend, -value)
    if at_least(divisor, 1) and exact_quotient(dividend, divisor) is not None:
        return constant(0)
    dividend, divisor, content = _cancel_content(dividend, divisor)
    return _call("mod", (dividend, divisor)) * content


def _floordiv_constant(dividend: Dim, divisor: int) -> Dim:
    whole = constant(0)
    while True:
        if divisor == 1:
            return whole + dividend
        # floor((c*q + r) / c) = q + floor(r / c), term by term.
        parts = [(atoms, *divmod(factor, divisor)) for atoms, factor in dividend.coefficients().items()]
        whole = whole + make({atoms: quotient for atoms, quotient, _ in parts if quotient})
        rest = {atoms: remainder for atoms, _, remainder in parts if remainder}
        # floor((g*x + k) / (g*c)) = floor((x + floor(k/g)) / c), where g divides every coefficient but the constant.
        content = math.gcd(divisor, *(factor for atoms, factor in rest.items() if atoms))
        if content > 1:
            dividend = make({atoms: factor // content for atoms, factor in rest.items() if factor // content})
            divisor //= content
            continue
        # floor((floor(x/b) + r) / c) = floor((x + b*r) / (b*c))
        inner = [atom for atom in map(_nested_division, rest.items()) if atom is not None]
        if len(inner) == 1:
            numerator, denominator = inner[0].args
            scale = denominator.static_value or 1
            remaining = make({atoms: factor for atoms, factor in rest.items() if atoms != (inner[0],)})
            dividend = numerator + remaining * scale
            divisor *= scale
            continue
        return whole + _call("floordiv", (make(rest), constant(divisor)))


def _nested_division(term: tuple[Monomial, int]) -> Call | None:
    atoms, factor = term
    if factor != 1 or len(atoms) != 1:
        return None
    atom = atoms[0]
    if not isinstance(atom, Call) or atom.fn != "floordiv" or not atom.args[1].is_static:
        return None
    return atom


def _mod_constant(dividend: Dim, divisor: int) -> Dim:
    rest: dict[Monomial, int] = {}
    changed = False
    total: list[Dim] = []
    for factor, atoms in dividend.terms():
        factor %= divisor
        if not factor:
            continue
        inner = atoms[0] if len(atoms) == 1 else None
        # x mod (k*c) is x, modulo c.
        if isinstance(inner, Call) and inner.fn == "mod" and (inner.args[1].static_value or 1) % divisor == 0:
            total.append(inner.args[0] * factor)
            changed = True
        else:
            rest[atoms] = factor
    if changed:
        return _mod_constant(Dim.sum([make(rest), *total]), divisor)
    # (g*x + k) mod (g*c) = g*((x + floor(k/g)) mod c) + k mod g
    content = math.gcd(divisor, *(factor for atoms, factor in rest.items() if atoms))
    if content > 1:
        reduced = make({atoms: factor // content for atoms, factor in rest.items() if factor // content})
        return _mod_constant(reduced, divisor // content) * content + rest.get((), 0) % content
    remainder = make(rest)
    low, high = remainder.bounds
    if low is not None and low >= 0 and high is not None and high < divisor:
        return remainder
    return _call("mod", (remainder, constant(divisor)))


def _cancel_content(dividend: Dim, divisor: Dim) -> tuple[Dim, Dim, int]:
    """Both without the integer that divides all their coefficients, and that integer."""
    content = math.gcd(*dividend.coefficients().values(), *divisor.coefficients().values())
    return _divide(dividend, content), _divide(divisor, content), content


def _divide(dim: Dim, content: int) -> Dim:
    return dim if content == 1 else make({atoms: factor // content for atoms, factor in dim.coefficients().items()})


def exact_quotient(dividend: Dim, divisor: Dim) -> Dim | None:
    """The polynomial q with q * divisor == dividend, or None."""
    terms = divisor.terms()
    if len(terms) == 1:
        return _quotient_by_term(dividend, *terms[0])
    if not terms or max(len(terms), len(dividend.coefficients())) > _MAX_DIVISION_TERMS:
        return None
    # Long division by leading terms: products keep the order of terms (degree, then lexicographic).
    quotient = constant(0)
    while dividend.static_value != 0:
        lead = dividend.terms()[0]
        step = _quotient_by_term(make({lead[1]: lead[0]}), *terms[0])
        if step is None:
            return None
        quotient = quotient + step
        dividend = dividend - step * divisor
    return quotient


def _quotient_by_term(dividend: Dim, divisor_factor: int, divisor_atoms: Monomial) -> Dim | None:
    quotient: dict[Monomial, int] = {}
    for atoms, factor in dividend.coefficients().items():
        left = _without(atoms, divisor_atoms)
        if left is None or factor % divisor_factor:
            return None
        quotient[left] = factor // divisor_factor
    return make(quotient)


def _without(atoms: Monomial, divisor: Monomial) -> Monomial | None:
    """The monomial divided by another one, or None if that doesn't go."""
    left = list(atoms)
    for atom in divisor:
        if atom not in left:
            return None
        left.remove(atom)
    return tuple(left)


# Minimum, maximum, broadcast


@functools.lru_cache(_CACHE_SIZE)
def extremum(fn: str, dims: tuple[Dim, ...]) -> Dim:
    """The least or greatest dim; see `Dim.min` and `Dim.max`."""
    args = _flatten(fn, dims)
    if not args:
        raise InvalidArgumentError(f"{fn} of no dims")
    values = [arg.static_value for arg in args if arg.static_value is not None]
    kept = [arg for arg in args if not arg.is_static]
    if values:
        kept.append(constant(min(values) if fn == "min" else max(values)))
    if 1 < len(kept) <= _MAX_ORDERED_ARGS:
        for arg in list(kept):
            others = (other for other in kept if other is not arg)
            margins = (other - arg if fn == "max" else arg - other for other in others)
            if any(never_negative(margin, _UNFOLDED_BY_EXTREMUM) for margin in margins):
                kept.remove(arg)
    return kept[0] if len(kept) == 1 else _call(fn, tuple(sorted(kept, key=str)))


def broadcast(dims: Iterable[DimLike]) -> Dim:
    """The extent that NumPy's broadcasting gives; see `Dim.broadcast`."""
    args = {arg for arg in _flatten("broadcast", dims) if arg.static_value != 1}
    args = {arg for arg in args if not _is_cut(arg, args)}
    # What cannot be 1 is the result, whatever the others are (they must be equal to it, or 1).
    certain = {arg for arg in args if arg.is_static or at_least(arg, 2)}
    values = sorted(arg.static_value for arg in certain if arg.static_value is not None)
    if len(values) > 1 or (values and values[0] < 0):
        raise broadcast_error(values)
    if values:
        return constant(values[0])
    args = certain or args
    if len(args) < 2:
        return args.pop() if args else constant(1)
    return _call("broadcast", tuple(sorted(args, key=str)))


def _is_cut(arg: Dim, others: set[Dim]) -> bool:
    """Whether it is `min(n, d)` of one of the others, d, and an n of at least 1: then it equals d, or is 1, or does not
    broadcast with it. Rows of a table up to a length are such, that are added to something of this length."""
    call = single_atom(arg)
    if not isinstance(call, Call) or call.fn != "min":
        return False
    return any(d in others and all(n == d or at_least(n, 1) for n in call.args) for d in call.args)


def broadcast_error(values: Sequence[int]) -> InvalidArgumentError:
    """The error for extents that disagree, or for one that is negative."""
    which = f"extents {' and '.join(map(str, values))} don't" if len(values) > 1 else f"extent {values[0]} doesn't"
    return InvalidArgumentError(f"{which} broadcast")


def _flatten(fn: str, dims: Iterable[DimLike]) -> list[Dim]:
    """The arguments without repetition, those of nested calls of `fn` in their place."""
    args: dict[Dim, None] = {}
    for dim in map(Dim.of, dims):
        atom = single_atom(dim)
        nested = atom.args if isinstance(atom, Call) and atom.fn == fn else (dim,)
        args.update(dict.fromkeys(nested))
    return list(args)


def _call(fn: str, args: tuple[Dim, ...]) -> Dim:
    """The call, or the constant that its bounds leave."""
    result = make({(Call(fn, args),): 1})
    low, high = result.bounds
    # A divisor that may be 0 must stay visible.
    if low is not None and low == high and (fn not in INFIX or at_least(args[1], 1)):
        return constant(low)
    return result


# Bounds


def at_least(dim: Dim, value: int) -> bool:
    """Whether the bounds prove that the Dim is at least `value`."""
    low = dim.bounds[0]
    return low is not None and low >= value


def bounds_of(dim: Dim) -> Bounds:
    """Lowest and highest value that interval arithmetic proves, None for infinity."""
    low: int | None = 0
    high: int | None = 0
    for atoms, factor in dim.coefficients().items():
        term: Bounds = (factor, factor)
        for atom in atoms:
            term = _product_bounds(term, _atom_bounds(atom))
        low = None if low is None or term[0] is None else low + term[0]
        high = None if high is None or term[1] is None else high + term[1]
        if low is None and high is None:
            break
    return low, high


def _product_bounds(left: Bounds, right: Bounds) -> Bounds:
    if left == (0, 0) or right == (0, 0):
        return 0, 0
    if left[1] is not None and left[1] <= 0:
        return _negated(_product_bounds(_negated(left), right))
    if right[1] is not None and right[1] <= 0:
        return _negated(_product_bounds(left, _negated(right)))
    if left[0] is not None and right[0] is not None and left[0] >= 0 and right[0] >= 0:
        return left[0] * right[0], None if left[1] is None or right[1] is None else left[1] * right[1]
    if None in left or None in right:
        return None, None
    products = [a * b for a in left for b in right if a is not None and b is not None]
    return min(products), max(products)


def _negated(bounds: Bounds) -> Bounds:
    low, high = bounds
    return None if high is None else -high, None if low is None else -low


def _atom_bounds(atom: Atom) -> Bounds:
    if isinstance(atom, Symbol):
        return 0, None
    if atom.fn == "ceildiv":
        return _negated(_quotient_bounds((-atom.args[0]).bounds, atom.args[1].bounds))
    if atom.fn == "floordiv":
        return _quotient_bounds(atom.args[0].bounds, atom.args[1].bounds)
    if atom.fn == "mod":
        return _remainder_bounds(atom.args[0].bounds, atom.args[1].bounds)
    return _nary_bounds(atom.fn, [arg.bounds for arg in atom.args])


def _nary_bounds(fn: str, bounds: Sequence[Bounds]) -> Bounds:
    lows = [low for low, _ in bounds if low is not None]
    highs = [high for _, high in bounds if high is not None]
    # One bounded argument bounds min from above and max from below; a broadcast is one of its arguments.
    if fn == "min":
        return min(lows) if len(lows) == len(bounds) else None, min(highs, default=None)
    if fn == "max":
        return max(lows, default=None), max(highs) if len(highs) == len(bounds) else None
    return min(lows) if len(lows) == len(bounds) else None, max(highs) if len(highs) == len(bounds) else None


def _quotient_bounds(dividend: Bounds, divisor: Bounds) -> Bounds:
    (low, high), (least, most) = dividend, divisor
    if least is None or least < 0:
        return None, None
    least = max(least, 1)  # where the division is defined
    if most is not None and most < 1:
        return None, None
    if low is not None:
        low = low // least if low < 0 else (0 if most is None else low // most)
    if high is not None:
        high = high // least if high >= 0 else (-1 if most is None else high // most)
    return low, high


def _remainder_bounds(dividend: Bounds, divisor: Bounds) -> Bounds:
    least, most = divisor
    if least is None or least < 0 or (most is not None and most < 1):
        return None, None
    highs = [] if most is None else [most - 1]
    if dividend[0] is not None and dividend[0] >= 0 and dividend[1] is not None:
        highs.append(dividend[1])
    return 0, min(highs, default=None)


@functools.lru_cache(_CACHE_SIZE)
def never_negative(dim: Dim, budget: int) -> bool:
    """Whether the Dim is provably at least 0: by its bounds, or after unfolding up to `budget` calls."""
    if at_least(dim, 0):
        return True
    if budget == 0:
        return False
    calls = [(factor, atoms[0]) for factor, atoms in dim.terms() if len(atoms) == 1 and isinstance(atoms[0], Call)]
    if len(calls) > _MAX_CALLS:
        return False
    for factor, call in calls:
        if not isinstance(call, Call):
            continue
        rest = dim - make({(call,): factor})
        if call.fn in ("min", "max"):
            cases = [rest + arg * factor for arg in call.args]
            # The maximum is at least each argument, and is one of them.
            every = (call.fn == "max") == (factor < 0)
            if (all if every else any)(never_negative(case, budget - 1) for case in cases):
                return True
        elif any(never_negative(case, budget - 1) for case in _lower_forms(factor, call, rest)):
            return True
    return False


def _lower_forms(factor: int, call: Call, rest: Dim) -> Iterator[Dim]:
    """Dims without the call that are at most `rest + factor * call`, or at most a positive multiple of it."""
    if call.fn not in ("floordiv", "mod"):
        return
    dividend, divisor = call.args
    constant = divisor.static_value
    if call.fn == "floordiv" and constant is not None:
        # c * floor(x / c) is between x - (c - 1) and x.
        yield rest * constant + (dividend - (constant - 1) if factor > 0 else dividend) * factor
    if call.fn == "mod" and factor < 0 and at_least(dividend, 0) and at_least(divisor, 0):
        yield rest + dividend * factor
    if call.fn == "mod" and constant is not None:
        # x mod c is x - c * floor(x / c).
        yield rest + (dividend - dividend.floordiv(constant) * constant) * factor
