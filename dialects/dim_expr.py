"""The class `Dim` and its atoms; `dims.py` is the door, which says what a Dim is.

Here stand representation, arithmetic of polynomials, text, evaluation and substitution. What the calls simplify to
is in `dim_rules.py`, the grammar in `dim_text.py`; the three know one another, so those two are imported last.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sardonyx.errors import InvalidArgumentError

INFIX = frozenset(("floordiv", "ceildiv", "mod"))
NARY = frozenset(("min", "max", "broadcast"))
_CACHE_SIZE = 1 << 14


@dataclass(frozen=True, slots=True)
class Symbol:
    """An unknown extent, at least 0; two Dims that name the same symbol share it."""

    name: str
    text: str = field(init=False, compare=False, repr=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", _text.symbol_text(self.name))
        object.__setattr__(self, "_hash", hash(self.name))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return Symbol, (self.name,)


@dataclass(frozen=True, slots=True)
class Call:
    """A function of Dims: two arguments for `floordiv`, `ceildiv` and `mod`, two or more for the others."""

    fn: str
    args: tuple[Dim, ...]
    text: str = field(init=False, compare=False, repr=False)
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.fn in INFIX:
            text = f" {self.fn} ".join(_operand_text(arg) for arg in self.args)
        else:
            text = f"{self.fn}({', '.join(map(str, self.args))})"
        object.__setattr__(self, "text", text)
        object.__setattr__(self, "_hash", hash((self.fn, self.args)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return Call, (self.fn, self.args)


Atom: TypeAlias = Symbol | Call
Monomial: TypeAlias = tuple[Atom, ...]
# Lowest and highest value; None is minus or plus infinity.
Bounds: TypeAlias = tuple[int | None, int | None]


class Dim:
    """An immutable extent; see the module's docstring. Equal to an `int` when it is that constant."""

    __slots__ = ("_bounds", "_hash", "_map", "_static", "_symbols", "_terms", "_text")

    # NumPy's scalars leave arithmetic with Dims to Dim.
    __array_ufunc__ = None

    _map: dict[Monomial, int]  # never changed once the Dim exists
    _static: int | None
    _hash: int | None
    _text: str | None
    _terms: tuple[tuple[int, Monomial], ...] | None
    _symbols: frozenset[str] | None
    _bounds: Bounds | None

    def __new__(cls, value: DimLike) -> Dim:
        return Dim.of(value)

    @staticmethod
    def of(value: DimLike) -> Dim:
        """The Dim of an integer, of a symbol's name (any text) or of a Dim."""
        if type(value) is int:
            return _CONSTANTS.get(value) or constant(value)
        if isinstance(value, str):
            return Dim.symbol(value)
        result = _coerce(value)
        if result is None:
            raise InvalidArgumentError(f"a dim is an integer, a symbol's name or a Dim, not {value!r}")
        return result

    @staticmethod
    def symbol(name: str) -> Dim:
        """The symbol of that name."""
        known = _SYMBOLS.get(name)
        if known is None:
            known = make({(Symbol(name),): 1})
            if len(_SYMBOLS) < _CACHE_SIZE:
                _SYMBOLS[name] = known
        return known

    @staticmethod
    def parse(text: str) -> Dim:
        """Read back what `str` prints. Raises InvalidArgumentError, which says the column."""
        return _text.parse_text(text)

    @staticmethod
    def sum(dims: Iterable[DimLike]) -> Dim:
        """The sum, linear in the number of terms."""
        total: dict[Monomial, int] = {}
        for dim in dims:
            add_into(total, Dim.of(dim), 1)
        return make(total)

    @staticmethod
    def product(dims: Iterable[DimLike]) -> Dim:
        """The product, such as the number of elements of a shape; 1 for none."""
        result = constant(1)
        for dim in dims:
            result = result * Dim.of(dim)
        return result

    # Arithmetic

    def __add__(self, other: Dim | int) -> Dim:
        right = _coerce(other)
        return NotImplemented if right is None else _add(self, right, 1)

    __radd__ = __add__

    def __sub__(self, other: Dim | int) -> Dim:
        right = _coerce(other)
        return NotImplemented if right is None else _add(self, right, -1)

    def __rsub__(self, other: int) -> Dim:
        left = _coerce(other)
        return NotImplemented if left is None else _add(left, self, -1)

    def __neg__(self) -> Dim:
        return _scale(self, -1)

    def __mul__(self, other: Dim | int) -> Dim:
        right = _coerce(other)
        if right is None:
            return NotImplemented
        if self._static is not None:
            return _scale(right, self._static)
        if right._static is not None:
            return _scale(self, right._static)
        total: dict[Monomial, int] = {}
        for left_atoms, left_factor in self._map.items():
            for right_atoms, right_factor in right._map.items():
                atoms = tuple(sorted(left_atoms + right_atoms, key=atom_text))
                total[atoms] = total.get(atoms, 0) + left_factor * right_factor
        return make({atoms: factor for atoms, factor in total.items() if factor})

    __rmul__ = __mul__

    def __floordiv__(self, other: Dim | int) -> Dim:
        right = _coerce(other)
        return NotImplemented if right is None else _rules.floordiv(self, right)

    def __rfloordiv__(self, other: int) -> Dim:
        left = _coerce(other)
        return NotImplemented if left is None else _rules.floordiv(left, self)

    def __mod__(self, other: Dim | int) -> Dim:
        right = _coerce(other)
        return NotImplemented if right is None else _rules.mod(self, right)

    def __rmod__(self, other: int) -> Dim:
        left = _coerce(other)
        return NotImplemented if left is None else _rules.mod(left, self)

    def floordiv(self: DimLike, divisor: DimLike) -> Dim:
        """The quotient, rounded down. Raises InvalidArgumentError for a divisor that is the constant 0."""
        return _rules.floordiv(Dim.of(self), Dim.of(divisor))

    def ceildiv(self: DimLike, divisor: DimLike) -> Dim:
        """The quotient, rounded up. Raises InvalidArgumentError for a divisor that is the constant 0."""
        return _rules.ceildiv(Dim.of(self), Dim.of(divisor))

    def mod(self: DimLike, divisor: DimLike) -> Dim:
        """The remainder of `floordiv`. Raises InvalidArgumentError for a divisor that is the constant 0."""
        return _rules.mod(Dim.of(self), Dim.of(divisor))

    @staticmethod
    def min(*dims: DimLike) -> Dim:
        """The least of one or more dims."""
        return _rules.extremum("min", tuple(map(Dim.of, dims)))

    @staticmethod
    def max(*dims: DimLike) -> Dim:
        """The greatest of one or more dims."""
        return _rules.extremum("max", tuple(map(Dim.of, dims)))

    @staticmethod
    def broadcast(*dims: DimLike) -> Dim:
        """The extent that NumPy broadcasting gives: the one that isn't 1.

        That the others are equal to it or 1 is the run's to check: only constants that disagree raise here.
        """
        return _rules.broadcast(dims)

    def exact_quotient(self, divisor: DimLike) -> Dim | None:
        """The polynomial q with `q * divisor == self`, or None; it is the quotient wherever the divisor isn't 0."""
        return _rules.exact_quotient(self, Dim.of(divisor))

    # What it is

    @property
    def is_static(self) -> bool:
        return self._static is not None

    @property
    def static_value(self) -> int | None:
        """The value of a constant, else None."""
        return self._static

    @property
    def is_symbol(self) -> bool:
        """Whether it is a bare symbol."""
        return self.symbol_name is not None

    @property
    def symbol_name(self) -> str | None:
        """The name of a bare symbol, else None."""
        atom = single_atom(self)
        return atom.name if isinstance(atom, Symbol) else None

    @property
    def bounds(self) -> Bounds:
        """Lowest and highest value that can be proved, None for infinity, wherever every divisor is positive."""
        if self._bounds is None:
            self._bounds = _rules.bounds_of(self)
        return self._bounds

    def terms(self) -> tuple[tuple[int, Monomial], ...]:
        """Pairs of coefficient and atoms (repeated for powers), of highest degree first; empty for 0."""
        if self._terms is None:
            ordered = sorted(self._map.items(), key=_term_key)
            self._terms = tuple((factor, atoms) for atoms, factor in ordered)
        return self._terms

    def coefficients(self) -> Mapping[Monomial, int]:
        """The same as a mapping from atoms to coefficient, in no order; not to be changed."""
        return self._map

    def symbols(self) -> frozenset[str]:
        """The names of all symbols, those inside calls included."""
        if self._symbols is None:
            names: set[str] = set()
            for atom in {atom for atoms in self._map for atom in atoms}:
                if isinstance(atom, Symbol):
                    names.add(atom.name)
                else:
                    names.update(*(arg.symbols() for arg in atom.args))
            self._symbols = frozenset(names)
        return self._symbols

    def evaluate(self, bindings: Mapping[str, int]) -> int:
        """The value under `bindings`.

        Raises InvalidArgumentError for a missing symbol, a division by 0 and extents that don't broadcast.
        """
        return self._static if self._static is not None else _evaluate(self, bindings, {})

    def substitute(self, mapping: Mapping[str, Dim | int]) -> Dim:
        """Replace symbols, all at once; symbols that `mapping` lacks stay."""
        if self._static is not None or self.symbols().isdisjoint(mapping):
            return self
        return _substitute(self, mapping, {})

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, Dim):
            if self._static is not None or other._static is not None:
                return self._static == other._static
            return hash(self) == hash(other) and self._map == other._map
        right = _coerce(other)
        return NotImplemented if right is None else self._static == right._static

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._static if self._static is not None else frozenset(self._map.items()))
        return self._hash

    def __str__(self) -> str:
        if self._text is None:
            self._text = _text_of(self)
        return self._text

    def __repr__(self) -> str:
        return f"Dim({str(self)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.terms(),)

    def __deepcopy__(self, memo: object) -> Dim:
        return self

    def __copy__(self) -> Dim:
        return self


