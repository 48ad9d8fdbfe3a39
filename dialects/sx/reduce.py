"""Reductions over axes: sum, mean, max, min, prod, l1, l2, log_sum, log_sum_exp, sum_square.

Floats accumulate in float64 and round once; NaN propagates. Over no elements the result is the neutral one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import (
    Shape,
    dims_of,
    dtype_of,
    fresh_dim,
    rank_of,
    static_shape,
    tensor_type,
    unranked_type,
)
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import FLOATS, DType, bool_, int8, int32, int64, uint8, uint32, uint64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx import facts
from sardonyx.dialects.sx.numeric import double, given, is_float, narrow, saturate, truncated_quotient, wide
from sardonyx.dialects.sx.support import check_dtype, is_unranked, normalize_axes
from sardonyx.dialects.values import Contents, known_ints
from sardonyx.errors import ExecutionError

Axes = tuple[int, ...]
LARGE = (int32, int64, uint32, uint64, *FLOATS)


class ReduceOp(SxOp):
    """One value per slice of `data` along `axes`.

    With `keepdims` (the default) reduced axes stay with extent 1. Absent or empty axes mean all axes, or none with
    `noop_with_empty_axes` (the op's elementwise part still happens).

    (C1) The dtype of `data` is one of `DTYPES`. (C2) `axes` is an int64 vector. (C3) Each axis is in [-rank, rank) and
    none is repeated.
    """

    data = operand_def()
    axes = opt_operand_def()
    keepdims = opt_prop_def(IntegerAttr)
    noop_with_empty_axes = opt_prop_def(IntegerAttr)
    output = result_def()
    DEFAULTS: ClassVar = {"keepdims": True, "noop_with_empty_axes": False}
    DTYPES: ClassVar[Sequence[DType]] = LARGE

    # ---- axes
    def known_axes(self) -> Axes | None:
        """The axes that are reduced, non-negative and sorted; None where they or the rank are not known."""
        if is_unranked(self.data):
            return None
        rank = rank_of(self.data)
        found = self._stated_axes()
        if found is None:
            return () if rank == 0 else None
        if not found:
            return () if self.attr("noop_with_empty_axes") else tuple(range(rank))
        return tuple(sorted(normalize_axes(self, found, rank, "(C3)")))

    def _stated_axes(self) -> Axes | None:
        if self.axes is None or static_shape(self.axes) == (0,):
            return ()
        return known_ints(self.axes)

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.data, self.DTYPES, "(C1)")
        if self.axes is not None:
            check_dtype(self, self.axes, (int64,), "(C2)", "axes")
            if not is_unranked(self.axes) and rank_of(self.axes) != 1:
                raise self.fail(f"(C2) axes is a vector, but {self.axes.type} has rank {rank_of(self.axes)}")
        if is_unranked(self.data):
            everything = self._stated_axes() == () and not self.attr("noop_with_empty_axes")
            return [tensor_type(dtype, ()) if everything and not self.attr("keepdims") else unranked_type(dtype)]
        dims, axes = dims_of(self.data), self.known_axes()
        if axes is not None:
            return [tensor_type(dtype, self._reduced(dims, axes))]
        if self.attr("keepdims"):
            return [tensor_type(dtype, [d if d == 1 else fresh_dim() for d in dims])]
        count = static_shape(self.axes) if self.axes is not None else None
        if count is None:
            return [unranked_type(dtype)]
        if count[0] > len(dims):
            raise self.fail(f"(C3) {count[0]} axes of a tensor of rank {len(dims)}")
        return [tensor_type(dtype, [fresh_dim() for _ in range(len(dims) - count[0])])]

    def _reduced(self, dims: Shape, axes: Axes) -> list[Dim]:
        if self.attr("keepdims"):
            return [Dim.of(1) if i in axes else d for i, d in enumerate(dims)]
        return [d for i, d in enumerate(dims) if i not in axes]

    # ---- contents
    def combine(self, elements: list[Dim]) -> Dim | None:
        """What is known of the reduction of these extents, not all of them numbers."""
        return None

    def infer_values(self) -> Sequence[Contents | None]:
        known = facts.folded(self)
        if known is not None:
            return [known]
        data, axes = facts.grid(self.data), self.known_axes()
        if data is None or axes is None:
            return [None]
        kept = [i for i in range(data.ndim) if i not in axes]
        count = int(np.prod([data.shape[i] for i in kept], dtype=np.int64))
        slices = data.transpose(kept + list(axes)).reshape(count, -1) if data.size else np.empty((count, 0), object)
        dtype = dtype_of(self.output)
        return [tuple(facts.wrapped(self.combine(list(s)), dtype) if None not in list(s) else None for s in slices)]

    # ---- semantics
    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (data,) = given(arrays[:1])
        stated = arrays[1]
        if stated is None or not stated.size:
            axes = () if self.attr("noop_with_empty_axes") else tuple(range(data.ndim))
        else:
            axes = self._checked_axes(stated, data.ndim)
        out = np.asarray(self.reduce(data, axes))
        return [out if self.attr("keepdims") else np.squeeze(out, axes)]

    def _checked_axes(self, stated: Array, rank: int) -> Axes:
        axes = [int(a) for a in stated.reshape(-1)]
        if any(not -rank <= a < rank for a in axes) or len({a % rank for a in axes}) != len(axes):
            raise ExecutionError(f"(C3) axes {axes} repeat one or are out of range for rank {rank}", op=self.name)
        return tuple(a % rank for a in axes)

    def reduce(self, x: Array, axes: Axes) -> Array:
        """The result in the operand's dtype, reduced axes kept."""
        return narrow(self.accumulate(double(x), axes), x.dtype)

    def accumulate(self, x: Array, axes: Axes) -> Array:
        """The result on float64 elements, reduced axes kept."""
        raise NotImplementedError(f"{self.name} does not define accumulate()")


def _wrapping_sum(x: Array, axes: Axes) -> Array:
    return np.sum(x, axis=axes, dtype=x.dtype, keepdims=True)


@irdl_op_definition
class ReduceSumOp(ReduceOp):
    """The sum; integers wrap around; 0 of none."""

    name = "sx.reduce_sum"
    ONNX: ClassVar = OnnxForm("ReduceSum", since=13)

    def reduce(self, x: Array, axes: Axes) -> Array:
        return super().reduce(x, axes) if is_float(x) else _wrapping_sum(x, axes)

    def accumulate(self, x: Array, axes: Axes) -> Array:
        return np.sum(x, axis=axes, keepdims=True) if axes else x  # NumPy adds -0.0 to 0.0

    def combine(self, elements: list[Dim]) -> Dim | None:
        return Dim.sum(elements)


@irdl_op_definition
class ReduceMeanOp(ReduceOp):
    """The mean; NaN of none. Integers: their 64-bit wrapping sum divided by the count towards zero; 0 of none."""

    name = "sx.reduce_mean"
    ONNX: ClassVar = OnnxForm("ReduceMean", since=18)

    def reduce(self, x: Array, axes: Axes) -> Array:
        if is_float(x):
            return super().reduce(x, axes)
        total = _wrapping_sum(x.astype(np.uint64 if x.dtype.kind == "u" else np.int64), axes)
        return truncated_quotient(total, np.asarray(_count(x, axes), total.dtype)).astype(x.dtype)

    def accumulate(self, x: Array, axes: Axes) -> Array:
        return np.sum(x, axis=axes, keepdims=True) / np.float64(_count(x, axes)) if axes else x


def _count(x: Array, axes: Axes) -> int:
    return int(np.prod([x.shape[a] for a in axes], dtype=np.int64))


class ReduceExtremeOp(ReduceOp):
    """A reduction to one of the elements.

    (C1) The dtype of `data` is one of `DTYPES`. (C2) `axes` is an int64 vector. (C3) Each axis is in [-rank, rank) and
    none is repeated.
    """

    DTYPES: ClassVar = (bool_, int8, uint8, *LARGE)
    SIGN: ClassVar[int] = 1

    def reduce(self, x: Array, axes: Axes) -> Array:
        value = wide(x)
        function = np.maximum if self.SIGN > 0 else np.minimum
        out = np.asarray(function.reduce(value, axis=axes, keepdims=True, initial=self._neutral(value)))
        if is_float(x):
            # NumPy gives any of zeros with both signs.
            positive = (value == 0) & ~np.signbit(value)
            negative = (value == 0) & np.signbit(value)
            wanted = np.any(positive if self.SIGN > 0 else negative, axis=axes, keepdims=True)
            zero = np.where(wanted, 0.0, -0.0) if self.SIGN > 0 else np.where(wanted, -0.0, 0.0)
            out = np.where(out == 0, zero.astype(value.dtype), out)
        return out.astype(x.dtype)

    def _neutral(self, x: Array) -> object:
        if x.dtype.kind == "b":
            return self.SIGN < 0
        if x.dtype.kind == "f":
            return -self.SIGN * np.inf
        return np.iinfo(x.dtype).min if self.SIGN > 0 else np.iinfo(x.dtype).max


@irdl_op_definition
class ReduceMaxOp(ReduceExtremeOp):
    """The greatest element, NaN where there is one; of none -inf, the least integer, or false."""

    name = "sx.reduce_max"
    ONNX: ClassVar = OnnxForm("ReduceMax", since=18)

    def combine(self, elements: list[Dim]) -> Dim | None:
        return Dim.max(*elements) if elements else None


@irdl_op_definition
class ReduceMinOp(ReduceExtremeOp):
    """The smallest element, NaN where there is one; of none inf, the greatest integer, or true."""

    name = "sx.reduce_min"
    ONNX: ClassVar = OnnxForm("ReduceMin", since=18)
    SIGN: ClassVar = -1

    def combine(self, elements: list[Dim]) -> Dim | None:
        return Dim.min(*elements) if elements else None


@irdl_op_definition
class ReduceProdOp(ReduceOp):
    """The product; integers wrap around; 1 of none."""

    name = "sx.reduce_prod"
    ONNX: ClassVar = OnnxForm("ReduceProd", since=18)

    def reduce(self, x: Array, axes: Axes) -> Array:
        if is_float(x):
            return super().reduce(x, axes)
        return np.prod(x, axis=axes, dtype=x.dtype, keepdims=True)

    def accumulate(self, x: Array, axes: Axes) -> Array:
        return np.prod(x, axis=axes, keepdims=True)

    def combine(self, elements: list[Dim]) -> Dim | None:
        return Dim.product(elements)


@irdl_op_definition
class ReduceL1Op(ReduceOp):
    """The sum of absolute values; integers wrap around; 0 of none."""

    name = "sx.reduce_l1"
    ONNX: ClassVar = OnnxForm("ReduceL1", since=18)

    def reduce(self, x: Array, axes: Axes) -> Array:
        return super().reduce(x, axes) if is_float(x) else _wrapping_sum(np.abs(x), axes)

    def accumulate(self, x: Array, axes: Axes) -> Array:
        return np.sum(np.abs(x), axis=axes, keepdims=True)


@irdl_op_definition
class ReduceL2Op(ReduceOp):
    """The root of the sum of squares; integers are computed in float64 and truncated; 0 of none."""

    name = "sx.reduce_l2"
    ONNX: ClassVar = OnnxForm("ReduceL2", since=18)

    def reduce(self, x: Array, axes: Axes) -> Array:
        return super().reduce(x, axes) if is_float(x) else saturate(self.accumulate(double(x), axes), x.dtype)

    def accumulate(self, x: Array, axes: Axes) -> Array:
        return np.sqrt(np.sum(x * x, axis=axes, keepdims=True))


@irdl_op_definition
class ReduceLogSumOp(ReduceOp):
    """The logarithm of the sum; -inf of none."""

    name = "sx.reduce_log_sum"
    ONNX: ClassVar = OnnxForm("ReduceLogSum", since=18)
    DTYPES: ClassVar = FLOATS

    def accumulate(self, x: Array, axes: Axes) -> Array:
        return np.log(np.sum(x, axis=axes, keepdims=True))


@irdl_op_definition
class ReduceLogSumExpOp(ReduceOp):
    """The logarithm of the sum of exponentials, without overflow; -inf of none."""

    name = "sx.reduce_log_sum_exp"
    ONNX: ClassVar = OnnxForm("ReduceLogSumExp", since=18)
    DTYPES: ClassVar = FLOATS

    def accumulate(self, x: Array, axes: Axes) -> Array:
        greatest = np.max(x, axis=axes, keepdims=True, initial=-np.inf)
        shift = np.where(np.isfinite(greatest), greatest, 0.0)
        return np.log(np.sum(np.exp(x - shift), axis=axes, keepdims=True)) + shift


@irdl_op_definition
class ReduceSumSquareOp(ReduceOp):
    """The sum of squares; integers wrap around; 0 of none."""

    name = "sx.reduce_sum_square"
    ONNX: ClassVar = OnnxForm("ReduceSumSquare", since=18)

    def reduce(self, x: Array, axes: Axes) -> Array:
        return super().reduce(x, axes) if is_float(x) else _wrapping_sum(x * x, axes)

    def accumulate(self, x: Array, axes: Axes) -> Array:
        return np.sum(x * x, axis=axes, keepdims=True)
