"""`remove-dead-nodes`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from sardonyx.passes.base import EXACT, PassRun, Promise, SxPass
from sardonyx.passes.effects import is_removable


@dataclass(frozen=True)
class RemoveDeadNodesPass(SxPass):
    """Remove ops whose results no output needs.

    Cases:
    1. An op whose results nobody reads is removed, and so is what only it read: whole dead chains go at once.
    2. Ops that read one another but reach no output go, however long the chain.
    3. Outputs stay: what a terminator reads is needed.
    4. Ops with effects other than on their results stay, and all that they read.
    5. What a region reads from outside is needed if the op that holds the region is; dead ops inside it go.
    6. An op of several results stays while one of them is read. (A result that nobody reads is an optional output: it
       stays as a result and is left out at export.)
    7. Inputs of the graph stay, read or not: they are its signature. Functions stay.

    Requires: nothing. Ensures: every op that is left is needed by a terminator or an op with effects.
    Promise: exact.
    """

    name = "remove-dead-nodes"
    PROMISE: ClassVar[Promise] = EXACT

    def run(self, module: ModuleOp, run: PassRun) -> None:
        needed = _needed(module)
        for op in reversed(list(module.walk())):
            if op in needed or op.parent_op() not in needed:
                continue  # what is inside a dead op goes with it
            if any(result.first_use is not None for result in op.results) or not run.allows("dead", op):
                continue  # a listener spared its reader, or spares it
            name, location = op.name, op.location
            op.detach()
            op.erase()
            run.rewritten("dead", name, location)
            run.statistics.count("removed")


def _needed(module: ModuleOp) -> set[Operation]:
    """The ops with effects and the terminators of all regions that are needed themselves, and all that those read."""
    needed: set[Operation] = set()
    stack: list[Operation] = [module]
    while stack:
        op = stack.pop()
        if op in needed:
            continue
        needed.add(op)
        stack.extend(v.owner for v in op.operands if isinstance(v.owner, Operation))
        for region in op.regions:
            for block in region.blocks:
                stack.extend(child for child in block.ops if not is_removable(child))
    return needed
