"""Normalisation over channels and windows: `sx.batch_norm`, `sx.instance_norm`, `sx.group_norm`, `sx.lrn`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, result_def

from sardonyx.dialects.attributes import Shape, dims_of, tensor_type, unranked_type
from sardonyx.dialects.base import OnnxForm, SxOp
from sardonyx.dialects.dims import Dim, Proof, divides
from sardonyx.dialects.dtypes import FLOATS, DType
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.extents import merge, refuse, slots
from sardonyx.dialects.sx.numeric import double, narrow
from sardonyx.dialects.sx.support import check_dtype, float_attr, format_dims, is_unranked, same_dtype

EPSILON = 1e-5


def mean(x: Array, axes: Sequence[int]) -> Array:
    """The mean with the axes kept; NaN over no elements."""
    return x.sum(tuple(axes), keepdims=True) / np.float64(math.prod(x.shape[a] for a in axes))


def moments(x: Array, axes: Sequence[int]) -> tuple[Array, Array]:
    """Mean and population variance of float64, with the axes kept."""
    center = mean(x, axes)
    return center, mean(np.square(x - center), axes)


def per_channel(vector: Array, rank: int) -> Array:
    """A vector of float64 along axis 1 of that rank."""
    return double(vector).reshape(1, -1, *[1] * (rank - 2)) if rank > 1 else double(vector)


def channel_dims(op: SxOp, x: SSAValue, vectors: Sequence[SSAValue], least: int, constraint: str) -> Shape | None:
    """The dims of `x`, its channels (axis 1; one for rank 1) matched with the vectors' lengths; None if unranked.

    Raises:
        InferenceError: The rank is below `least`, or the vectors don't have that length.
    """
    for vector in vectors:
        if not is_unranked(vector) and len(dims_of(vector)) != 1:
            raise op.fail(f"{constraint} a vector per channel has shape {format_dims(dims_of(vector))}")
    if is_unranked(x):
        return None
    dims = list(dims_of(x))
    if len(dims) < least:
        raise op.fail(f"{constraint} the operand has rank {len(dims)}, less than {least}")
    channels = dims[1] if len(dims) > 1 else Dim.of(1)
    for vector in vectors:
        if not is_unranked(vector):
            channels = merge(op, channels, dims_of(vector)[0], f"{constraint} the numbers of channels differ")
    if len(dims) > 1:
        dims[1] = channels
    return tuple(dims)


def check_run_channels(op: SxOp, x: Array, vectors: Sequence[Array | None], least: int) -> None:
    """The same of a run; raises ExecutionError."""
    channels = x.shape[1] if x.ndim > 1 else 1
    if x.ndim < least or any(v is not None and v.shape != (channels,) for v in vectors):
        shown = ", ".join(str(list(v.shape)) for v in vectors if v is not None)
        raise refuse(op, f"x of shape {list(x.shape)} does not go with vectors of {shown}")


@irdl_op_definition
class BatchNormOp(SxOp):
    """`(x - mean) / sqrt(var + epsilon) * scale + bias` per channel (axis 1; `x` of rank 1 is one channel).

    Mean and variance are those given, which come out again unchanged. With `training_mode` they are the batch's own
    (the population variance), and the other results are `given * momentum + batch's * (1 - momentum)`. Computes in
    float64 and rounds once.

    (C1) The dtypes are some of `DTYPES`; `scale` and `bias` share one, `mean` and `var` another. (C2) The rank of `x`
    is at least 1; the others are vectors with one element per channel.
    """

    name = "sx.batch_norm"
    x = operand_def()
    scale = operand_def()
    bias = operand_def()
    mean = operand_def()
    var = operand_def()
    epsilon = opt_prop_def(FloatAttr)
    momentum = opt_prop_def(FloatAttr)
    training_mode = opt_prop_def(IntegerAttr)
    output = result_def()
    running_mean = result_def()
    running_var = result_def()
    ONNX: ClassVar = OnnxForm("BatchNormalization", since=9)
    DEFAULTS: ClassVar = {"epsilon": EPSILON, "momentum": 0.9, "training_mode": False}
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def infer(self) -> Sequence[Attribute]:
        dtype = check_dtype(self, self.x, self.DTYPES, "(C1)")
        same_dtype(self, [self.scale, self.bias], "(C1)")
        statistics = same_dtype(self, [self.mean, self.var], "(C1)")
        check_dtype(self, self.scale, self.DTYPES, "(C1)")
        check_dtype(self, self.mean, self.DTYPES, "(C1)")
        vectors = [self.scale, self.bias, self.mean, self.var]
        dims = channel_dims(self, self.x, vectors, 1, "(C2)")
        if dims is None:
            return [unranked_type(dtype), self.mean.type, self.var.type]
        channels = tensor_type(statistics, [dims[1] if len(dims) > 1 else 1])
        return [tensor_type(dtype, dims), channels, channels]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, scale, bias, old_mean, old_var = slots(arrays)
        check_run_channels(self, x, arrays[1:], 1)
        exact = double(x)
        rank = exact.ndim
        running = old_mean, old_var
        if self.attr("training_mode"):
            center, spread = moments(exact, [i for i in range(rank) if i != 1])
            keep = float_attr(self, "momentum")
            running = tuple(
                narrow(double(old) * keep + new.reshape(-1) * (1 - keep), old.dtype)
                for old, new in ((old_mean, center), (old_var, spread))
            )
        else:
            center, spread = per_channel(old_mean, rank), per_channel(old_var, rank)
        result = (exact - center) / np.sqrt(spread + float_attr(self, "epsilon"))
        result = result * per_channel(scale, rank) + per_channel(bias, rank)
        return [narrow(result, x.dtype), *running]


@irdl_op_definition
class InstanceNormOp(SxOp):
    """Each channel of each item over its spatial axes: `(x - mean) / sqrt(variance + epsilon) * scale + bias`.

    (C1) The operands have the same dtype, one of `DTYPES`. (C2) The rank of `x` is at least 3; `scale` and `bias` are
    vectors with one element per channel.
    """

    name = "sx.instance_norm"
    x = operand_def()
    scale = operand_def()
    bias = operand_def()
    epsilon = opt_prop_def(FloatAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("InstanceNormalization", since=6)
    DEFAULTS: ClassVar = {"epsilon": EPSILON}
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def infer(self) -> Sequence[Attribute]:
        dtype = same_dtype(self, self.operands, "(C1)")
        check_dtype(self, self.x, self.DTYPES, "(C1)")
        dims = channel_dims(self, self.x, [self.scale, self.bias], 3, "(C2)")
        return [unranked_type(dtype) if dims is None else tensor_type(dtype, dims)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, scale, bias = slots(arrays)
        check_run_channels(self, x, [scale, bias], 3)
        exact = double(x)
        center, spread = moments(exact, range(2, exact.ndim))
        result = (exact - center) / np.sqrt(spread + float_attr(self, "epsilon"))
        result = result * per_channel(scale, exact.ndim) + per_channel(bias, exact.ndim)
        return [narrow(result, x.dtype)]


@irdl_op_definition
class GroupNormOp(SxOp):
    """Each group of channels of each item: `(x - mean) / sqrt(variance + epsilon) * scale + bias`.

    Computes in float64 and rounds once, whatever `stash_type` says.

    (C1) The operands have the same dtype, one of `DTYPES`. (C2) The rank of `x` is at least 2; `scale` and `bias` are
    vectors with one element per channel. (C3) `num_groups` is positive and divides the number of channels.
    """

    name = "sx.group_norm"
    x = operand_def()
    scale = operand_def()
    bias = operand_def()
    num_groups = prop_def(IntegerAttr)
    epsilon = opt_prop_def(FloatAttr)
    stash_type = opt_prop_def(IntegerAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("GroupNormalization", since=21)
    DEFAULTS: ClassVar = {"epsilon": EPSILON, "stash_type": 1}
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def infer(self) -> Sequence[Attribute]:
        dtype = same_dtype(self, self.operands, "(C1)")
        check_dtype(self, self.x, self.DTYPES, "(C1)")
        groups = self.attr("num_groups")
        dims = channel_dims(self, self.x, [self.scale, self.bias], 2, "(C2)")
        if groups < 1 or (dims is not None and divides(groups, dims[1]) is Proof.REFUTED):
            raise self.fail(f"(C3) {groups} groups of {'some' if dims is None else dims[1]} channels")
        return [unranked_type(dtype) if dims is None else tensor_type(dtype, dims)]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        x, scale, bias = slots(arrays)
        check_run_channels(self, x, [scale, bias], 2)
        shape, groups = x.shape, self.attr("num_groups")
        if shape[1] % groups:
            raise refuse(self, f"{shape[1]} channels are no multiple of {groups} groups")
        exact = double(x).reshape(shape[0], groups, shape[1] // groups, *shape[2:])
        center, spread = moments(exact, range(2, exact.ndim))
        result = ((exact - center) / np.sqrt(spread + float_attr(self, "epsilon"))).reshape(shape)
        result = result * per_channel(scale, len(shape)) + per_channel(bias, len(shape))
        return [narrow(result, x.dtype)]


@irdl_op_definition
class LRNOp(SxOp):
    """`x / (bias + alpha / size * s) ** beta`, s the sum of squares over `size` neighbouring channels.

    Channel c's neighbours are c - floor((size - 1) / 2) to c + ceil((size - 1) / 2), those that exist.

    (C1) The dtype is one of `DTYPES`. (C2) The rank is at least 2. (C3) `size` is positive.
    """

    name = "sx.lrn"
    x = operand_def()
    size = prop_def(IntegerAttr)
    alpha = opt_prop_def(FloatAttr)
    beta = opt_prop_def(FloatAttr)
    bias = opt_prop_def(FloatAttr)
    output = result_def()
    ONNX: ClassVar = OnnxForm("LRN", since=1)
    DEFAULTS: ClassVar = {"alpha": 1e-4, "beta": 0.75, "bias": 1.0}
    DTYPES: ClassVar[Sequence[DType]] = FLOATS

    def infer(self) -> Sequence[Attribute]:
        check_dtype(self, self.x, self.DTYPES, "(C1)")
        if not is_unranked(self.x) and len(dims_of(self.x)) < 2:
            raise self.fail(f"(C2) the operand has shape {format_dims(dims_of(self.x))}")
        if self.attr("size") < 1:
            raise self.fail(f"(C3) size is {self.attr('size')}")
        return [self.x.type]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (x,) = slots(arrays)
        exact, size = double(x), self.attr("size")
        if exact.ndim < 2:
            raise refuse(self, f"the operand has rank {exact.ndim}, less than 2")
        channels = exact.shape[1]
        before = (size - 1) // 2
        total = np.zeros_like(exact)
        squares = np.square(exact)
        for shift in range(max(-before, 1 - channels), min(size - 1 - before, channels - 1) + 1):
            first, last = max(0, -shift), channels - max(0, shift)
            total[:, first:last] += squares[:, first + shift : last + shift]
        scale = (float_attr(self, "bias") + float_attr(self, "alpha") / size * total) ** float_attr(self, "beta")
        return [narrow(exact / scale, x.dtype)]
