"""Lowering of bit_cast: the bytes are copied, so that no NaN is made quiet on the way."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from sardonyx.backends.llvm.lowering.builder import Body
from sardonyx.backends.llvm.lowering.plan import Plan, lowers
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.dtypes import int8
from sardonyx.dialects.sx.bit_cast import BitCastOp


@lowers(BitCastOp)
def _bit_cast(plan: Plan, op: BitCastOp) -> None:
    if dtype_of(op.output).kind != "b" or dtype_of(op.input).kind == "b":
        plan.copy(op.output, op.input)
        return
    kernel = plan.kernel("bit_cast")  # of a byte, all but 0 are true
    read, write = kernel.read(op.input), kernel.write(op.output)
    nothing = kernel.const(int8, 0)

    def body(b: Body, at: SSAValue, _: Sequence[SSAValue]) -> None:
        b.store(b.add(arith.CmpiOp(b.load(read, at), nothing, "ne")), write, at)

    kernel.loop(kernel.outer(plan.count(dims_of(op.input))), body, vector=True, parallel=True)
    kernel.launch()