DimLike: TypeAlias = int | str | Dim

_CONSTANTS: dict[int, Dim] = {}
_SYMBOLS: dict[str, Dim] = {}


# Making Dims


def make(terms: dict[Monomial, int]) -> Dim:
    """The Dim of those terms (no coefficient 0), which it owns from now on."""
    if not terms:
        return constant(0)
    if len(terms) == 1 and () in terms:
        return constant(terms[()])
    return _new(terms, None)


def _new(terms: dict[Monomial, int], static: int | None) -> Dim:
    dim = object.__new__(Dim)
    dim._map = terms
    dim._static = static
    dim._hash = dim._text = dim._terms = dim._symbols = dim._bounds = None
    return dim


def constant(value: int) -> Dim:
    known = _CONSTANTS.get(value)
    if known is None:
        known = _new({(): value} if value else {}, value)
        if len(_CONSTANTS) < _CACHE_SIZE:
            _CONSTANTS[value] = known
    return known


def _restore(terms: tuple[tuple[int, Monomial], ...]) -> Dim:
    return make({atoms: factor for factor, atoms in terms})


def _coerce(value: object) -> Dim | None:
    if isinstance(value, Dim):
        return value
    if type(value) is int:
        return constant(value)
    # NumPy's integers too; a bool is no extent.
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    try:
        return constant(operator.index(value))  # pyright: ignore[reportArgumentType]
    except TypeError:
        return None  # an array that isn't a scalar


