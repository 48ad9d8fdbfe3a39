"""`infer-types`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

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
        propagate(list(module.walk()), lambda op: run.allows("infer", op), lambda op: _refined(run, op))
        if run.changed:
            sync_functions(module)


def _refined(run: PassRun, op: Operation) -> None:
    run.rewritten("infer", op.name, op.location)
    run.statistics.count("refined")
