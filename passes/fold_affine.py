"""`fold-affine`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.pattern_rewriter import RewritePattern

from sardonyx.dialects.attributes import dims_of, dtype_of, rank_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.evaluate import Array
from sardonyx.dialects.sx.binary import AddOp, DivOp, MulOp, SubOp
from sardonyx.dialects.sx.conv import ConvOp, ConvTransposeOp
from sardonyx.dialects.sx.matmul import GemmOp, MatMulOp
from sardonyx.dialects.sx.norm import BatchNormOp
from sardonyx.dialects.sx.support import float_attr
from sardonyx.errors import MissingWeightError
from sardonyx.passes import provenance
from sardonyx.passes.base import PassRun, Promise, SxPass, reassociates
from sardonyx.passes.constants import constant_of, make_constant
from sardonyx.passes.driver import RewriteDriver, SxPattern, SxRewriter
from sardonyx.passes.matching import defined_by, is_ranked, same_shape

PRODUCERS = (ConvOp, ConvTransposeOp, GemmOp, BatchNormOp)
AFFINE = (BatchNormOp, MulOp, DivOp, AddOp, SubOp)


@dataclass(frozen=True)
class Affine:
    """`x * scale + shift` per channel, in float64; each is a vector of one element or of one per channel."""

    data: SSAValue
    scale: Array
    shift: Array

    @property
    def is_finite(self) -> bool:
        return bool(np.isfinite(self.scale).all() and np.isfinite(self.shift).all())


def constant_array(value: SSAValue | None) -> Array | None:
    """The contents of a constant in float64; None for all else, or where its bytes are not here."""
    constant = constant_of(value)
    if constant is None:
        return None
    try:
        return constant.array().astype(np.float64)
    except MissingWeightError:
        return None


def channel_axis(op: SxOp) -> int:
    """The axis of the channels in the result of a producer."""
    result = op.results[0]
    layout = op.attr("layout") if isinstance(op, ConvOp) else None
    return rank_of(result) - 1 if isinstance(layout, str) and layout.endswith("NHWC") else 1


def per_channel(value: SSAValue, rank: int, axis: int) -> Array | None:
    """A constant as a vector along the channels, if it broadcasts to them and along nothing else."""
    array = constant_array(value)
    if array is None or array.ndim > rank:
        return None
    shape = (1,) * (rank - array.ndim) + array.shape
    if any(extent != 1 for at, extent in enumerate(shape) if at != axis):
        return None
    return array.reshape(-1)


def affine_of(op: SxOp, axis: int) -> Affine | None:
    """What an op does per channel, where it is affine with constants; `axis` is that of the channels."""
    one, zero = np.ones(1), np.zeros(1)
    if isinstance(op, BatchNormOp):
        values = [constant_array(v) for v in (op.scale, op.bias, op.mean, op.var)]
        scale, bias, mean, var = values
        if op.attr("training_mode") or axis != 1 or op.running_mean.first_use or op.running_var.first_use:
            return None
        if scale is None or bias is None or mean is None or var is None:
            return None
        with np.errstate(all="ignore"):
            factor = scale / np.sqrt(var + float_attr(op, "epsilon"))
        return Affine(op.x, factor, bias - mean * factor)
    left, right = op.operands
    rank = rank_of(op.results[0])
    for data, other in ((left, right), (right, left)):
        vector = per_channel(other, rank, axis)
        if vector is None or not same_shape(data, op.results[0]):
            continue
        swapped = data is right
        if isinstance(op, MulOp):
            return Affine(data, vector, zero)
        if isinstance(op, AddOp):
            return Affine(data, one, vector)
        if isinstance(op, SubOp):
            return Affine(data, -one, vector) if swapped else Affine(data, one, -vector)
        if isinstance(op, DivOp) and not swapped and vector.all():
            return Affine(data, 1 / vector, zero)
    return None


class FoldAffinePattern(SxPattern[SxOp]):
    """Cases 1 to 3: what is affine per channel, after what already multiplies and adds constants."""

    NAME: ClassVar = "fold-affine"
    OPS: ClassVar = AFFINE

    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        dtype = dtype_of(op.results[0])
        if not is_ranked(*op.operands, op.results[0]) or not dtype.is_float:
            return
        producer = next((p for p in (defined_by(v, PRODUCERS) for v in op.operands) if p is not None), None)
        if producer is None or not is_ranked(producer.results[0]):
            return
        if dtype.bits < 32:
            return rewriter.decline("weights of 16 bits would be rounded once more")
        affine = affine_of(op, channel_axis(producer))
        if affine is None or affine.data is not producer.results[0]:
            return rewriter.decline("its other operands are no constants per channel, or they broadcast the first")
        if not producer.results[0].has_one_use():
            return rewriter.decline("the result that it scales is read elsewhere too")
        if not affine.is_finite:
            return rewriter.decline("a scale or shift is not finite")
        made = self.fold(op, producer, affine, rewriter)
        if made is not None:
            made[-1].results[0].name_hint = op.results[0].name_hint
            rewriter.replace(op, made, [made[-1].results[0], *(None for _ in op.results[1:])])

    def fold(self, op: SxOp, producer: SxOp, affine: Affine, rewriter: SxRewriter) -> list[SxOp] | None:
        """The constants and the producer with the affine function in its constants."""
        attributes = producer.python_properties()
        dtype = dtype_of(producer.results[0])
        if isinstance(producer, BatchNormOp):
            inner = affine_of(producer, 1)
            scale, bias = constant_array(producer.scale), constant_array(producer.bias)
            if inner is None or scale is None or bias is None:
                rewriter.decline("the batch norm's parameters are not constant, or it is in training mode")
                return None
            narrow = dtype_of(producer.scale).numpy
            new = [(scale * affine.scale).astype(narrow), (bias * affine.scale + affine.shift).astype(narrow)]
            operands: list[SSAValue | None] = [producer.x, None, None, producer.mean, producer.var]
            places = [1, 2]
        else:
            weight = producer.operands[1]
            w = constant_array(weight)
            b = self.bias(producer, len(dims_of(producer.results[0])))
            if w is None or b is None:
                rewriter.decline("its weights or its bias are not constant")
                return None
            if not weight.has_one_use() and not (affine.scale == 1).all():
                rewriter.decline("the weights are read elsewhere too: scaled ones would be stored twice")
                return None
            scaled = _scale_weights(producer, w, affine.scale)
            narrow = dtype.numpy
            channels = w.shape[_channel_axis_of_weights(producer)] * _groups(producer)
            shifted = np.broadcast_to(b * affine.scale + affine.shift, (*b.shape[:-1], channels))
            new = [scaled.astype(narrow), np.ascontiguousarray(shifted).astype(narrow)]
            operands = [producer.operands[0], None, None]
            places = [1, 2]
            if isinstance(producer, GemmOp):
                attributes.pop("beta", None)
        if not all(np.isfinite(a).all() for a in new):
            rewriter.decline("the folded constants would not be finite")
            return None
        at = provenance.merge(op.location, producer.location)
        made: list[SxOp] = []
        for place, array in zip(places, new, strict=True):
            known = constant_of(producer.operands[1]) if place == 1 else None
            if known is not None and not isinstance(producer, BatchNormOp) and (affine.scale == 1).all():
                operands[place] = known.output
                continue
            if place == 2 and len(producer.operands) == 2 and not array.any():
                continue  # it adds nothing, as before
            constant = make_constant(array, location=at)
            made.append(constant)
            operands[place] = constant.output
        result = type(producer).make(*operands, **attributes, location=at)
        return [*made, result]

    def bias(self, producer: SxOp, rank: int) -> Array | None:
        """What the producer adds, ending in the channels; zeros where it adds nothing, None where it isn't constant."""
        added = producer.operands[2] if len(producer.operands) > 2 else None
        if added is None:
            return np.zeros(1)
        array = constant_array(added)
        if array is None:
            return None
        if isinstance(producer, GemmOp):
            array = np.atleast_1d(array) * float_attr(producer, "beta")
        return array


