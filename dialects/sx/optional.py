"""Optionals: values that may be missing at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from xdsl.ir import Attribute, TypeAttribute
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def

from sardonyx.dialects.attributes import tensor_type
from sardonyx.dialects.base import OnnxForm, SxOp, refine
from sardonyx.dialects.dtypes import bool_
from sardonyx.dialects.evaluate import EvalContext, Value
from sardonyx.dialects.types import OptionalType, SequenceType, UnknownType, is_tensor, taken
from sardonyx.errors import ExecutionError, InferenceError


@irdl_op_definition
class OptionalOp(SxOp):
    """An optional that holds the operand, or, without one, none of the type that is stated.

    (C1) There is an operand, or `type`; where there are both they agree. (C2) It is a tensor or a sequence.
    """

    name = "sx.optional"
    input = opt_operand_def()
    type = opt_prop_def(TypeAttribute)
    output = result_def()
    ONNX: ClassVar = OnnxForm("Optional", since=15)

    def infer(self) -> Sequence[Attribute]:
        stated: Attribute | None = self.properties.get("type")
        found = stated if self.input is None else self.input.type
        if found is None:
            raise self.fail("(C1) an optional without a value states its type")
        if stated is not None:
            try:
                refine(found, stated)
            except InferenceError:
                raise self.fail(f"(C1) the type is stated as {stated}, but the value is a {found}") from None
        if not is_tensor(found) and not isinstance(found, SequenceType):
            raise self.fail(f"(C2) an optional holds a tensor or a sequence, not {found}")
        return [OptionalType(found)]

    def evaluate(self, ctx: EvalContext, *arrays: Value) -> Sequence[Value]:
        return [arrays[0]]


@irdl_op_definition
class OptionalHasElementOp(SxOp):
    """Whether there is an operand and, if it is an optional, it holds a value: a bool scalar."""

    name = "sx.optional_has_element"
    input = opt_operand_def()
    output = result_def()
    ONNX: ClassVar = OnnxForm("OptionalHasElement", since=15)

    def infer(self) -> Sequence[Attribute]:
        if self.input is not None and isinstance(self.input.type, UnknownType):
            raise self.fail("the type of the operand is not known")
        return [tensor_type(bool_, [])]

    def evaluate(self, ctx: EvalContext, *arrays: Value) -> Sequence[Value]:
        return [np.asarray(arrays[0] is not None)]


@irdl_op_definition
class OptionalGetElementOp(SxOp):
    """What an optional holds; a tensor or a sequence as it is.

    (C1) The operand is an optional, a tensor or a sequence. (C2) An optional holds a value.
    """

    name = "sx.optional_get_element"
    input = operand_def()
    output = result_def()
    ONNX: ClassVar = OnnxForm("OptionalGetElement", since=15)

    def infer(self) -> Sequence[Attribute]:
        ty = self.input.type
        if isinstance(ty, OptionalType):
            return [taken(ty.element)]
        if not is_tensor(ty) and not isinstance(ty, SequenceType):
            raise self.fail(f"(C1) expected an optional, a tensor or a sequence, found {ty}")
        return [ty]

    def evaluate(self, ctx: EvalContext, *arrays: Value) -> Sequence[Value]:
        if arrays[0] is None:
            raise ExecutionError("(C2) the optional holds no value", op=self.name)
        return [arrays[0]]
