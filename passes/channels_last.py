"""`channels-last`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from sardonyx.dialects.attributes import rank_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.sx.conv import ConvOp
from sardonyx.dialects.sx.pool import AveragePoolOp, GlobalAveragePoolOp, GlobalMaxPoolOp, MaxPoolOp
from sardonyx.dialects.sx.reduce import ReduceMaxOp, ReduceMeanOp
from sardonyx.dialects.sx.transpose import TransposeOp
from sardonyx.passes import provenance
from sardonyx.passes.base import PassRun, Promise, SxPass, reassociates
from sardonyx.passes.compose_transposes import ComposeTransposesPass
from sardonyx.passes.layout_parts import is_ranked_op
from sardonyx.passes.layout_rule import remake, vector
from sardonyx.passes.layout_rules import rule_of
from sardonyx.passes.permutations import Perm, inverse

MOVED = (ConvOp, MaxPoolOp, AveragePoolOp)
GLOBAL = (GlobalAveragePoolOp, GlobalMaxPoolOp)


def to_last(rank: int) -> Perm:
    """The permutation that puts axis 1 last."""
    return (0, *range(2, rank), 1)


@dataclass(frozen=True)
class ChannelsLastPass(SxPass):
    """Let convolutions and pools work on data whose channels are last, and move the transposes out of the way.

    Cases:
    1. Convolutions and pools that feed one another, directly or by way of ops that transposes move through, get the
       layout NHWC; transposes stand around them, and those in between are composed away (see `compose-transposes`).
    2. A transpose that is left in front of one convolution only, or behind it, goes into the convolution's layout
       ("NCHW->NHWC", "NHWC->NCHW"): its kernel reads or writes that order as it goes. Likewise a pool that is left
       with a transpose on both sides has channels second again.
    3. A global pool among them becomes a reduction, which does not mind the order.
    4. Not: one that stands alone, positions of maxima that are read, unknown ranks, layouts that are stated already.

    Requires: nothing; `fold-affine` first leaves less in between. Ensures: none of the cases is left.
    Promise: reassociates(1), since sums may take another order.
    """

    name = "channels-last"
    PROMISE: ClassVar[Promise] = reassociates(1)

    def run(self, module: ModuleOp, run: PassRun) -> None:
        chosen = [op for function in _functions(module) for op in _connected(function.body.block)]
        if run.keep_declines:
            _explain(module, set(chosen), run)
        chosen = [op for op in chosen if run.allows("channels-last", op)]
        if not chosen:
            return
        before = _census(module)
        for op in chosen:
            _turn(op, run)
        # What the parts do is this pass's doing: whoever watches has been asked.
        ComposeTransposesPass().execute(module, PassRun(run.ctx, verify=run.verify))
        run.pass_name = self.name
        for function in _functions(module):
            _absorb(function.body.block, run)
        if _census(module) != before:
            for op in chosen:
                run.rewritten("channels-last", "sx.conv", op.location)


def _functions(module: ModuleOp) -> list[func.FuncOp]:
    return [op for op in module.body.block.ops if isinstance(op, func.FuncOp) and len(op.body.blocks) == 1]


def _census(module: ModuleOp) -> Counter[tuple[str, str]]:
    """The convolutions and pools by layout, and how many transposes there are."""
    ops = (op for op in module.walk() if isinstance(op, (*MOVED, *GLOBAL, TransposeOp)))
    return Counter((op.name, str(op.properties.get("layout"))) for op in ops)


def _explain(module: ModuleOp, chosen: set[SxOp], run: PassRun) -> None:
    """Say of each convolution and pool that stays why it does."""
    for op in module.walk():
        if isinstance(op, (*MOVED, *GLOBAL)) and op not in chosen:
            run.decline("channels-last", op, _why_not(op))


def _why_not(op: Operation) -> str:
    if not is_ranked_op(op) or rank_of(op.operands[0]) < 3:
        return "its rank is not known, or below 3"
    if isinstance(op, MaxPoolOp) and op.indices.first_use is not None:
        return "positions of maxima are read"
    if isinstance(op, MOVED) and op.attr("layout") != "NCHW":
        return f"its layout is {op.attr('layout')} already"
    if not isinstance(op.parent_op(), func.FuncOp):
        return "it stands in a region"
    return "no other convolution or pool is reached from it through ops that transposes move through"


# ---- which ones


def _is_candidate(op: Operation) -> bool:
    if not isinstance(op, (*MOVED, *GLOBAL)) or not is_ranked_op(op) or rank_of(op.x) < 3:
        return False
    if isinstance(op, MaxPoolOp) and op.indices.first_use is not None:
        return False
    return isinstance(op, GLOBAL) or op.attr("layout") == "NCHW"


def _connected(block: Block) -> list[SxOp]:
    """The candidates that another one can be reached from through ops that transposes move through."""
    parent: dict[SSAValue, SSAValue] = {}

    def find(value: SSAValue) -> SSAValue:
        parent.setdefault(value, value)
        while parent[value] is not value:
            parent[value] = parent[parent[value]]
            value = parent[value]
        return value

    candidates: list[SxOp] = []
    for op in block.ops:
        if _is_candidate(op):
            candidates.append(op)  # pyright: ignore[reportArgumentType]
            continue
        if isinstance(op, TransposeOp):
            rule = True
        else:
            rule = isinstance(op, SxOp) and is_ranked_op(op) and rule_of(op) is not None
        if not rule or isinstance(op, ConstantOp) or not op.results:
            continue
        for operand in op.operands:
            owner = operand.owner
            if not isinstance(owner, ConstantOp):
                parent[find(operand)] = find(op.results[0])
        for other in op.results[1:]:
            parent[find(other)] = find(op.results[0])
    ports: Counter[SSAValue] = Counter()
    for op in candidates:
        for value in {find(op.operands[0]), find(op.results[0])}:
            ports[value] += 1
    return [op for op in candidates if any(ports[find(v)] > 1 for v in (op.operands[0], op.results[0]))]


# ---- how


def _insert(block: Block, before: Operation, ops: Iterable[SxOp], origin: SxOp, run: PassRun) -> None:
    for op in ops:
        op.location = provenance.stamp(origin.location, f"{run.pass_name}:channels-last")
        block.insert_ops_before([op], before)


def _turn(op: SxOp, run: PassRun) -> None:
    """Put transposes around an op, and let it work on the other layout."""
    block = op.parent
    if block is None:
        return
    rank = rank_of(op.operands[0])
    made: list[SxOp] = []
    if isinstance(op, GLOBAL):

        def emit(new: SxOp) -> SSAValue:
            made.append(new)
            return new.results[0]

        cls = ReduceMeanOp if isinstance(op, GlobalAveragePoolOp) else ReduceMaxOp
        new = cls.make(op.operands[0], vector(emit, range(2, rank)), keepdims=True)
        made.append(new)
        results: Sequence[SSAValue] = new.results
    else:
        front = TransposeOp.make(op.operands[0], perm=to_last(rank))
        new = remake(op, [front.output, *op.operands[1:]], layout="NHWC")
        made += [front, new]
        back = TransposeOp.make(new.results[0], perm=inverse(to_last(rank)))
        made.append(back)
        results = [back.output]
    _insert(block, op, made, op, run)
    for old, value in zip(op.results, results):
        if isinstance(value, OpResult) and value.type != old.type:
            value._type = old.type
        value.name_hint = old.name_hint
        old.replace_all_uses_with(value)
    op.detach()
    op.erase()


def _absorb(block: Block, run: PassRun) -> None:
    """Case 2."""
    for op in list(block.ops):
        if not isinstance(op, MOVED) or not is_ranked_op(op) or op.attr("layout") != "NHWC":
            continue
        front = _transpose_before(op.operands[0], to_last(rank_of(op.operands[0])))
        back = _transpose_behind(op.results[0], inverse(to_last(rank_of(op.results[0]))))
        if isinstance(op, ConvOp):
            layout = f"{'NHWC' if front is None else 'NCHW'}->{'NHWC' if back is None else 'NCHW'}"
            layout = {"NHWC->NHWC": "NHWC", "NCHW->NCHW": "NCHW"}.get(layout, layout)
        else:
            layout = "NCHW" if front is not None and back is not None else "NHWC"
        if layout == "NHWC":
            continue
        first_last = layout.startswith("NHWC")
        operands = [op.operands[0] if front is None or first_last else front.data, *op.operands[1:]]
        new = remake(op, operands, layout=layout)
        origins = [t.location for t in (front, back) if t is not None]
        new.location = provenance.stamp(provenance.merge(op.location, *origins), f"{run.pass_name}:absorb")
        block.insert_ops_before([new], op)
        result = op.results[0]
        if back is not None and layout.endswith("NCHW"):
            result = back.output
        if new.results[0].type != result.type:
            new.results[0]._type = result.type
        new.results[0].name_hint = result.name_hint
        result.replace_all_uses_with(new.results[0])
        for gone in (back if result is not op.results[0] else None, op, None if first_last else front):
            if gone is not None:
                gone.detach()
                gone.erase()


def _transpose_before(value: SSAValue, perm: Perm) -> TransposeOp | None:
    """The transpose that makes the value, for one reader only."""
    op = value.op if isinstance(value, OpResult) else None
    if not isinstance(op, TransposeOp) or op.permutation(len(perm)) != perm or len(list(value.uses)) != 1:
        return None
    return op


def _transpose_behind(value: SSAValue, perm: Perm) -> TransposeOp | None:
    """The transpose that alone reads the value."""
    uses = list(value.uses)
    op = uses[0].operation if len(uses) == 1 else None
    return op if isinstance(op, TransposeOp) and op.permutation(len(perm)) == perm else None
