"""Builds small graphs op by op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from sardonyx.dialects import locations
from sardonyx.dialects.attributes import tensor_type
from sardonyx.dialects.dims import Dim
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.module import create_module, set_outputs
from sardonyx.dialects.sx import BY_NAME
from sardonyx.dialects.sx.constant import ConstantOp


class Builder:
    """A graph under construction."""

    def __init__(self, *inputs: tuple[str, DType, Sequence[Dim | int | str]]) -> None:
        self.module, self.block = create_module("g", [(n, tensor_type(t, d), None) for n, t, d in inputs])
        self.inputs = list(self.block.args)

    def op(self, name: str, *slots: Any, **properties: Any) -> SSAValue:
        made = BY_NAME[f"sx.{name}"].make(*slots, location=locations.name_location(f"{name}_node"), **properties)
        self.block.add_op(made)
        return made.results[0]

    def constant(self, value: Any, dtype: Any = np.float32) -> SSAValue:
        made = ConstantOp.dense(np.asarray(value, dtype))
        self.block.add_op(made)
        return made.output

    def outputs(self, *values: SSAValue) -> ModuleOp:
        set_outputs(self.module, values, [f"y{i}" for i in range(len(values))])
        self.module.verify()
        return self.module
