"""Products of dequantised operands, before the graph is lowered: as products of the integers themselves, scaled behind.

`(x - zx) sx` times `(w - zw) sw`, summed, is the sum of the integers' products times `sx sw`: exact up to the one
rounding of that factor, where the sum of floats rounds each term. It holds for convolutions and matrix products of bytes
whose data have one scale and whose constant weights have one, or one for each result channel. Other constant weights
that are dequantised become constants of floats, where a product has so many rows that it does not wait for memory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from sardonyx.backends.llvm.expand import Builder, known
from sardonyx.backends.llvm.lowering.quantize import ONE, FactorOp, view
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import float32, int8, uint8
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.dialects.sx.binary import AddOp
from sardonyx.dialects.sx.conv import ConvOp
from sardonyx.dialects.sx.matmul import GemmOp, MatMulOp
from sardonyx.dialects.sx.quantize_integer import ConvIntegerOp, MatMulIntegerOp
from sardonyx.dialects.sx.quantize_linear import DequantizeLinearOp
from sardonyx.dialects.types import is_tensor

Array = np.ndarray[Any, Any]
ATTRIBUTES = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


@dataclass(frozen=True)
class Dequantised:
    """Bytes with a scale and a zero point, of one element or, along `axis`, one for each index."""

    data: SSAValue
    scale: SSAValue
    zero: SSAValue | None
    axis: int | None


def rewrite_dequantized(module: ModuleOp) -> None:
    """Rewrite the graph in place."""
    for op in list(module.walk()):
        rewrite = REWRITES.get(type(op))
        if rewrite is None or any(not is_tensor(v.type) for v in op.operands):
            continue
        builder = Builder(op)
        made = rewrite(builder, op)
        if made is not None:
            Rewriter.replace_op(op, [], [made])
    for op in reversed(list(module.walk())):
        if isinstance(op, DequantizeLinearOp) and not any(op.output.uses):
            Rewriter.erase_op(op)


def dequantised(value: SSAValue) -> Dequantised | None:
    """Where a float32 tensor comes from, if those are bytes with parameters as above."""
    op = value.owner
    if not isinstance(op, DequantizeLinearOp) or dtype_of(op.output) != float32 or dtype_of(op.x_scale) != float32:
        return None
    if dtype_of(op.x) not in (int8, uint8) or any(d.static_value is None for d in dims_of(op.x_scale)):
        return None
    single = Dim.product(dims_of(op.x_scale)).static_value == 1
    if not single and (op.attr("block_size") or len(dims_of(op.x_scale)) != 1):
        return None
    if op.x_zero_point is not None and dims_of(op.x_zero_point) != dims_of(op.x_scale):
        return None
    axis = None if single else op.channel_axis(len(dims_of(op.x)))
    return Dequantised(op.x, op.x_scale, op.x_zero_point, axis)


def _folded(b: Builder, value: SSAValue) -> SSAValue:
    """A dequantised constant as a constant; other values as they are."""
    op = value.owner
    if not isinstance(op, DequantizeLinearOp):
        return value
    arrays = [None if s is None else known(s) for s in op.slots]
    if any(a is None and s is not None for a, s in zip(arrays, op.slots, strict=True)):
        return value
    arrays += [None] * (3 - len(arrays))
    return b.constant(np.asarray(op.evaluate(EvalContext({}), *arrays)[0]))


def _points(b: Builder, one: Dequantised) -> SSAValue | None:
    """Zero points, none of which is no vector of one element."""
    if one.zero is None:
        return None
    return view(b, one.zero, ()) if one.axis is None else one.zero


def _conv(b: Builder, op: ConvOp) -> SSAValue | None:
    if op.channels_are_last != (False, False):
        return None
    x, w = dequantised(op.x), dequantised(op.w)
    constant = w is not None and known(w.data) is not None
    if x is None or w is None or not constant or x.axis is not None or w.axis not in (None, 0):
        folded = _folded(b, op.w)
        if folded is not op.w:
            op.operands[1] = folded
        return None
    attributes = {name: op.attr(name) for name in ATTRIBUTES}
    sums = b.add(ConvIntegerOp, x.data, w.data, _points(b, x), _points(b, w), **attributes)
    ones = [ONE] * (len(dims_of(op.w)) - 2)
    scale = view(b, w.scale, () if w.axis is None else [dims_of(w.scale)[0], *ones])
    result = b.add(FactorOp, sums, view(b, x.scale, ()), scale)
    return result if op.b is None else b.add(AddOp, result, view(b, op.b, [dims_of(op.w)[0], *ones]))


def _matmul(b: Builder, op: MatMulOp) -> SSAValue | None:
    return _product(b, op, op.lhs, op.rhs, rows=Dim.product(dims_of(op.lhs)[:-1]))


def _product(
    b: Builder, op: Any, left: SSAValue, right: SSAValue, rows: Dim, transposed: bool = False
) -> SSAValue | None:
    """The sums of a matrix product, scaled; None where the operands are not bytes, and then a weight is folded."""
    x, w = dequantised(left), dequantised(right)
    if len(dims_of(right)) != 2:
        return None
    array = None if w is None else known(w.data)
    columns = 0 if transposed else 1
    if x is None or w is None or array is None or x.axis is not None or w.axis not in (None, columns):
        few = rows.static_value is None or rows.static_value <= FEW_ROWS
        if not few or transposed:
            folded = _folded(b, right)
            if folded is not right:
                op.operands[1] = folded
        return None
    data = b.constant(np.ascontiguousarray(array.T)) if transposed else w.data
    sums = b.add(MatMulIntegerOp, x.data, data, _points(b, x), _points(b, w))
    return b.add(FactorOp, sums, view(b, x.scale, ()), w.scale if w.axis is not None else view(b, w.scale, ()))


def _gemm(b: Builder, op: GemmOp) -> SSAValue | None:
    if op.attr("transA") or op.attr("alpha") != 1 or (op.c is not None and op.attr("beta") != 1):
        return None
    sums = _product(b, op, op.a, op.b, dims_of(op.a)[0], bool(op.attr("transB")))
    return sums if sums is None or op.c is None else b.add(AddOp, sums, op.c)


FEW_ROWS = 8
"""Rows of a product up to which its weights stay as they are: it takes as long as they take to read."""

REWRITES: dict[type[Operation], Callable[[Builder, Any], SSAValue | None]] = {
    ConvOp: _conv,
    MatMulOp: _matmul,
    GemmOp: _gemm,
}
