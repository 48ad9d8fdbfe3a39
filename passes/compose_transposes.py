"""`compose-transposes`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from sardonyx.dialects.base import SxOp
from sardonyx.dialects.sx.transpose import TransposeOp
from sardonyx.passes.base import PassRun, Promise, SxPass, reassociates
from sardonyx.passes.layout import Layout
from sardonyx.passes.layout_apply import LayoutRewriter
from sardonyx.passes.layout_parts import is_ranked_op
from sardonyx.passes.layout_rules import rule_of
from sardonyx.passes.propagate import sync_functions

MAX_ROUNDS = 8
"""Each round but the last leaves fewer transposes; more than two are rare."""


@dataclass(frozen=True)
class ComposeTransposesPass(SxPass):
    """Compose transposes, and move ops past them wherever fewer are left.

    Cases:
    1. Adjacent transposes become one: `transpose(transpose(x, p), q)` is `transpose(x, [p[i] for i in q])`.
    2. A transpose that leaves all axes where they are goes, whether `perm` is stated or not.
    3. Transposes of the same value by the same permutation become one.
    4. Elementwise ops (where, clip, cast and the variadic ones included) move past transposes. An operand of lower
       rank, or one whose axes of extent 1 only would move, gets its axes lined up by squeeze and unsqueeze; a small
       constant is permuted at once, a weight by a transpose that `fold-constants` folds.
    5. Softmax, log-softmax, hardmax, lp-normalization and cumsum: the axis is rewritten.
    6. Reductions and arg-reductions, with and without keepdims: the axes are rewritten, and where they are removed so
       is the transpose that is left.
    7. Squeeze and unsqueeze: likewise.
    8. Concat: the axis is rewritten; operands that are not transposed alike get transposes of their own, if that still
       pays. Split: likewise, for each result.
    9. Pad and slice: known pads are permuted, or the axes are stated; bounds that are computed at run time stay.
    10. Expand and tile: the entries are permuted, by a gather where they are computed at run time.
    11. Gather and gather_elements: the axis is rewritten.
    12. Matmul: leading axes in another order on both sides stay so; two transposed matrices are multiplied the other
        way round. Gemm: transA and transB take up transposes, and a transposed result is the product the other way
        round.
    13. Shape and size read the data from before the transpose.
    14. Batch, instance, group, layer and RMS normalisation and lrn, where their own axes stay in place.
    15. Values that several ops read move with all of them: groups of connected ops are decided on as a whole.
    16. A transpose that moves axes of extent 1 only becomes squeeze and unsqueeze, or nothing: no element moves.

    Not: reshape and flatten (which mix axes), convolution and pooling, unranked values, axes that are not known, values
    that nested regions read. Nothing moves unless fewer transposes are left, or as many on fewer elements.

    Requires: nothing. Ensures: never more transposes than before (those of constants not counted); idempotent. Linear
    in the number of uses.
    Promise: reassociates(1), since sums over several axes may take another order; else exact.
    """

    name = "compose-transposes"
    PROMISE: ClassVar[Promise] = reassociates(1.0)

    def run(self, module: ModuleOp, run: PassRun) -> None:
        blocks, pinned = _blocks(module)
        for block in blocks:
            if run.listener is None:
                for _ in range(MAX_ROUNDS):
                    if not _improve(block, pinned, run, one_step=False):
                        break
            else:  # one rewrite at a time, so that each can be seen and stopped
                while _improve(block, pinned, run, one_step=True):
                    pass
        if run.changed:
            sync_functions(module)
        if run.keep_declines:
            for block in blocks:
                _explain(block, pinned, run)


def _explain(block: Block, pinned: set[SSAValue], run: PassRun) -> None:
    """Say of each transpose that is left what holds it on either side."""
    for op in block.ops:
        if not isinstance(op, TransposeOp):
            continue
        if op.output in pinned:
            run.decline("compose", op, "a nested region reads it")
            continue
        owner = op.data.owner
        source = owner.name if isinstance(owner, Operation) else "an input"
        if not is_ranked_op(op):
            run.decline("compose", op, "the rank is not known")
            continue
        readers = list(dict.fromkeys(_reader(use.operation) for use in op.output.uses)) or ["nobody"]
        run.decline("compose", op, f"it stays between {_held(owner, source)} and {', '.join(readers)}")


def _held(owner: object, source: str) -> str:
    fixed = isinstance(owner, Operation) and (not isinstance(owner, SxOp) or rule_of(owner) is None)
    return f"{source} (transposes do not move through it)" if fixed else source


def _reader(op: Operation) -> str:
    if isinstance(op, func.ReturnOp):
        return "an output"
    fixed = not isinstance(op, SxOp) or rule_of(op) is None
    return f"{op.name} (transposes do not move through it)" if fixed else op.name


def _improve(block: Block, pinned: set[SSAValue], run: PassRun, one_step: bool) -> bool:
    """Rewrite the block; returns whether anything was done."""
    before = run.statistics["rewrites"]
    layout = Layout(block, pinned, run, one_step)
    if layout.views or layout.requests:
        layout.decide()
        LayoutRewriter(block, layout, run).apply()
    run.statistics.count("visits", layout.visits)
    return run.statistics["rewrites"] > before


def _blocks(module: ModuleOp) -> tuple[list[Block], set[SSAValue]]:
    """The blocks that hold transposes, and all values that are read in a block other than their own."""
    blocks: dict[Block, None] = {}
    pinned: set[SSAValue] = set()
    for op in module.walk():
        if isinstance(op, TransposeOp) and op.parent is not None:
            blocks.setdefault(op.parent)
        for value in op.operands:
            owner = value.owner
            if (owner.parent if isinstance(owner, Operation) else owner) is not op.parent:
                pinned.add(value)
    return list(blocks), pinned
