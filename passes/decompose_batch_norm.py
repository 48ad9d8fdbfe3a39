"""`decompose-batch-norm`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import dtype_of, rank_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.sx.binary import AddOp, MulOp, SubOp
from sardonyx.dialects.sx.norm import BatchNormOp
from sardonyx.dialects.sx.support import float_attr
from sardonyx.passes.base import PassRun, Promise, SxPass, reassociates
from sardonyx.passes.constants import make_constant
from sardonyx.passes.driver import RewriteDriver, SxPattern, SxRewriter
from sardonyx.passes.fold_affine import constant_array
from sardonyx.passes.matching import is_ranked


class DecomposeBatchNormPattern(SxPattern[BatchNormOp]):
    """Case 1."""

    NAME: ClassVar = "decompose-batch-norm"
    OPS: ClassVar = (BatchNormOp,)

    def rewrite(self, op: BatchNormOp, rewriter: SxRewriter) -> None:
        if op.attr("training_mode"):
            return rewriter.decline("it computes the statistics itself")
        dtype = dtype_of(op.x)
        if not is_ranked(*op.operands) or dtype.bits < 32 or any(dtype_of(v) != dtype for v in op.operands):
            return rewriter.decline("its dtypes differ or have 16 bits")
        rank = rank_of(op.x)
        if rank < 2:
            return rewriter.decline("the operand has rank 1")
        scale, bias, mean, var = (constant_array(v) for v in (op.scale, op.bias, op.mean, op.var))
        if scale is None or bias is None or mean is None or var is None:
            return rewriter.decline("scale, bias, mean or variance are not constant")
        with np.errstate(all="ignore"):
            factor = scale / np.sqrt(var + float_attr(op, "epsilon"))
        if not all(np.isfinite(part).all() for part in (factor, mean, bias)):
            return rewriter.decline("scale, bias, mean or variance are not finite")
        made: list[SxOp] = []
        value: SSAValue = op.x
        for cls, part in zip((SubOp, MulOp, AddOp), (mean, factor, bias), strict=True):
            constant = make_constant(part.astype(dtype.numpy).reshape(-1, *[1] * (rank - 2)))
            step = cls.make(value, constant.output)
            made += [constant, step]
            value = step.results[0]
        value.name_hint = op.output.name_hint
        rewriter.replace(op, made, [value, op.mean, op.var])


@dataclass(frozen=True)
class DecomposeBatchNormPass(SxPass):
    """State batch normalisations as arithmetic.

    Cases:
    1. A batch normalisation with given, constant statistics becomes a subtraction, a multiplication and an addition,
       which fuse with their neighbours and don't mind where the channels stand.
    2. Not: training mode, 16 bits, statistics that are not finite, an operand of rank 1.

    Requires: nothing; `fold-affine` first leaves fewer. Ensures: none of the cases is left.
    Promise: reassociates(4): the factor is rounded.
    """

    name = "decompose-batch-norm"
    PROMISE: ClassVar[Promise] = reassociates(4)

    def run(self, module: ModuleOp, run: PassRun) -> None:
        RewriteDriver([DecomposeBatchNormPattern()], run).rewrite(module)
