"""Lowering of qlinear_matmul and qlinear_conv: integer sums, and quantisation as their epilogue."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.expand import Builder, expands, known
from sardonyx.backends.llvm.lowering.conv_integer import sums_of
from sardonyx.backends.llvm.lowering.quantize import ONE, BiasOp, DequantizeOp, QuantizeOp, needed, view
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dtypes import float32, float64
from sardonyx.dialects.sx.binary import DivOp, MulOp
from sardonyx.dialects.sx.cast import CastOp
from sardonyx.dialects.sx.matmul import MatMulOp
from sardonyx.dialects.sx.quantize_integer import MatMulIntegerOp
from sardonyx.dialects.sx.quantize_product import QLinearConvOp, QLinearMatMulOp
from sardonyx.dialects.sx.quantized import COLUMNS, ROWS


def _quantized(b: Builder, sums: SSAValue, factors: Sequence[SSAValue], scale: SSAValue, zero: SSAValue) -> SSAValue:
    """Sums times both `factors` over `scale`, as the dtype of `zero`; the factor of the sums is computed in float32."""
    arrays = [known(v) for v in (*factors, scale)]
    if all(array is not None for array in arrays):
        first, second, last = (np.asarray(array, np.float32) for array in arrays)
        factor = b.constant(np.asarray(first * second / last, np.float32))
    else:
        one, two, three = (b.add(CastOp, v, to=float32.ir) for v in (*factors, scale))
        factor = b.add(DivOp, b.add(MulOp, one, two), three)
    return b.add(
        QuantizeOp, sums, factor, needed(zero), to=dtype_of(zero).ir, precision=float32.ir, multiply=UnitAttr()
    )


def _for_product(b: Builder, parameter: SSAValue, axis: int, ranks: tuple[int, int]) -> SSAValue:
    """A parameter per row (`axis` ROWS) or column so that it broadcasts to the product; `ranks` are those of the matrix
    and of the other one."""
    dims, (own, other) = dims_of(parameter), ranks
    if not dims or own == 1 and len(dims) == 1:
        return view(b, parameter, ())
    if len(dims) == 1:
        return view(b, parameter, [dims[0], ONE]) if axis == ROWS and other > 1 else parameter
    if other == 1:  # the product has no axis of the other matrix
        return view(b, parameter, [*dims[:-2], dims[axis]])
    return parameter


def _matrix_parameter(b: Builder, parameter: SSAValue, axis: int, rank: int) -> SSAValue:
    """A parameter per row or column so that it broadcasts to its own matrix."""
    dims = dims_of(parameter)
    if rank == 1 or not dims:
        return view(b, parameter, ())
    return view(b, parameter, [dims[0], ONE]) if len(dims) == 1 and axis == ROWS else parameter


@expands(QLinearMatMulOp)
def _qlinear_matmul(b: Builder, op: QLinearMatMulOp) -> Sequence[SSAValue]:
    ranks = len(dims_of(op.a)), len(dims_of(op.b))
    if dtype_of(op.a).is_integer and dtype_of(op.b).is_integer:
        sums = b.add(MatMulIntegerOp, op.a, op.b, op.a_zero_point, op.b_zero_point)
    else:
        one = b.constant(np.asarray(1, np.float32))
        centred: list[SSAValue] = []
        for data, zero, axis, rank in (
            (op.a, op.a_zero_point, ROWS, ranks[0]), (op.b, op.b_zero_point, COLUMNS, ranks[1]),
        ):  # fmt: skip
            point = needed(zero)
            placed = None if point is None else _matrix_parameter(b, point, axis, rank)
            centred.append(b.add(CastOp, b.add(DequantizeOp, data, one, placed, to=float32.ir), to=float64.ir))
        sums = b.add(MatMulOp, *centred)
    factors = [
        _for_product(b, op.a_scale, ROWS, ranks),
        _for_product(b, op.b_scale, COLUMNS, (ranks[1], ranks[0])),
    ]
    return [_quantized(b, sums, factors, view(b, op.y_scale, ()), view(b, op.y_zero_point, ()))]


@expands(QLinearConvOp)
def _qlinear_conv(b: Builder, op: QLinearConvOp) -> Sequence[SSAValue]:
    sums = sums_of(b, op)
    ones = [ONE] * (len(dims_of(op.w)) - 2)
    if op.b is not None:
        sums = b.add(BiasOp, sums, view(b, op.b, [dims_of(op.w)[0], *ones]))
    scale = op.w_scale if not dims_of(op.w_scale) else view(b, op.w_scale, [dims_of(op.w_scale)[0], *ones])
    factors = [view(b, op.x_scale, ()), scale]
    return [_quantized(b, sums, factors, view(b, op.y_scale, ()), view(b, op.y_zero_point, ()))]
