"""Fast Fourier transforms inside kernels: the stages, by the tables of `fft_tables`.

Source: the Stockham form that FFTPACK and pocketfft have (P. N. Swarztrauber, "Vectorizing the FFTs", 1982), with their
order of factors (fours, a two in front, then odd ones), and L. Bluestein, "A linear filtering approach to the
computation of the discrete Fourier transform" (1970) over a power of two.

A transform of length n works in *scratch*: two halves of 2 * span elements, each the real parts and then the imaginary
ones; `span` is n, or the power of two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, number_of
from sardonyx.backends.llvm.lowering.fft_tables import FACTORS_AT, MOST_DIRECT, Tables
from sardonyx.backends.llvm.lowering.number import Number
from sardonyx.backends.llvm.lowering.plan import Kernel
from sardonyx.dialects.dtypes import DType, int64

WIDE_ENOUGH = 8
"""From so many elements on the inner loop of a stage goes along them, else along its blocks."""

# ---- the transform


Read = Callable[[Body, Number], tuple[Number, Number]]
"""`read(body, k)` gives the real and imaginary part of element k."""
Write = Callable[[Body, Number, Number, Number], None]
"""`write(body, k, real, imaginary)`"""


class Transform:
    """Transforms rows of n complex numbers inside a kernel; `scratch` is a buffer of its own for each chunk."""

    def __init__(
        self, kernel: Kernel, made: Tables, n: Number, wide: DType, scratch: SSAValue, own_filter: bool = True
    ) -> None:
        self.kernel, self.wide, self.n, self.scratch, self.made = kernel, wide, n, scratch, made
        self.header, self.twiddles = kernel.read_buffer(made.header), kernel.read_buffer(made.twiddles)
        self.roots, self.chirp = kernel.read_buffer(made.roots), kernel.read_buffer(made.chirp)
        self.filter = kernel.read_buffer(made.filter) if own_filter else None
        self.room = Number.index(kernel, kernel.outer(made.room))
        known = number_of(made.room) if made.direct is not None else None
        if known is not None:
            self.span = Number.index(kernel, known)
        else:
            self.span = Number.load(kernel, self.header, 1, int64).to_index()
        self.stages = Number.load(kernel, self.header, 0, int64).to_index()
        self.is_chirped = Number.load(kernel, self.header, 2, int64).ne(0)

    def rows(self, b: Body, base: Number, bins: Number, read: Read, write: Write) -> None:
        """Transform what `read` gives for k < n, and hand the first `bins` results to `write`."""
        direct = self.made.direct
        self._either(b, lambda t: self._put(t, base, self.n, read), lambda t: self._put_chirped(t, base, read))
        half = Number.index(b, 0)
        if direct is True:
            half = self._stages(b, base, half)
        else:  # a convolution with the chirp: there, times the filter, and back with the parts exchanged

            def turn(at: Body, number: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
                after = self._stages(at, base, Number(at, carried[0], None))
                first = Number.index(at, number).eq(0) & self.is_chirped
                at.when(first.value, lambda t: self._filtered(t, base + after * self.span * 2))
                return [after.value]

            turns = self.is_chirped.to(int64).to_index() + 1
            half = Number(b, b.loop(turns.value, turn, [("serial", half.value)])[0], None)
        result = base + half * self.span * 2
        self._either(
            b, lambda t: self._take(t, result, bins, write), lambda t: self._take_chirped(t, result, bins, write)
        )

    def _either(self, b: Body, direct: Callable[[Body], None], chirped: Callable[[Body], None]) -> None:
        known = self.made.direct
        if known is None:
            b.when(self.is_chirped.value, chirped, direct)
        else:
            (direct if known else chirped)(b)

    def _put(self, b: Body, at: Number, count: Number, read: Read) -> None:
        def step(v: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            k = Number.index(v, index)
            real, imaginary = read(v, k)
            real.store(self.scratch, at + k, self.wide, v)
            imaginary.store(self.scratch, at + self.span + k, self.wide, v)

        b.loop(count.value, step, vector=True)

    def _take(self, b: Body, at: Number, count: Number, write: Write) -> None:
        def step(v: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            k = Number.index(v, index)
            write(v, k, *self._at(v, at + k))

        b.loop(count.value, step, vector=True)

    def _at(self, b: Body, place: Number) -> tuple[Number, Number]:
        return (
            Number.load(b, self.scratch, place, self.wide),
            Number.load(b, self.scratch, place + self.span, self.wide),
        )

    def _planes(self, b: Body, buffer: SSAValue, k: Number) -> tuple[Number, Number]:
        return Number.load(b, buffer, k, self.wide), Number.load(b, buffer, k + self.room, self.wide)

    def _put_chirped(self, b: Body, base: Number, read: Read) -> None:
        zero = Number.const(self.kernel, 0.0, self.wide)

        def chirped(v: Body, k: Number) -> tuple[Number, Number]:
            return _times(read(v, k), self._planes(v, self.chirp, k))

        self._put(b, base, self.n, chirped)
        self._put(b, base + self.n, self.span - self.n, lambda v, k: (zero, zero))

    def _filtered(self, b: Body, at: Number) -> None:
        def filtered(v: Body, k: Number) -> tuple[Number, Number]:
            if self.filter is None:
                raise ValueError("the filter is being made")
            real, imaginary = _times(self._at(v, at + k), self._planes(v, self.filter, k))
            return imaginary, real

        self._put(b, at, self.span, filtered)

    def _take_chirped(self, b: Body, at: Number, bins: Number, write: Write) -> None:
        scale = 1.0 / self.span.to(self.wide)

        def give(v: Body, k: Number, real: Number, imaginary: Number) -> None:
            write(v, k, *_times((imaginary * scale, real * scale), self._planes(v, self.chirp, k)))

        self._take(b, at, bins, give)

    def make_filter(self, b: Body, target: SSAValue) -> None:
        """The transform of the conjugated chirp, wrapped around the ends."""
        zero, base = Number.const(self.kernel, 0.0, self.wide), Number.index(self.kernel, 0)

        def wrapped(v: Body, k: Number) -> tuple[Number, Number]:
            mirrored = self.span - k
            near, far = k.lt(self.n), mirrored.lt(self.n)
            own = near.where(k, far.where(mirrored, 0))
            real, imaginary = self._planes(v, self.chirp, own)
            there = near | far
            return there.where(real, zero), there.where(-imaginary, zero)

        self._put(b, base, self.span, wrapped)
        half = self._stages(b, base, Number.index(b, 0), (4, 2))

        def put(v: Body, k: Number, real: Number, imaginary: Number) -> None:
            real.store(target, k, self.wide, v)
            imaginary.store(target, k + self.room, self.wide, v)

        self._take(b, base + half * self.span * 2, self.span, put)

    def _stages(self, b: Body, base: Number, start: Number, radices: Sequence[int] = ()) -> Number:
        """All stages from the half `start` on; the half in which the result is."""
        kernel, radices = self.kernel, radices or self.made.radices

        def stage(at: Body, s: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            l1, half = Number(at, carried[0], None), Number(at, carried[1], None)
            radix = Number.load(at, self.header, Number.index(at, s) + FACTORS_AT, int64).to_index()
            here, there = base + half * self.span * 2, base + (1 - half) * self.span * 2

            def choose(inner: Body, left: Sequence[int]) -> None:
                first = left[0]
                if len(left) == 1:
                    work(inner, first)
                    return
                inner.when(radix.eq(first).value, lambda t: work(t, first), lambda e: choose(e, left[1:]))

            def work(inner: Body, number: int) -> None:
                known = radix.within(inner) if number == 0 or number > 5 else Number.index(kernel, number)
                _Stage(self, inner, Number.index(at, s), known, l1.within(inner), here, there).emit(number)

            if radices:
                choose(at, radices)
            return [(l1 * radix).value, (1 - half).value]

        carried = [("serial", kernel.index(1)), ("serial", start.value)]
        return Number(b, b.loop(self.stages.value, stage, carried)[1], None)


def _times(a: tuple[Number, Number], w: tuple[Number, Number]) -> tuple[Number, Number]:
    return a[0] * w[0] - a[1] * w[1], a[1] * w[0] + a[0] * w[1]


Complex = tuple[Number, Number]


def _plus(a: Complex, b: Complex) -> Complex:
    return a[0] + b[0], a[1] + b[1]


def _less(a: Complex, b: Complex) -> Complex:
    return a[0] - b[0], a[1] - b[1]


class _Stage:
    """One stage: from [l1, radix, ido] to [radix, l1, ido]."""

    def __init__(
        self, fft: Transform, body: Body, number: Number, radix: Number, l1: Number, here: Number, there: Number
    ) -> None:
        self.fft, self.body, self.number, self.radix, self.l1 = fft, body, number, radix, l1
        self.here, self.there = here, there
        self.ido = fft.span.within(body) // (l1 * radix)
        self.start = fft.span - self.ido * radix

    def emit(self, radix: int) -> None:
        """Radices beyond 5 (0: only the run knows which) go by a loop over their roots."""

        def along(b: Body) -> None:
            def block(outer: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
                own = Number.index(outer, k)
                outer.loop(self.ido.value, lambda v, i, _: self._point(v, own, Number.index(v, i), radix), vector=True)

            b.loop(self.l1.value, block)

        def across(b: Body) -> None:
            def element(outer: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
                own = Number.index(outer, i)
                outer.loop(self.l1.value, lambda v, k, _: self._point(v, Number.index(v, k), own, radix))

            b.loop(self.ido.value, element)

        self.body.when(self.ido.ge(WIDE_ENOUGH).value, along, across)

    def _read(self, b: Body, k: Number, i: Number, place: Number | int) -> Complex:
        return self.fft._at(b, self.here + (k * self.radix + place) * self.ido + i)

    def _write(self, b: Body, k: Number, i: Number, c: Number | int, value: Complex) -> None:
        """Times its twiddle, which is 1 for i = 0 (an infinity stays one)."""
        fft = self.fft
        if not isinstance(c, int) or c:
            row = c - 1 if isinstance(c, int) else (c - 1).max(0)  # the first output has no twiddles
            at = self.start + row * self.ido + i
            turned = _times(value, fft._planes(b, fft.twiddles, at))
            first = i.eq(0)
            if not isinstance(c, int):
                first = first | c.eq(0)
            value = first.where(value[0], turned[0]), first.where(value[1], turned[1])
        at = self.there + (k + self.l1 * c) * self.ido + i
        value[0].store(fft.scratch, at, fft.wide, b)
        value[1].store(fft.scratch, at + fft.span, fft.wide, b)

    def _point(self, b: Body, k: Number, i: Number, radix: int) -> None:
        if radix not in (2, 3, 4, 5):
            self._by_roots(b, k, i)
            return
        t = [self._read(b, k, i, place) for place in range(radix)]
        found = {2: _radix2, 3: _radix3, 4: _radix4, 5: _radix5}[radix](t)
        for c, value in enumerate(found):
            self._write(b, k, i, c, value)

    def _by_roots(self, b: Body, k: Number, i: Number) -> None:
        fft = self.fft
        table = self.number * (2 * MOST_DIRECT)
        zero = b.const(fft.wide, 0)

        def output(outer: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            c = Number.index(outer, index)

            def term(inner: Body, place: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
                own = Number.index(inner, place)
                at = table + (own * c) % self.radix
                root = (
                    Number.load(inner, fft.roots, at, fft.wide),
                    Number.load(inner, fft.roots, at + MOST_DIRECT, fft.wide),
                )
                product = _times(self._read(inner, k, i, own), root)
                first = (own * c).eq(0)
                value = self._read(inner, k, i, own)
                real, imaginary = first.where(value[0], product[0]), first.where(value[1], product[1])
                so_far = Number(inner, carried[0], fft.wide), Number(inner, carried[1], fft.wide)
                return [x.value for x in _plus(so_far, (real, imaginary))]

            real, imaginary = outer.loop(self.radix.value, term, [("serial", zero), ("serial", zero)])
            self._write(outer, k, i, c, (Number(outer, real, fft.wide), Number(outer, imaginary, fft.wide)))

        b.loop(self.radix.value, output)


def _radix2(t: Sequence[Complex]) -> list[Complex]:
    return [_plus(t[0], t[1]), _less(t[0], t[1])]


def _radix3(t: Sequence[Complex]) -> list[Complex]:
    sine = -0.86602540378443864676
    total, apart = _plus(t[1], t[2]), _less(t[1], t[2])
    middle = t[0][0] + total[0] * -0.5, t[0][1] + total[1] * -0.5
    side = -(apart[1] * sine), apart[0] * sine
    return [_plus(t[0], total), _plus(middle, side), _less(middle, side)]


def _radix4(t: Sequence[Complex]) -> list[Complex]:
    even, odd = _plus(t[0], t[2]), _less(t[0], t[2])
    total, apart = _plus(t[1], t[3]), _less(t[1], t[3])
    side = apart[1], -apart[0]  # times -i
    return [_plus(even, total), _plus(odd, side), _less(even, total), _less(odd, side)]


def _radix5(t: Sequence[Complex]) -> list[Complex]:
    cosines, sines = (0.3090169943749474241, -0.8090169943749474241), (-0.95105651629515357212, -0.58778525229247312917)
    t1, t4 = _plus(t[1], t[4]), _less(t[1], t[4])
    t2, t3 = _plus(t[2], t[3]), _less(t[2], t[3])

    def pair(a: int, sign: float) -> tuple[Complex, Complex]:
        b = 1 - a
        middle = tuple(t[0][p] + t1[p] * cosines[a] + t2[p] * cosines[b] for p in (0, 1))
        real = t4[0] * sines[a] + t3[0] * (sign * sines[b])
        imaginary = t4[1] * sines[a] + t3[1] * (sign * sines[b])
        side = -imaginary, real
        center = middle[0], middle[1]
        return _plus(center, side), _less(center, side)

    (one, four), (two, three) = pair(0, 1.0), pair(1, -1.0)
    first = t[0][0] + t1[0] + t2[0], t[0][1] + t1[1] + t2[1]
    return [first, one, two, three, four]