def add_into(total: dict[Monomial, int], dim: Dim, factor: int) -> None:
    for atoms, coefficient in dim._map.items():
        value = total.get(atoms, 0) + factor * coefficient
        if value:
            total[atoms] = value
        else:
            total.pop(atoms, None)


def _add(left: Dim, right: Dim, factor: int) -> Dim:
    if left._static is not None and right._static is not None:
        return constant(left._static + factor * right._static)
    if right._static == 0:
        return left
    total = dict(left._map)
    add_into(total, right, factor)
    return make(total)


def _scale(dim: Dim, factor: int) -> Dim:
    if factor == 1:
        return dim
    if factor == 0:
        return constant(0)
    return make({atoms: coefficient * factor for atoms, coefficient in dim._map.items()})


def single_atom(dim: Dim) -> Atom | None:
    if len(dim._map) != 1:
        return None
    (atoms, factor), *_ = dim._map.items()
    return atoms[0] if factor == 1 and len(atoms) == 1 else None


def atom_text(atom: Atom) -> str:
    return atom.text


def _term_key(term: tuple[Monomial, int]) -> tuple[int, list[str]]:
    return -len(term[0]), [atom.text for atom in term[0]]


def _text_of(dim: Dim) -> str:
    pieces: list[str] = []
    for factor, atoms in dim.terms():
        sign = "-" if factor < 0 else "+"
        size = abs(factor)
        factors = [_factor_text(atom) for atom in atoms] if size != 1 or len(atoms) > 1 else [a.text for a in atoms]
        text = "*".join([str(size), *factors] if size != 1 or not atoms else factors)
        if pieces:
            pieces.append(f" {sign} {text}")
        elif sign == "-":
            # A bare call would take the sign into its first argument.
            pieces.append("-" + "*".join(map(_factor_text, atoms)) if size == 1 and atoms else f"-{text}")
        else:
            pieces.append(text)
    return "".join(pieces) or "0"


