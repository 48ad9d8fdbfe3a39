"""Products of 8-bit integers by instructions that add four products of unsigned bytes (of A) and signed ones (of B).

With a' and b' the bytes brought to those signs (128 more, 128 less where they have the other one), and with the zero
points za' and zb' brought along,

    sum (a - za)(b - zb) = sum a' b' - za' sum b' - zb' (sum a' - k za'),

so that the zero points are a correction in the epilogue: the sums of B's columns are known, those of A's rows are
computed where B has zero points that are not 0. All of it modulo 2^32.

Without such instructions, SSSE3's adds two products to an int16, where they fit. Where B's bytes are too large for that
in a few rows, what is too much stands in rows of its own behind the others, and A's columns there once more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.codegen.contract_dot import BOUND, dot_lanes, has_bounded_quads
from sardonyx.backends.llvm.codegen.contract_shape import panel_width
from sardonyx.backends.llvm.lowering.builder import Body, IndexLike
from sardonyx.backends.llvm.lowering.epilogue import Fused, Point, Stage, chain, result_of
from sardonyx.backends.llvm.lowering.matmul import Matrix, contract
from sardonyx.backends.llvm.lowering.matmul_lines import line_reader, over_rows
from sardonyx.backends.llvm.lowering.pack import pack_columns
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan
from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import int8, int16, int32, int64, uint8
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.quantize_integer import MatMulIntegerOp
from sardonyx.dialects.sx.quantized import COLUMNS, ROWS, per_line

Array = np.ndarray[Any, Any]

FEW = 8
"""Of so many rows of B one may stand there twice."""


def multiply_quads(
    plan: Plan, op: MatMulIntegerOp, dims: tuple[Sequence[Dim], Sequence[Dim]], rows: Dim, fused: Fused | None
) -> bool:
    """Launch the product of A, `rows` rows in all, with one constant matrix B; False, and nothing is done, where the
    target has no such instructions or B is not known. `dims` are those of both as matrices."""
    (a, b), owner = dims, op.b.owner
    zeros = _known_zeros(op)
    whole = dot_lanes(plan.target) > 0
    if not (whole or has_bounded_quads(plan.target)) or not isinstance(owner, ConstantOp) or zeros is None:
        return False
    k, n, count = a[-1], b[-1], b[-1].static_value or 0
    matrix = owner.array().reshape(b[-2].static_value or 0, count)
    if not matrix.size:
        return False
    columns, lines = _signed(matrix), zeros.reshape(-1).astype(np.int64)
    if matrix.dtype == np.uint8:
        lines = lines - 128
    padded = np.zeros((-(-len(columns) // 4) * 4, count), np.int8)
    padded[: len(columns)] = columns
    again = np.zeros(0, np.int64)
    if not whole:
        padded, again = bounded(padded)
        if len(again) * FEW > len(padded):
            return False
    width = panel_width(plan.target, 32, rows.static_value, n.static_value)
    quads = k.ceildiv(4) + len(again) // 4
    data, sums = _unsigned_rows(plan, op, a, quads, bool(lines.any()), np.minimum(again, len(columns) - 1))
    left = Matrix(data, quads, Dim.of(1), together=4)
    panels = plan.constant_array(_panels(padded, width), int8)
    right = Matrix(panels, Dim.of(width), Dim.of(1), width, together=4, bounded=not whole)
    totals = plan.constant_array(columns.astype(np.int64).sum(0).astype(np.int32), int32)
    points = plan.constant_array(np.broadcast_to(lines, count).astype(np.int32), int32)
    own = _corrected(op, a, (totals, points), sums)
    target = plan.new_buffer(result_of(op, fused))
    stage = chain(int32, own, fused)
    contract(plan, "matmul_integer", int32, left, right, target, (rows, n, quads), stage=stage)
    return True


def _known_zeros(op: MatMulIntegerOp) -> Array | None:
    """B's zero points, one or one per column, where they are known."""
    zero = op.b_zero_point
    if zero is None:
        return np.zeros(1, np.int8)
    if not isinstance(zero.owner, ConstantOp):
        return None
    matrix: Array = op.b.owner.array()  # pyright: ignore[reportAttributeAccessIssue]
    return per_line(op, zero.owner.array(), matrix, COLUMNS, "b_zero_point")


def _signed(matrix: Array) -> Array:
    """The bytes as signed ones, 128 less where they had no sign."""
    return matrix if matrix.dtype == np.int8 else (matrix ^ np.uint8(0x80)).view(np.int8)


def _panels(matrix: Array, width: int) -> Array:
    """B, whose rows are whole quads, in panels of them (see `quads` of `kernel.contract`)."""
    together = np.ascontiguousarray(matrix.reshape(-1, 4, matrix.shape[1]).swapaxes(1, 2))  # [quads, n, 4]
    return pack_columns(together.view(np.int32)[None, ..., 0], width).view(np.int8)


