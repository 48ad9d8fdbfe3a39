"""Lowerings of gather, gather_elements and gather_nd. Every index is checked before any element is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, number_of
from sardonyx.backends.llvm.lowering.elementwise import nest
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.backends.llvm.lowering.region import row_major
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim, Proof, less_equal
from sardonyx.dialects.sx.gather import GatherElementsOp, GatherNDOp, GatherOp


def check_indices(plan: Plan, indices: SSAValue, size: Dim, axis: int, step: int = 1, first: int = 0) -> None:
    """Launch the kernel that ends the run at an index outside [-size, size); every `step`-th one from `first` on.

    The least and greatest index are found over lanes; only where one of them is bad, the first bad one is looked for.
    """
    kernel = plan.kernel("check_indices")
    buffer, dtype = kernel.read(indices), dtype_of(indices)
    total = kernel.outer(plan.body.index_math("floordiv", plan.count(dims_of(indices)), step))
    extent = kernel.extent(size)
    failure = plan.failure(f"index {{0}} is out of range for axis {axis} with {{1}} elements")
    lowest = kernel.minus(0, extent)

    def read(b: Body, i: SSAValue) -> SSAValue:
        return b.to_index(b.load(buffer, b.plus(b.times(i, step), first)), dtype)

    def extremes(b: Body, i: SSAValue, found: Sequence[SSAValue]) -> list[SSAValue]:
        index = read(b, i)
        return [b.index_math("min", found[0], index), b.index_math("max", found[1], index)]

    def check(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        index = read(b, i)
        ok = b.both(b.compare("sge", index, lowest), b.compare("slt", index, extent))
        b.require(ok, failure, index, extent)

    zero = kernel.index(0)
    least, greatest = kernel.loop(total, extremes, [("min", zero), ("max", zero)], vector=True)
    # From 0 on: where there are no elements, 0 itself is bad, if there is an index at all.
    fine = kernel.both(kernel.compare("sge", least, lowest), kernel.compare("slt", greatest, extent))
    kernel.when(fine, lambda b: None, lambda b: (b.loop(total, check), None)[1])
    kernel.launch()


def require_at_most(plan: Plan, a: Dim, b: Dim, message: str) -> None:
    """Check at run time that an extent is no longer than another, unless that is proved; `{0}` and `{1}` show them."""
    if less_equal(a, b) is Proof.PROVED:
        return
    x, y = plan.dim(a), plan.dim(b)
    plan.body.require(plan.body.compare("sle", x, y), plan.failure(message), x, y)


def counted(b: Body, index: SSAValue, size: SSAValue) -> SSAValue:
    """A position from an index that may count from the end."""
    return b.select(b.compare("slt", index, 0), b.plus(index, size), index)


@lowers(GatherOp)
def _gather(plan: Plan, op: GatherOp) -> None:
    dims, places = dims_of(op.data), dims_of(op.indices)
    at = op.attr("axis") % len(dims)
    check_indices(plan, op.indices, dims[at], at)
    kernel = plan.kernel("gather")
    data, indices, target = kernel.read(op.data), kernel.read(op.indices), kernel.write(op.output)
    size, dtype = kernel.extent(dims[at]), dtype_of(op.indices)
    inner = kernel.outer(plan.count(dims[at + 1 :]))
    outer = kernel.outer(plan.count(dims[:at]))
    has_outer, has_inner = number_of(outer) != 1, number_of(inner) != 1
    # The outermost loop is what threads share: the rows of an embedding, where there is nothing in front of the axis.
    bounds: list[IndexLike] = [kernel.outer(plan.count(places))]
    bounds = [*([outer] if has_outer else []), *bounds, *([inner] if has_inner else [])]

    def point(b: Body, where: Sequence[SSAValue], flat: IndexLike) -> None:
        index = counted(b, b.to_index(b.load(indices, where[int(has_outer)]), dtype), size)
        block = b.plus(b.times(where[0], size), index) if has_outer else index
        offset = b.times(block, inner)
        b.store(b.load(data, b.plus(offset, where[-1]) if has_inner else offset), target, flat)

    nest(kernel, bounds, point)
    kernel.launch()


@lowers(GatherElementsOp)
def _gather_elements(plan: Plan, op: GatherElementsOp) -> None:
    dims, shape = dims_of(op.data), dims_of(op.indices)
    at = op.attr("axis") % len(dims)
    for k, (have, want) in enumerate(zip(dims, shape, strict=True)):
        if k != at:
            require_at_most(plan, want, have, f"indices has {{0}} elements along axis {k}, the data {{1}}")
    check_indices(plan, op.indices, dims[at], at)
    kernel = plan.kernel("gather_elements")
    data, indices, target = kernel.read(op.data), kernel.read(op.indices), kernel.write(op.output)
    size, dtype = kernel.extent(dims[at]), dtype_of(op.indices)
    strides = [kernel.extent(s) for s in row_major(dims)]

    def point(b: Body, where: Sequence[SSAValue], flat: IndexLike) -> None:
        index = counted(b, b.to_index(b.load(indices, flat), dtype), size)
        offset: IndexLike = 0
        for position, (i, stride) in enumerate(zip(where, strides, strict=True)):
            offset = b.plus(offset, b.times(index if position == at else i, stride))
        b.store(b.load(data, offset), target, flat)

    nest(kernel, kernel.extents(shape), point)
    kernel.launch()


@lowers(GatherNDOp)
def _gather_nd(plan: Plan, op: Any) -> None:
    dims, shape = dims_of(op.data), dims_of(op.indices)
    batch = op.attr("batch_dims")
    length = shape[-1].static_value
    if length is None:
        raise op.fail("the length of the index tuples is not known before the run")
    for position in range(batch):
        plan.require_equal(dims[position], shape[position], f"batch axis {position} has {{0}} and {{1}} elements")
    for k in range(length):
        check_indices(plan, op.indices, dims[batch + k], batch + k, length, k)
    kernel = plan.kernel("gather_nd")
    data, indices, target = kernel.read(op.data), kernel.read(op.indices), kernel.write(op.output)
    dtype, strides = dtype_of(op.indices), row_major(dims)
    sizes = [kernel.extent(d) for d in dims[batch : batch + length]]
    steps = [kernel.extent(s) for s in strides[batch : batch + length]]
    block = kernel.extent(strides[batch - 1]) if batch else kernel.index(0)
    inner = kernel.outer(plan.count(dims[batch + length :]))
    tuples = kernel.outer(plan.count(shape[batch:-1]))
    bounds: list[IndexLike] = [kernel.outer(plan.count(shape[:batch])), tuples, inner]
    if number_of(inner) == 1:
        bounds.pop()

    def point(b: Body, where: Sequence[SSAValue], flat: IndexLike) -> None:
        first = b.times(b.plus(b.times(where[0], tuples), where[1]), length)
        offset: IndexLike = b.times(where[0], block)
        for k, (size, step) in enumerate(zip(sizes, steps, strict=True)):
            index = counted(b, b.to_index(b.load(indices, b.plus(first, k)), dtype), size)
            offset = b.plus(offset, b.times(index, step))
        b.store(b.load(data, b.plus(offset, where[2]) if len(where) > 2 else offset), target, flat)

    nest(kernel, bounds, point)
    kernel.launch()
