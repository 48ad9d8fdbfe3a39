"""Building blocks for the rewrites of `legalize-for-opset`: new ops in front of the one that they replace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from sardonyx.dialects import locations
from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.base import SxOp, refine
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.sx import BY_NAME
from sardonyx.dialects.sx.constant import ConstantOp

PASS = "legalize-for-opset"


class Expansion:
    """The ops that state one op otherwise; they go in front of it and bear its location."""

    def __init__(self, op: SxOp, pattern: str) -> None:
        self.op = op
        self.location = locations.wrap(op.location, f"{PASS}:{pattern}")
        self.made: list[SxOp] = []

    def add(self, op: SxOp) -> SxOp:
        op.location = self.location
        block = self.op.parent
        if block is None:
            raise ValueError("the op is in no block")
        block.insert_op_before(op, self.op)
        self.made.append(op)
        return op

    def ops(self, name: str, *slots: SSAValue | None | Sequence[SSAValue], **properties: Any) -> SxOp:
        """A new op by the name that follows `sx.`."""
        return self.add(BY_NAME[f"sx.{name}"].make(*slots, location=self.location, **properties))

    def __call__(self, name: str, *slots: SSAValue | None | Sequence[SSAValue], **properties: Any) -> SSAValue:
        """The first result of a new op."""
        return self.ops(name, *slots, **properties).results[0]

    def constant(self, values: Any, dtype: DType) -> SSAValue:
        """A small constant."""
        return self.add(ConstantOp.dense(np.asarray(values, dtype.numpy))).results[0]

    def cast(self, value: SSAValue, to: DType) -> SSAValue:
        return value if dtype_of(value) == to else self("cast", value, to=to)

    def undo(self) -> None:
        """Take back what was added."""
        for op in reversed(self.made):
            op.detach()
            op.erase()
        self.made.clear()

    def replace(self, values: Sequence[SSAValue | None]) -> list[SxOp]:
        """Put these values in the place of the op's results (None where nobody reads one); returns the new ops."""
        for result, value in zip(self.op.results, values, strict=True):
            if value is None:
                continue
            if value.owner in self.made:
                value._type = refine(result.type, value.type, self.op)
            result.replace_all_uses_with(value)
        self.op.detach()
        self.op.erase()
        return self.made


def rank(value: SSAValue) -> int:
    """The rank; raises InferenceError where it is unknown."""
    return len(dims_of(value))
