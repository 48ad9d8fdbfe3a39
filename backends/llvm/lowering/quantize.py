"""Lowering of quantize_linear, dequantize_linear and dynamic_quantize_linear: elementwise bodies, fused like any other.

Scales and zero points are brought into a shape that broadcasts to the data (a view, which moves nothing); those of
blocks are spread over the data where the blocks do not divide it, or only the run knows. The bodies round where
`dialects/sx/quantize_linear.py` says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, prop_def, result_def

from sardonyx.backends.llvm.expand import Builder, expands, known
from sardonyx.backends.llvm.lowering.builder import Body, IndexLike, compute_dtype, is_narrow
from sardonyx.backends.llvm.lowering.elementwise import nest, scalar
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.dialects.attributes import Shape, dims_of, dtype_of, tensor_type
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import DType, float32, float64, int8, int32, uint8
from sardonyx.dialects.evaluate import EvalContext
from sardonyx.dialects.sx import unary, variadic
from sardonyx.dialects.sx.binary import DivOp, SubOp
from sardonyx.dialects.sx.cast import CastOp
from sardonyx.dialects.sx.compare import EqualOp
from sardonyx.dialects.sx.quantize_linear import (
    DequantizeLinearOp,
    DynamicQuantizeLinearOp,
    LinearQuantization,
    QuantizeLinearOp,
    integer_limits,
)
from sardonyx.dialects.sx.reduce import ReduceMaxOp, ReduceMinOp
from sardonyx.dialects.sx.select import ClipOp, WhereOp
from sardonyx.errors import UnsupportedError

Array = np.ndarray[Any, Any]
ONE = Dim.of(1)
FOLDED = 1 << 16
"""Elements of a parameter up to which it is made anew in another shape."""


@irdl_op_definition
class ViewOp(SxOp):
    """The same elements in the same order in the stated shape: only what is lowered has it. The run checks that their
    number is equal."""

    name = "native.view"
    input = operand_def()
    output = result_def()

    def infer(self) -> Sequence[Attribute]:
        return [self.output.type]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        extents = [d.static_value for d in dims_of(self.output)]
        if extents.count(None) > 1:
            raise UnsupportedError(f"{self.name}: two extents are not known")
        return [np.reshape(np.asarray(arrays[0]), [-1 if n is None else n for n in extents])]


@irdl_op_definition
class SpreadOp(SxOp):
    """A parameter of blocks of `block` along `axis`, an element for each of `data` along that axis."""

    name = "native.spread"
    parameter = operand_def()
    data = operand_def()
    axis = prop_def(IntegerAttr)
    block = prop_def(IntegerAttr)
    output = result_def()

    def infer(self) -> Sequence[Attribute]:
        return [tensor_type(dtype_of(self.parameter), dims_of(self.data))]


@irdl_op_definition
class QuantizeOp(SxOp):
    """`saturate(round(x / scale) + zero)` as `sx.quantize_linear` has it, of operands that broadcast to `x`.

    The quotient is rounded to `precision`; with `multiply` it is a product.
    """

    name = "native.quantize"
    x = operand_def()
    scale = operand_def()
    zero = opt_operand_def()
    to = prop_def(Attribute)
    precision = prop_def(Attribute)
    saturate = opt_prop_def(IntegerAttr)
    multiply = opt_prop_def(UnitAttr)
    output = result_def()
    ELEMENTWISE: ClassVar = True
    DEFAULTS: ClassVar = {"saturate": True}

    def infer(self) -> Sequence[Attribute]:
        return [tensor_type(DType.of(self.to), dims_of(self.x))]


@irdl_op_definition
class DequantizeOp(SxOp):
    """`(x - zero) * scale` as `sx.dequantize_linear` has it, of operands that broadcast to `x`."""

    name = "native.dequantize"
    x = operand_def()
    scale = operand_def()
    zero = opt_operand_def()
    to = prop_def(Attribute)
    output = result_def()
    ELEMENTWISE: ClassVar = True

    def infer(self) -> Sequence[Attribute]:
        return [tensor_type(DType.of(self.to), dims_of(self.x))]


@irdl_op_definition
class BiasOp(SxOp):
    """`x + bias`, of int32 that wrap around; the bias broadcasts to `x`."""

    name = "native.bias"
    x = operand_def()
    bias = operand_def()
    output = result_def()
    ELEMENTWISE: ClassVar = True

    def infer(self) -> Sequence[Attribute]:
        return [self.x.type]


@irdl_op_definition
class FactorOp(SxOp):
    """int32 sums times two float32 scales that broadcast to them: `sums * (first * second)`, as float32."""

    name = "native.factor"
    x = operand_def()
    first = operand_def()
    second = operand_def()
    output = result_def()
    ELEMENTWISE: ClassVar = True

    def infer(self) -> Sequence[Attribute]:
        return [tensor_type(float32, dims_of(self.x))]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        sums, first, second = (np.asarray(a) for a in arrays)
        return [sums.astype(np.float32) * (first * second)]


def view(b: Builder, value: SSAValue, dims: Sequence[Dim]) -> SSAValue:
    """A value in another shape; a constant is one in that shape."""
    if tuple(dims) == tuple(dims_of(value)):
        return value
    array, extents = known(value), [d.static_value for d in dims]
    if array is not None and array.size <= FOLDED and None not in extents:
        shape = [n or 0 for n in extents]
        if math.prod(shape) == array.size:
            return b.constant(array.reshape(shape))
    return b.add(ViewOp, value, result_types=[tensor_type(dtype_of(value), dims)])


@lowers(ViewOp)
def _view(plan: Plan, op: ViewOp) -> None:
    have, wanted = (Dim.product(dims_of(v)) for v in (op.input, op.output))
    plan.require_equal(have, wanted, "a parameter has {0} elements, expected {1}")
    plan.alias(op.output, op.input)


@lowers(SpreadOp)
def _spread(plan: Plan, op: SpreadOp) -> None:
    own, dims = dims_of(op.parameter), dims_of(op.output)
    axis, block = op.attr("axis"), op.attr("block")
    for at, (have, of) in enumerate(zip(own, dims, strict=True)):
        wanted = of.ceildiv(block) if at == axis else of
        plan.require_equal(have, wanted, f"axis {at} of a scale or zero point has extent {{0}}, expected {{1}}")
    kernel = plan.kernel("spread")
    source, target = kernel.read(op.parameter), kernel.write(op.output)
    blocks, below = kernel.extent(own[axis]), kernel.outer(plan.count(dims[axis + 1 :]))
    bounds = [kernel.outer(plan.count(dims[:axis])), kernel.extent(dims[axis]), below]

    def point(b: Body, indices: Sequence[SSAValue], flat: IndexLike) -> None:
        outer, along, inner = indices
        row = b.plus(b.times(outer, blocks), b.index_math("floordiv", along, block))
        b.store(b.load(source, b.plus(b.times(row, below), inner)), target, flat)

    nest(kernel, bounds, point)
    kernel.launch()


# ---- bodies


@scalar(BiasOp)
def _bias(b: Body, op: BiasOp, x: SSAValue, bias: SSAValue) -> SSAValue:
    return b.arithmetic("add", int32, x, bias)


@scalar(FactorOp)
def _factor(b: Body, op: FactorOp, x: SSAValue, first: SSAValue, second: SSAValue) -> SSAValue:
    factor = b.arithmetic("mul", float32, first, second)
    return b.arithmetic("mul", float32, b.convert(x, int32, float32), factor)


@scalar(QuantizeOp)
def _quantize(b: Body, op: QuantizeOp, x: SSAValue, scale: SSAValue, zero: SSAValue | None = None) -> SSAValue:
    precision, target = DType.of(op.precision), DType.of(op.to)
    wide = compute_dtype(precision)

    def rounded(value: SSAValue, dtype: DType) -> SSAValue:
        """An operand as a number of the precision, in the dtype that is computed in."""
        if dtype == precision:
            return value
        return b.convert(b.convert(value, compute_dtype(dtype), precision), precision, wide)

    factors = rounded(x, dtype_of(op.x)), rounded(scale, dtype_of(op.scale))
    quotient = b.arithmetic("mul" if op.multiply is not None else "div", wide, *factors)
    quotient = b.convert(b.convert(quotient, wide, precision), precision, wide)
    if target.is_float:
        # With a zero point the sum is as exact as float64, without it -0 becomes +0.
        added = b.const(wide, 0) if zero is None else b.convert(zero, compute_dtype(target), float64)
        if zero is not None:
            quotient, wide = b.convert(quotient, wide, float64), float64
        return b.convert(b.arithmetic("add", wide, quotient, added), wide, target, bool(op.attr("saturate")))
    whole = b.math("round_half_even", quotient.type, quotient)
    if zero is not None:
        nothing = b.const(wide, 0)
        whole = b.select(b.compare_scalars("ne", wide, whole, whole), nothing, whole)
        whole = b.arithmetic("add", wide, whole, b.convert(zero, target, wide))
    if not is_narrow(target):
        return b.convert(whole, wide, target)
    low, high = (b.const(wide, limit) for limit in integer_limits(target))
    whole = b.arithmetic("min", wide, b.arithmetic("max", wide, whole, low), high)
    return b.convert(b.convert(whole, wide, int8 if target.kind == "i" else uint8), int8, target)


@scalar(DequantizeOp)
def _dequantize(b: Body, op: DequantizeOp, x: SSAValue, scale: SSAValue, zero: SSAValue | None = None) -> SSAValue:
    source, kind, target = dtype_of(op.x), dtype_of(op.scale), DType.of(op.to)
    wide = float64 if source == int32 else float32
    centred = b.convert(x, source, wide)
    if zero is not None:
        centred = b.arithmetic("sub", wide, centred, b.convert(zero, source, wide))
    centred = b.convert(centred, wide, float32)
    factor = b.convert(scale, compute_dtype(kind), float32)
    if target == float32 or (source.bits <= 8 and kind != float32):  # the product is exact, or rounded here
        return b.convert(b.arithmetic("mul", float32, centred, factor), float32, compute_dtype(target))
    product = b.arithmetic("mul", float64, *(b.convert(v, float32, float64) for v in (centred, factor)))
    return b.convert(b.convert(product, float64, target), target, compute_dtype(target))


# ---- expansions


def _placed(b: Builder, op: LinearQuantization, parameter: SSAValue | None, data: SSAValue) -> SSAValue | None:
    """A scale or zero point so that it broadcasts to the data, which do not lie in blocks."""
    if parameter is None:
        return None
    own, dims = dims_of(parameter), dims_of(data)
    single = Proof.PROVED if all(equal(d, ONE) is Proof.PROVED for d in own) else Proof.UNKNOWN
    if single is Proof.PROVED or len(own) != 1 or not -len(dims) <= op.attr("axis") < len(dims):
        return view(b, parameter, ())
    axis = op.channel_axis(len(dims))
    return view(b, parameter, [own[0], *[ONE] * (len(dims) - axis - 1)])


def _in_blocks(op: LinearQuantization, scale: SSAValue) -> bool:
    return bool(op.attr("block_size")) and not all(equal(d, ONE) is Proof.PROVED for d in dims_of(scale))


def _split(dims: Shape, scale: Shape, axis: int, block: int) -> tuple[list[Dim], list[Dim]] | None:
    """The shapes of data and of their scale with the blocks as an axis of their own; None where that is not certain."""
    length = dims[axis].static_value
    whole = length is not None and length % block == 0
    if not whole or any(
        equal(a, b) is not Proof.PROVED for i, (a, b) in enumerate(zip(dims, scale, strict=True)) if i != axis
    ):
        return None
    count = Dim.of((length or 0) // block)
    if equal(scale[axis], count) is not Proof.PROVED:
        return None
    return (
        [*dims[:axis], count, Dim.of(block), *dims[axis + 1 :]],
        [*scale[: axis + 1], ONE, *scale[axis + 1 :]],
    )


def _expand(
    b: Builder, op: LinearQuantization, cls: type[SxOp], slots: Sequence[SSAValue | None], **given: object
) -> SSAValue:
    """The elementwise op on data, scale and zero point."""
    data, scale, zero = slots
    if data is None or scale is None:
        raise ValueError("data and scale are never absent")
    if not _in_blocks(op, scale):
        parameters = [_placed(b, op, p, data) for p in (scale, zero)]
        return b.add(cls, data, *parameters, **given)
    dims, own = dims_of(data), dims_of(scale)
    axis, block = op.channel_axis(len(dims)), op.attr("block_size")
    shapes = _split(dims, own, axis, block)
    if shapes is None or (
        zero is not None and any(equal(a, c) is not Proof.PROVED for a, c in zip(dims_of(zero), own, strict=True))
    ):
        spread = [None if p is None else b.add(SpreadOp, p, data, axis=axis, block=block) for p in (scale, zero)]
        return b.add(cls, data, *spread, **given)
    parts = [view(b, data, shapes[0]), *(None if p is None else view(b, p, shapes[1]) for p in (scale, zero))]
    return view(b, b.add(cls, *parts, **given), dims)


def needed(zero: SSAValue | None) -> SSAValue | None:
    """The zero point, or none where it is a constant that is 0 everywhere."""
    array = known(zero)
    return None if array is not None and not array.astype(np.float32).any() else zero


@expands(QuantizeLinearOp)
def _quantize_linear(b: Builder, op: QuantizeLinearOp) -> Sequence[SSAValue]:
    zero = needed(op.y_zero_point)
    return [
        _expand(b, op, QuantizeOp, (op.x, op.y_scale, zero), to=op.target().ir, precision=op.division_dtype().ir,
                saturate=op.attr("saturate"))
    ]  # fmt: skip


@expands(DequantizeLinearOp)
def _dequantize_linear(b: Builder, op: DequantizeLinearOp) -> Sequence[SSAValue]:
    zero = needed(op.x_zero_point)
    return [_expand(b, op, DequantizeOp, (op.x, op.x_scale, zero), to=dtype_of(op.output).ir)]


@expands(DynamicQuantizeLinearOp)
def _dynamic_quantize_linear(b: Builder, op: DynamicQuantizeLinearOp) -> Sequence[SSAValue]:
    nothing, top = (b.constant(np.asarray(n, np.float32)) for n in (0, 255))
    axes = {"keepdims": False}
    low = b.add(variadic.MinOp, [b.add(ReduceMinOp, op.x, **axes), nothing])
    high = b.add(variadic.MaxOp, [b.add(ReduceMaxOp, op.x, **axes), nothing])
    scale = b.add(DivOp, b.add(SubOp, high, low), top)
    scale = b.add(WhereOp, b.add(EqualOp, scale, nothing), b.constant(np.asarray(1, np.float32)), scale)
    zero = b.add(ClipOp, b.add(DivOp, b.add(unary.NegOp, low), scale), nothing, top)
    point = b.add(CastOp, b.add(unary.RoundOp, zero), to=uint8.ir)
    return [b.add(QuantizeOp, op.x, scale, point, to=uint8.ir, precision=float32.ir), scale, point]
