"""The `kernel` dialect: the level between tensors and LLVM IR, where loops and their schedules stand."""

from __future__ import annotations

from xdsl.ir import Dialect

from sardonyx.dialects.kernel.contract import ContractOp
from sardonyx.dialects.kernel.ops import OPS, BufferType

KERNEL = Dialect("kernel", [*OPS, ContractOp], [BufferType])
