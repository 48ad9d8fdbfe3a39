"""Lowerings of lp_pool, global_lp_pool and max_unpool."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.conv_shape import paddings, require_fit
from sardonyx.backends.llvm.lowering.elementwise import is_worth_splitting
from sardonyx.backends.llvm.lowering.number import Number
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.backends.llvm.lowering.region import axis, copy_region, fill_buffer, row_major
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import float64, int64
from sardonyx.dialects.sx.lp_pool import GlobalLpPoolOp, LpPoolOp, MaxUnpoolOp
from sardonyx.dialects.sx.windows import read_windows

MOST_PRODUCTS = 8
"""A power up to this one is a product."""


def _power(x: Number, p: int) -> Number:
    size = x.abs()
    if p > MOST_PRODUCTS:
        return size.fn("pow", float(p))
    out = size
    for _ in range(p - 1):
        out = out * size
    return out


def _root(total: Number, p: int) -> Number:
    if p == 1:
        return total
    return total.fn("sqrt") if p == 2 else total.fn("pow", 1.0 / p)


@lowers(LpPoolOp)
def _lp_pool(plan: Plan, op: LpPoolOp) -> None:
    """Cells in the padding add 0, so windows are cut to the data."""
    dims, out, dtype, p = dims_of(op.x), dims_of(op.output), dtype_of(op.x), op.attr("p")
    rank = len(dims) - 2
    windows = op.windows(rank)
    require_fit(plan, out[2:])
    kernel = plan.kernel("lp_pool")
    read, write = kernel.read(op.x), kernel.write(op.output)
    sizes = [Number.index(kernel, kernel.extent(d)) for d in dims[2:]]
    steps = [Number.index(kernel, kernel.extent(s)) for s in row_major(dims[2:])]
    before = [Number.index(kernel, kernel.extent(b)) for b, _ in paddings(windows, dims[2:], out[2:])]
    plane = Number.index(kernel, kernel.outer(plan.count(dims[2:])))
    bounds: list[IndexLike] = [kernel.outer(plan.count(out[:2])), *kernel.extents(out[2:])]
    taps = [k.static_value or 1 for k in windows.kernel]

    def level(b: Body, depth: int, where: list[Number], flat: Number | None) -> None:
        if flat is not None and depth == len(bounds):
            cell(b, where, flat)
            return

        def body(inner: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            at = Number.index(inner, index)
            place = at if flat is None else flat * Number.index(kernel, bounds[depth]) + at
            level(inner, depth + 1, [*where, at], place)

        b.loop(bounds[depth], body, parallel=depth == 0 and is_worth_splitting(bounds))

    def cell(b: Body, where: list[Number], flat: Number) -> None:
        spans: list[tuple[Number, Number, Number]] = []
        for a in range(rank):
            start, dilation = where[1 + a] * windows.strides[a] - before[a], windows.dilations[a]
            first = (0 - start + (dilation - 1)).max(0) // dilation
            last = ((sizes[a] - start + (dilation - 1)).max(0) // dilation).min(taps[a])
            spans.append((start, first, last))

        def walk(at: Body, a: int, offset: Number, carried: SSAValue) -> SSAValue:
            if a == rank:
                value = Number.load(at, read, offset, dtype, float64)
                return (Number(at, carried, float64) + _power(value, p)).value
            start, first, last = spans[a]

            def tap(inner: Body, t: SSAValue, values: Sequence[SSAValue]) -> list[SSAValue]:
                place = start + Number.index(inner, t) * windows.dilations[a]
                return [walk(inner, a + 1, offset + place * steps[a], values[0])]

            return at.loop(last.value, tap, [("serial", carried)], lower=first.value)[0]

        total = Number(b, walk(b, 0, where[0] * plane, kernel.const(float64, 0)), float64)
        _root(total, p).store(write, flat, dtype, b)

    level(kernel, 0, [], None)
    kernel.launch()


@lowers(GlobalLpPoolOp)
def _global_lp_pool(plan: Plan, op: GlobalLpPoolOp) -> None:
    dims, dtype, p = dims_of(op.x), dtype_of(op.x), op.attr("p")
    kernel = plan.kernel("global_lp_pool")
    read, write = kernel.read(op.x), kernel.write(op.output)
    area = Number.index(kernel, kernel.outer(plan.count(dims[2:])))

    def plane(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        first = Number.index(b, number) * area

        def cell(v: Body, i: SSAValue, carried: Sequence[SSAValue]) -> list[SSAValue]:
            value = Number.load(v, read, first + Number.index(v, i), dtype, float64)
            return [(Number(v, carried[0], float64) + _power(value, p)).value]

        (total,) = b.loop(area.value, cell, [("add", kernel.const(float64, 0))], vector=True)
        _root(Number(b, total, float64), p).store(write, number, dtype, b)

    kernel.loop(kernel.outer(plan.count(dims[:2])), plane, parallel=True)
    kernel.launch()


@lowers(MaxUnpoolOp)
def _max_unpool(plan: Plan, op: MaxUnpoolOp) -> None:
    dims, out, dtype = dims_of(op.x), dims_of(op.output), dtype_of(op.x)
    rank, body = len(dims), plan.body
    for a, (have, given) in enumerate(zip(dims, dims_of(op.indices), strict=True)):
        plan.require_equal(given, have, f"indices has {{0}} elements along axis {a}, the operand {{1}}")
    windows = read_windows(op, rank - 2, op.attr("kernel_shape"), "(C3)")
    natural = [*dims[:2]]
    for size, stride, taps, pads in zip(dims[2:], windows.strides, windows.kernel, windows.pads, strict=True):
        natural.append(Dim.max(0, (size - 1) * stride + taps - sum(pads)))
    if op.output_shape is not None:
        plan.require_equal(dims_of(op.output_shape)[0], Dim.of(rank), "output_shape has {0} entries for rank {1}")
        for a, entry in enumerate(plan.read_ints(op.output_shape, rank)):
            plan.bind(out[a], entry, f"entry {a} of output_shape")
            least = plan.dim(natural[a])
            fits = body.compare("eq" if a < 2 else "sge", plan.dim(out[a]), least)
            body.require(fits, plan.failure(f"output_shape has {{0}} at axis {a}, where {{1}} follows"), entry, least)
        target = plan.workspace(dtype, [plan.dim(d) for d in natural])
    else:
        for size, least in zip(out, natural, strict=True):
            if size.bounds[0] is None or size.bounds[0] < 0:
                extent = plan.dim(size)
                body.require(body.compare("eq", extent, plan.dim(least)), plan.failure("an extent is {0}"), extent)
        target = plan.new_buffer(op.output)
    fill_buffer(plan, dtype, target, plan.count(natural), 0)
    kernel = plan.kernel("max_unpool")
    read, places, write = kernel.read(op.x), kernel.read(op.indices), kernel.write_buffer(target)
    total = Number.index(kernel, kernel.outer(plan.count(natural)))
    failure = plan.failure("index {0} is out of range for {1} elements")

    def element(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        at = Number.load(b, places, i, int64).to_index()
        b.require((at.ge(0) & at.lt(total)).value, failure, at.value, total.value)
        b.store(b.load(read, i), write, at.value)

    kernel.loop(kernel.outer(plan.count(dims)), element)  # in order: the last one at a place stays
    kernel.launch()
    if op.output_shape is not None:
        whole = plan.new_buffer(op.output)
        fill_buffer(plan, dtype, whole, plan.count(out), 0)
        axes = [axis(d, s, t) for d, s, t in zip(natural, row_major(natural), row_major(out), strict=True)]
        copy_region(plan, "unpooled", axes, target, whole)
