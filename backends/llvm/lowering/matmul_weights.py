"""Products of few rows with constant weights of 8 bits and fewer: the weights are dequantised where they are read.

Such a product takes as long as its weights take to come from memory, so they stay as small as they are: bytes, or two
of 4 bits in a byte, in panels of as many columns as a vector has lanes. With u the stored number, from -128 or -8 on,
and the zero point z brought along, a block of k adds

    scale * (sum a u - z sum a)

to a column; the sums over `a`, where a zero point is not 0, are computed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def, result_def

from sardonyx.backends.llvm.expand import known
from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype
from sardonyx.backends.llvm.lowering.epilogue import Fused, chain, result_of, takes_epilogue
from sardonyx.backends.llvm.lowering.plan import Kernel, Plan
from sardonyx.dialects.attributes import dims_of, dtype_of, tensor_type
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType, float32, int8, int32
from sardonyx.dialects.evaluate import EvalContext

Array = np.ndarray[Any, Any]
STEP = 4
"""Steps of k that have sums of their own: one chain of additions would wait for each."""
TALL = 4
"""Rows that share a read of the weights."""


@irdl_op_definition
class MatMulWeightsOp(SxOp):
    """`x` [..., K] times dequantised weights [K, N].

    `weights` are int8 [K, N], `scales` and `zeros` float32 [blocks, N]: weight (k, n) is
    `(weights[k, n] - zeros[b, n]) * scales[b, n]`, b the block of k. All three are constants; with `bits` 4 the weights
    are from -8 to 7. K is a multiple of the number of blocks and of `STEP` times that.
    """

    name = "native.matmul_weights"
    x = operand_def()
    weights = operand_def()
    scales = operand_def()
    zeros = operand_def()
    bits = prop_def(IntegerAttr)
    output = result_def()
    DEFAULTS: ClassVar = {}

    def infer(self) -> Sequence[Attribute]:
        return [tensor_type(dtype_of(self.x), [*dims_of(self.x)[:-1], dims_of(self.weights)[1]])]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, weights, scales, zeros = (np.asarray(a) for a in arrays)
        block = len(weights) // len(scales)
        scales, zeros = (np.repeat(a, block, 0) for a in (scales, zeros))
        product = np.matmul(x.astype(np.float32), (weights.astype(np.float32) - zeros) * scales)
        return [product.astype(x.dtype)]


def stored_weights(array: Array, dtype: DType) -> tuple[Array, int, int]:
    """Integers as int8 from -128 or -8 on, what was taken from them, and 8 or 4 bits."""
    bits = 8 if dtype.bits == 8 else 4
    off = (1 << (bits - 1)) if dtype.kind == "u" and dtype.bits in (4, 8) else 0
    return (array.astype(np.int16) - off).astype(np.int8), off, bits


def _packed(array: Array, bits: int, width: int) -> Array:
    """[K, N] as panels [ceil(N / width), K, width]; of 4 bits, two rows are one."""
    k, n = array.shape
    panels = -(-n // width)
    padded = np.zeros((k, panels * width), array.dtype)
    padded[:, :n] = array
    if bits == 4:
        low, high = padded[0::2].view(np.uint8), padded[1::2].view(np.uint8)
        padded = ((low & np.uint8(15)) | (high << np.uint8(4))).view(np.int8)
    return np.ascontiguousarray(padded.reshape(len(padded), panels, width).swapaxes(0, 1))


@takes_epilogue(MatMulWeightsOp, columns=lambda op: 1 if len(dims_of(op.x)) > 1 else 0)
def _matmul_weights(plan: Plan, op: MatMulWeightsOp, fused: Fused | None) -> None:
    weights, scales, zeros = (known(v) for v in (op.weights, op.scales, op.zeros))
    if weights is None or scales is None or zeros is None:
        raise ValueError("the weights are not constant")
    dims, bits = dims_of(op.x), op.attr("bits")
    (k, n), blocks = weights.shape, len(scales)
    rows, each, width = Dim.product(dims[:-1]), k // blocks, plan.target.lanes()
    dtype, target = dtype_of(op.x), plan.new_buffer(result_of(op, fused))
    plan.require_equal(dims[-1], Dim.of(k), "matmul: the inner extents {0} and {1} differ")
    sums = _sums_of_blocks(plan, op, rows, blocks, each) if zeros.any() else None

    kernel = plan.kernel("matmul_weights")
    x, result = kernel.read(op.x), kernel.write_buffer(target)
    packed = kernel.read_buffer(plan.constant_array(_packed(weights, bits, width), int8))
    factors = kernel.read_buffer(plan.constant_array(_packed(scales, 32, width), float32))
    points = None if sums is None else kernel.read_buffer(plan.constant_array(_packed(zeros, 32, width), float32))
    totals = None if sums is None else kernel.read_buffer(sums)
    stage = chain(dtype, None, fused)
    point = None if stage is None else stage(kernel)
    count = kernel.extent(rows)
    bytes_of_panel, bytes_of_block = k * width * bits // 8, each * width * bits // 8

    def lanes(b: Body, panel: SSAValue, first: IndexLike, tall: int) -> None:
        """So many rows of a panel's columns."""
        column = b.times(panel, width)

        def lane(inner: Body, j: SSAValue, _: Sequence[SSAValue]) -> None:
            nothing = inner.const(float32, 0)

            def block(at: Body, number: SSAValue, before: Sequence[SSAValue]) -> list[SSAValue]:
                start = at.plus(at.plus(at.times(panel, bytes_of_panel), at.times(number, bytes_of_block)), j)
                depth = at.times(number, each)

                def steps(deep: Body, step: SSAValue, raw: Sequence[SSAValue]) -> list[SSAValue]:
                    values = _read(deep, packed, deep.plus(start, deep.times(step, width * bits // 8)), bits, width)
                    out: list[SSAValue] = []
                    for r in range(tall):
                        row = deep.plus(deep.times(deep.plus(first, r), k), deep.plus(depth, step))
                        for i, value in enumerate(values):
                            a = deep.convert(deep.load(x, deep.plus(row, i)), dtype, float32)
                            out.append(deep.math("fma", a.type, a, value, raw[r * STEP + i]))
                    return out

                raw = at.loop(each, steps, [("serial", nothing)] * (tall * STEP), step=STEP)
                place = at.plus(at.times(at.plus(at.times(panel, blocks), number), width), j)
                scale = at.load(factors, place)
                after: list[SSAValue] = []
                for r, total in enumerate(before):
                    one, two, three, four = raw[r * STEP : (r + 1) * STEP]
                    summed = _plus(at, _plus(at, one, two), _plus(at, three, four))
                    if points is not None and totals is not None:
                        own = at.load(totals, at.plus(at.times(at.plus(first, r), blocks), number))
                        taken = at.arithmetic("mul", float32, own, at.load(points, place))
                        summed = at.arithmetic("sub", float32, summed, taken)
                    after.append(at.math("fma", scale.type, summed, scale, total))
                return after

            made = inner.loop(blocks, block, [("serial", nothing)] * tall)
            for r, total in enumerate(made):
                row, there = inner.plus(first, r), inner.plus(column, j)
                value = inner.convert(total, float32, dtype) if point is None else point(inner, total, row, there)
                inner.store(value, result, inner.plus(inner.times(row, n), there))

        upper = width if n % width == 0 else b.index_math("min", width, b.minus(n, column))
        b.loop(upper, lane, vector=True)

    def panel_of(b: Body, panel: SSAValue, _: Sequence[SSAValue]) -> None:
        number = rows.static_value
        if number is not None and number <= TALL:
            lanes(b, panel, 0, number)
            return
        whole = b.times(b.index_math("floordiv", count, TALL), TALL)
        b.loop(whole, lambda at, first, _: lanes(at, panel, first, TALL), step=TALL)
        b.loop(count, lambda at, first, _: lanes(at, panel, first, 1), lower=whole)

    if rows.static_value != 0:
        kernel.loop(-(-n // width), panel_of, parallel=True)
    kernel.launch()


def _plus(b: Body, x: SSAValue, y: SSAValue) -> SSAValue:
    return b.arithmetic("add", float32, x, y)


def _read(b: Body, packed: SSAValue, at: IndexLike, bits: int, width: int) -> list[SSAValue]:
    """The weights of `STEP` rows from a place on, as float32."""
    out: list[SSAValue] = []
    for row in range(STEP * bits // 8):
        value = b.convert(b.load(packed, b.plus(at, row * width)), int8, int32)
        if bits == 8:
            out.append(b.convert(value, int32, float32))
            continue
        up = b.arithmetic("mul", int32, value, b.const(int32, 1 << 28))
        low = b.math("ashr", up.type, up, b.const(int32, 28))
        high = b.math("ashr", up.type, value, b.const(int32, 4))
        out += [b.convert(low, int32, float32), b.convert(high, int32, float32)]
    return out


def _sums_of_blocks(plan: Plan, op: MatMulWeightsOp, rows: Dim, blocks: int, each: int) -> SSAValue:
    """The sums of `x` over the blocks of k, as float32 [rows, blocks]."""
    dtype = dtype_of(op.x)
    wide = compute_dtype(dtype)
    target = plan.workspace(float32, [plan.dim(rows), plan.body.index(blocks)])
    kernel: Kernel = plan.kernel("sums_of_blocks")
    x, write = kernel.read(op.x), kernel.write_buffer(target)

    def block(b: Body, number: SSAValue, _: Sequence[SSAValue]) -> None:
        start = b.times(number, each)

        def element(one: Body, i: SSAValue, sums: Sequence[SSAValue]) -> list[SSAValue]:
            return [one.arithmetic("add", wide, sums[0], one.convert(one.load(x, one.plus(start, i)), dtype, wide))]

        (total,) = b.loop(each, element, [("add", b.const(wide, 0))], vector=True)
        b.store(total, write, number)

    kernel.loop(kernel.outer(plan.product(plan.dim(rows), blocks)), block, parallel=True)
    kernel.launch()
    return target
