"""Tensors made from extents and bounds: `sx.constant_of_shape`, `sx.range`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, LocationAttr
from xdsl.ir import Attribute, OpResult, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import dims_of, fresh_dim, static_shape, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.dtypes import (
    ANY,
    DType,
    bfloat16,
    float16,
    float32,
    float64,
    int16,
    int32,
    int64,
)
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.constant import ConstantOp, dense_array, dense_attribute
from sardonyx.dialects.sx.extents import (
    check_allocation,
    check_run_allocation,
    check_vector,
    elements,
    refuse,
    slots,
)
from sardonyx.dialects.sx.numeric import narrow
from sardonyx.dialects.sx.support import check_dtype, is_unranked, same_dtype
from sardonyx.dialects.values import MAX_ELEMENTS, Contents, contents


@irdl_op_definition
class ConstantOfShapeOp(SxOp):
    """A tensor of the extents in `shape`, every element the one of `value` (a float32 0 without it).

    (C1) `shape` is a vector of int64 without negative entries. (C2) `value` is dense and holds one element. (C3) The
    result is no larger than a tensor can be.
    """

    name = "sx.constant_of_shape"
    shape = operand_def()
    value = opt_prop_def(DenseIntOrFPElementsAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("ConstantOfShape", since=9)
    DTYPES: ClassVar[Sequence[DType]] = ANY

    @classmethod
    def of(cls, shape: SSAValue, value: Array | None = None, location: LocationAttr | None = None) -> Self:
        """The op with the element of an array of size 1."""
        attr = None if value is None else dense_attribute(np.asarray(value).reshape(1))
        return cls.make(shape, value=attr, location=location)

    def element(self) -> Array:
        """The element, as an array of rank 0."""
        return np.zeros((), np.float32) if self.value is None else dense_array(self.value).reshape(())

    def infer(self) -> Sequence[Attribute]:
        length = check_vector(self, self.shape, "(C1)", "shape")
        ty = None if self.value is None else self.value.type
        if ty is not None and math.prod(ty.get_shape()) != 1:
            raise self.fail(f"(C2) value is {ty}, not one element")
        dtype = float32 if ty is None else DType.of(ty.element_type)
        if length is None:
            return [unranked_type(dtype)]
        dims = [fresh_dim() if d is None else d for d in elements(self.shape, length)]
        check_allocation(self, dtype, dims, "(C3)" if all((d.static_value or 0) >= 0 for d in dims) else "(C1)")
        return [tensor_type(dtype, dims)]

    def infer_values(self) -> Sequence[Contents | None]:
        shape = static_shape(self.output)
        return [None if shape is None else (Dim.of(int(self.element())),) * math.prod(shape)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        shape = slots(arrays)[0].tolist()
        element = self.element()
        check_run_allocation(self, element, shape)
        return [np.full(shape, element, element.dtype)]


def known_number(value: SSAValue) -> int | float | None:
    """The element of a scalar constant that stands in the IR, None where it isn't known."""
    if isinstance(value, OpResult) and isinstance(value.op, ConstantOp):
        if isinstance(value.op.value, DenseIntOrFPElementsAttr) and static_shape(value) in ((), (1,)):
            return value.op.array().reshape(-1)[0].item()
        return None
    known = contents(value)
    return known[0].static_value if known and known[0] is not None else None


def range_length(start: float, limit: float, delta: float) -> int:
    """`max(ceil((limit - start) / delta), 0)`, exact for integers.

    Raises:
        OverflowError: It is infinite.
        ValueError: A bound is NaN.
    """
    if isinstance(start, int) and isinstance(limit, int) and isinstance(delta, int):
        return max(0, -((start - limit) // delta))
    return max(0, math.ceil((limit - start) / delta))


@irdl_op_definition
class RangeOp(SxOp):
    """`start + i * delta` for all i from 0 on, as long as it is below `limit` (above it, for a negative `delta`).

    (C1) The operands are scalars of the same dtype, one of `DTYPES`. (C2) `delta` is not 0. (C3) The result is no
    larger than a tensor can be. `stash_type` is ONNX's: 16-bit floats always compute wider here.
    """

    name = "sx.range"
    start = operand_def()
    limit = operand_def()
    delta = operand_def()
    stash_type = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("Range", since=11)
    DEFAULTS: ClassVar = {"stash_type": 1}
    DTYPES: ClassVar[Sequence[DType]] = (int16, int32, int64, float16, bfloat16, float32, float64)

    def infer(self) -> Sequence[Attribute]:
        operands = [self.start, self.limit, self.delta]
        dtype = same_dtype(self, operands, "(C1)")
        check_dtype(self, self.start, self.DTYPES, "(C1)")
        for operand in operands:
            if not is_unranked(operand) and equal(Dim.product(dims_of(operand)), 1) is Proof.REFUTED:
                raise self.fail(f"(C1) an operand is {operand.type}, not a scalar")
        length = self._length(dtype)
        check_allocation(self, dtype, [length], "(C3)")
        return [tensor_type(dtype, [length])]

    def _length(self, dtype: DType) -> Dim:
        delta = known_number(self.delta)
        if delta == 0:
            raise self.fail("(C2) delta is 0")
        if delta is None:
            return fresh_dim()
        start, limit = known_number(self.start), known_number(self.limit)
        if start is not None and limit is not None:
            try:
                return Dim.of(range_length(start, limit, delta))
            except (OverflowError, ValueError):
                raise self.fail(f"(C3) the range from {start} to {limit} by {delta} has no length") from None
        bounds = contents(self.start), contents(self.limit)
        if dtype.is_float or not bounds[0] or not bounds[1] or bounds[0][0] is None or bounds[1][0] is None:
            return fresh_dim()
        return Dim.max(0, (bounds[1][0] - bounds[0][0]).ceildiv(int(delta)))

    def infer_values(self) -> Sequence[Contents | None]:
        shape, start, delta = static_shape(self.output), contents(self.start), known_number(self.delta)
        if shape is None or not start or start[0] is None or delta is None or shape[0] > MAX_ELEMENTS:
            return [None]
        first = start[0]
        return [tuple(first + i * int(delta) for i in range(shape[0]))]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        if any(a is None or a.size != 1 for a in arrays):
            raise refuse(self, "start, limit and delta are one element each")
        dtype = slots(arrays)[0].dtype
        start, limit, delta = (_number(a) for a in arrays)
        if delta == 0:
            raise refuse(self, "delta is 0")
        try:
            count = range_length(start, limit, delta)
        except (OverflowError, ValueError):
            raise refuse(self, f"the range from {start} to {limit} by {delta} has no length") from None
        check_run_allocation(self, dtype, [count])
        if isinstance(start, int):
            return [(start + np.arange(count, dtype=np.int64) * delta).astype(dtype)]
        return [narrow(start + np.arange(count, dtype=np.float64) * delta, dtype)]


def _number(array: Any) -> int | float:
    kind = DType.of(array.dtype)
    return int(array.reshape(())) if kind.is_integer else float(array.reshape(()))
