"""The tables of fast Fourier transforms, made when the graph is compiled or by kernels of the run; see `fft`.

- `header` (int64): the number of factors, span, 1 where it is Bluestein's, then from place 8 the factors of span;
- `twiddles`: for each stage w^(c * l1 * i) at [c - 1, i], real parts, then from `room` on the imaginary ones;
- `roots`: for each stage of an odd radix beyond 5 its roots of 1, 2 * `MOST_DIRECT` elements a stage;
- `chirp`: real and imaginary parts of exp(-i pi k^2 / n), n each (at 0 and `room`);
- `filter`: the transform of the chirp's conjugate, span each (at 0 and `room`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, number_of
from sardonyx.backends.llvm.lowering.number import Number
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan
from sardonyx.dialects.dtypes import DType, float64, int64

MOST_DIRECT = 64
"""A prime factor beyond this one is Bluestein's work."""
FACTORS_AT, MOST_FACTORS = 8, 64


# ---- plans that are made when the graph is compiled


def factors_of(n: int) -> list[int]:
    """The radices for a length; empty where a prime factor is too large."""
    out: list[int] = []
    rest = n
    while rest % 4 == 0:
        out.append(4)
        rest //= 4
    if rest % 2 == 0:
        rest //= 2
        out.append(2)
        out[0], out[-1] = out[-1], out[0]
    divisor = 3
    while divisor < MOST_DIRECT:
        while rest % divisor == 0:
            out.append(divisor)
            rest //= divisor
        divisor += 2
    return out if rest == 1 else []


@dataclass
class Tables:
    """The tables of a length (plan-level buffers); `room` is the extent of the planes, `radices` what occurs."""

    header: SSAValue
    twiddles: SSAValue
    roots: SSAValue
    chirp: SSAValue
    filter: SSAValue
    room: IndexLike
    radices: tuple[int, ...]
    direct: bool | None
    """Whether the length has small factors only; None where the run has to look."""


def tables(plan: Plan, length: SSAValue, wide: DType) -> Tables:
    """The tables for a length, which is an index of the plan and at least 1."""
    known = number_of(length)
    return _run_tables(plan, length, wide) if known is None else _constant_tables(plan, known, wide)


def _constant_tables(plan: Plan, n: int, wide: DType) -> Tables:
    factors, span = factors_of(n), n
    direct = bool(factors) or n == 1
    if not direct:
        span = 1 << (2 * n - 2).bit_length()
        factors = factors_of(span)
    header = np.zeros(FACTORS_AT + MOST_FACTORS, np.int64)
    header[:3] = len(factors), span, not direct
    header[FACTORS_AT : FACTORS_AT + len(factors)] = factors
    turns: list[np.ndarray] = []
    roots = np.zeros((max(1, len(factors)), MOST_DIRECT), np.complex128)
    l1 = 1
    for stage, radix in enumerate(factors):
        ido = span // (l1 * radix)
        turns.append((np.arange(1, radix)[:, None] * l1 * np.arange(ido)).reshape(-1) / span)
        roots[stage, :radix] = np.exp(-2j * np.pi * np.arange(radix) / radix)
        l1 *= radix
    twiddles = np.zeros(span, np.complex128)
    if turns:
        angles = np.concatenate(turns)
        twiddles[: len(angles)] = np.exp(-2j * np.pi * angles)
    chirp, found = np.zeros(span, np.complex128), np.zeros(span, np.complex128)
    if not direct:
        k = np.arange(n)
        chirp[:n] = np.exp(-1j * np.pi * (k * k % (2 * n)) / n)
        signal = np.zeros(span, np.complex128)
        signal[:n] = chirp[:n].conj()
        signal[span - n + 1 :] = chirp[1:n].conj()[::-1]
        found = np.fft.fft(signal)

    def planes(z: np.ndarray) -> SSAValue:
        both = np.stack([np.real(z), np.imag(z)]).astype(wide.numpy)
        return plan.constant_array(np.ascontiguousarray(both), wide)

    pairs = np.stack([roots.real, roots.imag], 1).astype(wide.numpy)
    small = np.zeros(1, np.complex128)
    return Tables(
        plan.constant_array(header, int64), planes(twiddles), plan.constant_array(np.ascontiguousarray(pairs), wide),
        planes(small if direct else chirp), planes(small if direct else found), span,
        tuple(sorted(set(factors))), direct,
    )  # fmt: skip


# ---- and by the run


def _run_tables(plan: Plan, length: SSAValue, wide: DType) -> Tables:
    room = plan.body.plus(plan.product(length, 4), 8)
    twice = plan.product(room, 2)
    header = plan.workspace(int64, [FACTORS_AT + MOST_FACTORS])
    made = Tables(
        header, plan.workspace(wide, [twice]), plan.workspace(wide, [MOST_FACTORS * 2 * MOST_DIRECT]),
        plan.workspace(wide, [twice]), plan.workspace(wide, [twice]), room, (4, 2, 0), None,
    )  # fmt: skip
    kernel = plan.kernel("fft_factors")
    _factor(kernel, kernel.write_buffer(header), Number.index(kernel, kernel.outer(length)))
    kernel.launch()
    kernel = plan.kernel("fft_tables")
    _fill(kernel, made, Number.index(kernel, kernel.outer(length)), wide)
    kernel.launch()
    scratch = plan.workspace(wide, [plan.product(room, 4)])
    from sardonyx.backends.llvm.lowering.fft import Transform

    kernel = plan.kernel("fft_filter")
    n = Number.index(kernel, kernel.outer(length))
    target = kernel.write_buffer(made.filter)
    fft = Transform(kernel, made, n, wide, kernel.write_buffer(scratch), own_filter=False)
    kernel.when(fft.is_chirped.value, lambda b: fft.make_filter(b, target))
    kernel.launch()
    return made