def _factor_text(atom: Atom) -> str:
    return f"({atom.text})" if isinstance(atom, Call) and atom.fn in INFIX else atom.text


def _operand_text(dim: Dim) -> str:
    """The Dim as an operand of an infix function: in parentheses unless it is one plain factor."""
    if dim._static is not None:
        return str(dim) if dim._static >= 0 else f"({dim})"
    atom = single_atom(dim)
    return f"({dim})" if atom is None else _factor_text(atom)


def _evaluate(dim: Dim, bindings: Mapping[str, int], known: dict[Call, int]) -> int:
    total = 0
    for atoms, factor in dim._map.items():
        for atom in atoms:
            if isinstance(atom, Symbol):
                if atom.name not in bindings:
                    raise InvalidArgumentError(f"dim '{dim}': no value for symbol {atom.text}")
                factor *= operator.index(bindings[atom.name])
                continue
            if atom not in known:
                values = [_evaluate(arg, bindings, known) for arg in atom.args]
                known[atom] = _apply(atom, values)
            factor *= known[atom]
        total += factor
    return total


def _apply(call: Call, values: list[int]) -> int:
    if call.fn == "min":
        return min(values)
    if call.fn == "max":
        return max(values)
    if call.fn == "broadcast":
        sizes = sorted({value for value in values if value != 1})
        if len(sizes) > 1 or (sizes and sizes[0] < 0):
            raise _rules.broadcast_error(sizes)
        return sizes[0] if sizes else 1
    dividend, divisor = values
    if divisor == 0:
        raise InvalidArgumentError(f"'{call.text}': division by zero")
    if call.fn == "floordiv":
        return dividend // divisor
    return -(-dividend // divisor) if call.fn == "ceildiv" else dividend % divisor


def _substitute(dim: Dim, mapping: Mapping[str, Dim | int], known: dict[Atom, Dim]) -> Dim:
    total: dict[Monomial, int] = {}
    for atoms, factor in dim._map.items():
        product = constant(factor)
        for atom in atoms:
            if atom not in known:
                known[atom] = _substitute_atom(atom, mapping, known)
            product = product * known[atom]
        add_into(total, product, 1)
    return make(total)


def _substitute_atom(atom: Atom, mapping: Mapping[str, Dim | int], known: dict[Atom, Dim]) -> Dim:
    if isinstance(atom, Symbol):
        return Dim.of(mapping[atom.name]) if atom.name in mapping else Dim.symbol(atom.name)
    return _rules.apply(atom.fn, [_substitute(arg, mapping, known) for arg in atom.args])


# Last, since both need `Dim`.
from sardonyx.dialects import (  # noqa: E402
    dim_rules as _rules,
    dim_text as _text,
)
