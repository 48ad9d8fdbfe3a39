"""Lowering of tfidf_vectorizer on integers: the n-grams of the pool in a hash table that the compiler makes.

A run looks every window of a sequence up: its hash says where the search begins, and no n-gram lies further from there
than the compiler has seen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.backends.llvm.lowering.region import fill_buffer
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dtypes import bool_, float32, float64, int64
from sardonyx.dialects.sx.tfidf import TfIdfVectorizerOp

_FACTOR = 0x9E3779B97F4A7C15
"""2^64 divided by the golden ratio: a multiplicative hash (Knuth, The Art of Computer Programming 3, 6.4)."""
_MASK = (1 << 64) - 1
I64 = IntegerType(64)


@dataclass(frozen=True)
class _Table:
    """The n-grams of one length: in each slot the n-gram's elements and column, or column -1; `bits` of the hash are
    the slot, and no n-gram is more than `reach` slots behind its own."""

    length: int
    bits: int
    reach: int
    grams: np.ndarray[Any, Any]
    columns: np.ndarray[Any, Any]


def _hash(gram: Sequence[int]) -> int:
    found = 0
    for element in gram:
        found = ((found ^ (element & _MASK)) * _FACTOR) & _MASK
    return found


def _table(grams: dict[tuple[int, ...], int], length: int) -> _Table:
    """Open addressing at most half full, the slots behind the last one for those that begin near it."""
    bits = max(1, (2 * len(grams) - 1).bit_length())
    size = (1 << bits) + len(grams)
    columns, held = np.full(size, -1, np.int64), np.zeros((size, length), np.int64)
    reach = 0
    for gram, column in grams.items():
        first = _hash(gram) >> (64 - bits)
        at = first
        while columns[at] >= 0:
            at += 1
        columns[at], held[at] = column, gram
        reach = max(reach, at - first + 1)
    return _Table(length, bits, reach, held, columns)


@lowers(TfIdfVectorizerOp)
def _tfidf(plan: Plan, op: TfIdfVectorizerOp) -> None:
    dims, body = dims_of(op.x), plan.body
    rows, length, width = body.index(plan.count(dims[:-1])), plan.dim(dims[-1]), op.columns
    counts = plan.workspace(int64, [rows, width])
    fill_buffer(plan, int64, counts, plan.product(rows, width), 0)
    by_length: dict[int, dict[tuple[int, ...], int]] = {}
    for gram, column in op.grams().items():
        by_length.setdefault(len(gram), {})[gram] = column  # pyright: ignore[reportArgumentType]
    kernel = plan.kernel("tfidf")
    source, target = kernel.read(op.x), kernel.write_buffer(counts)
    tables = [
        (table, *(kernel.read_buffer(plan.constant_array(a, int64)) for a in (table.grams, table.columns)))
        for table in (_table(grams, size) for size, grams in sorted(by_length.items()))
    ]
    size = kernel.outer(length)
    distances = kernel.index_math("min", op.attr("max_skip_count") + 1, kernel.index_math("max", size, 1))

    def row(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        first, line = b.times(number, size), b.times(number, width)
        for table, grams, columns in tables:

            def distance(
                c: Body, skipped: SSAValue, _: Sequence[SSAValue], held: Any = (table, grams, columns)
            ) -> None:
                step = c.plus(skipped, 1)
                starts = c.minus(size, c.times(step, held[0].length - 1))

                def window(d: Body, start: SSAValue, _: Sequence[SSAValue]) -> None:
                    places = [d.plus(d.plus(first, start), d.times(step, k)) for k in range(held[0].length)]
                    elements = [d.convert(d.load(source, p), dtype_of(op.x), int64) for p in places]
                    _count(d, held, elements, target, line)

                c.loop(starts, window)

            # Single elements are the same at every distance.
            b.loop(distances if table.length > 1 else 1, distance)

    kernel.loop(kernel.outer(rows), row, parallel=True)
    kernel.launch()
    _weigh(plan, op, counts, plan.product(rows, width))


def _count(
    b: Body, held: tuple[_Table, SSAValue, SSAValue], elements: Sequence[SSAValue], target: SSAValue, line: IndexLike
) -> None:
    """Add 1 to the column of an n-gram, if the table has it."""
    table, grams, columns = held
    factor = b.const(int64, _FACTOR - (1 << 64))
    found = b.const(int64, 0)
    for element in elements:
        found = b.arithmetic("mul", int64, b.add(arith.XOrIOp(found, element)), factor)
    slot = b.to_index(b.math("lshr", I64, found, b.const(int64, 64 - table.bits)), int64)

    def probe(c: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
        at = c.plus(slot, k)
        column = c.load(columns, at)
        same = c.compare_scalars("ge", int64, column, c.const(int64, 0))
        for number, element in enumerate(elements):
            other = c.load(grams, c.plus(c.times(at, table.length), number))
            same = c.both(same, c.compare_scalars("eq", int64, other, element))

        def hit(d: Body) -> None:
            place = d.plus(line, d.to_index(column, int64))
            d.store(d.arithmetic("add", int64, d.load(target, place), d.const(int64, 1)), target, place)

        c.when(same, hit)

    b.loop(table.reach, probe)


def _weigh(plan: Plan, op: TfIdfVectorizerOp, counts: SSAValue, total: SSAValue) -> None:
    """The result from the counts: themselves, whether there are any, or either times the column's weight."""
    weights, mode, width = op.attr("weights"), op.attr("mode"), op.columns
    kernel: Kernel = plan.kernel("weigh")
    read, write = kernel.read_buffer(counts), kernel.write(op.output)
    weighted = mode != "TF" and weights is not None
    table = None
    if weighted:
        table = kernel.read_buffer(plan.constant_array(np.array(weights, np.float64).astype(np.float32), float32))

    def row(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        def column(c: Body, j: SSAValue, _: Sequence[SSAValue]) -> None:
            at = c.plus(c.times(number, width), j)
            found = c.load(read, at)
            if mode == "IDF":
                some = c.compare_scalars("gt", int64, found, c.const(int64, 0))
                found = c.convert(some, bool_, int64)
            value = c.convert(found, int64, float64)
            if table is not None:
                value = c.arithmetic("mul", float64, value, c.convert(c.load(table, j), float32, float64))
            c.store(c.convert(value, float64, float32), write, at)

        b.loop(width, column, vector=True)

    rows = plan.body.index_math("floordiv", total, max(width, 1))
    kernel.loop(kernel.outer(rows), row, parallel=True)
    kernel.launch()
