"""Lowerings of matmul and gemm onto the contraction kernel, and onto dot products where one side is a vector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.codegen.contract_shape import panel_width
from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype, number_of
from sardonyx.backends.llvm.lowering.elementwise import merge_dims, nest
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan, lowers
from sardonyx.backends.llvm.lowering.region import axis, broadcast_axes, copy_region
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.kernel.contract import ContractOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.matmul import GemmOp, MatMulOp

ROWS_PER_BLOCK = 96
"""Rows of A that one chunk works on: a block of A stays in the second-level cache while B's panels pass by."""
FEW_ROWS = 32
"""Below, chunks take columns instead."""
PANELS_PER_BLOCK = 8


@dataclass(frozen=True)
class Matrix:
    """A matrix in a plan-level buffer, with its strides in elements; `packed` is the width of its panels, if any."""

    buffer: SSAValue
    row: Dim
    column: Dim
    packed: int | None = None


def contract(
    plan: Plan,
    name: str,
    dtypes: tuple[DType, DType],
    a: Matrix,
    b: Matrix,
    target: SSAValue,
    extents: tuple[Dim, Dim, Dim],
    batch: Sequence[tuple[SSAValue, SSAValue, SSAValue]] = (),
    accumulate: bool = False,
) -> None:
    """Launch C = A * B over a batch; `extents` are m, n and k, `dtypes` those of the operands and of C.

    `batch` holds per batch axis its extent and the strides of A and B, as indices of the plan; C is contiguous.
    """
    m, n, k = extents
    kernel = plan.kernel(name)
    reads = [kernel.read_buffer(a.buffer), kernel.read_buffer(b.buffer)]
    write = kernel.write_buffer(target)
    sizes = [kernel.extent(d) for d in (m, n, k)]
    strides = [kernel.extent(d) for d in (a.row, a.column, b.row, b.column)]
    block = kernel.times(sizes[0], sizes[1])
    axes = [tuple(kernel.outer(v) for v in line) for line in batch]
    by_dot = b.packed is None and (n.static_value == 1 or (m.static_value == 1 and b.column.static_value != 1))

    def tiles(at: Body, extents: Sequence[SSAValue], offsets: Sequence[IndexLike]) -> None:
        at.add(
            ContractOp(
                (reads[0], reads[1], write),
                extents,
                [at.index(o) for o in offsets],
                [*strides, sizes[1]],
                accumulate,
                b.packed,
            )
        )

    def product(at: Body, offsets: tuple[IndexLike, IndexLike, IndexLike]) -> None:
        if by_dot:
            _dots(at, dtypes, reads, write, sizes, strides, offsets, accumulate)
        elif axes:  # the batch is what is cut into chunks
            tiles(at, sizes, offsets)
        elif m.static_value is not None and m.static_value < FEW_ROWS:
            width = (b.packed or 16) * PANELS_PER_BLOCK
            step = sizes[2] if b.packed else strides[3]

            def columns(inner: Body, start: SSAValue, count: SSAValue) -> None:
                moved = (0, inner.times(start, step), start)
                tiles(inner, [sizes[0], count, sizes[2]], moved)

            _blocks(at, sizes[1], width, columns)
        else:

            def rows(inner: Body, start: SSAValue, count: SSAValue) -> None:
                moved = (inner.times(start, strides[0]), 0, inner.times(start, sizes[1]))
                tiles(inner, [count, sizes[1], sizes[2]], moved)

            _blocks(at, sizes[0], ROWS_PER_BLOCK, rows)

    def level(at: Body, depth: int, offsets: tuple[IndexLike, IndexLike, IndexLike]) -> None:
        if depth == len(axes):
            product(at, (offsets[0], offsets[1], at.times(offsets[2], block)))
            return
        extent, a_step, b_step = axes[depth]

        def body(inner: Body, index: SSAValue, _: Sequence[SSAValue]) -> None:
            position = inner.plus(inner.times(offsets[2], extent), index)
            level(
                inner,
                depth + 1,
                (
                    inner.plus(offsets[0], inner.times(index, a_step)),
                    inner.plus(offsets[1], inner.times(index, b_step)),
                    position,
                ),
            )

        at.loop(extent, body, parallel=depth == 0)

    level(kernel, 0, (0, 0, 0))
    kernel.launch()


def _blocks(at: Body, extent: SSAValue, size: int, work: Callable[[Body, SSAValue, SSAValue], None]) -> None:
    """Cut an extent into blocks that may run at once; `work(body, start, count)` does one."""
    number = number_of(extent)
    if number is not None and number <= size:
        work(at, at.index(0), extent)
        return
    whole = number is not None and number % size == 0

    def body(inner: Body, i: SSAValue, _: Sequence[SSAValue]) -> None:
        start = inner.times(i, size)
        count = inner.index(size) if whole else inner.index_math("min", size, inner.minus(extent, start))
        work(inner, start, count)

    at.loop(at.index_math("ceildiv", extent, size), body, parallel=True)


