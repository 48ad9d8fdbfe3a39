"""`sx.opaque`: an operator of which Sardonyx knows nothing, kept so that the graph around it can be worked on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    var_operand_def,
    var_region_def,
    var_result_def,
)

from sardonyx.dialects.base import SxOp
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.errors import UnsupportedError


@irdl_op_definition
class OpaqueOp(SxOp):
    """A node of an unknown operator: `op_type` of `domain` in `version`, with its `attributes` as they were.

    Its result types are those that the model declares; inference takes them as they are. It may be removed where
    nobody reads it, but it is never merged with an equal one, nor evaluated: it might draw random numbers.

    The graphs in its attributes are regions; `graphs` has their attributes' names, with `[]` for one of a list.

    (C1) `absent` lists, in order, the positions of inputs that are left out. (C2) There are as many regions as names in
    `graphs`, of one block each.
    """

    name = "sx.opaque"
    inputs = var_operand_def()
    op_type = prop_def(StringAttr)
    domain = prop_def(StringAttr)
    version = opt_prop_def(IntegerAttr)
    overload = opt_prop_def(StringAttr)
    attrs = opt_prop_def(DictionaryAttr)
    absent = opt_prop_def(DenseArrayBase)
    graphs = opt_prop_def(ArrayAttr)
    outputs = var_result_def()
    bodies = var_region_def()
    DEFAULTS: ClassVar = {"version": 1, "overload": "", "absent": (), "graphs": ()}
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
        if len(self.attr("graphs")) != len(self.regions) or any(len(r.blocks) != 1 for r in self.regions):
            raise self.fail(f"(C2) {len(self.regions)} regions for {len(self.attr('graphs'))} attributes of graphs")
        return [r.type for r in self.outputs]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        raise UnsupportedError(f"the operator {self.operator} is unknown: it has no kernel")

    @property
    def operator(self) -> str:
        """The operator for a person, with its domain."""
        domain = self.attr("domain")
        return f"{domain}.{self.attr('op_type')}" if domain else self.attr("op_type")
