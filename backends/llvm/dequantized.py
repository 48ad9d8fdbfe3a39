"""Products of dequantised operands, before the graph is lowered: as products of the integers themselves, scaled behind.

`(x - zx) sx` times `(w - zw) sw`, summed, is the sum of the integers' products times `sx sw`: exact up to the one
rounding of that factor, where the sum of floats rounds each term. It holds for convolutions and matrix products of
bytes whose data have one scale and whose constant weights have one, or one for each result channel. Other constant
weights that are dequantised become constants of floats; or, where a product has so few rows that it waits for memory,
they are dequantised where they are read (lowering/matmul_weights.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from sardonyx.backends.llvm.expand import Builder, known
from sardonyx.backends.llvm.lowering.matmul_weights import STEP, MatMulWeightsOp, stored_weights
from sardonyx.backends.llvm.lowering.quantize import ONE, FactorOp, view
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import SMALL_INTEGERS, float32, int8, uint8
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.dialects.sx.binary import AddOp
from sardonyx.dialects.sx.conv import ConvOp
from sardonyx.dialects.sx.matmul import GemmOp, MatMulOp
from sardonyx.dialects.sx.quantize_integer import ConvIntegerOp, MatMulIntegerOp
from sardonyx.dialects.sx.quantize_linear import REAL, DequantizeLinearOp
from sardonyx.dialects.sx.transpose import TransposeOp
from sardonyx.dialects.types import is_tensor
from sardonyx.passes import provenance
from sardonyx.passes.base import PassRun, Promise, SxPass, reassociates

Array = np.ndarray[Any, Any]
STORED = (int8, uint8, *SMALL_INTEGERS)
ATTRIBUTES = ("auto_pad", "dilations", "group", "kernel_shape", "pads", "strides")


@dataclass(frozen=True)
class Dequantised:
    """Bytes with a scale and a zero point, of one element or, along `axis`, one for each index."""

    data: SSAValue
    scale: SSAValue
    zero: SSAValue | None
    axis: int | None


@dataclass(frozen=True)
class DequantizedProductsPass(SxPass):
    """State products of dequantised operands as products of the integers themselves, scaled behind.

    Cases:
    1. A convolution or matrix product of int8 or uint8 data that have one scale, and of constant weights of int8 or
       uint8 that have one, or one for each result channel: the integers' product, times the product of the scales.
    2. A matrix product of few rows (8 at most, or a dynamic extent) with other constant weights of 8 bits or fewer that
       are dequantised in blocks: one op that dequantises them where it reads them.
    3. A product with any other constant weights that are dequantised: the weights are a constant of floats.
    4. A dequantisation or transpose that nothing reads any more is gone.
    5. Not: float64, weights that are not constant, data with a scale for each channel or for blocks (but case 3).

    Requires: nothing. Ensures: none of the cases is left.
    Promise: reassociates(2): the sum of integers is exact, that of floats rounds each term.
    """

    name = "dequantized-products"
    PROMISE: ClassVar[Promise] = reassociates(2)

    def run(self, module: ModuleOp, run: PassRun) -> None:
        for op in list(module.walk()):
            rewrite, pattern = REWRITES.get(type(op)), op.name.removeprefix("sx.")
            if rewrite is None or any(not is_tensor(v.type) for v in op.operands) or not run.allows(pattern, op):
                continue
            name, location, builder, operands = op.name, op.location, Builder(op), tuple(op.operands)
            result = rewrite(builder, op)
            if result is None and tuple(op.operands) == operands:
                continue
            for made in builder.made:
                made.location = provenance.stamp(location, f"{self.name}:{pattern}")
            if result is not None:
                Rewriter.replace_op(op, [], [result])
            run.rewritten(pattern, name, location, builder.made)
        for op in reversed(list(module.walk())):
            if isinstance(op, DequantizeLinearOp | TransposeOp) and not any(op.output.uses):
                if run.allows("unread", op):
                    run.rewritten("unread", op.name, op.location)
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


def _folded(value: SSAValue) -> Array | None:
    """The contents of a dequantised constant; None where the value is none."""
    op = value.owner
    if not isinstance(op, DequantizeLinearOp):
        return None
    arrays = [None if s is None else known(s) for s in op.slots]
    if any(a is None and s is not None for a, s in zip(arrays, op.slots, strict=True)):
        return None
    arrays += [None] * (3 - len(arrays))
    return np.asarray(op.evaluate(EvalContext({}), *arrays)[0])


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
        return _or_folded(b, op, None, op.w)
    attributes = {name: op.attr(name) for name in ATTRIBUTES}
    sums = b.add(ConvIntegerOp, x.data, w.data, _points(b, x), _points(b, w), **attributes)
    ones = [ONE] * (len(dims_of(op.w)) - 2)
    scale = view(b, w.scale, () if w.axis is None else [dims_of(w.scale)[0], *ones])
    result = b.add(FactorOp, sums, view(b, x.scale, ()), scale)
    return result if op.b is None else b.add(AddOp, result, view(b, op.b, [dims_of(op.w)[0], *ones]))


def _matmul(b: Builder, op: MatMulOp) -> SSAValue | None:
    rows, transposed = Dim.product(dims_of(op.lhs)[:-1]), op.rhs.owner
    if isinstance(transposed, TransposeOp) and transposed.attr("perm") == (1, 0):
        made = _product(b, op.lhs, transposed.data, rows, True)
        folded = _folded(transposed.data) if made is None else None
        if folded is not None:
            op.operands[1] = b.constant(np.ascontiguousarray(folded.T))
        return made
    return _or_folded(b, op, _product(b, op.lhs, op.rhs, rows), op.rhs)


def _or_folded(b: Builder, op: Any, made: SSAValue | None, weights: SSAValue) -> SSAValue | None:
    """What was made of a product; if nothing was, its dequantised constant weights become a constant."""
    folded = _folded(weights) if made is None else None
    if folded is not None:
        op.operands[1] = b.constant(folded)
    return made


def _product(b: Builder, left: SSAValue, right: SSAValue, rows: Dim, transposed: bool = False) -> SSAValue | None:
    """The matrix product of bytes, scaled, or that of floats with weights of few bits; None where it is none such."""
    x, w = dequantised(left), dequantised(right)
    if len(dims_of(right)) != 2:
        return None
    array = None if w is None else known(w.data)
    columns = 0 if transposed else 1
    if x is None or w is None or array is None or x.axis is not None or w.axis not in (None, columns):
        few = rows.static_value is None or rows.static_value <= FEW_ROWS
        return _of_weights(b, left, right, transposed) if few else None
    data = b.constant(np.ascontiguousarray(array.T)) if transposed else w.data
    sums = b.add(MatMulIntegerOp, x.data, data, _points(b, x), _points(b, w))
    return b.add(FactorOp, sums, view(b, x.scale, ()), w.scale if w.axis is not None else view(b, w.scale, ()))


def _of_weights(b: Builder, left: SSAValue, right: SSAValue, transposed: bool) -> SSAValue | None:
    """The product with weights that are dequantised where they are read; None where they are none such."""
    op = right.owner
    if not isinstance(op, DequantizeLinearOp) or dtype_of(op.output) not in REAL or dtype_of(op.x) not in STORED:
        return None
    arrays = [known(op.x), known(op.x_scale), known(op.x_zero_point)]
    if arrays[0] is None or arrays[1] is None or (arrays[2] is None and op.x_zero_point is not None):
        return None
    weights, shape = arrays[0], arrays[0].shape
    along = 1 if transposed else 0
    parameters: list[Array] = []
    for array in (arrays[1], arrays[2]):
        given = np.zeros(arrays[1].shape, np.float32) if array is None else array.astype(np.float32)
        if given.size > 1 and given.ndim == 1:
            if op.channel_axis(2) == along:
                return None
            given = given[:, None] if transposed else given[None]
        elif given.size > 1 and op.channel_axis(2) != along:
            return None
        lines = given.T if transposed else given
        parameters.append(lines if given.size > 1 else given.reshape(1, 1))
    weights = weights.T if transposed else weights
    depth, columns = weights.shape
    blocks = len(parameters[0])
    block = op.attr("block_size") if parameters[0].size > 1 and op.attr("block_size") else depth
    if not shape[along] or depth != blocks * block or block % STEP or not columns:
        return None
    stored, off, bits = stored_weights(weights, dtype_of(op.x))
    scales, zeros = (np.ascontiguousarray(np.broadcast_to(p, (blocks, columns))) for p in parameters)
    inputs = [b.constant(np.ascontiguousarray(a)) for a in (stored, scales, zeros - np.float32(off))]
    return b.add(MatMulWeightsOp, left, *inputs, bits=bits)


def _gemm(b: Builder, op: GemmOp) -> SSAValue | None:
    if op.attr("transA") or op.attr("alpha") != 1 or (op.c is not None and op.attr("beta") != 1):
        return None
    sums = _or_folded(b, op, _product(b, op.a, op.b, dims_of(op.a)[0], bool(op.attr("transB"))), op.b)
    return sums if sums is None or op.c is None else b.add(AddOp, sums, op.c)


FEW_ROWS = 8
"""Rows of a product up to which its weights stay as they are: it takes as long as they take to read."""

REWRITES: dict[type[Operation], Callable[[Builder, Any], SSAValue | None]] = {
    ConvOp: _conv,
    MatMulOp: _matmul,
    GemmOp: _gemm,
}
