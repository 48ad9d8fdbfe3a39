"""`sx.opaque`: an operator of which Sardonyx knows nothing, kept so that the graph around it can be worked on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, var_operand_def, var_result_def

from sardonyx.dialects.attributes import dtype_of
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.errors import UnsupportedError


@irdl_op_definition
class OpaqueOp(SxOp):
    """A node of an unknown operator: `op_type` of `domain` in `version`, with its `attributes` as they were.

    Its result types are those that the model declares; inference takes them as they are. It may be removed where
    nobody reads it, but it is never merged with an equal one, nor evaluated: it might draw random numbers.

    (C1) `absent` lists, in order, the positions of inputs that are left out. (C2) Results are tensors.
    """

    name = "sx.opaque"
    inputs = var_operand_def()
    op_type = prop_def(StringAttr)
    domain = prop_def(StringAttr)
    version = opt_prop_def(IntegerAttr)
    overload = opt_prop_def(StringAttr)
    attrs = opt_prop_def(DictionaryAttr)
    absent = opt_prop_def(DenseArrayBase)
    outputs = var_result_def()
    DEFAULTS: ClassVar = {"version": 1, "overload": "", "absent": ()}
    DETERMINISTIC: ClassVar = False

    @property
    def slots(self) -> tuple[SSAValue | None, ...]:
        values: list[SSAValue | None] = list(self.inputs)
        for position in self.attr("absent"):
            values.insert(position, None)
        return tuple(values)

    def infer(self) -> Sequence[Attribute]:
        absent = self.attr("absent")
        total = len(self.inputs) + len(absent)
        if list(absent) != sorted(set(absent)) or any(not 0 <= a < total for a in absent):
            raise self.fail(f"(C1) inputs {list(absent)} of {total} cannot be the absent ones")
        for result in self.outputs:
            dtype_of(result)
        return [r.type for r in self.outputs]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        name = f"{self.attr('domain')}.{self.attr('op_type')}"
        raise UnsupportedError(f"the operator {name} is unknown: it has no kernel")