def _channel_axis_of_weights(producer: SxOp) -> int:
    if isinstance(producer, GemmOp):
        return 0 if producer.attr("transB") else 1
    return 1 if isinstance(producer, ConvTransposeOp) else 0


def _groups(producer: SxOp) -> int:
    return producer.attr("group") if isinstance(producer, ConvTransposeOp) else 1


def _scale_weights(producer: SxOp, w: Array, scale: Array) -> Array:
    axis = _channel_axis_of_weights(producer)
    if scale.size == 1:
        return w * scale.reshape(())
    if isinstance(producer, ConvTransposeOp):
        # [C, M/group, k…]: the inputs of group g make the outputs of group g.
        groups = producer.attr("group")
        grouped = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
        factors = scale.reshape(groups, 1, w.shape[1], *[1] * (w.ndim - 2))
        return (grouped * factors).reshape(w.shape)
    return w * scale.reshape([-1 if at == axis else 1 for at in range(w.ndim)])


class MatMulAddPattern(SxPattern[AddOp]):
    """Case 4: a product of matrices plus a vector per column is one gemm."""

    NAME: ClassVar = "matmul-add"
    OPS: ClassVar = (AddOp,)

    def rewrite(self, op: AddOp, rewriter: SxRewriter) -> None:
        if not is_ranked(*op.operands, op.output):
            return
        for product, added in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
            inner = defined_by(product, MatMulOp)
            if inner is None or not is_ranked(*inner.operands):
                continue
            if any(rank_of(v) != 2 for v in inner.operands):
                rewriter.decline("gemm multiplies matrices only")
                continue
            if constant_of(added) is None or rank_of(added) > 2 or not same_shape(product, op.output):
                rewriter.decline("what is added is no constant, or it broadcasts the product")
                continue
            if not product.has_one_use():
                rewriter.decline("the product is read elsewhere too")
                continue
            both = provenance.merge(op.location, inner.location)
            return rewriter.replace(op, GemmOp.make(*inner.operands, added, location=both))


@dataclass(frozen=True)
class FoldAffinePass(SxPass):
    """Fold batch norms, scales and biases into the constants of the convolution or product before them.

    Cases:
    1. An inference-mode batch norm after a conv, conv_transpose or gemm with constant weights goes into these and into
       the bias; computed in float64, rounded once.
    2. A multiplication, division, addition or subtraction with a constant that is one number or one per channel does
       too (a constant that stays on the left of a division does not).
    3. The same after a batch norm goes into its scale and bias.
    4. A matmul of two matrices plus a constant bias is one gemm.
    5. Not: 16 bits, where weights would be rounded once more; where the result in between is read elsewhere; where
       scaled weights would have to be stored beside the old ones; where a constant would not be finite, or varies along
       another axis than the channels'.

    Options: `make-gemm` (true), whether case 4 fires.
    Requires: nothing (it finds more after `fold-constants`). Ensures: none of the cases is left.
    Promise: reassociates(4).
    """

    name = "fold-affine"
    PROMISE: ClassVar[Promise] = reassociates(4)

    make_gemm: bool = field(default=True, metadata={"help": "state a product with a bias as sx.gemm"})

    def run(self, module: ModuleOp, run: PassRun) -> None:
        patterns: list[RewritePattern] = [FoldAffinePattern()]
        if self.make_gemm:
            patterns.append(MatMulAddPattern())
        RewriteDriver(patterns, run).rewrite(module)
