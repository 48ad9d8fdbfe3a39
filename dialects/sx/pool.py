"""Pooling: `sx.max_pool`, `sx.average_pool`, `sx.global_max_pool`, `sx.global_average_pool`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from sardonyx.dialects.attributes import Shape, dims_of, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dtypes import FLOATS, DType, int8, int64, uint8
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import refuse, slots
from sardonyx.dialects.sx.numeric import double, narrow
from sardonyx.dialects.sx.support import check_dtype, is_unranked
from sardonyx.dialects.sx.windows import (
    LAYOUTS,
    Windows,
    array_channels_last,
    array_channels_second,
    channels_last,
    channels_second,
    read_layout,
    read_windows,
    window_extents,
)


class PoolOp(SxOp):
    """Windows over the spatial axes of `x` [N, C, D1, …].

    With `ceil_mode` a last window may reach beyond the padding; one that would start behind the data and the padding
    before it is dropped. With `layout` NHWC the channels are last in the data and in the results, [N, D1, …, C]; ONNX
    has only NCHW.

    (C1) The dtype is one of `DTYPES`. (C2) The rank is at least 3. (C3) `kernel_shape`, strides and dilations are
    positive, pads not negative, one (for pads two) per spatial axis; `auto_pad` is one of `AUTO_PADS`, and pads count
    only where it is NOTSET. (C4) A window fits into the padded data. (C6) `layout` is one of `LAYOUTS`.
    """

    x = operand_def()
    kernel_shape = prop_def(DenseArrayBase)
    auto_pad = opt_prop_def(StringAttr)
    ceil_mode = opt_prop_def(IntegerAttr)
    dilations = opt_prop_def(DenseArrayBase)
    layout = opt_prop_def(StringAttr)
    pads = opt_prop_def(DenseArrayBase)
    strides = opt_prop_def(DenseArrayBase)
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def windows(self, spatial_rank: int) -> Windows:
        """The windows for that many spatial axes."""
        return read_windows(self, spatial_rank, self.attr("kernel_shape"), "(C3)", bool(self.attr("ceil_mode")))

    @property
    def channels_are_last(self) -> bool:
        return read_layout(self, LAYOUTS, "(C6)")[0]

    def _infer(self) -> tuple[DType, Shape | None]:
        dtype = check_dtype(self, self.x, self.DTYPES, "(C1)")
        if is_unranked(self.x):
            return dtype, None
        given, last = dims_of(self.x), self.channels_are_last
        if len(given) < 3:
            raise self.fail(f"(C2) the operand has rank {len(given)}, less than 3")
        dims = channels_second(given, last)
        windows = self.windows(len(dims) - 2)
        return dtype, channels_last((*dims[:2], *window_extents(self, windows, dims[2:], "(C4)")), last)

    def _run(self, given: Array) -> tuple[Array, Windows, tuple[int, ...], list[Array]]:
        """The operand with channels second, the windows, their numbers and per axis their cells' coordinates."""
        if given.ndim < 3:
            raise refuse(self, f"the operand has rank {given.ndim}, less than 3")
        x = array_channels_second(given, self.channels_are_last)
        windows = self.windows(x.ndim - 2)
        counts = windows.run_extents(self, x.shape[2:])
        cells = [windows.cells(i, s, c) for i, (s, c) in enumerate(zip(x.shape[2:], counts, strict=True))]
        return x, windows, counts, cells


def _spread(vectors: Sequence[Array]) -> list[Array]:
    """One vector per axis, shaped to broadcast against the others."""
    rank = len(vectors)
    return [v.reshape([-1 if j == i else 1 for j in range(rank)]) for i, v in enumerate(vectors)]


