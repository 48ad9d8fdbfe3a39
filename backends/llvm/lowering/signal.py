"""Lowerings of dft, stft and mel_weight_matrix.

Transforms are computed in float64, but inverse ones of float32 in float32: so NumPy has it, whose values the reference
and ONNX's own test data are. Inverse transforms are forward ones with real and imaginary parts exchanged.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.codegen.pool import MAX_CHUNKS
from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.fft import Transform
from sardonyx.backends.llvm.lowering.fft_tables import tables
from sardonyx.backends.llvm.lowering.number import Number
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, float32, float64
from sardonyx.dialects.kernel.ops import ChunkOp
from sardonyx.dialects.sx.dft import DFTOp, MelWeightMatrixOp, STFTOp
from sardonyx.dialects.values import known_ints


def _one(plan: Plan, value: SSAValue, what: str) -> None:
    """Require that an operand has one element."""
    count = plan.count(dims_of(value))
    plan.body.require(plan.body.compare("eq", count, 1), plan.failure(f"{what} has {{0}} elements, not one"), count)


def _number(plan: Plan, value: SSAValue, what: str) -> SSAValue:
    _one(plan, value, what)
    return plan.read_ints(value, 1)[0]


def _at_least_one(plan: Plan, value: SSAValue, what: str) -> None:
    fits = plan.body.both(plan.body.compare("sge", value, 1), plan.body.compare("sle", value, 1 << 40))
    plan.body.require(fits, plan.failure(f"{what} is {{0}}"), value)


def _parts(plan: Plan, extent: Dim, onesided: bool, inverse: bool) -> SSAValue:
    """How many elements a number is; refuses what a one-sided transform cannot take."""
    body, parts = plan.body, plan.dim(extent)
    ok = body.either(body.compare("eq", parts, 1), body.compare("eq", parts, 2))
    body.require(ok, plan.failure("the last extent is {0}, not 1 or 2"), parts)
    if onesided:
        kind = "real" if inverse else "complex"
        wanted = body.compare("eq", parts, 2 if inverse else 1)
        body.require(wanted, plan.failure(f"a one-sided transform of {kind} numbers"))
    return parts


def _bind_within(plan: Plan, dims: Sequence[Dim], length: SSAValue) -> None:
    """The length of a transform is what stands for a symbol that extents such as `length // 2 + 1` bring up first."""
    for d in dims:
        unknown = [name for name in d.symbols() if not plan.is_bound(Dim.symbol(name))]
        if not d.is_symbol and len(unknown) == 1:
            plan.bind(Dim.symbol(unknown[0]), length, "the transform's length")


class _Signal:
    """Reads complex numbers from a buffer whose numbers have `parts` elements (1 or 2)."""

    def __init__(self, kernel: Kernel, buffer: SSAValue, parts: SSAValue, dtype: DType, wide: DType) -> None:
        self.buffer, self.dtype, self.wide = kernel.read_buffer(buffer), dtype, wide
        self.parts = Number.index(kernel, kernel.outer(parts))
        self.is_complex = self.parts.eq(2)

    def at(self, b: Body, number: Number) -> tuple[Number, Number]:
        place = number * self.parts
        real = Number.load(b, self.buffer, place, self.dtype, self.wide)
        last = Number.load(b, self.buffer, place + (self.parts - 1), self.dtype, self.wide)
        return real, self.is_complex.where(last, 0.0)


@lowers(DFTOp)
def _dft(plan: Plan, op: DFTOp) -> None:
    body, dims, out, dtype = plan.body, dims_of(op.input), dims_of(op.output), dtype_of(op.input)
    inverse, onesided = bool(op.attr("inverse")), bool(op.attr("onesided"))
    rank, wide = len(dims), float32 if dtype == float32 and inverse else float64
    parts = _parts(plan, dims[-1], onesided, inverse)
    outer, extent, inner, place = _around(plan, op)
    body.require(body.compare("sgt", extent, 0), plan.failure("a signal without elements has no transform"))
    if op.dft_length is not None:
        length = _number(plan, op.dft_length, "dft_length")
    elif inverse and onesided:
        length = body.times(body.minus(extent, 1), 2)
    else:
        length = extent
    _at_least_one(plan, length, "the transform's length")
    half = body.plus(body.index_math("floordiv", length, 2), 1)
    bins = half if onesided and not inverse else length
    _bind_within(plan, out, length)
    for a in range(rank - 1):
        here = place if isinstance(place, int) else body.compare("eq", place, a)
        if isinstance(here, int):
            size = bins if a == here else plan.dim(dims[a])
        else:
            size = body.select(here, bins, plan.dim(dims[a]))
        plan.bind(out[a], size, f"the extent of axis {a}")
    made, rows = tables(plan, length, wide), plan.product(outer, inner)
    chunks = body.index_math("max", body.index_math("min", rows, MAX_CHUNKS), 1)
    scratch = plan.workspace(wide, [chunks, plan.product(made.room, 4)])
    kernel = plan.kernel("dft")
    signal = _Signal(kernel, plan.buffer(op.input), parts, dtype, wide)
    write = kernel.write(op.output)
    n, given, below, count = (Number.index(kernel, kernel.outer(v)) for v in (length, extent, inner, bins))
    fft = Transform(kernel, made, n, wide, kernel.write_buffer(scratch))
    room = Number.index(kernel, kernel.outer(made.room)) * 4
    scale = 1.0 / n.to(wide)
    real_result = inverse and onesided

    def row(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        flat = Number.index(b, number)
        o, i = flat // below, flat % below
        source, target = o * given * below + i, o * count * below + i
        base = Number(b, b.add(ChunkOp()), None) * room

        def read(v: Body, k: Number) -> tuple[Number, Number]:
            at = k
            if real_result:  # the other half of the spectrum is the mirrored first one
                at = k.min(n - k)
            there = at.lt(given)
            real, imaginary = signal.at(v, source + at.min(given - 1) * below)
            real, imaginary = there.where(real, 0.0), there.where(imaginary, 0.0)
            if real_result:
                alone = at.eq(0) | (at * 2).eq(n)
                imaginary = alone.where(Number.const(kernel, 0.0, wide), (k * 2).gt(n).where(-imaginary, imaginary))
            return (imaginary, real) if inverse else (real, imaginary)

        def put(v: Body, k: Number, real: Number, imaginary: Number) -> None:
            at = target + k * below
            if inverse:
                real, imaginary = imaginary * scale, real * scale
            if real_result:
                real.store(write, at, dtype, v)
                return
            real.store(write, at * 2, dtype, v)
            imaginary.store(write, at * 2 + 1, dtype, v)

        fft.rows(b, base, count, read, put)

    kernel.loop(kernel.outer(rows), row, parallel=True)
    kernel.launch()


def _around(plan: Plan, op: DFTOp) -> tuple[IndexLike, SSAValue, IndexLike, int | SSAValue]:
    """The numbers of elements before, along and behind the axis (the last one aside), and which it is."""
    dims, body = dims_of(op.input)[:-1], plan.body
    rank = len(dims) + 1
    known = (-2,) if op.axis is None else known_ints(op.axis)
    if known is not None:
        a = known[0] % rank
        return plan.count(dims[:a]), plan.dim(dims[a]), plan.count(dims[a + 1 :]), a
    if op.axis is None:
        raise op.fail("(C3) the axis is unknown")
    given = _number(plan, op.axis, "axis")
    place = body.select(body.compare("slt", given, 0), body.plus(given, rank), given)
    inside = body.both(body.compare("sge", place, 0), body.compare("slt", place, rank - 1))
    body.require(inside, plan.failure(f"axis {{0}} of an operand of rank {rank} cannot be transformed"), given)
    outer: IndexLike = 1
    extent: IndexLike = 1
    inner: IndexLike = 1
    one = body.index(1)
    for a, d in enumerate(dims):
        size = plan.dim(d)
        outer = plan.product(outer, body.select(body.compare("slt", a, place), size, one))
        extent = plan.product(extent, body.select(body.compare("eq", a, place), size, one))
        inner = plan.product(inner, body.select(body.compare("sgt", a, place), size, one))
    return outer, body.index(extent), inner, place


@lowers(STFTOp)
def _stft(plan: Plan, op: STFTOp) -> None:
    body, dims, out, dtype = plan.body, dims_of(op.signal), dims_of(op.output), dtype_of(op.signal)
    wide, onesided = float64, bool(op.attr("onesided"))
    parts = _parts(plan, dims[2], onesided, False)
    step = _number(plan, op.frame_step, "frame_step")
    _at_least_one(plan, step, "frame_step")
    if op.frame_length is not None:
        length = _number(plan, op.frame_length, "frame_length")
    else:
        length = plan.dim(dims[1] if op.window is None else dims_of(op.window)[0])
    _at_least_one(plan, length, "frame_length")
    size = plan.dim(dims[1])
    body.require(body.compare("sle", length, size), plan.failure("{1} elements have no frame of {0}"), length, size)
    if op.window is not None:
        have = plan.dim(dims_of(op.window)[0])
        body.require(
            body.compare("eq", have, length), plan.failure("the window has {0} elements, a frame {1}"), have, length
        )
    frames = body.plus(body.index_math("floordiv", body.minus(size, length), step), 1)
    bins = body.plus(body.index_math("floordiv", length, 2), 1) if onesided else length
    _bind_within(plan, out, length)
    for a, (extent, what) in enumerate(((plan.dim(dims[0]), "the batch"), (frames, "frames"), (bins, "bins"))):
        plan.bind(out[a], extent, f"the number of {what}")
    made, rows = tables(plan, length, wide), plan.product(plan.dim(dims[0]), frames)
    chunks = body.index_math("max", body.index_math("min", rows, MAX_CHUNKS), 1)
    scratch = plan.workspace(wide, [chunks, plan.product(made.room, 4)])
    kernel = plan.kernel("stft")
    signal = _Signal(kernel, plan.buffer(op.signal), parts, dtype, wide)
    window = None if op.window is None else kernel.read(op.window)
    write = kernel.write(op.output)
    n, total, stride, number, count = (
        Number.index(kernel, kernel.outer(v)) for v in (length, size, step, frames, bins)
    )
    fft = Transform(kernel, made, n, wide, kernel.write_buffer(scratch))
    room = Number.index(kernel, kernel.outer(made.room)) * 4

    def row(b: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
        flat = Number.index(b, index)
        source = flat // number * total + flat % number * stride
        base = Number(b, b.add(ChunkOp()), None) * room

        def read(v: Body, k: Number) -> tuple[Number, Number]:
            real, imaginary = signal.at(v, source + k)
            if window is not None:
                factor = Number.load(v, window, k, dtype, wide)
                real, imaginary = real * factor, imaginary * factor
            return real, imaginary

        def put(v: Body, k: Number, real: Number, imaginary: Number) -> None:
            at = (flat * count + k) * 2
            real.store(write, at, dtype, v)
            imaginary.store(write, at + 1, dtype, v)

        fft.rows(b, base, count, read, put)

    kernel.loop(kernel.outer(rows), row, parallel=True)
    kernel.launch()


@lowers(MelWeightMatrixOp)
def _mel(plan: Plan, op: MelWeightMatrixOp) -> None:
    body, out, dtype = plan.body, dims_of(op.output), dtype_of(op.output)
    bands = _number(plan, op.num_mel_bins, "num_mel_bins")
    length, rate = _number(plan, op.dft_length, "dft_length"), _number(plan, op.sample_rate, "sample_rate")
    body.require(body.compare("sge", bands, 0), plan.failure("num_mel_bins is {0}"), bands)
    _at_least_one(plan, length, "dft_length")
    body.require(body.compare("sge", rate, 1), plan.failure("sample_rate is {0}"), rate)
    edges: list[Number] = []
    for value, what in ((op.lower_edge_hertz, "lower_edge_hertz"), (op.upper_edge_hertz, "upper_edge_hertz")):
        _one(plan, value, what)
        edge = Number.load(body, plan.buffer(value), 0, dtype_of(value), float64)
        body.require((edge.gt(-700.0) & edge.lt(math.inf)).value, plan.failure(f"{what} is no frequency"))
        edges.append(edge)
    plan.bind(out[0], body.plus(body.index_math("floordiv", length, 2), 1), "the number of bins")
    plan.bind(out[1], bands, "the number of bands")
    places = plan.workspace(float64, [body.plus(bands, 2)])
    kernel = plan.kernel("mel_places")
    spots = kernel.write_buffer(places)
    low, high = (_mel_of(Number(kernel, kernel.outer(e.value), float64)) for e in edges)
    number, points, hertz = (Number.index(kernel, kernel.outer(v)) for v in (bands, length, rate))
    spectrum = (points // 2 + 1).to(float64)
    wide = points.to(float64) + 1.0
    failure = plan.failure("a band reaches beyond the spectrum of {0} bins")
    step = (high - low) / (number.to(float64) + 2.0)

    def place(b: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
        mel = Number.index(b, index).to(float64) * step + low
        frequency = 700.0 * (Number.const(b, 10.0).fn("pow", mel / 2595.0) - 1.0)
        at = (wide * frequency / hertz.to(float64)).floor()
        inside = (at.ge(0.0) & at.lt(spectrum)) | number.eq(0)
        b.require(inside.value, failure, (points // 2 + 1).value)
        at.store(spots, index, float64, b)

    kernel.loop((number + 2).value, place)
    kernel.launch()
    kernel = plan.kernel("mel_weights")
    spots, write = kernel.read_buffer(places), kernel.write(op.output)
    columns = Number.index(kernel, kernel.extent(out[1]))

    def row(b: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
        at = Number.index(b, index).to(float64)

        def column(v: Body, j: SSAValue, _: Sequence[SSAValue]) -> None:
            band = Number.index(v, j)
            left, peak, right = (Number.load(v, spots, band + k, float64) for k in range(3))
            nothing = Number.const(v, 0.0)
            rising = (at.ge(left) & at.le(peak)).where((at - left) / (peak - left).max(1.0), nothing)
            falling = (at.ge(peak) & at.lt(right)).where((right - at) / (right - peak).max(1.0), nothing)
            value = at.eq(peak).where(Number.const(v, 1.0), rising + falling)
            value.store(write, Number.index(b, index) * columns + band, dtype, v)

        b.loop(columns.value, column, vector=True)

    kernel.loop(kernel.extent(out[0]), row, parallel=True)
    kernel.launch()


def _mel_of(hertz: Number) -> Number:
    return (hertz / 700.0 + 1.0).fn("log") * (2595.0 / math.log(10.0))