def _factor(kernel: Kernel, header: SSAValue, n: Number) -> None:
    """`factors_of` in a kernel; of the power of two where that finds none."""

    def put(b: Body, rest: Number, divisor: Number) -> Number:
        """Note the divisor, if it is one; what is left."""
        divides = (rest % divisor).eq(0) & rest.gt(1)

        def note(inner: Body) -> list[SSAValue]:
            count = Number.load(inner, header, 0, int64).to_index()
            divisor.within(inner).to(int64).store(header, count + FACTORS_AT, int64, inner)
            (count + 1).to(int64).store(header, 0, int64, inner)
            return [(rest.within(inner) // divisor).value]

        return Number(b, b.when(divides.value, note, lambda _: [rest.value])[0], None)

    def all_fours(b: Body, start: Number) -> Number:
        def step(inner: Body, _: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            return [put(inner, Number(inner, carried[0], None), Number.index(inner, 4)).value]

        return Number(b, b.loop(32, step, [("serial", start.value)])[0], None)

    def a_two(b: Body, rest: Number) -> Number:
        after = put(b, rest, Number.index(b, 2))

        def swap(inner: Body) -> None:
            last = Number.load(inner, header, 0, int64).to_index() + (FACTORS_AT - 1)
            first = Number.load(inner, header, FACTORS_AT, int64)
            Number.load(inner, header, last, int64).store(header, FACTORS_AT, int64, inner)
            first.store(header, last, int64, inner)

        b.when(after.ne(rest).value, swap)
        return after

    for place in range(3):
        kernel.store(kernel.const(int64, 0), header, place)
    rest = a_two(kernel, all_fours(kernel, n))

    def odd(b: Body, half: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        divisor = Number.index(b, half) * 2 + 1

        def again(inner: Body, _: SSAValue, values: Sequence[SSAValue]) -> list[SSAValue]:
            return [put(inner, Number(inner, values[0], None), divisor).value]

        return list(b.loop(40, again, [("serial", carried[0])]))

    rest = Number(kernel, kernel.loop(MOST_DIRECT // 2, odd, [("serial", rest.value)], lower=1)[0], None)
    n.to(int64).store(header, 1, int64, kernel)

    def chirped(b: Body) -> None:
        def double(inner: Body, _: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            m = Number(inner, carried[0], None)
            return [m.lt(n * 2 - 1).where(m * 2, m).value]

        span = Number(b, b.loop(62, double, [("serial", b.index(1))])[0], None)
        span.to(int64).store(header, 1, int64, b)
        b.store(b.const(int64, 1), header, 2)
        b.store(b.const(int64, 0), header, 0)
        a_two(b, all_fours(b, span))

    kernel.when(rest.gt(1).value, chirped)


def _fill(kernel: Kernel, made: Tables, n: Number, wide: DType) -> None:
    """Twiddles, roots and chirp."""
    header = kernel.read_buffer(made.header)
    twiddles, roots, chirp = (kernel.write_buffer(t) for t in (made.twiddles, made.roots, made.chirp))
    room = Number.index(kernel, kernel.outer(made.room))
    span = Number.load(kernel, header, 1, int64).to_index()
    full = -2.0 * np.pi

    def wave(b: Body, angle: Number, buffer: SSAValue, at: Number, behind: Number | int) -> None:
        angle.fn("cos").store(buffer, at, wide, b)
        angle.fn("sin").store(buffer, at + behind, wide, b)

    def stage(b: Body, s: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
        l1 = Number(b, carried[0], None)
        radix = Number.load(b, header, Number.index(b, s) + FACTORS_AT, int64).to_index()
        ido = span // (l1 * radix)
        start = span - ido * radix

        def row(c: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
            step = (Number.index(c, k) + 1) * l1

            def turn(v: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
                part = (step * Number.index(v, i)).to(float64) / span.to(float64)
                wave(v, part * full, twiddles, start + Number.index(c, k) * ido + Number.index(v, i), room)

            c.loop(ido.value, turn, vector=True)

        b.loop((radix - 1).value, row)

        def root(v: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
            part = Number.index(v, k).to(float64) / radix.to(float64)
            at = Number.index(b, s) * (2 * MOST_DIRECT) + Number.index(v, k)
            wave(v, part * full, roots, at, MOST_DIRECT)

        b.loop(radix.value, root, vector=True)
        return [(l1 * radix).value]

    count = Number.load(kernel, header, 0, int64).to_index()
    kernel.loop(count.value, stage, [("serial", kernel.index(1))])

    def chirps(b: Body, k: SSAValue, _: Sequence[SSAValue]) -> None:
        own = Number.index(b, k)
        part = ((own * own) % (n * 2)).to(float64) / n.to(float64)
        wave(b, part * -np.pi, chirp, own, room)

    is_chirped = Number.load(kernel, header, 2, int64).to_index()
    kernel.loop((n * is_chirped).value, chirps, vector=True)
