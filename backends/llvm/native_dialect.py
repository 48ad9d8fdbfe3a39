"""The dialect `native`: ops that native compilation's own passes make, for text to name them."""

from __future__ import annotations

from xdsl.ir import Dialect

from sardonyx.backends.llvm.lowering.matmul_weights import MatMulWeightsOp
from sardonyx.backends.llvm.lowering.quantize import FactorOp, ViewOp

NATIVE = Dialect("native", [ViewOp, FactorOp, MatMulWeightsOp])
