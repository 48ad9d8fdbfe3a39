"""Copies of strided regions: what transposes, slices, concats, splits, tiles and pads have in common.

A region is a list of axes, each with its extent and its strides in the source and in the target, in elements.
Neighbouring axes that step alike on both sides are merged, so that a concat of large blocks is a few long runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.kernel.ops import TurnOp

SHORTEST_TILED = 4
TURNED_COLUMNS = 64
"""How many columns one transpose takes: the pieces that threads share."""

Size = Dim | SSAValue
"""An extent or stride: an expression, or an index of the plan that only the run knows."""


@dataclass(frozen=True)
class Axis:
    extent: Size
    source: Size
    target: Size


def row_major(dims: Sequence[Dim]) -> list[Dim]:
    """The strides of a contiguous tensor, in elements."""
    out: list[Dim] = []
    stride = Dim.of(1)
    for d in reversed(dims):
        out.append(stride)
        stride = stride * d
    return out[::-1]


def axis(extent: Dim | int | SSAValue, source: Dim | int | SSAValue, target: Dim | int | SSAValue) -> Axis:
    """An axis of sizes in any form."""
    return Axis(*(s if isinstance(s, SSAValue) else Dim.of(s) for s in (extent, source, target)))


def merge(axes: Sequence[Axis]) -> list[Axis]:
    """The same region with as few axes as can be proved; axes of extent 1 are dropped."""
    out: list[Axis] = []
    for a in axes:
        if isinstance(a.extent, Dim) and a.extent.static_value == 1:
            continue
        if out and _continues(out[-1], a):
            last = out.pop()
            out.append(Axis(_times(last.extent, a.extent), a.source, a.target))
        else:
            out.append(a)
    return out


def _times(a: Size, b: Size) -> Dim:
    assert isinstance(a, Dim) and isinstance(b, Dim)  # `_continues` has checked it
    return a * b


def _continues(outer: Axis, inner: Axis) -> bool:
    parts = (outer.extent, outer.source, outer.target, inner.extent, inner.source, inner.target)
    if not all(isinstance(p, Dim) for p in parts):
        return False
    _, source, target, extent, inner_source, inner_target = (
        Dim.of(p)  # pyright: ignore[reportArgumentType]
        for p in parts
    )
    return equal(source, inner_source * extent) is Proof.PROVED and equal(target, inner_target * extent) is Proof.PROVED


def inside(plan: Plan, kernel: Kernel, size: Size | IndexLike) -> SSAValue:
    """A size as an index inside the kernel."""
    if isinstance(size, Dim):
        return kernel.extent(size) if size.is_static or plan.is_bound(size) else kernel.outer(plan.dim(size))
    return kernel.outer(size)


def copy_region(
    plan: Plan,
    name: str,
    axes: Sequence[Axis],
    source: SSAValue,
    target: SSAValue,
    source_offset: Size | int = 0,
    target_offset: Size | int = 0,
) -> None:
    """Launch the kernel that copies a region between two plan-level buffers of one element type."""
    kernel = plan.kernel(name)
    read, write = kernel.read_buffer(source), kernel.write_buffer(target)
    offsets = [inside(plan, kernel, Dim.of(o) if isinstance(o, int) else o) for o in (source_offset, target_offset)]
    turned = _turned(axes)
    if turned is not None:
        _copy_turned(plan, kernel, turned, (read, offsets[0]), (write, offsets[1]))
        kernel.launch()
        return
    copy_nest(kernel, steps(plan, kernel, axes), (read, offsets[0]), (write, offsets[1]), parallel=True)
    kernel.launch()


def _turned(axes: Sequence[Axis]) -> tuple[list[Axis], Axis, Axis] | None:
    """A region whose elements lie next to each other along one axis in the source, and along another in the target:
    the other axes, that one and the other one. Short axes are not worth tiles."""

    def is_one(size: Size) -> bool:
        return isinstance(size, Dim) and size.static_value == 1

    merged = merge(axes)
    read = next((a for a in merged if is_one(a.source)), None)
    written = next((a for a in merged if is_one(a.target)), None)
    if read is None or written is None or read is written:
        return None
    sizes = [a.extent.static_value if isinstance(a.extent, Dim) else None for a in (read, written)]
    if any(size is not None and size < SHORTEST_TILED for size in sizes):
        return None
    return [a for a in merged if a is not read and a is not written], read, written


def _copy_turned(
    plan: Plan,
    kernel: Kernel,
    turned: tuple[list[Axis], Axis, Axis],
    source: tuple[SSAValue, IndexLike],
    target: tuple[SSAValue, IndexLike],
) -> None:
    """Loops over the other axes, then over blocks of columns, around transposes."""
    others, read, written = turned
    columns, rows = inside(plan, kernel, read.extent), inside(plan, kernel, written.extent)
    strides = inside(plan, kernel, written.source), inside(plan, kernel, read.target)
    outer = [tuple(inside(plan, kernel, s) for s in (a.extent, a.source, a.target)) for a in others]

    def level(b: Body, depth: int, at_source: IndexLike, at_target: IndexLike) -> None:
        if depth < len(outer):
            extent, from_stride, to_stride = outer[depth]

            def step(inner: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
                places = (
                    inner.plus(at, inner.times(index, s))
                    for at, s in ((at_source, from_stride), (at_target, to_stride))
                )
                level(inner, depth + 1, *places)

            b.loop(extent, step, parallel=depth == 0)
            return

        def block(inner: Body, first: SSAValue, _: Sequence[SSAValue]) -> None:
            width = inner.index_math("min", inner.minus(columns, first), TURNED_COLUMNS)
            offsets = inner.plus(at_source, first), inner.plus(at_target, inner.times(first, strides[1]))
            inner.block.add_op(TurnOp(source[0], target[0], [rows, width], offsets, strides))

        b.loop(columns, block, step=TURNED_COLUMNS, parallel=depth == 0)

    level(kernel, 0, source[1], target[1])


Steps = list[tuple[SSAValue, SSAValue, SSAValue]]
"""The merged axes of a region inside a kernel: (extent, stride in the source, stride in the target)."""


def steps(plan: Plan, kernel: Kernel, axes: Sequence[Axis]) -> Steps:
    """The axes of a region, merged, as indices inside the kernel."""
    return [
        (inside(plan, kernel, a.extent), inside(plan, kernel, a.source), inside(plan, kernel, a.target))
        for a in merge(axes)
    ]


def copy_nest(
    body: Body,
    axes: Steps,
    source: tuple[SSAValue, IndexLike],
    target: tuple[SSAValue, IndexLike],
    parallel: bool = False,
    change: Callable[[Body, SSAValue, IndexLike], SSAValue] | None = None,
) -> None:
    """Loops that copy a region; `source` and `target` are (buffer, offset).

    `change(body, element, target offset)` gives what is stored instead of the element. No two elements of one innermost
    loop may go to the same place, since that loop is widened.
    """

    def level(b: Body, depth: int, at_source: IndexLike, at_target: IndexLike) -> None:
        if depth == len(axes):
            element = b.load(source[0], at_source)
            b.store(element if change is None else change(b, element, at_target), target[0], at_target)
            return
        extent, from_stride, to_stride = axes[depth]

        def step(inner: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            level(
                inner,
                depth + 1,
                inner.plus(at_source, inner.times(index, from_stride)),
                inner.plus(at_target, inner.times(index, to_stride)),
            )

        b.loop(extent, step, vector=depth == len(axes) - 1, parallel=parallel and depth == 0)

    level(body, 0, source[1], target[1])


def fill_buffer(
    plan: Plan, dtype: DType, target: SSAValue, count: IndexLike, value: float | int | bool | SSAValue
) -> None:
    """Launch the kernel that writes one value everywhere; `value` is a number or a plan-level buffer of one element."""
    kernel = plan.kernel("fill")
    write = kernel.write_buffer(target)
    bound = kernel.outer(count)
    given = kernel.load(kernel.read_buffer(value), 0) if isinstance(value, SSAValue) else kernel.const(dtype, value)

    def body(b: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
        b.store(given, write, index)

    kernel.loop(bound, body, vector=True, parallel=True)
    kernel.launch()


def strides_of(plan: Plan, extents: Sequence[IndexLike]) -> list[SSAValue]:
    """Row-major strides of extents that only the run knows, as indices of the plan."""
    out: list[SSAValue] = []
    stride: IndexLike = 1
    for e in reversed(extents):
        out.append(plan.body.index(stride))
        stride = plan.product(stride, e)
    return out[::-1]


def broadcast_axes(plan: Plan, dims: Sequence[Dim], out: Sequence[Dim]) -> list[Axis]:
    """The region that spreads an operand over a larger shape."""
    pad = len(out) - len(dims)
    strides = row_major(dims)
    axes: list[Axis] = []
    for position, (d, target) in enumerate(zip(out, row_major(out), strict=True)):
        own = dims[position - pad] if position >= pad else Dim.of(1)
        if own.static_value == 1:
            axes.append(axis(d, 0, target))
        elif equal(own, d) is Proof.PROVED:
            axes.append(axis(d, strides[position - pad], target))
        else:
            index, full = plan.dim(own), plan.dim(d)
            single = plan.body.compare("eq", index, 1)
            fits = plan.body.either(single, plan.body.compare("eq", index, full))
            plan.body.require(fits, plan.failure("an extent of {0} does not broadcast to {1}"), index, full)
            stride = plan.body.select(single, plan.body.index(0), plan.dim(strides[position - pad]))
            axes.append(axis(d, stride, target))
    return axes
