"""Lowerings of the pools.

With channels last the lanes are channels (see `conv_slide`). With channels second every window walks over its cells, in
a padded copy where there is padding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype
from sardonyx.backends.llvm.lowering.conv_shape import Sliding, channels_put_second, paddings, require_fit
from sardonyx.backends.llvm.lowering.conv_slide import Place, Slide, Steps
from sardonyx.backends.llvm.lowering.elementwise import nest
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.backends.llvm.lowering.region import Axis, axis, copy_region, fill_buffer, row_major
from sardonyx.dialects.attributes import Shape, dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, int64
from sardonyx.dialects.sx.pool import AveragePoolOp, GlobalAveragePoolOp, GlobalMaxPoolOp, MaxPoolOp, PoolOp
from sardonyx.dialects.sx.windows import Windows, channels_second


@dataclass
class Frame:
    """Where the windows read: a buffer of planes with these spatial extents, and the padding in front."""

    buffer: SSAValue
    sizes: list[Dim]
    before: list[Dim]
    after: list[Dim]
    windows: Windows


def _dims(op: PoolOp) -> tuple[Shape, Shape]:
    """The dims [N, C, D1, …] of the operand and of the result."""
    last = op.channels_are_last
    return channels_second(dims_of(op.x), last), channels_second(dims_of(op.results[0]), last)


def _frame(plan: Plan, op: PoolOp, lowest: float | int) -> Frame:
    """Pad the operand with a value that never counts, far enough for every window; its channels come second."""
    (x, out), dtype = _dims(op), dtype_of(op.x)
    windows, counts, sizes = op.windows(len(x) - 2), out[2:], list(x[2:])
    require_fit(plan, counts)
    data = plan.buffer(op.x)
    if op.channels_are_last:
        second = plan.workspace(dtype, [plan.dim(d) for d in x])
        channels_put_second(plan, (dtype, dtype), data, second, x)
        data = second
    pads = paddings(windows, sizes, counts)
    before, after = [b for b, _ in pads], [a for _, a in pads]
    if not windows.ceil and all(p.static_value == 0 for pair in pads for p in pair):
        return Frame(data, sizes, before, after, windows)
    room = []
    for at, (size, count, (b, a)) in enumerate(zip(sizes, counts, pads, strict=True)):
        needed = (count - 1) * windows.strides[at] + windows.reach(at)
        room.append(Dim.max(size + b + a, needed))
    shape = [*x[:2], *room]
    buffer = plan.workspace(dtype, [plan.dim(d) for d in shape])
    fill_buffer(plan, dtype, buffer, plan.count(shape), lowest)
    axes = [axis(d, s, t) for d, s, t in zip(x, row_major(x), row_major(shape), strict=True)]
    first = Dim.sum(b * s for b, s in zip(before, row_major(room), strict=True))
    copy_region(plan, "pad", axes, data, buffer, 0, first)
    return Frame(buffer, room, before, after, windows)


def _lowest(dtype: DType) -> float | int:
    if dtype.is_float:
        return float("-inf")
    return 0 if dtype.kind == "u" else -(1 << (dtype.bits - 1))


Step = Callable[[Body, SSAValue, Sequence[SSAValue], Sequence[SSAValue]], list[SSAValue]]
"""`step(b, offset in the frame, taps, carried values)` returns the carried values' next state."""


