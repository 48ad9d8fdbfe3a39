"""Pooling by p-norms and its inverse by positions: `sx.lp_pool`, `sx.global_lp_pool`, `sx.max_unpool`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, prop_def, result_def

from sardonyx.dialects.attributes import dims_of, dtype_of, fresh_dim, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import FLOATS, DType, int64
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import (
    check_allocation,
    check_run_allocation,
    check_vector,
    elements,
    merge,
    refuse,
    slots,
)
from sardonyx.dialects.sx.numeric import double, narrow
from sardonyx.dialects.sx.support import check_dtype, format_dims, is_unranked
from sardonyx.dialects.sx.windows import Windows, read_windows, window_extents


def power_norm(x: Array, p: int) -> Array:
    """`|x| ** p` in float64."""
    magnitude = np.abs(double(x))
    return magnitude if p == 1 else magnitude**p


def _spread(vector: Array, axis: int, rank: int) -> Array:
    return vector.reshape([-1 if i == axis else 1 for i in range(rank)])


@irdl_op_definition
class LpPoolOp(SxOp):
    """The p-norm of each window of `x` [N, C, D1, …]: the `p`-th root of the sum of `|x| ** p`. Padding counts as 0.

    Windows are those of `sx.average_pool`. In float64, rounded once.

    (C1) The dtype is one of `DTYPES`. (C2) The rank is at least 3. (C3) `kernel_shape`, strides and dilations are
    positive, pads not negative, one (for pads two) per spatial axis; `auto_pad` is one of `AUTO_PADS`, and pads count
    only where it is NOTSET. (C4) A window fits into the padded data. (C5) `p` is positive.
    """

    name = "sx.lp_pool"
    x = operand_def()
    kernel_shape = prop_def(DenseArrayBase)
    auto_pad = opt_prop_def(StringAttr)
    ceil_mode = opt_prop_def(IntegerAttr)
    dilations = opt_prop_def(DenseArrayBase)
    p = opt_prop_def(IntegerAttr)
    pads = opt_prop_def(DenseArrayBase)
    strides = opt_prop_def(DenseArrayBase)
    output = result_def()
    ONNX: ClassVar = OnnxForm("LpPool", since=2)
    DEFAULTS: ClassVar = {"auto_pad": "NOTSET", "ceil_mode": False, "p": 2}
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def windows(self, spatial_rank: int) -> Windows:
        """The windows for that many spatial axes."""
        return read_windows(self, spatial_rank, self.attr("kernel_shape"), "(C3)", bool(self.attr("ceil_mode")))

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.x, self.DTYPES, "(C1)")
        if self.attr("p") < 1:
            raise self.fail(f"(C5) p is {self.attr('p')}")
        if is_unranked(self.x):
            return [unranked_type(dtype)]
        dims = dims_of(self.x)
        if len(dims) < 3:
            raise self.fail(f"(C2) the operand has rank {len(dims)}, less than 3")
        windows = self.windows(len(dims) - 2)
        return [tensor_type(dtype, [*dims[:2], *window_extents(self, windows, dims[2:], "(C4)")])]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = slots(arrays)
        if x.ndim < 3:
            raise refuse(self, f"the operand has rank {x.ndim}, less than 3")
        sizes, rank, p = x.shape[2:], x.ndim - 2, self.attr("p")
        windows = self.windows(rank)
        counts = windows.run_extents(self, sizes)
        cells = [windows.cells(i, s, c) for i, (s, c) in enumerate(zip(sizes, counts, strict=True))]
        powers = power_norm(x, p)
        total = np.zeros((*x.shape[:2], *counts))
        for offset in np.ndindex(*self.attr("kernel_shape")) if total.size and x.size else ():
            axes = [_spread(c[o], i, rank) for i, (c, o) in enumerate(zip(cells, offset, strict=True))]
            valid = reduce(np.logical_and, [(a >= 0) & (a < s) for a, s in zip(axes, sizes, strict=True)])
            clipped = tuple(np.clip(a, 0, s - 1) for a, s in zip(axes, sizes, strict=True))
            total += np.where(valid, powers[(slice(None), slice(None), *clipped)], 0.0)
        return [narrow(total if p == 1 else total ** (1.0 / p), x.dtype)]


@irdl_op_definition
class GlobalLpPoolOp(SxOp):
    """The `p`-norm over all spatial elements of each channel; the spatial axes stay, with extent 1. In float64.

    (C1) The dtype is one of `DTYPES`. (C2) The rank is at least 2. (C3) `p` is positive.
    """

    name = "sx.global_lp_pool"
    x = operand_def()
    p = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("GlobalLpPool", since=2)
    DEFAULTS: ClassVar = {"p": 2}
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.x, self.DTYPES, "(C1)")
        if self.attr("p") < 1:
            raise self.fail(f"(C3) p is {self.attr('p')}")
        if is_unranked(self.x):
            return [unranked_type(dtype)]
        dims = dims_of(self.x)
        if len(dims) < 2:
            raise self.fail(f"(C2) the operand has rank {len(dims)}, less than 2")
        return [tensor_type(dtype, [*dims[:2], *[1] * (len(dims) - 2)])]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = slots(arrays)
        if x.ndim < 2:
            raise refuse(self, f"the operand has rank {x.ndim}, less than 2")
        p = self.attr("p")
        total = power_norm(x, p).sum(tuple(range(2, x.ndim)), keepdims=True)
        return [narrow(total if p == 1 else total ** (1.0 / p), x.dtype)]


@irdl_op_definition
class MaxUnpoolOp(SxOp):
    """The elements of `x` [N, C, D1, …] put where `indices` says, as `sx.max_pool` counts; 0 elsewhere.

    The result's extents are those of the data that windows of `kernel_shape`, `strides` and `pads` were taken from:
    `(extent - 1) * stride + kernel - pads`. With `output_shape` they are these; the indices still count in the others,
    and what is beyond is 0. Of several elements at one place the last one stays.

    (C1) The dtype is one of `DTYPES`; `indices` is int64, `output_shape` a vector of int64. (C2) The rank is at least
    3, and `indices` has the shape of `x`. (C3) `kernel_shape`, `strides` and `pads` fit the spatial axes.
    (C4) `output_shape` has an entry per axis, batch and channels those of `x`, the others at least those computed.
    (C5) The indices are not negative and below the number of elements.
    """

    name = "sx.max_unpool"
    x = operand_def()
    indices = operand_def()
    output_shape = opt_operand_def()
    kernel_shape = prop_def(DenseArrayBase)
    pads = opt_prop_def(DenseArrayBase)
    strides = opt_prop_def(DenseArrayBase)
    output = result_def()
    ONNX: ClassVar = OnnxForm("MaxUnpool", since=9)
    DEFAULTS: ClassVar = {"auto_pad": "NOTSET"}
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def _natural(self, sizes: Sequence[Dim | int]) -> list[Dim]:
        windows = read_windows(self, len(sizes), self.attr("kernel_shape"), "(C3)")
        return [
            (Dim.of(size) - 1) * stride + kernel - sum(pads)
            for size, stride, kernel, pads in zip(sizes, windows.strides, windows.kernel, windows.pads, strict=True)
        ]

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.x, self.DTYPES, "(C1)")
        if dtype_of(self.indices) != int64:
            raise self.fail(f"(C1) indices has dtype {dtype_of(self.indices)}, not int64")
        count = None if self.output_shape is None else check_vector(self, self.output_shape, "(C1)", "output_shape")
        if is_unranked(self.x):
            return [unranked_type(dtype)]
        dims = list(dims_of(self.x))
        if len(dims) < 3:
            raise self.fail(f"(C2) the operand has rank {len(dims)}, less than 3")
        if not is_unranked(self.indices):
            found = dims_of(self.indices)
            if len(found) != len(dims):
                raise self.fail(f"(C2) indices is {format_dims(found)}, the operand {format_dims(dims)}")
            for i, (a, b) in enumerate(zip(dims, found, strict=True)):
                dims[i] = merge(self, a, b, f"(C2) operand and indices differ at axis {i}")
        out = [*dims[:2], *self._natural(dims[2:])]
        if self.output_shape is not None:
            if count not in (None, len(dims)):
                raise self.fail(f"(C4) output_shape has {count} entries for rank {len(dims)}")
            stated = elements(self.output_shape, len(dims)) if count is not None else (None,) * len(dims)
            for i, (entry, least) in enumerate(zip(stated, out, strict=True)):
                have, need = None if entry is None else entry.static_value, least.static_value
                if have is not None and need is not None and (have != need if i < 2 else have < need):
                    raise self.fail(f"(C4) output_shape has {entry} at axis {i}, where {least} follows")
                out[i] = fresh_dim() if entry is None else entry
        check_allocation(self, dtype, out, "(C3)")
        return [tensor_type(dtype, out)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, indices, stated = slots(arrays)
        if x.ndim < 3 or x.shape != indices.shape:
            raise refuse(self, f"indices of shape {list(indices.shape)} don't fit an operand of {list(x.shape)}")
        natural = [*x.shape[:2], *(d.evaluate({}) for d in self._natural(x.shape[2:]))]
        shape = natural if stated is None else stated.tolist()
        fits = len(shape) == x.ndim and shape[:2] == natural[:2] and all(a <= b for a, b in zip(natural, shape))
        if not fits:
            raise refuse(self, f"output_shape {shape} doesn't fit the shape {natural} that follows")
        check_run_allocation(self, x, shape)
        total = math.prod(max(n, 0) for n in natural)
        bad = (indices < 0) | (indices >= total)
        if bad.any():
            raise refuse(self, f"index {int(indices[bad][0])} is out of range for {total} elements")
        out = np.zeros(total, x.dtype)
        out[indices.reshape(-1)] = x.reshape(-1)
        whole = np.zeros(shape, x.dtype)
        whole[tuple(slice(max(n, 0)) for n in natural)] = out.reshape([max(n, 0) for n in natural])
        return [whole]
