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
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.sx.gather import GatherElementsOp, GatherNDOp, GatherOp


def check_indices(plan: Plan, indices: SSAValue, size: Dim, axis: int, step: int = 1, first: int = 0) -> None:
    """Launch the kernel that ends the run at an index outside [-size, size); every `step`-th one from `first` on."""
    kernel = plan.kernel("check_indices")
    buffer, dtype = kernel.read(indices), dtype_of(indices)
    total = plan.body.index_math("floordiv", plan.count(dims_of(indices)), step)
    extent = kernel.extent(size)
    failure = plan.failure(f"index {{0}} is out of range for axis {axis} with {{1}} elements")
    lowest = kernel.minus(0, extent)

    def body(b: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        index = b.to_index(b.load(buffer, b.plus(b.times(i, step), first)), dtype)
        ok = b.both(b.compare("sge", index, lowest), b.compare("slt", index, extent))
        b.require(ok, failure, index, extent)

    kernel.loop(kernel.outer(total), body)
    kernel.launch()


def _counted(b: Body, index: SSAValue, size: SSAValue) -> SSAValue:
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
    bounds: list[IndexLike] = [kernel.outer(plan.count(dims[:at])), kernel.outer(plan.count(places)), inner]
    if number_of(inner) == 1:
        bounds.pop()

    def point(b: Body, where: Sequence[SSAValue], flat: IndexLike) -> None:
        index = _counted(b, b.to_index(b.load(indices, where[1]), dtype), size)
        offset = b.times(b.plus(b.times(where[0], size), index), inner)
        b.store(b.load(data, b.plus(offset, where[2]) if len(where) > 2 else offset), target, flat)

    nest(kernel, bounds, point)
    kernel.launch()


@lowers(GatherElementsOp)
def _gather_elements(plan: Plan, op: GatherElementsOp) -> None:
    dims, shape = dims_of(op.data), dims_of(op.indices)
    at = op.attr("axis") % len(dims)
    body = plan.body
    for position, (have, want) in enumerate(zip(dims, shape, strict=True)):
        if position != at and have != want and not (have.is_static and want.is_static):
            longest, asked = plan.dim(have), plan.dim(want)
            failure = plan.failure(f"indices has {{0}} elements along axis {position}, the data {{1}}")
            body.require(body.compare("sle", asked, longest), failure, asked, longest)
    check_indices(plan, op.indices, dims[at], at)
    kernel = plan.kernel("gather_elements")
    data, indices, target = kernel.read(op.data), kernel.read(op.indices), kernel.write(op.output)
    size, dtype = kernel.extent(dims[at]), dtype_of(op.indices)
    strides = [kernel.extent(s) for s in row_major(dims)]

    def point(b: Body, where: Sequence[SSAValue], flat: IndexLike) -> None:
        index = _counted(b, b.to_index(b.load(indices, flat), dtype), size)
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
            index = _counted(b, b.to_index(b.load(indices, b.plus(first, k)), dtype), size)
            offset = b.plus(offset, b.times(index, step))
        b.store(b.load(data, b.plus(offset, where[2]) if len(where) > 2 else offset), target, flat)

    nest(kernel, bounds, point)
    kernel.launch()
