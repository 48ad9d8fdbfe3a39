"""Lowering of products of 8-bit integers: centred to int16, multiplied in pairs, summed in int32.

`a - zero point` and `b - zero point` fit into 16 bits, so that nothing is lost before the sums. A constant B is centred
and packed when the graph is compiled. Where the target multiplies bytes (`quads` in codegen/contract_dot.py), a
constant matrix B goes through `matmul_quads.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.codegen.contract_shape import panel_width
from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.elementwise import merge_dims
from sardonyx.backends.llvm.lowering.epilogue import Fused, chain, result_of, takes_epilogue
from sardonyx.backends.llvm.lowering.matmul import Matrix, batch_stride, contract
from sardonyx.backends.llvm.lowering.matmul_lines import line_reader, over_rows
from sardonyx.backends.llvm.lowering.matmul_quads import multiply_quads
from sardonyx.backends.llvm.lowering.pack import pack_columns
from sardonyx.backends.llvm.lowering.plan import Plan
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, int16, int32
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.quantize_integer import MatMulIntegerOp
from sardonyx.dialects.sx.quantized import COLUMNS, ROWS, per_line

Array = np.ndarray[Any, Any]


@takes_epilogue(MatMulIntegerOp, columns=lambda op: 1 if min(len(dims_of(op.a)), len(dims_of(op.b))) > 1 else 0)
def _matmul_integer(plan: Plan, op: MatMulIntegerOp, fused: Fused | None) -> None:
    a, b = dims_of(op.a), dims_of(op.b)
    one = Dim.of(1)
    a = a if len(a) > 1 else (one, *a)
    b = b if len(b) > 1 else (*b, one)
    plan.require_equal(a[-1], b[-2], "matmul_integer: the inner extents {0} and {1} differ")
    m, k, n = a[-2], a[-1], b[-1]
    together = all(d.static_value == 1 for d in b[:-2])
    rows = Dim.product(a[:-1]) if together else m
    width = panel_width(plan.target, 32, rows.static_value, n.static_value)
    if together and multiply_quads(plan, op, (a, b), rows, fused):
        return
    pairs = (k + 1) // 2
    left = Matrix(_centred_rows(plan, op, a, pairs), pairs, one, together=2)
    right = Matrix(_centred_panels(plan, op, b, width), Dim.of(width), one, width, together=2)
    stage, target = chain(int32, None, fused), plan.new_buffer(result_of(op, fused))
    if together:
        contract(plan, "matmul_integer", int32, left, right, target, (rows, n, pairs), stage=stage)
        return
    lead = dims_of(op.output)[: max(len(a), len(b)) - 2]
    extents, lines = merge_dims(lead, [a[:-2], b[:-2]])
    blocks = [plan.count([m, pairs]), plan.count([_panels(n, width), width, pairs])]
    batch = [
        (plan.count(dims), *(batch_stride(plan, line[at], block) for line, block in zip(lines, blocks, strict=True)))
        for at, dims in enumerate(extents)
    ]
    contract(plan, "matmul_integer", int32, left, right, target, (m, n, pairs), batch, stage)  # pyright: ignore[reportArgumentType]


def _panels(n: Dim, width: int) -> Dim:
    return (n + (width - 1)) // width


def _centred(b: Body, value: SSAValue, dtype: DType, zero: SSAValue | None) -> SSAValue:
    wide = b.convert(value, dtype, int16)
    return wide if zero is None else b.arithmetic("sub", int16, wide, zero)


def _centred_rows(plan: Plan, op: MatMulIntegerOp, dims: Sequence[Dim], pairs: Dim) -> SSAValue:
    """A less its zero points, its rows filled up to whole pairs."""
    dtype = dtype_of(op.a)
    target = plan.workspace(int16, [plan.dim(d) for d in (*dims[:-1], pairs * 2)])
    kernel = plan.kernel("centre")
    read, write = kernel.read(op.a), kernel.write_buffer(target)
    zero_of = line_reader(plan, kernel, op.a_zero_point, dims[:-1], ROWS)
    length, room = kernel.extent(dims[-1]), kernel.extent(pairs * 2)
    nothing = kernel.const(int16, 0)

    def row(b: Body, indices: list[SSAValue], flat: IndexLike) -> None:
        start, to = b.times(flat, length), b.times(flat, room)
        zero = None if zero_of is None else zero_of(b, indices)

        def element(one: Body, at: SSAValue, _: Sequence[SSAValue]) -> None:
            one.store(_centred(one, one.load(read, one.plus(start, at)), dtype, zero), write, one.plus(to, at))

        b.loop(length, element, vector=True)
        b.loop(room, lambda one, at, _: one.store(nothing, write, one.plus(to, at)), lower=length)

    over_rows(kernel, kernel.extents(dims[:-1]), row)
    kernel.launch()
    return target


def _centred_panels(plan: Plan, op: MatMulIntegerOp, dims: Sequence[Dim], width: int) -> SSAValue:
    """B less its zero points in panels of pairs (see `pairs` of `kernel.contract`)."""
    known = _known_panels(op, width)
    if known is not None:
        return plan.constant_array(known, int16)
    dtype = dtype_of(op.b)
    lead, (k, n) = dims[:-2], dims[-2:]
    pairs, panels = (k + 1) // 2, _panels(n, width)
    target = plan.workspace(int16, [plan.dim(d) for d in (*lead, panels, pairs)] + [plan.body.index(2 * width)])
    kernel = plan.kernel("centre")
    read, write = kernel.read(op.b), kernel.write_buffer(target)
    zero_of = line_reader(plan, kernel, op.b_zero_point, [*lead, n], COLUMNS)
    depth, columns, steps = kernel.extent(k), kernel.extent(n), kernel.extent(pairs)
    block = kernel.times(depth, columns)
    nothing = kernel.const(int16, 0)

    def panel(b: Body, indices: list[SSAValue], flat: IndexLike) -> None:
        matrix: IndexLike = 0
        for index, extent in zip(indices[:-1], kernel.extents(lead), strict=True):
            matrix = b.plus(b.times(matrix, extent), index)
        first, source = b.times(indices[-1], width), b.times(matrix, block)

        def step(at: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
            to = at.times(at.plus(at.times(flat, steps), number), 2 * width)

            def column(one: Body, j: SSAValue, _: Sequence[SSAValue]) -> None:
                there = one.plus(first, j)
                for part in range(2):
                    row = one.plus(one.times(number, 2), part)
                    inside_matrix = one.both(one.compare("slt", there, columns), one.compare("slt", row, depth))

                    def value(t: Body, row: SSAValue = row) -> list[SSAValue]:
                        zero = None if zero_of is None else zero_of(t, [*indices[:-1], there])
                        found = t.load(read, t.plus(source, t.plus(t.times(row, columns), there)))
                        return [_centred(t, found, dtype, zero)]

                    (made,) = one.when(inside_matrix, value, lambda t: [nothing])
                    one.store(made, write, one.plus(to, one.plus(one.times(j, 2), part)))

            at.loop(width, column)

        b.loop(steps, step)

    over_rows(kernel, kernel.extents([*lead, panels]), panel)
    kernel.launch()
    return target


def _known_panels(op: MatMulIntegerOp, width: int) -> Array | None:
    """The panels of a constant B with a constant zero point, or none."""
    zero_point = op.b_zero_point
    if not isinstance(op.b.owner, ConstantOp) or (
        zero_point is not None and not isinstance(zero_point.owner, ConstantOp)
    ):
        return None
    array = op.b.owner.array()
    centred = array.astype(np.int16)
    if zero_point is not None:
        zeros: Array = zero_point.owner.array()  # pyright: ignore[reportAttributeAccessIssue]
        centred = centred - per_line(op, zeros, array, COLUMNS, "b_zero_point").astype(np.int16)
    matrices = centred.reshape(-1, *(centred.shape[-2:] if centred.ndim > 1 else (centred.shape[0], 1)))
    count, k, n = matrices.shape
    if not matrices.size:
        return None
    padded = np.zeros((count, k + k % 2, n), np.int16)
    padded[:, :k] = matrices
    together = padded.reshape(count, -1, 2, n).swapaxes(2, 3)  # [count, pairs, n, 2]
    return pack_columns(np.ascontiguousarray(together).view(np.int32)[..., 0], width).view(np.int16)
