"""`infer-types`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp

from sardonyx.dialects.base import SxOp
from sardonyx.passes.base import EXACT, PassRun, Promise, SxPass
from sardonyx.passes.propagate import propagate, sync_functions


@dataclass(frozen=True)
class InferTypesPass(SxPass):
    """Refine the types of all values by inference.

    Cases:
    1. A result type gets what inference finds: a static extent or a named dim in place of an unknown one, a rank.
    2. What the text states and inference does not know stays.
    3. A function's type follows what it returns.

    Requires: nothing. Ensures: no inference would refine a type any further.
    Promise: exact (no value changes).
    Errors: InferenceError, where an op's constraint is broken or a stated type contradicts inference.
    """

    name = "infer-types"
    PROMISE: ClassVar[Promise] = EXACT

    def run(self, module: ModuleOp, run: PassRun) -> None:
        for op in propagate(op for op in module.walk() if isinstance(op, SxOp)):
            run.rewritten("infer", op.name, op.location)
            run.statistics.count("refined")
        if sync_functions(module):
            run.changed = True
