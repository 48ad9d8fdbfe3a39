"""The `kernel` dialect: the level between tensors and LLVM IR, where loops and their schedules stand."""

from __future__ import annotations

from xdsl.ir import Dialect

from sardonyx.dialects.kernel.contract import ContractOp
from sardonyx.dialects.kernel.entropy import EntropyOp
from sardonyx.dialects.kernel.nontemporal import FetchOp, NontemporalOp, ScratchOp
from sardonyx.dialects.kernel.ops import OPS, BufferType
from sardonyx.dialects.kernel.plan_ops import PLAN_OPS
from sardonyx.dialects.kernel.spread import SpreadOp

KERNEL = Dialect(
    "kernel", [*OPS, *PLAN_OPS, ContractOp, EntropyOp, FetchOp, NontemporalOp, ScratchOp, SpreadOp], [BufferType]
)
