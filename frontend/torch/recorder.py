"""The trace that a torch graph is translated into: locations are those of the graph's nodes, regions may be open."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import LocationAttr
from xdsl.ir import SSAValue

from sardonyx.dialects.attributes import tensor_type
from sardonyx.dialects.dtypes import DType
from sardonyx.dialects.locations import name_location
from sardonyx.dialects.sx.constant import MAX_DENSE_BYTES, ConstantOp
from sardonyx.dialects.sx.state import StateReadOp, StateWriteOp
from sardonyx.dialects.weights import Weight
from sardonyx.frontend.spec import TensorSpec
from sardonyx.frontend.tensor import Tensor
from sardonyx.frontend.trace import Trace


class Recorder(Trace):
    """A trace whose locations are set by the translator."""

    def __init__(self, name: str, specs: Sequence[TensorSpec], location: LocationAttr | None = None) -> None:
        super().__init__(name, specs, location)
        self.at: LocationAttr | None = None
        """Where the node that is being translated comes from."""
        self.arrays: dict[SSAValue, np.ndarray] = {}
        """The contents of parameters and buffers."""
        self.names: dict[SSAValue, str] = {}
        """Their names."""
        self.baked: set[str] = set()
        """Those of which something was computed here and now, so that they cannot be replaced later."""
        self.buffers: dict[str, Tensor] = {}
        """The states, with their first contents."""

    def location(self) -> LocationAttr | None:
        return self.at

    def weight(self, name: str, array: np.ndarray) -> Tensor:
        """A parameter or buffer under its own name; a large one shares the array's memory."""
        location = name_location(name)
        if array.nbytes <= MAX_DENSE_BYTES:
            op = ConstantOp.dense(np.array(array), location)
        else:
            view = array.view()
            view.flags.writeable = False
            if not view.flags.c_contiguous:
                view = np.ascontiguousarray(view)
            weight = Weight(self.free_key(name), DType.of(view.dtype), tuple(view.shape), view)
            op = ConstantOp.of_weight(self.store.insert(weight), location)
        self.append_to_root(op)
        self.arrays[op.output] = array
        self.names[op.output] = name
        return Tensor.of_value(self, op.output)

    def known(self, tensor: Tensor) -> Tensor:
        """A parameter or buffer as an eager tensor, so that what is made of it is computed now; others as they are."""
        array = self.arrays.get(tensor.value) if tensor.is_traced else None
        if array is None:
            return tensor
        self.baked.add(self.names[tensor.value])
        return Tensor.of_array(array)

    def buffer(self, name: str, array: np.ndarray) -> Tensor:
        """A buffer that the model writes: a state, which begins with a copy of these contents; returns what it holds
        when a run begins."""
        held = Tensor.of_array(np.array(array))
        ty = tensor_type(held.dtype, held.shape)
        op = StateReadOp.make(state=name, result_types=[ty], location=name_location(name))
        self.append_to_root(op)
        self.buffers[name] = held
        return Tensor.of_value(self, op.output)

    def write_buffer(self, name: str, tensor: Tensor) -> SSAValue:
        """Let a buffer hold these contents once a run has ended; returns them."""
        value = self.value_of(tensor)
        self.append_to_root(StateWriteOp.make(value, state=name, location=name_location(name)))
        return value

    def free_key(self, name: str) -> str:
        """A key of the store that is not taken."""
        key, number = name, 1
        while key in self.store:
            key, number = f"{name}_{number}", number + 1
        return key
