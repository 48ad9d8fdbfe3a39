"""Lowerings of scatter_elements, scatter_nd and tensor_scatter.

The result begins as a copy of the data; then the updates are put in, in their order, so that of several updates of one
place the last one stays and sums are the same for any number of threads: what is cut into chunks is an axis along which
no two updates meet. Every index is checked before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype, number_of
from sardonyx.backends.llvm.lowering.gather import check_indices, counted, require_at_most
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.backends.llvm.lowering.region import row_major
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, int64
from sardonyx.dialects.sx.scatter import ScatterElementsOp, ScatterNDOp, TensorScatterOp

BLOCK = 256
"""How many neighbouring columns one chunk takes at least, where the updates are rows."""

Point = Callable[[Body, IndexLike, IndexLike], None]
"""`point(b, offset of the update, offset in the result)` puts one update in."""


def convert_elements(plan: Plan, source: SSAValue, target: SSAValue, count: SSAValue, have: DType, want: DType) -> None:
    """Launch the kernel that copies elements between plan-level buffers, as another dtype where they differ."""
    kernel = plan.kernel("copy" if have == want else "convert")
    read, write = kernel.read_buffer(source), kernel.write_buffer(target)

    def element(b: Body, at: SSAValue, _: Sequence[SSAValue]) -> None:
        b.store(b.convert(b.load(read, at), have, want), write, at)

    kernel.loop(kernel.outer(count), element, vector=True, parallel=True)
    kernel.launch()


def combined(b: Body, reduction: str, dtype: DType, old: SSAValue, new: SSAValue) -> SSAValue:
    """An update with what stands there; sums of bools are `or`, products `and`."""
    if dtype.kind == "b":
        return b.either(old, new) if reduction in ("add", "max") else b.both(old, new)
    return b.arithmetic(reduction, dtype, old, new)


def _scattered(plan: Plan, op: ScatterElementsOp | ScatterNDOp, build: Callable[[Kernel, Point], None]) -> None:
    """The copy of the data, and the kernel that `build` makes of `point`. 16-bit floats are summed in float32."""
    reduction, dtype = op.attr("reduction"), dtype_of(op.data)
    wide = compute_dtype(dtype) if reduction in ("add", "mul") else dtype
    count = plan.count(dims_of(op.data))
    if wide == dtype:
        held = plan.new_buffer(op.output)
    else:
        held = plan.workspace(wide, [plan.dim(d) for d in dims_of(op.data)])
    convert_elements(plan, plan.buffer(op.data), held, count, dtype, wide)
    kernel = plan.kernel("scatter" if reduction == "none" else f"scatter_{reduction}")
    updates, target = kernel.read(op.updates), kernel.write_buffer(held)

    def point(b: Body, source: IndexLike, at: IndexLike) -> None:
        value = b.convert(b.load(updates, source), dtype, wide)
        if reduction != "none":
            narrow = compute_dtype(wide)
            old, new = (b.convert(v, wide, narrow) for v in (b.load(target, at), value))
            value = b.convert(combined(b, reduction, narrow, old, new), narrow, wide)
        b.store(value, target, at)

    build(kernel, point)
    kernel.launch()
    if wide != dtype:
        convert_elements(plan, held, plan.new_buffer(op.output), count, wide, dtype)


@lowers(ScatterElementsOp)
def _scatter_elements(plan: Plan, op: ScatterElementsOp) -> None:
    dims, shape = dims_of(op.data), dims_of(op.indices)
    at = op.attr("axis") % len(dims)
    for k, (want, have) in enumerate(zip(shape, dims_of(op.updates), strict=True)):
        plan.require_equal(want, have, f"indices has {{0}} elements along axis {k}, the updates {{1}}")
        if k != at:
            require_at_most(plan, want, dims[k], f"indices has {{0}} elements along axis {k}, the data {{1}}")
    check_indices(plan, op.indices, dims[at], at)
    _scattered(plan, op, lambda kernel, point: _each_element(plan, op, at, kernel, point))


def _each_element(plan: Plan, op: ScatterElementsOp, at: int, kernel: Kernel, point: Point) -> None:
    """Loops over the updates in which two of one place follow each other: they differ along the axis alone."""
    dims, shape = dims_of(op.data), dims_of(op.indices)
    indices, dtype = kernel.read(op.indices), dtype_of(op.indices)
    bounds = kernel.extents(shape)
    size = kernel.extent(dims[at])
    strides = [[kernel.extent(s) for s in row_major(d)] for d in (shape, dims)]
    rank = len(dims)
    # What is cut into chunks: the first axis, or blocks of the last one where the first is the one of the indices.
    by_blocks = at == 0 and rank > 1
    order = [k for k in range(rank) if not by_blocks or k < rank - 1]

    def level(b: Body, depth: int, source: IndexLike, place: IndexLike, block: SSAValue | None) -> None:
        if depth == len(order) and block is None:
            index = counted(b, b.to_index(b.load(indices, source), dtype), size)
            point(b, source, b.plus(place, b.times(index, strides[1][at])))
            return
        last = depth == len(order)
        axis = rank - 1 if last else order[depth]

        def step(inner: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
            following = inner.plus(source, inner.times(i, strides[0][axis]))
            there = place if axis == at else inner.plus(place, inner.times(i, strides[1][axis]))
            level(inner, depth + (0 if last else 1), following, there, None if last else block)

        if last and block is not None:
            end = b.index_math("min", b.plus(block, BLOCK), bounds[axis])
            b.loop(end, step, lower=block)
        else:
            b.loop(bounds[axis], step, parallel=depth == 0 and not by_blocks and axis != at)

    if by_blocks:

        def columns(b: Body, first: SSAValue, _: Sequence[SSAValue]) -> None:
            level(b, 0, 0, 0, first)

        kernel.loop(bounds[-1], columns, step=BLOCK, parallel=True)
    else:
        level(kernel, 0, 0, 0, None)


@lowers(ScatterNDOp)
def _scatter_nd(plan: Plan, op: ScatterNDOp) -> None:
    dims, shape = dims_of(op.data), dims_of(op.indices)
    # The ranks tell how long the index tuples are, also where the extent is not known.
    length = len(dims) + len(shape) - 1 - len(dims_of(op.updates))
    if not 0 <= length <= len(dims):
        raise op.fail(f"(C4) updates of rank {len(dims_of(op.updates))} don't fit the data's {len(dims)} axes")
    plan.require_equal(shape[-1], Dim.of(length), "the index tuples have {0} entries, not {1}")
    for k, (want, have) in enumerate(zip((*shape[:-1], *dims[length:]), dims_of(op.updates), strict=True)):
        plan.require_equal(want, have, f"updates has {{1}} elements along axis {k}, not {{0}}")
    for k in range(length):
        check_indices(plan, op.indices, dims[k], k, length, k)

    def build(kernel: Kernel, point: Point) -> None:
        indices, dtype = kernel.read(op.indices), dtype_of(op.indices)
        sizes, strides = kernel.extents(dims[:length]), kernel.extents(row_major(dims)[:length])
        tuples, inner = kernel.outer(plan.count(shape[:-1])), kernel.outer(plan.count(dims[length:]))

        def put(b: Body, number: SSAValue, low: IndexLike, high: IndexLike) -> None:
            first, base, source = b.times(number, length), b.index(0), b.times(number, inner)
            for k, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
                index = counted(b, b.to_index(b.load(indices, b.plus(first, k)), dtype), size)
                base = b.plus(base, b.times(index, stride))
            if number_of(inner) == 1:
                point(b, source, base)
            else:
                b.loop(high, lambda c, j, _: point(c, c.plus(source, j), c.plus(base, j)), lower=low, vector=True)

        def columns(b: Body, low: SSAValue, _: Sequence[SSAValue]) -> None:
            high = b.index_math("min", b.plus(low, BLOCK), inner)
            b.loop(tuples, lambda c, number, _: put(c, number, low, high))

        size = number_of(inner)
        if size is not None and size <= BLOCK:
            kernel.loop(tuples, lambda c, number, _: put(c, number, 0, inner))
        else:
            kernel.loop(inner, columns, step=BLOCK, parallel=True)

    _scattered(plan, op, build)


@lowers(TensorScatterOp)
def _tensor_scatter(plan: Plan, op: TensorScatterOp) -> None:
    dims, shape = dims_of(op.past_cache), dims_of(op.update)
    axis, dtype = op.attr("axis") % len(dims), dtype_of(op.past_cache)
    for k, (have, want) in enumerate(zip(shape, dims, strict=True)):
        if k != axis:
            plan.require_equal(have, want, f"the update has {{0}} elements along axis {k}, the cache {{1}}")
    require_at_most(plan, shape[axis], dims[axis], f"the update has {{0}} elements along axis {axis}, the cache {{1}}")
    if op.write_indices is not None:
        plan.require_equal(dims_of(op.write_indices)[0], dims[0], "there are {0} write indices for {1} batches")
        _check_starts(plan, op, op.write_indices, dims[axis], shape[axis])
    target = plan.new_buffer(op.present_cache)
    convert_elements(plan, plan.buffer(op.past_cache), target, plan.count(dims), dtype, dtype)
    kernel = plan.kernel("tensor_scatter")
    update, write = kernel.read(op.update), kernel.write_buffer(target)
    starts = None if op.write_indices is None else kernel.read(op.write_indices)
    batch, room, count = kernel.extent(dims[0]), kernel.extent(dims[axis]), kernel.extent(shape[axis])
    rows, inner = (kernel.outer(plan.count(part)) for part in (dims[1:axis], dims[axis + 1 :]))

    def each_batch(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        start = b.index(0)
        if starts is not None:
            start = b.index_math("floormod", b.to_index(b.load(starts, number), int64), room)

        def each_row(c: Body, row: SSAValue, _: Sequence[SSAValue]) -> None:
            line = c.plus(c.times(number, rows), row)

            def each_step(d: Body, t: SSAValue, _: Sequence[SSAValue]) -> None:
                place = d.plus(start, t)
                place = d.select(d.compare("sge", place, room), d.minus(place, room), place)
                source = d.times(d.plus(d.times(line, count), t), inner)
                base = d.times(d.plus(d.times(line, room), place), inner)

                def element(e: Body, j: SSAValue, _: Sequence[SSAValue]) -> None:
                    e.store(e.load(update, e.plus(source, j)), write, e.plus(base, j))

                d.loop(inner, element, vector=True)

            c.loop(count, each_step)

        b.loop(rows, each_row)

    kernel.loop(batch, each_batch, parallel=True)
    kernel.launch()


def _check_starts(plan: Plan, op: TensorScatterOp, starts: SSAValue, room: Dim, count: Dim) -> None:
    """Launch the kernel that ends the run at a start below 0, or in linear mode one without room for the update."""
    kernel = plan.kernel("check_starts")
    read, size, wanted = kernel.read(starts), kernel.extent(room), kernel.extent(count)
    axis = op.attr("axis") % len(dims_of(op.past_cache))
    failure = plan.failure(f"{{1}} elements from index {{0}} on don't fit the {{2}} of axis {axis}")
    nothing = kernel.compare("eq", wanted, 0)

    def one(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        start = b.to_index(b.load(read, i), int64)
        fits = b.compare("sge", start, 0)
        if op.attr("mode") == "linear":
            fits = b.both(fits, b.compare("sle", start, b.minus(size, wanted)))
        b.require(b.either(nothing, fits), failure, start, wanted, size)

    kernel.loop(kernel.outer(plan.count(dims_of(starts))), one)
    kernel.launch()
