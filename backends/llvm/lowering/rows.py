"""Rows: what reductions, softmax and normalisations have in common.

A tensor's axes are *kept* or *reduced*; a row is what the reduced axes span for one point of the kept ones. A kernel
goes over its rows in stages (a maximum, a sum, a map), each a `fold` or a `map` over the row's elements. If the
innermost axis is reduced, a row is contiguous there and its stages run over vector lanes; else neighbouring rows lie
side by side and the lanes are rows, each stage walking down them (*across*). Neighbouring axes of one kind are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, number_of
from sardonyx.backends.llvm.lowering.elementwise import (
    check_fits,
    is_worth_splitting,
    merge_dims,
    offset_of,
    stride_of,
)
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType

VECTOR_BLOCK, SERIAL_BLOCK = 2048, 64
"""Sums of floats longer than this are sums of sums, whose rounding errors stay small (in a vector loop each lane and
unrolled step has a sum of its own anyway)."""


@dataclass(frozen=True)
class RowAxis:
    """One (merged) axis inside a kernel: its extent, and its stride in elements."""

    extent: SSAValue
    stride: SSAValue


@dataclass(frozen=True)
class Accumulator:
    """A carried value of a fold: how it is combined (see `REDUCTIONS`), its dtype and what it starts from."""

    kind: str
    dtype: DType
    start: SSAValue
    skips_nan: bool = False
    """A maximum that takes a NaN only where there is nothing else; it is a single instruction."""

    @property
    def is_rounded(self) -> bool:
        """Whether the order of its sums matters."""
        return self.kind == "add" and self.dtype.is_float

    def combine(self, b: Body, a: SSAValue, c: SSAValue) -> SSAValue:
        if self.kind == "and":
            return b.both(a, c)
        if self.kind == "or":
            return b.either(a, c)
        if self.skips_nan:
            return b.add(arith.MaxnumfOp(a, c))
        return b.arithmetic(self.kind.removeprefix("u"), self.dtype, a, c)


Term = Callable[[Body, SSAValue, Sequence[SSAValue]], Sequence[SSAValue]]
"""`term(b, offset, indices along the reduced axes)`: what an element of a row contributes to each accumulator."""


@dataclass(frozen=True)
class Row:
    """One row (with lanes across: several) inside the loops over the kept axes.

    `base` is the offset of its first element, `flat` its number, `indices` its place along the kept axes.
    """

    reduced: Sequence[RowAxis]
    across: bool
    base: SSAValue
    flat: SSAValue
    indices: Sequence[SSAValue]

    def fold(self, b: Body, accumulators: Sequence[Accumulator], term: Term) -> list[SSAValue]:
        """Accumulate a term per element; without reduced axes the result is the one element's term."""
        if not self.reduced:
            return list(term(b, self.base, []))
        kinds = [a.kind for a in accumulators]

        def carried(values: Sequence[SSAValue]) -> list[tuple[str, SSAValue]]:
            return list(zip(kinds, values, strict=True))

        def fresh(inner: Body, values: Sequence[SSAValue]) -> list[SSAValue]:
            """What an inner loop starts from: rounded sums from 0, so that each level has a sum of its own."""
            pairs = zip(accumulators, values, strict=True)
            return [inner.const(a.dtype, 0) if a.is_rounded else v for a, v in pairs]

        def joined(inner: Body, values: Sequence[SSAValue], found: Sequence[SSAValue]) -> list[SSAValue]:
            triples = zip(accumulators, values, found, strict=True)
            return [a.combine(inner, v, f) if a.is_rounded else f for a, v, f in triples]

        def level(
            at: Body, depth: int, offset: IndexLike, indices: list[SSAValue], start: Sequence[SSAValue]
        ) -> Sequence[SSAValue]:
            axis = self.reduced[depth]
            last = depth == len(self.reduced) - 1

            def step(inner: Body, index: SSAValue, values: Sequence[SSAValue]) -> list[SSAValue]:
                place = inner.plus(offset, inner.times(index, axis.stride))
                if last:
                    terms = term(inner, place, [*indices, index])
                    return [a.combine(inner, v, t) for a, v, t in zip(accumulators, values, terms, strict=True)]
                found = level(inner, depth + 1, place, [*indices, index], fresh(inner, values))
                return joined(inner, values, found)

            vector = last and not self.across
            size = VECTOR_BLOCK if vector else SERIAL_BLOCK
            extent = number_of(axis.extent)
            if not any(a.is_rounded for a in accumulators) or (extent is not None and extent <= size):
                return at.loop(axis.extent, step, carried(start), vector=vector)

            def block(outer: Body, first: SSAValue, values: Sequence[SSAValue]) -> list[SSAValue]:
                end = outer.index_math("min", outer.plus(first, size), axis.extent)
                found = outer.loop(end, step, carried(fresh(outer, values)), lower=first, vector=vector)
                return joined(outer, values, found)

            return at.loop(axis.extent, block, carried(start), step=size)

        return list(level(b, 0, self.base, [], [a.start for a in accumulators]))

    def map(self, b: Body, point: Callable[[Body, SSAValue, Sequence[SSAValue]], None]) -> None:
        """`point(b, offset, indices along the reduced axes)` for each element of the row."""

        def level(at: Body, depth: int, offset: IndexLike, indices: list[SSAValue]) -> None:
            if depth == len(self.reduced):
                point(at, at.index(offset), indices)
                return
            axis = self.reduced[depth]

            def step(inner: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
                level(inner, depth + 1, inner.plus(offset, inner.times(index, axis.stride)), [*indices, index])

            at.loop(axis.extent, step, vector=depth == len(self.reduced) - 1 and not self.across)

        level(b, 0, self.base, [])


@dataclass(frozen=True)
class Rows:
    """The rows of a tensor inside a kernel."""

    kept: Sequence[RowAxis]
    reduced: Sequence[RowAxis]
    across: bool

    def each(self, b: Body, point: Callable[[Body, Row], None]) -> None:
        """Loops over the kept axes; the outermost is parallel, with rows side by side the innermost over lanes."""

        def level(at: Body, depth: int, base: IndexLike, flat: IndexLike, indices: list[SSAValue]) -> None:
            if depth == len(self.kept):
                point(at, Row(self.reduced, self.across, at.index(base), at.index(flat), indices))
                return
            axis = self.kept[depth]

            def step(inner: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
                place = inner.plus(base, inner.times(index, axis.stride))
                number = inner.plus(inner.times(flat, axis.extent), index)
                level(inner, depth + 1, place, number, [*indices, index])

            vector = self.across and depth == len(self.kept) - 1
            at.loop(axis.extent, step, vector=vector, parallel=depth == 0 and splits)

        splits = is_worth_splitting([axis.extent for axis in (*self.kept, *self.reduced)])
        level(b, 0, 0, 0, [])

    def each_few(
        self, b: Body, few: int, point: Callable[[Body, Sequence[Row]], None], longest: int | None = None
    ) -> None:
        """As `each`, for rows along one axis: `point` gets `few` of them at a time, and singly those that are left, or
        that turn out to be longer than `longest`."""
        axis = self.kept[0]
        count = number_of(axis.extent)
        whole = count is not None and count % few == 0
        length = self.reduced[0].extent
        if number_of(length) is not None:
            longest = None

        def row(at: Body, index: SSAValue) -> Row:
            return Row(self.reduced, self.across, at.index(at.times(index, axis.stride)), index, [index])

        def step(at: Body, first: SSAValue, _: Sequence[SSAValue]) -> None:
            last = at.plus(first, few)

            def together(inner: Body) -> None:
                point(inner, [row(inner, inner.index(inner.plus(first, k))) for k in range(few)])

            def singly(inner: Body) -> None:
                end = inner.index_math("min", last, axis.extent)
                inner.loop(end, lambda one, index, _: point(one, [row(one, index)]), lower=first)

            fits = [] if whole else [at.compare("sle", last, axis.extent)]
            if longest is not None:
                fits.append(at.compare("sle", length, longest))
            if fits:
                at.when(fits[0] if len(fits) == 1 else at.both(*fits), together, singly)
            else:
                together(at)

        splits = is_worth_splitting([axis.extent for axis in (*self.kept, *self.reduced)])
        b.loop(axis.extent, step, step=few, parallel=splits)


@dataclass(frozen=True)
class Placed:
    """How an operand that broadcasts to the tensor lies along the kept and the reduced axes: its strides."""

    kept: Sequence[SSAValue]
    reduced: Sequence[SSAValue]

    @property
    def is_constant_in_row(self) -> bool:
        """Whether all elements of a row meet the same element of the operand."""
        return all(number_of(stride) == 0 for stride in self.reduced)

    def offset(self, b: Body, row: Row, indices: Sequence[SSAValue]) -> SSAValue:
        """The operand's element at a place of a row; without indices the row's first."""
        total = offset_of(b, row.indices, self.kept)
        return b.plus(total, offset_of(b, indices, self.reduced[: len(indices)]))


def rows_of(
    plan: Plan, kernel: Kernel, dims: Sequence[Dim], reduced: Iterable[int], shapes: Sequence[Sequence[Dim]] = ()
) -> tuple[Rows, list[Placed]]:
    """The rows of a contiguous tensor along known axes, and how operands of these shapes broadcast over it."""
    chosen = set(reduced)
    for shape in shapes:
        check_fits(plan, shape, dims)
    # An operand that is whole along the reduced axes only keeps the two kinds apart.
    marker = [d if axis in chosen else Dim.of(1) for axis, d in enumerate(dims)]
    extents, lines = merge_dims(dims, [dims, marker, *shapes])
    bounds = [kernel.outer(plan.count(e)) for e in extents]
    is_reduced = [mode != "one" for mode, _, _ in lines[1]]
    strides = [[stride_of(plan, kernel, s) for s in line] for line in (lines[0], *lines[2:])]

    def part(values: Sequence[SSAValue], wanted: bool) -> list[SSAValue]:
        return [v for v, r in zip(values, is_reduced, strict=True) if r is wanted]

    kept, inside = (
        [RowAxis(e, s) for e, s in zip(part(bounds, kind), part(strides[0], kind), strict=True)]
        for kind in (False, True)
    )
    rows = Rows(kept, inside, bool(is_reduced) and not is_reduced[-1])
    return rows, [Placed(part(line, False), part(line, True)) for line in strides[1:]]


def lowest(b: Body, dtype: DType) -> SSAValue:
    """What a maximum starts from."""
    if dtype.is_float:
        return b.const(dtype, float("-inf"))
    return b.const(dtype, -(1 << (dtype.bits - 1)) if dtype.kind == "i" else 0)


def highest(b: Body, dtype: DType) -> SSAValue:
    """What a minimum starts from."""
    if dtype.is_float:
        return b.const(dtype, float("inf"))
    return b.const(dtype, (1 << (dtype.bits - (dtype.kind == "i"))) - 1)


def sum_of(b: Body, dtype: DType) -> Accumulator:
    return Accumulator("add", dtype, b.const(dtype, 0))


def max_of(b: Body, dtype: DType) -> Accumulator:
    """The greatest; NaN where there is one; true where any bool is."""
    kind = {"b": "or", "u": "umax"}.get(dtype.kind, "max")
    return Accumulator(kind, dtype, lowest(b, dtype))


def greatest_number(b: Body, dtype: DType) -> Accumulator:
    """The greatest of the floats that are no NaN."""
    return Accumulator("max", dtype, lowest(b, dtype), skips_nan=True)


def min_of(b: Body, dtype: DType) -> Accumulator:
    kind = {"b": "and", "u": "umin"}.get(dtype.kind, "min")
    return Accumulator(kind, dtype, highest(b, dtype))


def negated(b: Body, x: SSAValue) -> SSAValue:
    """-x of a float."""
    return b.add(arith.NegfOp(x))
