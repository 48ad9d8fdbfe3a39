"""State: buffers that outlive a run. `sx.state_read`, `sx.state_write`, `sx.cache_read`, `sx.cache_append`.

A buffer has a name, and a run has two views of it: a read gives what it held when the run began, wherever the read
stands, and a write says what it holds once the run has ended. So reads are pure, and passes need no rules of their own.
A *cache* grows along one axis: its length, `rows`, is a symbol of the graph, and what is appended comes behind it.

The contents belong to whoever runs the graph; a run of the reference takes them from `EvalContext.states`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, StringAttr, TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, prop_def, result_def, traits_def
from xdsl.traits import MemoryWriteEffect

from sardonyx.dialects.attributes import Shape, dims_of, dtype_of, static_shape, tensor_type, type_dims
from sardonyx.dialects.base import SEGMENTS, SxOp
from sardonyx.dialects.dims import Dim, Proof, equal
from sardonyx.dialects.evaluate import Array, EvalContext
from sardonyx.dialects.sx.support import format_dims, is_unranked, normalize_axis
from sardonyx.errors import ExecutionError


class StateOp(SxOp):
    """An op on the buffer named `state`."""

    @property
    def buffer_name(self) -> str:
        return self.attr("state")


@irdl_op_definition
class StateReadOp(StateOp):
    """What the buffer `state` held when the run began.

    (C1) The result's type, which states the buffer's, is a tensor of static shape.
    """

    name = "sx.state_read"
    state = prop_def(StringAttr)
    output = result_def()

    def infer(self) -> Sequence[Attribute]:
        if not isinstance(self.output.type, TensorType) or static_shape(self.output) is None:
            raise self.fail(f"(C1) a buffer is a tensor of static shape, not {self.output.type}")
        return [self.output.type]

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        held = ctx.states.get(self.buffer_name)
        if held is None:  # nobody gave contents
            return [np.zeros(static_shape(self.output) or (), dtype_of(self.output).numpy)]
        if held.shape != static_shape(self.output) or held.dtype != dtype_of(self.output).numpy:
            raise ExecutionError(
                f"(C1) the buffer '{self.buffer_name}' holds {held.dtype}{list(held.shape)}, not {self.output.type}",
                op=self.name,
            )
        return [held]


@irdl_op_definition
class StateWriteOp(StateOp):
    """The buffer `state` holds `value` once the run has ended.

    (C1) The value is a tensor of static shape. (C2) There is one write of a buffer in a graph, and it stands in no
    region.
    """

    name = "sx.state_write"
    value = operand_def()
    state = prop_def(StringAttr)
    traits = traits_def(MemoryWriteEffect())

    def infer(self) -> Sequence[Attribute]:
        if not isinstance(self.value.type, TensorType) or static_shape(self.value) is None:
            raise self.fail(f"(C1) a buffer is a tensor of static shape, not {self.value.type}")
        check_single(self)
        return []

    def evaluate(self, ctx: EvalContext, *arrays: Array | None) -> Sequence[Array]:
        (value,) = arrays
        assert value is not None
        ctx.updates[self.buffer_name] = value
        return []


class CacheOp(StateOp):
    """An op on a cache. By itself it names the cache; with `buffer` and `filled` it works on that memory.

    `buffer` has the capacity along `axis`; `filled` is a vector of bytes whose extent is the cache's length.
    """

    @property
    def memory(self) -> tuple[SSAValue | None, SSAValue | None]:
        """`buffer` and `filled`."""
        raise NotImplementedError(f"{self.name} does not define its memory")

    def shape_of(self, ty: Attribute) -> tuple[int, Shape]:
        """The axis that grows, and the dims of what the cache holds at first; `ty` is a part of it.

        Raises:
            InferenceError: A constraint is broken.
        """
        dims = type_dims(ty)
        axis = normalize_axis(self, self.attr("axis"), len(dims), "(C2)")
        held = (*dims[:axis], Dim.symbol(self.attr("rows")), *dims[axis + 1 :])
        buffer, filled = self.memory
        if (buffer is None) != (filled is None):
            raise self.fail("(C4) `buffer` and `filled` come together")
        if buffer is not None:
            there = dims_of(buffer)
            same = len(there) == len(dims) and all(
                equal(a, b) is not Proof.REFUTED for at, (a, b) in enumerate(zip(there, held)) if at != axis
            )
            if not same or there[axis].static_value is None or dtype_of(buffer) != dtype_of(ty):
                raise self.fail(f"(C4) the buffer {buffer.type} cannot hold {format_dims(held)}")
        return axis, held

    def held(self, ctx: EvalContext, shape: Shape) -> Array:
        """What the cache holds, by its name."""
        found = ctx.states.get(self.buffer_name)
        if found is not None:
            return found
        axis = self.attr("axis") % len(shape)
        extents = [0 if at == axis else d.static_value for at, d in enumerate(shape)]
        if None in extents:
            raise ExecutionError(f"nobody gave the contents of the cache '{self.buffer_name}'", op=self.name)
        return np.zeros([e for e in extents if e is not None], dtype_of(self.results[0]).numpy)


@irdl_op_definition
class CacheReadOp(CacheOp):
    """What the cache `state` held when the run began: a tensor whose extent along `axis` is the symbol `rows`.

    (C1) The result's type is a ranked tensor. (C2) `axis` is in range. (C3) The extent there is `rows`. (C4) `buffer`
    and `filled` come together; the buffer has the other extents.
    """

    name = "sx.cache_read"
    buffer = opt_operand_def()
    filled = opt_operand_def()
    state = prop_def(StringAttr)
    axis = prop_def(IntegerAttr)
    rows = prop_def(StringAttr)
    capacity = prop_def(IntegerAttr)
    output = result_def()
    irdl_options = SEGMENTS

    @property
    def memory(self) -> tuple[SSAValue | None, SSAValue | None]:
        return self.buffer, self.filled

    def infer(self) -> Sequence[Attribute]:
        ty = self.output.type
        if not isinstance(ty, TensorType):
            raise self.fail(f"(C1) a cache is a ranked tensor, not {ty}")
        axis, held = self.shape_of(ty)
        if type_dims(ty)[axis] != held[axis]:
            raise self.fail(f"(C3) the extent along axis {axis} of {ty} is not '{self.attr('rows')}'")
        return [ty]

    def evaluate(self, ctx: EvalContext, *arrays: Any) -> Sequence[Array]:
        buffer, filled = arrays
        if buffer is None:
            return [self.held(ctx, dims_of(self.output))]
        return [_first(buffer, self.attr("axis"), len(filled))]


@irdl_op_definition
class CacheAppendOp(CacheOp):
    """The cache `state` with `new` behind what it held; so the cache is, once the run has ended.

    With `buffer` the new rows are written there, and the result is the first part of the buffer.

    (C1) `new` is a ranked tensor. (C2) `axis` is in range. (C3) There is one append to a cache in a graph, and it
    stands in no region. (C4) `buffer` and `filled` come together; the buffer has the other extents. (C5) In a run, the
    cache's length afterwards is at most `capacity`.
    """

    name = "sx.cache_append"
    new = operand_def()
    buffer = opt_operand_def()
    filled = opt_operand_def()
    state = prop_def(StringAttr)
    axis = prop_def(IntegerAttr)
    rows = prop_def(StringAttr)
    capacity = prop_def(IntegerAttr)
    output = result_def()
    traits = traits_def(MemoryWriteEffect())
    irdl_options = SEGMENTS

    @property
    def memory(self) -> tuple[SSAValue | None, SSAValue | None]:
        return self.buffer, self.filled

    def infer(self) -> Sequence[Attribute]:
        if is_unranked(self.new):
            raise self.fail(f"(C1) what is appended is a ranked tensor, not {self.new.type}")
        axis, held = self.shape_of(self.new.type)
        check_single(self)
        return [
            tensor_type(dtype_of(self.new), (*held[:axis], held[axis] + dims_of(self.new)[axis], *held[axis + 1 :]))
        ]

    def evaluate(self, ctx: EvalContext, *arrays: Any) -> Sequence[Array]:
        new, buffer, filled = arrays
        axis, capacity = self.attr("axis") % new.ndim, self.attr("capacity")
        before: Any = self.held(ctx, dims_of(self.new)) if buffer is None else None
        length = len(filled) if before is None else before.shape[axis]
        if length + new.shape[axis] > capacity:
            raise ExecutionError(
                full_message(self.buffer_name).format(length, new.shape[axis], capacity),
                op=self.name,
                code_name="FAILED_PRECONDITION",
            )
        if before is not None:
            ctx.updates[self.buffer_name] = after = np.concatenate([before, new], axis)
            return [after]
        memory: Any = buffer
        memory[(slice(None),) * axis + (slice(length, length + new.shape[axis]),)] = new
        return [_first(memory, axis, length + new.shape[axis])]


def full_message(name: str) -> str:
    """What a run says that would overflow a cache; `{0}`: its length, `{1}`: what comes, `{2}`: the capacity."""
    return f"the cache '{name}' is full: it holds {{0}} rows, {{1}} more exceed its capacity of {{2}}"


def _first(buffer: Array, axis: int, length: int) -> Array:
    index = [slice(None)] * buffer.ndim
    index[axis] = slice(0, length)
    return buffer[tuple(index)]


def check_single(op: StateOp) -> None:
    """Refuse a second write of the buffer, and one in a region.

    Raises:
        InferenceError: There is one.
    """
    outer = op.parent_op()
    if outer is not None and isinstance(outer, SxOp):
        raise op.fail("a buffer is written in no region")
    at: Operation | None = op.prev_op
    while at is not None:
        if (
            isinstance(at, StateOp)
            and at.buffer_name == op.buffer_name
            and not isinstance(at, StateReadOp | CacheReadOp)
        ):
            raise op.fail(f"the buffer '{op.buffer_name}' is written twice")
        at = at.prev_op