def _packed(plan: Plan, value: SSAValue, dtype: DType, m: Dim, transpose: bool = False) -> Matrix | None:
    """A constant matrix in the panels that the tiles read; None for one that is not known now, or has none."""
    owner = value.owner
    if not isinstance(owner, ConstantOp) or dtype.bits < 32:
        return None
    array = owner.array()
    array = array.T if transpose else array
    if array.ndim != 2 or array.shape[1] < 2 or not array.size:
        return None
    target = plan.target
    width = panel_width(target, dtype.bits, m.static_value)
    k, n = array.shape
    panels = -(-n // width)
    padded = np.zeros((k, panels * width), array.dtype)
    padded[:, :n] = array
    packed = np.ascontiguousarray(padded.reshape(k, panels, width).swapaxes(0, 1))
    one = Dim.of(1)
    return Matrix(plan.constant_array(packed, dtype), Dim.of(width), one, width)


def _dots(
    at: Body,
    dtypes: tuple[DType, DType],
    reads: Sequence[SSAValue],
    write: SSAValue,
    sizes: Sequence[SSAValue],
    strides: Sequence[SSAValue],
    offsets: tuple[IndexLike, IndexLike, IndexLike],
    accumulate: bool,
) -> None:
    """Every element as a dot product over k, widened along k."""
    source, result = dtypes
    wide = compute_dtype(source)

    def row(outer: Body, m: SSAValue, _: Sequence[SSAValue]) -> None:
        a_start = outer.plus(offsets[0], outer.times(m, strides[0]))

        def column(inner: Body, n: SSAValue, _: Sequence[SSAValue]) -> None:
            b_start = inner.plus(offsets[1], inner.times(n, strides[3]))
            c_at = inner.plus(offsets[2], inner.plus(inner.times(m, sizes[1]), n))

            def term(b: Body, k: SSAValue, sums: Sequence[SSAValue]) -> list[SSAValue]:
                x = b.convert(b.load(reads[0], b.plus(a_start, b.times(k, strides[1]))), source, wide)
                y = b.convert(b.load(reads[1], b.plus(b_start, b.times(k, strides[2]))), source, wide)
                return [b.arithmetic("add", wide, sums[0], b.arithmetic("mul", wide, x, y))]

            start = inner.const(wide, 0)
            if accumulate:
                start = inner.convert(inner.load(write, c_at), result, wide)
            (total,) = inner.loop(sizes[2], term, [("add", start)], vector=True)
            inner.store(inner.convert(total, wide, result), write, c_at)

        outer.loop(sizes[1], column)

    at.loop(sizes[0], row)


@lowers(MatMulOp)
def _matmul(plan: Plan, op: MatMulOp) -> None:
    a, b = dims_of(op.lhs), dims_of(op.rhs)
    one = Dim.of(1)
    a = a if len(a) > 1 else (one, *a)
    b = b if len(b) > 1 else (*b, one)
    plan.require_equal(a[-1], b[-2], "matmul: the inner extents {0} and {1} differ")
    m, k, n = a[-2], a[-1], b[-1]
    dtype = dtype_of(op.output)
    left = Matrix(plan.buffer(op.lhs), k, one)
    if len(b) == 2 and (panels := _packed(plan, op.rhs, dtype, Dim.product(a[:-1]))) is not None:
        contract(plan, "matmul", (dtype, dtype), left, panels, plan.new_buffer(op.output), (Dim.product(a[:-1]), n, k))
        return
    right = Matrix(plan.buffer(op.rhs), n, one)
    if all(d.static_value == 1 for d in b[:-2]):  # the rows of all matrices of A are one long matrix
        contract(plan, "matmul", (dtype, dtype), left, right, plan.new_buffer(op.output), (Dim.product(a[:-1]), n, k))
        return
    lead = dims_of(op.output)[: max(len(a), len(b)) - 2]
    extents, lines = merge_dims(lead, [a[:-2], b[:-2]])
    blocks = [plan.count([m, k]), plan.count([k, n])]
    batch: list[tuple[SSAValue, SSAValue, SSAValue]] = []
    for at, dims in enumerate(extents):
        steps = [_batch_stride(plan, line[at], block) for line, block in zip(lines, blocks, strict=True)]
        batch.append((plan.count(dims), steps[0], steps[1]))
    contract(plan, "matmul", (dtype, dtype), left, right, plan.new_buffer(op.output), (m, n, k), batch)


def _batch_stride(plan: Plan, line: Any, block: SSAValue) -> SSAValue:
    """The stride of one operand along a merged batch axis (see `merge_dims`)."""
    mode, extent, below = line
    if mode == "one":
        return plan.body.index(0)
    stride = plan.product(plan.count(below), block)
    if mode == "maybe":
        return plan.body.select(plan.body.compare("eq", plan.dim(extent), 1), plan.body.index(0), stride)
    return plan.body.index(stride)


@lowers(GemmOp)
def _gemm(plan: Plan, op: GemmOp) -> None:
    a, b, out = dims_of(op.a), dims_of(op.b), dims_of(op.output)
    one = Dim.of(1)
    dtype = dtype_of(op.output)
    trans_a, trans_b = op.attr("transA"), op.attr("transB")
    inner = a[0] if trans_a else a[1]
    plan.require_equal(inner, b[1] if trans_b else b[0], "gemm: the inner extents {0} and {1} differ")
    m, n = out
    left = Matrix(plan.buffer(op.a), one, a[1]) if trans_a else Matrix(plan.buffer(op.a), a[1], one)
    panels = _packed(plan, op.b, dtype, m, trans_b)
    if panels is not None:
        right = panels
    elif not trans_b:
        right = Matrix(plan.buffer(op.b), n, one)
    elif m.static_value == 1:
        right = Matrix(plan.buffer(op.b), one, inner)
    else:
        right = Matrix(_transposed(plan, op.b, dtype), n, one)
    alpha, beta = op.attr("alpha"), op.attr("beta")
    extents = (m, n, inner)
    if alpha == 1 and (op.c is None or beta == 1):
        target = plan.new_buffer(op.output)
        if op.c is not None:
            copy_region(plan, "bias", broadcast_axes(plan, dims_of(op.c), out), plan.buffer(op.c), target)
        contract(plan, "gemm", (dtype, dtype), left, right, target, extents, accumulate=op.c is not None)
        return
    wide = compute_dtype(dtype)
    product = plan.workspace(wide, [plan.dim(m), plan.dim(n)])
    contract(plan, "gemm", (dtype, wide), left, right, product, extents)
    _scale_and_add(plan, op, product, wide, alpha, beta)


def _transposed(plan: Plan, value: SSAValue, dtype: DType) -> SSAValue:
    """The buffer of a matrix's transpose: made now for a constant, by a kernel otherwise."""
    if isinstance(value.owner, ConstantOp):
        return plan.constant_array(np.ascontiguousarray(value.owner.array().T), dtype)
    rows, columns = dims_of(value)
    target = plan.workspace(dtype, [plan.dim(columns), plan.dim(rows)])
    axes = [axis(columns, 1, rows), axis(rows, columns, 1)]
    copy_region(plan, "transpose", axes, plan.buffer(value), target)
    return target


def _scale_and_add(plan: Plan, op: GemmOp, product: SSAValue, wide: DType, alpha: float, beta: float) -> None:
    dtype, out = dtype_of(op.output), dims_of(op.output)
    kernel = plan.kernel("gemm_scale")
    read, write = kernel.read_buffer(product), kernel.write(op.output)
    added: Callable[[Body, Sequence[SSAValue]], SSAValue] | None = None
    if op.c is not None:
        added = _spread_read(plan, kernel, op.c, out, dtype, wide)
    factor, weight = kernel.const(wide, alpha), kernel.const(wide, beta)

    def point(b: Body, indices: Sequence[SSAValue], flat: IndexLike) -> None:
        value = b.arithmetic("mul", wide, b.load(read, flat), factor)
        if added is not None:
            value = b.arithmetic("add", wide, value, b.arithmetic("mul", wide, added(b, indices), weight))
        b.store(b.convert(value, wide, dtype), write, flat)

    nest(kernel, kernel.extents(out), point)
    kernel.launch()


def _spread_read(
    plan: Plan, kernel: Kernel, value: SSAValue, out: Sequence[Dim], dtype: DType, wide: DType
) -> Callable[[Body, Sequence[SSAValue]], SSAValue]:
    """Reads a broadcast operand at a point of the result."""
    buffer = kernel.read(value)
    strides = [
        kernel.outer(plan.dim(a.source) if isinstance(a.source, Dim) else a.source)
        for a in broadcast_axes(plan, dims_of(value), out)
    ]

    def read(b: Body, indices: Sequence[SSAValue]) -> SSAValue:
        offset: IndexLike = 0
        for index, stride in zip(indices, strides, strict=True):
            offset = b.plus(offset, b.times(index, stride))
        return b.convert(b.load(buffer, offset), dtype, wide)

    return read