@irdl_op_definition
class MaxPoolOp(PoolOp):
    """The greatest element of each window, and where it stands in the operand, counted over all its elements.

    Padding never wins; NaN always does; among equals the first in the window. Elements are counted with the channels
    second, whatever the layout. `storage_order` 1 counts the spatial axes with the first one fastest. A window that is
    all padding gives the dtype's lowest value and the index -1.

    The constraints are those of `PoolOp`, and (C5) `storage_order` is 0 or 1.
    """

    name = "sx.max_pool"
    storage_order = opt_prop_def(IntegerAttr)
    output = result_def()
    indices = result_def()
    ONNX: ClassVar = OnnxForm("MaxPool", since=10, attributes={"layout": None})
    DEFAULTS: ClassVar = {"auto_pad": "NOTSET", "ceil_mode": False, "layout": "NCHW", "storage_order": 0}
    DTYPES: ClassVar[Sequence[DType]] = (*FLOATS, int8, uint8)

    def infer(self) -> Sequence[Attribute]:
        dtype, dims = self._infer()
        if self.attr("storage_order") not in (0, 1):
            raise self.fail(f"(C5) storage_order is {self.attr('storage_order')}")
        if dims is None:
            return [unranked_type(dtype), unranked_type(int64)]
        return [tensor_type(dtype, dims), tensor_type(int64, dims)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, windows, counts, cells = self._run(*slots(arrays))
        sizes = x.shape[2:]
        shape = (*x.shape[:2], *counts)
        exact = x if x.dtype.kind in "iu" else double(x)
        lowest = _lowest(x.dtype)
        best = np.full(shape, lowest, exact.dtype)
        # The position among the operand's spatial elements, -1 for none yet.
        where = np.full(shape, -1, np.int64)
        steps = np.cumprod((1, *sizes[:0:-1]))[::-1]
        for offset in np.ndindex(*self.attr("kernel_shape")) if exact.size else ():
            axes = _spread([c[o] for c, o in zip(cells, offset, strict=True)])
            valid = reduce(np.logical_and, [(a >= 0) & (a < s) for a, s in zip(axes, sizes, strict=True)])
            clipped = [np.clip(a, 0, s - 1) for a, s in zip(axes, sizes, strict=True)]
            found = exact[(slice(None), slice(None), *clipped)]
            position = sum(a * int(step) for a, step in zip(clipped, steps, strict=True))
            nan = (found != found) & (best == best)
            wins = valid & ((where < 0) | (found > best) | nan)
            best = np.where(wins, found, best)
            where = np.where(wins, position, where)
        planes = np.arange(math.prod(shape[:2])).reshape(*shape[:2], *[1] * len(sizes)) * math.prod(sizes)
        index = where
        if self.attr("storage_order"):
            index = np.zeros_like(where)
            rest, forward = where, np.cumprod((1, *sizes[:-1]))
            for step, ahead in zip(steps, forward, strict=True):
                index = index + rest // max(int(step), 1) * int(ahead)
                rest = rest % max(int(step), 1)
        found = best.astype(x.dtype), np.where(where < 0, -1, index + planes)
        return [array_channels_last(array, self.channels_are_last) for array in found]


def _lowest(dtype: np.dtype) -> float:
    return int(np.iinfo(dtype).min) if dtype.kind in "iu" else -math.inf


@irdl_op_definition
class AveragePoolOp(PoolOp):
    """The mean of each window, in float64, rounded once.

    Without `count_include_pad` it is the mean of the cells that hold data, else padding counts as zeros; cells beyond
    the padding, which `ceil_mode` brings in, never count. A window without a cell that counts gives 0.

    The constraints are those of `PoolOp`.
    """

    name = "sx.average_pool"
    count_include_pad = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("AveragePool", since=10, attributes={"layout": None})
    DEFAULTS: ClassVar = {"auto_pad": "NOTSET", "ceil_mode": False, "layout": "NCHW", "count_include_pad": False}

    def infer(self) -> Sequence[Attribute]:
        dtype, dims = self._infer()
        return [unranked_type(dtype) if dims is None else tensor_type(dtype, dims)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, windows, counts, cells = self._run(*slots(arrays))
        sizes = x.shape[2:]
        exact = double(x)
        total = np.zeros((*exact.shape[:2], *counts))
        for offset in np.ndindex(*self.attr("kernel_shape")) if exact.size else ():
            axes = _spread([c[o] for c, o in zip(cells, offset, strict=True)])
            valid = reduce(np.logical_and, [(a >= 0) & (a < s) for a, s in zip(axes, sizes, strict=True)])
            clipped = tuple(np.clip(a, 0, s - 1) for a, s in zip(axes, sizes, strict=True))
            total += np.where(valid, exact[(slice(None), slice(None), *clipped)], 0.0)
        counted: list[Array] = []
        for axis, (at, size) in enumerate(zip(cells, sizes, strict=True)):
            before, after = windows.run_pads(axis, size) if self.attr("count_include_pad") else (0, 0)
            counted.append(((at >= -before) & (at < size + after)).sum(0))
        number = reduce(np.multiply, _spread(counted))
        result = narrow(np.where(number > 0, total / np.maximum(number, 1), 0.0), x.dtype)
        return [array_channels_last(result, self.channels_are_last)]


class GlobalPoolOp(SxOp):
    """One value for all spatial elements of each channel; the spatial axes stay, with extent 1.

    (C1) The dtype is one of `DTYPES`. (C2) The rank is at least 2.
    """

    x = operand_def()
    output = result_def()
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.x, self.DTYPES, "(C1)")
        if is_unranked(self.x):
            return [unranked_type(dtype)]
        dims = dims_of(self.x)
        if len(dims) < 2:
            raise self.fail(f"(C2) the operand has rank {len(dims)}, less than 2")
        return [tensor_type(dtype, [*dims[:2], *[1] * (len(dims) - 2)])]

    def _spatial(self, x: Array) -> tuple[int, ...]:
        if x.ndim < 2:
            raise refuse(self, f"the operand has rank {x.ndim}, less than 2")
        return tuple(range(2, x.ndim))


@irdl_op_definition
class GlobalAveragePoolOp(GlobalPoolOp):
    """The mean over all spatial axes, in float64, rounded once; of no elements NaN.

    The constraints are those of `GlobalPoolOp`.
    """

    name = "sx.global_average_pool"
    ONNX: ClassVar = OnnxForm("GlobalAveragePool", since=1)

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = slots(arrays)
        axes = self._spatial(x)
        count = np.float64(math.prod(x.shape[2:]))
        return [narrow(double(x).sum(axes, keepdims=True) / count, x.dtype)]


@irdl_op_definition
class GlobalMaxPoolOp(GlobalPoolOp):
    """The greatest element over all spatial axes, NaN where there is one; of no elements minus infinity.

    The constraints are those of `GlobalPoolOp`.
    """

    name = "sx.global_max_pool"
    ONNX: ClassVar = OnnxForm("GlobalMaxPool", since=1)

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = slots(arrays)
        axes = self._spatial(x)
        return [double(x).max(axes, keepdims=True, initial=-np.inf).astype(x.dtype)]
