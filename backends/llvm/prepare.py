"""What native compilation does to a graph before it is lowered: passes that pay here, on a copy of its own."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from sardonyx.backends.llvm.copies import located_copy
from sardonyx.backends.llvm.moved_constants import moves_constants
from sardonyx.dialects.sx.conv import ConvOp
from sardonyx.dialects.sx.norm import BatchNormOp
from sardonyx.dialects.sx.pool import PoolOp
from sardonyx.dialects.sx.quantize_linear import DequantizeLinearOp
from sardonyx.dialects.sx.unary import ErfOp
from sardonyx.passes.pipeline import PREPARE_NATIVE_PIPELINE, PassManager

INTERESTING = (ConvOp, BatchNormOp, PoolOp, DequantizeLinearOp, ErfOp)
"""Ops that passes but `move-constants` look for."""


def prepare(module: ModuleOp, fast_conv: bool = False) -> ModuleOp:
    """The graph to lower: a copy, or the module itself where the passes have nothing to do.

    The passes are those of the pipeline `prepare-native`; with `fast_conv` the pass `fast-conv` comes after them.
    """
    interesting = any(isinstance(op, INTERESTING) for op in module.walk())
    if not interesting and not moves_constants(module):
        return module
    copy = located_copy(module)
    PassManager(PREPARE_NATIVE_PIPELINE + (",fast-conv" if fast_conv else "")).run(copy)
    return copy
