"""What native compilation does to a graph before it is lowered: passes that pay here, on a copy of its own."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp, UnitAttr

from sardonyx.backends.llvm.copies import located_copy
from sardonyx.backends.llvm.dequantized import rewrite_dequantized
from sardonyx.backends.llvm.gelu_sums import GeluSumsPass
from sardonyx.backends.llvm.lowering.winograd import FAST
from sardonyx.backends.llvm.moved_constants import MoveConstantsPass, moves_constants
from sardonyx.dialects.sx.conv import ConvOp
from sardonyx.dialects.sx.norm import BatchNormOp
from sardonyx.dialects.sx.pool import PoolOp
from sardonyx.dialects.sx.quantize_linear import DequantizeLinearOp
from sardonyx.dialects.sx.unary import ErfOp
from sardonyx.passes.channels_last import ChannelsLastPass
from sardonyx.passes.decompose_batch_norm import DecomposeBatchNormPass
from sardonyx.passes.fold_affine import FoldAffinePass
from sardonyx.passes.pipeline import PassManager

PASSES = (
    MoveConstantsPass(),
    GeluSumsPass(),
    FoldAffinePass(make_gemm=False),
    DecomposeBatchNormPass(),
    ChannelsLastPass(),
)
INTERESTING = (ConvOp, BatchNormOp, PoolOp, DequantizeLinearOp, ErfOp)
"""Ops that passes but `MoveConstantsPass` look for."""


def prepare(module: ModuleOp, fast_conv: bool = False) -> ModuleOp:
    """The graph to lower: a copy, or the module itself where the passes have nothing to do.

    With `fast_conv` all convolutions bear the attribute `FAST`.
    """
    interesting = any(isinstance(op, INTERESTING) for op in module.walk())
    if not interesting and not moves_constants(module):
        return module
    copy = located_copy(module)
    rewrite_dequantized(copy)
    PassManager(PASSES).run(copy)
    if fast_conv:
        for op in copy.walk():
            if isinstance(op, ConvOp):
                op.attributes[FAST] = UnitAttr()
    return copy
