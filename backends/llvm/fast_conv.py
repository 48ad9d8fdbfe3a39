"""`finalize(fast_conv=True)`: convolutions that may be computed with fewer products."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp, UnitAttr

from sardonyx.backends.llvm.lowering.winograd import FAST
from sardonyx.dialects.sx.conv import ConvOp
from sardonyx.passes.base import EXACT, PassRun, Promise, SxPass


@dataclass(frozen=True)
class FastConvPass(SxPass):
    """Let native code compute convolutions by Winograd's filtering, as `finalize(fast_conv=True)` does.

    Cases:
    1. Each convolution bears the attribute `fast`.
    2. Not: one that has it. Which of them gain by it, and are computed so, is decided when they are lowered.

    Requires: nothing; what makes convolutions comes before it. Ensures: all convolutions have the attribute.
    Promise: exact, since it changes nothing but how native code computes; that is off by at most 1.2e-5 of the largest
    result then (docs/native.md).
    """

    name = "fast-conv"
    PROMISE: ClassVar[Promise] = EXACT

    def run(self, module: ModuleOp, run: PassRun) -> None:
        for op in module.walk():
            if isinstance(op, ConvOp) and FAST not in op.attributes and run.allows(self.name, op):
                op.attributes[FAST] = UnitAttr()
                run.rewritten(self.name, op.name, op.location)
