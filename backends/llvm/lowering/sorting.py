"""Sorting inside kernels: keys that compare as integers, and a stable sort of a list of (key, place) pairs.

Every dtype has a *key*: a signed integer of 32 or 64 bits whose order is that of the values, NaN above all numbers and
the zeros of both signs equal (or the reverse order). Long lists are sorted by radix, eight bits a pass (LSD: Knuth, The
Art of Computer Programming 3, 5.2.5), passes that would move nothing left out; short ones by rank, each element's place
being the number of those before it. Neither branches on the data.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan
from sardonyx.dialects.dtypes import DType, float32, int32, int64
from sardonyx.dialects.kernel.ops import ChunkOp

DIGIT = 8
BUCKETS = 1 << DIGIT
BY_RANK = 64
"""Up to so many elements are sorted by rank."""
MOST_CHUNKS = 256
LONGEST = 1 << 31
"""Places of elements that a list can hold with keys of 32 bits."""

I32, I64 = IntegerType(32), IntegerType(64)
_INFINITE = {"float16": 0x7C00, "bfloat16": 0x7F80, "float32": 0x7F800000, "float64": 0x7FF0000000000000}


def key_dtype(dtype: DType) -> DType:
    """The dtype of keys: int32, or int64 for elements of 64 bits."""
    return int64 if dtype.bits == 64 else int32


def key_of(b: Body, value: SSAValue, dtype: DType, descending: bool = False) -> SSAValue:
    """The key of an element."""
    if dtype.is_float and dtype.name not in _INFINITE:
        value, dtype = b.convert(value, dtype, float32), float32
    elif dtype.is_integer and dtype.bits < 8:
        value, dtype = b.convert(value, dtype, int32), int32
    held = key_dtype(dtype)
    if dtype.is_float:
        bits = b.add(arith.BitcastOp(value, IntegerType(dtype.bits)))
        bits = b.add(arith.ExtSIOp(bits, I32)) if dtype.bits == 16 else bits
        top = (1 << (dtype.bits - 1)) - 1
        size = b.both(bits, b.const(held, top))
        # The bits of a negative number grow with its size.
        turned = b.add(
            arith.XOrIOp(
                bits, b.both(b.math("ashr", bits.type, bits, b.const(held, held.bits - 1)), b.const(held, top))
            )
        )
        key = b.select(
            b.compare_scalars("gt", held, size, b.const(held, _INFINITE[dtype.name])), b.const(held, top), turned
        )
        key = b.select(b.compare_scalars("eq", held, size, b.const(held, 0)), b.const(held, 0), key)
    elif dtype.kind == "u" and dtype.bits == held.bits:
        key = b.add(arith.XOrIOp(value, b.const(held, -(1 << (held.bits - 1)))))
    elif dtype.bits == held.bits:
        key = value
    else:
        made = arith.ExtUIOp if dtype.kind in "ub" else arith.ExtSIOp
        key = b.add(made(value, I32))
    return b.add(arith.XOrIOp(key, b.const(held, -1))) if descending else key


def passes_of(dtype: DType) -> int:
    """How many digits tell keys apart; keys of narrow elements repeat their sign above."""
    if (dtype.is_float and dtype.name not in _INFINITE) or dtype.packed:
        return 32 // DIGIT
    return max(1, -(-(dtype.bits + (dtype.kind in "ub" and dtype.bits < 32)) // DIGIT))


@dataclass
class Pairs:
    """Lists of (key, place) inside a kernel: two of them, at offsets 0 and `capacity`, between which a sort moves.

    Keys of 32 bits stand in one word of 64 with the place below them, those of 64 bits beside it.
    """

    dtype: DType
    words: SSAValue
    places: SSAValue | None
    digits: SSAValue
    base: SSAValue
    counts: SSAValue
    capacity: SSAValue

    @property
    def held(self) -> DType:
        return key_dtype(self.dtype)

    def put(self, b: Body, at: IndexLike, key: SSAValue, place: IndexLike) -> None:
        """Store a pair at an offset of the lists."""
        where = b.plus(self.base, at)
        number = b.from_index(b.index(place), int64)
        if self.places is not None:
            b.store(key, self.words, where)
            b.store(number, self.places, where)
            return
        high = b.math("shl", I64, b.add(arith.ExtSIOp(key, I64)), b.const(int64, 32))
        b.store(b.either(high, number), self.words, where)

    def word(self, b: Body, at: IndexLike) -> SSAValue:
        """What is compared: unique where the place is part of it."""
        return b.load(self.words, b.plus(self.base, at))

    def key(self, b: Body, at: IndexLike) -> SSAValue:
        word = self.word(b, at)
        if self.places is not None:
            return word
        return b.add(arith.TruncIOp(b.math("ashr", I64, word, b.const(int64, 32)), I32))

    def place(self, b: Body, at: IndexLike) -> SSAValue:
        if self.places is not None:
            return b.to_index(b.load(self.places, b.plus(self.base, at)), int64)
        return b.to_index(b.both(self.word(b, at), b.const(int64, 0xFFFFFFFF)), int64)

    def move(self, b: Body, source: IndexLike, target: IndexLike) -> None:
        for buffer in (self.words, self.places):
            if buffer is not None:
                b.store(b.load(buffer, b.plus(self.base, source)), buffer, b.plus(self.base, target))

    def sort(
        self, b: Body, source: SSAValue, target: SSAValue, count: SSAValue, by_rank: bool = True
    ) -> Sequence[SSAValue]:
        """Sort `count` pairs at `source`; gives where they are then, and the other list.

        With `by_rank`, places must ascend where keys are equal: short lists are then sorted by rank.
        """
        if not by_rank:
            return self._by_radix(b, source, target, count)
        return b.when(
            b.compare("sle", count, BY_RANK),
            lambda c: self._by_rank(c, source, target, count),
            lambda c: self._by_radix(c, source, target, count),
        )

    def _by_rank(self, b: Body, source: SSAValue, target: SSAValue, count: SSAValue) -> list[SSAValue]:
        """Over lanes of elements, each of which is held against all."""

        def one(c: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
            own = self.word(c, c.plus(source, i))

            def before(d: Body, j: SSAValue, found: Sequence[SSAValue]) -> list[SSAValue]:
                other = self.word(d, d.plus(source, j))
                less = d.compare_scalars("lt", int64, other, own)
                if self.places is not None:  # equal keys keep their order; words with places in them are never equal
                    alike = d.compare_scalars("eq", int64, other, own)
                    less = d.either(less, d.both(alike, d.compare("slt", j, i)))
                return [d.arithmetic("add", int64, found[0], d.add(arith.ExtUIOp(less, I64)))]

            (rank,) = c.loop(count, before, [("add", c.const(int64, 0))])
            self.move(c, c.plus(source, i), c.plus(target, c.to_index(rank, int64)))

        b.loop(count, one, vector=True)
        return [target, source]

    def _digit(self, b: Body, word: SSAValue, number: SSAValue) -> SSAValue:
        """Digit `number` of a word's key, from the lowest on, as an index; the sign counts the other way round."""
        low = 0 if self.places is not None else 32
        passes = passes_of(self.dtype)
        shift = b.from_index(b.plus(b.times(number, DIGIT), low), int64)
        digit = b.both(b.math("lshr", I64, word, shift), b.const(int64, BUCKETS - 1))
        flip = b.select(b.compare("eq", number, passes - 1), b.const(int64, BUCKETS // 2), b.const(int64, 0))
        return b.to_index(b.add(arith.XOrIOp(digit, flip)), int64)

    def _by_radix(self, b: Body, source: SSAValue, target: SSAValue, count: SSAValue) -> list[SSAValue]:
        passes = passes_of(self.dtype)
        counts, digits = self.counts, self.digits
        b.loop(passes * BUCKETS, lambda c, i, _: c.store(c.const(int64, 0), digits, c.plus(counts, i)), vector=True)

        def tally(c: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
            word = self.word(c, c.plus(source, i))
            for number in range(passes):
                at = c.plus(c.plus(counts, number * BUCKETS), self._digit(c, word, c.index(number)))
                c.store(c.arithmetic("add", int64, c.load(digits, at), c.const(int64, 1)), digits, at)

        b.loop(count, tally)

        def one_pass(c: Body, number: SSAValue, lists: Sequence[SSAValue]) -> Sequence[SSAValue]:
            own = c.plus(counts, c.times(number, BUCKETS))
            # Where all keys have one digit nothing would move.
            first = self._digit(c, self.word(c, lists[0]), number)
            alike = c.compare("eq", c.to_index(c.load(digits, c.plus(own, first)), int64), count)
            return c.when(alike, lambda d: lists, lambda d: scatter(d, number, own, lists))

        def scatter(c: Body, number: SSAValue, own: SSAValue, lists: Sequence[SSAValue]) -> list[SSAValue]:
            def running(d: Body, i: SSAValue, total: Sequence[SSAValue]) -> list[SSAValue]:
                at = d.plus(own, i)
                here = d.load(digits, at)
                d.store(total[0], digits, at)
                return [d.arithmetic("add", int64, total[0], here)]

            c.loop(BUCKETS, running, [("serial", c.const(int64, 0))])

            def send(d: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
                at = d.plus(lists[0], i)
                bucket = d.plus(own, self._digit(d, self.word(d, at), number))
                there = d.load(digits, bucket)
                d.store(d.arithmetic("add", int64, there, d.const(int64, 1)), digits, bucket)
                self.move(d, at, d.plus(lists[1], d.to_index(there, int64)))

            c.loop(count, send)
            return [lists[1], lists[0]]

        # A list without elements has no first word to look at.
        return list(
            b.when(
                b.compare("sgt", count, 0),
                lambda c: c.loop(passes, one_pass, [("serial", source), ("serial", target)]),
                lambda c: [source, target],
            )
        )


class PairLists:
    """The memory of lists for the chunks of a kernel: `capacity` pairs twice, and the tables of digits."""

    def __init__(self, plan: Plan, dtype: DType, rows: IndexLike, capacity: IndexLike) -> None:
        body = plan.body
        self.dtype, self.capacity = dtype, capacity
        chunks = body.index_math("min", rows, MOST_CHUNKS)
        size = plan.product(chunks, plan.product(capacity, 2))
        self.words = plan.workspace(int64, [size])
        self.places = plan.workspace(int64, [size]) if key_dtype(dtype) == int64 else None
        self.digits = plan.workspace(int64, [plan.product(chunks, passes_of(dtype) * BUCKETS)])

    def inside(self, kernel: Kernel) -> PairsOf:
        """The lists as arguments of a kernel."""
        words, digits = kernel.write_buffer(self.words), kernel.write_buffer(self.digits)
        places = None if self.places is None else kernel.write_buffer(self.places)
        return PairsOf(self.dtype, words, places, digits, kernel.outer(self.capacity))


@dataclass(frozen=True)
class PairsOf:
    """The lists of a kernel, of which each chunk has its own."""

    dtype: DType
    words: SSAValue
    places: SSAValue | None
    digits: SSAValue
    capacity: SSAValue

    def of_chunk(self, b: Body) -> Pairs:
        """The lists of the chunk that runs."""
        chunk = b.add(ChunkOp())
        base = b.times(b.times(chunk, 2), self.capacity)
        counts = b.times(chunk, passes_of(self.dtype) * BUCKETS)
        return Pairs(self.dtype, self.words, self.places, self.digits, base, counts, self.capacity)
