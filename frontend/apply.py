"""Applies an op of the dialect to tensors: eagerly by its reference semantics, or as an op of the running trace.

One set of functions (`functions/`) stands on this for eager and traced tensors alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.ir import Block, SSAValue

from sardonyx.dialects.attributes import tensor_type
from sardonyx.dialects.base import SxOp
from sardonyx.dialects.evaluate import EvalContext, evaluate_op
from sardonyx.dialects.sx import BY_NAME
from sardonyx.dialects.sx.constant import ConstantOp
from sardonyx.dialects.values import MAX_ELEMENTS
from sardonyx.errors import SardonyxError, UnsupportedError
from sardonyx.frontend.source import user_line
from sardonyx.frontend.tensor import Tensor

if TYPE_CHECKING:
    from sardonyx.frontend.trace import Trace

Slot = Tensor | Sequence[Tensor] | None


def op_class(name: str) -> type[SxOp]:
    """The class of an op of the dialect."""
    found = BY_NAME.get(name)
    if found is None:
        raise UnsupportedError(f"the dialect has no op '{name}'", location=user_line())
    return found


def apply(name: str, *slots: Slot, results: int | None = None, **properties: Any) -> tuple[Tensor, ...]:
    """All results of the op.

    Args:
        name: The op's, such as `sx.split`.
        slots: One entry per operand definition: a tensor, None for an absent one, a sequence for a variadic group.
        results: The number of results of a variadic result group.
        properties: The op's properties.

    Raises:
        InferenceError: A constraint of the op is broken.
        ExecutionError: An eager evaluation failed on the data.
        InvalidArgumentError: A traced tensor is used outside of its trace.
    """
    cls = op_class(name)
    for tensor in _tensors(slots):
        if tensor.is_traced:
            tensor.trace.check_usable()
            return _record(tensor.trace, cls, slots, results, properties)
    return _evaluate(cls, slots, results, properties)


def op(name: str, *slots: Slot, **properties: Any) -> Tensor:
    """The op's first result; see `apply`."""
    return apply(name, *slots, **properties)[0]


def _tensors(slots: Iterable[Slot]) -> Iterable[Tensor]:
    for slot in slots:
        if isinstance(slot, Tensor):
            yield slot
        elif slot is not None:
            yield from slot


def _record(
    trace: Trace, cls: type[SxOp], slots: Sequence[Slot], results: int | None, properties: dict[str, Any]
) -> tuple[Tensor, ...]:
    values = [
        None
        if slot is None
        else trace.value_of(slot)
        if isinstance(slot, Tensor)
        else [trace.value_of(tensor) for tensor in slot]
        for slot in slots
    ]
    made = cls.make(*values, results=results, location=trace.location(), **properties)
    trace.append(made)
    return tuple(Tensor.of_value(trace, result) for result in made.results)


def _evaluate(
    cls: type[SxOp], slots: Sequence[Slot], results: int | None, properties: dict[str, Any]
) -> tuple[Tensor, ...]:
    ctx = EvalContext()
    values = [
        None
        if slot is None
        else _eager_value(slot, ctx)
        if isinstance(slot, Tensor)
        else [_eager_value(tensor, ctx) for tensor in slot]
        for slot in slots
    ]
    try:
        made = cls.make(*values, results=results, **properties)
        evaluate_op(made, ctx)
    except SardonyxError as error:
        error.at(user_line())
        raise
    return tuple(Tensor.of_array(ctx.values[result]) for result in made.results)


def _eager_value(tensor: Tensor, ctx: EvalContext) -> SSAValue:
    """A value that stands for an eager tensor; the contents of small integer tensors are known to inference."""
    array = tensor.numpy()
    if array.size <= MAX_ELEMENTS and array.dtype.kind in "ib" and array.ndim <= 2:
        value: SSAValue = ConstantOp.dense(array).output
    else:
        value = Block(arg_types=[tensor_type(tensor.dtype, array.shape)]).args[0]
    ctx.values[value] = array
    return value


def ints(values: Iterable[int]) -> Tensor:
    """A constant int64 vector: axes, shapes, bounds."""
    return Tensor.of_array(np.array(list(values), np.int64))
