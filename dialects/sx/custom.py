"""`sx.custom`: an operator of the user's own. What it means is registered, by name, in the process that uses it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, var_operand_def, var_result_def

from sardonyx.dialects.attributes import dims_of, dtype_of
from sardonyx.dialects.base import SxOp, to_python
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.types import is_tensor
from sardonyx.errors import ExecutionError, SardonyxError, UnsupportedError

Infer = Callable[[Sequence[Attribute], Mapping[str, Any]], Sequence[Attribute]]
"""The result types from the operands' types and the attributes."""
Kernel = Callable[..., Sequence[Array]]
"""The results from the operands' arrays, which it may not write to, and the attributes by keyword."""
Lower = Callable[[Any, Any], None]
"""A lowering as `@lowers` registers: called with the plan and the op."""
Expand = Callable[[ModuleOp, "CustomOp"], None]
"""Puts ops that ONNX has, or an opaque one, in the place of the op."""


@dataclass(frozen=True)
class Definition:
    """What a custom operator means."""

    name: str
    infer: Infer
    kernel: Kernel
    lower: Lower | None = None
    expand: Expand | None = None
    deterministic: bool = True
    domain: tuple[str, int] | None = None
    """The domain of ONNX that it needs, and the version."""


DEFINITIONS: dict[str, Definition] = {}
"""The operators that this process knows."""


@irdl_op_definition
class CustomOp(SxOp):
    """The operator `op` with the attributes `attrs`.

    Where the operator is not registered, the op is kept as it is: its results have the types that are stated, and it
    has no value.

    (C1) The operator's shape rule takes the operands and attributes, and gives as many types as there are results.
    (C2) In a run, the kernel gives arrays of those dtypes and extents.
    """

    name = "sx.custom"
    inputs = var_operand_def()
    op = prop_def(StringAttr)
    attrs = opt_prop_def(DictionaryAttr)
    outputs = var_result_def()
    DEFAULTS: ClassVar = {}

    @property
    def operator(self) -> str:
        """The operator's name."""
        return self.attr("op")

    @property
    def definition(self) -> Definition | None:
        return DEFINITIONS.get(self.operator)

    @property
    def arguments(self) -> dict[str, Any]:
        """The attributes as Python values."""
        return {} if self.attrs is None else {name: to_python(value) for name, value in self.attrs.data.items()}

    @property
    def DETERMINISTIC(self) -> bool:
        """Whether equal operands give equal results."""
        return self.definition is not None and self.definition.deterministic

    @property
    def native_refusal(self) -> str | None:
        """Why native code cannot compute it; None where its definition has a lowering."""
        if self.definition is None:
            return f"the operator '{self.operator}' is not registered in this process"
        return None if self.definition.lower is not None else f"the kernel of '{self.operator}' is Python's"

    def infer(self) -> Sequence[Attribute]:
        definition = self.definition
        if definition is None:
            return [r.type for r in self.outputs]
        try:
            types = definition.infer([o.type for o in self.inputs], self.arguments)
        except SardonyxError as error:
            raise self.fail(f"(C1) the shape rule of '{self.operator}': {error.message}") from None
        if len(types) != len(self.outputs):
            raise self.fail(f"(C1) the shape rule of '{self.operator}' gives {len(types)} of {len(self.outputs)} types")
        return types

    def evaluate(self, ctx: EvalContext, *arrays: Any) -> Sequence[Array]:
        definition = self.definition
        if definition is None:
            raise UnsupportedError(
                f"the operator '{self.operator}' is not registered in this process",
                hint="import the module that defines it",
            )
        given = [ctx.values[v] for v in self.inputs]
        views = [a.view() for a in given]
        for view in views:
            view.flags.writeable = False
        try:
            made = list(definition.kernel(*views, **self.arguments))
        except SardonyxError:
            raise
        except Exception as error:  # the user's code
            raise ExecutionError(
                f"the kernel of '{self.operator}' raised {type(error).__name__}: {error}", op=self.name
            ) from error
        return [self._checked(number, array, given) for number, array in enumerate(self._counted(made))]

    def _counted(self, made: list[Any]) -> list[Any]:
        if len(made) != len(self.outputs):
            raise ExecutionError(
                f"(C2) the kernel of '{self.operator}' gives {len(made)} of {len(self.outputs)} results", op=self.name
            )
        return made

    def _checked(self, number: int, array: Any, given: Sequence[Array]) -> Array:
        result = self.outputs[number]
        found = np.asarray(array)
        wanted = dtype_of(result).numpy if is_tensor(result.type) else found.dtype
        statics = [d.static_value for d in dims_of(result)]
        fits = len(statics) == found.ndim and all(s in (None, e) for s, e in zip(statics, found.shape, strict=True))
        if found.dtype != wanted or not fits:
            raise ExecutionError(
                f"(C2) the kernel of '{self.operator}' gives {found.dtype}{list(found.shape)} as result {number}, "
                f"its shape rule {result.type}",
                op=self.name,
            )
        return found.copy() if any(np.may_share_memory(found, a) for a in given) else found