def bounded(matrix: Array) -> tuple[Array, Array]:
    """A matrix [k, n] of signed bytes, k a multiple of 4, as one whose neighbouring rows are bounded (see
    `contract_dot.BOUND`), and which of its rows it has again behind the others for that, whole quads."""
    k, n = matrix.shape
    pairs = matrix.reshape(k // 2, 2, n).astype(np.int16)
    above = np.maximum(pairs, 0).sum(1, np.int16, keepdims=True) > BOUND
    below = np.minimum(pairs, 0).sum(1, np.int16, keepdims=True) < -BOUND
    half = BOUND // 2
    kept = np.where(above, np.minimum(pairs, half), np.where(below, np.maximum(pairs, -half), pairs))
    quads = np.flatnonzero((kept != pairs).reshape(k // 4, 4 * n).any(1))
    rest = (pairs - kept).reshape(k // 4, 4, n)[quads].reshape(-1, n)
    again = (quads[:, None] * 4 + np.arange(4)).reshape(-1)
    return np.concatenate([kept.reshape(k, n), rest]).astype(np.int8), again


def _unsigned_rows(
    plan: Plan, op: MatMulIntegerOp, dims: Sequence[Dim], quads: Dim, summed: bool, again: Array
) -> tuple[SSAValue, SSAValue | None]:
    """A's bytes as unsigned ones, its rows filled up to whole quads, with the columns `again` once more at the end, and
    the sums of the rows, if they are wanted."""
    signed, k = dtype_of(op.a) == int8, dims[-1]
    whole = k.static_value is not None and k.static_value % 4 == 0
    if whole and not signed and not summed and not len(again):
        return plan.buffer(op.a), None
    extents = [plan.dim(d) for d in dims[:-1]]
    target = plan.workspace(uint8, [*extents, plan.dim(quads * 4)])
    totals = plan.workspace(int32, extents) if summed else None
    kernel = plan.kernel("quads")
    read, write = kernel.read(op.a), kernel.write_buffer(target)
    into = None if totals is None else kernel.write_buffer(totals)
    length, room, filled = kernel.extent(k), kernel.extent(quads * 4), kernel.extent(k.ceildiv(4) * 4)
    places = kernel.read_buffer(plan.constant_array(again.astype(np.int64), int64)) if len(again) else None
    nothing, flip = kernel.const(uint8, 0), kernel.const(uint8, 0x80)

    def row(b: Body, indices: list[SSAValue], flat: IndexLike) -> None:
        start, to = b.times(flat, length), b.times(flat, room)

        def element(one: Body, at: SSAValue, sums: Sequence[SSAValue]) -> list[SSAValue]:
            value = one.load(read, one.plus(start, at))
            value = one.add(arith.XOrIOp(value, flip)) if signed else value
            one.store(value, write, one.plus(to, at))
            return [one.arithmetic("add", int32, total, one.convert(value, uint8, int32)) for total in sums]

        carried = [("add", b.const(int32, 0))] if into is not None else []
        found = b.loop(length, element, carried, vector=True)
        b.loop(filled, lambda one, at, _: one.store(nothing, write, one.plus(to, at)), lower=length)
        if places is not None:

            def repeated(one: Body, number: SSAValue, _: Sequence[SSAValue], places: SSAValue = places) -> None:
                column = one.to_index(one.load(places, number), int64)
                value = one.load(read, one.plus(start, column))
                value = one.add(arith.XOrIOp(value, flip)) if signed else value
                one.store(value, write, one.plus(to, one.plus(filled, number)))

            b.loop(len(again), repeated)
        if into is not None:
            b.store(found[0], into, flat)

    over_rows(kernel, kernel.extents(dims[:-1]), row)
    kernel.launch()
    return target, totals


def _corrected(
    op: MatMulIntegerOp, dims: Sequence[Dim], columns: tuple[SSAValue, SSAValue], sums: SSAValue | None
) -> Stage | None:
    """Takes what the zero points add from a sum; `columns` are the sums of B's columns and their zero points."""
    signed = dtype_of(op.a) == int8
    if op.a_zero_point is None and not signed and sums is None:
        return None

    def stage(kernel: Kernel) -> Point:
        totals, points = (kernel.read_buffer(buffer) for buffer in columns)
        rows = None if sums is None else kernel.read_buffer(sums)
        lead = list(dims[:-1])
        zero_of = line_reader(kernel.plan, kernel, op.a_zero_point, lead, ROWS)
        extents, depth = kernel.extents(lead), kernel.extent(dims[-1])

        def point(b: Body, total: SSAValue, row: IndexLike, column: IndexLike) -> SSAValue:
            offset = b.const(int32, 128 if signed else 0)
            if zero_of is not None:
                zero = b.convert(zero_of(b, _places(b, row, extents)), int16, int32)
                offset = b.arithmetic("add", int32, zero, offset)
            taken = b.arithmetic("mul", int32, offset, b.load(totals, column))
            if rows is not None:
                long = b.arithmetic("mul", int32, b.from_index(depth, int32), offset)
                line = b.arithmetic("sub", int32, b.load(rows, row), long)
                taken = b.arithmetic("add", int32, taken, b.arithmetic("mul", int32, line, b.load(points, column)))
            return b.arithmetic("sub", int32, total, taken)

        return point

    return stage


def _places(b: Body, row: IndexLike, extents: Sequence[SSAValue]) -> list[IndexLike]:
    """A flat row as the places along the leading axes."""
    out: list[IndexLike] = []
    rest = row
    for extent in reversed(extents[1:]):
        out.append(b.index_math("floormod", rest, extent))
        rest = b.index_math("floordiv", rest, extent)
    return [rest, *reversed(out)]
