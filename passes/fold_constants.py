"""`fold-constants`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp

from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.evaluate import EvalContext, evaluate_op
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.quantize_linear import DequantizeLinearOp
from sardonyx.errors import ExecutionError, MissingWeightError, UnsupportedError
from sardonyx.passes import provenance
from sardonyx.passes.base import EXACT, PassError, PassRun, Promise, SxPass
from sardonyx.passes.constants import constant_of, make_constant, type_bytes
from sardonyx.passes.driver import RewriteDriver, SxPattern, SxRewriter
from sardonyx.passes.effects import is_deterministic


@dataclass
class FoldPattern(SxPattern[SxOp]):
    """Evaluate an op whose operands are all constants."""

    max_bytes: int
    OPS: ClassVar = (SxOp,)
    NAME: ClassVar = "fold"

    def rewrite(self, op: SxOp, rewriter: SxRewriter) -> None:
        if isinstance(op, ConstantOp) or not op.operands or op.regions or not op.results:
            return
        constants = [constant_of(operand) for operand in op.operands]
        known = [c for c in constants if c is not None]
        if len(known) < len(constants):
            if known and rewriter.run.keep_declines:
                missing = constants.index(None)
                rewriter.decline(f"operand {missing} is no constant")
            return
        if isinstance(op, DequantizeLinearOp):
            return rewriter.decline("quantised weights stay so")
        if not is_deterministic(op):
            return rewriter.decline("it has effects or draws random numbers")
        used = [result for result in op.results if result.first_use is not None]
        size = sum(type_bytes(result.type) for result in used)
        allowed = max(self.max_bytes, sum(type_bytes(c.output.type) for c in set(known)))
        if size > allowed:
            what = "an extent is not known before it is evaluated" if size >= 1 << 62 else f"it has {size} bytes"
            return rewriter.decline(f"{what}; the budget is {allowed} bytes")
        ctx = EvalContext()
        try:
            for constant in known:
                ctx.values[constant.output] = constant.array()
            evaluate_op(op, ctx)
        except (MissingWeightError, UnsupportedError, ExecutionError) as error:
            return rewriter.decline(f"it cannot be evaluated: {error.message}")
        location = provenance.merge(op.location, *(c.location for c in known))
        made: list[ConstantOp | None] = []
        for result in op.results:
            array = ctx.values[result]
            if DType.of_array(array) != dtype_of(result):
                raise PassError(f"{op.name} evaluates to {array.dtype}, its type is {result.type}")
            constant = make_constant(array, location=location) if result in used else None
            if constant is not None:
                constant.output.name_hint = result.name_hint
            made.append(constant)
        new_ops = [c for c in made if c is not None]
        rewriter.run.statistics.count("folded")
        rewriter.replace(op, new_ops, [c.output if c is not None else None for c in made])


@dataclass(frozen=True)
class FoldConstantsPass(SxPass):
    """Evaluate ops whose operands are all constants.

    Cases:
    1. An op without effects whose operands are all constants becomes a constant, evaluated by the op's own reference
       semantics; chains fold in one run. Results of up to 1 KiB stand in the IR, larger ones become weights.
    2. An op of several results becomes one constant per result that is read.
    3. Not: a result larger than `max-bytes` and than the operands together (an Expand of a scalar, say), unless it is
       no larger than them.
    4. Not: an op that is random or has effects; one whose weights' bytes are not here; one that fails on its operands
       (it stays, and fails when it runs).
    5. Not: a dequantisation. Quantised weights stay small, and engines that compute with integers know an op between
       dequantisations and a quantisation by them.

    Options: `max-bytes`, the size up to which a result may be larger than its operands.
    Requires: nothing. Ensures: no other op within the budget has only constants as operands.
    Promise: exact (with respect to the reference).
    """

    name = "fold-constants"
    PROMISE: ClassVar[Promise] = EXACT

    max_bytes: int = field(default=1 << 16, metadata={"help": "how large a result may be beyond its operands"})

    def run(self, module: ModuleOp, run: PassRun) -> None:
        RewriteDriver([FoldPattern(self.max_bytes)], run).rewrite(module)
