"""`fold-batch-norm`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dims_of, dtype_of, rank_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dims import Proof, equal
from sardonyx.dialects.sx.binary import AddOp, DivOp, MulOp, SubOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.conv import ConvOp, ConvTransposeOp
from sardonyx.dialects.sx.norm import BatchNormOp
from sardonyx.dialects.sx.support import float_attr
from sardonyx.errors import MissingWeightError
from sardonyx.passes import provenance
from sardonyx.passes.base import PassRun, Promise, SxPass, reassociates
from sardonyx.passes.constants import constant_of, make_constant
from sardonyx.passes.driver import RewriteDriver, SxPattern, SxRewriter
from sardonyx.passes.layout_rule import remake
from sardonyx.passes.matching import defined_by, is_ranked

Array = np.ndarray[Any, Any]
Convolution = ConvOp | ConvTransposeOp


def _contents(value: SSAValue | None) -> Array | None:
    """A constant in float64; None for all else, and where its bytes are not here."""
    constant = constant_of(value)
    if constant is None:
        return None
    try:
        return constant.array().astype(np.float64)
    except MissingWeightError:
        return None


def _only_read_here(conv: Convolution) -> bool:
    return len(list(conv.output.uses)) == 1


class _Folding:
    """A convolution whose weights are constants, and what is done to its channels."""

    def __init__(self, conv: Convolution, w: Array, b: Array) -> None:
        self.conv, self.w, self.b = conv, w, b

    @staticmethod
    def of(value: SSAValue, rewriter: SxRewriter) -> _Folding | None:
        """The convolution that computes the value, if it can be changed."""
        conv = defined_by(value, (ConvOp, ConvTransposeOp))
        if conv is None:
            return None
        if not is_ranked(*conv.operands) or dtype_of(conv.w).bits < 32:
            rewriter.decline("weights of 16 bits would be rounded once more")
            return None
        if not _only_read_here(conv):
            rewriter.decline("the convolution has other readers")
            return None
        w = _contents(conv.w)
        if w is None:
            rewriter.decline("the weights are not constant")
            return None
        channels = w.shape[0] if isinstance(conv, ConvOp) else w.shape[1] * conv.attr("group")
        b = np.zeros(channels) if conv.b is None else _contents(conv.b)
        if b is None:
            rewriter.decline("the bias is not constant")
            return None
        return _Folding(conv, w, b)

    def scale(self, factor: Array) -> None:
        """Multiply each output channel."""
        if isinstance(self.conv, ConvOp):
            self.w = self.w * factor.reshape(-1, *[1] * (self.w.ndim - 1))
        else:  # [C, M / group, …]: the channels of a group stand beside one another
            group = self.conv.attr("group")
            shape = self.w.shape
            parts = self.w.reshape(group, shape[0] // group, *shape[1:])
            self.w = (parts * factor.reshape(group, 1, -1, *[1] * (len(shape) - 2))).reshape(shape)
        self.b = self.b * factor

    def replace(self, op: SxOp, rewriter: SxRewriter, others: tuple[SSAValue | None, ...] = ()) -> None:
        """Put the convolution with the new weights in the place of `op`."""
        conv, dtype = self.conv, dtype_of(self.conv.w).numpy
        with np.errstate(over="ignore"):
            w, b = self.w.astype(dtype), self.b.astype(dtype)
        if not (np.isfinite(w).all() and np.isfinite(b).all()):
            return rewriter.decline("the folded weights would not be finite")
        location = provenance.merge(conv.location, op.location)
        weights, bias = make_constant(w, "folded", location), make_constant(b, "folded", location)
        new = type(conv).make(conv.x, weights.output, bias.output, location=location, **conv.python_properties())
        new.output.name_hint = op.results[0].name_hint
        rewriter.replace(op, [weights, bias, new], [new.output, *others])


def _factors(op: BatchNormOp) -> tuple[Array, Array, Array] | None:
    """(factor, mean, bias) per channel, in float64: the result is `(x - mean) * factor + bias`."""
    vectors = [_contents(v) for v in (op.scale, op.bias, op.mean, op.var)]
    scale, bias, mean, var = vectors
    if scale is None or bias is None or mean is None or var is None:
        return None
    with np.errstate(all="ignore"):
        return scale / np.sqrt(var + float_attr(op, "epsilon")), mean, bias


class BatchNormPattern(SxPattern[BatchNormOp]):
    """Cases 1 and 2."""

    NAME: ClassVar = "batch-norm"
    OPS: ClassVar = (BatchNormOp,)

    def rewrite(self, op: BatchNormOp, rewriter: SxRewriter) -> None:
        if op.attr("training_mode"):
            return rewriter.decline("it computes the statistics itself")
        dtype = dtype_of(op.x)
        if not is_ranked(*op.operands) or dtype.bits < 32 or any(dtype_of(v) != dtype for v in op.operands):
            return rewriter.decline("its dtypes differ or have 16 bits")
        found = _factors(op)
        if found is None:
            return rewriter.decline("scale, bias, mean or variance are not constant")
        factor, mean, bias = found
        if not all(np.isfinite(part).all() for part in found):
            return rewriter.decline("scale, bias, mean or variance are not finite")
        others = (op.mean, op.var)
        folding = _Folding.of(op.x, rewriter)
        if folding is not None and folding.b.shape == factor.shape and _channels_second(folding.conv):
            folding.b = folding.b - mean
            folding.scale(factor)
            folding.b = folding.b + bias
            folding.replace(op, rewriter, others)
            if op.parent is None:
                return
        self._decompose(op, rewriter, (mean, factor, bias), others)

    def _decompose(
        self, op: BatchNormOp, rewriter: SxRewriter, parts: tuple[Array, Array, Array], others: tuple[SSAValue, ...]
    ) -> None:
        dtype, rank = dtype_of(op.x).numpy, rank_of(op.x)
        if rank < 2:
            return rewriter.decline("the operand has rank 1")
        made: list[SxOp] = []
        value: SSAValue = op.x
        for cls, part in zip((SubOp, MulOp, AddOp), parts, strict=True):
            constant = make_constant(part.astype(dtype).reshape(-1, *[1] * (rank - 2)))
            step = cls.make(value, constant.output)
            made += [constant, step]
            value = step.results[0]
        value.name_hint = op.output.name_hint
        rewriter.replace(op, made, [value, *others])


class ScalePattern(SxPattern[SxOp]):
    """Case 3."""

    NAME: ClassVar = "scale"
    OPS: ClassVar = (MulOp, DivOp, AddOp, SubOp)

    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        for data, other, first in ((0, 1, True), (1, 0, False)):
            conv = defined_by(op.operands[data], (ConvOp, ConvTransposeOp))
            if conv is None or constant_of(op.operands[other]) is None:
                continue
            if isinstance(op, DivOp) and not first:
                continue
            folding = _Folding.of(op.operands[data], rewriter)
            vector = None if folding is None else self._per_channel(op, op.operands[other], conv)
            if folding is None or vector is None:
                continue
            if isinstance(op, MulOp):
                folding.scale(vector)
            elif isinstance(op, DivOp):
                with np.errstate(all="ignore"):
                    folding.scale(1 / vector)
            elif isinstance(op, AddOp):
                folding.b = folding.b + vector
            elif first:
                folding.b = folding.b - vector
            else:
                folding.scale(np.full_like(vector, -1.0))
                folding.b = folding.b + vector
            return folding.replace(op, rewriter)

    def _per_channel(self, op: SxOp, value: SSAValue, conv: Convolution) -> Array | None:
        """A constant as one number per output channel, where it varies along nothing else."""
        if not is_ranked(value, op.results[0]) or not _channels_second(conv):
            return None
        own, out = dims_of(conv.output), dims_of(op.results[0])
        if len(own) != len(out) or any(equal(a, b) is not Proof.PROVED for a, b in zip(own, out, strict=True)):
            return None
        array, channels = _contents(value), own[1].static_value
        if array is None or channels is None or not channels:
            return None
        shape = (1,) * (len(own) - array.ndim) + array.shape
        if shape[0] != 1 or any(extent != 1 for extent in shape[2:]) or shape[1] not in (1, channels):
            return None
        return np.broadcast_to(array.reshape(-1), (channels,))


def _channels_second(conv: Convolution) -> bool:
    return not isinstance(conv, ConvOp) or not conv.channels_are_last[1]


@dataclass(frozen=True)
class FoldBatchNormPass(SxPass):
    """Let the weights of convolutions take up what is done to each of their channels alone.

    Cases:
    1. A batch normalisation with given, constant statistics of a convolution (transposed ones too) whose weights are
       constant and whose result nothing else reads: new weights and a new bias, computed in float64.
    2. Another batch normalisation with constant statistics becomes a subtraction, a multiplication and an addition,
       which fuse with their neighbours and don't mind where the channels stand.
    3. A product, quotient, sum or difference of such a convolution and a constant that varies along the channels only.
    4. Not: training mode, weights of 16 bits, statistics or results that are not finite, a scale that would broadcast
       the result, channels that are last.

    Requires: nothing. Ensures: none of the cases is left.
    Promise: reassociates(4): a sum of products is scaled term by term.
    """

    name = "fold-batch-norm"
    PROMISE: ClassVar[Promise] = reassociates(4)

    def run(self, module: ModuleOp, run: PassRun) -> None:
        RewriteDriver([BatchNormPattern(), ScalePattern()], run).rewrite(module)