def _walk(
    b: Body,
    kernel: Sequence[IndexLike],
    steps: Sequence[IndexLike],
    base: IndexLike,
    start: Sequence[SSAValue],
    step: Step,
) -> tuple[SSAValue, ...]:
    """Walk over the cells of a window in row-major order."""

    def level(
        at: Body, depth: int, offset: IndexLike, taps: list[SSAValue], carried: Sequence[SSAValue]
    ) -> Sequence[SSAValue]:
        if depth == len(kernel):
            return step(at, at.index(offset), taps, carried)

        def body(inner: Body, tap: SSAValue, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
            return level(inner, depth + 1, inner.plus(offset, inner.times(tap, steps[depth])), [*taps, tap], values)

        return at.loop(kernel[depth], body, [("serial", v) for v in carried])

    return tuple(level(b, 0, base, [], start))


@dataclass
class _Setup:
    """The indices of a pooling kernel."""

    bounds: list[IndexLike]
    plane: SSAValue
    steps: list[SSAValue]
    taps: list[SSAValue]
    window_steps: list[SSAValue]

    def base(self, b: Body, where: Sequence[SSAValue]) -> IndexLike:
        """The offset of a window's first cell."""
        at: IndexLike = b.times(where[0], self.plane)
        for index, step in zip(where[1:], self.window_steps, strict=True):
            at = b.plus(at, b.times(index, step))
        return at


def _setup(plan: Plan, kernel: Kernel, op: PoolOp, frame: Frame) -> _Setup:
    out, windows = _dims(op)[1], frame.windows
    strides = row_major(frame.sizes)
    return _Setup(
        [kernel.outer(plan.count(out[:2])), *kernel.extents(out[2:])],
        kernel.outer(plan.count(frame.sizes)),
        [kernel.extent(s * d) for s, d in zip(strides, windows.dilations, strict=True)],
        [kernel.extent(k) for k in windows.kernel],
        [kernel.extent(s * w) for s, w in zip(strides, windows.strides, strict=True)],
    )


@lowers(MaxPoolOp)
def _max_pool(plan: Plan, op: MaxPoolOp) -> None:
    if any(True for _ in op.indices.uses):
        _max_pool_with_indices(plan, op)
        return
    dtype = dtype_of(op.x)
    wide = compute_dtype(dtype)
    if op.channels_are_last:
        _max_pool_last(plan, op, dtype, wide)
        return
    frame = _frame(plan, op, _lowest(dtype))
    kernel = plan.kernel("max_pool")
    data, target = kernel.read_buffer(frame.buffer), kernel.write(op.output)
    setup = _setup(plan, kernel, op, frame)
    lowest = kernel.const(wide, _lowest(dtype))

    def point(b: Body, where: Sequence[SSAValue], flat: IndexLike) -> None:
        def step(at: Body, offset: SSAValue, _: Sequence[SSAValue], best: Sequence[SSAValue]) -> list[SSAValue]:
            return [at.arithmetic("max", wide, best[0], at.convert(at.load(data, offset), dtype, wide))]

        (best,) = _walk(b, setup.taps, setup.steps, setup.base(b, where), [lowest], step)
        b.store(b.convert(best, wide, dtype), target, flat)

    nest(kernel, setup.bounds, point)
    kernel.launch()


def _max_pool_last(plan: Plan, op: MaxPoolOp, dtype: DType, wide: DType) -> None:
    """Over lanes of channels; see `conv_slide`."""
    x, out = _dims(op)
    shape = Sliding.of(plan, op.windows(len(x) - 2), x, out)
    kernel = plan.kernel("max_pool")
    data, target = kernel.read(op.x), kernel.write(op.output)
    lowest, channels = kernel.const(wide, _lowest(dtype)), kernel.extent(x[1])

    def add(b: Body, best: SSAValue, at: SSAValue, _: SSAValue | None) -> SSAValue:
        return b.arithmetic("max", wide, best, b.convert(b.load(data, at), dtype, wide))

    def finish(b: Body, best: SSAValue, _: Place, channel: SSAValue, window: IndexLike) -> None:
        b.store(b.convert(best, wide, dtype), target, b.plus(b.times(window, channels), channel))

    Slide(plan, kernel, shape, Steps(lambda b, c: lowest, None, add, finish)).emit()
    kernel.launch()


def _max_pool_with_indices(plan: Plan, op: MaxPoolOp) -> None:
    """As above, with the first greatest cell's position in the operand."""
    dtype = dtype_of(op.x)
    (x, out), wide = _dims(op), compute_dtype(dtype)
    sizes = x[2:]
    frame = _frame(plan, op, _lowest(dtype))
    order = row_major(sizes)
    if op.attr("storage_order"):
        order = list(reversed(row_major(list(reversed(sizes)))))
    last = op.channels_are_last
    found = [plan.new_buffer(result) for result in op.results]
    buffers = found
    if last:
        buffers = [plan.workspace(t, [plan.dim(d) for d in out]) for t in (dtype, int64)]
    kernel = plan.kernel("max_pool_indices")
    data = kernel.read_buffer(frame.buffer)
    target, places = (kernel.write_buffer(buffer) for buffer in buffers)
    setup = _setup(plan, kernel, op, frame)
    extents, weights = kernel.extents(sizes), kernel.extents(order)
    before, area = kernel.extents(frame.before), kernel.outer(plan.count(sizes))
    lowest, none = kernel.const(wide, _lowest(dtype)), kernel.index(-1)
    windows = frame.windows

    def point(b: Body, where: Sequence[SSAValue], flat: IndexLike) -> None:
        starts = [b.minus(b.times(i, s), p) for i, s, p in zip(where[1:], windows.strides, before, strict=True)]

        def step(at: Body, offset: SSAValue, taps: Sequence[SSAValue], state: Sequence[SSAValue]) -> list[SSAValue]:
            best, best_at = state
            found = at.convert(at.load(data, offset), dtype, wide)
            position: IndexLike = 0
            valid: SSAValue | None = None
            for start, tap, dilation, extent, weight in zip(
                starts, taps, windows.dilations, extents, weights, strict=True
            ):
                cell = at.plus(start, at.times(tap, dilation))
                inside = at.both(at.compare("sge", cell, 0), at.compare("slt", cell, extent))
                valid = inside if valid is None else at.both(valid, inside)
                position = at.plus(position, at.times(cell, weight))
            better = at.either(at.compare("slt", best_at, 0), at.compare_scalars("gt", wide, found, best))
            if wide.is_float:
                nan = at.compare_scalars("ne", wide, found, found)
                better = at.either(better, at.both(nan, at.compare_scalars("eq", wide, best, best)))
            wins = better if valid is None else at.both(valid, better)
            return [at.select(wins, found, best), at.select(wins, at.index(position), best_at)]

        best, best_at = _walk(b, setup.taps, setup.steps, setup.base(b, where), [lowest, none], step)
        b.store(b.convert(best, wide, dtype), target, flat)
        full = b.plus(best_at, b.times(where[0], area))
        missing = b.compare("slt", best_at, 0)
        b.store(b.from_index(b.select(missing, none, full), int64), places, flat)

    nest(kernel, setup.bounds, point)
    kernel.launch()
    if last:
        for made, final in zip(buffers, found, strict=True):
            copy_region(plan, "channels_last", _to_last(out), made, final)


def _to_last(dims: Shape) -> list[Axis]:
    """The region that puts the channels of data of these dims last."""
    order = [0, *range(2, len(dims)), 1]
    source = row_major(dims)
    target = row_major([dims[a] for a in order])
    return [axis(dims[a], source[a], t) for a, t in zip(order, target, strict=True)]


@lowers(AveragePoolOp)
def _average_pool(plan: Plan, op: AveragePoolOp) -> None:
    dtype = dtype_of(op.x)
    wide = compute_dtype(dtype)
    if op.channels_are_last:
        _average_pool_last(plan, op, dtype, wide)
        return
    sizes = dims_of(op.x)[2:]
    frame = _frame(plan, op, 0)
    windows, counted_pads = frame.windows, op.attr("count_include_pad")
    kernel = plan.kernel("average_pool")
    data, target = kernel.read_buffer(frame.buffer), kernel.write(op.output)
    setup = _setup(plan, kernel, op, frame)
    before, zero = kernel.extents(frame.before), kernel.const(wide, 0)
    nothing = kernel.index(0)
    low = [kernel.minus(0, p) if counted_pads else nothing for p in before]
    high = [kernel.extent(size + a if counted_pads else size) for size, a in zip(sizes, frame.after, strict=True)]

    def point(b: Body, where: Sequence[SSAValue], flat: IndexLike) -> None:
        def step(at: Body, offset: SSAValue, _: Sequence[SSAValue], total: Sequence[SSAValue]) -> list[SSAValue]:
            return [at.arithmetic("add", wide, total[0], at.convert(at.load(data, offset), dtype, wide))]

        (total,) = _walk(b, setup.taps, setup.steps, setup.base(b, where), [zero], step)
        number = _counted(b, windows, where[1:], before, low, high, setup.taps)
        count = b.from_index(b.index_math("max", number, 1), wide)
        b.store(b.convert(b.arithmetic("div", wide, total, count), wide, dtype), target, flat)

    nest(kernel, setup.bounds, point)
    kernel.launch()


def _counted(
    b: Body,
    windows: Windows,
    where: Sequence[IndexLike],
    before: Sequence[IndexLike],
    low: Sequence[IndexLike],
    high: Sequence[IndexLike],
    taps: Sequence[IndexLike],
) -> IndexLike:
    """How many cells of a window lie between `low` and `high` along each axis."""
    number: IndexLike = 1
    for at, index in enumerate(where):
        start = b.minus(b.times(index, windows.strides[at]), before[at])
        dilation = windows.dilations[at]
        first = b.index_math("ceildiv", b.index_math("max", 0, b.minus(low[at], start)), dilation)
        last = b.index_math("ceildiv", b.index_math("max", 0, b.minus(high[at], start)), dilation)
        span = b.minus(b.index_math("min", last, taps[at]), first)
        number = b.times(number, b.index_math("max", span, 0))
    return number


def _average_pool_last(plan: Plan, op: AveragePoolOp, dtype: DType, wide: DType) -> None:
    """Over lanes of channels; see `conv_slide`."""
    x, out = _dims(op)
    shape = Sliding.of(plan, op.windows(len(x) - 2), x, out)
    kernel = plan.kernel("average_pool")
    data, target = kernel.read(op.x), kernel.write(op.output)
    zero, channels = kernel.const(wide, 0), kernel.extent(x[1])
    with_pads = op.attr("count_include_pad")
    before, taps = [kernel.extent(p) for p, _ in shape.pads], kernel.extents(shape.windows.kernel)
    low = [kernel.minus(0, p) for p in before]
    high = [kernel.extent(size + after) for size, (_, after) in zip(shape.sizes, shape.pads, strict=True)]

    def add(b: Body, total: SSAValue, at: SSAValue, _: SSAValue | None) -> SSAValue:
        return b.arithmetic("add", wide, total, b.convert(b.load(data, at), dtype, wide))

    def finish(b: Body, total: SSAValue, place: Place, channel: SSAValue, window: IndexLike) -> None:
        if with_pads:
            number = _counted(b, shape.windows, place.indices, before, low, high, taps)
        else:
            number = place.cells(b)
        count = b.from_index(b.index_math("max", number, 1), wide)
        mean = b.arithmetic("div", wide, total, count)
        b.store(b.convert(mean, wide, dtype), target, b.plus(b.times(window, channels), channel))

    Slide(plan, kernel, shape, Steps(lambda b, c: zero, None, add, finish)).emit()
    kernel.launch()


@lowers(GlobalAveragePoolOp, GlobalMaxPoolOp)
def _global_pool(plan: Plan, op: GlobalAveragePoolOp | GlobalMaxPoolOp) -> None:
    dims, dtype = dims_of(op.x), dtype_of(op.x)
    wide = compute_dtype(dtype)
    mean = isinstance(op, GlobalAveragePoolOp)
    kernel = plan.kernel("global_pool")
    data, target = kernel.read(op.x), kernel.write(op.output)
    area = kernel.outer(plan.count(dims[2:]))
    start = kernel.const(wide, 0 if mean else _lowest(dtype))

    def plane(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        first = b.times(number, area)

        def cell(at: Body, i: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            value = at.convert(at.load(data, at.plus(first, i)), dtype, wide)
            return [at.arithmetic("add" if mean else "max", wide, carried[0], value)]

        (result,) = b.loop(area, cell, [("add" if mean else "max", start)], vector=True)
        if mean:
            result = b.arithmetic("div", wide, result, b.from_index(area, wide))
        b.store(b.convert(result, wide, dtype), target, number)

    kernel.loop(kernel.outer(plan.count(dims[:2])), plane, parallel=True)
    kernel.launch()
